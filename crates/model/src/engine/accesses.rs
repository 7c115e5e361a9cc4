//! A worker's accesses to memory: loads that it does not wait for, stores, atomics, and reads that it spins on.

use super::Engine;
use super::buffer::Stored;
use super::progress::Blocked;
use crate::line::{Asked, Gone};
use crate::script::{Place, Target};
use crate::time::{NEVER, Ps};

/// A load whose line is on its way; several of one line are one.
#[derive(Copy, Clone, Debug)]
pub(super) struct Outstanding {
    pub(super) place: Place,
    /// Instructions begun before it.
    pub(super) at: u64,
    /// Whether the line was lost to another core: then the loads after it wait for it as well.
    pub(super) was_taken: bool,
}

/// An atomic that has begun.
#[derive(Copy, Clone, Debug)]
pub(super) struct Atomic {
    /// When it needs its line.
    pub(super) performs: Ps,
    /// When it is over, where it has that by then.
    pub(super) ends: Ps,
}

/// What an access takes.
#[derive(Copy, Clone, Debug)]
pub(super) struct Cost {
    pub(super) time: Ps,
    pub(super) instructions: u64,
}

impl Engine<'_> {
    /// A load whose value nobody waits for.
    #[inline(always)]
    pub(super) fn load(&mut self, worker: usize, place: Place) -> Cost {
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

    /// Whether a load has to wait for one before it, of a line that another core took away: what is read ahead of it
    /// would not count, since the line can be taken away again before it is read in order (Intel SDM vol. 3, "Memory
    /// Ordering"; cores that read ahead all the same begin again then).
    #[inline(always)]
    pub(super) fn waits_for_loads(&mut self, worker: usize, target: &Target) -> bool {
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

    /// What an access came to that could not be made: the worker waits, or goes on with it at once.
    pub(super) fn is_waiting(&self, worker: usize) -> bool {
        self.workers[worker].blocked != Blocked::No
    }

    /// An atomic read-modify-write: the buffer drained, the line owned. What was there; `None` where it cannot be made
    /// yet.
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

    /// Begins an atomic, once the buffer is drained: its line is asked for ahead. When in its time it needs that is
    /// drawn; waiting for the line is beside that time. `None` where it cannot be gone on with now.
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
}
