//! Batches of touches: an ordinary one against one that a shootdown may have stalled.

use super::percentiles::{self, Figure};
use crate::report::page::Page;
use record::Run;

const FIGURES: [Figure; 7] = [
    ("min", |times| times.min),
    ("mean", |times| times.mean.round() as u64),
    ("p50", |times| times.p50),
    ("p90", |times| times.p90),
    ("p99", |times| times.p99),
    ("p99.9", |times| times.p999),
    ("max", |times| times.max),
];

/// The batches of each role that touches memory, before the last role's work begins and from then on; in nanoseconds,
/// then in ticks. Nothing where no role has batches.
pub(super) fn write(page: &mut Page, run: &Run) {
    let heading = "Time of a batch of touches, as measured, ns";
    let there = percentiles::write(page, run, heading, "batches", &FIGURES, |role| {
        vec![("before", role.batch_before_ns), ("then", role.batch_ns), ("corrected", role.batch_corrected_ns)]
    });
    if !there {
        return;
    }
    page.legend(
        "before: until the role that begins last begins; then: from there on. corrected: each stall charged to every \
         batch that should have started meanwhile too (coordinated omission). None is masked: a stall is what they are \
         for.",
    );
    percentiles::write(page, run, "The same in ticks of the TSC", "batches", &FIGURES, |role| {
        vec![("before", role.batch_before_ticks), ("then", role.batch_ticks)]
    });
}
