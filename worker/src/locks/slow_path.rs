//! What the hooks do about locks where compiled code cannot go on by itself (the other side of
//! [`FastPath`](shm_layout::lock::FastPath)): acquisitions whose first attempt failed, handoffs, sampled holds, and
//! releases of what was contended or is sampled.
//!
//! A contended acquisition is timed from the failed first attempt until it is owned. In a `plain` arm nothing is timed.

use super::LockState;
use crate::compile::NEVER;
use crate::context::Context;
use crate::failure::Failure;
use crate::markers;
use record::{HOLD_SAMPLING, TickSpan};
use shm_layout::lock::{Acquired, Attempt, Effort, LockError, Released};
use shm_layout::{Phase, Segment, ticks};
use std::time::Duration;

/// Times that readers read again between two clock reads: a stream of writers may keep one from ever finishing, and the
/// clock has to be read all the same.
const RETRIES_A_READ: u32 = 64;

/// How an acquisition came out.
enum Taken {
    /// It is owned.
    Owned(Acquired),
    /// The time was up first.
    TimedOut,
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
