//! One worker's locks: what is recorded of each, in the window and around it.
//!
//! Compiled code acquires and releases what nobody else wants (`compile/locking.rs`) and counts it in a lock's cell;
//! what it cannot do by itself the hooks do ([`slow_path`]), and note here. In a `plain` arm nothing is timed.
#![allow(unsafe_code)] // locks in the mapped area

pub(crate) mod slow_path;

use crate::compile::{LockCell, NEVER};
use crate::markers::Place;
use crate::recorder::Recorder;
use crate::resident::touched;
use plan::{LockKind, OpKind, Program, WorkerProgram};
use record::{HOLD_SAMPLING, LockTrace, TickSpan};
use shm_layout::Segment;
use shm_layout::lock::{Acquired, Effort, LockError, SharedLock};
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

/// Contended waits that a lock's log holds: one each 200 ns of window, which no lock here reaches.
const WAIT_NS: u64 = 200;
/// Acquisitions of which a log of sampled holds has one in [`HOLD_SAMPLING`]: one each 10 ns, which the cheapest free
/// lock alone undercuts, with an empty section. Sampling stops where the log is full.
const HOLD_NS: u64 = 10;
/// Bounds of both logs.
const ENTRIES: RangeInclusive<u64> = 4_096..=1_000_000;

/// A worker's locks.
pub(crate) struct Locks<'s> {
    /// By the Program's index. Compiled code has their address.
    cells: Vec<LockCell>,
    /// The same of those that this worker uses.
    states: Vec<Option<LockState<'s>>>,
    /// Their indices.
    used: Vec<usize>,
    /// A timed wait for a lock that is owned since, until there is time to note it.
    unnoted: Option<(u32, TickSpan)>,
}

/// One lock as this worker uses it, for the whole repetition.
struct LockState<'s> {
    name: String,
    kind: LockKind,
    lock: SharedLock<'s>,
    /// What the markers say.
    place: Place,
    /// When the contended wait for it ended, while it is held behind one.
    owned_at: Option<u64>,
    /// When the sampled hold began, while there is one.
    hold_since: Option<u64>,
    /// Whether the window is open: acquisitions count.
    counts: bool,
    /// Acquisitions, as an owner and as a reader, before the window opened.
    before_window: (u64, u64),
    /// Acquisitions when the clock was last known.
    seen: u64,
    /// Acquisitions as an owner before the present run began, or the window.
    before_run: u64,
    /// The last acquisition in the window as far as the clock is known; 0 before the first.
    last_acquired: u64,
    /// Times a reader had to read again, in and outside the window.
    reread: u32,
    trace: LockTrace,
}

impl<'s> Locks<'s> {
    /// Those of `program`, of which `me` uses some.
    pub(crate) fn new(segment: &'s Segment, program: &Program, me: &WorkerProgram) -> Locks<'s> {
        let uses =
            |lock: usize| me.ops.iter().any(|op| matches!(op.kind, OpKind::Lock { lock: l, .. } if l as usize == lock));
        let used: Vec<usize> = (0..program.locks.len()).filter(|&lock| uses(lock)).collect();
        let state = |lock: usize| used.contains(&lock).then(|| LockState::new(segment, program, me, lock));
        let states = (0..program.locks.len()).map(state).collect();
        Locks { cells: LockCell::row(program.locks.len()), states, used, unnoted: None }
    }

    /// The first of the row that compiled code is given, which stays where it is as long as this lives.
    pub(crate) fn first_cell(&self) -> &LockCell {
        &self.cells[0]
    }

    /// The wait that was timed and not noted yet, with its lock.
    pub(crate) fn take_unnoted(&mut self) -> Option<(u32, TickSpan)> {
        self.unnoted.take()
    }

    /// Enters a timed wait for lock `index`, which is owned since.
    pub(crate) fn log_wait(&mut self, index: u32, wait: TickSpan, recorder: &Recorder) {
        if let Some((state, cell)) = self.get(index) {
            state.log_wait(cell, wait, recorder);
        }
    }

    fn get(&mut self, lock: u32) -> Option<(&mut LockState<'s>, &LockCell)> {
        let state = self.states.get_mut(lock as usize)?.as_mut()?;
        Some((state, &self.cells[lock as usize]))
    }

    fn each(&mut self, mut of: impl FnMut(&mut LockState<'s>, &LockCell)) {
        for &lock in &self.used {
            if let Some(state) = &mut self.states[lock] {
                of(state, &self.cells[lock]);
            }
        }
    }

    /// The clock goes on: what was acquired since it was last known was acquired then, as far as anybody knows. Before
    /// each clock read, and before a timed blocking is noted.
    pub(crate) fn look(&mut self, recorder: &Recorder) {
        if recorder.inside() {
            self.each(|state, cell| state.look(cell, recorder));
        }
    }

    /// The window has opened.
    pub(crate) fn open(&mut self, timed: bool) {
        self.each(|state, cell| state.open(cell, timed));
    }

    /// The window has closed.
    pub(crate) fn close(&mut self) {
        self.each(LockState::close);
    }

    /// What was recorded. `stretch`: from the worker's first work in the window to its close.
    pub(crate) fn into_traces(mut self, stretch: &Range<u64>) -> Vec<LockTrace> {
        self.close();
        self.states.into_iter().flatten().map(|state| state.into_trace(stretch)).collect()
    }
}

impl<'s> LockState<'s> {
    fn new(segment: &'s Segment, program: &Program, me: &WorkerProgram, lock: usize) -> LockState<'s> {
        let placed = &program.locks[lock];
        let reserved = |entries| touched(entries, TickSpan { start_ticks: 1, ticks: 1 });
        let holds = if program.timed_locks { reserved(holds_logged(program)) } else { Vec::new() };
        LockState {
            name: placed.name.clone(),
            kind: placed.kind,
            // SAFETY: the coordinator initialised every lock of the Program before it wrote the header, which
            // `Segment::attach` checked with the offsets and the worker's index; the segment outlives the context, of
            // which a worker has one.
            lock: unsafe { SharedLock::new(segment.lock_place(lock as u32), placed.kind, me.index.0) },
            place: Place { lock: lock as u32, worker: me.index.0, address: segment.lock_place(lock as u32).at.addr() },
            owned_at: None,
            hold_since: None,
            counts: false,
            before_window: (0, 0),
            seen: 0,
            before_run: 0,
            last_acquired: 0,
            reread: 0,
            trace: LockTrace {
                lock: lock as u32,
                waits: reserved(entries(program, WAIT_NS)),
                holds,
                ..LockTrace::default()
            },
        }
    }

    fn open(&mut self, cell: &LockCell, timed: bool) {
        let (owned, shared) = (cell.exclusive.acquired.get(), cell.shared.acquired.get());
        (self.counts, self.before_window, self.before_run, self.seen) = (true, (owned, shared), owned, cell.acquired());
        if timed {
            cell.exclusive.sample_at.set(owned + HOLD_SAMPLING);
            cell.shared.sample_at.set(shared + HOLD_SAMPLING);
        }
    }

    fn close(&mut self, cell: &LockCell) {
        if !std::mem::take(&mut self.counts) {
            return;
        }
        let (owned, shared) = (cell.exclusive.acquired.get(), cell.shared.acquired.get());
        self.trace.shared = shared - self.before_window.1;
        self.trace.acquisitions = owned - self.before_window.0 + self.trace.shared;
        self.end_run(cell);
        cell.exclusive.sample_at.set(NEVER);
        cell.shared.sample_at.set(NEVER);
    }

    fn look(&mut self, cell: &LockCell, recorder: &Recorder) {
        if cell.acquired() != self.seen {
            self.seen = cell.acquired();
            self.acquired_at(recorder.last_known(), recorder);
        }
    }

    /// It was acquired at a clock read, or then for all that is known.
    fn acquired_at(&mut self, known: u64, recorder: &Recorder) {
        // Past the close, which the next clock read will see, only the window's own part counts.
        let known = known.min(recorder.close_ticks());
        let since = self.last_acquired.max(recorder.work_ticks());
        self.trace.longest_gap_ticks = self.trace.longest_gap_ticks.max(known.saturating_sub(since));
        self.last_acquired = self.last_acquired.max(known);
    }

    /// This worker's run of acquisitions is over, or the window is.
    fn end_run(&mut self, cell: &LockCell) {
        let owned = cell.exclusive.acquired.get();
        self.trace.longest_run = self.trace.longest_run.max(owned - self.before_run);
        self.before_run = owned;
    }

    /// Goes on where compiled code's first attempt was no plain success, for `timeout` at most. `None`: the time was
    /// up.
    fn wait(
        &mut self,
        shared: bool,
        timeout: Option<Duration>,
        effort: &mut Effort,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Acquired>, LockError> {
        match timeout {
            None => self.lock.acquire(shared, effort, stop).map(Some),
            Some(timeout) => self.lock.acquire_until(shared, timeout, effort, stop),
        }
    }

    fn note_effort(&mut self, effort: Effort) {
        if self.counts {
            self.trace.spins += effort.spins;
            self.trace.futex_waits += effort.futex_waits;
        }
    }

    /// Notes an acquisition that compiled code has not counted yet.
    fn note(&mut self, cell: &LockCell, acquired: Acquired) {
        if !self.counts {
            return;
        }
        self.trace.owner_died += u64::from(acquired.owner_died);
        if acquired.handoff {
            self.note_handoff(cell);
        }
    }

    fn log_wait(&mut self, cell: &LockCell, wait: TickSpan, recorder: &Recorder) {
        if !self.counts {
            return;
        }
        self.trace.contended += 1;
        if self.trace.waits.len() < self.trace.waits.capacity() {
            self.trace.waits.push(wait);
        } else {
            self.trace.waits_lost += 1;
        }
        self.acquired_at(wait.start_ticks + wait.ticks, recorder);
        self.seen = cell.acquired();
    }

    fn note_handoff(&mut self, cell: &LockCell) {
        self.end_run(cell);
        self.trace.handoffs += 1;
    }

    /// The time since the last acquisition is a gap as well.
    fn into_trace(self, stretch: &Range<u64>) -> LockTrace {
        let last = stretch.end.saturating_sub(self.last_acquired.max(stretch.start));
        let mut trace = self.trace;
        trace.longest_gap_ticks = trace.longest_gap_ticks.max(last);
        trace
    }
}

/// Sampled holds that a lock's log has room for.
pub(crate) fn holds_logged(program: &Program) -> usize {
    entries(program, HOLD_NS * HOLD_SAMPLING)
}

fn entries(program: &Program, each_ns: u64) -> usize {
    (program.window.0 / each_ns).clamp(*ENTRIES.start(), *ENTRIES.end()) as usize
}
