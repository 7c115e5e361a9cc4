//! One worker: its operations in order, a store buffer, and loads that it does not wait for.

use super::locks::{Acquisition, Phase};
use super::{Engine, Event};
use crate::line::Asked;
use crate::protocol::State;
use crate::script::{Do, Place, Script, Update, Where};
use crate::tally::{LockTally, Tally};
use crate::time::{NEVER, Ps};
use std::collections::VecDeque;

/// Workers start within so much of each other.
const START_WITHIN: Ps = 1_000_000;

/// Instructions a nanosecond of `work`: a multiplication and an addition a turn of about four cycles.
const WORK_INSTRUCTIONS_A_NS: u64 = 2;

/// What `sleep` takes beyond its time: the kernel's default timer slack (prctl(2), PR_SET_TIMERSLACK).
const TIMER_SLACK: Ps = 50_000_000;

/// A store that waits for its line.
#[derive(Copy, Clone, Debug)]
pub(super) struct Pending {
    place: Place,
    value: u64,
    since: Ps,
}

/// A load whose line is on its way.
#[derive(Copy, Clone, Debug)]
pub(super) struct Outstanding {
    pub(super) line: u32,
    /// Instructions begun before it.
    at: u64,
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
    pub(super) now: Ps,
    pub(super) generation: u32,
    pub(super) blocked: Blocked,
    pub(super) stores: VecDeque<Pending>,
    pub(super) loads: VecDeque<Outstanding>,
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
    random: u64,
    /// When the last store was committed.
    committed_at: Ps,
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
    opened: (u64, Tally, Vec<LockTally>),
}

impl Worker {
    pub(super) fn new(core: usize, script: &Script, seed: u64, locks: usize) -> Worker {
        let mut worker = Worker {
            core,
            now: 0,
            generation: 0,
            blocked: Blocked::No,
            stores: VecDeque::new(),
            loads: VecDeque::new(),
            tally: Tally::default(),
            locks: vec![LockTally::default(); locks],
            phase: Phase::Idle,
            kept: vec![0; locks],
            pc: 0,
            passes: 0,
            left: script.steps.iter().map(|step| step.every).collect(),
            seen: vec![0; script.steps.len()],
            // Any odd number's product with it is another one: no two workers draw alike, and none is 0.
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            committed_at: 0,
            instructions: 0,
            due: 0,
            begun: false,
            wait_since: None,
            deadline: NEVER,
            give_up_spinning: 0,
            opened: (0, Tally::default(), vec![LockTally::default(); locks]),
        };
        for _ in 0..8 {
            worker.draw(1);
        }
        worker
    }

    /// When it begins.
    pub(super) fn start(&mut self) -> Ps {
        self.now = self.draw(START_WITHIN);
        self.due = self.now;
        self.now
    }

    /// A number below `below`, by Marsaglia's xorshift64.
    fn draw(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below.max(1)
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

    pub(super) fn waits_for_line(&self, line: u32) -> bool {
        self.blocked == Blocked::Line(line)
    }
}

/// What came of an operation.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Done {
    /// It is made.
    Next,
    /// The worker goes on at another one.
    At(usize),
    /// To be gone on with at once.
    Again,
    /// The worker waits, and goes on with it when it is resumed.
    Waits,
}

/// Whether a worker goes on with its next step at once.
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
    /// A worker's time has come, unless it went on before.
    pub(super) fn resumed(&mut self, worker: usize, generation: u32) {
        let me = &mut self.workers[worker];
        if me.generation != generation {
            return;
        }
        me.generation = me.generation.wrapping_add(1);
        me.now = me.now.max(self.time);
        match std::mem::replace(&mut me.blocked, Blocked::No) {
            Blocked::Spinning(line, since) => {
                let turns = (me.now - since) / (self.prices.pause + self.prices.load);
                me.tally.l1d_loads += turns;
                self.lines[line as usize].spinners.retain(|&spinner| spinner as usize != worker);
            }
            Blocked::Asleep(lock) => self.sleepers[lock as usize].retain(|&sleeper| sleeper as usize != worker),
            _ => {}
        }
        while self.workers[worker].now <= self.horizon() {
            if self.step(worker) == Goes::NoFurther {
                return;
            }
        }
        let now = self.workers[worker].now;
        self.resume(worker, now);
    }

    pub(super) fn block(&mut self, worker: usize, on: Blocked) -> Goes {
        self.workers[worker].blocked = on;
        Goes::NoFurther
    }

    /// One operation, or as much of it as can be made now.
    fn step(&mut self, worker: usize) -> Goes {
        if !self.workers[worker].stores.is_empty() {
            let now = self.workers[worker].now;
            self.settle(worker, now);
        }
        let me = &mut self.workers[worker];
        if let Some(oldest) = me.loads.front()
            && me.instructions - oldest.at >= self.prices.window
        {
            let line = oldest.line;
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
            me.due += period;
            me.begun = true;
        }
        let step = &script.steps[me.pc];
        if me.left[me.pc] > 1 {
            me.left[me.pc] -= 1;
            me.pc += 1;
            return Goes::On;
        }
        let pc = me.pc;
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
        let goes = match what {
            Do::Load(at) => {
                let place = self.choose(worker, at);
                self.load(worker, place);
                Goes::On
            }
            Do::Store(at) => {
                let place = self.choose(worker, at);
                let value = self.workers[worker].passes;
                self.store(worker, place, value)
            }
            Do::Bump(at) => {
                let place = self.choose(worker, at);
                self.bump(worker, place)
            }
            Do::Atomic(at, update) => {
                let place = self.choose(worker, at);
                self.atomic(worker, place, *update)
            }
            Do::Post(place) => self.post(worker, *place),
            Do::Wait(place) => self.wait(worker, *place),
            Do::Flush(at) => {
                let place = self.choose(worker, at);
                self.made(worker);
                self.flush_line(worker, place.line);
                self.spend(worker, self.prices.flush, 1)
            }
            Do::Lock { lock, shared, timeout, behind } => {
                return done(self.acquire(worker, *lock, *shared, *timeout), *behind);
            }
            Do::Unlock { lock, shared, again } => return done(self.release(worker, *lock, *shared), *again),
            Do::Work(time) => self.spend(worker, *time, time / 1_000 * WORK_INSTRUCTIONS_A_NS),
            Do::Pause => self.spend(worker, self.prices.pause, 1),
            Do::Fence if self.workers[worker].stores.is_empty() => self.spend(worker, self.prices.fence, 1),
            Do::Fence => self.block(worker, Blocked::Drained),
            Do::Yield => self.spend(worker, self.prices.syscall, self.prices.window),
            Do::Sleep(time) => self.spend(worker, time + TIMER_SLACK, self.prices.window),
        };
        if goes == Goes::On { Done::Next } else { Done::Waits }
    }

    fn post(&mut self, worker: usize, place: Place) -> Goes {
        let Some(before) = self.modify(worker, place, |value| value.wrapping_add(1)) else { return Goes::NoFurther };
        self.remember(worker, place, before.wrapping_add(1));
        Goes::On
    }

    /// The place, drawn anew where it is one of many; an operation that has to be gone on with keeps what it drew.
    fn choose(&mut self, worker: usize, at: &Where) -> Place {
        match at {
            Where::Fixed(place) => *place,
            Where::Any(places) => {
                let me = &mut self.workers[worker];
                let nth = match me.phase {
                    Phase::Drawn(nth) => nth,
                    _ => me.draw(places.len() as u64) as u32,
                };
                me.phase = Phase::Drawn(nth);
                places[nth as usize]
            }
        }
    }

    /// An operation on memory is made: what it drew is forgotten.
    fn made(&mut self, worker: usize) {
        let me = &mut self.workers[worker];
        if matches!(me.phase, Phase::Drawn(_)) {
            me.phase = Phase::Idle;
        }
    }

    pub(super) fn spend(&mut self, worker: usize, time: Ps, instructions: u64) -> Goes {
        let me = &mut self.workers[worker];
        me.now += time;
        me.instructions += instructions;
        Goes::On
    }

    /// A load whose value nobody waits for.
    pub(super) fn load(&mut self, worker: usize, place: Place) {
        self.accesses += 1;
        let me = &mut self.workers[worker];
        me.tally.l1d_loads += 1;
        let (core, now) = (me.core, me.now);
        let is_forwarded = me.stores.iter().rev().any(|store| store.place.word == place.word);
        let mut cost = self.prices.load;
        if !is_forwarded {
            if self.lines[place.line as usize].held[core].is_readable(now) {
                cost += self.hit(worker, place.line, place.word);
            } else {
                self.miss_behind(worker, place, Asked::Copy);
            }
        }
        self.made(worker);
        self.spend(worker, cost, 1);
    }

    /// Asks for a line, and goes on.
    fn miss_behind(&mut self, worker: usize, place: Place, want: Asked) {
        let me = &mut self.workers[worker];
        let now = me.now;
        if !me.loads.iter().any(|load| load.line == place.line) {
            me.loads.push_back(Outstanding { line: place.line, at: me.instructions });
        }
        self.ask(worker, place.line, place.word, want, now);
    }

    /// A plain store: it waits in the buffer for its line, and the worker goes on.
    pub(super) fn store(&mut self, worker: usize, place: Place, value: u64) -> Goes {
        let me = &self.workers[worker];
        if me.stores.len() >= self.prices.store_buffer {
            return self.block(worker, Blocked::Room);
        }
        self.accesses += 1;
        self.workers[worker].tally.l1d_stores += 1;
        self.made(worker);
        self.put(worker, place, value);
        self.spend(worker, self.prices.store, 1)
    }

    /// Commits a store, or buffers it.
    pub(super) fn put(&mut self, worker: usize, place: Place, value: u64) {
        let me = &mut self.workers[worker];
        let now = me.now;
        if me.stores.is_empty() && self.lines[place.line as usize].held[me.core].is_writable(now) {
            me.committed_at = now;
            self.commit(worker, place, value);
        } else {
            me.stores.push_back(Pending { place, value, since: now });
            self.settle(worker, now);
        }
    }

    fn commit(&mut self, worker: usize, place: Place, value: u64) {
        let core = self.workers[worker].core;
        let held = &mut self.lines[place.line as usize].held[core];
        if held.state == State::Exclusive {
            held.state = State::Modified; // the write that a protocol makes without a word
        }
        let extra = self.hit(worker, place.line, place.word);
        self.workers[worker].committed_at += extra;
        self.values[place.word as usize] = value;
        if !self.lines[place.line as usize].spinners.is_empty() {
            let at = self.workers[worker].committed_at;
            self.wake_spinners(core, place.line as usize, at);
        }
    }

    fn bump(&mut self, worker: usize, place: Place) -> Goes {
        let me = &self.workers[worker];
        let (core, now) = (me.core, me.now);
        if me.stores.len() >= self.prices.store_buffer {
            return self.block(worker, Blocked::Room);
        }
        self.accesses += 2;
        let forwarded = me.stores.iter().rev().find(|store| store.place.word == place.word).map(|store| store.value);
        let seen = forwarded.unwrap_or(self.values[place.word as usize]);
        if forwarded.is_none() && !self.lines[place.line as usize].held[core].is_readable(now) {
            self.miss_behind(worker, place, Asked::Ownership);
        }
        let tally = &mut self.workers[worker].tally;
        tally.l1d_loads += 1;
        tally.l1d_stores += 1;
        self.made(worker);
        self.put(worker, place, seen.wrapping_add(1));
        self.spend(worker, self.prices.bump, 3)
    }

    fn atomic(&mut self, worker: usize, place: Place, update: Update) -> Goes {
        let (pc, passes) = (self.workers[worker].pc, self.workers[worker].passes);
        let expected = self.workers[worker].seen[pc];
        let before = self.modify(worker, place, |value| match update {
            Update::Add => value.wrapping_add(1),
            Update::Swap => passes,
            Update::Cas if value == expected => expected.wrapping_add(1),
            Update::Cas => value,
        });
        let Some(before) = before else { return Goes::NoFurther };
        if update == Update::Cas {
            self.workers[worker].seen[pc] = if before == expected { expected.wrapping_add(1) } else { before };
        }
        self.made(worker);
        Goes::On
    }

    /// An atomic read-modify-write: the buffer drained, the line owned. What was there; `None` where the worker waits.
    pub(super) fn modify(&mut self, worker: usize, place: Place, update: impl Fn(u64) -> u64) -> Option<u64> {
        let me = &self.workers[worker];
        let (core, now) = (me.core, me.now);
        if !me.stores.is_empty() {
            self.block(worker, Blocked::Drained);
            return None;
        }
        if !self.lines[place.line as usize].held[core].is_writable(now) {
            self.ask(worker, place.line, place.word, Asked::Ownership, now);
            self.block(worker, Blocked::Line(place.line));
            return None;
        }
        self.accesses += 1;
        let tally = &mut self.workers[worker].tally;
        tally.l1d_loads += 1;
        tally.l1d_stores += 1;
        let before = self.values[place.word as usize];
        self.workers[worker].committed_at = now;
        self.commit(worker, place, update(before));
        let extra = self.workers[worker].committed_at - now;
        self.spend(worker, self.prices.atomic + extra, 4);
        Some(before)
    }

    /// A load whose value decides what comes next; `None` where the worker waits.
    pub(super) fn read(&mut self, worker: usize, place: Place) -> Option<u64> {
        let me = &self.workers[worker];
        let (core, now) = (me.core, me.now);
        let mut cost = self.prices.load;
        let forwarded = me.stores.iter().rev().find(|store| store.place.word == place.word).map(|store| store.value);
        if forwarded.is_none() {
            if !self.lines[place.line as usize].held[core].is_readable(now) {
                self.ask(worker, place.line, place.word, Asked::Copy, now);
                self.block(worker, Blocked::Line(place.line));
                return None;
            }
            cost += self.hit(worker, place.line, place.word);
        }
        self.accesses += 1;
        self.workers[worker].tally.l1d_loads += 1;
        self.spend(worker, cost, 1);
        Some(forwarded.unwrap_or(self.values[place.word as usize]))
    }

    /// `wait`: reads until the word differs from what this worker last saw or posted.
    fn wait(&mut self, worker: usize, place: Place) -> Goes {
        let Some(value) = self.read(worker, place) else { return Goes::NoFurther };
        let pc = self.workers[worker].pc;
        if value == self.workers[worker].seen[pc] {
            return self.spin_on(worker, place.line, NEVER);
        }
        self.remember(worker, place, value);
        Goes::On
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
    pub(super) fn spin_on(&mut self, worker: usize, line: u32, deadline: Ps) -> Goes {
        let (core, now) = (self.workers[worker].core, self.workers[worker].now);
        match self.read_ends(core, line) {
            Some(end) => {
                let at = now.max(end) + self.prices.pause / 2;
                self.resume(worker, at.min(deadline.max(now + 1)));
            }
            None => {
                self.lines[line as usize].spinners.push(worker as u32);
                if deadline != NEVER {
                    self.resume(worker, deadline.max(now + 1));
                }
            }
        }
        self.block(worker, Blocked::Spinning(line, now))
    }

    /// The store buffers of a core look whether they can go on.
    pub(super) fn settle_core(&mut self, core: usize) {
        for i in 0..self.cores[core].workers.len() {
            let worker = self.cores[core].workers[i] as usize;
            if self.workers[worker].stores.is_empty() {
                continue;
            }
            // What waits for its buffer runs on as far as any worker may.
            let waits = matches!(self.workers[worker].blocked, Blocked::Room | Blocked::Drained);
            let until = if waits { self.horizon() } else { self.time };
            self.settle(worker, until);
        }
    }

    /// Commits stores up to `until`, in order, as far as their lines are owned; asks for the next one's line otherwise.
    fn settle(&mut self, worker: usize, until: Ps) {
        while let Some(&head) = self.workers[worker].stores.front() {
            let me = &self.workers[worker];
            let held = self.lines[head.place.line as usize].held[me.core];
            let at = (me.committed_at + self.prices.store).max(held.from).max(head.since);
            if at >= held.write_until {
                if held.asked == Asked::Nothing {
                    let lost = if held.write_until == 0 { 0 } else { held.write_until };
                    let at = self.time.max(head.since).max(lost.min(until));
                    self.ask(worker, head.place.line, head.place.word, Asked::Ownership, at);
                }
                break;
            }
            if at > until {
                if matches!(me.blocked, Blocked::Room | Blocked::Drained) {
                    let core = me.core as u32;
                    self.push(at, Event::Settle { core });
                }
                break;
            }
            self.workers[worker].stores.pop_front();
            self.workers[worker].committed_at = at;
            self.commit(worker, head.place, head.value);
        }
        let me = &self.workers[worker];
        let at = me.now.max(me.committed_at);
        match me.blocked {
            Blocked::Room if me.stores.len() < self.prices.store_buffer => self.resume(worker, at),
            Blocked::Drained if me.stores.is_empty() => self.resume(worker, at),
            _ => {}
        }
    }
}
