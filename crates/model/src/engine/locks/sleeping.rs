//! Locks whose waiters sleep in the kernel: the futex, the semaphore, the POSIX mutexes and the reader-writer lock.

use super::LockOutcome::{self, Done, GoesOn, Jumps, Waits};
use super::{FREE, HELD};
use crate::engine::Engine;
use crate::engine::progress::{Blocked, Phase};
use crate::script::LockWords;
use crate::time::{NEVER, Ps};
use plan::LockKind;

/// Tries that glibc's adaptive mutex makes before it sleeps.
const ADAPTIVE_TURNS: Ps = 100;

const SLEPT_FOR: u64 = 2;
/// One reader of a reader-writer lock.
const READER: u64 = 8;

impl Engine<'_> {
    /// Three states over a futex: the lab's own, the semaphore, and the POSIX mutexes that wait in user space.
    pub(super) fn acquire_futex(
        &mut self,
        worker: usize,
        lock: u32,
        words: &LockWords,
        timeout: Option<Ps>,
    ) -> LockOutcome {
        match self.workers[worker].phase {
            Phase::Look(_) => {
                let Some(value) = self.read(worker, words.state) else { return self.short(worker) };
                let spent = self.workers[worker].now >= self.workers[worker].give_up_spinning;
                match value {
                    FREE => self.goes_to(worker, Phase::TryAgain(0)),
                    _ if spent => self.goes_to(worker, Phase::Mark),
                    _ => {
                        let until = self.workers[worker].give_up_spinning;
                        self.spin_on(worker, words.state.line, until);
                        Waits
                    }
                }
            }
            Phase::Mark => {
                let Some(before) = self.modify(worker, words.state, |_| SLEPT_FOR) else { return self.short(worker) };
                match before {
                    FREE => Done,
                    _ if self.is_over(worker) => Jumps,
                    _ => {
                        self.calls_kernel(worker);
                        self.goes_to(worker, Phase::Check)
                    }
                }
            }
            Phase::Check => {
                let Some(value) = self.read(worker, words.state) else { return self.short(worker) };
                self.workers[worker].phase = Phase::Mark;
                if value == SLEPT_FOR { self.sleep(worker, lock) } else { GoesOn }
            }
            _ => {
                let try_once = |value| if value == FREE { HELD } else { value };
                let Some(before) = self.modify(worker, words.state, try_once) else { return self.short(worker) };
                if before == FREE {
                    return Done;
                }
                self.failed(worker, lock, timeout);
                if words.kind != LockKind::PthreadAdaptive {
                    return self.goes_to(worker, Phase::Mark);
                }
                let me = &mut self.workers[worker];
                me.give_up_spinning = me.wait_since.unwrap_or(me.now) + ADAPTIVE_TURNS * self.prices.pause;
                self.goes_to(worker, Phase::Look(0))
            }
        }
    }

    /// Priority inheritance: who does not get it at once asks the kernel, which hands it over.
    pub(super) fn acquire_in_kernel(
        &mut self,
        worker: usize,
        lock: u32,
        words: &LockWords,
        timeout: Option<Ps>,
    ) -> LockOutcome {
        let phase = self.workers[worker].phase;
        match phase {
            Phase::Handed => return Done,
            Phase::InKernel => return Jumps,
            _ => {}
        }
        let in_kernel = phase == Phase::Check;
        let update = |value: u64| match value {
            FREE => HELD,
            value if in_kernel => value.max(SLEPT_FOR),
            value => value,
        };
        let Some(before) = self.modify(worker, words.state, update) else { return self.short(worker) };
        if before == FREE {
            return Done;
        }
        self.failed(worker, lock, timeout);
        if self.is_over(worker) {
            return Jumps;
        }
        if !in_kernel {
            self.calls_kernel(worker);
            return self.goes_to(worker, Phase::Check);
        }
        self.workers[worker].phase = Phase::InKernel;
        self.sleep(worker, lock)
    }

    /// A reader-writer lock that prefers nobody. Who meets a writer says so, and sleeps unless that one has gone by
    /// then; a writer that meets readers sleeps until the last of them has gone.
    pub(super) fn acquire_rwlock(
        &mut self,
        worker: usize,
        lock: u32,
        words: &LockWords,
        shared: bool,
        timeout: Option<Ps>,
    ) -> LockOutcome {
        let phase = self.workers[worker].phase;
        if phase == Phase::Check {
            let Some(value) = self.read(worker, words.state) else { return self.short(worker) };
            self.workers[worker].phase = Phase::Mark;
            let has_readers = value != FREE && value.is_multiple_of(READER);
            let sleeps = value == SLEPT_FOR || (has_readers && !shared);
            return if sleeps { self.sleep(worker, lock) } else { GoesOn };
        }
        let marks = phase == Phase::Mark;
        let update = |value: u64| match (shared, value) {
            (true, value) if value.is_multiple_of(READER) => value + READER,
            (false, FREE) if marks => SLEPT_FOR,
            (false, FREE) => HELD,
            (_, HELD) if marks => SLEPT_FOR,
            (_, value) => value,
        };
        let Some(before) = self.modify(worker, words.state, update) else { return self.short(worker) };
        if before == FREE || (shared && before.is_multiple_of(READER)) {
            return Done;
        }
        self.failed(worker, lock, timeout);
        if self.is_over(worker) {
            return Jumps;
        }
        if !marks {
            return self.goes_to(worker, Phase::Mark);
        }
        self.calls_kernel(worker);
        self.goes_to(worker, Phase::Check)
    }

    fn sleep(&mut self, worker: usize, lock: u32) -> LockOutcome {
        self.sleepers[lock as usize].push_back(worker as u32);
        let deadline = self.workers[worker].deadline;
        if deadline != NEVER {
            let at = deadline.max(self.workers[worker].now + 1);
            self.resume(worker, at);
        }
        self.block(worker, Blocked::Asleep(lock));
        Waits
    }

    /// Wakes the first sleeper, which then times out no more; whether there was one.
    fn wake(&mut self, worker: usize, lock: u32) -> bool {
        let Some(sleeper) = self.sleepers[lock as usize].pop_front() else { return false };
        let takes = self.prices.draw_kernel(self.prices.wake, &mut self.chance);
        let at = self.workers[worker].now.saturating_add(takes);
        let sleeper = sleeper as usize;
        if self.workers[sleeper].phase == Phase::InKernel {
            self.workers[sleeper].phase = Phase::Handed;
        }
        self.resume(sleeper, at);
        true
    }

    pub(super) fn release_futex(&mut self, worker: usize, lock: u32, words: &LockWords) -> LockOutcome {
        let hands_over = words.kind == LockKind::PthreadPi && !self.sleepers[lock as usize].is_empty();
        if hands_over {
            // The kernel gives it to the first of the sleepers; the word keeps saying that it is held. Its own atomics
            // drain the buffer.
            if !self.workers[worker].buffer.is_empty() {
                self.wait_for_buffer(worker, 0, Blocked::Drained);
                return self.short(worker);
            }
            self.calls_kernel(worker);
            self.wake(worker, lock);
            return Done;
        }
        let Some(before) = self.modify(worker, words.state, |_| FREE) else { return self.short(worker) };
        if before == SLEPT_FOR {
            self.calls_kernel(worker);
            self.wake(worker, lock);
        }
        Done
    }

    pub(super) fn release_rwlock(&mut self, worker: usize, lock: u32, words: &LockWords, shared: bool) -> LockOutcome {
        let Some(before) = self.modify(worker, words.state, |value| if shared { value - READER } else { FREE }) else {
            return self.short(worker);
        };
        let somebody_waits = if shared { before == READER } else { before == SLEPT_FOR };
        let sleepers = !self.sleepers[lock as usize].is_empty();
        // The last reader looks whether anybody sleeps; a writer is told by who is about to.
        if somebody_waits && (sleepers || !shared) {
            self.calls_kernel(worker);
            while self.wake(worker, lock) {}
        }
        Done
    }

    /// In the kernel: what a futex call takes.
    fn calls_kernel(&mut self, worker: usize) {
        let takes = self.prices.draw_kernel(self.prices.futex, &mut self.chance);
        let me = &mut self.workers[worker];
        me.beside = 0;
        me.spend(takes, self.prices.window);
    }
}
