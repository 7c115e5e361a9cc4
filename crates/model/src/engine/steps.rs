//! The operations of a script, each by the accesses, locks and time that it takes.

use super::Engine;
use super::accesses::Cost;
use super::buffer::Stored;
use super::progress::{Blocked, Goes, LockOutcome, Phase};
use crate::line::Asked;
use crate::script::{Do, Place, Target, Update, Where};
use crate::time::{NEVER, Ps, ps};

/// Instructions a nanosecond of `work`: a multiplication and an addition a turn of about four cycles.
const WORK_INSTRUCTIONS_A_NS: u64 = 2;

/// What came of an operation.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is made.
    Next,
    /// The worker goes on at another one.
    At(usize),
    /// To be gone on with, in the phase that it has come to.
    Again,
    /// The worker waits, and goes on with it when it is resumed.
    Waits,
}

/// What an acquisition or release came to, as an operation; one that jumps goes on `elsewhere`.
fn of_lock(came_to: LockOutcome, elsewhere: usize) -> Outcome {
    match came_to {
        LockOutcome::Done => Outcome::Next,
        LockOutcome::Waits => Outcome::Waits,
        LockOutcome::GoesOn => Outcome::Again,
        LockOutcome::Jumps => Outcome::At(elsewhere),
    }
}

impl Engine<'_> {
    /// Makes an operation, or as much of it as can be made.
    pub(super) fn act(&mut self, worker: usize, what: &Do) -> Outcome {
        match what {
            Do::Load(at) => {
                let target = self.choose(worker, at);
                if self.waits_for_loads(worker, &target) {
                    return Outcome::Waits;
                }
                self.access(worker, target, Engine::load)
            }
            Do::Store(at) => self.buffered(worker, at, Engine::store_pass),
            Do::Bump(at) => self.buffered(worker, at, Engine::bump),
            Do::Atomic(at, update) => {
                let place = self.choose(worker, at).place;
                self.atomic(worker, place, *update)
            }
            Do::Post(place) => self.post(worker, *place),
            Do::Wait(place) => self.wait(worker, *place),
            Do::Flush(at) => self.flush_step(worker, at),
            Do::Lock { lock, shared, timeout, behind } => {
                of_lock(self.acquire(worker, *lock, *shared, *timeout), *behind)
            }
            Do::Unlock { lock, shared, again } => of_lock(self.release(worker, *lock, *shared), *again),
            Do::Work(time) => self.pass_time(worker, *time, time / 1_000 * WORK_INSTRUCTIONS_A_NS),
            Do::Pause => self.pass_time(worker, self.prices.pause, 1),
            Do::Fence if self.workers[worker].buffer.is_empty() => self.pass_time(worker, self.prices.fence, 1),
            Do::Fence => self.wait_drained(worker),
            Do::Yield => self.pass_time(worker, self.prices.syscall, self.prices.window),
            Do::Sleep(time) => {
                self.pass_time(worker, time.saturating_add(ps(plan::TIMER_SLACK.0 as f64)), self.prices.window)
            }
        }
    }

    fn pass_time(&mut self, worker: usize, time: Ps, instructions: u64) -> Outcome {
        let me = &mut self.workers[worker];
        me.beside = me.beside.saturating_sub(time);
        me.spend(time, instructions);
        Outcome::Next
    }

    fn wait_drained(&mut self, worker: usize) -> Outcome {
        match self.wait_for_buffer(worker, 0, Blocked::Drained) {
            Goes::On => Outcome::Again,
            Goes::NoFurther => Outcome::Waits,
        }
    }

    /// Where the operation touches memory, drawn anew where that is one of many; one that has to be gone on with keeps
    /// what it drew.
    #[inline(always)]
    fn choose(&mut self, worker: usize, at: &Where) -> Target {
        match at {
            Where::Fixed(place) => Target { place: *place, rest: None },
            Where::Split(target) => *target,
            Where::Any(targets) => {
                let me = &mut self.workers[worker];
                let nth = match me.phase {
                    Phase::Drawn(nth) => nth,
                    _ => me.chance.below(targets.len() as u64) as u32,
                };
                me.phase = Phase::Drawn(nth);
                targets[nth as usize]
            }
        }
    }

    /// An operation on memory is made: what it drew is forgotten.
    #[inline(always)]
    fn made(&mut self, worker: usize) -> Outcome {
        self.workers[worker].phase = Phase::Idle;
        Outcome::Next
    }

    /// Makes an access at the worker's time, and with it the one of a rest in the next line; then the worker's time
    /// goes on.
    #[inline(always)]
    fn access(&mut self, worker: usize, target: Target, access: impl Fn(&mut Self, usize, Place) -> Cost) -> Outcome {
        let mut cost = access(self, worker, target.place);
        if let Some(rest) = target.rest {
            let of_rest = access(self, worker, rest);
            cost = Cost { time: cost.time + of_rest.time, instructions: cost.instructions + of_rest.instructions };
        }
        self.workers[worker].spend(cost.time, cost.instructions);
        self.made(worker)
    }

    /// An access that ends in the store buffer, which has to have room.
    #[inline(always)]
    fn buffered(&mut self, worker: usize, at: &Where, access: impl Fn(&mut Self, usize, Place) -> Cost) -> Outcome {
        let target = self.choose(worker, at);
        let needs = 1 + usize::from(target.rest.is_some());
        // A buffer for one holds two halves.
        let most = self.prices.store_buffer.saturating_sub(needs);
        if self.workers[worker].buffer.len() > most {
            return match self.wait_for_buffer(worker, most, Blocked::Room) {
                Goes::On => Outcome::Again,
                Goes::NoFurther => Outcome::Waits,
            };
        }
        self.access(worker, target, access)
    }

    #[inline(always)]
    fn store_pass(&mut self, worker: usize, place: Place) -> Cost {
        let value = self.workers[worker].passes;
        self.store(worker, place, Stored::Merging(value))
    }

    fn atomic(&mut self, worker: usize, place: Place, update: Update) -> Outcome {
        let (pc, passes) = (self.workers[worker].pc, self.workers[worker].passes);
        let expected = self.workers[worker].seen[pc];
        let before = self.modify(worker, place, |value| match update {
            Update::Add => value.wrapping_add(1),
            Update::Swap => passes,
            Update::Cas if value == expected => expected.wrapping_add(1),
            Update::Cas => value,
        });
        let Some(before) = before else { return self.came_short(worker) };
        if update == Update::Cas {
            self.workers[worker].seen[pc] = if before == expected { expected.wrapping_add(1) } else { before };
        }
        self.made(worker)
    }

    fn came_short(&self, worker: usize) -> Outcome {
        if self.is_waiting(worker) { Outcome::Waits } else { Outcome::Again }
    }

    fn post(&mut self, worker: usize, place: Place) -> Outcome {
        let Some(before) = self.modify(worker, place, |value| value.wrapping_add(1)) else {
            return self.came_short(worker);
        };
        self.remember(worker, place, before.wrapping_add(1));
        Outcome::Next
    }

    /// `wait`: reads until the word differs from what this worker last saw or posted.
    fn wait(&mut self, worker: usize, place: Place) -> Outcome {
        let Some(value) = self.read(worker, place) else { return Outcome::Waits };
        let pc = self.workers[worker].pc;
        if value == self.workers[worker].seen[pc] {
            self.spin_on(worker, place.line, NEVER);
            return Outcome::Waits;
        }
        self.remember(worker, place, value);
        Outcome::Next
    }

    /// Every `wait` of this worker for the word has seen this value.
    fn remember(&mut self, worker: usize, place: Place, value: u64) {
        let steps = &self.scripts.workers[worker].steps;
        for (seen, step) in self.workers[worker].seen.iter_mut().zip(steps) {
            if matches!(step.what, Do::Wait(waited) if waited == place) {
                *seen = value;
            }
        }
    }

    /// `flush`, which comes after the stores before it and is waited for.
    fn flush_step(&mut self, worker: usize, at: &Where) -> Outcome {
        if self.workers[worker].phase == Phase::Flushed {
            self.workers[worker].spend(0, 1);
            #[cfg(test)]
            self.witness_use(worker);
            return self.made(worker);
        }
        let place = self.choose(worker, at).place;
        if !self.workers[worker].buffer.is_empty() {
            return self.wait_drained(worker);
        }
        let now = self.workers[worker].now;
        if self.ask(worker, place, Asked::Flush, now) {
            self.workers[worker].phase = Phase::Flushed;
        }
        self.block(worker, Blocked::Line(place.line));
        Outcome::Waits
    }
}
