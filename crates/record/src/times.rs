//! Lengths of time: one on a worker's clock, and how often each came.

use serde::{Deserialize, Serialize};

/// A contended wait, or a hold: when it began and how long it took, on the clock of [`Trace`](crate::Trace).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TickSpan {
    /// Of a wait: when the first try had failed. Of a hold: when the lock was owned.
    pub start_ticks: u64,
    /// From then until the lock was owned; of a hold, until it was released.
    pub ticks: u64,
}

/// So many of what is timed took that long, to three digits, as an HdrHistogram counts them.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TickCount {
    /// Length.
    pub ticks: u64,
    /// How many.
    pub count: u64,
}

/// The same in nanoseconds: waits, holds, passes or batches, of which a repetition can hold a million.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct NsCount {
    /// Length.
    pub ns: u64,
    /// How many.
    pub count: u64,
}
