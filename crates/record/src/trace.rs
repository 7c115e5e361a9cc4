//! What one worker recorded in one repetition, unjudged. Written by the worker at its end, read by the coordinator.
//!
//! Times are ticks of the invariant TSC (`CNTVCT_EL0` on Arm), one clock over all CPUs; the coordinator knows their
//! length. Nothing here is masked: which slices count is for `analysis` to say, which sees all workers.

use crate::costs::CostProbe;
use crate::kernel_log::KernelTrace;
use crate::memory::MemoryTrace;
use crate::reading::CounterReadings;
use crate::times::{TickCount, TickSpan};
use serde::{Deserialize, Serialize};

/// One worker's record of one repetition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// The worker's index over all roles.
    pub worker: u32,
    /// Its process.
    pub pid: i32,
    /// Its thread; of a process's first worker the same number.
    pub tid: i32,
    /// The CPU its affinity named when read back after pinning.
    pub cpu: u32,
    /// When the window opened, ticks; the same in every worker of a repetition.
    pub open_ticks: u64,
    /// When this worker was to begin its loop: `open_ticks`, or later by its role's `after`. Slices, passes and the
    /// span lie behind it; counters count from `open_ticks` on.
    pub work_ticks: u64,
    /// When it closed.
    pub close_ticks: u64,
    /// Passes between the first and the last clock read inside the window.
    pub passes: u64,
    /// Passes of the loop from its first on: those of the warm-up, of the window, and after it. What one of them adds
    /// up in memory was added so many times.
    pub all_passes: u64,
    /// Whether its last pass was given up in its middle, for a wait that would not have ended: what that pass did
    /// before stays done, and it is not among [`Trace::all_passes`].
    pub gave_up: bool,
    /// Ticks between those two reads.
    pub span_ticks: u64,
    /// Contiguous slices of that span, ascending.
    pub slices: Vec<Slice>,
    /// Distances of two clock reads that were long enough to be an eviction, ascending; `analysis` decides.
    pub gaps: Vec<Gap>,
    /// Gaps that found the log full: above 0 the mask is incomplete and the repetition spoiled.
    pub gaps_lost: u64,
    /// Median distance of two clock reads in the window, less timed blocking, ticks.
    pub read_distance_ticks: u64,
    /// What one clock read with its bookkeeping costs, timed before the warm-up, ticks: the price of watching.
    pub read_cost_ticks: f64,
    /// Time spent in timed blocking inside the window (contended lock, `sleep`, `yield`), ticks.
    pub blocked_ticks: u64,
    /// Long blockings after which the run queue was asked how long it kept the worker waiting.
    pub queue_delays: Vec<QueueDelay>,
    /// Delays that found the log full: above 0 the mask is incomplete and the repetition spoiled.
    pub queue_delays_lost: u64,
    /// Median one-way time of one line between this worker's CPU and its ring neighbours', before the warm-up, ticks.
    /// `None` where it has no neighbour on another CPU.
    pub transfer_before_ticks: Option<f64>,
    /// The same after the window.
    pub transfer_after_ticks: Option<f64>,
    /// Median ticks a pass while this worker and its ring neighbours counted up words of one line, before the warm-up:
    /// how long a CPU keeps a contested line. `None` where it has no neighbour on another CPU.
    pub contended_before_ticks: Option<f64>,
    /// The same after the window.
    pub contended_after_ticks: Option<f64>,
    /// Each reading of these probes by the pair: before the warm-up and after the window, for each ring neighbour.
    pub edges: Vec<EdgeProbe>,
    /// What operations cost on this worker's CPU, before the warm-up.
    pub costs: CostProbe,
    /// Ticks that a fixed, throughput-bound loop took before the warm-up: the core's speed, sibling included.
    pub core_loop_before_ticks: u64,
    /// The same after the window.
    pub core_loop_after_ticks: u64,
    /// Ticks between the two notes of what is taken from the worker's CPU and cgroup: before the warm-up, and after all
    /// have left the window. Counters that [span the warm-up](plan::event::spans_warm_up) are of this stretch. `None`
    /// where not both were made.
    pub noted_ticks: Option<u64>,
    /// What the worker's counters said about its window.
    pub counters: CounterReadings,
    /// What the kernel did to its translations; `None` in a run without memory steps.
    pub kernel: Option<KernelTrace>,
    /// Latencies of its passes; `None` where its role does not ask for them.
    pub latency: Option<LatencyTrace>,
    /// Its memory steps; `None` where its loop has none.
    pub memory: Option<MemoryTrace>,
    /// One entry a lock of the Program that the worker uses, by index.
    pub locks: Vec<LockTrace>,
    /// Steps with no pass completed: the step in which the worker stood when the window closed, if it completed none.
    pub stuck_in_step: Option<u32>,
}

impl Trace {
    /// The part of the window in which the worker had work, ticks: all of it, unless its role begins later.
    pub fn working_ticks(&self) -> u64 {
        self.close_ticks.saturating_sub(self.work_ticks)
    }
}

/// One reading of the probes of a line between this worker's CPU and a ring neighbour's.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EdgeProbe {
    /// The neighbour, by its index over all roles.
    pub neighbour: u32,
    /// Median one-way time, ticks; `None` in the worker that answered, since one of the two times the line.
    pub transfer_ticks: Option<f64>,
    /// This worker's median ticks a pass in the contended probe; `None` where evictions left too few sound blocks.
    pub contended_ticks: Option<f64>,
}

/// A stretch of a worker's window: at least one pass, and at least half a millisecond, unless the last role's work
/// begins within it, which ends it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    /// First clock read.
    pub start_ticks: u64,
    /// Last clock read; the next slice starts here.
    pub end_ticks: u64,
    /// Passes completed between the two.
    pub passes: u64,
}

/// Two clock reads further apart than the loop explains.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The earlier read.
    pub start_ticks: u64,
    /// The later read.
    pub end_ticks: u64,
    /// Timed blocking between the two: their distance less this is unexplained.
    pub blocked_ticks: u64,
}

/// A blocking of over 50 µs, and how much of it the worker was runnable but not running
/// (`/proc/thread-self/schedstat`).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueDelay {
    /// Begin of the blocking.
    pub start_ticks: u64,
    /// Its end.
    pub end_ticks: u64,
    /// Run-queue delay in it, nanoseconds of the scheduler's clock.
    pub delay_ns: u64,
}

/// One worker's dealings with one lock inside the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LockTrace {
    /// Index into the Program's locks.
    pub lock: u32,
    /// Times it was acquired.
    pub acquisitions: u64,
    /// Times the first try failed.
    pub contended: u64,
    /// Contended waits in order; those beyond the log's capacity are in [`LockTrace::waits_lost`] alone.
    pub waits: Vec<TickSpan>,
    /// Contended waits that found the log full.
    pub waits_lost: u64,
    /// Acquisitions after which the lock's previous owner was another worker.
    pub handoffs: u64,
    /// Longest run of this worker's acquisitions in the window, but for a reader's, with none by another in between.
    pub longest_run: u64,
    /// Acquisitions that found the previous owner dead.
    pub owner_died: u64,
    /// Acquisitions as a reader, of [`LockTrace::acquisitions`].
    pub shared: u64,
    /// Sampled holds in order: one acquisition in [`HOLD_SAMPLING`](crate::HOLD_SAMPLING), from owning to releasing;
    /// for a sequence lock's reader with what it read again. Sampling stops where the log is full, and none are taken
    /// in a `plain` arm.
    pub holds: Vec<TickSpan>,
    /// Turns that contended acquisitions spun, where the lab's own algorithm spins; 0 for the others.
    pub spins: u64,
    /// Times the lab's own algorithm slept in the kernel; 0 for the others, whose calls the counter `futex_calls` sees.
    pub futex_waits: u64,
    /// Times a reader of a sequence lock read again. That belongs to its acquisition, which is not counted again; where
    /// a writer is inside then, the wait is blocked time and stands in no log.
    pub retries: u64,
    /// Acquisitions that gave up at their timeout; none of the other figures holds them.
    pub timeouts: u64,
    /// Longest stretch of the window without an acquisition by this worker, its edges included. An uncontended
    /// acquisition reads no clock and counts as of the last read before it: to about 20 µs.
    pub longest_gap_ticks: u64,
}

/// Latencies of one worker's passes in the window, where its role asks for them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyTrace {
    /// From a pass's intended start to its end; in a closed loop the intended start is the actual one.
    pub response: Vec<TickCount>,
    /// From its actual start to its end.
    pub service: Vec<TickCount>,
}
