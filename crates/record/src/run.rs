//! A finished run: the JSON contract of `run.json`, key for key.

use crate::costs::CostProbe;
use crate::kernel_log::StackSummary;
use crate::memory::Timeline;
use crate::observation::Observation;
use crate::reading::Reading;
use plan::CountedBy;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything a run leaves: what was asked, on what, what was seen and what it means.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// [`crate::SCHEMA_VERSION`]; always the first key.
    pub schema_version: u32,
    /// The program that made it.
    pub tool: Tool,
    /// The command line, as typed.
    pub command: String,
    /// Seed of the arms' order, of `[any]` and of the intervals.
    pub seed: u64,
    /// Start, UTC, RFC 3339 with seconds.
    pub started_utc: String,
    /// Wall time of the whole run.
    pub duration_s: f64,
    /// The machine.
    pub host: Host,
    /// The question.
    pub scenario: ScenarioText,
    /// How figures were made.
    pub method: Method,
    /// What each counter of this run counts on this machine; one entry for each kind of core it was asked of.
    #[serde(default)]
    pub events: Vec<CountedEvent>,
    /// Every arm, in the plan's order; references last.
    pub arms: Vec<ArmSummary>,
    /// Every worker of every repetition, spoiled ones too, in the order in which they ran.
    pub observations: Vec<Observation>,
    /// The scenario's claims, judged.
    pub expect: Vec<ExpectOutcome>,
    /// What whoever ran it had predicted, beside what was seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub predictions: Vec<Prediction>,
    /// What is wrong, and what would cure it; most severe first, never empty.
    pub diagnosis: Vec<Diagnosis>,
    /// What the reader should know about these figures.
    pub warnings: Vec<Warning>,
    /// Machine code of the loops that ran; `None` where it was not kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
}

/// Machine code of the loops that ran: of each variant and role one worker's, as many as are worth keeping.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Code {
    /// In the order of the arms.
    pub listings: Vec<CodeListing>,
    /// Listings beyond these.
    pub listings_left_out: u32,
}

/// One worker's compiled loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeListing {
    /// The arm's name.
    pub arm: String,
    /// The role's.
    pub role: String,
    /// The worker's index over all roles.
    pub worker: u32,
    /// A line an instruction or step, each step above the instructions that it became.
    pub text: String,
    /// Lines beyond these.
    pub lines_left_out: u32,
}

/// The program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// Package version.
    pub version: String,
    /// Commit it was built from, where known.
    pub commit: Option<String>,
}

/// The machine a run was made on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Host name.
    pub hostname: String,
    /// Kernel release.
    pub kernel: String,
    /// CPU model as `/proc/cpuinfo` names it.
    pub cpu_model: String,
    /// Hypervisor, where cpuid says there is one.
    pub hypervisor: Option<String>,
    /// Online CPUs.
    pub cpus: u32,
    /// Last-level cache groups.
    pub llc_groups: u32,
    /// NUMA nodes.
    pub nodes: u32,
    /// Sockets.
    pub sockets: u32,
    /// Cache line, bytes.
    pub line_bytes: u32,
    /// Ticks of the time-stamp counter a second, as calibrated.
    pub ticks_per_second: f64,
    /// `/proc/sys/kernel/perf_event_paranoid`.
    pub perf_event_paranoid: Option<i32>,
    /// Stolen time over the run as a share of all CPU time, where the kernel says.
    pub stolen_share: Option<f64>,
}

/// The scenario as it was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScenarioText {
    /// Its title.
    pub title: String,
    /// Its question.
    pub question: String,
    /// The file as named on the command line.
    pub path: String,
    /// SHA-256 of the text, hexadecimal.
    pub sha256: String,
    /// The whole file.
    pub text: String,
}

/// How figures were made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Method {
    /// The interval's method, in a phrase.
    pub interval: String,
    /// Its level, 0.95.
    pub level: f64,
    /// Length of a slice.
    pub slice_us: f64,
    /// The control interval's farther end from 1, as a ratio minus 1: the smallest effect the run could have seen.
    /// `None` where the control arm resolved nothing.
    pub resolution: Option<f64>,
    /// The control arm's ratio to its twin, where there is one.
    pub control: Option<Interval>,
    /// Share of the window spent reading the clock and logging, as measured; `None` where it was not.
    pub watching_cost: Option<f64>,
    /// What trying locks first and timing them cost: the first variant's ns per pass over its `plain` twin's. `None` where
    /// there is no such twin, or too few repetitions of it.
    #[serde(default)]
    pub lock_timing: Option<Interval>,
    /// The headline regime, where repetitions agree on one.
    pub headline_regime: Option<Regime>,
    /// Every regime seen, ascending by transfer time.
    pub regimes: Vec<Regime>,
    /// Blocks run; more than asked for where the run was extended.
    pub blocks: u32,
    /// Whether it was extended because noise hid the answer.
    pub extended: bool,
}

/// What stands behind a counter's name on one kind of core of this machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CountedEvent {
    /// The counter's name, a key of `counters`.
    pub name: String,
    /// What a table calls it here, in a few words: where the kernel's generic event counts something else than its
    /// name says, this says what it counts.
    pub shown: String,
    /// The event in perf's spelling (`L1-dcache-load-misses`, `cpu/event=0x44,umask=0x04/`), for a check by hand;
    /// `None` where it is no perf event or this machine has none.
    pub event: Option<String>,
    /// What is counted, in a sentence.
    pub counts: String,
    /// Where that is written down: a manual, a source file, an address.
    pub source: String,
    /// Who counts it.
    pub counted_by: CountedBy,
    /// The CPUs of this kind of core among those asked, as the kernel writes lists: `0-3,8`.
    pub cpus: String,
}

/// Repetitions whose line-transfer time and core speed agree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Regime {
    /// Its number in [`Observation::regime`](crate::Observation::regime).
    pub number: u32,
    /// Median one-way transfer time; `None` where only single workers ran.
    pub transfer_ns: Option<f64>,
    /// Median of the contended probe, nanoseconds a pass; `None` likewise.
    pub contended_ns: Option<f64>,
    /// Median of the fixed throughput-bound loop, nanoseconds: larger is slower.
    pub core_speed: f64,
    /// What operations cost in it, medians over its workers.
    #[serde(default)]
    pub costs: CostProbe,
    /// Repetitions in it, over all arms.
    pub repetitions: u32,
}

/// A median and its 95 % interval.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The estimate.
    pub median: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// What an arm is for, as the JSON spells it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A variant.
    Variant,
    /// One worker alone.
    Solo,
    /// A copy for each.
    Unshared,
    /// The first variant again.
    Control,
    /// An untimed twin.
    Plain,
}

impl From<&plan::ArmKind> for Kind {
    fn from(kind: &plan::ArmKind) -> Kind {
        match kind {
            plan::ArmKind::Variant => Kind::Variant,
            plan::ArmKind::Solo { .. } => Kind::Solo,
            plan::ArmKind::Unshared => Kind::Unshared,
            plan::ArmKind::Control => Kind::Control,
            plan::ArmKind::Plain => Kind::Plain,
        }
    }
}

/// What became of an arm.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArmState {
    /// It has figures.
    Measured,
    /// It ran, but kept too few repetitions in one regime for a figure.
    Unresolved,
    /// This host cannot place it.
    NotApplicable,
}

/// One arm's figures: its headline role's, in the headline regime.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArmSummary {
    /// As claims name it.
    pub name: String,
    /// What it is for.
    pub kind: Kind,
    /// What became of it.
    pub state: ArmState,
    /// Why it has no figures, where it has none.
    pub why: Option<String>,
    /// `co-running`, or `none` where workers share a CPU.
    pub mask: String,
    /// The variant it comes from.
    pub variant: String,
    /// The sweep's point.
    pub sweep: BTreeMap<String, String>,
    /// Bytes the layout takes.
    pub bytes: u64,
    /// Where everything lies.
    pub layout: Vec<LayoutRow>,
    /// Number of the regime that the arm's figures come from; `None` where it has no sound repetition.
    #[serde(default)]
    pub regime: Option<u32>,
    /// Transfer time of that regime.
    pub regime_transfer_ns: Option<f64>,
    /// Repetitions by fate.
    pub repetitions: RepetitionCount,
    /// Lost co-running time as a share of all window time, spoiled repetitions included.
    pub lost_share: f64,
    /// What it read in other regimes.
    pub other_regimes: Vec<OtherRegime>,
    /// The role whose figures stand here.
    pub headline_role: String,
    /// Nanoseconds a pass, per worker.
    pub ns_per_op: Option<Interval>,
    /// Spread of single slices.
    pub slice_ns_per_op: Option<Quantiles>,
    /// Passes a second, over the role's workers.
    pub ops_per_second: Option<Interval>,
    /// Against the fastest variant: 1 or more where it is slower.
    pub ratio_to_best: Option<Interval>,
    /// Every role.
    pub roles: Vec<RoleSummary>,
    /// Every worker.
    pub workers: Vec<WorkerSummary>,
    /// Every lock that is used.
    pub locks: Vec<LockSummary>,
    /// One repetition's memory steps through the window; `None` where no loop has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
    /// The kernel's stacks at flushes and function-call interrupts, most frequent first by role and event; empty without
    /// `--stacks`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<StackSummary>,
    /// What the model made of it; `None` where no model ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modelled: Option<crate::ModelledArm>,
}

/// One element of the layout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LayoutRow {
    /// Field or lock.
    pub field: String,
    /// Element.
    pub element: u32,
    /// Byte offset from the start of the fields area, which is aligned to a page.
    pub offset: u64,
    /// Size.
    pub bytes: u64,
    /// Number of its first cache line in the fields area.
    pub line: u64,
    /// Workers that write it.
    pub writers: Vec<u32>,
    /// Workers that read it.
    pub readers: Vec<u32>,
}

impl LayoutRow {
    /// The row of an element that was placed.
    pub fn of(placed: &plan::Placed) -> LayoutRow {
        let indices = |workers: &[plan::WorkerIndex]| workers.iter().map(|w| w.0).collect();
        LayoutRow {
            field: placed.field.clone(),
            element: placed.element,
            offset: placed.offset,
            bytes: placed.bytes,
            line: placed.offset / plan::CACHE_LINE_BYTES,
            writers: indices(&placed.writers),
            readers: indices(&placed.readers),
        }
    }
}

/// Repetitions by fate.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RepetitionCount {
    /// In the headline regime and counted.
    pub kept: u32,
    /// Spoiled.
    pub spoiled: u32,
    /// Sound, but in another regime.
    pub other_regime: u32,
}

/// A headline role's figure in a regime that is not the headline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OtherRegime {
    /// Transfer time.
    pub transfer_ns: Option<f64>,
    /// The contended probe, nanoseconds a pass.
    pub contended_ns: Option<f64>,
    /// Nanoseconds a pass; an interval of equal ends where repetitions are too few for one.
    pub ns_per_op: Interval,
    /// Repetitions.
    pub repetitions: u32,
}

/// Quantiles of single slices.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// 10 %.
    pub p10: f64,
    /// Median.
    pub p50: f64,
    /// 90 %.
    pub p90: f64,
}

/// One role of an arm.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RoleSummary {
    /// Its name.
    pub role: String,
    /// Nanoseconds a pass: the median worker's in each repetition.
    pub ns_per_op: Option<Interval>,
    /// The slowest worker's.
    pub slowest_worker_ns_per_op: Option<Interval>,
    /// `ns_per_op` against the variant in which this role's is the least: 1 or more where it is slower.
    #[serde(default)]
    pub ratio_to_best: Option<Interval>,
    /// `slowest_worker_ns_per_op` against the variant in which that is the least.
    #[serde(default)]
    pub slowest_worker_ratio_to_best: Option<Interval>,
    /// Passes a second, over its workers.
    pub ops_per_second: Option<Interval>,
    /// Jain's index of its workers' rates: 1 is even, 1/n is one worker taking all.
    pub fairness_jain: Option<f64>,
    /// Against the baselines.
    pub contention: Contention,
    /// Latency of a pass from its intended start, unmasked; `None` where the role does not ask for it.
    #[serde(default)]
    pub latency_ns: Option<Percentiles>,
    /// From its actual start: what a closed loop sees.
    #[serde(default)]
    pub service_ns: Option<Percentiles>,
    /// `service_ns` with HdrHistogram's correction for coordinated omission, its expected interval the role's period.
    #[serde(default)]
    pub service_corrected_ns: Option<Percentiles>,
    /// Time of a batch of its `touch` steps, as it was, from the begin of the last role's work on; `None` where its loop
    /// has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_ns: Option<Percentiles>,
    /// The same with each stall charged to every batch that should have started meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_corrected_ns: Option<Percentiles>,
    /// The batches before that, as they were; `None` where all roles begin with the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_before_ns: Option<Percentiles>,
    /// `batch_ns` in ticks of the TSC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_ticks: Option<Percentiles>,
    /// `batch_before_ns` in ticks of the TSC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_before_ticks: Option<Percentiles>,
    /// Counters by glossary name, summed over its workers and repetitions of the headline regime.
    pub counters: BTreeMap<String, CounterSummary>,
}

/// A role's cost of sharing.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct Contention {
    /// ns per pass, against one worker alone.
    pub solo: Option<Interval>,
    /// ns per pass, against a copy for each.
    pub unshared: Option<Interval>,
}

/// A counter of a role: what was measured beside what a model computed, never one in the other's place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CounterSummary {
    /// Measured.
    pub measured: Measured,
    /// Computed by the model; `None` where no model ran.
    pub modelled: Option<Modelled>,
}

/// A measured count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The reading, summed over workers and repetitions (what several read of [one thing](plan::event::Scope) once);
    /// the worst state of them all.
    #[serde(flatten)]
    pub reading: Reading,
    /// Events a pass; of what [spans the warm-up](plan::event::spans_warm_up), the window's part by time.
    pub per_op: Option<f64>,
    /// Events a second of the stretch that is counted, over the role's workers.
    pub per_second: Option<f64>,
}

/// A modelled count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Modelled {
    /// Events.
    pub value: f64,
    /// Events a pass.
    pub per_op: f64,
}

/// One worker of an arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerSummary {
    /// Its index.
    pub index: u32,
    /// Its role.
    pub role: String,
    /// Its CPU.
    pub cpu: u32,
    /// Nanoseconds a pass.
    pub ns_per_op: Option<Interval>,
    /// Passes a second.
    pub ops_per_second: Option<Interval>,
    /// Response times of its passes, as [`RoleSummary::latency_ns`]; `None` where its role does not time them.
    #[serde(default)]
    pub latency_ns: Option<Percentiles>,
}

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
    /// Share of acquisitions whose first try failed; `None` with no acquisition, and where it was not looked at (a `plain`
    /// arm).
    #[serde(default)]
    pub contended_share: Option<f64>,
    /// Changes of owner for each acquisition.
    #[serde(default)]
    pub handoffs_per_op: Option<f64>,
    /// Jain's index of its workers' acquisitions in the time in which all ran: the median repetition's. `None` for a lone worker, and for copies.
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

/// Percentiles of a distribution, from an HdrHistogram of 3 digits. Its unit stands in the name of whoever has one.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// How many.
    pub count: u64,
    /// Smallest.
    pub min: u64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: u64,
    /// 90 %.
    pub p90: u64,
    /// 99 %.
    pub p99: u64,
    /// 99.9 %.
    pub p999: u64,
    /// Largest.
    pub max: u64,
}

/// A claim, judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExpectOutcome {
    /// As written.
    pub claim: String,
    /// The judgement.
    pub state: ExpectState,
    /// Left-hand side over right-hand side, or the left-hand side against a number.
    pub seen: Option<Interval>,
    /// What the state rests on, in plain words.
    pub why: String,
}

/// How a claim was judged on its interval.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpectState {
    /// The whole interval is on the claimed side.
    Holds,
    /// The whole interval is on the other.
    Fails,
    /// It lies across.
    Undecided,
    /// It does not apply here.
    NotApplicable,
}

/// What somebody thought a run would show, beside what it showed. It does not pass or fail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Of what: `ns_per_op(packed) / ns_per_op(padded-64)`.
    pub text: String,
    /// The number, in the unit of the metric; a ratio has none.
    pub predicted: f64,
    /// What was seen; `None` where the run has no such figure.
    pub seen: Option<Interval>,
    /// The larger of the prediction and the median seen, over the smaller: 1 where they agree. `None` where one of them
    /// is 0, or nothing was seen.
    pub off_by: Option<f64>,
    /// Whether the prediction lies in the interval; `None` where nothing was seen.
    pub inside: Option<bool>,
    /// Why nothing was seen; else empty.
    pub why: String,
}

/// What is wrong, or that nothing is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// `false_sharing`, `true_sharing`, `reader_invalidation`, `adjacent_line`; of locks `long_hold`, `convoy`,
    /// `costly_handoff`, `unfair`, `starved`, `oversubscribed`, `lock_word_shares_line`, `owner_died`, `lock_contention`;
    /// of memory given back `tlb_shootdown`; or `none`.
    pub kind: String,
    /// How much it costs.
    pub severity: Severity,
    /// In one sentence, for a student.
    pub text: String,
    /// The arms it was seen in.
    pub arms: Vec<String>,
    /// The fields concerned.
    pub fields: Vec<String>,
    /// The roles concerned.
    pub roles: Vec<String>,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
    /// What to do.
    pub cure: String,
    /// What the cure gave in this run: the ratio of ns per pass, sick over cured; of `tlb_shootdown` that of the batches'
    /// 99.9th percentile where it tells more. `None` where no arm holds the cure.
    pub expected_gain: Option<Gain>,
}

/// How much a diagnosis costs.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Nothing to do.
    None,
    /// Below 1.2 ×.
    Low,
    /// Below 2 ×.
    Medium,
    /// From 2 ×.
    High,
}

/// One figure a diagnosis rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// What it is.
    pub name: String,
    /// The figure; `None` where it could not be had.
    pub value: Option<f64>,
    /// Its unit.
    pub unit: String,
    /// Where it comes from: `measured`, `modelled`, `layout`, or `missing: …`.
    pub source: String,
}

impl Evidence {
    /// A row, with `None` where it is missing; `source` then says why.
    pub fn new(name: String, value: Option<f64>, unit: &str, source: &str) -> Evidence {
        Evidence { name, value, unit: unit.to_owned(), source: source.to_owned() }
    }
}

/// A cure's measured gain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// The arm that holds the cure.
    pub arm: String,
    /// Sick over cured.
    pub ratio: Interval,
}

/// What the reader should know about the figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Warning {
    /// Stable: `no_pmu`, `lost_time`, `regimes_mixed`, ….
    pub id: String,
    /// What was seen.
    pub text: String,
    /// What to do.
    pub advice: String,
}
