//! What `compare` found: the JSON contract of `coordinator compare --json`.

use crate::figure::{Interval, Percentiles};
use crate::run::{Regime, Tool};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Runs held against each other, or variants within runs. Runs are named by their place in [`Comparison::runs`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// [`crate::SCHEMA_VERSION`]; always the first key.
    pub schema_version: u32,
    /// One row for each pair, variant and role that both sides have.
    pub rows: Vec<CompareRow>,
    /// The locks of those variants, where somebody waited for them on both sides.
    pub locks: Vec<CompareLock>,
    /// The runs, as named on the command line.
    pub runs: Vec<ComparedRun>,
    /// What was held against what.
    pub pairs: Vec<ComparedPair>,
    /// The conditions of `--fail-if`, judged.
    pub conditions: Vec<ConditionOutcome>,
}

/// One run, as far as it matters for what it is compared with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedRun {
    /// Where it was read from.
    pub path: String,
    /// Host name.
    pub host: String,
    /// CPU model.
    pub cpu_model: String,
    /// Start, UTC.
    pub started_utc: String,
    /// The program that made it.
    pub tool: Tool,
    /// Its seed.
    pub seed: u64,
    /// The scenario's title.
    pub title: String,
    /// SHA-256 of the scenario's text.
    pub scenario_sha256: String,
    /// The smallest effect it could have seen, as a ratio minus 1; `None` where its control arm resolved nothing.
    pub resolution: Option<f64>,
    /// Its headline regime.
    pub headline_regime: Option<Regime>,
    /// Blocks run.
    pub blocks: u32,
}

/// Two runs that are held against each other, or a run whose variants are (`run` and `base` are the same then).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedPair {
    /// The run in question.
    pub run: usize,
    /// The run it is held against.
    pub base: usize,
    /// What the ratios answer.
    pub asks: Asks,
    /// What is not the same on both sides, besides what was measured.
    pub differences: Vec<Difference>,
    /// Arms and roles that one side lacks.
    pub unmatched: Vec<Unmatched>,
}

/// The question that a pair's ratios answer: it decides whether a change of the machine between the runs is noise.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asks {
    /// What a change between the runs did: what the machine did meanwhile is noise.
    Change,
    /// How two hosts differ at one scenario: what the machines do is the answer.
    Hosts,
    /// How variants of one run differ, block by block.
    Variants,
}

/// One thing that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// What: `kernel`, `scenario`, `line transfer time`, ….
    pub what: String,
    /// In the base; `None` where it has none.
    pub base: Option<String>,
    /// In the run.
    pub run: Option<String>,
    /// What follows for the ratios, where something does.
    pub matters: Option<String>,
}

/// What only one side has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unmatched {
    /// An arm, or a role of an arm.
    pub what: String,
    /// Which side.
    pub only_in: Side,
}

/// A side of a comparison.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// What is held against.
    Base,
    /// What is in question.
    Run,
}

/// The same figure on both sides.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Both<T> {
    /// What is held against.
    pub base: T,
    /// What is in question.
    pub run: T,
}

/// One role of one variant, against the base.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompareRow {
    /// The run in question.
    pub run: usize,
    /// The run it is held against.
    pub base: usize,
    /// Host name of the run in question.
    pub host: String,
    /// The arm in question, as claims name it.
    pub variant: String,
    /// The arm it is held against.
    pub base_variant: String,
    /// The role.
    pub role: String,
    /// Nanoseconds a pass on both sides; `None` where there is no figure.
    pub ns_per_op: Both<Option<Interval>>,
    /// Nanoseconds a pass over the base's: above 1 it is slower. The interval is the one that is judged: of two runs it
    /// allows for what the machine did between them. `None` where a side has no figure.
    pub ratio: Option<Interval>,
    /// The same ratio with the interval of what was measured alone.
    pub measured_ratio: Option<Interval>,
    /// The ratio of the slowest workers, its interval made like that of `ratio`.
    pub slowest_worker_ratio: Option<Interval>,
    /// The judgement.
    pub verdict: Verdict,
    /// What the judgement rests on where it is `unresolved`.
    pub why: Option<String>,
    /// The smallest effect that could have been told here, as a ratio minus 1: how far the interval reaches, and of a
    /// run's first variant what its control arm could not tell from nothing, where that is more.
    pub smallest_effect: Option<f64>,
    /// Bytes of the layout.
    pub bytes: Both<u64>,
    /// Counters that were counted on both sides, events a pass, by glossary name.
    pub counters: BTreeMap<String, Both<f64>>,
    /// Times of passes and of batches that were taken on both sides: `latency_ns`, `service_ns`, `batch_ns`.
    pub percentiles: BTreeMap<String, Both<Percentiles>>,
}

/// How a ratio was judged.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The whole interval lies below 1; of a run's first variant by more than its control arm could tell from nothing.
    Faster,
    /// The same above 1.
    Slower,
    /// The interval holds 1.
    NoDifference,
    /// No interval, or one that cannot be judged.
    Unresolved,
}

/// A lock of a variant that both sides waited for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CompareLock {
    /// The run in question.
    pub run: usize,
    /// The run it is held against.
    pub base: usize,
    /// The arm in question.
    pub variant: String,
    /// The arm it is held against.
    pub base_variant: String,
    /// The lock.
    pub lock: String,
    /// Its algorithm.
    pub kind: Both<String>,
    /// Contended waits that overlap no eviction.
    pub wait_ns: Both<Percentiles>,
    /// Share of acquisitions whose first try failed.
    pub contended_share: Both<Option<f64>>,
}

/// A condition of `--fail-if`, judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConditionOutcome {
    /// As written.
    pub condition: String,
    /// The judgement over all rows that it is held against: `fails` where one does, else `undecided` where one is.
    pub state: ConditionState,
    /// What it was held against, the worst first.
    pub rows: Vec<ConditionRow>,
}

/// A condition held against one row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConditionRow {
    /// Place in [`Comparison::rows`].
    pub row: usize,
    /// The judgement.
    pub state: ConditionState,
    /// What it rests on, in plain words.
    pub why: String,
}

/// How a condition came out.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConditionState {
    /// The whole interval lies on the side that the condition does not speak of.
    Passes,
    /// The interval lies across, or there is none.
    Undecided,
    /// The whole interval lies beyond what the condition allows.
    Fails,
}
