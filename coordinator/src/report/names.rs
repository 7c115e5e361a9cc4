//! What the files of a run's folder are called, for whoever writes them and whoever looks for them.
//! `results/README.md` says what is in each.

/// The record.
pub(crate) const RECORD: &str = "run.json";
/// The page.
pub(crate) const PAGE: &str = "report.html";
/// The observations.
pub(crate) const SAMPLES: &str = "samples.csv";
/// The distributions of waits, holds and latencies.
pub(crate) const LATENCIES: &str = "latency.hlog";
/// Waits and holds one by one.
pub(crate) const LOCK_TIMES: &str = "locks.csv";
/// Steps on regions through each window.
pub(crate) const TIMELINE: &str = "timeline.csv";

/// All of them; a run leaves those that it has something for.
pub(crate) const ALL: [&str; 6] = [RECORD, PAGE, SAMPLES, LATENCIES, LOCK_TIMES, TIMELINE];
