//! An arm's figures over its repetitions, as `run.json` has them: its layout, its roles, its workers, its counters.

use crate::figure::{Interval, Percentiles, Quantiles};
use crate::kernel_log::StackSummary;
use crate::lock::LockSummary;
use crate::memory::Timeline;
use crate::modelled::ModelledArm;
use crate::reading::Reading;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
    /// The kernel's stacks at flushes and function-call interrupts, most frequent first by role and event; empty
    /// without `--stacks`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stacks: Vec<StackSummary>,
    /// What the model made of it; `None` where no model ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modelled: Option<ModelledArm>,
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

impl RepetitionCount {
    /// All that ran; more than a u32 where a record says so.
    pub fn all(&self) -> u64 {
        [self.kept, self.spoiled, self.other_regime].into_iter().map(u64::from).sum()
    }
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
    /// Time of a batch of its `touch` steps, as it was, from the begin of the last role's work on; `None` where its
    /// loop has none.
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
