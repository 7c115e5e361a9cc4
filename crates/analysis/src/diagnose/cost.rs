//! What a pattern costs a role: its figure in the sick arm over that in arms without the pattern.

use crate::view::View;
use plan::{BoundArm, Program};
use record::{Gain, Interval};

/// Smallest effect that is worth a diagnosis, also where the control arm could see smaller ones: between arms, code
/// and stack land elsewhere, which moves tight loops by a few per cent.
const LEAST_EFFECT: f64 = 0.05;

/// A cost that was measured beyond the run's resolution.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cost {
    /// The role that pays.
    pub(super) role: String,
    /// The arm it was held against.
    pub(super) against: String,
    /// ns per pass, sick over the other.
    pub(super) ratio: Interval,
    /// The same, where that arm is a variant that holds the cure.
    pub(super) gain: Option<Gain>,
}

/// The ratio that an interval must lie above to count: 1 + the resolution, at least 1.05.
pub(super) fn threshold(view: &View) -> f64 {
    1.0 + view.resolution.unwrap_or(0.0).max(LEAST_EFFECT)
}

/// What `role` pays in `sick` as against the variants that hold the cure. Of those that gain alike (within the
/// threshold of the best) the smallest layout is taken: more memory for no more speed is no advice.
pub(super) fn against_cured(view: &View, sick: &BoundArm, role: &str, cured: &[(&BoundArm, &Program)]) -> Option<Cost> {
    let threshold = threshold(view);
    let compared = cured.iter().filter_map(|(arm, program)| {
        let ratio = view.ratio(&sick.arm.name, &arm.arm.name, role)?;
        (ratio.low > threshold).then_some((ratio, program.layout.bytes, &arm.arm.name))
    });
    let beyond: Vec<_> = compared.collect();
    let best = beyond.iter().map(|(ratio, ..)| ratio.median).reduce(f64::max)?;
    let alike = beyond.into_iter().filter(|(ratio, ..)| ratio.median * threshold >= best);
    let (ratio, _, arm) = alike.min_by(|a, b| a.1.cmp(&b.1).then(b.0.median.total_cmp(&a.0.median)))?;
    let gain = Some(Gain { arm: arm.clone(), ratio });
    Some(Cost { role: role.to_owned(), against: arm.clone(), ratio, gain })
}

/// What `role` pays in `sick` as against the variants that hold the cure; as against a copy of everything for each
/// worker only where none of them could be compared. A cure that was compared and gained nothing is an answer: what
/// `unshared` is faster by has then another reason.
pub(super) fn against_cured_or_unshared(
    view: &View,
    sick: &BoundArm,
    role: &str,
    cured: &[(&BoundArm, &Program)],
) -> Option<Cost> {
    let comparable = cured.iter().any(|(arm, _)| view.ratio(&sick.arm.name, &arm.arm.name, role).is_some());
    match comparable {
        true => against_cured(view, sick, role, cured),
        false => against_unshared(view, sick, role),
    }
}

/// What `role` pays in `sick` as against a copy of everything for each worker.
pub(super) fn against_unshared(view: &View, sick: &BoundArm, role: &str) -> Option<Cost> {
    let unshared = view.baseline(sick, role, false)?;
    let ratio = view.ratio(&sick.arm.name, &unshared.arm.name, role)?;
    let cost = Cost { role: role.to_owned(), against: unshared.arm.name.clone(), ratio, gain: None };
    (ratio.low > threshold(view)).then_some(cost)
}

/// The costliest of several roles' costs.
pub(super) fn worst(costs: impl IntoIterator<Item = Option<Cost>>) -> Option<Cost> {
    costs.into_iter().flatten().max_by(|a, b| a.ratio.median.total_cmp(&b.ratio.median))
}
