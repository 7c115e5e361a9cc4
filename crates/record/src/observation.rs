//! One worker in one repetition, judged: what of its window counts.

use crate::costs::CostProbe;
use crate::kernel_log::KernelObservation;
use crate::memory::MemoryObservation;
use crate::reading::CounterReadings;
use crate::times::NsCount;
use serde::{Deserialize, Serialize};

/// One worker's share of one repetition, after the co-running mask. A row of `samples.csv`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Observation {
    /// The arm's name.
    pub arm: String,
    /// The block, from 0.
    pub block: u32,
    /// The worker's index over all roles.
    pub worker: u32,
    /// Its role's name.
    pub role: String,
    /// Its process; `None` where a model made the observation.
    pub pid: Option<i32>,
    /// Its thread, where that differs from the process.
    pub tid: Option<i32>,
    /// Its CPU.
    pub cpu: u32,
    /// Passes in the whole window.
    pub passes: u64,
    /// Passes in kept slices: those from the begin of the last role's work on that overlap no eviction.
    pub kept_passes: u64,
    /// Length of the kept slices.
    pub kept_ns: f64,
    /// Length of the masked ones: time in which some worker of the repetition was evicted, after all had begun.
    pub lost_ns: f64,
    /// Timed blocking in the window.
    pub blocked_ns: f64,
    /// Length of the whole window as the worker saw it: what counters divide by.
    pub window_ns: f64,
    /// Length of warm-up and window together, as noted around them: what counters that
    /// [span both](plan::event::spans_warm_up) divide by. `None` where it was not noted.
    #[serde(default)]
    pub noted_ns: Option<f64>,
    /// Nanoseconds a pass: the median of the kept slices; `None` with no kept slice that holds a pass.
    pub ns_per_op: Option<f64>,
    /// Nanoseconds a pass in each kept slice, in order. In memory only: `run.json` holds their quantiles by arm.
    #[serde(skip)]
    pub slice_ns_per_op: Vec<f64>,
    /// One-way time of a line between the workers' CPUs before the repetition: the slowest pair's; one for all workers.
    pub transfer_before_ns: Option<f64>,
    /// The same after it.
    pub transfer_after_ns: Option<f64>,
    /// Nanoseconds a pass of two neighbours that count up words of one line, before the repetition: the mean over its
    /// workers; one for all.
    pub contended_before_ns: Option<f64>,
    /// The same after it.
    pub contended_after_ns: Option<f64>,
    /// How long the fixed throughput-bound loop took on the slowest worker's core, the slower of before and after;
    /// one for all workers. Nanoseconds: larger is slower.
    #[serde(rename = "core_speed")]
    pub core_loop_ns: f64,
    /// What operations cost on its CPU before the warm-up. In memory only: `run.json` holds the medians by regime.
    #[serde(skip)]
    pub costs: CostProbe,
    /// Regime by number, ascending by transfer time; `None` where the repetition belongs to none.
    pub regime: Option<u32>,
    /// Why the repetition does not count. Empty where it does; the same for all its workers. The reasons are
    /// `lost_time` (little of the window was co-running), `regime_changed` (before and after it the line's times
    /// differ), `no_regime` (evictions left the contended probe without a reading), `core_speed_changed` (a core became
    /// faster or slower within it), `gap_log_full` (evictions are missing from the mask) and `region_used_up` (a region
    /// was punched all through before the window ended).
    pub spoiled: Vec<String>,
    /// Counters over the whole window.
    pub counters: CounterReadings,
    /// Latencies of its passes, from the intended start, unmasked. In memory only.
    #[serde(skip)]
    pub response: Vec<NsCount>,
    /// The same from the actual start. In memory only.
    #[serde(skip)]
    pub service: Vec<NsCount>,
    /// Its memory steps; `None` where its loop has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<MemoryObservation>,
    /// What the kernel did to its translations; `None` in a run without memory steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelObservation>,
    /// Its dealings with each lock it uses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locks: Vec<LockObservation>,
}

/// One worker's dealings with one lock in one repetition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LockObservation {
    /// The lock's name.
    pub lock: String,
    /// Times it was acquired.
    pub acquisitions: u64,
    /// Times the first try failed.
    pub contended: u64,
    /// Contended waits that overlap no eviction, and began when all roles had. In memory only.
    #[serde(skip)]
    pub kept_waits: Vec<NsCount>,
    /// Every contended wait in the log. In memory only.
    #[serde(skip)]
    pub all_waits: Vec<NsCount>,
    /// Waits that found the log full.
    pub waits_lost: u64,
    /// Changes of owner.
    pub handoffs: u64,
    /// Longest run of one owner.
    pub longest_run: u64,
    /// Acquisitions that found the previous owner dead.
    pub owner_died: u64,
    /// Acquisitions as a reader.
    #[serde(default)]
    pub shared: u64,
    /// Sampled holds that overlap no eviction. In memory only.
    #[serde(skip)]
    pub holds: Vec<NsCount>,
    /// Turns spun, where the lab's own algorithm spins.
    #[serde(default)]
    pub spins: u64,
    /// Sleeps in the kernel, where the lab's own algorithm sleeps.
    #[serde(default)]
    pub futex_waits: u64,
    /// Times a reader of a sequence lock read again.
    #[serde(default)]
    pub retries: u64,
    /// Acquisitions given up at their timeout.
    #[serde(default)]
    pub timeouts: u64,
    /// Longest stretch of the window without an acquisition by this worker.
    #[serde(default)]
    pub longest_gap_ns: f64,
}
