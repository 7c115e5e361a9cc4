//! A finished run: the JSON contract of `run.json`, key for key.
//!
//! What stands below its keys has files of its own: an arm's figures (`arm`, and `lock` for its locks), judged claims
//! (`claim`), what is wrong (`diagnosis`).

use crate::arm::ArmSummary;
use crate::claim::{ExpectOutcome, Prediction};
use crate::costs::CostProbe;
use crate::diagnosis::{Diagnosis, Warning};
use crate::events::CountedEvent;
use crate::figure::Interval;
use crate::observation::Observation;
use serde::{Deserialize, Serialize};

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
    /// What trying locks first and timing them cost: the first variant's ns per pass over its `plain` twin's. `None`
    /// where there is no such twin, or too few repetitions of it.
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
    #[serde(rename = "core_speed")]
    pub core_loop_ns: f64,
    /// What operations cost in it, medians over its workers.
    #[serde(default)]
    pub costs: CostProbe,
    /// Repetitions in it, over all arms.
    pub repetitions: u32,
}
