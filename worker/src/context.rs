//! What the compiled loop hands back to its hooks: this worker's view of the segment and its records.

use crate::compile::LockCell;
use crate::failure::Failure;
use crate::latency::Latency;
use crate::locks::Locks;
use crate::pace::Schedule;
use crate::probe::Reading;
use crate::recorder::Recorder;
use crate::region::{Paging, Views};
use counters::Order;
use plan::{Program, WorkerProgram};
use record::{CostProbe, Trace};
use shm_layout::Segment;
use std::sync::Arc;

/// A blocking this long ends the batch, so that the clock is read about each 20 us.
const BREAK_AFTER_NS: u64 = 7_000;

/// This worker's state during a repetition.
pub(crate) struct Context<'s> {
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
    /// The Program's locks.
    pub(crate) locks: Locks<'s>,
    /// Its steps on regions; `None` where it has none, and while one is made.
    pub(crate) paging: Option<Box<Paging>>,
    /// Whether waits and holds are timed; not in a `plain` arm.
    pub(crate) timed_locks: bool,
    /// When passes are due; `None` in a closed loop.
    pub(crate) schedule: Option<Schedule>,
    /// Latencies of single passes, where the role asks for them.
    pub(crate) latency: Option<Latency>,
}

impl<'s> Context<'s> {
    pub(crate) fn new(
        segment: &'s Segment,
        program: &Program,
        me: &WorkerProgram,
        orders: &[Order],
        views: Arc<Views>,
    ) -> Context<'s> {
        let rate = segment.tick_rate();
        let (warm_up, window) = (rate.ticks(program.warm_up.0), rate.ticks(program.window.0));
        let locks = Locks::new(segment, program, me);
        Context {
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
            locks,
            paging: Paging::new(program, me, views, rate),
            timed_locks: program.timed_locks,
            schedule: Schedule::of(me, program.window.0, program.seed, rate),
            latency: me.latency.then(|| Latency::of_at_most(warm_up.saturating_add(window).saturating_mul(2))),
        }
    }

    /// What the compiled loop is given, and hands to its hooks: valid as long as nobody moves or borrows this, but for
    /// the hooks.
    pub(crate) fn handle(&mut self) -> *mut LockCell {
        let context: *mut Context<'_> = self;
        let first = self.locks.first_cell();
        first.context.set(context.cast());
        std::ptr::from_ref(first).cast_mut()
    }

    /// A clock read. The first one, behind the first batch or inside a first `wait`, says that this worker runs: then
    /// it arrives at the start line, and the last to arrive opens the window.
    pub(crate) fn read(&mut self, now: u64) {
        self.arrive(now);
        self.note_wait();
        self.locks.look(&self.recorder);
        let was_inside = self.recorder.inside();
        self.recorder.read(now, self.segment.control(), self.segment.slot(self.index), self.workers);
        self.open_or_close_locks(was_inside);
        self.paging.iter_mut().for_each(|paging| paging.interrupted());
    }

    /// The same from a hook, inside a batch.
    pub(crate) fn read_inside_batch(&mut self, now: u64) {
        self.arrive(now);
        self.note_wait();
        self.locks.look(&self.recorder);
        let was_inside = self.recorder.inside();
        self.recorder.read_inside_batch(now, self.segment.control(), self.segment.slot(self.index), self.workers);
        self.open_or_close_locks(was_inside);
    }

    /// What is counted of locks is counted in the window.
    fn open_or_close_locks(&mut self, was_inside: bool) {
        match (was_inside, self.recorder.inside()) {
            (false, true) => self.locks.open(self.timed_locks),
            (true, false) => self.locks.close(),
            _ => {}
        }
    }

    fn arrive(&mut self, now: u64) {
        if !std::mem::replace(&mut self.arrived, true) {
            let rate = self.segment.tick_rate();
            let (warm_up, window) = self.window_ns;
            self.segment.control().arrive_ready(self.workers, now, rate.ticks(warm_up), rate.ticks(window));
        }
    }

    /// Has the loop return to the runtime behind the present pass.
    pub(crate) fn break_after_pass(&mut self) {
        self.locks.first_cell().last_pass.set(0);
    }

    /// Notes the wait for a lock that was timed and is not noted yet.
    pub(crate) fn note_wait(&mut self) {
        if let Some((lock, wait)) = self.locks.take_unnoted() {
            self.blocked(wait.start_ticks, wait.start_ticks + wait.ticks);
            self.locks.log_wait(lock, wait, &self.recorder);
        }
    }

    /// Notes a blocking that was timed; a long one ends the batch.
    pub(crate) fn blocked(&mut self, start: u64, end: u64) {
        self.note_wait();
        self.locks.look(&self.recorder);
        self.recorder.blocked(start, end);
        if end - start > self.break_after_ticks {
            self.break_after_pass();
        }
    }

    pub(crate) fn into_trace(self, cpu: u32, before: Reading, after: Reading) -> Trace {
        let recorded = self.recorder.finish();
        let stretch = recorded.work_ticks..recorded.close_ticks;
        let locks = self.locks.into_traces(&stretch);
        Trace {
            worker: self.index,
            pid: nix::unistd::getpid().as_raw(),
            tid: nix::unistd::gettid().as_raw(),
            cpu,
            open_ticks: recorded.open_ticks,
            work_ticks: recorded.work_ticks,
            close_ticks: recorded.close_ticks,
            passes: recorded.passes,
            span_ticks: recorded.span_ticks,
            slices: recorded.slices,
            gaps: recorded.gaps,
            gaps_lost: recorded.gaps_lost,
            all_passes: recorded.all_passes,
            gave_up: self.gave_up_in.is_some(),
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
            edges: before.edges.into_iter().chain(after.edges).collect(),
            costs: CostProbe::default(),
            core_loop_before_ticks: before.core_loop_ticks,
            core_loop_after_ticks: after.core_loop_ticks,
            counters: recorded.counters,
            kernel: recorded.kernel,
            latency: self.latency.map(Latency::into_trace),
            memory: self.paging.map(|paging| paging.into_trace()),
            locks,
            stuck_in_step: self.gave_up_in.filter(|_| recorded.passes == 0),
        }
    }
}
