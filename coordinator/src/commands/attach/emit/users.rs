//! Who uses the segment: a thread each, as the proof tells them apart; a process as a whole, where it does not.

use super::accesses::by_kernel;
use record::{Attach, TouchingInstruction};
use std::collections::BTreeSet;

/// One of them.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct User {
    pub(super) pid: u32,
    /// `None`: which of its threads it is, is not known.
    pub(super) tid: Option<u32>,
}

impl User {
    /// Those of a process, ascending; at least one.
    pub(super) fn of_process(seen: &Attach, pid: u32) -> Vec<User> {
        let words = seen.lines.iter().flat_map(|line| &line.words);
        let own = words.flat_map(|word| &word.instructions).filter(|at| at.pid == pid && !by_kernel(at));
        let tids: BTreeSet<u32> = own.flat_map(|at| &at.tids).copied().collect();
        match tids.is_empty() {
            true => vec![User { pid, tid: None }],
            false => tids.into_iter().map(|tid| User { pid, tid: Some(tid) }).collect(),
        }
    }

    /// Those that were seen at an instruction.
    pub(super) fn at(instruction: &TouchingInstruction) -> Vec<User> {
        let pid = instruction.pid;
        match &instruction.tids[..] {
            [] => vec![User { pid, tid: None }],
            tids => tids.iter().map(|tid| User { pid, tid: Some(*tid) }).collect(),
        }
    }

    /// Whether it may have been at an instruction: at one that was not proved, each thread of the process.
    pub(super) fn was_at(self, instruction: &TouchingInstruction) -> bool {
        let own = |tid| instruction.tids.contains(&tid);
        self.pid == instruction.pid && (instruction.tids.is_empty() || self.tid.is_some_and(own))
    }

    /// What an instruction does a second, shared out evenly among those who were seen at it.
    pub(super) fn part(instruction: &TouchingInstruction) -> Option<f64> {
        instruction.per_second.map(|rate| rate / instruction.tids.len().max(1) as f64)
    }
}
