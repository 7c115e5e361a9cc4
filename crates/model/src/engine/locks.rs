//! Locks by their algorithms, access by access; `docs/locks.md` describes each, `shm-layout` has them in earnest.
//!
//! What all have in common is here; the algorithms stand by how their waiters wait: `spinning`, `queues`, `sleeping`.
//!
//! An acquisition or release is gone through in phases, each with one access at its beginning: where it has to wait, it
//! is called again in the phase it left.

mod queues;
mod sleeping;
mod spinning;

use super::Engine;
use super::accesses::Cost;
use super::buffer::Stored;
use super::progress::{Blocked, LockOutcome, Phase};
use crate::script::{LockWords, Place};
use crate::time::{NEVER, Ps};
use plan::LockKind;

use LockOutcome::{Done, GoesOn, Jumps, Waits};

/// Instructions of an acquisition and a release that find nobody; the C library's as counted in glibc 2.36
/// (`docs/locks.md`).
fn instructions(kind: LockKind) -> (u32, u32) {
    match kind {
        LockKind::Pthread | LockKind::RawSync => (37, 27),
        LockKind::PthreadAdaptive => (34, 37),
        LockKind::PthreadRobust => (58, 58),
        LockKind::PthreadPi => (42, 60),
        LockKind::PthreadSpin => (9, 6),
        LockKind::PthreadRwlock => (21, 43),
        LockKind::Semaphore => (11, 14),
        LockKind::Tas | LockKind::Ttas | LockKind::Futex | LockKind::Ticket => (4, 2),
        LockKind::Mcs | LockKind::Clh => (6, 4),
        LockKind::Seqlock => (4, 3),
    }
}

const FREE: u64 = 0;
const HELD: u64 = 1;

impl Engine<'_> {
    /// The locks' words before anybody has used them.
    pub(super) fn begin_locks(&mut self) {
        for (index, words) in self.scripts.locks.iter().enumerate() {
            if words.kind == LockKind::Clh {
                self.values[words.state.word as usize] = words.nodes.len() as u64 - 1;
                for (nth, worker) in self.workers.iter_mut().enumerate() {
                    worker.kept[index] = nth as u64;
                }
            }
        }
    }

    /// A `lock` or `rlock`, or the rest of one.
    pub(super) fn acquire(&mut self, worker: usize, lock: u32, shared: bool, timeout: Option<Ps>) -> LockOutcome {
        let words = &self.scripts.locks[lock as usize];
        let shared = shared && words.kind.shares_readers();
        match self.workers[worker].phase {
            Phase::Idle => {
                let me = &mut self.workers[worker];
                (me.wait_since, me.deadline) = (None, NEVER);
                return self.begins(worker, instructions(words.kind).0);
            }
            Phase::Noting => return self.note_owner(worker, words),
            _ => {}
        }
        let came_to = match words.kind {
            LockKind::Tas | LockKind::Ttas | LockKind::PthreadSpin => self.acquire_flag(worker, lock, words, timeout),
            LockKind::Ticket => self.acquire_ticket(worker, lock, words),
            LockKind::Mcs => self.acquire_mcs(worker, lock, words),
            LockKind::Clh => self.acquire_clh(worker, lock, words),
            LockKind::Seqlock => self.acquire_sequence(worker, lock, words, shared, timeout),
            LockKind::PthreadPi => self.acquire_in_kernel(worker, lock, words, timeout),
            LockKind::PthreadRwlock => self.acquire_rwlock(worker, lock, words, shared, timeout),
            LockKind::Futex
            | LockKind::Semaphore
            | LockKind::Pthread
            | LockKind::PthreadAdaptive
            | LockKind::PthreadRobust
            | LockKind::RawSync => self.acquire_futex(worker, lock, words, timeout),
        };
        match came_to {
            Done => self.note_acquisition(worker, lock, shared),
            Jumps => {
                self.workers[worker].locks[lock as usize].timeouts += 1;
                self.workers[worker].phase = Phase::Idle;
                Jumps
            }
            GoesOn | Waits => came_to,
        }
    }

    /// The instructions around the accesses come first.
    fn begins(&mut self, worker: usize, count: u32) -> LockOutcome {
        let cost = self.prices.instructions(count);
        let me = &mut self.workers[worker];
        me.spend_instructions(cost, count.into());
        me.phase = Phase::Try;
        GoesOn
    }

    fn note_acquisition(&mut self, worker: usize, lock: u32, shared: bool) -> LockOutcome {
        #[cfg(test)]
        self.witness_acquisition(worker, lock, shared);
        let me = &mut self.workers[worker];
        let waited = me.wait_since.map_or(0, |since| me.now - since);
        if me.wait_since.is_some() && self.times_waits {
            me.spend(self.prices.clock, 1);
        }
        let tally = &mut me.locks[lock as usize];
        tally.acquisitions += u64::from(!std::mem::take(&mut me.reads_again));
        tally.waited_ps += waited;
        if shared {
            me.phase = Phase::Idle;
            return Done;
        }
        self.goes_to(worker, Phase::Noting)
    }

    /// The owner record, on the lock's own line: read, and written anew whoever owned it last, since it counts.
    fn note_owner(&mut self, worker: usize, words: &LockWords) -> LockOutcome {
        let came_to = self.buffers(worker, |engine| engine.bump(worker, words.owner));
        if came_to == Done {
            self.workers[worker].phase = Phase::Idle;
        }
        came_to
    }

    /// An access that could not be made: the worker waits, or tries again at once.
    fn short(&self, worker: usize) -> LockOutcome {
        if self.is_waiting(worker) { Waits } else { GoesOn }
    }

    /// The first attempt has failed; later calls change nothing.
    fn failed(&mut self, worker: usize, lock: u32, timeout: Option<Ps>) {
        let me = &mut self.workers[worker];
        if me.wait_since.is_none() {
            me.locks[lock as usize].contended += 1;
            me.wait_since = Some(me.now);
            if self.times_waits {
                me.spend(self.prices.clock, 1);
            }
            me.deadline = timeout.map_or(NEVER, |timeout| me.now.saturating_add(timeout));
        }
    }

    fn is_over(&self, worker: usize) -> bool {
        self.workers[worker].now >= self.workers[worker].deadline
    }

    fn goes_to(&mut self, worker: usize, phase: Phase) -> LockOutcome {
        self.workers[worker].phase = phase;
        GoesOn
    }

    /// Spins until the line changes hands or the time is up.
    fn looks(&mut self, worker: usize, line: u32) -> LockOutcome {
        let deadline = self.workers[worker].deadline;
        self.spin_on(worker, line, deadline);
        Waits
    }

    /// An `unlock` or `runlock`, or the rest of one.
    pub(super) fn release(&mut self, worker: usize, lock: u32, shared: bool) -> LockOutcome {
        let words = &self.scripts.locks[lock as usize];
        if self.workers[worker].phase == Phase::Idle {
            #[cfg(test)]
            self.witness_release(worker, lock);
            return self.begins(worker, instructions(words.kind).1);
        }
        let shared = shared && words.kind.shares_readers();
        let came_to = match words.kind {
            LockKind::Tas | LockKind::Ttas | LockKind::PthreadSpin => self.publish(worker, words.state, FREE),
            LockKind::Ticket => {
                let next = self.values[words.serving.word as usize].wrapping_add(1);
                self.publish(worker, words.serving, next)
            }
            LockKind::Seqlock if shared => self.release_reader(worker, lock, words),
            LockKind::Seqlock => {
                let next = self.values[words.state.word as usize].wrapping_add(1);
                self.publish(worker, words.state, next)
            }
            LockKind::Mcs => self.release_mcs(worker, words),
            LockKind::Clh => {
                let kept = self.workers[worker].kept[lock as usize];
                let came_to = self.publish(worker, words.nodes[(kept & u64::from(u32::MAX)) as usize].0, 0);
                if came_to == Done {
                    self.workers[worker].kept[lock as usize] = kept >> 32;
                }
                came_to
            }
            LockKind::PthreadRwlock => self.release_rwlock(worker, lock, words, shared),
            LockKind::Futex
            | LockKind::Semaphore
            | LockKind::Pthread
            | LockKind::PthreadAdaptive
            | LockKind::PthreadRobust
            | LockKind::PthreadPi
            | LockKind::RawSync => self.release_futex(worker, lock, words),
        };
        if matches!(came_to, Done | Jumps) {
            self.workers[worker].phase = Phase::Idle;
        }
        came_to
    }

    /// A plain store that others wait for.
    fn publish(&mut self, worker: usize, place: Place, value: u64) -> LockOutcome {
        self.buffers(worker, |engine| engine.store(worker, place, Stored::Known(value)))
    }

    /// An access that ends in the store buffer, which may have to wait for room there.
    fn buffers(&mut self, worker: usize, access: impl FnOnce(&mut Self) -> Cost) -> LockOutcome {
        if self.workers[worker].buffer.len() < self.prices.store_buffer {
            let cost = access(self);
            self.workers[worker].spend(cost.time, cost.instructions);
            return Done;
        }
        self.wait_for_buffer(worker, self.prices.store_buffer - 1, Blocked::Room);
        self.short(worker)
    }

    /// A plain store, and the phase after it.
    fn writes(&mut self, worker: usize, place: Place, value: u64, then: Phase) -> LockOutcome {
        match self.publish(worker, place, value) {
            Done => self.goes_to(worker, then),
            short => short,
        }
    }
}
