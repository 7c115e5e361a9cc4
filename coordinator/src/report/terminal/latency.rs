//! Latencies of passes, where a role times them: from when a pass was due, and from when it began.

use super::percentiles::{self, Figure};
use crate::report::page::Page;
use record::Run;

const FIGURES: [Figure; 6] = [
    ("passes", |times| times.count),
    ("p50", |times| times.p50),
    ("p90", |times| times.p90),
    ("p99", |times| times.p99),
    ("p99.9", |times| times.p999),
    ("max", |times| times.max),
];

/// A row for each kind of latency of each role that has one. Nothing where no role times its passes.
pub(super) fn write(page: &mut Page, run: &Run) {
    let there = percentiles::write(page, run, "Latency of a pass, as measured, ns", "latency", &FIGURES, |role| {
        vec![("response", role.latency_ns), ("service", role.service_ns), ("corrected", role.service_corrected_ns)]
    });
    if there {
        page.legend(
            "response: from when the pass was due to its end; in a closed loop it is due when it begins. service: from \
             its begin. corrected: service with what HdrHistogram adds for passes that were late (coordinated \
             omission). None is masked: a stall is what they are for.",
        );
    }
}
