//! The scenario that `coordinator attach --emit-scenario` makes of what it saw, and what the lab says to it.

use crate::Interval;
use serde::{Deserialize, Serialize};

/// A scenario made of a watch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EmittedScenario {
    /// The file that was written, as it was named.
    pub file: String,
    /// Its roles, in the file's order.
    pub roles: Vec<EmittedRole>,
    /// What was seen and is not in it, and what is in it otherwise than it was seen; a sentence each.
    pub differs: Vec<String>,
    /// Whether the lab ran it, and to what effect.
    pub state: EmittedState,
    /// Where it was not run, or the run told nothing: why.
    pub why: Option<String>,
    /// Commands that go on from here.
    pub next: Vec<String>,
}

/// What became of an emitted scenario.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmittedState {
    /// It was not run.
    NotRun,
    /// This host cannot run it.
    HostCannot,
    /// Noise hid the lab's rates, or no rate of the targets is known to hold them against.
    Unresolved,
    /// The lab has every rate that is known.
    Reproduced,
    /// The lab has another rate for a role at least.
    NotReproduced,
}

/// A role of an emitted scenario: a process, or several that do the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EmittedRole {
    /// Its name in the file.
    pub role: String,
    /// The processes that it stands for, ascending.
    pub pids: Vec<u32>,
    /// The threads that it stands for, ascending, where threads of one process have several roles; else empty.
    #[serde(default)]
    pub tids: Vec<u32>,
    /// Workers that it has in the file: one for each process, or thread, that does what it does.
    pub workers: u32,
    /// Work between the accesses of a pass, outside of locks, that was found to bring the lab to the observed rate;
    /// nanoseconds.
    pub work_ns: u64,
    /// Whether `work_ns` was found by trying: then that the medians agree shows only that the accesses fit into the pass.
    pub fitted: bool,
    /// Passes a second that each of the targets makes, between `low` and `high` in 19 of 20 pieces of the time: of its CPU
    /// time, or of wall time where it takes a lock. `None` where no word tells.
    pub observed_per_second: Option<Interval>,
    /// Passes a second of a worker in the lab: median and 95 % interval.
    pub lab_per_second: Option<Interval>,
    /// The lab's rate over the observed one: of the medians, and as far as both intervals reach.
    pub ratio: Option<Interval>,
    /// Whether that interval holds 1; `None` where a rate is not known.
    pub reproduced: Option<bool>,
}
