//! A worker's store buffer: stores in order, each of which waits for its line while the worker goes on (P. Sewell et
//! al., "x86-TSO: a rigorous and usable programmer's model for x86 multiprocessors", CACM 53 (7), 2010). The oldest
//! alone asks for its line; the loads of bumps have asked before.

use super::progress::{Blocked, Goes};
use super::{Engine, Event};
use crate::line::{Asked, Held};
use crate::protocol::State;
use crate::script::Place;
use crate::time::{NEVER, Ps};
use std::collections::VecDeque;

/// A store that waits for its line.
#[derive(Copy, Clone, Debug)]
pub(super) struct Pending {
    place: Place,
    /// What is written; to be added to what the line brings, where a bump's load still waits for it.
    value: u64,
    is_unread: bool,
    /// Whether another store of its kind to the same word takes its place.
    merges: bool,
    since: Ps,
    /// What committing it takes after another one.
    pace: Ps,
}

/// The stores, and when the last one was committed.
#[derive(Debug, Default)]
pub(super) struct Buffer {
    stores: VecDeque<Pending>,
    pub(super) committed_at: Ps,
    /// How many are unread.
    unread: usize,
    /// Whether the calendar has an event for it.
    is_due: bool,
    /// Before that nothing can come of its oldest store: [`NEVER`] while that store's line is on its way, and until a
    /// line comes.
    looks_at: Ps,
}

impl Buffer {
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.stores.is_empty()
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.stores.len()
    }

    /// What the youngest store to a word writes, and whether that is to be added to what the line brings.
    #[inline(always)]
    pub(super) fn forwards(&self, word: u32) -> Option<(u64, bool)> {
        self.stores.iter().rev().find(|store| store.place.word == word).map(|store| (store.value, store.is_unread))
    }

    /// Whether its oldest store may be committed before `limit`.
    #[inline(always)]
    pub(super) fn may_act(&self, limit: Ps) -> bool {
        self.looks_at < limit && !self.stores.is_empty()
    }

    /// A line came to its core.
    pub(super) fn look_again(&mut self) {
        self.looks_at = 0;
    }

    /// Puts a value in the place of the youngest store, where that is one to the same word that nobody needed: whether
    /// it was.
    fn merge(&mut self, word: u32, value: u64) -> bool {
        match self.stores.back_mut() {
            Some(youngest) if youngest.merges && youngest.place.word == word => {
                youngest.value = value;
                true
            }
            _ => false,
        }
    }

    fn push(&mut self, store: Pending) {
        self.unread += usize::from(store.is_unread);
        self.stores.push_back(store);
    }

    /// A line is here: what bumps wait for is read.
    pub(super) fn read(&mut self, line: u32, values: &[u64]) {
        if self.unread == 0 {
            return;
        }
        for store in self.stores.iter_mut().filter(|store| store.is_unread && store.place.line == line) {
            store.value = store.value.wrapping_add(values[store.place.word as usize]);
            store.is_unread = false;
            self.unread -= 1;
        }
    }

    /// Bytes that it has reserved.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.stores.capacity()
    }
}

/// What a store writes.
#[derive(Copy, Clone, Debug)]
pub(super) enum Stored {
    /// A value that nothing was read for. Buffers merge such stores to the same word (AMD's write-combining buffer,
    /// which Zen cores use for ordinary memory as well; Intel's since Ice Lake commits several stores to one line
    /// together).
    Merging(u64),
    /// A value of which every store is made by itself: what was read went into it, or others wait for it.
    Known(u64),
    /// So much more than a load will read that still waits for the line.
    Unread(u64),
}

/// What became of the oldest store.
enum Head {
    Committed,
    /// It can be looked at then.
    Due(Ps),
    /// There is none, or its line is on its way.
    Waits,
}

impl Engine<'_> {
    /// Commits a store at the worker's time, or buffers it.
    #[inline(always)]
    pub(super) fn put(&mut self, worker: usize, place: Place, what: Stored, pace: Ps) {
        let (value, is_unread, merges) = match what {
            Stored::Merging(value) => (value, false, true),
            Stored::Known(value) => (value, false, false),
            Stored::Unread(more) => (more, true, false),
        };
        let me = &self.workers[worker];
        let now = me.now;
        if me.buffer.is_empty() && !is_unread && self.is_writable(me.core, place, now) {
            return self.commit(worker, place, value, now);
        }
        let buffer = &mut self.workers[worker].buffer;
        let is_oldest = buffer.is_empty();
        if merges && buffer.merge(place.word, value) {
            return;
        }
        buffer.push(Pending { place, value, is_unread, merges, since: now, pace });
        if is_oldest {
            buffer.look_again();
            self.drain_to(worker, now + 1);
        }
    }

    #[inline(always)]
    pub(super) fn is_writable(&self, core: usize, place: Place, now: Ps) -> bool {
        self.lines[place.line as usize].held.get(core).is_some_and(|held| held.is_writable(now))
    }

    #[inline(always)]
    pub(super) fn is_readable(&self, core: usize, place: Place, now: Ps) -> bool {
        self.lines[place.line as usize].held.get(core).is_some_and(|held| held.is_readable(now))
    }

    /// Writes a word of a line that is this core's to write.
    #[inline(always)]
    pub(super) fn commit(&mut self, worker: usize, place: Place, value: u64, at: Ps) {
        let core = self.workers[worker].core;
        let held = &mut self.lines[place.line as usize].held[core];
        debug_assert!(held.is_writable(at), "{held:?} written at {at}");
        match held.state {
            State::Modified => {}
            State::Exclusive => held.state = State::Modified, // the write that a protocol makes without a word
            _ => self.note_late_write(core, place.line),
        }
        let extra = self.hit(worker, place, true, at);
        let me = &mut self.workers[worker];
        me.buffer.committed_at = at + extra;
        me.acted_at = me.acted_at.max(at);
        self.values[place.word as usize] = value;
        #[cfg(test)]
        self.witness_write(worker, place, value, at);
        if self.cores[core].has_siblings() {
            self.wake_spinners(core, place.line, at);
        }
    }

    /// Commits the oldest store if that can be before `limit`, or asks for its line.
    fn commit_oldest(&mut self, worker: usize, limit: Ps) -> Head {
        let me = &mut self.workers[worker];
        let buffer = &mut me.buffer;
        let Some(&Pending { place, value, since, pace, .. }) = buffer.stores.front() else { return Head::Waits };
        let paced = (buffer.committed_at + pace).max(since);
        let held = self.lines[place.line as usize].held.get(me.core).copied().unwrap_or(Held::NONE);
        let at = paced.max(held.write_from);
        let (is_writable, is_coming) = (held.is_writable(at), held.asked != Asked::Nothing);
        // A thread of the same core that flushes the line has not yet taken it away.
        if is_coming && !(held.asked == Asked::Flush && is_writable) {
            buffer.looks_at = NEVER;
            return Head::Waits;
        }
        buffer.looks_at = at;
        if at >= limit {
            return Head::Due(at);
        }
        if !is_writable {
            // What was on its way until now has come, and was not enough.
            let at = at.max(self.time);
            buffer.looks_at = NEVER;
            self.ask(worker, place, Asked::Ownership, at);
            return Head::Waits;
        }
        buffer.stores.pop_front();
        self.commit(worker, place, value, at);
        Head::Committed
    }

    /// Commits what can be before `limit`.
    #[inline(always)]
    pub(super) fn drain_to(&mut self, worker: usize, limit: Ps) {
        while self.workers[worker].buffer.may_act(limit) {
            if !matches!(self.commit_oldest(worker, limit), Head::Committed) {
                return;
            }
        }
    }

    /// The same, where the worker itself does not go on: as far as any may, and what is left in its time. Threads of
    /// one core take turns by the calendar.
    pub(super) fn drain(&mut self, worker: usize) {
        let core = self.workers[worker].core;
        loop {
            let limit = if self.cores[core].has_siblings() { 0 } else { self.horizon(core) };
            match self.commit_oldest(worker, limit) {
                Head::Committed => {}
                Head::Waits => return,
                Head::Due(at) => {
                    self.stop_draining(worker);
                    self.workers[worker].buffer.is_due = true;
                    return self.calendar.add(core, at.max(self.time), Event::Drain { worker: worker as u32 });
                }
            }
        }
    }

    /// Strikes out the buffer's event: the worker looks after its buffer while it goes on.
    #[inline(always)]
    pub(super) fn stop_draining(&mut self, worker: usize) {
        let me = &mut self.workers[worker];
        if std::mem::take(&mut me.buffer.is_due) {
            self.calendar.strike(me.core, Event::Drain { worker: worker as u32 });
        }
    }

    /// A store buffer's time has come.
    pub(super) fn drained(&mut self, worker: usize) {
        self.workers[worker].buffer.is_due = false;
        // What is due now is committed whatever else happens now: see `resumed`.
        self.drain_to(worker, self.time + 1);
        let me = &mut self.workers[worker];
        if matches!(me.blocked, Blocked::Room | Blocked::Drained) {
            me.now = me.now.max(self.time);
            self.run(worker);
        } else {
            self.drain(worker);
        }
    }

    /// Waits until at most `most` stores are left. Where that comes to pass soon enough, the worker goes on then.
    pub(super) fn wait_for_buffer(&mut self, worker: usize, most: usize, blocked: Blocked) -> Goes {
        let core = self.workers[worker].core;
        while self.workers[worker].buffer.len() > most {
            if !matches!(self.commit_oldest(worker, self.horizon(core)), Head::Committed) {
                return self.block(worker, blocked);
            }
        }
        let me = &mut self.workers[worker];
        me.now = me.now.max(me.buffer.committed_at);
        Goes::On
    }
}
