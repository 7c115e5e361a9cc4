//! A witness to a simulation, for tests: it looks at everything after every event and decision, and at every access.

use super::requests::Source;
use super::{Engine, Event};
use crate::line::{Asked, Held, Level, Line};
use crate::protocol::{Protocol, State};
use crate::script::Place;
use crate::time::Ps;
use plan::LockKind;
use std::collections::VecDeque;

/// Arrivals at a core in a row, none of which lets it touch memory: as many as it can have outstanding, and more means
/// that it gets nowhere.
const FRUITLESS: u32 = 2_000;

/// Events, or a worker's steps, at one instant: a few for each core, and more means that they go round in a circle.
const STILL: u32 = 20_000;

/// Every so many looks it looks at all lines.
const ALL_EACH: u64 = 32;

/// What one word has seen.
#[derive(Copy, Clone, Debug, Default)]
struct Word {
    value: u64,
    written_at: Ps,
    read_at: Ps,
    /// How often it was bumped, lost bumps included.
    bumps: u64,
}

/// What one lock has seen.
#[derive(Clone, Debug, Default)]
struct Lock {
    owner: Option<usize>,
    readers: Vec<usize>,
    /// Who has taken a place in its queue and does not own it yet.
    queue: VecDeque<usize>,
}

#[derive(Debug, Default)]
pub(super) struct Witness {
    words: Vec<Word>,
    locks: Vec<Lock>,
    /// From where the last request was served.
    pub(super) source: Option<Source>,
    /// When each line was asked for to write, and when it came.
    pub(super) takes: Vec<(Ps, Ps)>,
    /// Times that it looked.
    pub(super) looks: u64,
    fruitless: Vec<u32>,
    time: Ps,
    /// Events since time went on.
    still: u32,
    /// By worker: its time, and steps since that went on.
    steps: Vec<(Ps, u32)>,
}

impl Witness {
    /// How often a word was bumped.
    pub(super) fn bumps(&self, word: u32) -> u64 {
        self.words[word as usize].bumps
    }

    pub(super) fn of(engine: &Engine<'_>) -> Witness {
        Witness {
            // What begins as something else than nothing was written before time began.
            words: engine.values.iter().map(|&value| Word { value, ..Word::default() }).collect(),
            locks: vec![Lock::default(); engine.scripts.locks.len()],
            fruitless: vec![0; engine.cores.len()],
            steps: vec![(0, 0); engine.workers.len()],
            ..Witness::default()
        }
    }
}

fn meets((from, until): (Ps, Ps), (other_from, other_until): (Ps, Ps)) -> bool {
    from.max(other_from) < until.min(other_until)
}

impl Engine<'_> {
    /// A word is read from the caches: what was written last.
    pub(super) fn witness_read(&mut self, worker: usize, place: Place, at: Ps) {
        let core = self.workers[worker].core;
        let held = self.lines[place.line as usize].held[core];
        assert!(held.is_readable(at), "worker {worker} reads {place:?} at {at}: {held:?}");
        let Some(witness) = &mut self.witness else { return };
        let word = &mut witness.words[place.word as usize];
        assert!(word.written_at <= at, "worker {worker} reads at {at} what is written at {}", word.written_at);
        assert_eq!(word.value, self.values[place.word as usize], "{place:?} changed by nobody");
        word.read_at = word.read_at.max(at);
        witness.fruitless[core] = 0;
    }

    /// A word is written: after all that was read and written of it before.
    pub(super) fn witness_write(&mut self, worker: usize, place: Place, value: u64, at: Ps) {
        let core = self.workers[worker].core;
        let held = self.lines[place.line as usize].held[core];
        assert!(held.is_writable(at), "worker {worker} writes {place:?} at {at}: {held:?}");
        let Some(witness) = &mut self.witness else { return };
        let word = &mut witness.words[place.word as usize];
        assert!(word.written_at <= at, "worker {worker} writes at {at}, after a write at {}", word.written_at);
        assert!(word.read_at <= at, "worker {worker} writes at {at} what a read at {} has missed", word.read_at);
        *word = Word { value, written_at: at, read_at: at, ..*word };
        witness.fruitless[core] = 0;
    }

    /// A worker makes a step.
    pub(super) fn witness_step(&mut self, worker: usize) {
        let me = &self.workers[worker];
        let Some(witness) = &mut self.witness else { return };
        let (at, steps) = &mut witness.steps[worker];
        (*at, *steps) = (me.now, if *at == me.now { *steps + 1 } else { 0 });
        assert!(*steps < STILL, "worker {worker} stands still at {}: {:?} {:?}", me.now, me.phase, me.buffer);
    }

    /// A worker's core gets on without touching a word.
    pub(super) fn witness_use(&mut self, worker: usize) {
        let core = self.workers[worker].core;
        if let Some(witness) = &mut self.witness {
            witness.fruitless[core] = 0;
        }
    }

    pub(super) fn witness_bump(&mut self, place: Place) {
        if let Some(witness) = &mut self.witness {
            witness.words[place.word as usize].bumps += 1;
        }
    }

    pub(super) fn witness_source(&mut self, source: Source) {
        if let Some(witness) = &mut self.witness {
            witness.source = Some(source);
        }
    }

    pub(super) fn witness_take(&mut self, asked: Ps, comes: Ps) {
        if let Some(witness) = &mut self.witness {
            witness.takes.push((asked, comes));
        }
    }

    /// A worker takes its place in a lock's queue.
    pub(super) fn witness_queued(&mut self, worker: usize, lock: u32) {
        if let Some(witness) = &mut self.witness {
            witness.locks[lock as usize].queue.push_back(worker);
        }
    }

    /// A worker comes to own a lock: nobody else does, and who has a place in its queue is served in its turn.
    pub(super) fn witness_acquisition(&mut self, worker: usize, lock: u32, shared: bool) {
        let kind = self.scripts.locks[lock as usize].kind;
        let Some(witness) = &mut self.witness else { return };
        let lock = &mut witness.locks[lock as usize];
        if matches!(kind, LockKind::Ticket | LockKind::Mcs | LockKind::Clh) {
            assert_eq!(lock.queue.pop_front(), Some(worker), "{} out of turn; {lock:?}", kind.name());
        }
        if shared && kind == LockKind::Seqlock {
            return; // its readers keep nobody out, and nobody them
        }
        assert_eq!(lock.owner, None, "worker {worker} owns a {} as well", kind.name());
        if shared {
            lock.readers.push(worker);
        } else {
            assert!(lock.readers.is_empty(), "worker {worker} owns a {} that {:?} read", kind.name(), lock.readers);
            lock.owner = Some(worker);
        }
    }

    pub(super) fn witness_release(&mut self, worker: usize, lock: u32) {
        let Some(witness) = &mut self.witness else { return };
        let lock = &mut witness.locks[lock as usize];
        lock.readers.retain(|&reader| reader != worker);
        lock.owner = lock.owner.filter(|&owner| owner != worker);
    }

    /// An event has happened.
    pub(super) fn witness_event(&mut self, core: usize, event: Event) {
        let Event::Arrive { line } = event else { return self.look(None) };
        if let Some(witness) = &mut self.witness {
            witness.fruitless[core] += 1;
            assert!(witness.fruitless[core] < FRUITLESS, "core {core} is given lines and never comes to use them");
        }
        self.look(Some(line));
    }

    /// Looks at the line that something happened to, and now and then at all of them.
    pub(super) fn look(&mut self, line: Option<u32>) {
        let Some(witness) = &mut self.witness else { return };
        witness.looks += 1;
        assert!(witness.time <= self.time, "time goes back from {} to {}", witness.time, self.time);
        witness.still = if witness.time == self.time { witness.still + 1 } else { 0 };
        assert!(witness.still < STILL, "time stands still at {}: {:?}", self.time, self.calendar);
        witness.time = self.time;
        match line {
            _ if witness.looks.is_multiple_of(ALL_EACH) => (0..self.lines.len()).for_each(|l| self.look_at(l)),
            Some(l) => self.look_at(l as usize),
            None => {}
        }
    }

    fn look_at(&self, l: usize) {
        let line = &self.lines[l];
        if line.held.is_empty() {
            return;
        }
        self.look_at_intervals(line);
        self.look_at_states(line);
        for core in 0..self.cores.len() {
            self.look_at_levels(l as u32, line, core);
        }
        self.look_at_last_levels(l as u32, line);
    }

    /// One writer or many readers, at any instant.
    fn look_at_intervals(&self, line: &Line) {
        for (a, writer) in line.held.iter().enumerate().filter(|(_, held)| held.write_from < held.write_until) {
            for (b, reader) in line.held.iter().enumerate().filter(|&(b, _)| b != a) {
                let (writes, reads) = ((writer.write_from, writer.write_until), (reader.from, reader.read_until));
                assert!(!meets(writes, reads), "core {a} writes while core {b} reads: {writer:?} {reader:?}");
            }
        }
    }

    /// What the protocol allows, and that what is known of the copies is so.
    fn look_at_states(&self, line: &Line) {
        let with = |is_it: fn(State) -> bool| line.held.iter().filter(|held| is_it(held.state)).count();
        let (copies, suppliers) = (with(State::is_readable), with(State::supplies));
        assert!(suppliers <= 1, "two answer: {:?}", line.held);
        if with(State::is_writable) > 0 {
            assert_eq!(copies, 1, "one may write, and others have copies: {:?}", line.held);
        }
        for (core, held) in line.held.iter().enumerate() {
            assert_eq!(line.copies.has(core), held.state.is_readable());
            assert_eq!(line.supplier == Some(core as u32), held.state.supplies());
            let fits = match held.state {
                State::Owned => self.machine.protocol == Protocol::Moesi,
                State::Forward => self.machine.protocol == Protocol::Mesif,
                _ => true,
            };
            assert!(fits, "{:?} has no state {:?}", self.machine.protocol, held.state);
        }
    }

    /// The first level within the second, and that within an inclusive last one.
    fn look_at_levels(&self, l: u32, line: &Line, core: usize) {
        let held: &Held = &line.held[core];
        let of = &self.cores[core];
        if line.crowds.own {
            let (in_first, in_second) = (of.first.holds(l, line.number), of.second.holds(l, line.number));
            assert_eq!(in_first, held.level == Level::First, "{held:?}");
            assert_eq!(in_second, held.level != Level::Nowhere, "{held:?}");
        }
        let is_here = held.state.is_readable()
            && matches!(held.asked, Asked::Nothing | Asked::Ownership)
            && held.from <= self.time
            && held.level != Level::Nowhere;
        if held.asked == Asked::Nothing && held.state.is_readable() {
            assert!(held.from <= self.time && held.level != Level::Nowhere, "{held:?} at {}", self.time);
        }
        if is_here && self.machine.caches.llc_is_inclusive {
            assert!(line.in_last.has(of.cluster), "core {core} has what its inclusive last level has not: {held:?}");
        }
    }

    fn look_at_last_levels(&self, l: u32, line: &Line) {
        if line.crowds.last {
            for (cluster, last) in self.last_levels.iter().enumerate() {
                assert_eq!(last.holds(l, line.number), line.in_last.has(cluster), "cluster {cluster}, line {l}");
            }
        }
    }
}
