//! Latencies of single passes, in histograms that are reserved before the window.

use hdrhistogram::Histogram;
use record::{LatencyTrace, TickCount};

/// Significant digits: the error is under 0.1 %.
const DIGITS: u8 = 3;

/// Response and service of one worker's passes, ticks.
pub(crate) struct Latency {
    response: Histogram<u64>,
    service: Histogram<u64>,
}

impl Latency {
    /// For latencies up to `longest_ticks`; longer ones count as that long.
    pub(crate) fn of_at_most(longest_ticks: u64) -> Latency {
        let histogram = || Histogram::new_with_bounds(1, longest_ticks.max(1 << 20), DIGITS).expect("bounds are valid");
        Latency { response: histogram(), service: histogram() }
    }

    /// Notes a pass that was to begin at `intended`, began at `start` and ended at `end`.
    pub(crate) fn note(&mut self, intended: u64, start: u64, end: u64) {
        self.response.saturating_record(end.saturating_sub(intended).max(1));
        self.service.saturating_record(end.saturating_sub(start).max(1));
    }

    /// What was noted, ascending by length.
    pub(crate) fn into_trace(self) -> LatencyTrace {
        LatencyTrace { response: counts(&self.response), service: counts(&self.service) }
    }
}

/// Each length that occurred, as the middle of those that the histogram does not tell apart.
pub(crate) fn counts(histogram: &Histogram<u64>) -> Vec<TickCount> {
    let recorded = histogram.iter_recorded();
    recorded
        .map(|step| TickCount {
            ticks: histogram.median_equivalent(step.value_iterated_to()),
            count: step.count_at_value(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_counts_from_the_intended_start_and_service_from_the_actual_one() {
        let mut latency = Latency::of_at_most(1 << 30);
        for _ in 0..3 {
            latency.note(1_000, 1_400, 1_500);
        }
        latency.note(2_000, 2_000, 1_002_000);
        let trace = latency.into_trace();
        let at = |ticks, count| TickCount { ticks, count };
        assert_eq!((trace.response[0], trace.service[0]), (at(500, 3), at(100, 3)));
        for long in [trace.response[1], trace.service[1]] {
            assert!(long.count == 1 && long.ticks.abs_diff(1_000_000) <= 1_000, "{long:?}");
        }
    }

    #[test]
    fn what_no_histogram_holds_counts_as_the_longest() {
        let mut latency = Latency::of_at_most(1 << 21);
        latency.note(0, 1 << 40, 1 << 41);
        latency.note(9, 9, 9);
        let trace = latency.into_trace();
        assert_eq!(trace.service[0], TickCount { ticks: 1, count: 1 }, "a pass within one tick is not none");
        assert!(trace.response.len() == 2 && trace.response[1].ticks >= 1 << 21, "{trace:?}");
    }
}
