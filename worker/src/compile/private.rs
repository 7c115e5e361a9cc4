//! What a loop remembers between passes and runs: words of the worker's own, loaded into registers at entry.
//!
//! | word | what |
//! |---|---|
//! | 0 | 0, or 1 + the step whose `wait` was given up |
//! | 1 | passes made since the loop was compiled: the first of the carried |
//! | 2 .. | one for each further [`Carried`], in order |
//! | then | the offsets of each `[any]`, in order of the operations |

use super::LockSites;
use crate::draw::{self, Purpose};
use plan::{AccessKind, Address, LockKind, Op, OpKind, Width, WorkerProgram};
use shm_layout::lock::clh_name;

/// Index of the word that tells a wait that was given up.
pub(super) const GAVE_UP: usize = 0;

/// Index of the word that counts the passes made: the first carried one.
pub(super) const MADE: usize = 1;

/// One thing that is carried from pass to pass, in a register while the loop runs.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Carried {
    /// Passes made, those of the present iteration included. `store` and `swap` write the present pass's number.
    Passes,
    /// State of the generator of `[any]`.
    Random,
    /// End of the arithmetic chain of `work`.
    Work,
    /// Passes until the operation of this index is due (and those of the same step behind it).
    Every(usize),
    /// What the `cas` of this index expects.
    Expected(usize, Width),
    /// What this worker last saw or posted in this word.
    LastSeen(u64, Width),
    /// Which node this worker queues with next at the CLH lock of this index, by name.
    Node(u32),
}

/// What an acquisition leaves to remember until its release: within a pass, so that it has no word.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Local {
    /// The predecessor's node at the CLH lock of this index, by name.
    Predecessor(u32),
    /// The count at which a reading began, or the odd one that stood in the way, at the sequence lock of this index.
    Begun(u32),
}

/// The layout of the private words and their first values.
pub(super) struct Private {
    /// In the order of their words.
    pub(super) carried: Vec<(Carried, u64)>,
    /// Index of an operation with `[any]`, and its offsets.
    tables: Vec<(usize, Vec<u64>)>,
}

impl Private {
    /// What `program` needs.
    pub(super) fn of(program: &WorkerProgram, sites: &LockSites, seed: u64) -> Private {
        // Zero is the one state from which the generator gives nothing else.
        let seed = draw::bits(seed, program.index.0, Purpose::Elements).max(1);
        let mut private = Private { carried: vec![(Carried::Passes, 0)], tables: Vec::new() };
        for first in groups(&program.ops).filter(|&first| program.ops[first].every > 1) {
            private.carry(Carried::Every(first), program.ops[first].every.into());
        }
        for (index, op) in program.ops.iter().enumerate() {
            match &op.kind {
                OpKind::Access { kind, width, at } => private.access(index, *kind, *width, at, seed),
                OpKind::Flush { at } => private.address(index, at, seed),
                OpKind::Wait { width, at } => private.carry(Carried::LastSeen(*at, *width), 0),
                OpKind::Work(_) => private.carry(Carried::Work, seed),
                OpKind::Lock { lock, .. } if sites.sites[*lock as usize].kind == LockKind::Clh => {
                    private.carry(Carried::Node(*lock), clh_name(sites.me - 1).into());
                }
                _ => {}
            }
        }
        private
    }

    fn access(&mut self, index: usize, kind: AccessKind, width: Width, at: &Address, seed: u64) {
        self.address(index, at, seed);
        if kind == AccessKind::Cas {
            self.carry(Carried::Expected(index, width), 0);
        }
    }

    fn address(&mut self, index: usize, at: &Address, seed: u64) {
        if let Address::Any(offsets) = at {
            self.carry(Carried::Random, seed);
            self.tables.push((index, offsets.clone()));
        }
    }

    fn carry(&mut self, what: Carried, first: u64) {
        if self.position(what).is_none() {
            self.carried.push((what, first));
        }
    }

    /// Its place among the carried, if it is needed at all.
    pub(super) fn position(&self, what: Carried) -> Option<usize> {
        self.carried.iter().position(|(carried, _)| *carried == what)
    }

    /// Index of the word of the carried at `position`.
    pub(super) fn word(&self, position: usize) -> usize {
        MADE + position
    }

    /// First word and length of the table of the operation at `index`.
    pub(super) fn table(&self, index: usize) -> (usize, usize) {
        let mut word = self.word(self.carried.len());
        for (owner, offsets) in &self.tables {
            if *owner == index {
                return (word, offsets.len());
            }
            word += offsets.len();
        }
        unreachable!("every operation with `[any]` was given a table");
    }

    /// The words with their first values.
    pub(super) fn into_words(self) -> Vec<u64> {
        let carried = self.carried.into_iter().map(|(_, first)| first);
        let tables = self.tables.into_iter().flat_map(|(_, offsets)| offsets);
        std::iter::once(0).chain(carried).chain(tables).collect()
    }
}

/// Index of the first operation of each step: the operations of one step (`[all]`) share one `every`.
pub(super) fn groups(ops: &[Op]) -> impl Iterator<Item = usize> {
    (0..ops.len()).filter(|&i| i == 0 || !same_group(&ops[i - 1], &ops[i]))
}

/// Whether two neighbouring operations come from one step.
pub(super) fn same_group(earlier: &Op, later: &Op) -> bool {
    earlier.step == later.step && earlier.every == later.every
}
