//! Locks whose waiters read until they see their turn: test-and-set with and without a look first, tickets, the
//! sequence lock.

use super::LockOutcome::{self, Done, GoesOn, Jumps};
use super::{FREE, HELD};
use crate::engine::Engine;
use crate::engine::progress::Phase;
use crate::script::LockWords;
use crate::time::Ps;
use plan::LockKind;

/// Spin-loop hints between two attempts of `ttas`, first and at most.
const BACKOFF: (u64, u64) = (4, 128);

impl Engine<'_> {
    /// One word that says whether it is held: test-and-set, with a look first or without, and the POSIX spin lock.
    pub(super) fn acquire_flag(
        &mut self,
        worker: usize,
        lock: u32,
        words: &LockWords,
        timeout: Option<Ps>,
    ) -> LockOutcome {
        match self.workers[worker].phase {
            Phase::Look(lost) => {
                let Some(value) = self.read(worker, words.state) else { return self.short(worker) };
                match value {
                    FREE => self.goes_to(worker, Phase::TryAgain(lost)),
                    _ if self.is_over(worker) => Jumps,
                    _ => self.looks(worker, words.state.line),
                }
            }
            phase => {
                let Some(before) = self.modify(worker, words.state, |_| HELD) else { return self.short(worker) };
                if before == FREE {
                    return Done;
                }
                self.failed(worker, lock, timeout);
                if self.is_over(worker) {
                    return Jumps;
                }
                let lost = if let Phase::TryAgain(lost) = phase { lost + 1 } else { 0 };
                if words.kind == LockKind::Ttas && lost > 0 {
                    let hints = (BACKOFF.0 << (lost - 1).min(8)).min(BACKOFF.1);
                    self.workers[worker].spend(hints * self.prices.pause, hints);
                }
                match words.kind {
                    LockKind::Tas => GoesOn,
                    _ => self.goes_to(worker, Phase::Look(lost)),
                }
            }
        }
    }

    /// A number is drawn, and then waited for.
    pub(super) fn acquire_ticket(&mut self, worker: usize, lock: u32, words: &LockWords) -> LockOutcome {
        let Phase::Queued(number) = self.workers[worker].phase else {
            let Some(number) = self.modify(worker, words.state, |next| next.wrapping_add(1)) else {
                return self.short(worker);
            };
            #[cfg(test)]
            self.witness_queued(worker, lock);
            return self.goes_to(worker, Phase::Queued(number));
        };
        let Some(served) = self.read(worker, words.serving) else { return self.short(worker) };
        if served == number {
            return Done;
        }
        self.failed(worker, lock, None);
        self.looks(worker, words.serving.line)
    }

    /// A count that is odd while a writer is inside; a reader keeps what it saw.
    pub(super) fn acquire_sequence(
        &mut self,
        worker: usize,
        lock: u32,
        words: &LockWords,
        shared: bool,
        timeout: Option<Ps>,
    ) -> LockOutcome {
        let is_even = |value: u64| value.is_multiple_of(2);
        let looking = matches!(self.workers[worker].phase, Phase::Look(_));
        if shared || looking {
            let Some(value) = self.read(worker, words.state) else { return self.short(worker) };
            if !is_even(value) {
                self.failed(worker, lock, timeout);
                return if self.is_over(worker) { Jumps } else { self.looks(worker, words.state.line) };
            }
            if shared {
                self.workers[worker].kept[lock as usize] = value;
                return Done;
            }
            return self.goes_to(worker, Phase::TryAgain(0));
        }
        let once_more = |value: u64| if is_even(value) { value + 1 } else { value };
        let Some(before) = self.modify(worker, words.state, once_more) else { return self.short(worker) };
        if is_even(before) {
            return Done;
        }
        self.failed(worker, lock, timeout);
        self.goes_to(worker, Phase::Look(0))
    }

    /// A reader reads again where the count has moved.
    pub(super) fn release_reader(&mut self, worker: usize, lock: u32, words: &LockWords) -> LockOutcome {
        let Some(value) = self.read(worker, words.state) else { return self.short(worker) };
        if value == self.workers[worker].kept[lock as usize] {
            return Done;
        }
        self.workers[worker].reads_again = true;
        Jumps
    }
}
