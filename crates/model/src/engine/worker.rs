//! One worker: where it stands, and how it goes through its script until it has to wait.

use super::Engine;
use super::accesses::{Atomic, Outstanding};
use super::buffer::Buffer;
use super::progress::{Blocked, Goes, Phase};
use super::steps::Outcome;
use crate::chance::Chance;
use crate::line::Asked;
use crate::script::Script;
use crate::tally::{LockTally, Tally};
use crate::time::{NEVER, Ps};
use std::collections::VecDeque;

/// Workers start within so much of each other.
const START_WITHIN: Ps = 1_000_000;

/// One worker of the Program: where in its script it stands, and what it has under way.
pub(super) struct Worker {
    pub(super) core: usize,
    /// Its own time: when its next step begins.
    pub(super) now: Ps,
    /// When it last touched memory.
    pub(super) acted_at: Ps,
    /// When the calendar lets it go on; [`NEVER`] where it does not.
    pub(super) resumes_at: Ps,
    pub(super) blocked: Blocked,
    pub(super) buffer: Buffer,
    pub(super) loads: VecDeque<Outstanding>,
    pub(super) atomic: Option<Atomic>,
    /// What the instructions that come next may take without the worker's time going on: they were begun beside an
    /// atomic.
    pub(super) beside: Ps,
    pub(super) tally: Tally,
    pub(super) locks: Vec<LockTally>,
    pub(super) phase: Phase,
    /// What a sequence lock's reader saw, or which node of CLH is this worker's, by lock.
    pub(super) kept: Vec<u64>,
    pub(super) pc: usize,
    pub(super) passes: u64,
    /// Passes until an operation's turn, by operation.
    left: Vec<u32>,
    /// What the operation last saw, by operation.
    pub(super) seen: Vec<u64>,
    pub(super) chance: Chance,
    /// Instructions begun.
    pub(super) instructions: u64,
    /// When the next pass of an open loop is due.
    due: Ps,
    /// Whether an open loop's present pass has begun.
    begun: bool,
    /// Since when it waits for a lock.
    pub(super) wait_since: Option<Ps>,
    /// When it gives that up.
    pub(super) deadline: Ps,
    /// When it sleeps rather than spin on.
    pub(super) give_up_spinning: Ps,
    /// Whether its next acquisition is the last one over again, by a reader that a writer has overtaken.
    pub(super) reads_again: bool,
    opened: (u64, Tally, Vec<LockTally>),
}

impl Worker {
    pub(super) fn new(core: usize, script: &Script, chance: Chance, locks: usize) -> Worker {
        Worker {
            core,
            now: 0,
            acted_at: 0,
            resumes_at: NEVER,
            blocked: Blocked::No,
            buffer: Buffer::default(),
            loads: VecDeque::new(),
            atomic: None,
            beside: 0,
            tally: Tally::default(),
            locks: vec![LockTally::default(); locks],
            phase: Phase::Idle,
            kept: vec![0; locks],
            pc: 0,
            passes: 0,
            left: script.steps.iter().map(|step| step.every).collect(),
            seen: vec![0; script.steps.len()],
            chance,
            instructions: 0,
            due: 0,
            begun: false,
            wait_since: None,
            deadline: NEVER,
            give_up_spinning: 0,
            reads_again: false,
            opened: (0, Tally::default(), vec![LockTally::default(); locks]),
        }
    }

    /// When it begins.
    pub(super) fn start(&mut self) -> Ps {
        let start = self.chance.below(START_WITHIN);
        self.start_at(start);
        start
    }

    pub(super) fn start_at(&mut self, start: Ps) {
        (self.now, self.due) = (start, start);
    }

    /// The window begins.
    pub(super) fn open(&mut self) {
        self.opened = (self.passes, self.tally, self.locks.clone());
    }

    /// Passes and counts since then.
    pub(super) fn since_opened(&self) -> (u64, Tally, Vec<LockTally>) {
        let (passes, tally, locks) = &self.opened;
        let locks = self.locks.iter().zip(locks).map(|(now, before)| *now - *before).collect();
        (self.passes - passes, self.tally - *tally, locks)
    }

    #[inline(always)]
    pub(super) fn spins_on(&self, line: u32) -> bool {
        matches!(self.blocked, Blocked::Spinning(spun, _) if spun == line)
    }

    #[inline(always)]
    pub(super) fn spend(&mut self, time: Ps, instructions: u64) {
        self.now = self.now.saturating_add(time);
        self.instructions = self.instructions.wrapping_add(instructions);
    }

    /// Straight code, which a core goes through beside an atomic that came just before.
    pub(super) fn spend_instructions(&mut self, time: Ps, instructions: u64) {
        let beside = time.min(self.beside);
        self.beside -= beside;
        self.spend(time - beside, instructions);
    }

    /// Bytes that it has reserved, beyond what its script takes.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.loads.capacity() + self.buffer.capacity()
    }
}

impl Engine<'_> {
    /// A worker's time has come.
    pub(super) fn resumed(&mut self, worker: usize) {
        let me = &mut self.workers[worker];
        me.resumes_at = NEVER;
        me.now = me.now.max(self.time);
        match std::mem::replace(&mut me.blocked, Blocked::No) {
            Blocked::Spinning(_, since) => {
                let turns = (me.now - since) / (self.prices.pause + self.prices.load);
                me.tally.l1d_loads += turns;
            }
            Blocked::Asleep(lock) => self.sleepers[lock as usize].retain(|&sleeper| sleeper as usize != worker),
            _ => {}
        }
        self.stop_draining(worker);
        // The first step is made whatever else happens now: two threads of a core would wait for each other for ever.
        match self.step(worker) {
            Goes::On => self.run(worker),
            Goes::NoFurther => self.rest(worker),
        }
    }

    /// Lets a worker run as far as any may.
    pub(super) fn run(&mut self, worker: usize) {
        self.workers[worker].blocked = Blocked::No;
        self.stop_draining(worker);
        let core = self.workers[worker].core;
        loop {
            let now = self.workers[worker].now;
            if now >= self.horizon(core) || self.accesses >= self.budget {
                self.resume(worker, now);
                break;
            }
            if self.step(worker) == Goes::NoFurther {
                break;
            }
        }
        self.rest(worker);
    }

    /// A worker that goes no further for now leaves its store buffer to the calendar.
    fn rest(&mut self, worker: usize) {
        if self.workers[worker].buffer.may_act(NEVER) {
            self.drain(worker);
        }
    }

    pub(super) fn block(&mut self, worker: usize, on: Blocked) -> Goes {
        self.workers[worker].beside = 0;
        self.workers[worker].blocked = on;
        Goes::NoFurther
    }

    /// A line that its core asked for is there, or was flushed: the loads that wait for it read it, or ask again.
    pub(super) fn line_came(&mut self, worker: usize, line: u32, is_here: bool) {
        let me = &mut self.workers[worker];
        if is_here {
            me.buffer.read(line, &self.values);
        }
        if me.loads.is_empty() {
            return;
        }
        if is_here {
            me.loads.retain(|load| load.place.line != line);
        } else if let Some(&Outstanding { place, .. }) = me.loads.iter().find(|load| load.place.line == line) {
            let now = self.time;
            self.ask(worker, place, Asked::Copy, now);
        }
    }

    /// What waits for a line that came goes on. Threads of one core do it one after the other, in the calendar's order.
    pub(super) fn goes_on_with(&mut self, worker: usize, line: u32) {
        let (core, now) = (self.workers[worker].core, self.time);
        let me = &mut self.workers[worker];
        me.buffer.look_again();
        let (waits, has_stores) = match me.blocked {
            Blocked::Line(awaited) => (awaited == line, !me.buffer.is_empty()),
            Blocked::Room | Blocked::Drained => (true, true),
            _ => (false, !me.buffer.is_empty()),
        };
        match (waits, self.cores[core].has_siblings()) {
            (true, false) => {
                me.now = me.now.max(now);
                self.run(worker);
            }
            (true, true) => {
                let at = me.now.max(now);
                self.resume(worker, at);
                self.rest(worker);
            }
            (false, _) if has_stores => self.rest(worker),
            (false, _) => {}
        }
    }

    /// One operation, or as much of it as can be made now.
    fn step(&mut self, worker: usize) -> Goes {
        #[cfg(test)]
        self.witness_step(worker);
        let me = &self.workers[worker];
        let (core, now) = (me.core, me.now);
        if me.buffer.may_act(now + 1) {
            self.drain_to(worker, now + 1);
            // What the stores have asked for may make others act sooner than this.
            if now > self.time && now >= self.horizon(core) {
                self.resume(worker, now);
                return Goes::NoFurther;
            }
        }
        let me = &mut self.workers[worker];
        if let Some(oldest) = me.loads.front()
            && me.instructions - oldest.at >= self.prices.window
        {
            let line = oldest.place.line;
            return self.block(worker, Blocked::Line(line));
        }
        let script = &self.scripts.workers[worker];
        if me.pc == script.steps.len() {
            me.pc = 0;
            me.passes += 1;
            me.begun = false;
        }
        if let Some(period) = script.period.filter(|_| !me.begun) {
            if me.now < me.due {
                let due = me.due;
                self.resume(worker, due);
                return Goes::NoFurther;
            }
            me.due = me.due.saturating_add(period);
            me.begun = true;
        }
        let pc = me.pc;
        let step = &script.steps[pc];
        if step.every > 1 && me.left[pc] > 1 {
            me.left[pc] -= 1;
            me.pc += 1;
            me.spend(self.prices.instruction, 1);
            return Goes::On;
        }
        let next = match self.act(worker, &step.what) {
            Outcome::Next => pc + 1,
            Outcome::At(next) => next,
            Outcome::Again => return Goes::On,
            Outcome::Waits => return Goes::NoFurther,
        };
        let me = &mut self.workers[worker];
        me.left[pc] = step.every;
        me.pc = next;
        Goes::On
    }
}
