//! Memory steps: from a worker's batches and calls to what is told of them.

use crate::kernel::{Calls, after_opening};
use crate::times;
use crate::view::View;
use plan::{Program, TickRate, WorkerProgram};
use record::{
    BatchBucket, BatchTimes, KernelEventKind, MemoryCall, MemoryObservation, MemoryTrace, NsCount, Stall, TickCount,
    Timeline, TimelineBucket, TimelineSpan, Trace, WorkerTimeline,
};

/// A worker's memory steps in nanoseconds; `None` where its loop has none.
pub(crate) fn observe(worker: Option<&WorkerProgram>, trace: &Trace, clock: TickRate) -> Option<MemoryObservation> {
    let memory = trace.memory.as_ref()?;
    let length = |start: u64, end: u64| clock.ns(end.saturating_sub(start));
    let expected_ns = clock.ns(memory.times.expected_ticks);
    let stalled = |stall: &Stall| (length(stall.start_ticks, stall.end_ticks) - expected_ns).max(0.0);
    Some(MemoryObservation {
        batches: memory.times.batches,
        stalls: memory.stalls.len() as u64 + memory.stalls_lost,
        stall_over_ns: memory.stall_over_ticks.map(|ticks| clock.ns(ticks)),
        stalled_ns: memory.stalls.iter().map(stalled).sum(),
        expected_ns: expected_ns.round() as u64,
        calls: memory.calls.len() as u64 + memory.calls_lost,
        calls_ns: memory.calls.iter().map(|call| length(call.start_ticks, call.end_ticks)).sum(),
        log_lost: memory.calls_lost + memory.stalls_lost,
        record_ns: memory.record_cost_ticks / clock.ticks_per_ns,
        ticks_per_ns: clock.ticks_per_ns,
        bucket_ns: clock.ns(memory.bucket_ticks),
        uncorrected: counts(&memory.times.uncorrected, clock),
        before: memory.before.iter().flat_map(|before: &BatchTimes| counts(&before.uncorrected, clock)).collect(),
        corrected: counts(&memory.times.corrected, clock),
        timeline: worker_timeline(worker, trace, memory, clock),
    })
}

fn counts(of: &[TickCount], clock: TickRate) -> Vec<NsCount> {
    times::counts(of.iter().map(|c| NsCount { ns: clock.ns(c.ticks).round() as u64, count: c.count }))
}

fn worker_timeline(
    worker: Option<&WorkerProgram>,
    trace: &Trace,
    memory: &MemoryTrace,
    clock: TickRate,
) -> WorkerTimeline {
    let moments = Moments { worker, trace, memory, clock };
    let (most, left_out) = (WorkerTimeline::MOST_CALLS, |all: usize| all.saturating_sub(WorkerTimeline::MOST_CALLS));
    WorkerTimeline {
        worker: trace.worker,
        role: worker.map(|w| w.role_name.clone()).unwrap_or_default(),
        buckets: memory.buckets.iter().map(|bucket| moments.bucket(bucket)).collect(),
        calls: memory.calls.iter().take(most).map(|call| moments.call(call)).collect(),
        calls_left_out: left_out(memory.calls.len()) as u64 + memory.calls_lost,
        stalls: memory.stalls.iter().take(most).map(|stall| moments.stall(stall)).collect(),
        stalls_left_out: left_out(memory.stalls.len()) as u64 + memory.stalls_lost,
    }
}

/// What turns one worker's ticks into nanoseconds after the window opened.
struct Moments<'a> {
    worker: Option<&'a WorkerProgram>,
    trace: &'a Trace,
    memory: &'a MemoryTrace,
    clock: TickRate,
}

impl Moments<'_> {
    fn after_opening(&self, ticks: u64) -> f64 {
        tenths((ticks as f64 - self.trace.open_ticks as f64) / self.clock.ticks_per_ns)
    }

    fn bucket(&self, bucket: &BatchBucket) -> TimelineBucket {
        let ns = |ticks| tenths(self.clock.ns(ticks));
        TimelineBucket {
            start_ns: ns(u64::from(bucket.number) * self.memory.bucket_ticks),
            count: bucket.count,
            min_ns: ns(bucket.min_ticks),
            p50_ns: ns(bucket.p50_ticks),
            p99_ns: ns(bucket.p99_ticks),
            max_ns: ns(bucket.max_ticks),
        }
    }

    fn call(&self, call: &MemoryCall) -> TimelineSpan {
        let written = self.worker.and_then(|w| w.steps.get(call.step as usize));
        self.span(written.map_or(call.verb.name(), String::as_str), call.start_ticks, call.end_ticks)
    }

    /// A stalled batch; its step is named where the loop has one `touch` alone.
    fn stall(&self, stall: &Stall) -> TimelineSpan {
        let touches = |w: &WorkerProgram| -> Vec<u32> {
            let of_touch = w.memory_steps().filter(|(_, step)| step.verb == plan::MemoryVerb::Touch);
            of_touch.map(|(index, _)| w.ops[index].step).collect()
        };
        let written = self.worker.and_then(|w| match touches(w)[..] {
            [step] => w.steps.get(step as usize),
            _ => None,
        });
        self.span(written.map_or("touch", String::as_str), stall.start_ticks, stall.end_ticks)
    }

    fn span(&self, step: &str, start: u64, end: u64) -> TimelineSpan {
        TimelineSpan { step: step.to_owned(), start_ns: self.after_opening(start), end_ns: self.after_opening(end) }
    }
}

/// To a tenth of a nanosecond: no clock reads finer, and there are many.
fn tenths(ns: f64) -> f64 {
    (ns * 10.0).round() / 10.0
}

/// Whether a region was punched all through before the window ended: then the rest of it saw nothing punched. Only one
/// that some worker has populated and no step touches can be used up; in any other pages come back.
pub(crate) fn region_used_up(program: &Program, traces: &[Trace]) -> bool {
    let populated = |region: u32| program.workers.iter().any(|worker| worker.populate.contains(&region));
    let brings_pages = |verb| matches!(verb, plan::MemoryVerb::Touch | plan::MemoryVerb::Reuse);
    let comes_back = |region: u32| {
        let mut steps = program.workers.iter().flat_map(WorkerProgram::memory_steps).map(|(_, step)| step);
        steps.any(|step| step.region == region && brings_pages(step.verb))
    };
    let punched = traces.iter().filter_map(|trace| trace.memory.as_ref()).flat_map(|memory| &memory.punched);
    punched.into_iter().any(|punched| {
        let bytes = program.regions.get(punched.region as usize).map_or(u64::MAX, |region| region.bytes);
        punched.bytes >= bytes && populated(punched.region) && !comes_back(punched.region)
    })
}

/// An arm's timeline: its first repetition that counts.
pub(crate) fn timeline(view: &View, arm: &str) -> Option<Timeline> {
    let kept = view.workers(arm, None);
    let block = kept.iter().filter(|o| o.memory.is_some()).map(|o| o.block).min()?;
    let mut of_block: Vec<_> = kept.into_iter().filter(|o| o.block == block).collect();
    of_block.sort_by_key(|o| o.worker);
    let memory = of_block.iter().filter_map(|o| o.memory.as_ref());
    let bucket_ns = memory.clone().map(|memory| memory.bucket_ns).fold(0.0, f64::max);
    Some(Timeline { block, bucket_ns, workers: memory.map(|memory| memory.timeline.clone()).collect() })
}

/// A row of `timeline.csv`.
#[derive(Clone, Debug, PartialEq)]
pub struct Moment {
    /// The worker's index.
    pub worker: u32,
    /// Its role's name.
    pub role: String,
    /// What it is.
    pub what: MomentKind,
    /// Begin, nanoseconds after the repetition's window opened.
    pub start_ns: f64,
    /// End, likewise.
    pub end_ns: f64,
}

/// What a row of `timeline.csv` tells.
#[derive(Clone, Debug, PartialEq)]
pub enum MomentKind {
    /// The batches that ended in this stretch.
    Batches(TimelineBucket),
    /// A call that gave memory back, by its step as written.
    Call(String),
    /// A batch that took long, by its step as written.
    Stall(String),
    /// A flush, or a function-call interrupt.
    Kernel {
        /// What.
        kind: KernelEventKind,
        /// The step, as written, of the call that it falls into: another worker's where another CPU asked for it.
        step: Option<String>,
    },
}

/// Everything that one repetition's memory steps left, and what the kernel did for them, in the order of its begin: a
/// call, the interrupts and flushes that it sent, the batches that these stalled.
pub fn moments(program: &Program, traces: &[Trace], clock: TickRate) -> Vec<Moment> {
    let mut all: Vec<Moment> = Vec::new();
    let calls = Calls::of(traces);
    let worker = |index: u32| program.worker(index);
    for trace in traces {
        all.extend(kernel_moments(trace, &calls, worker, clock));
        let Some(memory) = &trace.memory else { continue };
        let worker = worker(trace.worker);
        let of = Moments { worker, trace, memory, clock };
        let role = worker.map(|w| w.role_name.clone()).unwrap_or_default();
        let moment =
            |what, start_ns, end_ns| Moment { worker: trace.worker, role: role.clone(), what, start_ns, end_ns };
        let bucket_ns = clock.ns(memory.bucket_ticks);
        all.extend(memory.buckets.iter().map(|bucket| {
            let bucket = of.bucket(bucket);
            moment(MomentKind::Batches(bucket), bucket.start_ns, bucket.start_ns + bucket_ns)
        }));
        let spans = memory.calls.iter().map(|call| (of.call(call), MomentKind::Call as fn(String) -> MomentKind));
        let stalls = memory.stalls.iter().map(|stall| (of.stall(stall), MomentKind::Stall as fn(String) -> MomentKind));
        all.extend(spans.chain(stalls).map(|(span, kind)| moment(kind(span.step), span.start_ns, span.end_ns)));
    }
    all.sort_by(|a, b| a.start_ns.total_cmp(&b.start_ns));
    all
}

fn kernel_moments<'a>(
    trace: &'a Trace,
    calls: &'a Calls<'a>,
    worker: impl Fn(u32) -> Option<&'a WorkerProgram> + 'a,
    clock: TickRate,
) -> impl Iterator<Item = Moment> + 'a {
    let role = worker(trace.worker).map(|w| w.role_name.clone()).unwrap_or_default();
    trace.kernel.iter().flat_map(|log| &log.events).map(move |event| {
        let step = calls.cause(trace.worker, event).map(|(at, call)| {
            let written = worker(at.worker).and_then(|w| w.steps.get(call.step as usize));
            written.cloned().unwrap_or_else(|| call.verb.name().to_owned())
        });
        let at = after_opening(trace, event, clock);
        let what = MomentKind::Kernel { kind: event.kind, step };
        Moment { worker: trace.worker, role: role.clone(), what, start_ns: at, end_ns: at }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe as judge;
    use crate::testkit::{counters_program, steady_trace};
    use plan::{MemoryStep, MemoryVerb, Nanos, Op, OpKind, Pages, Region};
    use record::Punched;

    const CLOCK: TickRate = TickRate { ticks_per_ns: 2.0 };

    /// Worker 0 touches a region of its own; worker 1 punches one that worker 0 has populated.
    fn program() -> Program {
        let mut program = counters_program(8);
        let region = |name: &str, shared| Region { name: name.into(), bytes: 1 << 20, shared, pages: Pages::Small };
        program.regions = vec![region("own", false), region("seg", true)];
        let step = |verb, region| MemoryStep { verb, region, bytes: 4096, chunk: 4096, pause: Nanos(0) };
        for (nth, (verb, text)) in
            [(MemoryVerb::Touch, "touch own 4KiB"), (MemoryVerb::Punch, "punch seg 4KiB")].into_iter().enumerate()
        {
            program.workers[nth].ops = vec![Op { every: 1, step: 0, kind: OpKind::Memory(step(verb, nth as u32)) }];
            program.workers[nth].steps = vec![text.to_owned()];
        }
        program.workers[0].populate = vec![1];
        program
    }

    fn traces() -> Vec<Trace> {
        let (mut victim, mut culprit) = (steady_trace(0, 100.0, CLOCK), steady_trace(1, 100.0, CLOCK));
        let open = victim.open_ticks;
        let times = BatchTimes {
            batches: 1_001,
            uncorrected: vec![TickCount { ticks: 200, count: 1_000 }, TickCount { ticks: 20_000, count: 1 }],
            corrected: vec![TickCount { ticks: 200, count: 1_000 }, TickCount { ticks: 20_000, count: 50 }],
            expected_ticks: 200,
        };
        let bucket =
            BatchBucket { number: 3, count: 7, min_ticks: 198, p50_ticks: 200, p99_ticks: 210, max_ticks: 20_000 };
        victim.memory = Some(MemoryTrace {
            bucket_ticks: 2_000_000,
            buckets: vec![bucket],
            times,
            stalls: vec![Stall { start_ticks: open + 7_000_000, end_ticks: open + 7_020_000 }],
            stall_over_ticks: Some(800),
            record_cost_ticks: 40.0,
            ..MemoryTrace::default()
        });
        let call = |at: u64| MemoryCall {
            step: 0,
            verb: MemoryVerb::Punch,
            start_ticks: open + at,
            end_ticks: open + at + 4_000,
        };
        culprit.memory = Some(MemoryTrace {
            bucket_ticks: 2_000_000,
            calls: (0..1_500).map(|nth| call(6_999_000 + nth * 10_000)).collect(),
            calls_lost: 2,
            punched: vec![Punched { region: 1, bytes: 1_502 * 4096 / 10 }],
            ..MemoryTrace::default()
        });
        vec![victim, culprit]
    }

    #[test]
    fn ticks_become_nanoseconds_after_the_window_opened() {
        let seen = judge("a", 0, &program(), &traces(), CLOCK);
        let (victim, culprit) = (seen[0].memory.as_ref().unwrap(), seen[1].memory.as_ref().unwrap());
        assert_eq!((victim.batches, victim.stalls, victim.stall_over_ns), (1_001, 1, Some(400.0)));
        assert_eq!((victim.expected_ns, victim.stalled_ns, victim.record_ns), (100, 9_900.0, 20.0));
        assert_eq!(victim.uncorrected[0], NsCount { ns: 100, count: 1_000 });
        let bucket = victim.timeline.buckets[0];
        assert_eq!((bucket.start_ns, bucket.min_ns, bucket.p99_ns, bucket.max_ns), (3e6, 99.0, 105.0, 10_000.0));
        assert_eq!((culprit.calls, culprit.calls_ns, culprit.log_lost), (1_502, 1_500.0 * 2_000.0, 2));
        let timeline = &culprit.timeline;
        assert_eq!((timeline.calls.len(), timeline.calls_left_out), (250, 1_252));
        assert_eq!((timeline.calls[0].step.as_str(), timeline.calls[0].start_ns), ("punch seg 4KiB", 3_499_500.0));
    }

    #[test]
    fn moments_of_all_workers_come_in_the_order_of_their_begin() {
        let all = moments(&program(), &traces(), CLOCK);
        let first: Vec<_> = all.iter().take(3).map(|m| (m.worker, m.start_ns, m.end_ns)).collect();
        assert_eq!(first, [(0, 3e6, 4e6), (1, 3_499_500.0, 3_501_500.0), (0, 3_500_000.0, 3_510_000.0)]);
        assert_eq!(all[1].what, MomentKind::Call("punch seg 4KiB".into()), "the call before the batch that it stalls");
        assert_eq!(all[2].what, MomentKind::Stall("touch own 4KiB".into()));
        assert_eq!(all.len(), 1 + 1 + 1_500);
    }

    #[test]
    fn an_interrupt_stands_between_the_call_that_sent_it_and_the_batch_s_end_and_names_the_call() {
        let mut traces = traces();
        let kind = KernelEventKind::Interrupt;
        let ticks = traces[0].open_ticks + 7_000_500;
        let events = vec![record::KernelEvent { ticks, kind, stack: None }];
        traces[0].kernel = Some(record::KernelTrace { events, ..Default::default() });
        let all = moments(&program(), &traces, CLOCK);
        assert_eq!((all[3].worker, all[3].start_ns), (0, 3_500_250.0), "{:?}", all[3]);
        assert_eq!(all[3].what, MomentKind::Kernel { kind, step: Some("punch seg 4KiB".into()) });
    }

    #[test]
    fn a_region_that_was_punched_all_through_spoils_the_repetition() {
        let spoiled = |change: &dyn Fn(&mut Program, &mut [Trace])| {
            let (mut program, mut traces) = (program(), traces());
            traces[1].memory.as_mut().unwrap().punched[0].bytes = 1 << 20;
            change(&mut program, &mut traces);
            judge("a", 0, &program, &traces, CLOCK)[0].spoiled.clone()
        };
        assert_eq!(spoiled(&|_, _| ()), ["region_used_up"]);
        let less = |_: &mut Program, traces: &mut [Trace]| {
            traces[1].memory.as_mut().unwrap().punched[0].bytes -= 4096;
        };
        assert_eq!(spoiled(&less), Vec::<String>::new());
        assert_eq!(spoiled(&|program, _| program.workers[0].populate.clear()), Vec::<String>::new());
        let touched_again = |program: &mut Program, _: &mut [Trace]| {
            let OpKind::Memory(step) = &mut program.workers[0].ops[0].kind else { panic!("a touch") };
            step.region = 1;
        };
        assert_eq!(spoiled(&touched_again), Vec::<String>::new(), "its pages come back");
    }
}
