//! One worker's locks: what its hooks do where compiled code cannot go on by itself, and what is recorded of each.
//!
//! Compiled code acquires and releases what nobody else wants (`compile/locking.rs`) and counts it; here come the
//! acquisitions whose first attempt failed, the handoffs, the sampled holds, and the releases of what was contended or
//! is sampled. A contended acquisition is timed from the failed first attempt until it is owned. In a `plain` arm
//! nothing is timed.
#![allow(unsafe_code)] // views of the mapped area: lock words

use crate::compile::{LockCell, NEVER};
use crate::context::Context;
use crate::failure::Failure;
use crate::markers::{self, Place};
use crate::recorder::{Recorder, touched};
use plan::{LockKind, OpKind, Program, WorkerProgram};
use record::{HOLD_SAMPLING, LockTrace, TickSpan};
use shm_layout::lock::{Acquired, Attempt, Effort, LockError, Released, SharedLock};
use shm_layout::{Phase, Segment, ticks};
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

/// Contended waits that a lock's log holds: one each 200 ns of window, which no lock here reaches.
const WAIT_NS: u64 = 200;
/// Acquisitions of which a log of sampled holds has one in [`HOLD_SAMPLING`]: one each 10 ns, which the cheapest free
/// lock alone undercuts, with an empty section. Sampling stops where the log is full.
const HOLD_NS: u64 = 10;
/// Bounds of both logs.
const ENTRIES: RangeInclusive<u64> = 4_096..=1_000_000;

/// Times that readers read again between two clock reads: a stream of writers may keep one from ever finishing, and the
/// clock has to be read all the same.
const RETRIES_A_READ: u32 = 64;

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

/// How an acquisition came out.
enum Taken {
    /// It is owned.
    Owned(Acquired),
    /// The time was up first.
    TimedOut,
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

/// Whether waiters of a repetition are to leave.
fn is_aborted(segment: &Segment) -> bool {
    segment.control().phase() == Phase::Aborted
}

/// Takes lock `index` for a `lock` or `rlock` step whose first attempt came to `told`. False where it is not owned: the
/// time was up, or it failed, which was noted and ends the loop after this pass.
pub(crate) fn acquire(
    context: &mut Context<'_>,
    index: u32,
    shared: bool,
    timeout: Option<Duration>,
    told: i64,
) -> bool {
    let first = |state: &mut LockState<'_>| state.lock.settle(shared, told);
    match take(context, index, shared, timeout, first) {
        Ok(Taken::Owned(acquired)) => {
            if let Some((state, cell)) = context.locks.get(index) {
                state.note(cell, acquired);
            }
            true
        }
        Ok(Taken::TimedOut) => {
            if let Some((state, _)) = context.locks.get(index) {
                state.trace.timeouts += u64::from(state.counts);
            }
            false
        }
        Err(error) => {
            fail(context, index, &error);
            false
        }
    }
}

/// The first attempt, and the wait where it is contended: timed, unless this is a `plain` arm.
fn take<'s>(
    context: &mut Context<'s>,
    index: u32,
    shared: bool,
    timeout: Option<Duration>,
    first: impl FnOnce(&mut LockState<'s>) -> Result<Attempt, LockError>,
) -> Result<Taken, LockError> {
    let slot = context.segment.slot(context.index);
    let Some((state, _)) = context.locks.get(index) else { return Err(LockError::NotHeld) };
    slot.set_waits_for(Some(index));
    let taken = match first(state)? {
        Attempt::Acquired(acquired) => Taken::Owned(acquired),
        Attempt::Contended => wait(context, index, shared, timeout)?,
    };
    // Not where it failed: the slot goes on to say what an abandoned wait was for; its owner is asked for.
    slot.set_waits_for(None);
    if matches!(taken, Taken::Owned(Acquired { owner_died: true, .. })) {
        slot.set_took_over(index);
    }
    Ok(taken)
}

/// A contended wait, from its begin to its end. Once the lock is owned others may wait for it, so that all that can be
/// noted later is: at its release, or at the next clock read.
fn wait(context: &mut Context<'_>, index: u32, shared: bool, timeout: Option<Duration>) -> Result<Taken, LockError> {
    let (segment, timed) = (context.segment, context.timed_locks);
    context.note_wait();
    let Some((state, cell)) = context.locks.get(index) else { return Err(LockError::NotHeld) };
    let mut effort = Effort::default();
    // The markers lie outside the two clock reads: what a tracer costs there is in its own figures, not in the lab's.
    if timed {
        markers::lock_contended(state.place);
    }
    let start_ticks = if timed { ticks() } else { 0 };
    let waited = state.wait(shared, timeout, &mut effort, &|| is_aborted(segment));
    let end = if timed { ticks() } else { 0 };
    state.note_effort(effort);
    let owned = matches!(waited, Ok(Some(_)));
    if timed && owned {
        state.owned_at = Some(end);
        cell.by_hook.set(1);
        markers::lock_acquired(state.place);
        context.locks.unnoted = Some((index, TickSpan { start_ticks, ticks: end - start_ticks }));
    } else if timed {
        context.blocked(start_ticks, end);
    }
    Ok(waited?.map_or(Taken::TimedOut, Taken::Owned))
}

/// Compiled code has acquired lock `index` exclusively, which it has not counted yet, behind another or as the first.
pub(crate) fn hand_off(context: &mut Context<'_>, index: u32) {
    let Some((state, cell)) = context.locks.get(index) else { return };
    if state.lock.note_owner() && state.counts {
        state.note_handoff(cell);
    }
}

/// Begins to time the hold of lock `index`, which is owned and counted. The release that ends it goes by the hook.
pub(crate) fn sample(context: &mut Context<'_>, index: u32, shared: bool) {
    let Some((state, cell)) = context.locks.get(index) else { return };
    let tally = cell.tally(shared && state.kind.shares_readers());
    let has_room_for_another = state.trace.holds.len() + 1 < state.trace.holds.capacity();
    tally.sample_at.set(if has_room_for_another { tally.acquired.get() + HOLD_SAMPLING } else { NEVER });
    cell.by_hook.set(1);
    state.hold_since = Some(state.owned_at.unwrap_or_else(ticks));
}

/// Releases lock `index` for an `unlock` or `runlock` step. True where a reader has to read again: it is held anew.
pub(crate) fn release(context: &mut Context<'_>, index: u32, shared: bool, told: i64) -> bool {
    let segment = context.segment;
    let Some((state, cell)) = context.locks.get(index) else { return false };
    cell.by_hook.set(0);
    let held = state.hold_since.map(|start_ticks| TickSpan { start_ticks, ticks: ticks() - start_ticks });
    match state.lock.release_for(shared, told, &|| is_aborted(segment)) {
        Ok(Released::Done) => {
            if state.owned_at.is_some() {
                markers::lock_released(state.place);
            }
            (state.owned_at, state.hold_since) = (None, None);
            state.trace.holds.extend(held);
            context.note_wait();
            false
        }
        Ok(Released::ReadAgain) => read_again(context, index),
        Err(error) => {
            fail(context, index, &error);
            false
        }
    }
}

/// Does what compiled code's release of lock `index` left to do.
pub(crate) fn finish_release(context: &mut Context<'_>, index: u32, told: i64) {
    let Some((state, _)) = context.locks.get(index) else { return };
    if let Err(error) = state.lock.release_after(told) {
        fail(context, index, &error);
    }
}

/// Takes a sequence lock again for a reader whose reading was torn. That is part of the same acquisition: it is neither
/// counted again nor has it a timeout, and its waits are timed as blocking, not logged.
fn read_again(context: &mut Context<'_>, index: u32) -> bool {
    context.note_wait();
    let Some((state, cell)) = context.locks.get(index) else { return false };
    cell.by_hook.set(1);
    state.trace.retries += u64::from(state.counts);
    state.reread = state.reread.wrapping_add(1);
    if state.reread.is_multiple_of(RETRIES_A_READ) {
        context.read_inside_batch(ticks());
    }
    let taken = if is_aborted(context.segment) {
        Err(LockError::Abandoned)
    } else {
        take(context, index, true, None, |state| state.lock.try_acquire(true))
    };
    if let Some((_, wait)) = context.locks.take_unnoted() {
        context.blocked(wait.start_ticks, wait.start_ticks + wait.ticks);
    }
    match taken {
        Ok(_) => true,
        Err(error) => {
            fail(context, index, &error);
            false
        }
    }
}

/// Notes the first failure and ends the loop after this pass. A wait that was given up is none of its own: the
/// repetition was given up.
fn fail(context: &mut Context<'_>, index: u32, error: &LockError) {
    context.break_after_pass();
    if *error != LockError::Abandoned
        && let Some((state, _)) = context.locks.get(index)
    {
        let failure = Failure::lock(&state.name, error);
        context.failure.get_or_insert(failure);
    }
}
