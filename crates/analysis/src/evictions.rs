//! Evictions: the stretches of a repetition in which some worker was off its CPU without having asked to be.

use crate::stats::median_of;
use plan::TickRate;
use record::Trace;

/// [`record::EVICTION_NS`].
const EVICTION_NS: f64 = record::EVICTION_NS as f64;

/// How many of the worker's own median read distances an eviction must exceed beside [`EVICTION_NS`]: a loop whose
/// passes are long reads the clock seldom, and that alone is no eviction.
const READ_DISTANCES: f64 = 3.0;

/// The stretches in which some worker was off its CPU without having asked to be: ticks, ascending, disjoint.
pub(crate) struct Evictions(Vec<(u64, u64)>);

impl Evictions {
    pub(crate) fn of(traces: &[Trace], clock: TickRate) -> Evictions {
        let mut all: Vec<(u64, u64)> = traces.iter().flat_map(|t| evictions_of(t, clock)).collect();
        all.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::with_capacity(all.len());
        for (start, end) in all {
            match merged.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => merged.push((start, end)),
            }
        }
        Evictions(merged)
    }

    pub(crate) fn overlap(&self, start: u64, end: u64) -> bool {
        let next = self.0.partition_point(|e| e.1 <= start);
        self.0.get(next).is_some_and(|e| e.0 < end)
    }

    /// Ticks of eviction between the two instants.
    pub(crate) fn inside(&self, start: u64, end: u64) -> u64 {
        self.0.iter().map(|e| e.1.min(end).saturating_sub(e.0.max(start))).sum()
    }
}

/// Longest unexplained distance of two clock reads that is no eviction, ticks.
fn allowance(trace: &Trace, clock: TickRate) -> f64 {
    EVICTION_NS * clock.ticks_per_ns + READ_DISTANCES * trace.read_distance_ticks as f64
}

fn evictions_of(trace: &Trace, clock: TickRate) -> Vec<(u64, u64)> {
    let allowed = allowance(trace, clock);
    let unexplained =
        |g: &&record::Gap| (g.end_ticks.saturating_sub(g.start_ticks)).saturating_sub(g.blocked_ticks) as f64 > allowed;
    let gaps = trace.gaps.iter().filter(unexplained).map(|g| (g.start_ticks, g.end_ticks));
    let delayed = trace.queue_delays.iter().filter(|d| d.delay_ns as f64 > EVICTION_NS);
    let queued = delayed.map(|d| (d.start_ticks, d.end_ticks));
    gaps.chain(queued).chain(edges(trace, clock)).collect()
}

/// The begin and the end of the working window where the worker read no clock for longer than allowed: it logs no gap
/// that begins before the window. A pass that sleeps or waits may well straddle the edge, so of a worker that blocked
/// three median slices more are allowed (a slice is never shorter than a pass).
pub(crate) fn edges(trace: &Trace, clock: TickRate) -> Vec<(u64, u64)> {
    let Some(first) = trace.slices.first() else { return Vec::new() };
    let last_read = first.start_ticks + trace.span_ticks;
    let both = [(trace.work_ticks, first.start_ticks), (last_read, trace.close_ticks)];
    let slices = || median_of(trace.slices.iter().map(|s| s.end_ticks.saturating_sub(s.start_ticks) as f64));
    let blocking = if trace.blocked_ticks > 0 { READ_DISTANCES * slices().unwrap_or(0.0) } else { 0.0 };
    let allowed = allowance(trace, clock) + blocking;
    both.into_iter().filter(|(start, end)| end.saturating_sub(*start) as f64 > allowed).collect()
}
