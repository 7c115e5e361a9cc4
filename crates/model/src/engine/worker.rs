//! One worker: its operations in order, and loads that it does not wait for.

use super::Engine;
use super::buffer::{Buffer, Stored};
use super::locks::{Acquisition, Phase};
use crate::chance::Chance;
use crate::line::{Asked, Gone};
use crate::script::{Do, Place, Script, Target, Update, Where};
use crate::tally::{LockTally, Tally};
use crate::time::{NEVER, Ps};
use std::collections::VecDeque;

/// Workers start within so much of each other.
const START_WITHIN: Ps = 1_000_000;

/// Instructions a nanosecond of `work`: a multiplication and an addition a turn of about four cycles.
const WORK_INSTRUCTIONS_A_NS: u64 = 2;

/// What `sleep` takes beyond its time: the kernel's default timer slack (prctl(2), PR_SET_TIMERSLACK).
const TIMER_SLACK: Ps = 50_000_000;

/// A load whose line is on its way; several of one line are one.
#[derive(Copy, Clone, Debug)]
struct Outstanding {
    place: Place,
    /// Instructions begun before it.
    at: u64,
    /// Whether the line was lost to another core: then the loads after it wait for it as well.
    was_taken: bool,
}

/// An atomic that has begun.
#[derive(Copy, Clone, Debug)]
struct Atomic {
    /// When it needs its line.
    performs: Ps,
    /// When it is over, where it has that by then.
    ends: Ps,
}

/// What a worker waits for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Blocked {
    /// Nothing: it runs, or is told when to go on.
    No,
    /// A line that was asked for.
    Line(u32),
    /// Room in the store buffer.
    Room,
    /// An empty store buffer.
    Drained,
    /// A change of a line on which it spins, since then.
    Spinning(u32, Ps),
    /// A wake-up call, for a lock.
    Asleep(u32),
}

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
    loads: VecDeque<Outstanding>,
    atomic: Option<Atomic>,
    /// What the instructions that come next may take without the worker's time going on: they were begun beside an atomic.
    pub(super) beside: Ps,
    pub(super) tally: Tally,
    pub(super) locks: Vec<LockTally>,
    pub(super) phase: Phase,
    /// What a sequence lock's reader saw, or which node of CLH is this worker's, by lock.
    pub(super) kept: Vec<u64>,
    pc: usize,
    passes: u64,
    /// Passes until an operation's turn, by operation.
    left: Vec<u32>,
    /// What the operation last saw, by operation.
    seen: Vec<u64>,
    chance: Chance,
    /// Instructions begun.
    instructions: u64,
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

/// What an access takes.
#[derive(Copy, Clone, Debug)]
pub(super) struct Cost {
    pub(super) time: Ps,
    pub(super) instructions: u64,
}

/// What came of an operation.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Done {
    /// It is made.
    Next,
    /// The worker goes on at another one.
    At(usize),
    /// To be gone on with, in the phase that it has come to.
    Again,
    /// The worker waits, and goes on with it when it is resumed.
    Waits,
}

/// Whether a worker goes on.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Goes {
    On,
    /// It waits, and is resumed.
    NoFurther,
}

fn done(came_to: Acquisition, elsewhere: usize) -> Done {
    match came_to {
        Acquisition::Owned => Done::Next,
        Acquisition::Waits => Done::Waits,
        Acquisition::Goes => Done::Again,
        Acquisition::Jumps => Done::At(elsewhere),
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
            Done::Next => pc + 1,
            Done::At(next) => next,
            Done::Again => return Goes::On,
            Done::Waits => return Goes::NoFurther,
        };
        let me = &mut self.workers[worker];
        me.left[pc] = step.every;
        me.pc = next;
        Goes::On
    }

    /// Makes an operation, or as much of it as can be made.
    fn act(&mut self, worker: usize, what: &Do) -> Done {
        match what {
            Do::Load(at) => {
                let target = self.choose(worker, at);
                if self.waits_for_loads(worker, &target) {
                    return Done::Waits;
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
            Do::Lock { lock, shared, timeout, behind } => done(self.acquire(worker, *lock, *shared, *timeout), *behind),
            Do::Unlock { lock, shared, again } => done(self.release(worker, *lock, *shared), *again),
            Do::Work(time) => self.pass_time(worker, *time, time / 1_000 * WORK_INSTRUCTIONS_A_NS),
            Do::Pause => self.pass_time(worker, self.prices.pause, 1),
            Do::Fence if self.workers[worker].buffer.is_empty() => self.pass_time(worker, self.prices.fence, 1),
            Do::Fence => self.wait_drained(worker),
            Do::Yield => self.pass_time(worker, self.prices.syscall, self.prices.window),
            Do::Sleep(time) => self.pass_time(worker, time.saturating_add(TIMER_SLACK), self.prices.window),
        }
    }

    fn pass_time(&mut self, worker: usize, time: Ps, instructions: u64) -> Done {
        let me = &mut self.workers[worker];
        me.beside = me.beside.saturating_sub(time);
        me.spend(time, instructions);
        Done::Next
    }

    fn wait_drained(&mut self, worker: usize) -> Done {
        match self.wait_for_buffer(worker, 0, Blocked::Drained) {
            Goes::On => Done::Again,
            Goes::NoFurther => Done::Waits,
        }
    }

    /// Where the operation touches memory, drawn anew where that is one of many; one that has to be gone on with keeps what
    /// it drew.
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
    fn made(&mut self, worker: usize) -> Done {
        self.workers[worker].phase = Phase::Idle;
        Done::Next
    }

    /// Makes an access at the worker's time, and with it the one of a rest in the next line; then the worker's time goes on.
    #[inline(always)]
    fn access(&mut self, worker: usize, target: Target, access: impl Fn(&mut Self, usize, Place) -> Cost) -> Done {
        let mut cost = access(self, worker, target.place);
        if let Some(rest) = target.rest {
            let of_rest = access(self, worker, rest);
            cost = Cost { time: cost.time + of_rest.time, instructions: cost.instructions + of_rest.instructions };
        }
        self.workers[worker].spend(cost.time, cost.instructions);
        self.made(worker)
    }

    /// A load whose value nobody waits for.
    #[inline(always)]
    fn load(&mut self, worker: usize, place: Place) -> Cost {
        self.accesses += 1;
        let me = &mut self.workers[worker];
        me.tally.l1d_loads += 1;
        let mut cost = self.prices.load;
        if me.buffer.is_empty() || me.buffer.forwards(place.word).is_none() {
            match self.read_here(worker, place) {
                Some(extra) => cost += extra,
                None => self.miss_behind(worker, place, Asked::Copy),
            }
        }
        Cost { time: cost, instructions: 1 }
    }

    /// Reads a word from the caches: what that costs beyond the first level's time; `None` where its line is not here.
    #[inline(always)]
    fn read_here(&mut self, worker: usize, place: Place) -> Option<Ps> {
        let (core, now) = (self.workers[worker].core, self.workers[worker].now);
        if !self.is_readable(core, place, now) {
            return None;
        }
        self.workers[worker].acted_at = now;
        #[cfg(test)]
        self.witness_read(worker, place, now);
        Some(self.hit(worker, place, false, now))
    }

    /// Whether a load has to wait for one before it, of a line that another core took away: what is read ahead of it would
    /// not count, since the line can be taken away again before it is read in order (Intel SDM vol. 3, "Memory Ordering";
    /// cores that read ahead all the same begin again then).
    #[inline(always)]
    fn waits_for_loads(&mut self, worker: usize, target: &Target) -> bool {
        let me = &self.workers[worker];
        if me.loads.is_empty() {
            return false;
        }
        let line = target.place.line;
        let waits = me.loads.iter().any(|load| load.was_taken && load.place.line == line)
            && me.buffer.forwards(target.place.word).is_none()
            && !self.is_readable(me.core, target.place, me.now);
        if waits {
            self.block(worker, Blocked::Line(line));
        }
        waits
    }

    /// Asks for a line, and goes on.
    fn miss_behind(&mut self, worker: usize, place: Place, want: Asked) {
        let me = &mut self.workers[worker];
        let now = me.now;
        if !me.loads.iter().any(|load| load.place.line == place.line) {
            let held = self.lines[place.line as usize].held.get(me.core);
            let was_taken = want == Asked::Copy && held.is_some_and(|held| held.gone == Gone::Taken);
            me.loads.push_back(Outstanding { place, at: me.instructions, was_taken });
        }
        self.ask(worker, place, want, now);
    }

    /// An access that ends in the store buffer, which has to have room.
    #[inline(always)]
    fn buffered(&mut self, worker: usize, at: &Where, access: impl Fn(&mut Self, usize, Place) -> Cost) -> Done {
        let target = self.choose(worker, at);
        let needs = 1 + usize::from(target.rest.is_some());
        // A buffer for one holds two halves.
        let most = self.prices.store_buffer.saturating_sub(needs);
        if self.workers[worker].buffer.len() > most {
            return match self.wait_for_buffer(worker, most, Blocked::Room) {
                Goes::On => Done::Again,
                Goes::NoFurther => Done::Waits,
            };
        }
        self.access(worker, target, access)
    }

    #[inline(always)]
    fn store_pass(&mut self, worker: usize, place: Place) -> Cost {
        let value = self.workers[worker].passes;
        self.store(worker, place, Stored::Merging(value))
    }

    /// A plain store: it waits in the buffer for its line, and the worker goes on.
    #[inline(always)]
    pub(super) fn store(&mut self, worker: usize, place: Place, what: Stored) -> Cost {
        self.accesses += 1;
        self.workers[worker].tally.l1d_stores += 1;
        self.put(worker, place, what, self.prices.store);
        Cost { time: self.prices.store, instructions: 1 }
    }

    /// A plain load, and a plain store of one more.
    #[inline(always)]
    pub(super) fn bump(&mut self, worker: usize, place: Place) -> Cost {
        self.accesses += 2;
        #[cfg(test)]
        self.witness_bump(place);
        let me = &mut self.workers[worker];
        me.tally.l1d_loads += 1;
        me.tally.l1d_stores += 1;
        let forwarded = if me.buffer.is_empty() { None } else { me.buffer.forwards(place.word) };
        let bumped = |value: u64| Stored::Known(value.wrapping_add(1));
        let (what, extra) = match forwarded {
            Some((value, false)) => (bumped(value), 0),
            Some((value, true)) => (Stored::Unread(value.wrapping_add(1)), 0),
            None => match self.read_here(worker, place) {
                Some(extra) => (bumped(self.values[place.word as usize]), extra),
                None => {
                    self.miss_behind(worker, place, Asked::Ownership);
                    (Stored::Unread(1), 0)
                }
            },
        };
        self.put(worker, place, what, self.prices.bump);
        Cost { time: self.prices.bump + extra, instructions: 3 }
    }

    fn atomic(&mut self, worker: usize, place: Place, update: Update) -> Done {
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

    /// What an access came to that could not be made: the worker waits, or goes on with it at once.
    pub(super) fn is_waiting(&self, worker: usize) -> bool {
        self.workers[worker].blocked != Blocked::No
    }

    fn came_short(&self, worker: usize) -> Done {
        if self.is_waiting(worker) { Done::Waits } else { Done::Again }
    }

    /// An atomic read-modify-write: the buffer drained, the line owned. What was there; `None` where it cannot be made yet.
    #[inline(always)]
    pub(super) fn modify(&mut self, worker: usize, place: Place, update: impl Fn(u64) -> u64) -> Option<u64> {
        let atomic = match self.workers[worker].atomic {
            Some(begun) => begun,
            None => self.begin_atomic(worker, place)?,
        };
        let me = &self.workers[worker];
        let (core, now) = (me.core, me.now);
        if !self.is_writable(core, place, now) {
            self.ask(worker, place, Asked::Ownership, now);
            self.block(worker, Blocked::Line(place.line));
            return None;
        }
        self.accesses += 1;
        let tally = &mut self.workers[worker].tally;
        tally.l1d_loads += 1;
        tally.l1d_stores += 1;
        #[cfg(test)]
        self.witness_read(worker, place, now);
        let before = self.values[place.word as usize];
        self.commit(worker, place, update(before), now);
        let me = &mut self.workers[worker];
        let extra = me.buffer.committed_at - now;
        me.atomic = None;
        me.beside = self.prices.atomic;
        me.spend(atomic.ends.saturating_sub(now).max(extra), 4);
        Some(before)
    }

    /// Begins an atomic, once the buffer is drained: its line is asked for ahead. When in its time it needs that is drawn;
    /// waiting for the line is beside that time. `None` where it cannot be gone on with now.
    fn begin_atomic(&mut self, worker: usize, place: Place) -> Option<Atomic> {
        let price = self.prices.atomic;
        let me = &mut self.workers[worker];
        if !me.buffer.is_empty() {
            self.wait_for_buffer(worker, 0, Blocked::Drained);
            return None;
        }
        let (core, now) = (me.core, me.now);
        let atomic = Atomic { performs: now + me.chance.below(price), ends: now + price };
        (me.atomic, me.now) = (Some(atomic), atomic.performs);
        if !self.is_writable(core, place, now) {
            self.ask(worker, place, Asked::Ownership, now);
        }
        (atomic.performs < self.horizon(core)).then_some(atomic)
    }

    /// A load whose value decides what comes next; `None` where the worker waits.
    pub(super) fn read(&mut self, worker: usize, place: Place) -> Option<u64> {
        let me = &self.workers[worker];
        let now = me.now;
        let (value, extra) = match me.buffer.forwards(place.word) {
            Some((_, true)) => {
                self.block(worker, Blocked::Line(place.line));
                return None;
            }
            Some((value, false)) => (value, 0),
            None => {
                let Some(extra) = self.read_here(worker, place) else {
                    self.ask(worker, place, Asked::Copy, now);
                    self.block(worker, Blocked::Line(place.line));
                    return None;
                };
                (self.values[place.word as usize], extra)
            }
        };
        self.accesses += 1;
        let me = &mut self.workers[worker];
        me.tally.l1d_loads += 1;
        me.spend(self.prices.load + extra, 1);
        Some(value)
    }

    fn post(&mut self, worker: usize, place: Place) -> Done {
        let Some(before) = self.modify(worker, place, |value| value.wrapping_add(1)) else {
            return self.came_short(worker);
        };
        self.remember(worker, place, before.wrapping_add(1));
        Done::Next
    }

    /// `wait`: reads until the word differs from what this worker last saw or posted.
    fn wait(&mut self, worker: usize, place: Place) -> Done {
        let Some(value) = self.read(worker, place) else { return Done::Waits };
        let pc = self.workers[worker].pc;
        if value == self.workers[worker].seen[pc] {
            self.spin_on(worker, place.line, NEVER);
            return Done::Waits;
        }
        self.remember(worker, place, value);
        Done::Next
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

    /// Spins until the line changes hands, or until `deadline`.
    pub(super) fn spin_on(&mut self, worker: usize, line: u32, deadline: Ps) {
        let (core, now) = (self.workers[worker].core, self.workers[worker].now);
        self.block(worker, Blocked::Spinning(line, now));
        let gives_up = if deadline == NEVER { NEVER } else { deadline.max(now + 1) };
        let changes = self.read_ends(core, line).map(|end| now.max(end).saturating_add(self.draw_look()));
        let looks = gives_up.min(changes.unwrap_or(NEVER));
        if looks != NEVER {
            self.resume(worker, looks);
        }
    }

    /// From a change of a line until who spins on it looks again: up to a turn of the loop, which stood anywhere.
    pub(super) fn draw_look(&mut self) -> Ps {
        self.chance.below(self.prices.pause)
    }

    /// `flush`, which comes after the stores before it and is waited for.
    fn flush_step(&mut self, worker: usize, at: &Where) -> Done {
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
        Done::Waits
    }
}
