//! Queue locks: each waiter reads a word of its own node (MCS), or of the one before it (CLH).

use super::LockOutcome::{self, Done, Waits};
use crate::engine::Engine;
use crate::engine::progress::Phase;
use crate::script::LockWords;
use crate::time::NEVER;

impl Engine<'_> {
    /// The tail says who came last; 0 is nobody. Workers are named by their index and one.
    pub(super) fn acquire_mcs(&mut self, worker: usize, lock: u32, words: &LockWords) -> LockOutcome {
        let me = worker as u64 + 1;
        let (waits, next) = words.nodes[worker];
        match self.workers[worker].phase {
            Phase::Queued(_) => {
                let Some(value) = self.read(worker, waits) else { return self.short(worker) };
                if value == 0 { Done } else { self.looks(worker, waits.line) }
            }
            Phase::TryAgain(_) => {
                let Some(before) = self.modify(worker, words.state, |_| me) else { return self.short(worker) };
                #[cfg(test)]
                self.witness_queued(worker, lock);
                if before == 0 {
                    return Done;
                }
                self.failed(worker, lock, None);
                self.goes_to(worker, Phase::Behind(before))
            }
            Phase::Behind(before) => self.writes(worker, words.nodes[before as usize - 1].1, me, Phase::Queued(before)),
            Phase::Waiting => self.writes(worker, waits, 1, Phase::TryAgain(0)),
            _ => self.writes(worker, next, 0, Phase::Waiting),
        }
    }

    /// Of what is [kept](crate::engine::worker::Worker::kept), the low half is the worker's own node, the high one that
    /// before it, which it takes over at the release.
    pub(super) fn acquire_clh(&mut self, worker: usize, lock: u32, words: &LockWords) -> LockOutcome {
        let mine = self.workers[worker].kept[lock as usize] & u64::from(u32::MAX);
        match self.workers[worker].phase {
            Phase::Queued(before) => {
                let (taken, _) = words.nodes[before as usize];
                let Some(value) = self.read(worker, taken) else { return self.short(worker) };
                if value == 0 {
                    return Done;
                }
                self.failed(worker, lock, None);
                self.looks(worker, taken.line)
            }
            Phase::TryAgain(_) => {
                let Some(before) = self.modify(worker, words.state, |_| mine) else { return self.short(worker) };
                #[cfg(test)]
                self.witness_queued(worker, lock);
                self.workers[worker].kept[lock as usize] = mine | before << 32;
                self.goes_to(worker, Phase::Queued(before))
            }
            _ => self.writes(worker, words.nodes[mine as usize].0, 1, Phase::TryAgain(0)),
        }
    }

    /// To the one behind; where none has said that it is, the tail is given back, unless one has come meanwhile.
    pub(super) fn release_mcs(&mut self, worker: usize, words: &LockWords) -> LockOutcome {
        let me = worker as u64 + 1;
        let phase = self.workers[worker].phase;
        if phase == Phase::Leaving {
            let leave = |tail| if tail == me { 0 } else { tail };
            let Some(before) = self.modify(worker, words.state, leave) else { return self.short(worker) };
            return if before == me { Done } else { self.goes_to(worker, Phase::Successor) };
        }
        if let Phase::Behind(successor) = phase {
            let (its_waits, _) = words.nodes[successor as usize - 1];
            return self.publish(worker, its_waits, 0);
        }
        let (_, next) = words.nodes[worker];
        let Some(successor) = self.read(worker, next) else { return self.short(worker) };
        match successor {
            0 if phase == Phase::Successor => {
                self.spin_on(worker, next.line, NEVER);
                Waits
            }
            0 => self.goes_to(worker, Phase::Leaving),
            successor => self.goes_to(worker, Phase::Behind(successor)),
        }
    }
}
