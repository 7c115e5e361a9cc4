//! A lock's figures in an arm, as `run.json` has them: who waited for it how long, and how it went round.

use crate::figure::Percentiles;
use serde::{Deserialize, Serialize};

/// One lock of an arm.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LockSummary {
    /// Its name.
    pub lock: String,
    /// Its algorithm.
    pub kind: String,
    /// Times it was acquired.
    pub acquisitions: u64,
    /// Times the first try failed.
    pub contended: u64,
    /// Contended waits that overlap no eviction; `None` with no such wait.
    pub wait_ns: Option<Percentiles>,
    /// Every contended wait.
    pub wait_ns_all: Option<Percentiles>,
    /// Waits left out of `wait_ns`.
    pub masked: u64,
    /// Waits that found the log full: their times are in neither histogram.
    pub waits_lost: u64,
    /// Hold times; `None` where none were sampled.
    pub hold_ns: Option<Percentiles>,
    /// Changes of owner.
    pub handoffs: u64,
    /// Longest run of one owner.
    pub longest_run: u64,
    /// Acquisitions that found the previous owner dead.
    pub owner_died: u64,
    /// Share of acquisitions whose first try failed; `None` with no acquisition, and where it was not looked at (a
    /// `plain` arm).
    #[serde(default)]
    pub contended_share: Option<f64>,
    /// Changes of owner for each acquisition.
    #[serde(default)]
    pub handoffs_per_op: Option<f64>,
    /// Jain's index of its workers' acquisitions in the time in which all ran: the median repetition's. `None` for a
    /// lone worker, and for copies.
    #[serde(default)]
    pub fairness_jain: Option<f64>,
    /// Longest stretch of a window in which some worker did not acquire it, and whose it was.
    #[serde(default)]
    pub longest_gap_ns: Option<f64>,
    /// The worker of [`LockSummary::longest_gap_ns`].
    #[serde(default)]
    pub longest_gap_worker: Option<u32>,
    /// Acquisitions as a reader.
    #[serde(default)]
    pub shared: u64,
    /// Turns spun for each contended acquisition; `None` where the algorithm is not the lab's or does not spin.
    #[serde(default)]
    pub spins_per_wait: Option<f64>,
    /// Sleeps in the kernel for each acquisition; `None` where the algorithm is not the lab's or does not sleep.
    #[serde(default)]
    pub futex_waits_per_op: Option<f64>,
    /// Times a reader of a sequence lock read again.
    #[serde(default)]
    pub retries: u64,
    /// Acquisitions given up at their timeout.
    #[serde(default)]
    pub timeouts: u64,
    /// One hold in so many was timed; 0 where none was.
    #[serde(default)]
    pub hold_sampling: u64,
    /// Who waited.
    pub by_worker: Vec<LockWorker>,
}

/// One worker at one lock.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LockWorker {
    /// The worker.
    pub worker: u32,
    /// Its role.
    pub role: String,
    /// Times it acquired.
    pub acquisitions: u64,
    /// Times its first try failed.
    pub contended: u64,
    /// Its contended waits, unmasked ones alone.
    pub wait_ns: Option<Percentiles>,
    /// Its sampled holds.
    #[serde(default)]
    pub hold_ns: Option<Percentiles>,
    /// Longest stretch of a window in which it did not acquire it.
    #[serde(default)]
    pub longest_gap_ns: f64,
}
