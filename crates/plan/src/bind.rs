//! Binding: a Plan meets a Topology and becomes one Program an arm.

use crate::program::Program;
use crate::scenario::{Arm, Plan};
use crate::topology::Topology;

/// A Plan bound to a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The plan's arms and references, in the order in which results list them.
    pub arms: Vec<BoundArm>,
}

/// One arm and what became of it on this machine.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundArm {
    /// The arm as planned.
    pub arm: Arm,
    /// Its Program, or why this machine cannot place it.
    pub program: Result<Program, NotApplicable>,
}

/// Why this machine cannot run an arm. Not an error: the others run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotApplicable {
    /// In plain words, with the numbers: "needs 4 CPUs, this host has 2; `oversubscribe = true` would share them".
    pub why: String,
}

/// What only the machine, or the whole plan together, can refuse; the scenario's text is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct BindError {
    /// Path of the key in the scenario: `role.counter.cpus`, `field.b.at`; the `scenario` crate finds its place.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub cure: String,
}

/// Binds every arm of `plan`, references included, to the CPUs of `topology`.
///
/// # Errors
/// [`BindError`] where the scenario names a CPU that is not there, or offsets that overlap.
pub fn bind(plan: &Plan, topology: &Topology, seed: u64) -> Result<Bound, BindError> {
    let _ = (plan, topology, seed);
    Ok(Bound { arms: Vec::new() })
}
