//! The measured loop: batches of compiled passes between clock reads, from the start line until all have left.
#![allow(unsafe_code)] // entering compiled code; touching the mapped area

use crate::batch::{BATCH_NS, Batch};
use crate::compile::{CompiledLoop, Progress};
use crate::context::Context;
use crate::failure::Failure;
use crate::gate::Gatekeeper;
use crate::pace::Pace;
use plan::PAGE_BYTES;
use shm_layout::{Gate, Phase, Segment, WorkerState, ticks};
use std::sync::atomic::{AtomicU8, Ordering};

/// Fills this process's page tables for the whole segment: the memory itself was reserved before. After pinning.
pub(crate) fn touch(segment: &Segment) {
    let map = segment.map();
    for offset in (0..map.area_bytes).step_by(PAGE_BYTES as usize) {
        // SAFETY: inside the area; an atomic or of zero changes nothing and is a write access, which maps the page.
        let byte = unsafe { (*segment.area().add(offset as usize).cast::<AtomicU8>()).fetch_or(0, Ordering::Relaxed) };
        // Used, or the optimiser may drop an operation that changes nothing.
        std::hint::black_box(byte);
    }
    for worker in 0..map.workers {
        std::hint::black_box(segment.slot(worker).court.ball.load(Ordering::Relaxed));
    }
}

/// Runs passes from now until every worker has left the window.
///
/// # Errors
/// [`Failure`] where a lock failed or the repetition was given up.
pub(crate) fn run(
    compiled: &mut CompiledLoop,
    context: &mut Context<'_>,
    gatekeeper: &mut Gatekeeper<'_>,
) -> Result<(), Failure> {
    let segment = context.segment;
    // First and last: what is read around the window must not hold the time at a gate.
    gatekeeper.pass(Gate::BeforeWarmUp)?;
    context.recorder.around();
    context.recorder.price(segment.control(), segment.slot(context.index), context.workers);
    context.paging.iter_mut().for_each(|paging| paging.price());
    segment.slot(context.index).set_state(WorkerState::Running);
    work(compiled, context);
    context.recorder.around();
    match context.failure.take() {
        Some(failure) => Err(failure),
        None if segment.control().phase() == Phase::Aborted => Err(Failure::aborted()),
        None => gatekeeper.pass(Gate::AfterWindow),
    }
}

/// The worker's loop, from when it is due until every worker has left the window.
pub(crate) fn work(compiled: &mut CompiledLoop, context: &mut Context<'_>) {
    wait_for_work(context);
    if context.latency.is_some() || context.schedule.is_some() {
        passes_one_by_one(compiled, context);
    } else {
        passes(compiled, context);
    }
}

/// Where the role begins after the window: reads the clock until then, about as often as passes would, so that the mask
/// sees this worker evicted. The first read arrives at the start line.
fn wait_for_work(context: &mut Context<'_>) {
    if !context.recorder.works_later() {
        return;
    }
    let (control, apart) = (context.segment.control(), context.segment.tick_rate().ticks(BATCH_NS));
    let (mut now, mut next) = (ticks(), 0);
    while !control.must_stop() && !context.recorder.work_is_due(now) {
        if now >= next {
            context.read(now);
            next = now + apart;
        }
        std::hint::spin_loop();
        now = ticks();
    }
    context.recorder.begin_work();
}

/// Makes `passes` passes, or as many as go before one blocks for long, and reads the clock, which it gives as well.
pub(crate) fn batch(compiled: &mut CompiledLoop, context: &mut Context<'_>, passes: u64) -> (Progress, u64) {
    let (area, handle) = (context.segment.area(), context.handle());
    // SAFETY: the area holds every offset of the Program (`Segment::attach` checked), and is that of the segment that
    // the loop was compiled for; only hooks touch the context until this returns.
    let progress = unsafe { compiled.run(area, handle, passes) };
    let now = ticks();
    context.recorder.completed(progress.passes, now);
    context.read(now);
    (progress, now)
}

fn passes(compiled: &mut CompiledLoop, context: &mut Context<'_>) {
    let segment = context.segment;
    let mut length = Batch::new(compiled.unroll(), segment.tick_rate());
    let mut last = ticks();
    while !segment.control().must_stop() && context.failure.is_none() {
        let (progress, now) = batch(compiled, context, length.passes());
        if progress.gave_up_in.is_some() {
            context.gave_up_in = progress.gave_up_in;
            return;
        }
        length.took(now - last);
        // Entering the window opens counters: that time belongs to no batch.
        last = context.recorder.last_read();
    }
}

/// Passes with a clock read on both sides of each, on the schedule of an open loop.
fn passes_one_by_one(compiled: &mut CompiledLoop, context: &mut Context<'_>) {
    let segment = context.segment;
    let area = segment.area();
    let mut pace = Pace::new(context.schedule, ticks());
    while !segment.control().must_stop() && context.failure.is_none() {
        let Some(start) = idle_until_due(context, &mut pace) else { return };
        let intended = pace.due().unwrap_or(start);
        pace.begin();
        let was_inside = context.recorder.inside();
        let handle = context.handle();
        // SAFETY: as in `batch`.
        let progress = unsafe { compiled.run(area, handle, 1) };
        let end = ticks();
        if progress.passes > 0 && context.recorder.counts(end) {
            context.latency.iter_mut().for_each(|latency| latency.note(intended, start, end));
        }
        context.recorder.completed(progress.passes, end);
        context.read(end);
        if progress.gave_up_in.is_some() {
            context.gave_up_in = progress.gave_up_in;
            return;
        }
        restart_where_the_window_opened(context, was_inside, &mut pace);
    }
}

/// Reads the clock until the next pass is due, and says when that was; `None` once told to stop. The idling is timed as
/// blocking, in stretches as long as a batch, so that an eviction in it asks the run queue like one in any blocking.
fn idle_until_due(context: &mut Context<'_>, pace: &mut Pace) -> Option<u64> {
    let stretch = context.segment.tick_rate().ticks(BATCH_NS);
    let mut from = ticks();
    let mut now = from;
    while pace.due().is_some_and(|due| now < due) {
        if now - from >= stretch {
            let was_inside = context.recorder.inside();
            context.blocked(from, now);
            context.read(now);
            restart_where_the_window_opened(context, was_inside, pace);
            if context.segment.control().must_stop() {
                return None;
            }
            from = context.recorder.last_read();
        }
        std::hint::spin_loop();
        now = ticks();
    }
    if now > from {
        context.blocked(from, now);
    }
    Some(now)
}

/// Opening counters is the lab's doing: passes that were due meanwhile would look late.
fn restart_where_the_window_opened(context: &Context<'_>, was_inside: bool, pace: &mut Pace) {
    if context.recorder.inside() && !was_inside {
        pace.restart(context.recorder.last_read());
    }
}
