//! How long a plan takes on this host, before it is run.

use plan::{ArmKind, Bound, Plan, Repetitions};
use std::time::Duration;

/// What a repetition takes beside its window and warm-up: processes, compilation, probes. For estimates alone.
const OVERHEAD: Duration = Duration::from_millis(20);

/// Windows, warm-ups and what surrounds them; never under a second, since nobody waits for less.
pub(crate) fn expected_length(plan: &Plan, bound: &Bound) -> Duration {
    let blocks = match plan.measure.repetitions {
        Repetitions::Fixed(blocks) => blocks,
        Repetitions::Auto => return plan.measure.budget.duration(),
    };
    let arms = bound.arms.iter().filter(|arm| arm.program.is_ok());
    let length: Duration = arms
        .map(|arm| {
            let runs = match arm.arm.kind {
                ArmKind::Solo { .. } | ArmKind::Unshared => blocks.div_ceil(2),
                _ => blocks,
            };
            (arm.arm.window.duration() + arm.arm.warm_up.duration() + OVERHEAD) * runs
        })
        .sum();
    length.max(Duration::from_secs(1))
}
