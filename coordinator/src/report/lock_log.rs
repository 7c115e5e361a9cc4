//! `locks.csv`: every contended wait and every sampled hold of a run, one by one, for whoever wants to make a
//! distribution of his own or to check the lab's. Only on demand: a window may hold a million.

use super::rows::{Repetition, Rows};
use super::write_error::WriteError;
use analysis::{LockSpan, LockTime, each_lock_time};
use std::io::{self, Write};
use std::path::Path;

const HEAD: [&str; 10] = ["arm", "block", "worker", "role", "lock", "what", "start_ns", "ticks", "ns", "masked"];

/// The log of a run that is being made.
pub(crate) struct LockLog(Rows);

impl LockLog {
    pub(super) fn create(folder: &Path) -> Result<LockLog, WriteError> {
        Rows::create(folder, "write the lock times to a file in", &HEAD).map(LockLog)
    }

    pub(super) fn repetition(&mut self, repetition: Repetition<'_>) -> Result<(), WriteError> {
        let Repetition { block, program, traces, rate } = repetition;
        let block = block.to_string();
        self.0.add(|rows| {
            each_lock_time(program, traces, rate, |time| {
                let LockTime { worker, role, lock, span, start_ns, ticks, ns, masked } = time;
                let (what, masked) =
                    (if span == LockSpan::Wait { "wait" } else { "hold" }, if masked { "yes" } else { "no" });
                let numbers = [worker.to_string(), format!("{start_ns:.1}"), ticks.to_string(), ns.to_string()];
                let [worker, start_ns, ticks, ns] = numbers.each_ref().map(String::as_str);
                rows.write_record([&program.arm, &block, worker, role, lock, what, start_ns, ticks, ns, masked])
            })
        })
    }

    pub(super) fn copy(self, out: &mut impl Write) -> io::Result<()> {
        self.0.copy(out)
    }
}
