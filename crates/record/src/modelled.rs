//! What a model made of arms: computed from the Program and a machine's figures, never measured. It stands beside what
//! was measured, under its own name.

use crate::arm::{Kind, LayoutRow, Modelled};
use crate::run::{ScenarioText, Tool};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a model made of one arm.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelledArm {
    /// The machine's name; `host` is the one of this run, by its own probes.
    pub machine: String,
    /// Number of the regime whose probes the machine's figures are; `None` where they come from a file.
    pub regime: Option<u32>,
    /// Why the arm was not modelled; then everything below is empty.
    pub why: Option<String>,
    /// Every role that runs.
    pub roles: Vec<ModelledRole>,
    /// Every worker.
    pub workers: Vec<ModelledWorker>,
    /// Every lock that is used.
    pub locks: Vec<ModelledLock>,
    /// Every line of the fields area that is touched.
    pub lines: Vec<ModelledLine>,
}

impl ModelledArm {
    /// The role of that name.
    pub fn role(&self, name: &str) -> Option<&ModelledRole> {
        self.roles.iter().find(|role| role.role == name)
    }
}

/// One role.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelledRole {
    /// Its name.
    pub role: String,
    /// Nanoseconds a pass: the median worker's. `None` where a worker completed none.
    pub ns_per_op: Option<f64>,
    /// Passes a second, over its workers.
    pub ops_per_second: f64,
    /// What its caches would count, summed over its workers.
    pub counters: BTreeMap<String, Modelled>,
}

/// One worker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelledWorker {
    /// Its index.
    pub index: u32,
    /// Its role.
    pub role: String,
    /// Its CPU on the modelled machine.
    pub cpu: u32,
    /// Nanoseconds a pass.
    pub ns_per_op: Option<f64>,
    /// What its caches would count.
    pub counters: BTreeMap<String, Modelled>,
}

/// One lock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelledLock {
    /// Its name.
    pub lock: String,
    /// Its algorithm.
    pub kind: String,
    /// Acquisitions.
    pub acquisitions: u64,
    /// Of these, the share whose first attempt failed; `None` without any.
    pub contended_share: Option<f64>,
    /// Mean wait of those, nanoseconds.
    pub mean_wait_ns: Option<f64>,
}

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelledLine {
    /// Its number, from the area's start.
    pub index: u64,
    /// What lies on it.
    pub fields: Vec<String>,
    /// Workers that write it.
    pub writers: Vec<u32>,
    /// Workers that read it.
    pub readers: Vec<u32>,
    /// Times it moved between cores, for each pass of any worker that touches it.
    pub transfers_per_op: f64,
    /// Passes of its owner from coming to own it to losing it, where it had several owners.
    pub tenure_passes: Option<f64>,
    /// Of all comings to own it, each worker's share, by index.
    pub owners: BTreeMap<u32, f64>,
    /// What moved it, most frequent first; at most eight.
    pub pairs: Vec<ModelledPair>,
}

/// Two words of a line: the one that its holder touched last, and the one for which another took it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelledPair {
    /// What the holder touched.
    pub held: String,
    /// What the taker wanted.
    pub wanted: String,
    /// Whether it wanted to write.
    pub to_write: bool,
    /// Share of the line's transfers.
    pub share: f64,
}

/// What `coordinator model --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelRun {
    /// Version of this format.
    pub schema_version: u32,
    /// The program.
    pub tool: Tool,
    /// The command line as typed.
    pub command: String,
    /// Seed of the simulation.
    pub seed: u64,
    /// The modelled machine.
    pub machine: ModelledMachine,
    /// What was modelled.
    pub scenario: ScenarioText,
    /// Its arms.
    pub arms: Vec<ModelRunArm>,
    /// Throughput by number of workers, where that was asked for.
    pub curve: Vec<CurvePoint>,
}

/// The modelled machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelledMachine {
    /// Its name.
    pub name: String,
    /// What it is.
    pub title: String,
    /// Its coherence protocol.
    pub protocol: String,
    /// Its CPUs.
    pub cpus: u32,
    /// Where its figures come from: by table or figure of its file.
    pub sources: BTreeMap<String, String>,
}

/// One arm of [`ModelRun`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelRunArm {
    /// As claims name it.
    pub name: String,
    /// What it is for.
    pub kind: Kind,
    /// The variant it comes from.
    pub variant: String,
    /// The sweep's point.
    pub sweep: BTreeMap<String, String>,
    /// Bytes the layout takes.
    pub bytes: u64,
    /// Where everything lies.
    pub layout: Vec<LayoutRow>,
    /// The role whose figures head the arm.
    pub headline_role: String,
    /// What the model made of it.
    pub modelled: ModelledArm,
}

/// One variant with so many workers of the headline role.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// The arm.
    pub arm: String,
    /// Workers of the headline role.
    pub workers: u32,
    /// Nanoseconds a pass of that role.
    pub ns_per_op: Option<f64>,
    /// Passes a second, over its workers.
    pub ops_per_second: Option<f64>,
    /// Why there is no figure.
    pub why: Option<String>,
}
