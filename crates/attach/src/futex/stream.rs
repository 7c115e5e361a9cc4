//! The kernel's records in the order in which things happened.
//!
//! Each CPU writes to a ring of its own, and a thread moves between CPUs. So what was drained is held back until everything
//! older must have been drained as well: what happened before one draining began has been written by the next one.

use super::call::{Call, Syscall};
use super::follow::Thread;
use super::open::{Kind, Opened};
use crate::perf::{Record, Sample};

/// Something that happened to a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    /// Nanoseconds of CLOCK_MONOTONIC.
    pub(super) at: u64,
    pub(super) thread: Thread,
    pub(super) what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A call began; `None` where it neither waits nor wakes.
    Enter(Option<Call>),
    /// A call returned that.
    Exit(i64),
    /// It was begun, by a thread of that process.
    Born { parent: u32 },
    /// It ended.
    Ended,
    /// It executes another program.
    Executed,
    /// It was found in a wait at that word when watching had begun.
    Found { word: u64, private: bool },
}

/// What was written and not yet handed on.
#[derive(Debug, Default)]
pub(super) struct Stream {
    held: Vec<Moment>,
    /// Everything up to here has been drained.
    complete_to: u64,
    /// Records of calls that were written.
    pub(super) events: u64,
    /// Records that found a ring full.
    pub(super) lost: u64,
}

impl Stream {
    /// Adds something that was learned otherwise.
    pub(super) fn add(&mut self, moment: Moment) {
        self.held.push(moment);
    }

    /// Takes what the rings hold, and gives what happened before the last time that was done, oldest first. `now`:
    /// CLOCK_MONOTONIC just before.
    pub(super) fn drain(&mut self, opened: &mut Opened, now: u64) -> Vec<Moment> {
        self.take(opened);
        let ready = self.up_to(self.complete_to);
        self.complete_to = now;
        ready
    }

    /// Everything that is left, once the events are off.
    pub(super) fn finish(&mut self, opened: &mut Opened) -> Vec<Moment> {
        self.take(opened);
        self.up_to(u64::MAX)
    }

    fn take(&mut self, opened: &mut Opened) {
        let Opened { rings, kinds, .. } = opened;
        for ring in rings {
            ring.drain(|record| match record {
                Record::Lost(records) => self.lost += records,
                Record::Sample(sample) => {
                    self.events += 1;
                    self.held.extend(kinds.get(&sample.id).and_then(|kind| moment(*kind, &sample)));
                }
                Record::Born { pid, tid, parent, time_ns } => {
                    let what = What::Born { parent };
                    self.held.push(Moment { at: time_ns, thread: Thread { pid, tid }, what });
                }
                Record::Ended { pid, tid, time_ns } => {
                    self.held.push(Moment { at: time_ns, thread: Thread { pid, tid }, what: What::Ended });
                }
                Record::Executed { pid, tid, time_ns } => {
                    self.held.push(Moment { at: time_ns, thread: Thread { pid, tid }, what: What::Executed });
                }
            });
        }
    }

    fn up_to(&mut self, limit: u64) -> Vec<Moment> {
        // Stable: of one thread's moments at the same time the one written first stays first.
        self.held.sort_by_key(|moment| moment.at);
        let ready = self.held.partition_point(|moment| moment.at <= limit);
        let later = self.held.split_off(ready);
        std::mem::replace(&mut self.held, later)
    }
}

/// Where a tracepoint's own data begin: behind what all have in common the call's number, then at 16 its arguments, or what
/// it returned. The tracepoints of all calls and those of a single one agree in that.
const NUMBER_AT: usize = 8;
const VALUES_AT: usize = 16;

fn moment(kind: Kind, sample: &Sample) -> Option<Moment> {
    let word = |at: usize| sample.raw.get(at..at + 8).and_then(|word| word.try_into().ok()).map(u64::from_ne_bytes);
    let narrow = || Syscall::numbered(word(NUMBER_AT)? & 0xffff_ffff, 32);
    let what = match kind {
        Kind::Enter(call) => What::Enter(Call::of(call, &arguments(word))),
        Kind::EnterAny => What::Enter(Call::of(narrow()?, &arguments(word).map(|value| value & 0xffff_ffff))),
        Kind::Exit(_) => What::Exit(word(VALUES_AT)?.cast_signed()),
        Kind::ExitAny => {
            narrow()?;
            What::Exit(word(VALUES_AT)?.cast_signed())
        }
        Kind::Life => return None,
    };
    Some(Moment { at: sample.time_ns, thread: Thread { pid: sample.pid, tid: sample.tid }, what })
}

/// As many as the call has; what is not written is 0.
fn arguments(word: impl Fn(usize) -> Option<u64>) -> [u64; 6] {
    std::array::from_fn(|index| word(VALUES_AT + 8 * index).unwrap_or(0))
}
