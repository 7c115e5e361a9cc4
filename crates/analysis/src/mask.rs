//! The co-running mask: of each worker's window, only what passed while every worker was running counts.

use crate::evictions::{Evictions, edges};
use crate::kernel::{self, Calls};
use crate::memory;
use crate::stats::median_of;
use crate::times;
use plan::{Program, TickRate, WorkerProgram};
use record::{LatencyTrace, LockObservation, LockTrace, NsCount, Observation, Slice, TickCount, TickSpan, Trace};

/// Kept share of the window below which a repetition says too little to count.
const LEAST_KEPT: f64 = 0.10;

/// Factor by which a fixed loop's time may change during a repetition before the core's speed has changed: a busy
/// sibling thread changes it by about 2, a clock step by up to 1.3.
const CORE_SPEED_CHANGE: f64 = 1.4;

/// Judges one repetition: masks what was not co-running, and says why the repetition does not count, if it does not.
///
/// A gap between two clock reads is an eviction where its unexplained part is over 50 µs + 3 × the worker's median read
/// distance; so is a blocking stretch after which the run queue had kept the worker for over 50 µs, and the edge of the
/// window where a worker had not yet, or no longer, read the clock. Slices of *all* workers that overlap an eviction of
/// *any* are masked. Where workers share a CPU nothing is masked, waits and holds neither: the figure is the whole
/// window's, and [`Observation::lost_ns`] the time some worker was off its CPU.
///
/// Where roles begin at different times, all of this is of what lies behind the last one's begin: before it not
/// everyone was running.
///
/// One observation a trace, in the order of `traces`. [`Observation::regime`] is left open: it depends on the others.
/// A repetition with a worker that was [`stuck`](crate::stuck) is an error, which the caller names instead.
pub fn observe(arm: &str, block: u32, program: &Program, traces: &[Trace], clock: TickRate) -> Vec<Observation> {
    let evictions = Evictions::of(traces, clock);
    let masking = Masking::of(program, traces, &evictions, clock);
    let spoiled = masking.reasons(traces);
    let probes = Probes::of(traces, clock);
    let calls = Calls::of(traces);
    let one = |trace: &Trace| {
        let worker = program.worker(trace.worker);
        let share = masking.share(trace);
        Observation {
            arm: arm.to_owned(),
            block,
            worker: trace.worker,
            role: role_name(worker),
            pid: Some(trace.pid),
            tid: (trace.tid != trace.pid).then_some(trace.tid),
            cpu: trace.cpu,
            passes: trace.passes,
            kept_passes: share.kept_passes,
            kept_ns: share.kept_ns,
            lost_ns: share.lost_ns,
            blocked_ns: clock.ns(trace.blocked_ticks),
            window_ns: clock.ns(trace.span_ticks + trace.work_ticks.saturating_sub(trace.open_ticks)),
            noted_ns: trace.noted_ticks.map(|ticks| clock.ns(ticks)),
            ns_per_op: share.ns_per_op,
            slice_ns_per_op: share.slice_ns_per_op,
            transfer_before_ns: probes.transfer_ns.0,
            transfer_after_ns: probes.transfer_ns.1,
            contended_before_ns: probes.contended_ns.0,
            contended_after_ns: probes.contended_ns.1,
            core_loop_ns: probes.core_loop_ns,
            costs: trace.costs,
            regime: None,
            spoiled: spoiled.clone(),
            counters: trace.counters.clone(),
            response: latencies(trace, clock, |l| &l.response),
            service: latencies(trace, clock, |l| &l.service),
            memory: memory::observe(worker, trace, clock),
            kernel: kernel::observe(trace, &calls, clock),
            locks: trace.locks.iter().map(|l| lock(l, &masking)).collect(),
        }
    };
    traces.iter().map(one).collect()
}

/// What the probes around the window say about the machine: one answer for all workers. Pairs are before and after.
struct Probes {
    /// The slowest pair's.
    transfer_ns: (Option<f64>, Option<f64>),
    /// The mean over the workers.
    contended_ns: (Option<f64>, Option<f64>),
    /// The slowest core's, the slower of before and after.
    core_loop_ns: f64,
}

impl Probes {
    fn of(traces: &[Trace], clock: TickRate) -> Probes {
        let ns = |of: fn(&Trace) -> Option<f64>| -> Vec<f64> {
            traces.iter().filter_map(of).map(|ticks| ticks / clock.ticks_per_ns).collect()
        };
        let slowest = |all: Vec<f64>| all.into_iter().reduce(f64::max);
        let mean = |all: Vec<f64>| (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64);
        let core_loop = traces.iter().map(|t| t.core_loop_before_ticks.max(t.core_loop_after_ticks)).max();
        Probes {
            transfer_ns: (slowest(ns(|t| t.transfer_before_ticks)), slowest(ns(|t| t.transfer_after_ticks))),
            contended_ns: (mean(ns(|t| t.contended_before_ticks)), mean(ns(|t| t.contended_after_ticks))),
            core_loop_ns: clock.ns(core_loop.unwrap_or(0)),
        }
    }
}

/// What of one worker's window counts.
struct Share {
    kept_passes: u64,
    kept_ns: f64,
    lost_ns: f64,
    ns_per_op: Option<f64>,
    slice_ns_per_op: Vec<f64>,
}

/// What the judgement of a repetition's workers rests on.
pub(crate) struct Masking<'a> {
    program: &'a Program,
    evictions: &'a Evictions,
    clock: TickRate,
    /// When the last worker was to begin its loop: what lies before it is no co-running time, but not lost either.
    together_ticks: u64,
}

impl<'a> Masking<'a> {
    pub(crate) fn of(program: &'a Program, traces: &[Trace], evictions: &'a Evictions, clock: TickRate) -> Masking<'a> {
        let together_ticks = traces.iter().map(|t| t.work_ticks).max().unwrap_or(0);
        Masking { program, evictions, clock, together_ticks }
    }

    /// Whether something that began then, or a slice that did, lies behind the last worker's begin.
    fn together(&self, start_ticks: u64) -> bool {
        start_ticks >= self.together_ticks
    }

    /// The part of a worker's window in which all had work, ticks.
    fn window_ticks(&self, trace: &Trace) -> u64 {
        trace.close_ticks.saturating_sub(self.together_ticks)
    }

    fn share(&self, trace: &Trace) -> Share {
        if self.program.shares_cpu { self.whole(trace) } else { self.masked(trace) }
    }

    /// The share of a worker whose CPU another shares. Half of the slices may be free of the time spent off the CPU, so
    /// their median is no measure of it.
    fn whole(&self, trace: &Trace) -> Share {
        let slices: Vec<&Slice> = trace.slices.iter().filter(|s| self.together(s.start_ticks)).collect();
        let (passes, ticks) = match self.together(trace.work_ticks) {
            true => (trace.passes, trace.span_ticks),
            false => (slices.iter().map(|s| s.passes).sum(), slices.iter().map(|s| length(s)).sum()),
        };
        let kept_ns = self.clock.ns(ticks);
        Share {
            kept_passes: passes,
            kept_ns,
            lost_ns: self.clock.ns(self.evictions.inside(self.together_ticks, trace.close_ticks)),
            ns_per_op: (passes > 0).then(|| kept_ns / passes as f64),
            slice_ns_per_op: self.ns_per_op(&slices),
        }
    }

    fn masked(&self, trace: &Trace) -> Share {
        let masked = |slice: &&Slice| self.evictions.overlap(slice.start_ticks, slice.end_ticks);
        let together = trace.slices.iter().filter(|s| self.together(s.start_ticks));
        let (lost, kept): (Vec<&Slice>, Vec<&Slice>) = together.partition(masked);
        let slice_ns_per_op = self.ns_per_op(&kept);
        let kept_ticks: u64 = kept.iter().map(|s| length(s)).sum();
        let unseen: u64 = edges(trace, self.clock)
            .iter()
            .map(|(start, end)| end.saturating_sub(*start.max(&self.together_ticks)))
            .sum();
        let lost_ticks = lost.iter().map(|s| length(s)).sum::<u64>() + unseen;
        Share {
            kept_passes: kept.iter().map(|s| s.passes).sum(),
            kept_ns: self.clock.ns(kept_ticks),
            // The last slice may end behind the window, whose length is the most that can be lost.
            lost_ns: self.clock.ns(lost_ticks.min(self.window_ticks(trace).saturating_sub(kept_ticks))),
            ns_per_op: median_of(slice_ns_per_op.iter().copied()),
            slice_ns_per_op,
        }
    }

    /// Whether a wait or a hold overlaps no eviction, and began when all roles had. Where workers share a CPU some
    /// worker is always off it: there evictions leave none out.
    pub(crate) fn counts(&self, time: &TickSpan) -> bool {
        let evicted =
            || !self.program.shares_cpu && self.evictions.overlap(time.start_ticks, time.start_ticks + time.ticks);
        self.together(time.start_ticks) && !evicted()
    }

    /// Its length, to the nanosecond.
    pub(crate) fn ns(&self, time: &TickSpan) -> u64 {
        self.clock.ns(time.ticks).round() as u64
    }

    pub(crate) fn lock_name(&self, trace: &LockTrace) -> String {
        let placed = self.program.locks.get(trace.lock as usize);
        placed.map_or_else(|| format!("lock {}", trace.lock), |lock| lock.name.clone())
    }

    fn ns_per_op(&self, slices: &[&Slice]) -> Vec<f64> {
        let with_passes = slices.iter().filter(|s| s.passes > 0);
        with_passes.map(|s| self.clock.ns(length(s)) / s.passes as f64).collect()
    }

    /// Why a repetition does not count; the same for all its workers.
    fn reasons(&self, traces: &[Trace]) -> Vec<String> {
        let lost_time = |t: &Trace| {
            let least = LEAST_KEPT * self.clock.ns(self.window_ticks(t));
            !self.program.shares_cpu && self.share(t).kept_ns < least
        };
        let speed_changed = |t: &Trace| {
            let (before, after) = (t.core_loop_before_ticks as f64, t.core_loop_after_ticks as f64);
            before > 0.0 && after > 0.0 && before.max(after) > CORE_SPEED_CHANGE * before.min(after)
        };
        let found = [
            ("lost_time", traces.iter().any(lost_time)),
            ("gap_log_full", traces.iter().any(|t| t.gaps_lost > 0 || t.queue_delays_lost > 0)),
            ("core_speed_changed", traces.iter().any(speed_changed)),
            ("region_used_up", memory::region_used_up(self.program, traces)),
        ];
        found.into_iter().filter(|(_, so)| *so).map(|(reason, _)| reason.to_owned()).collect()
    }
}

fn length(slice: &Slice) -> u64 {
    slice.end_ticks.saturating_sub(slice.start_ticks)
}

fn lock(trace: &LockTrace, masking: &Masking<'_>) -> LockObservation {
    let counts = |wait: &&TickSpan| masking.counts(wait);
    let ns = |wait: &TickSpan| masking.ns(wait);
    LockObservation {
        lock: masking.lock_name(trace),
        acquisitions: trace.acquisitions,
        contended: trace.contended,
        kept_waits: times::tally(trace.waits.iter().filter(counts).map(ns)),
        all_waits: times::tally(trace.waits.iter().map(ns)),
        waits_lost: trace.waits_lost,
        handoffs: trace.handoffs,
        longest_run: trace.longest_run,
        owner_died: trace.owner_died,
        shared: trace.shared,
        holds: times::tally(trace.holds.iter().filter(counts).map(ns)),
        spins: trace.spins,
        futex_waits: trace.futex_waits,
        retries: trace.retries,
        timeouts: trace.timeouts,
        longest_gap_ns: masking.clock.ns(trace.longest_gap_ticks),
    }
}

/// A worker's latencies in nanoseconds. Never masked: a stall is what they are for.
fn latencies(trace: &Trace, clock: TickRate, of: fn(&LatencyTrace) -> &Vec<TickCount>) -> Vec<NsCount> {
    let counted = |c: &TickCount| NsCount { ns: clock.ns(c.ticks).round() as u64, count: c.count };
    times::counts(trace.latency.iter().flat_map(of).map(counted))
}

pub(crate) fn role_name(worker: Option<&WorkerProgram>) -> String {
    worker.map(|w| w.role_name.clone()).unwrap_or_default()
}

/// What watching takes of a repetition's window, as a share: a clock read with its bookkeeping over the distance of two
/// reads, of the worker that reads most often. `None` where no distance was seen.
pub fn watching_share(traces: &[Trace]) -> Option<f64> {
    let read = traces.iter().filter(|t| t.read_distance_ticks > 0);
    read.map(|t| t.read_cost_ticks / t.read_distance_ticks as f64).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::{counters_program, steady_trace, twin_lock_program};
    use crate::times::tally;
    use record::{Gap, QueueDelay};

    const CLOCK: TickRate = TickRate { ticks_per_ns: 2.0 };
    const MS: u64 = 2_000_000;

    /// Worker 0 steady at 23 ns; worker 1 evicted from 10 to 20 ms, in which worker 0 has the line alone at 1 ns.
    fn interrupted() -> Vec<Trace> {
        let (mut victim, mut fellow) = (steady_trace(1, 23.0, CLOCK), steady_trace(0, 23.0, CLOCK));
        let (start, end) = (victim.open_ticks + 10 * MS, victim.open_ticks + 20 * MS);
        victim.gaps.push(Gap { start_ticks: start, end_ticks: end, blocked_ticks: 0 });
        victim.slices.retain(|s| s.end_ticks <= start || s.start_ticks >= end);
        victim.slices.push(Slice { start_ticks: start, end_ticks: end, passes: 3 });
        victim.slices.sort_unstable_by_key(|s| s.start_ticks);
        for slice in fellow.slices.iter_mut().filter(|s| s.start_ticks < end && s.end_ticks > start) {
            slice.passes *= 23;
        }
        vec![fellow, victim]
    }

    #[test]
    fn a_scripted_interruption_is_masked_in_every_worker() {
        let seen = observe("packed", 0, &counters_program(8), &interrupted(), CLOCK);
        for worker in &seen {
            assert!((worker.ns_per_op.unwrap() - 23.0).abs() < 0.1, "{:?}", worker.ns_per_op);
            assert!((worker.lost_ns - 10e6).abs() < 1.0, "{}", worker.lost_ns);
            assert!((worker.kept_ns - 90e6).abs() < 1.0);
            assert!(worker.spoiled.is_empty());
            assert!(worker.slice_ns_per_op.iter().all(|ns| (ns - 23.0).abs() < 0.1));
        }
    }

    #[test]
    fn a_thread_is_told_where_it_is_not_its_process_s_first() {
        let traces =
            [0, 1].map(|worker| Trace { pid: 100, tid: 100 + worker as i32, ..steady_trace(worker, 23.0, CLOCK) });
        let seen = observe("packed", 0, &counters_program(8), &traces, CLOCK);
        assert_eq!(
            seen.iter().map(|one| (one.pid, one.tid)).collect::<Vec<_>>(),
            [(Some(100), None), (Some(100), Some(101))]
        );
    }

    #[test]
    fn without_the_gap_the_same_slices_would_have_been_kept() {
        let mut traces = interrupted();
        traces[1].gaps.clear();
        let seen = observe("packed", 0, &counters_program(8), &traces, CLOCK);
        assert_eq!(seen[0].lost_ns, 0.0);
        assert!(seen[0].slice_ns_per_op.iter().any(|ns| *ns < 2.0));
    }

    #[test]
    fn a_gap_is_judged_less_its_blocking_and_by_the_workers_own_read_distance() {
        let lost = |blocked_us: u64, read_distance_us: u64| {
            let mut trace = steady_trace(0, 23.0, CLOCK);
            let start = trace.open_ticks + 10 * MS;
            trace.gaps.push(Gap {
                start_ticks: start,
                end_ticks: start + 2 * 200_000,
                blocked_ticks: blocked_us * 2000,
            });
            trace.read_distance_ticks = read_distance_us * 2000;
            observe("a", 0, &counters_program(8), &[trace, steady_trace(1, 23.0, CLOCK)], CLOCK)[1].lost_ns
        };
        assert!(lost(0, 20) > 0.0, "200 us unexplained, 110 allowed");
        assert_eq!(lost(150, 20), 0.0, "50 us unexplained");
        assert_eq!(lost(0, 60), 0.0, "230 us allowed");
    }

    #[test]
    fn a_run_queue_delay_masks_its_blocking_stretch_and_a_short_one_does_not() {
        let lost = |delay_ns| {
            let mut trace = steady_trace(0, 23.0, CLOCK);
            let start = trace.open_ticks + 10 * MS;
            trace.queue_delays.push(QueueDelay { start_ticks: start, end_ticks: start + MS, delay_ns });
            observe("a", 0, &counters_program(8), &[trace, steady_trace(1, 23.0, CLOCK)], CLOCK)[1].lost_ns
        };
        assert_eq!(lost(50_000), 0.0);
        assert!((lost(50_001) - 1e6).abs() < 1.0);
    }

    #[test]
    fn a_worker_that_arrives_late_or_leaves_early_masks_the_edge() {
        let mut late = steady_trace(0, 23.0, CLOCK);
        let start = late.open_ticks + 5 * MS;
        late.slices.retain(|s| s.start_ticks >= start);
        late.span_ticks -= 5 * MS;
        let seen = observe("a", 0, &counters_program(8), &[late, steady_trace(1, 23.0, CLOCK)], CLOCK);
        assert!((seen[0].lost_ns - 5e6).abs() < 1.0, "{}", seen[0].lost_ns);
        assert!((seen[1].lost_ns - 5e6).abs() < 1.0, "{}", seen[1].lost_ns);
    }

    #[test]
    fn at_an_edge_a_worker_that_blocks_has_the_length_of_its_passes_more() {
        let lost_by_fellow = |late_ms: u64| {
            let mut late = steady_trace(0, 23.0, CLOCK);
            late.blocked_ticks = MS;
            let start = late.open_ticks + late_ms * MS;
            late.slices.retain(|s| s.start_ticks >= start);
            late.span_ticks -= late_ms * MS;
            observe("a", 0, &counters_program(8), &[late, steady_trace(1, 23.0, CLOCK)], CLOCK)[1].lost_ns
        };
        assert_eq!(lost_by_fellow(1), 0.0, "1.61 ms allowed: slices are 0.5 ms");
        assert!((lost_by_fellow(5) - 5e6).abs() < 1.0);
    }

    /// Two steady workers, of which the first has work from `due_ms` on and begins it at `begins_ms`; alone, the other
    /// needs a tenth of the time.
    fn one_comes_later(due_ms: u64, begins_ms: u64) -> Vec<Trace> {
        let (mut late, mut fellow) = (steady_trace(0, 23.0, CLOCK), steady_trace(1, 23.0, CLOCK));
        late.work_ticks = late.open_ticks + due_ms * MS;
        let start = late.open_ticks + begins_ms * MS;
        late.slices.retain(|s| s.start_ticks >= start);
        late.span_ticks -= begins_ms * MS;
        late.passes = late.slices.iter().map(|s| s.passes).sum();
        for alone in fellow.slices.iter_mut().filter(|s| s.start_ticks < late.work_ticks) {
            alone.passes *= 10;
        }
        fellow.passes = fellow.slices.iter().map(|s| s.passes).sum();
        vec![late, fellow]
    }

    /// The wait for a late role's work was taken for an eviction that lasts until it begins.
    #[test]
    fn before_the_last_role_begins_nothing_is_lost_and_counters_have_the_whole_window() {
        let begins = |late_ms| observe("a", 0, &counters_program(8), &one_comes_later(95, late_ms), CLOCK);
        let seen = begins(95);
        assert_eq!((seen[0].lost_ns, seen[1].lost_ns), (0.0, 0.0));
        assert!(seen[0].spoiled.is_empty(), "{:?}: 5 ms of 5 ms were kept", seen[0].spoiled);
        assert_eq!((seen[0].window_ns, seen[1].window_ns), (100e6, 100e6));
        assert!((begins(97)[1].lost_ns - 2e6).abs() < 1.0, "it was away when its work was due");
    }

    /// A median over slices from before and after the last role's begin is a figure of neither.
    #[test]
    fn figures_are_of_the_time_in_which_all_had_begun() {
        let mut alone_evicted = one_comes_later(60, 60);
        let open = alone_evicted[1].open_ticks;
        alone_evicted[1].gaps.push(Gap { start_ticks: open + MS, end_ticks: open + 50 * MS, blocked_ticks: 0 });
        let waits = [(59 * MS, 2000), (61 * MS, 400)];
        alone_evicted[1].locks.push(LockTrace {
            lock: 0,
            acquisitions: 100,
            contended: 2,
            waits: waits.iter().map(|&(at, ticks)| TickSpan { start_ticks: open + at, ticks }).collect(),
            waits_lost: 0,
            handoffs: 1,
            longest_run: 9,
            owner_died: 0,
            ..LockTrace::default()
        });
        let seen = observe("a", 0, &twin_lock_program(), &alone_evicted, CLOCK);
        for worker in &seen {
            assert!((worker.ns_per_op.unwrap() - 23.0).abs() < 0.1, "{:?}", worker.ns_per_op);
            assert!(worker.slice_ns_per_op.iter().all(|ns| (ns - 23.0).abs() < 0.1));
            assert_eq!((worker.kept_ns, worker.lost_ns), (40e6, 0.0), "what came before is neither kept nor lost");
            assert!(worker.spoiled.is_empty(), "{:?}", worker.spoiled);
        }
        assert_eq!(seen[0].kept_passes, seen[1].kept_passes);
        assert_eq!(seen[1].passes, alone_evicted[1].passes, "counters divide by all of them");
        let lock = &seen[1].locks[0];
        assert_eq!((&lock.kept_waits, &lock.all_waits), (&tally([200].into_iter()), &tally([200, 1000].into_iter())));
    }

    #[test]
    fn where_workers_share_a_cpu_too_figures_are_of_the_time_in_which_all_had_begun() {
        let program = Program { shares_cpu: true, ..counters_program(8) };
        for worker in observe("a", 0, &program, &one_comes_later(60, 60), CLOCK) {
            assert!((worker.ns_per_op.unwrap() - 23.0).abs() < 0.1, "{:?}", worker.ns_per_op);
            assert_eq!(worker.kept_ns, 40e6);
        }
    }

    #[test]
    fn a_role_that_begins_later_must_keep_a_tenth_of_what_was_left() {
        let mut traces = one_comes_later(60, 60);
        let open = traces[1].open_ticks;
        traces[1].gaps.push(Gap { start_ticks: open + 60 * MS, end_ticks: open + 97 * MS, blocked_ticks: 0 });
        assert_eq!(observe("a", 0, &counters_program(8), &traces, CLOCK)[0].spoiled, ["lost_time"]);
    }

    #[test]
    fn watching_costs_what_the_busiest_reader_pays() {
        let (mut a, mut b) = (steady_trace(0, 23.0, CLOCK), steady_trace(1, 23.0, CLOCK));
        (a.read_cost_ticks, a.read_distance_ticks) = (40.0, 40_000);
        (b.read_cost_ticks, b.read_distance_ticks) = (40.0, 20_000);
        assert_eq!(watching_share(&[a, b]), Some(0.002));
        assert_eq!(watching_share(&[]), None);
    }

    #[test]
    fn where_workers_share_a_cpu_the_whole_window_counts() {
        let program = Program { shares_cpu: true, ..counters_program(8) };
        let traces = interrupted();
        let seen = observe("packed", 0, &program, &traces, CLOCK);
        let whole = traces[0].span_ticks as f64 / 2.0 / traces[0].passes as f64;
        assert_eq!(seen[0].ns_per_op, Some(whole));
        assert_eq!(seen[0].kept_passes, traces[0].passes);
        assert!((seen[0].lost_ns - 10e6).abs() < 1.0);
        assert!(seen[0].spoiled.is_empty());
    }

    fn spoiled(change: impl Fn(&mut Trace)) -> Vec<String> {
        let mut trace = steady_trace(0, 23.0, CLOCK);
        change(&mut trace);
        let seen = observe("a", 0, &counters_program(8), &[trace, steady_trace(1, 23.0, CLOCK)], CLOCK);
        assert_eq!(seen[0].spoiled, seen[1].spoiled);
        seen[0].spoiled.clone()
    }

    #[test]
    fn each_reason_spoils_the_whole_repetition() {
        let evict = |t: &mut Trace| {
            t.gaps.push(Gap { start_ticks: t.open_ticks + MS, end_ticks: t.close_ticks - 8 * MS, blocked_ticks: 0 });
        };
        assert_eq!(spoiled(|_| ()), Vec::<String>::new());
        assert_eq!(spoiled(evict), ["lost_time"]);
        assert_eq!(spoiled(|t| t.gaps_lost = 1), ["gap_log_full"]);
        assert_eq!(spoiled(|t| t.queue_delays_lost = 1), ["gap_log_full"]);
        assert_eq!(spoiled(|t| t.core_loop_after_ticks = t.core_loop_before_ticks * 3 / 2), ["core_speed_changed"]);
        let no_pass = |t: &mut Trace| (t.passes, t.slices, t.stuck_in_step) = (0, Vec::new(), Some(0));
        // No pass because the CPU was taken away, from within the window or from before it: not the scenario's fault.
        let evicted = |t: &mut Trace| {
            no_pass(t);
            evict(t);
        };
        assert_eq!(spoiled(evicted), ["lost_time"]);
        let absent = |t: &mut Trace| (t.passes, t.slices, t.span_ticks) = (0, Vec::new(), 200);
        assert_eq!(spoiled(absent), ["lost_time"]);
    }

    #[test]
    fn the_slowest_pair_and_the_slowest_core_speak_for_the_repetition() {
        let (mut a, mut b) = (steady_trace(0, 23.0, CLOCK), steady_trace(1, 23.0, CLOCK));
        (a.transfer_before_ticks, b.transfer_before_ticks) = (Some(100.0), Some(120.0));
        (a.transfer_after_ticks, b.transfer_after_ticks) = (None, None);
        (a.core_loop_before_ticks, b.core_loop_after_ticks) = (2200, 2400);
        let seen = observe("a", 0, &counters_program(8), &[a, b], CLOCK);
        assert_eq!((seen[0].transfer_before_ns, seen[0].transfer_after_ns), (Some(60.0), None));
        assert_eq!(seen[1].core_loop_ns, 1200.0);
    }

    #[test]
    fn waits_that_overlap_an_eviction_are_in_the_full_list_alone() {
        let mut traces = interrupted();
        let open = traces[0].open_ticks;
        let waits = [(MS, 2000), (9 * MS, 2 * MS), (15 * MS, 400), (20 * MS, 600)];
        traces[0].locks.push(LockTrace {
            lock: 0,
            acquisitions: 100,
            contended: 5,
            waits: waits.iter().map(|&(at, ticks)| TickSpan { start_ticks: open + at, ticks }).collect(),
            waits_lost: 1,
            handoffs: 7,
            longest_run: 9,
            ..LockTrace::default()
        });
        let lock = &observe("m", 0, &twin_lock_program(), &traces, CLOCK)[0].locks[0];
        assert_eq!((lock.lock.as_str(), lock.acquisitions, lock.contended, lock.waits_lost), ("m", 100, 5, 1));
        assert_eq!(lock.all_waits, tally([1000, 2_000_000, 200, 300].into_iter()));
        assert_eq!(lock.kept_waits, tally([300, 1000].into_iter()));
        let crowded = Program { shares_cpu: true, ..twin_lock_program() };
        let lock = &observe("m", 0, &crowded, &traces, CLOCK)[0].locks[0];
        assert_eq!(lock.kept_waits, lock.all_waits, "some worker is always off a CPU that two share");
    }

    #[test]
    fn holds_are_masked_as_waits_are_and_latencies_never() {
        let mut traces = interrupted();
        let open = traces[0].open_ticks;
        let held = [(MS, 40), (9 * MS, 2 * MS), (20 * MS, 60)];
        traces[0].locks.push(LockTrace {
            acquisitions: 200,
            shared: 150,
            holds: held.iter().map(|&(at, ticks)| TickSpan { start_ticks: open + at, ticks }).collect(),
            spins: 11,
            futex_waits: 12,
            retries: 13,
            timeouts: 14,
            longest_gap_ticks: 3 * MS,
            ..LockTrace::default()
        });
        let stalled = vec![TickCount { ticks: 1000, count: 5 }, TickCount { ticks: 10 * MS, count: 1 }];
        traces[0].latency = Some(LatencyTrace { response: stalled, service: vec![TickCount { ticks: 400, count: 6 }] });
        let seen = observe("m", 0, &twin_lock_program(), &traces, CLOCK);
        let lock = &seen[0].locks[0];
        assert_eq!(lock.holds, tally([20, 30].into_iter()));
        assert_eq!((lock.shared, lock.spins, lock.futex_waits, lock.retries, lock.timeouts), (150, 11, 12, 13, 14));
        assert_eq!(lock.longest_gap_ns, 3e6);
        assert_eq!(seen[0].response, tally([500, 500, 500, 500, 500, 10_000_000].into_iter()));
        assert_eq!(seen[0].service, tally([200; 6].into_iter()));
        assert!(seen[1].response.is_empty(), "its role does not ask for it");
    }
}
