//! What cores ask of each other, and what comes of it.

use super::{Engine, Event, Request};
use crate::line::{Asked, Gone, Level};
use crate::protocol::State;
use crate::time::{NEVER, Ps};

/// Where a line came from.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum From {
    /// Another core, or another cluster's last level, at this distance.
    Afar(usize),
    /// The cluster's last level.
    LastLevel,
    /// Memory.
    Memory,
    /// Nowhere: the core had the content already.
    Here,
}

impl Engine<'_> {
    /// Asks for a line unless that, or more, was asked for already.
    pub(super) fn ask(&mut self, worker: usize, line: u32, word: u32, want: Asked, at: Ps) {
        let core = self.workers[worker].core;
        let held = &mut self.lines[line as usize].held[core];
        if held.asked != Asked::Nothing {
            return; // what arrives is looked at anew
        }
        held.asked = want;
        let request =
            Request { core: core as u32, line, want, worker: worker as u32, word, is_pair: false };
        self.push(at, Event::Request(request));
    }

    /// Decides a request: from where the line comes, when it leaves there and when it is here.
    pub(super) fn request(&mut self, request: Request) {
        let (core, line) = (request.core as usize, request.line as usize);
        let held = self.lines[line].held[core];
        let has_it = match request.want {
            Asked::Ownership => held.state.is_writable(),
            Asked::Copy | Asked::Nothing => held.state.is_readable(),
        };
        if has_it {
            let at = self.time.max(held.from);
            return self.push(at, Event::Arrive { core: request.core, line: request.line });
        }
        self.classify(&request);
        let arrives = match request.want {
            Asked::Ownership => self.take(&request),
            Asked::Copy | Asked::Nothing => self.copy(&request),
        };
        self.push(arrives, Event::Arrive { core: request.core, line: request.line });
        if self.machine.caches.fetches_pairs && !request.is_pair {
            self.fetch_pair(&request);
        }
    }

    /// Gives ownership; every other copy ends. When the line is here.
    fn take(&mut self, request: &Request) -> Ps {
        let (core, line) = (request.core as usize, request.line as usize);
        let mine = self.lines[line].held[core].state;
        let others: Vec<usize> = self.lines[line].others(core).collect();
        let supplier = self.lines[line].supplier();
        let (from, arrives) = if others.is_empty() {
            let from = if mine.is_readable() { From::LastLevel } else { self.beyond(core, line) };
            let cost = self.cost(from);
            (if mine.is_readable() { From::Here } else { from }, self.time.max(self.lines[line].busy_until) + cost)
        } else {
            let distance = others.iter().map(|&other| self.cores[core].distance(&self.cores[other])).max().unwrap_or(0);
            let fetch = self.prices.fetch[distance];
            let mut leaves = (self.time + fetch / 2).max(self.lines[line].busy_until + 1);
            for &other in &others {
                let held = &self.lines[line].held[other];
                if held.state.is_writable() {
                    let tenure = self.prices.tenure[self.cores[core].distance(&self.cores[other])].max(1);
                    leaves = leaves.max(held.from.saturating_add(tenure));
                }
            }
            self.note_transfer(request, supplier.filter(|&s| s != core), others.len() as u64);
            for other in others {
                self.end_copy(other, line, leaves, Gone::Taken);
            }
            let from = if mine.is_readable() { From::Here } else { From::Afar(distance) };
            (from, leaves + fetch - fetch / 2)
        };
        self.note_source(request, from);
        self.workers[request.worker as usize].tally.upgrades += u64::from(mine.is_readable());
        let line = &mut self.lines[line];
        line.held[core].arrive(State::Modified, arrives);
        line.busy_until = arrives;
        line.story.tenure(request.worker as usize);
        arrives
    }

    /// Gives a copy. When it is here.
    fn copy(&mut self, request: &Request) -> Ps {
        let (core, line) = (request.core as usize, request.line as usize);
        let protocol = self.machine.protocol;
        let Some(supplier) = self.lines[line].supplier() else {
            let from = self.beyond(core, line);
            let shared = self.lines[line].others(core).next().is_some();
            let state = protocol.read(if shared { State::Shared } else { State::Invalid }).reader;
            let arrives = self.time.max(if shared { 0 } else { self.lines[line].busy_until }) + self.cost(from);
            self.note_source(request, from);
            let line = &mut self.lines[line];
            line.held[core].arrive(state, arrives);
            line.busy_until = line.busy_until.max(arrives);
            return arrives;
        };
        let distance = self.cores[core].distance(&self.cores[supplier]);
        let fetch = self.prices.fetch[distance];
        let owner = self.lines[line].held[supplier];
        let mut leaves = (self.time + fetch / 2).max(owner.from + 1);
        if owner.state.is_writable() {
            leaves = leaves.max(owner.from.saturating_add(self.prices.tenure[distance].max(1)));
        }
        let after = protocol.read(owner.state);
        self.note_transfer(request, Some(supplier), 0);
        self.note_source(request, From::Afar(distance));
        if after.writes_back {
            self.into_last_level(self.cores[supplier].cluster, request.line);
        }
        self.into_last_level(self.cores[core].cluster, request.line);
        let arrives = leaves + fetch - fetch / 2;
        let held = &mut self.lines[line].held;
        held[supplier].share(after.holder, leaves);
        held[core].arrive(after.reader, arrives);
        self.lines[line].busy_until = self.lines[line].busy_until.max(arrives);
        self.settle_later(supplier, leaves);
        arrives
    }

    /// From where a line comes that no other core supplies.
    fn beyond(&self, core: usize, line: usize) -> From {
        let number = self.lines[line].number;
        let holds = |cluster: usize| self.last_levels[cluster].holds(line as u32, number);
        let mine = self.cores[core].cluster;
        if holds(mine) {
            return From::LastLevel;
        }
        let farther = self.cores.iter().filter(|c| c.cluster != mine && holds(c.cluster));
        farther.map(|c| self.cores[core].distance(c)).min().map_or(From::Memory, From::Afar)
    }

    fn cost(&self, from: From) -> Ps {
        match from {
            From::Afar(distance) => self.prices.fetch[distance],
            From::LastLevel | From::Here => self.prices.last,
            From::Memory => self.prices.memory,
        }
    }

    /// Ends a core's copy at `at`, wakes what spins on it there, and lets its store buffers see.
    fn end_copy(&mut self, core: usize, line: usize, at: Ps, gone: Gone) {
        let number = self.lines[line].number;
        self.lines[line].held[core].end(at, gone);
        self.lines[line].held[core].level = Level::Nowhere;
        self.cores[core].first.remove(line as u32, number);
        self.cores[core].second.remove(line as u32, number);
        if self.cores[core].last_line == line as u32 {
            self.cores[core].last_line = u32::MAX;
        }
        if gone == Gone::Taken {
            for i in 0..self.cores[core].workers.len() {
                let worker = self.cores[core].workers[i] as usize;
                self.workers[worker].tally.invalidations_received += 1;
            }
        }
        self.wake_spinners(core, line, at);
        self.settle_later(core, at);
    }

    fn settle_later(&mut self, core: usize, at: Ps) {
        if self.cores[core].workers.iter().any(|&w| !self.workers[w as usize].stores.is_empty()) {
            self.push(at, Event::Settle { core: core as u32 });
        }
    }

    /// Lets the workers of a core that spin on a line look again, from `at` on.
    pub(super) fn wake_spinners(&mut self, core: usize, line: usize, at: Ps) {
        let mut spinners = std::mem::take(&mut self.lines[line].spinners);
        spinners.retain(|&worker| {
            let is_here = self.workers[worker as usize].core == core;
            if is_here {
                let at = self.workers[worker as usize].now.max(at) + self.prices.pause / 2;
                self.resume(worker as usize, at);
            }
            !is_here
        });
        self.lines[line].spinners = spinners;
    }

    /// What kind of miss a request is.
    fn classify(&mut self, request: &Request) {
        let (core, line) = (request.core as usize, request.line as usize);
        let held = self.lines[line].held[core];
        let would_be_here = self.cores[core].shadow.holds(request.line);
        let tally = &mut self.workers[request.worker as usize].tally;
        if request.is_pair {
            tally.pair_fetches += 1;
            return;
        }
        match request.want {
            Asked::Ownership => tally.l1d_store_misses += 1,
            Asked::Copy | Asked::Nothing => tally.l1d_load_misses += 1,
        }
        if held.state.is_readable() {
            return; // an upgrade
        }
        match held.gone {
            Gone::Never => tally.cold_misses += 1,
            Gone::Taken => tally.coherence_misses += 1,
            Gone::Evicted if would_be_here => tally.conflict_misses += 1,
            Gone::Evicted => tally.capacity_misses += 1,
        }
    }

    fn note_source(&mut self, request: &Request, from: From) {
        let tally = &mut self.workers[request.worker as usize].tally;
        if request.is_pair || from == From::Here {
            return;
        }
        tally.llc_loads += 1;
        tally.llc_load_misses += u64::from(matches!(from, From::Memory | From::Afar(1 | 2)));
    }

    fn note_transfer(&mut self, request: &Request, supplier: Option<usize>, ended: u64) {
        let line = request.line as usize;
        let is_dirty = supplier.is_some_and(|s| self.lines[line].held[s].state == State::Modified);
        let tally = &mut self.workers[request.worker as usize].tally;
        tally.modified_line_hits += u64::from(is_dirty);
        tally.invalidations_sent += ended;
        self.lines[line].story.transfer(request.word, request.want == Asked::Ownership);
    }

    /// The neighbour of a line that was asked for, to read.
    fn fetch_pair(&mut self, request: &Request) {
        let Some(pair) = self.pair_of[request.line as usize] else { return };
        let held = &mut self.lines[pair as usize].held[request.core as usize];
        if held.state.is_readable() || held.asked != Asked::Nothing {
            return;
        }
        held.asked = Asked::Copy;
        let word = self.lines[pair as usize].story.touched;
        let request = Request { line: pair, want: Asked::Copy, word, is_pair: true, ..*request };
        self.push(self.time, Event::Request(request));
    }

    /// A line is here: it enters the caches, and what waited for it goes on.
    pub(super) fn arrive(&mut self, core: usize, line: u32) {
        self.lines[line as usize].held[core].asked = Asked::Nothing;
        if self.lines[line as usize].held[core].state.is_readable() {
            self.into_private(core, line);
        }
        for i in 0..self.cores[core].workers.len() {
            let worker = self.cores[core].workers[i] as usize;
            self.workers[worker].loads.retain(|load| load.line != line);
            if self.workers[worker].waits_for_line(line) {
                let at = self.workers[worker].now.max(self.time);
                self.resume(worker, at);
            }
        }
        self.settle_core(core);
    }

    fn into_private(&mut self, core: usize, line: u32) {
        self.uses += 1;
        let (number, uses) = (self.lines[line as usize].number, self.uses);
        if let Some(victim) = self.cores[core].second.insert(line, number, uses) {
            self.evict(core, victim);
        }
        self.into_first(core, line);
        if self.machine.caches.llc_is_inclusive {
            self.into_last_level(self.cores[core].cluster, line);
        }
    }

    pub(super) fn into_first(&mut self, core: usize, line: u32) {
        self.uses += 1;
        let (number, uses) = (self.lines[line as usize].number, self.uses);
        if let Some(victim) = self.cores[core].first.insert(line, number, uses) {
            self.lines[victim as usize].held[core].level = Level::Second;
        }
        self.lines[line as usize].held[core].level = Level::First;
        self.cores[core].shadow.touch(line);
        self.cores[core].last_line = line;
    }

    /// A line leaves a core's caches for want of room.
    fn evict(&mut self, core: usize, victim: u32) {
        if self.lines[victim as usize].held[core].state.is_dirty() || !self.machine.caches.llc_is_inclusive {
            self.into_last_level(self.cores[core].cluster, victim);
        }
        let at = self.time;
        self.end_copy(core, victim as usize, at, Gone::Evicted);
    }

    /// A line enters a cluster's last level; where that holds all that its cores hold, what it loses they lose as well.
    fn into_last_level(&mut self, cluster: usize, line: u32) {
        self.uses += 1;
        let (number, uses) = (self.lines[line as usize].number, self.uses);
        let Some(victim) = self.last_levels[cluster].insert(line, number, uses) else { return };
        if !self.machine.caches.llc_is_inclusive {
            return;
        }
        for core in 0..self.cores.len() {
            if self.cores[core].cluster == cluster && self.lines[victim as usize].held[core].state.is_readable() {
                let at = self.time;
                self.end_copy(core, victim as usize, at, Gone::Evicted);
            }
        }
    }

    /// Drops a line everywhere, as far from now as a request takes.
    pub(super) fn flush_line(&mut self, worker: usize, line: u32) {
        let at = self.workers[worker].now.saturating_add(self.lookahead);
        for core in 0..self.cores.len() {
            if self.lines[line as usize].held[core].state.is_readable() {
                self.end_copy(core, line as usize, at, Gone::Taken);
            }
        }
        let number = self.lines[line as usize].number;
        self.last_levels.iter_mut().for_each(|last| last.remove(line, number));
        self.lines[line as usize].busy_until = self.lines[line as usize].busy_until.max(at);
    }

    /// An access that has what it needs: what it costs beyond the first level's time.
    #[inline(always)]
    pub(super) fn hit(&mut self, worker: usize, line: u32, word: u32) -> Ps {
        let core = self.workers[worker].core;
        self.lines[line as usize].story.touch(word);
        if self.cores[core].last_line == line {
            return 0;
        }
        self.hit_another(worker, core, line)
    }

    fn hit_another(&mut self, worker: usize, core: usize, line: u32) -> Ps {
        let number = self.lines[line as usize].number;
        if self.lines[line as usize].held[core].level == Level::Second {
            let conflict = self.cores[core].shadow.holds(line);
            let tally = &mut self.workers[worker].tally;
            tally.l1d_load_misses += 1;
            tally.conflict_misses += u64::from(conflict);
            tally.capacity_misses += u64::from(!conflict);
            self.uses += 1;
            let uses = self.uses;
            self.cores[core].second.touch(line, number, uses);
            self.into_first(core, line);
            return self.prices.second;
        }
        self.uses += 1;
        let uses = self.uses;
        let core = &mut self.cores[core];
        core.first.touch(line, number, uses);
        core.shadow.touch(line);
        core.last_line = line;
        0
    }

    /// Until when a line is readable here, as far as that is decided.
    pub(super) fn read_ends(&self, core: usize, line: u32) -> Option<Ps> {
        let until = self.lines[line as usize].held[core].read_until;
        (until != NEVER).then_some(until)
    }
}
