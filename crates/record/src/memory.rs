//! What memory steps left: a worker's batches of touches through the window, and the calls that gave memory back.

use crate::times::{NsCount, TickCount};
use plan::MemoryVerb;
use serde::{Deserialize, Serialize};

/// One worker's memory steps in one window, unjudged; `None` in a [`Trace`](crate::Trace) whose loop has none. All of
/// it is kept in memory that was reserved and touched before the warm-up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryTrace {
    /// Length of a bucket of the timeline, ticks: a millisecond, or longer where the window has more of them than are
    /// kept.
    pub bucket_ticks: u64,
    /// Buckets with a batch in them, ascending.
    pub buckets: Vec<BatchBucket>,
    /// The batches from the begin of the last role's work on.
    pub times: BatchTimes,
    /// Those before it, in the window; `None` where all roles begin with it.
    pub before: Option<BatchTimes>,
    /// Batches longer than [`MemoryTrace::stall_over_ticks`], in order.
    pub stalls: Vec<Stall>,
    /// Such batches that found the log full.
    pub stalls_lost: u64,
    /// From when on a batch is logged as a stall: four medians of the warm-up. `None` where the warm-up held too few
    /// batches to say, and none is logged.
    pub stall_over_ticks: Option<u64>,
    /// Calls that gave memory back, in order.
    pub calls: Vec<MemoryCall>,
    /// Such calls that found the log full.
    pub calls_lost: u64,
    /// What was given back for all who map it, by region.
    pub punched: Vec<Punched>,
    /// What recording one batch costs, its clock read included, timed before the warm-up, ticks.
    pub record_cost_ticks: f64,
}

/// How long batches took.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchTimes {
    /// How many.
    pub batches: u64,
    /// Each as it was, to three digits: a stall counts once.
    pub uncorrected: Vec<TickCount>,
    /// The same with each stall charged to every batch that should have started meanwhile, one each
    /// [`BatchTimes::expected_ticks`] (HdrHistogram's correction for coordinated omission).
    pub corrected: Vec<TickCount>,
    /// The median batch: at this interval batches would have started.
    pub expected_ticks: u64,
}

/// The batches that ended in one stretch of a window.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchBucket {
    /// Its number: it begins so many [`MemoryTrace::bucket_ticks`] behind the window's opening.
    pub number: u32,
    /// Batches that ended in it.
    pub count: u64,
    /// The shortest, ticks, exactly.
    pub min_ticks: u64,
    /// The median, ticks, to 3 %.
    pub p50_ticks: u64,
    /// 99 %, ticks, to 3 %.
    pub p99_ticks: u64,
    /// The longest, ticks, exactly.
    pub max_ticks: u64,
}

/// A batch that took long.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stall {
    /// Begin of the batch.
    pub start_ticks: u64,
    /// Its end.
    pub end_ticks: u64,
}

/// One call that gave memory back: a chunk of a step.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryCall {
    /// Index of the step it came from ([`plan::WorkerProgram::steps`]).
    pub step: u32,
    /// Which call.
    pub verb: MemoryVerb,
    /// Clock read before it.
    pub start_ticks: u64,
    /// Clock read behind it.
    pub end_ticks: u64,
}

/// What one worker took out of a shared region, since the window opened and before.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Punched {
    /// Index into [`plan::Program::regions`].
    pub region: u32,
    /// Bytes until the window closed, in the order in which passes go round it.
    pub bytes: u64,
}

/// One worker's memory steps in one repetition: the trace in nanoseconds. Times are nanoseconds after the window
/// opened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryObservation {
    /// Batches of touches from the begin of the last role's work on.
    pub batches: u64,
    /// Stalls in the whole window: batches longer than four medians of the warm-up.
    pub stalls: u64,
    /// From when on a batch is a stall; `None` where the warm-up could not say.
    pub stall_over_ns: Option<f64>,
    /// Time in stalls beyond the median batch, those that found the log full left out.
    pub stalled_ns: f64,
    /// The median batch: the interval of the correction.
    pub expected_ns: u64,
    /// Calls that gave memory back.
    pub calls: u64,
    /// Time in these calls, those that found the log full left out.
    pub calls_ns: f64,
    /// Calls and stalls that found their log full: the timeline lacks them.
    pub log_lost: u64,
    /// What recording one batch cost.
    pub record_ns: f64,
    /// Ticks of the TSC in a nanosecond, by which its ticks became nanoseconds.
    #[serde(default)]
    pub ticks_per_ns: f64,
    /// Length of a bucket of the timeline.
    pub bucket_ns: f64,
    /// Each batch as it was, from the begin of the last role's work on. In memory only, as all that follows.
    #[serde(skip)]
    pub uncorrected: Vec<NsCount>,
    /// Those before it, where it comes later than the window.
    #[serde(skip)]
    pub before: Vec<NsCount>,
    /// Of [`MemoryObservation::uncorrected`], each stall charged to every batch that should have started meanwhile.
    #[serde(skip)]
    pub corrected: Vec<NsCount>,
    /// The batches through the window.
    #[serde(skip)]
    pub timeline: WorkerTimeline,
}

/// An arm's timeline: one repetition of it, the first that counts. `timeline.csv` has them all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Timeline {
    /// Which repetition: its block.
    pub block: u32,
    /// Length of a bucket, nanoseconds.
    pub bucket_ns: f64,
    /// Each worker that has memory steps.
    pub workers: Vec<WorkerTimeline>,
}

/// One worker's batches and calls through a window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkerTimeline {
    /// Its index.
    pub worker: u32,
    /// Its role.
    pub role: String,
    /// Its batches, by bucket, ascending; buckets without a batch are left out.
    pub buckets: Vec<TimelineBucket>,
    /// Its calls that gave memory back, in order, the first [`MOST_CALLS`](WorkerTimeline::MOST_CALLS) of them.
    pub calls: Vec<TimelineSpan>,
    /// Calls of that repetition beyond these.
    pub calls_left_out: u64,
    /// Its stalled batches, in order, likewise.
    pub stalls: Vec<TimelineSpan>,
    /// Stalls beyond these.
    pub stalls_left_out: u64,
}

impl WorkerTimeline {
    /// Most calls, and most stalls, that `run.json` keeps of a worker: a page can show no more, and `timeline.csv` has
    /// all.
    pub const MOST_CALLS: usize = 250;
}

/// The batches that ended in one stretch of a window.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimelineBucket {
    /// Its begin, nanoseconds after the window opened.
    pub start_ns: f64,
    /// Batches.
    pub count: u64,
    /// The shortest.
    pub min_ns: f64,
    /// The median, to 3 %.
    pub p50_ns: f64,
    /// 99 %, to 3 %.
    pub p99_ns: f64,
    /// The longest.
    pub max_ns: f64,
}

/// A call, or a stalled batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimelineSpan {
    /// The step, as written.
    pub step: String,
    /// Its begin, nanoseconds after the window opened.
    pub start_ns: f64,
    /// Its end.
    pub end_ns: f64,
}
