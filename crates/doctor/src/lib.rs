//! What this machine's facts mean for a run: one check a line, each with why it matters and what changes it. Only reads;
//! the facts themselves come from `host` and `counters`.
#![forbid(unsafe_code)]

mod counting;
mod finding;
mod hardware;
mod limits;
mod noise;

pub use finding::{Finding, Needs, Spoils};

use host::Root;
use plan::{CpuId, Topology};

/// What is examined.
#[derive(Copy, Clone, Debug)]
pub struct Patient<'a> {
    /// Where `/proc` and `/sys` are read.
    pub root: &'a Root,
    /// The machine's CPUs.
    pub topology: &'a Topology,
    /// The CPUs in question: those of a scenario, or all that this process may use.
    pub cpus: &'a [CpuId],
}

/// Every check, in the order of the screen. Reads files, opens and closes counters on the calling thread; changes
/// nothing.
pub fn examine(patient: &Patient<'_>) -> Vec<Finding> {
    let themes = [counting::findings, hardware::findings, noise::findings, limits::findings];
    themes.iter().flat_map(|theme| theme(patient)).collect()
}

#[cfg(test)]
mod fixture;
