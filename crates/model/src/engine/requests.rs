//! What cores ask of each other, and what comes of it.
//!
//! A request takes half a fetch to the cores that it concerns, waits there until the line's last transfer and, where it
//! takes the line or its only writable copy away, the tenure of the core that got it last are over; the answer takes
//! the other half. A read that no core supplies waits only for the line's last writing to end.

use super::{Engine, Event, Request};
use crate::line::{Asked, Clean, Gone, Held};
use crate::protocol::State;
use crate::script::Place;
use crate::set::Set;
use crate::time::{NEVER, Ps};
use crate::way::Way;

/// Where a line's content comes from.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Another core, or another cluster's last level, at this distance.
    Afar(usize),
    /// The cluster's last level.
    LastLevel,
    /// Memory.
    Memory,
    /// Nowhere: the core has it already.
    Here,
}

impl Engine<'_> {
    /// Asks for a line, unless something was asked for already: then what comes is looked at anew when it comes.
    /// Whether this was asked.
    pub(super) fn ask(&mut self, worker: usize, place: Place, want: Asked, at: Ps) -> bool {
        debug_assert!(at >= self.time, "asked at {at}, and it is {}", self.time);
        let core = self.workers[worker].core;
        let (cores, line) = (self.cores.len(), &mut self.lines[place.line as usize]);
        if line.held.is_empty() {
            line.held = vec![Held::NONE; cores];
        }
        let held = &mut line.held[core];
        if held.asked != Asked::Nothing {
            return false;
        }
        held.asked = want;
        let (core, worker) = (core as u32, worker as u32);
        let request = Request { core, line: place.line, want, worker, word: place.word, is_pair: false };
        // Nobody can ask before: it may be decided at once.
        if at < self.calendar.earliest() {
            self.decide(at, request);
        } else {
            self.ask_later(at, request);
        }
        true
    }

    /// Leaves a request to the calendar.
    fn ask_later(&mut self, at: Ps, request: Request) {
        let number = self.free.pop().unwrap_or_else(|| {
            self.requests.push(request);
            self.requests.len() as u32 - 1
        });
        self.requests[number as usize] = request;
        self.calendar.add(request.core as usize, at, Event::Request { number });
    }

    /// Decides a request: from where the line comes, when it leaves there and when it is here.
    pub(super) fn decide(&mut self, at: Ps, request: Request) {
        self.time = self.time.max(at);
        let (core, line) = (request.core as usize, request.line as usize);
        let state = self.lines[line].held[core].state;
        debug_assert!(!state.is_writable() || request.want == Asked::Flush, "asked for what it has: {request:?}");
        let arrives = match request.want {
            Asked::Ownership => self.take(at, &request),
            Asked::Flush => self.flush(at, &request),
            Asked::Copy | Asked::Nothing => self.copy(at, &request),
        };
        self.calendar.add(core, arrives, Event::Arrive { line: request.line });
        if self.machine.caches.fetches_pairs && !request.is_pair && !state.is_readable() && request.want != Asked::Flush
        {
            self.fetch_pair(at, &request);
        }
        #[cfg(test)]
        self.look(Some(request.line));
    }

    /// Gives ownership; every other copy ends. When the line is here.
    fn take(&mut self, at: Ps, request: &Request) -> Ps {
        let (core, l) = (request.core as usize, request.line as usize);
        self.classify(request);
        let line = &self.lines[l];
        let (others, is_upgrade) = (line.copies.without(Set::only(core)), line.held[core].state.is_readable());
        let (source, arrives) = if others.is_empty() {
            let source = if is_upgrade { Source::Here } else { self.beyond(core, l) };
            (source, at.max(self.lines[l].busy_until) + self.cost(at, source, l))
        } else {
            let supplier = line.supplier.map(|s| s as usize).filter(|&s| s != core);
            let source = match supplier {
                _ if is_upgrade => Source::Here,
                Some(supplier) => Source::Afar(self.cores[core].distance(Set::only(supplier))),
                None => self.beyond(core, l),
            };
            let distance = self.cores[core].distance(others);
            let leaves = self.leaves(at, core, l, others);
            let with_content = match source {
                Source::LastLevel | Source::Memory => at + self.cost(at, source, l),
                Source::Afar(_) | Source::Here => 0,
            };
            self.note_transfer(request, others);
            self.end_copies(others, l, leaves);
            (source, (leaves + self.answer(distance, l)).max(with_content))
        };
        self.note_source(request, source);
        self.leave_last_levels(core, l);
        let line = &mut self.lines[l];
        let held = &mut line.held[core];
        if is_upgrade {
            held.upgrade(arrives);
        } else {
            held.arrive(State::Modified, arrives);
            held.touched = request.word;
        }
        held.user = request.worker;
        line.note_state(core);
        line.busy_until = arrives;
        line.story.tenure(request.worker as usize);
        #[cfg(test)]
        self.witness_take(at, arrives);
        arrives
    }

    /// When a line leaves `others` for a request made at `at` that ends their copies.
    fn leaves(&mut self, at: Ps, core: usize, l: usize, others: Set) -> Ps {
        let line = &self.lines[l];
        let request = if others.is_empty() { 0 } else { self.request(at, self.cores[core].distance(others), l) };
        let after_transfer = (at + request).max(line.busy_until + 1);
        // The core that got it last.
        let got = |other: usize| {
            if line.held[other].state.is_writable() { line.held[other].write_from } else { line.held[other].from }
        };
        match others.iter().max_by_key(|&other| got(other)) {
            Some(last) => {
                let tenure = self.prices.draw_tenure(self.cores[core].distance(Set::only(last)), &mut self.chance);
                after_transfer.max(got(last).saturating_add(tenure))
            }
            None => after_transfer,
        }
    }

    /// Gives a copy. When it is here.
    fn copy(&mut self, at: Ps, request: &Request) -> Ps {
        self.classify(request);
        let (core, l) = (request.core as usize, request.line as usize);
        let (state, arrives) = match self.lines[l].supplier {
            Some(supplier) => self.copy_from(supplier as usize, at, request),
            None => self.copy_from_beyond(at, request),
        };
        let line = &mut self.lines[l];
        let held = &mut line.held[core];
        held.arrive(state, arrives);
        (held.touched, held.user) = (request.word, request.worker);
        line.note_state(core);
        line.busy_until = line.busy_until.max(arrives);
        if state.is_writable() {
            line.story.tenure(request.worker as usize);
        }
        arrives
    }

    /// The copy that no core supplies: its state, and when it is here.
    fn copy_from_beyond(&mut self, at: Ps, request: &Request) -> (State, Ps) {
        let (core, l) = (request.core as usize, request.line as usize);
        let source = self.beyond(core, l);
        self.note_source(request, source);
        let line = &self.lines[l];
        let (others, waits) = match line.copies.is_empty() {
            true => (State::Invalid, line.busy_until),
            false => (State::Shared, line.written_until),
        };
        (self.machine.protocol.read(others).reader, at.max(waits) + self.cost(at, source, l))
    }

    /// The copy that a core supplies: its state, and when it is here.
    fn copy_from(&mut self, supplier: usize, at: Ps, request: &Request) -> (State, Ps) {
        let (core, l) = (request.core as usize, request.line as usize);
        let distance = self.cores[core].distance(Set::only(supplier));
        let (owner, written_until) = (self.lines[l].held[supplier], self.lines[l].written_until);
        let mut leaves = (at + self.request(at, distance, l)).max(owner.from + 1).max(written_until);
        if owner.state.is_writable() {
            let tenure = self.prices.draw_tenure(distance, &mut self.chance);
            leaves = leaves.max(owner.write_from.saturating_add(tenure));
        }
        let after = self.machine.protocol.read(owner.state);
        self.note_transfer(request, Set::only(supplier));
        self.note_source(request, Source::Afar(distance));
        let line = &mut self.lines[l];
        line.written_until = if owner.state.is_writable() { leaves } else { written_until };
        line.held[supplier].share(after.holder, leaves);
        line.note_state(supplier);
        if after.writes_back {
            self.write_back(supplier, request.line);
        }
        self.enter_last_level(self.cores[core].cluster, request.line);
        (after.reader, leaves + self.answer(distance, l))
    }

    /// Ends every copy and what the last levels have of a line; the asker is told when it is gone.
    fn flush(&mut self, at: Ps, request: &Request) -> Ps {
        let (core, l) = (request.core as usize, request.line as usize);
        let others = self.lines[l].copies.without(Set::only(core));
        let leaves = self.leaves(at, core, l, others);
        let answer = match others.is_empty() {
            true => 0,
            false => self.answer(self.cores[core].distance(others), l),
        };
        if let Some(holder) = self.lines[l].supplier
            && self.lines[l].held[holder as usize].state.is_dirty()
        {
            self.note_write_back(holder as usize, request.line);
        }
        self.workers[request.worker as usize].tally.invalidations_sent += others.iter().count() as u64;
        self.end_copies(others, l, leaves);
        if self.lines[l].copies.has(core) {
            self.end_copy(core, l, at.max(self.lines[l].held[core].from + 1), Gone::Taken);
        }
        self.lines[l].clean = None;
        self.clear_last_levels(l, Set::EMPTY);
        let done = (leaves + answer).max(at + self.prices.flush);
        self.lines[l].busy_until = done;
        done
    }

    /// From where a line comes that no other core supplies.
    fn beyond(&self, core: usize, line: usize) -> Source {
        let (mine, in_last) = (&self.cores[core], self.lines[line].in_last);
        if in_last.has(mine.cluster) {
            return Source::LastLevel;
        }
        let distance = |cluster: usize| mine.distance(self.clusters[cluster]);
        in_last.iter().map(distance).min().map_or(Source::Memory, Source::Afar)
    }

    /// What a request for a line, made at `at`, takes to the cores that have it.
    fn request(&self, at: Ps, distance: usize, line: usize) -> Ps {
        let line = &self.lines[line];
        self.prices.half(distance, if at < line.busy_until { line.way.no_longer_than_usual() } else { Way::USUAL })
    }

    /// What the line takes back.
    fn answer(&mut self, distance: usize, line: usize) -> Ps {
        let way = Way::draw(&mut self.chance);
        self.lines[line].way = way;
        self.prices.half(distance, way)
    }

    fn cost(&mut self, at: Ps, source: Source, line: usize) -> Ps {
        match source {
            Source::Afar(distance) => self.request(at, distance, line) + self.answer(distance, line),
            Source::LastLevel | Source::Here => self.prices.last,
            Source::Memory => self.prices.memory,
        }
    }

    /// Takes a line away from `others` at `at`.
    fn end_copies(&mut self, others: Set, l: usize, at: Ps) {
        for other in others.iter() {
            let user = self.lines[l].held[other].user;
            self.workers[user as usize].tally.invalidations_received += 1;
            self.end_copy(other, l, at, Gone::Taken);
        }
    }

    /// Ends a core's copy at `at`, and lets what spins on it there look again.
    pub(super) fn end_copy(&mut self, core: usize, l: usize, at: Ps, gone: Gone) {
        let line = &mut self.lines[l];
        line.held[core].end(at, gone);
        line.note_state(core);
        if line.crowds.own {
            self.leave_private(core, l as u32);
        }
        self.wake_spinners(core, l as u32, at);
    }

    /// Lets the workers of a core that spin on a line look again, from `at` on.
    #[inline(always)]
    pub(super) fn wake_spinners(&mut self, core: usize, line: u32, at: Ps) {
        for i in 0..self.cores[core].workers.len() {
            let worker = self.cores[core].workers[i] as usize;
            if self.workers[worker].spins_on(line) {
                let look = self.draw_look();
                let me = &self.workers[worker];
                let looks = me.now.max(at).saturating_add(look);
                if looks < me.resumes_at {
                    self.resume(worker, looks);
                }
            }
        }
    }

    /// What kind of miss a request is.
    fn classify(&mut self, request: &Request) {
        let (core, line) = (request.core as usize, request.line as usize);
        let held = self.lines[line].held[core];
        let would_be_here = self.cores[core].shadow.as_ref().is_none_or(|shadow| shadow.holds(request.line));
        let tally = &mut self.workers[request.worker as usize].tally;
        if request.is_pair {
            tally.pair_fetches += 1;
            return;
        }
        match request.want {
            Asked::Ownership => tally.l1d_store_misses += 1,
            Asked::Copy | Asked::Nothing | Asked::Flush => tally.l1d_load_misses += 1,
        }
        match held.gone {
            _ if held.state.is_readable() => tally.upgrades += 1,
            Gone::Never => tally.cold_misses += 1,
            Gone::Taken => tally.coherence_misses += 1,
            Gone::Evicted if would_be_here => tally.conflict_misses += 1,
            Gone::Evicted => tally.capacity_misses += 1,
        }
    }

    fn note_source(&mut self, request: &Request, source: Source) {
        #[cfg(test)]
        self.witness_source(source);
        let tally = &mut self.workers[request.worker as usize].tally;
        if request.is_pair || source == Source::Here {
            return;
        }
        tally.llc_loads += 1;
        tally.llc_load_misses += u64::from(matches!(source, Source::Memory | Source::Afar(1 | 2)));
    }

    /// A request concerns other cores' copies: the one that supplies it, or those that end.
    fn note_transfer(&mut self, request: &Request, others: Set) {
        let line = &mut self.lines[request.line as usize];
        let to_write = request.want == Asked::Ownership;
        let supplier = line.supplier.filter(|&supplier| others.has(supplier as usize));
        let holder = supplier.map(|supplier| supplier as usize).or(others.first()).unwrap_or_default();
        let held = line.held[holder];
        let nth = |word: u32| self.scripts.nth_in_pair[word as usize].into();
        line.story.transfer(nth(held.touched), nth(request.word), to_write);
        line.clean = (held.state == State::Exclusive).then_some(Clean { holder: holder as u32, asker: request.worker });
        let tally = &mut self.workers[request.worker as usize].tally;
        tally.modified_line_hits += u64::from(match to_write {
            true => self.machine.protocol.write(held.state),
            false => held.state.is_dirty(),
        });
        tally.invalidations_sent += if to_write { others.iter().count() as u64 } else { 0 };
    }

    /// A core writes a clean line of its own, which a request that was decided before will share or take: what the
    /// request finds is modified after all.
    pub(super) fn note_late_write(&mut self, core: usize, l: u32) {
        let line = &mut self.lines[l as usize];
        let Some(clean) = line.clean.take_if(|clean| clean.holder as usize == core) else { return };
        self.workers[clean.asker as usize].tally.modified_line_hits += 1;
        let held = &mut line.held[core];
        if held.state != State::Shared {
            return; // taken: the content travels with it
        }
        let after = self.machine.protocol.read(State::Modified);
        held.state = after.holder;
        line.note_state(core);
        if after.writes_back {
            self.write_back(core, l);
        }
    }

    /// The neighbour of a line that was asked for, to read.
    fn fetch_pair(&mut self, at: Ps, request: &Request) {
        let Some(pair) = self.pair_of[request.line as usize] else { return };
        let (cores, line) = (self.cores.len(), &mut self.lines[pair as usize]);
        if line.held.is_empty() {
            line.held = vec![Held::NONE; cores];
        }
        let held = &mut line.held[request.core as usize];
        if held.state.is_readable() || held.asked != Asked::Nothing {
            return;
        }
        held.asked = Asked::Copy;
        self.decide(at, Request { line: pair, want: Asked::Copy, is_pair: true, ..*request });
    }

    /// A line is here: it enters the caches, and what waited for it goes on.
    pub(super) fn arrive(&mut self, core: usize, line: u32) {
        let held = &mut self.lines[line as usize].held[core];
        held.asked = Asked::Nothing;
        let is_here = held.is_readable(self.time);
        if held.state.is_readable() {
            self.enter_private(core, line);
        }
        for i in 0..self.cores[core].workers.len() {
            let worker = self.cores[core].workers[i] as usize;
            self.line_came(worker, line, is_here);
        }
        for i in 0..self.cores[core].workers.len() {
            let worker = self.cores[core].workers[i] as usize;
            self.goes_on_with(worker, line);
        }
    }

    /// Until when a line is readable here, where that is decided.
    pub(super) fn read_ends(&self, core: usize, line: u32) -> Option<Ps> {
        let until = self.lines[line as usize].held.get(core)?.read_until;
        (until != NEVER).then_some(until)
    }
}
