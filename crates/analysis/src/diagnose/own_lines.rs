//! Lines of their own for data that different workers use: what false sharing and reader invalidation cost without them, and
//! the cure that both have in common.

use super::{Cost, Sick, cost, lines};
use crate::view::{View, same_work};
use plan::{BoundArm, CACHE_LINE_BYTES, Placed, Program};

/// What a role pays for the line as against variants in which the same work finds these elements on lines of their own;
/// as against `unshared` where there is no such variant.
pub(super) fn line_cost(view: &View, arm: &BoundArm, line: &[&Placed], role: &str) -> Option<Cost> {
    let cures = |(other, program): &(&BoundArm, &Program)| {
        other.arm.name != arm.arm.name && same_work(other, arm) && lines::apart(program, line, CACHE_LINE_BYTES)
    };
    let cured: Vec<_> = view.variants().filter(cures).collect();
    cost::against_cured_or_unshared(view, arm, role, &cured)
}

/// How to give them such lines.
pub(super) fn cure(sick: &Sick) -> String {
    let shown = match &sick.cost.gain {
        Some(gain) => format!("; `{}` does", gain.arm),
        None => String::new(),
    };
    format!(
        "Give each worker's data lines of its own{shown}: `placement = {{ pad = 64 }}` or `\"by-writer\"` here, \
         `alignas(64)` in C and C++, `#[repr(align(64))]` in Rust."
    )
}
