//! What `coordinator advise --json` prints: the layouts that came into question, what was measured of them, and the
//! advice.

use crate::compare::Verdict;
use crate::diagnosis::Warning;
use crate::figure::Interval;
use crate::run::{Host, ScenarioText, Tool};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The whole of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdviseRun {
    /// Version of this format; always the first key.
    pub schema_version: u32,
    /// The program.
    pub tool: Tool,
    /// The command line as typed.
    pub command: String,
    /// Seed of the arms' order and of the intervals.
    pub seed: u64,
    /// Start, UTC, RFC 3339 with seconds.
    pub started_utc: String,
    /// Wall time of the whole command.
    pub duration_s: f64,
    /// The time that it was given.
    pub budget_s: f64,
    /// The machine.
    pub host: Host,
    /// The scenario.
    pub scenario: ScenarioText,
    /// The variant that stands for the present layout, and the point of the sweep, where there is one.
    pub present: String,
    /// The present layout against itself, over all roles, as a ratio minus 1: a smaller effect was not seen. `None`
    /// where it resolved nothing.
    pub resolution: Option<f64>,
    /// Blocks measured: how often each measured layout was run.
    pub blocks: u32,
    /// Layouts: the present one, those that were measured, then those that were ranked out, best first.
    pub layouts: Vec<AdvisedLayout>,
    /// Variants of the scenario that were not held against the present one, and why.
    pub left_out: Vec<LeftOutVariant>,
    /// What to do.
    pub advice: AdviceRecord,
    /// The struct in the language that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emitted: Option<String>,
    /// What the reader should know about these figures.
    pub warnings: Vec<Warning>,
}

/// One layout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdvisedLayout {
    /// Its name: `present`, a rule's, or that of a variant of the scenario's.
    pub name: String,
    /// Other names that come to the same.
    pub same_as: Vec<String>,
    /// What it is, in a phrase.
    pub what: String,
    /// Bytes of the struct, padding behind the last field included.
    pub bytes: u64,
    /// Alignment that the struct needs.
    pub align: u64,
    /// Where it asks for another program: when that one is the same to those who use the fields, which no measurement
    /// tells.
    pub code_change: Option<String>,
    /// What became of it.
    pub state: LayoutState,
    /// Why it has no measured figures, where it has none.
    pub why: Option<String>,
    /// Time of a pass in the present layout over that in this one, the geometric mean over the roles: above 1 is
    /// faster.
    pub gain: Option<Interval>,
    /// What its interval says: faster and slower are by more than the present layout differs from itself.
    pub verdict: Option<Verdict>,
    /// The same as the model computes it for this machine; `None` where it was not modelled.
    pub modelled_gain: Option<f64>,
    /// Why it was not modelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_modelled: Option<String>,
    /// As the model computes it for other machines, by name; those on which it was not modelled are left out.
    pub modelled_elsewhere: BTreeMap<String, f64>,
    /// Each role.
    pub roles: Vec<AdvisedRole>,
    /// Offset of each element, by field or lock.
    pub offsets: BTreeMap<String, Vec<u64>>,
    /// The `[[variant]]` that runs it, `advised-NAME`, to be put behind what the scenario has.
    pub variant: String,
}

/// What became of a layout.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LayoutState {
    /// It has measured figures.
    Measured,
    /// It ran, but noise left it without figures.
    Unresolved,
    /// It was not run: the model ranked it behind others, or its twin by the model stands for it.
    RankedOut,
    /// This host cannot place it.
    NotApplicable,
}

/// One role in one layout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdvisedRole {
    /// Its name.
    pub role: String,
    /// Cache lines that a pass touches, those of rare steps in part.
    pub lines_per_op: f64,
    /// Nanoseconds a pass of the median worker.
    pub ns_per_op: Option<Interval>,
    /// Time of a pass in the present layout over that in this one.
    pub gain: Option<Interval>,
    /// The verdict on it.
    pub verdict: Option<Verdict>,
    /// The same of the slowest worker.
    pub slowest_worker_gain: Option<Interval>,
    /// The verdict on that.
    pub slowest_worker_verdict: Option<Verdict>,
    /// As the model computes it for this machine.
    pub modelled_gain: Option<f64>,
}

/// A variant that was not considered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LeftOutVariant {
    /// Its name.
    pub variant: String,
    /// Why.
    pub why: String,
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdviceRecord {
    /// The layout to have: `present` is to leave it.
    pub layout: String,
    /// Why.
    pub reason: String,
    /// A layout that takes less room and is no slower, where nothing gains.
    pub smaller: Option<String>,
    /// Changes of the program that gain beyond that layout, most first; each is worth only as much as its `code_change`
    /// says.
    pub code_changes: Vec<String>,
    /// False where noise hid the answer.
    pub conclusive: bool,
}
