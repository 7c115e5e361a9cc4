//! From the kernel's events to what they come to: which call of whom each falls into, and which stalls they explain.

use crate::stats::median_of;
use plan::TickRate;
use record::{
    FlushReason, KernelEvent, KernelEventKind, KernelObservation, MemoryCall, MemoryTrace, StackCount, Trace,
};
use std::collections::{BTreeMap, BTreeSet};

/// The calls that gave memory back in one repetition, by worker.
pub(crate) struct Calls<'a> {
    of: Vec<(u32, &'a [MemoryCall])>,
}

/// A call, by its worker and its position among that worker's.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CallAt {
    pub(crate) worker: u32,
    pub(crate) nth: usize,
}

impl<'a> Calls<'a> {
    pub(crate) fn of(traces: &'a [Trace]) -> Calls<'a> {
        let calls = |trace: &'a Trace| Some((trace.worker, trace.memory.as_ref()?.calls.as_slice()));
        Calls { of: traces.iter().filter_map(calls).collect() }
    }

    /// The call that an event of `worker` falls into: another's where another CPU asked for it, else the worker's own.
    /// Of several calls at once the one that began last.
    pub(crate) fn cause(&self, worker: u32, event: &KernelEvent) -> Option<(CallAt, &'a MemoryCall)> {
        let by_another = is_asked(event.kind);
        let inside = |(whose, calls): &(u32, &'a [MemoryCall])| {
            let nth = calls.partition_point(|call| call.start_ticks <= event.ticks).checked_sub(1)?;
            let call = calls.get(nth).filter(|call| event.ticks <= call.end_ticks)?;
            Some((CallAt { worker: *whose, nth }, call))
        };
        let candidates = self.of.iter().filter(|(whose, _)| (*whose != worker) == by_another);
        candidates.filter_map(inside).max_by_key(|(_, call)| call.start_ticks)
    }
}

/// Whether another CPU asked for it.
fn is_asked(kind: KernelEventKind) -> bool {
    use KernelEventKind::{Flush, Interrupt};
    matches!(kind, Interrupt | Flush { reason: FlushReason::Remote | FlushReason::WrongCpu, .. })
}

/// What the log of one worker comes to; `None` where none was ordered.
pub(crate) fn observe(trace: &Trace, calls: &Calls, clock: TickRate) -> Option<KernelObservation> {
    let log = trace.kernel.as_ref()?;
    let mut events: BTreeMap<String, u64> = BTreeMap::new();
    log.events.iter().for_each(|event| *events.entry(event.kind.name().to_owned()).or_default() += 1);
    let caused = log.events.iter().filter(|event| is_asked(event.kind));
    let caused = caused.filter_map(|event| Some((event.ticks, calls.cause(trace.worker, event)?.0)));
    let caused: Vec<(u64, CallAt)> = caused.collect();
    let explained = trace.memory.as_ref().map_or(Vec::new(), |memory| explained(memory, &caused));
    Some(KernelObservation {
        events,
        during_calls: caused.len() as u64,
        calls_seen: caused.iter().map(|(_, call)| *call).collect::<BTreeSet<_>>().len() as u64,
        stalls_explained: explained.len() as u64,
        stall_ns: median_of(explained.into_iter().map(|ticks| clock.ns(ticks))),
        lost: log.lost,
        missing: log.missing.clone(),
        stacks: stacks(&log.events, &log.stacks),
    })
}

/// The stalls that hold one of these events: how long each was beyond the median batch. Both are in order of time.
fn explained(memory: &MemoryTrace, caused: &[(u64, CallAt)]) -> Vec<u64> {
    let holds = |stall: &&record::Stall| {
        let first = caused.partition_point(|(at, _)| *at < stall.start_ticks);
        caused.get(first).is_some_and(|(at, _)| *at <= stall.end_ticks)
    };
    let beyond =
        |stall: &record::Stall| (stall.end_ticks - stall.start_ticks).saturating_sub(memory.times.expected_ticks);
    memory.stalls.iter().filter(holds).map(beyond).collect()
}

fn stacks(events: &[KernelEvent], stacks: &[Vec<u64>]) -> Vec<StackCount> {
    let mut counts: BTreeMap<(&'static str, u32), u64> = BTreeMap::new();
    for event in events {
        if let Some(stack) = event.stack {
            *counts.entry((event.kind.name(), stack)).or_default() += 1;
        }
    }
    let counted = |((event, stack), count): ((&'static str, u32), u64)| {
        Some(StackCount { event, frames: stacks.get(stack as usize)?.clone(), count })
    };
    counts.into_iter().filter_map(counted).collect()
}

/// When an event happened, nanoseconds after the window opened.
pub(crate) fn after_opening(trace: &Trace, event: &KernelEvent, clock: TickRate) -> f64 {
    (event.ticks as f64 - trace.open_ticks as f64) / clock.ticks_per_ns
}

#[cfg(test)]
mod tests {
    use super::{Calls, observe};
    use crate::testkit::steady_trace;
    use plan::{MemoryVerb, TickRate};
    use record::{
        BatchTimes, FlushReason, KernelEvent, KernelEventKind, KernelTrace, MemoryCall, MemoryTrace, Stall, Trace,
    };

    const CLOCK: TickRate = TickRate { ticks_per_ns: 1.0 };

    fn flush(ticks: u64, reason: FlushReason, stack: Option<u32>) -> KernelEvent {
        KernelEvent { ticks, kind: KernelEventKind::Flush { reason, pages: Some(1) }, stack }
    }

    /// Worker 0 is the victim of worker 1, which calls from 100 to 200 and from 300 to 400.
    fn traces(events: Vec<KernelEvent>) -> [Trace; 2] {
        let (mut victim, mut culprit) = (steady_trace(0, 10.0, CLOCK), steady_trace(1, 10.0, CLOCK));
        let call = |at| MemoryCall { step: 0, verb: MemoryVerb::Punch, start_ticks: at, end_ticks: at + 100 };
        culprit.memory = Some(MemoryTrace { calls: vec![call(100), call(300)], ..MemoryTrace::default() });
        let stall = |start_ticks, end_ticks| Stall { start_ticks, end_ticks };
        let stalls = vec![stall(90, 120), stall(210, 250), stall(290, 500)];
        let times = BatchTimes { expected_ticks: 10, ..BatchTimes::default() };
        victim.memory = Some(MemoryTrace { stalls, times, ..MemoryTrace::default() });
        let stacks = vec![vec![1, 2], vec![3]];
        victim.kernel = Some(KernelTrace { events, lost: 3, stacks, missing: None });
        [victim, culprit]
    }

    #[test]
    fn what_another_asked_for_falls_into_the_other_s_call_and_explains_the_stall_around_it() {
        let interrupt = |ticks| KernelEvent { ticks, kind: KernelEventKind::Interrupt, stack: None };
        let traces = traces(vec![
            interrupt(110),
            flush(115, FlushReason::Remote, None),
            interrupt(230),
            flush(350, FlushReason::Local, None),
        ]);
        let calls = Calls::of(&traces);
        let seen = observe(&traces[0], &calls, CLOCK).expect("a log");
        assert_eq!((seen.during_calls, seen.calls_seen, seen.stalls_explained, seen.lost), (2, 1, 1, 3));
        assert_eq!(seen.events["interrupt"], 2, "one of them for nobody's call");
        assert_eq!(seen.stall_ns, Some(20.0), "30 ticks, less the median batch");
        assert_eq!(observe(&traces[1], &calls, CLOCK), None);
        let cause = |ticks, worker| calls.cause(worker, &flush(ticks, FlushReason::Sent, None)).map(|(at, _)| at.nth);
        assert_eq!([cause(100, 1), cause(400, 1), cause(401, 1), cause(99, 1)], [Some(0), Some(1), None, None]);
        assert_eq!(cause(150, 0), None, "what a worker asks for is of its own call");
    }

    #[test]
    fn stacks_are_counted_by_event() {
        let remote = |stack| flush(110, FlushReason::Remote, Some(stack));
        let traces = traces(vec![remote(0), remote(1), remote(0), flush(120, FlushReason::Local, Some(0))]);
        let stacks = observe(&traces[0], &Calls::of(&traces), CLOCK).expect("a log").stacks;
        let seen: Vec<_> = stacks.iter().map(|s| (s.event, s.frames.as_slice(), s.count)).collect();
        assert_eq!(
            seen,
            [("flush_local", &[1, 2][..], 1), ("flush_remote", &[1, 2][..], 2), ("flush_remote", &[3][..], 1)]
        );
    }
}
