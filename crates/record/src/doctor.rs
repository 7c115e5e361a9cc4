//! What `doctor` found: the JSON contract of `coordinator doctor --json`.

use serde::{Deserialize, Serialize};

/// Everything `doctor` looked at, in the order of its screen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Doctor {
    /// [`crate::SCHEMA_VERSION`]; always the first key.
    pub schema_version: u32,
    /// One entry a line.
    pub checks: Vec<Check>,
    /// The CPUs in question, ascending, as the kernel numbers them.
    pub cpus: Vec<u32>,
    /// The scenario asked about, as it was named; `None` where none was.
    pub scenario: Option<String>,
}

/// One thing about this machine that decides what can be measured on it, and how well.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// Stable name: `pmu`, `perf_event_paranoid`, `cgroup_quota`, ….
    pub name: String,
    /// The judgement.
    pub state: CheckState,
    /// What was seen, in a few words, with its figures.
    pub seen: String,
    /// Why it matters for measuring.
    pub why: String,
    /// The command or setting that changes it, where the state is not `ok` and something does; else `None`.
    pub cure: Option<String>,
    /// Whether this spoils runs of the scenario asked about, whatever its state: room that is enough for most may be
    /// too little for one. False where no scenario is.
    pub spoils: bool,
}

/// How a check came out.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckState {
    /// As it should be.
    Ok,
    /// It works, and disturbs or misleads.
    Warn,
    /// This machine or process lacks it, or does not say.
    Missing,
}
