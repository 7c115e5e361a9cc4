//! Locks by their algorithms, access by access; `docs/locks.md` describes each, `shm-layout` has them in earnest.
//!
//! An acquisition or release is gone through in phases, each with one access at its beginning: where it has to wait, it is
//! called again in the phase it left.

use super::Engine;
use super::buffer::Stored;
use super::worker::{Blocked, Cost};
use crate::script::{LockWords, Place};
use crate::time::{NEVER, Ps};
use plan::LockKind;

/// Where a worker stands in what it does, when that takes more than one access.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// At an operation's beginning.
    Idle,
    /// An element was drawn.
    Drawn(u32),
    /// About to try.
    Try,
    /// Reading until it looks free; so many attempts were lost.
    Look(u32),
    /// It looked free.
    TryAgain(u32),
    /// About to say that somebody sleeps.
    Mark,
    /// In the kernel, about to sleep.
    Check,
    /// In the kernel's queue; what wakes it without having handed the lock over is its timeout.
    InKernel,
    /// The kernel has handed it over.
    Handed,
    /// It owns the lock and is about to say so in the owner record.
    Noting,
    /// A line has been flushed.
    Flushed,
    /// Its node's first word is written, not yet that it waits.
    Waiting,
    /// Behind a node in a queue that does not know of it yet; or an owner in front of one.
    Behind(u64),
    /// An owner whom nobody seems to follow.
    Leaving,
    /// With a number, or in a queue behind a node.
    Queued(u64),
    /// An owner waits for its successor to name itself.
    Successor,
}

/// What an acquisition or release came to, for now.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Acquisition {
    /// It is done.
    Owned,
    /// The worker waits, and is resumed.
    Waits,
    /// To be gone on with at once.
    Goes,
    /// Given up, or a reader has to read again: the worker goes on elsewhere.
    Jumps,
}

use Acquisition::{Goes as GoesOn, Jumps, Owned, Waits};

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

/// Tries that glibc's adaptive mutex makes before it sleeps.
const ADAPTIVE_TURNS: Ps = 100;
/// Spin-loop hints between two attempts of `ttas`, first and at most.
const BACKOFF: (u64, u64) = (4, 128);

const FREE: u64 = 0;
const HELD: u64 = 1;
const SLEPT_FOR: u64 = 2;
/// One reader of a reader-writer lock.
const READER: u64 = 8;

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
    pub(super) fn acquire(&mut self, worker: usize, lock: u32, shared: bool, timeout: Option<Ps>) -> Acquisition {
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
            _ => self.acquire_futex(worker, lock, words, timeout),
        };
        match came_to {
            Owned => self.note_acquisition(worker, lock, shared),
            Jumps => {
                self.workers[worker].locks[lock as usize].timeouts += 1;
                self.workers[worker].phase = Phase::Idle;
                Jumps
            }
            GoesOn | Waits => came_to,
        }
    }

    /// The instructions around the accesses come first.
    fn begins(&mut self, worker: usize, count: u32) -> Acquisition {
        let cost = self.prices.instructions(count);
        let me = &mut self.workers[worker];
        me.spend_instructions(cost, count.into());
        me.phase = Phase::Try;
        GoesOn
    }

    fn note_acquisition(&mut self, worker: usize, lock: u32, shared: bool) -> Acquisition {
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
            return Owned;
        }
        self.goes_to(worker, Phase::Noting)
    }

    /// The owner record, on the lock's own line: read, and written anew whoever owned it last, since it counts.
    fn note_owner(&mut self, worker: usize, words: &LockWords) -> Acquisition {
        let came_to = self.buffers(worker, |engine| engine.bump(worker, words.owner));
        if came_to == Owned {
            self.workers[worker].phase = Phase::Idle;
        }
        came_to
    }

    /// An access that could not be made: the worker waits, or tries again at once.
    fn short(&self, worker: usize) -> Acquisition {
        if self.is_waiting(worker) { Waits } else { GoesOn }
    }

    /// In the kernel: what a futex call takes.
    fn calls_kernel(&mut self, worker: usize) {
        let takes = self.prices.draw_kernel(self.prices.futex, &mut self.chance);
        let me = &mut self.workers[worker];
        me.beside = 0;
        me.spend(takes, self.prices.window);
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

    fn goes_to(&mut self, worker: usize, phase: Phase) -> Acquisition {
        self.workers[worker].phase = phase;
        GoesOn
    }

    /// Spins until the line changes hands or the time is up.
    fn looks(&mut self, worker: usize, line: u32) -> Acquisition {
        let deadline = self.workers[worker].deadline;
        self.spin_on(worker, line, deadline);
        Waits
    }

    fn acquire_flag(&mut self, worker: usize, lock: u32, words: &LockWords, timeout: Option<Ps>) -> Acquisition {
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
                    return Owned;
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

    fn acquire_ticket(&mut self, worker: usize, lock: u32, words: &LockWords) -> Acquisition {
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
            return Owned;
        }
        self.failed(worker, lock, None);
        self.looks(worker, words.serving.line)
    }

    fn acquire_mcs(&mut self, worker: usize, lock: u32, words: &LockWords) -> Acquisition {
        let me = worker as u64 + 1;
        let (waits, next) = words.nodes[worker];
        match self.workers[worker].phase {
            Phase::Queued(_) => {
                let Some(value) = self.read(worker, waits) else { return self.short(worker) };
                if value == 0 { Owned } else { self.looks(worker, waits.line) }
            }
            Phase::TryAgain(_) => {
                let Some(before) = self.modify(worker, words.state, |_| me) else { return self.short(worker) };
                #[cfg(test)]
                self.witness_queued(worker, lock);
                if before == 0 {
                    return Owned;
                }
                self.failed(worker, lock, None);
                self.goes_to(worker, Phase::Behind(before))
            }
            Phase::Behind(before) => self.writes(worker, words.nodes[before as usize - 1].1, me, Phase::Queued(before)),
            Phase::Waiting => self.writes(worker, waits, 1, Phase::TryAgain(0)),
            _ => self.writes(worker, next, 0, Phase::Waiting),
        }
    }

    fn acquire_clh(&mut self, worker: usize, lock: u32, words: &LockWords) -> Acquisition {
        let mine = self.workers[worker].kept[lock as usize] & u64::from(u32::MAX);
        match self.workers[worker].phase {
            Phase::Queued(before) => {
                let (taken, _) = words.nodes[before as usize];
                let Some(value) = self.read(worker, taken) else { return self.short(worker) };
                if value == 0 {
                    return Owned;
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

    fn acquire_sequence(
        &mut self,
        worker: usize,
        lock: u32,
        words: &LockWords,
        shared: bool,
        timeout: Option<Ps>,
    ) -> Acquisition {
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
                return Owned;
            }
            return self.goes_to(worker, Phase::TryAgain(0));
        }
        let once_more = |value: u64| if is_even(value) { value + 1 } else { value };
        let Some(before) = self.modify(worker, words.state, once_more) else { return self.short(worker) };
        if is_even(before) {
            return Owned;
        }
        self.failed(worker, lock, timeout);
        self.goes_to(worker, Phase::Look(0))
    }

    /// Three states over a futex: the lab's own, the semaphore, and the POSIX mutexes that wait in user space.
    fn acquire_futex(&mut self, worker: usize, lock: u32, words: &LockWords, timeout: Option<Ps>) -> Acquisition {
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
                    FREE => Owned,
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
                    return Owned;
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
    fn acquire_in_kernel(&mut self, worker: usize, lock: u32, words: &LockWords, timeout: Option<Ps>) -> Acquisition {
        let phase = self.workers[worker].phase;
        match phase {
            Phase::Handed => return Owned,
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
            return Owned;
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

    /// A reader-writer lock that prefers nobody. Who meets a writer says so, and sleeps unless that one has gone by then;
    /// a writer that meets readers sleeps until the last of them has gone.
    fn acquire_rwlock(
        &mut self,
        worker: usize,
        lock: u32,
        words: &LockWords,
        shared: bool,
        timeout: Option<Ps>,
    ) -> Acquisition {
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
            return Owned;
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

    fn sleep(&mut self, worker: usize, lock: u32) -> Acquisition {
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

    /// An `unlock` or `runlock`, or the rest of one.
    pub(super) fn release(&mut self, worker: usize, lock: u32, shared: bool) -> Acquisition {
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
                if came_to == Owned {
                    self.workers[worker].kept[lock as usize] = kept >> 32;
                }
                came_to
            }
            LockKind::PthreadRwlock => self.release_rwlock(worker, lock, words, shared),
            _ => self.release_futex(worker, lock, words),
        };
        if matches!(came_to, Owned | Jumps) {
            self.workers[worker].phase = Phase::Idle;
        }
        came_to
    }

    /// A plain store that others wait for.
    fn publish(&mut self, worker: usize, place: Place, value: u64) -> Acquisition {
        self.buffers(worker, |engine| engine.store(worker, place, Stored::Known(value)))
    }

    /// An access that ends in the store buffer, which may have to wait for room there.
    fn buffers(&mut self, worker: usize, access: impl FnOnce(&mut Self) -> Cost) -> Acquisition {
        if self.workers[worker].buffer.len() < self.prices.store_buffer {
            let cost = access(self);
            self.workers[worker].spend(cost.time, cost.instructions);
            return Owned;
        }
        self.wait_for_buffer(worker, self.prices.store_buffer - 1, Blocked::Room);
        self.short(worker)
    }

    /// A plain store, and the phase after it.
    fn writes(&mut self, worker: usize, place: Place, value: u64, then: Phase) -> Acquisition {
        match self.publish(worker, place, value) {
            Owned => self.goes_to(worker, then),
            short => short,
        }
    }

    fn release_reader(&mut self, worker: usize, lock: u32, words: &LockWords) -> Acquisition {
        let Some(value) = self.read(worker, words.state) else { return self.short(worker) };
        if value == self.workers[worker].kept[lock as usize] {
            return Owned;
        }
        self.workers[worker].reads_again = true;
        Jumps
    }

    fn release_mcs(&mut self, worker: usize, words: &LockWords) -> Acquisition {
        let me = worker as u64 + 1;
        let phase = self.workers[worker].phase;
        if phase == Phase::Leaving {
            let leave = |tail| if tail == me { 0 } else { tail };
            let Some(before) = self.modify(worker, words.state, leave) else { return self.short(worker) };
            return if before == me { Owned } else { self.goes_to(worker, Phase::Successor) };
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

    fn release_futex(&mut self, worker: usize, lock: u32, words: &LockWords) -> Acquisition {
        let hands_over = words.kind == LockKind::PthreadPi && !self.sleepers[lock as usize].is_empty();
        if hands_over {
            // The kernel gives it to the first of the sleepers; the word keeps saying that it is held. Its own atomics drain
            // the buffer.
            if !self.workers[worker].buffer.is_empty() {
                self.wait_for_buffer(worker, 0, Blocked::Drained);
                return self.short(worker);
            }
            self.calls_kernel(worker);
            self.wake(worker, lock);
            return Owned;
        }
        let Some(before) = self.modify(worker, words.state, |_| FREE) else { return self.short(worker) };
        if before == SLEPT_FOR {
            self.calls_kernel(worker);
            self.wake(worker, lock);
        }
        Owned
    }

    fn release_rwlock(&mut self, worker: usize, lock: u32, words: &LockWords, shared: bool) -> Acquisition {
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
        Owned
    }
}
