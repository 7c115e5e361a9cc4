//! What the compiled loop hands back to its hooks: this worker's view of the segment and its records.
#![allow(unsafe_code)] // views of the mapped area: lock words

use crate::failure::Failure;
use crate::probe::Reading;
use crate::recorder::{Recorder, touched};
use crate::region::Mapped;
use counters::Order;
use plan::{OpKind, Program, WorkerProgram};
use record::{LockTrace, Trace, Wait};
use shm_layout::lock::{Acquired, Attempt, Effort, SharedLock};
use shm_layout::{Phase, Segment, ticks};

/// Contended waits that a lock's log holds: one each 200 ns of window, which no lock here reaches, within these bounds.
const WAIT_NS: u64 = 200;
const WAITS: std::ops::RangeInclusive<u64> = 4_096..=1_000_000;

/// A blocking this long ends the batch, so that the clock is read about each 20 us.
const BREAK_AFTER_NS: u64 = 7_000;

/// This worker's state during a repetition. Its first member is what the compiled loop reads.
#[repr(C)]
pub(crate) struct Context<'s> {
    /// Non-zero: return to the runtime after this pass. Read by compiled code at offset 0.
    pub(crate) break_now: u32,
    pub(crate) spins: u32,
    break_after_ticks: u64,
    /// Whether the others know already that this worker runs passes.
    arrived: bool,
    pub(crate) recorder: Recorder,
    pub(crate) segment: &'s Segment,
    pub(crate) workers: u32,
    pub(crate) index: u32,
    /// Warm-up and window.
    pub(crate) window_ns: (u64, u64),
    pub(crate) failure: Option<Failure>,
    /// The step whose wait was given up.
    pub(crate) gave_up_in: Option<u32>,
    /// The Program's locks that this worker uses, by the Program's index.
    pub(crate) locks: Vec<Option<LockState<'s>>>,
    /// The Program's regions that this worker uses, by the Program's index.
    pub(crate) regions: Vec<Option<Mapped>>,
}

const _: () = assert!(std::mem::offset_of!(Context<'_>, break_now) == 0);

/// One lock as this worker uses it.
pub(crate) struct LockState<'s> {
    pub(crate) name: String,
    pub(crate) lock: SharedLock<'s>,
    pub(crate) held: bool,
    trace: LockTrace,
}

impl<'s> Context<'s> {
    pub(crate) fn new(
        segment: &'s Segment,
        program: &Program,
        me: &WorkerProgram,
        orders: &[Order],
        regions: Vec<Option<Mapped>>,
    ) -> Context<'s> {
        let rate = segment.header().tick_rate();
        let uses =
            |lock: usize| me.ops.iter().any(|op| matches!(op.kind, OpKind::Lock { lock: l, .. } if l as usize == lock));
        let locks = program.locks.iter().enumerate().map(|(index, placed)| {
            uses(index).then(|| {
                // SAFETY: the coordinator initialised every lock of the Program before it wrote the header, which
                // `Segment::attach` checked with the offsets and the worker's index; the segment outlives the context,
                // of which a worker has one.
                let lock = unsafe { SharedLock::new(segment.lock_place(index as u32), placed.kind, me.index.0) };
                let capacity = (program.window.0 / WAIT_NS).clamp(*WAITS.start(), *WAITS.end()) as usize;
                LockState {
                    name: placed.name.clone(),
                    lock,
                    held: false,
                    trace: LockTrace {
                        lock: index as u32,
                        acquisitions: 0,
                        contended: 0,
                        waits: touched(capacity, Wait { start_ticks: 1, ticks: 1 }),
                        waits_lost: 0,
                        handoffs: 0,
                        longest_run: 0,
                        owner_died: 0,
                        shared: 0,
                        holds: Vec::new(),
                        spins: 0,
                        futex_waits: 0,
                        retries: 0,
                        timeouts: 0,
                        longest_gap_ticks: 0,
                    },
                }
            })
        });
        Context {
            break_now: 0,
            spins: 0,
            break_after_ticks: rate.ticks(BREAK_AFTER_NS),
            arrived: false,
            recorder: Recorder::new(program, rate, orders).with_work_after(rate.ticks(me.after.0)),
            segment,
            workers: program.workers.len() as u32,
            index: me.index.0,
            window_ns: (program.warm_up.0, program.window.0),
            failure: None,
            gave_up_in: None,
            locks: locks.collect(),
            regions,
        }
    }

    /// A clock read. The first one, behind the first batch or inside a first `wait`, says that this worker runs: then
    /// it arrives at the start line, and the last to arrive opens the window.
    pub(crate) fn read(&mut self, now: u64) {
        self.arrive(now);
        self.recorder.read(now, self.segment.control(), self.segment.slot(self.index), self.workers);
    }

    /// The same from a hook, inside a batch.
    pub(crate) fn read_inside_batch(&mut self, now: u64) {
        self.arrive(now);
        self.recorder.read_inside_batch(now, self.segment.control(), self.segment.slot(self.index), self.workers);
    }

    fn arrive(&mut self, now: u64) {
        if !std::mem::replace(&mut self.arrived, true) {
            let rate = self.segment.header().tick_rate();
            let (warm_up, window) = self.window_ns;
            self.segment.control().arrive_ready(self.workers, now, rate.ticks(warm_up), rate.ticks(window));
        }
    }

    /// Ends the batch after a long blocking.
    pub(crate) fn break_after_long(&mut self, blocked_ticks: u64) {
        if blocked_ticks > self.break_after_ticks {
            self.break_now = 1;
        }
    }

    /// Gives back what a pass that was given up half-way still holds.
    pub(crate) fn release_held(&mut self) {
        for state in self.locks.iter_mut().flatten().filter(|s| s.held) {
            state.held = false;
            // A lock that cannot be given back is recovered by the next owner: it is robust.
            let _ = state.lock.release(false, &|| true);
        }
    }

    pub(crate) fn into_trace(self, cpu: u32, before: Reading, after: Reading) -> Trace {
        let recorded = self.recorder.finish();
        Trace {
            worker: self.index,
            pid: nix::unistd::getpid().as_raw(),
            cpu,
            open_ticks: recorded.open_ticks,
            work_ticks: recorded.work_ticks,
            close_ticks: recorded.close_ticks,
            passes: recorded.passes,
            span_ticks: recorded.span_ticks,
            slices: recorded.slices,
            gaps: recorded.gaps,
            gaps_lost: recorded.gaps_lost,
            queue_delays_lost: recorded.queue_delays_lost,
            read_distance_ticks: recorded.read_distance_ticks,
            read_cost_ticks: recorded.read_cost_ticks,
            blocked_ticks: recorded.blocked_ticks,
            queue_delays: recorded.queue_delays,
            noted_ticks: recorded.noted_ticks,
            transfer_before_ticks: before.transfer_ticks,
            transfer_after_ticks: after.transfer_ticks,
            contended_before_ticks: before.contended_ticks,
            contended_after_ticks: after.contended_ticks,
            core_loop_before_ticks: before.core_loop_ticks,
            core_loop_after_ticks: after.core_loop_ticks,
            counters: recorded.counters,
            latency: None,
            locks: self.locks.into_iter().flatten().map(|state| state.trace).collect(),
            stuck_in_step: self.gave_up_in.filter(|_| recorded.passes == 0),
        }
    }
}

impl LockState<'_> {
    /// Notes an acquisition inside the window; `waited` is the start and length of a contended one.
    pub(crate) fn note(&mut self, acquired: Acquired, waited: Option<(u64, u64)>) {
        let trace = &mut self.trace;
        trace.acquisitions += 1;
        trace.handoffs += u64::from(acquired.handoff);
        trace.owner_died += u64::from(acquired.owner_died);
        trace.longest_run = trace.longest_run.max(u64::from(acquired.run));
        if let Some((start_ticks, ticks)) = waited {
            trace.contended += 1;
            if trace.waits.len() < trace.waits.capacity() {
                trace.waits.push(Wait { start_ticks, ticks });
            } else {
                trace.waits_lost += 1;
            }
        }
    }
}

/// Acquires lock `index` as the `lock` step does: try, and only when that fails read the clock and block.
pub(crate) fn acquire(context: &mut Context<'_>, index: u32) {
    let Some(Some(state)) = context.locks.get_mut(index as usize) else { return };
    let slot = context.segment.slot(context.index);
    let stop = &|| context.segment.control().phase() == Phase::Aborted;
    let (result, waited) = match state.lock.try_acquire(false) {
        Ok(Attempt::Acquired(acquired)) => (Ok(acquired), None),
        Ok(Attempt::Contended) => {
            slot.set_waits_for(Some(index));
            let start = ticks();
            let result = state.lock.acquire(false, &mut Effort::default(), stop);
            let end = ticks();
            slot.set_waits_for(None);
            context.recorder.blocked(start, end);
            if end - start > context.break_after_ticks {
                context.break_now = 1;
            }
            (result, Some((start, end - start)))
        }
        Err(error) => (Err(error), None),
    };
    match result {
        Ok(acquired) => {
            state.held = true;
            slot.set_holds(index, true);
            if context.recorder.inside() {
                state.note(acquired, waited);
            }
        }
        Err(error) => {
            context.failure = Some(Failure::lock(&state.name, &error));
            context.break_now = 1;
        }
    }
}

/// Releases lock `index`.
pub(crate) fn release(context: &mut Context<'_>, index: u32) {
    let Some(Some(state)) = context.locks.get_mut(index as usize) else { return };
    if !std::mem::take(&mut state.held) {
        return; // its acquisition failed, and that was noted
    }
    context.segment.slot(context.index).set_holds(index, false);
    let stop = &|| context.segment.control().phase() == Phase::Aborted;
    if let Err(error) = state.lock.release(false, stop) {
        context.failure = Some(Failure::lock(&state.name, &error));
        context.break_now = 1;
    }
}
