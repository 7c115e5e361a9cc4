//! One worker's locks: how its steps take and release them, and what is recorded of each.
//!
//! An uncontended acquisition is counted, not timed; a contended one is timed from the failed first attempt until it is
//! owned. In a `plain` arm nothing is timed and the lock is taken by the library's own blocking call.
#![allow(unsafe_code)] // views of the mapped area: lock words

use crate::context::Context;
use crate::failure::Failure;
use crate::recorder::{Recorder, touched};
use plan::{LockKind, OpKind, Program, WorkerProgram};
use record::{HOLD_SAMPLING, LockTrace, Wait};
use shm_layout::lock::{Acquired, Attempt, Effort, LockError, Released, SharedLock};
use shm_layout::{Phase, Segment, Slot, ticks};
use std::ops::{Range, RangeInclusive};
use std::time::Duration;

/// Contended waits that a lock's log holds: one each 200 ns of window, which no lock here reaches, within these bounds.
/// As many sampled holds: sampling stops where that log is full.
const WAIT_NS: u64 = 200;
const WAITS: RangeInclusive<u64> = 4_096..=1_000_000;

/// Times that readers read again between two clock reads: a stream of writers may keep one from ever finishing, and the
/// clock has to be read all the same.
const RETRIES_A_READ: u32 = 64;

/// One lock as this worker uses it, for the whole repetition: queueing kinds keep their place in it.
pub(crate) struct LockState<'s> {
    name: String,
    kind: LockKind,
    lock: SharedLock<'s>,
    held: Option<Part>,
    /// When the sampled hold began, while there is one.
    hold_since: Option<u64>,
    /// Acquisitions until the next sampled hold.
    until_sample: u64,
    /// The last acquisition in the window as far as the clock is known; 0 before the first.
    last_acquired: u64,
    /// Times a reader had to read again, in and outside the window.
    reread: u32,
    trace: LockTrace,
}

/// As what a worker takes a lock.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Part {
    shared: bool,
}

/// How an acquisition came out.
enum Taken {
    /// It is owned, after the wait where the first attempt had failed.
    Owned(Acquired, Option<Wait>),
    /// The time was up first, after this wait.
    TimedOut(Option<Wait>),
}

impl Taken {
    /// The wait, where it was timed.
    fn wait(&self) -> Option<Wait> {
        let (Taken::Owned(_, wait) | Taken::TimedOut(wait)) = self;
        *wait
    }
}

impl<'s> LockState<'s> {
    /// By the Program's index, those locks that `me` uses.
    pub(crate) fn all(segment: &'s Segment, program: &Program, me: &WorkerProgram) -> Vec<Option<LockState<'s>>> {
        let uses =
            |lock: usize| me.ops.iter().any(|op| matches!(op.kind, OpKind::Lock { lock: l, .. } if l as usize == lock));
        let capacity = (program.window.0 / WAIT_NS).clamp(*WAITS.start(), *WAITS.end()) as usize;
        let reserved = |entries| touched(entries, Wait { start_ticks: 1, ticks: 1 });
        let state = |(index, placed): (usize, &plan::PlacedLock)| {
            uses(index).then(|| LockState {
                name: placed.name.clone(),
                kind: placed.kind,
                // SAFETY: the coordinator initialised every lock of the Program before it wrote the header, which
                // `Segment::attach` checked with the offsets and the worker's index; the segment outlives the context,
                // of which a worker has one.
                lock: unsafe { SharedLock::new(segment.lock_place(index as u32), placed.kind, me.index.0) },
                held: None,
                hold_since: None,
                until_sample: HOLD_SAMPLING,
                last_acquired: 0,
                reread: 0,
                trace: LockTrace {
                    lock: index as u32,
                    waits: reserved(capacity),
                    holds: if program.timed_locks { reserved(capacity / HOLD_SAMPLING as usize) } else { Vec::new() },
                    ..LockTrace::default()
                },
            })
        };
        program.locks.iter().enumerate().map(state).collect()
    }

    /// The first attempt, and where it fails the wait with a clock read on both sides.
    fn take_timed(
        &mut self,
        shared: bool,
        timeout: Option<Duration>,
        (slot, recorder): (&Slot, &mut Recorder),
        stop: &dyn Fn() -> bool,
    ) -> Result<Taken, LockError> {
        if let Attempt::Acquired(acquired) = self.lock.try_acquire(shared)? {
            return Ok(Taken::Owned(acquired, None));
        }
        let mut effort = Effort::default();
        slot.set_waits_for(Some(self.trace.lock));
        let start_ticks = ticks();
        let waited = self.wait(shared, timeout, &mut effort, stop);
        let end = ticks();
        recorder.blocked(start_ticks, end);
        self.note_effort(effort, recorder);
        let acquired = waited?; // the slot goes on to say what an abandoned wait was for: its owner is asked for
        slot.set_waits_for(None);
        let wait = Some(Wait { start_ticks, ticks: end - start_ticks });
        Ok(acquired.map_or(Taken::TimedOut(wait), |acquired| Taken::Owned(acquired, wait)))
    }

    /// As a program does that times nothing.
    fn take_plainly(
        &mut self,
        shared: bool,
        timeout: Option<Duration>,
        (slot, recorder): (&Slot, &mut Recorder),
        stop: &dyn Fn() -> bool,
    ) -> Result<Taken, LockError> {
        let mut effort = Effort::default();
        slot.set_waits_for(Some(self.trace.lock));
        let acquired = match timeout {
            None => self.lock.acquire_plain(shared, &mut effort, stop).map(Some),
            // Its time begins where the first attempt has failed, as in the other arms.
            Some(_) => match self.lock.try_acquire(shared)? {
                Attempt::Acquired(acquired) => Ok(Some(acquired)),
                Attempt::Contended => self.wait(shared, timeout, &mut effort, stop),
            },
        };
        self.note_effort(effort, recorder);
        let acquired = acquired?;
        slot.set_waits_for(None);
        Ok(acquired.map_or(Taken::TimedOut(None), |acquired| Taken::Owned(acquired, None)))
    }

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

    fn note_effort(&mut self, effort: Effort, recorder: &Recorder) {
        if recorder.inside() {
            self.trace.spins += effort.spins;
            self.trace.futex_waits += effort.futex_waits;
        }
    }

    /// Notes an acquisition inside the window, and begins a sampled hold where it is time for one.
    fn note(&mut self, acquired: Acquired, wait: Option<Wait>, shared: bool, timed: bool, recorder: &Recorder) {
        let trace = &mut self.trace;
        trace.acquisitions += 1;
        trace.shared += u64::from(shared && self.kind.shares_readers());
        trace.handoffs += u64::from(acquired.handoff);
        trace.owner_died += u64::from(acquired.owner_died);
        trace.longest_run = trace.longest_run.max(acquired.run.max(acquired.ended_run).into());
        let owned_at = wait.map(|wait| wait.start_ticks + wait.ticks);
        if let Some(wait) = wait {
            trace.contended += 1;
            if trace.waits.len() < trace.waits.capacity() {
                trace.waits.push(wait);
            } else {
                trace.waits_lost += 1;
            }
        }
        // Past the close, which the next clock read will see, only the window's own part counts.
        let known = owned_at.unwrap_or_else(|| recorder.last_known()).min(recorder.close_ticks());
        let since = self.last_acquired.max(recorder.work_ticks());
        trace.longest_gap_ticks = trace.longest_gap_ticks.max(known.saturating_sub(since));
        self.last_acquired = known;
        self.until_sample -= 1;
        if self.until_sample == 0 {
            self.until_sample = HOLD_SAMPLING;
            if timed && self.trace.holds.len() < self.trace.holds.capacity() {
                self.hold_since = Some(owned_at.unwrap_or_else(ticks));
            }
        }
    }

    /// What was recorded. `stretch`: from the worker's first work in the window to its close; the time since the last
    /// acquisition is a gap as well.
    pub(crate) fn into_trace(self, stretch: &Range<u64>) -> LockTrace {
        let last = stretch.end.saturating_sub(self.last_acquired.max(stretch.start));
        let mut trace = self.trace;
        trace.longest_gap_ticks = trace.longest_gap_ticks.max(last);
        trace
    }
}

/// Whether waiters of a repetition are to leave.
fn is_aborted(segment: &Segment) -> bool {
    segment.control().phase() == Phase::Aborted
}

/// Takes lock `index` as a `lock` or `rlock` step does. False where it is not owned: the time was up, or it failed,
/// which was noted and ends the loop after this pass.
pub(crate) fn acquire(context: &mut Context<'_>, index: u32, shared: bool, timeout: Option<Duration>) -> bool {
    let taken = take(context, index, shared, timeout);
    let Some(Some(state)) = context.locks.get_mut(index as usize) else { return false };
    match taken {
        Ok(Taken::Owned(acquired, wait)) => {
            state.held = Some(Part { shared });
            context.segment.slot(context.index).set_holds(index, true);
            if context.recorder.inside() {
                state.note(acquired, wait, shared, context.timed_locks, &context.recorder);
            }
            true
        }
        Ok(Taken::TimedOut(_)) => {
            state.trace.timeouts += u64::from(context.recorder.inside());
            false
        }
        Err(error) => {
            fail(context, index, &error);
            false
        }
    }
}

fn take(context: &mut Context<'_>, index: u32, shared: bool, timeout: Option<Duration>) -> Result<Taken, LockError> {
    let segment = context.segment;
    let Some(Some(state)) = context.locks.get_mut(index as usize) else { return Err(LockError::NotHeld) };
    let watched = (segment.slot(context.index), &mut context.recorder);
    let stop = &|| is_aborted(segment);
    if !context.timed_locks {
        return state.take_plainly(shared, timeout, watched, stop);
    }
    let taken = state.take_timed(shared, timeout, watched, stop)?;
    taken.wait().into_iter().for_each(|wait| context.break_after_long(wait.ticks));
    Ok(taken)
}

/// Releases lock `index` as an `unlock` or `runlock` step does. True where a reader has to read again: it is held anew.
pub(crate) fn release(context: &mut Context<'_>, index: u32, shared: bool) -> bool {
    let segment = context.segment;
    let Some(Some(state)) = context.locks.get_mut(index as usize) else { return false };
    if state.held.take().is_none() {
        return false; // its acquisition failed, and that was noted
    }
    let held = state.hold_since.map(|start_ticks| Wait { start_ticks, ticks: ticks() - start_ticks });
    match state.lock.release(shared, &|| is_aborted(segment)) {
        Ok(Released::Done) => {
            segment.slot(context.index).set_holds(index, false);
            state.hold_since = None;
            state.trace.holds.extend(held);
            false
        }
        Ok(Released::ReadAgain) => read_again(context, index),
        Err(error) => {
            fail(context, index, &error);
            false
        }
    }
}

/// Takes a sequence lock again for a reader whose reading was torn. That is part of the same acquisition: it is neither
/// counted again nor has it a timeout, and its waits are timed as blocking, not logged.
fn read_again(context: &mut Context<'_>, index: u32) -> bool {
    let Some(Some(state)) = context.locks.get_mut(index as usize) else { return false };
    state.trace.retries += u64::from(context.recorder.inside());
    state.reread = state.reread.wrapping_add(1);
    if state.reread.is_multiple_of(RETRIES_A_READ) {
        context.read_inside_batch(ticks());
    }
    let taken = if is_aborted(context.segment) { Err(LockError::Abandoned) } else { take(context, index, true, None) };
    match taken {
        Ok(_) => {
            if let Some(Some(state)) = context.locks.get_mut(index as usize) {
                state.held = Some(Part { shared: true });
            }
            true
        }
        Err(error) => {
            fail(context, index, &error);
            false
        }
    }
}

/// Notes the first failure and ends the loop after this pass. A wait that was given up is none of its own: the
/// repetition was given up.
fn fail(context: &mut Context<'_>, index: u32, error: &LockError) {
    context.break_now = 1;
    if *error != LockError::Abandoned
        && let Some(Some(state)) = context.locks.get(index as usize)
    {
        context.failure.get_or_insert_with(|| Failure::lock(&state.name, error));
    }
}

/// Gives back what a pass that was given up half-way still holds, so that the others can end their own passes. Only a
/// robust kind recovers what cannot be given back; with any other that is a failure.
pub(crate) fn release_held(context: &mut Context<'_>) {
    let segment = context.segment;
    for index in 0..context.locks.len() {
        let Some(state) = &mut context.locks[index] else { continue };
        let Some(part) = state.held.take() else { continue };
        match state.lock.release(part.shared, &|| is_aborted(segment)) {
            // A reader that would read again holds nothing, and is not going to read.
            Ok(Released::Done | Released::ReadAgain) => segment.slot(context.index).set_holds(index as u32, false),
            Err(_) if state.kind.is_robust() => {}
            Err(error) => fail(context, index as u32, &error),
        }
    }
}
