//! What the caches hold, and what has to go. Lines whose sets cannot be overfull in any level never have to: of them no
//! use is kept.

use super::Engine;
use crate::line::{Gone, Level};
use crate::script::Place;
use crate::set::Set;
use crate::time::Ps;

impl Engine<'_> {
    /// A line that has come enters its core's caches.
    pub(super) fn enter_private(&mut self, core: usize, line: u32) {
        let (number, crowds) = (self.lines[line as usize].number, self.lines[line as usize].crowds);
        if self.machine.caches.llc_is_inclusive {
            self.enter_last_level(self.cores[core].cluster, line);
        }
        if !crowds.own {
            self.lines[line as usize].held[core].level = Level::First;
            return;
        }
        let uses = self.next_use();
        if let Some(victim) = self.cores[core].second.insert(line, number, uses) {
            self.evict(core, victim);
        }
        self.enter_first(core, line);
    }

    fn next_use(&mut self) -> u64 {
        self.uses += 1;
        self.uses
    }

    fn enter_first(&mut self, core: usize, line: u32) {
        let (number, uses) = (self.lines[line as usize].number, self.next_use());
        if let Some(victim) = self.cores[core].first.insert(line, number, uses) {
            self.lines[victim as usize].held[core].level = Level::Second;
        }
        self.lines[line as usize].held[core].level = Level::First;
        self.note_use(core, line);
    }

    fn note_use(&mut self, core: usize, line: u32) {
        let core = &mut self.cores[core];
        if let Some(shadow) = &mut core.shadow {
            shadow.touch(line);
        }
        core.last_line = line;
    }

    /// A line that was taken away leaves its core's caches.
    pub(super) fn leave_private(&mut self, core: usize, line: u32) {
        let number = self.lines[line as usize].number;
        let core = &mut self.cores[core];
        core.first.remove(line, number);
        core.second.remove(line, number);
        if core.last_line == line {
            core.last_line = u32::MAX;
        }
    }

    /// A line leaves a core's caches for want of room.
    fn evict(&mut self, core: usize, victim: u32) {
        if self.lines[victim as usize].held[core].state.is_dirty() {
            self.write_back(core, victim);
        } else if !self.machine.caches.llc_is_inclusive {
            self.enter_last_level(self.cores[core].cluster, victim);
        }
        self.end_for_room(core, victim);
    }

    /// A core's copy ends since a cache needs the room: after what the core has done with it ahead of time, and one
    /// that is still on its way is used when it comes.
    fn end_for_room(&mut self, core: usize, victim: u32) {
        let acted_at = self.cores[core].workers.iter().map(|&worker| self.workers[worker as usize].acted_at).max();
        let held = &self.lines[victim as usize].held[core];
        let at = self.time.max(acted_at.unwrap_or(0).max(held.from).max(held.write_from) + 1);
        self.end_copy(core, victim as usize, at, Gone::Evicted);
        let line = &mut self.lines[victim as usize];
        line.busy_until = line.busy_until.max(at);
        line.written_until = line.written_until.max(at);
    }

    /// Dirty content goes to the last level of its core's cluster.
    pub(super) fn write_back(&mut self, core: usize, line: u32) {
        self.note_write_back(core, line);
        self.enter_last_level(self.cores[core].cluster, line);
    }

    pub(super) fn note_write_back(&mut self, core: usize, line: u32) {
        let user = self.lines[line as usize].held[core].user;
        self.workers[user as usize].tally.write_backs += 1;
    }

    /// A line enters a cluster's last level; where that holds all that its cores hold, what it loses they lose as well.
    pub(super) fn enter_last_level(&mut self, cluster: usize, line: u32) {
        let (number, crowds) = (self.lines[line as usize].number, self.lines[line as usize].crowds);
        self.lines[line as usize].in_last.add(cluster);
        if !crowds.last {
            return;
        }
        let uses = self.next_use();
        let Some(victim) = self.last_levels[cluster].insert(line, number, uses) else { return };
        self.lines[victim as usize].in_last.remove(cluster);
        if !self.machine.caches.llc_is_inclusive {
            return;
        }
        for core in self.clusters[cluster].both(self.lines[victim as usize].copies).iter() {
            if self.lines[victim as usize].held[core].state.is_dirty() {
                self.note_write_back(core, victim);
            }
            self.end_for_room(core, victim);
        }
    }

    /// What the last levels have of a line that a core is about to write is out of date; one that holds all that its
    /// cores hold keeps the room.
    pub(super) fn leave_last_levels(&mut self, core: usize, line: usize) {
        let keeps = if self.machine.caches.llc_is_inclusive { Set::only(self.cores[core].cluster) } else { Set::EMPTY };
        self.clear_last_levels(line, keeps);
    }

    pub(super) fn clear_last_levels(&mut self, l: usize, but: Set) {
        let line = &mut self.lines[l];
        let clears = line.in_last.without(but);
        if clears.is_empty() {
            return;
        }
        line.in_last = line.in_last.both(but);
        if line.crowds.last {
            let number = line.number;
            clears.iter().for_each(|cluster| self.last_levels[cluster].remove(l as u32, number));
        }
    }

    /// An access that has what it needs: what it costs beyond the first level's time.
    #[inline(always)]
    pub(super) fn hit(&mut self, worker: usize, place: Place, is_store: bool, now: Ps) -> Ps {
        let core = self.workers[worker].core;
        let line = &mut self.lines[place.line as usize];
        let held = &mut line.held[core];
        held.touched = place.word;
        if now < held.write_until {
            line.story.touch();
        }
        if !line.crowds.own || self.cores[core].last_line == place.line {
            return 0;
        }
        self.hit_in_crowd(worker, place.line, is_store)
    }

    fn hit_in_crowd(&mut self, worker: usize, line: u32, is_store: bool) -> Ps {
        let core = self.workers[worker].core;
        let (number, uses) = (self.lines[line as usize].number, self.next_use());
        if self.lines[line as usize].held[core].level != Level::Second {
            self.cores[core].first.touch(line, number, uses);
            self.note_use(core, line);
            return 0;
        }
        let conflict = self.cores[core].shadow.as_ref().is_none_or(|shadow| shadow.holds(line));
        let tally = &mut self.workers[worker].tally;
        tally.l1d_store_misses += u64::from(is_store);
        tally.l1d_load_misses += u64::from(!is_store);
        tally.conflict_misses += u64::from(conflict);
        tally.capacity_misses += u64::from(!conflict);
        self.cores[core].second.touch(line, number, uses);
        self.enter_first(core, line);
        self.prices.second
    }
}
