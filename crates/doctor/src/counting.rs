//! What can be counted here, and who may.

mod asked;
mod events;
mod permission;

use crate::{Finding, Patient};
use asked::Kind;

/// The checks of this theme, in the order of the screen.
pub(crate) fn findings(patient: &Patient<'_>) -> Vec<Finding> {
    judged(patient, &asked::asked(patient))
}

/// The judgement on what counted on each kind of core.
fn judged(patient: &Patient<'_>, kinds: &[Kind]) -> Vec<Finding> {
    let mut found = vec![events::pmu(patient.root, kinds), events::hardware_events(patient.root, kinds)];
    found.extend(events::each_event(kinds));
    found.extend(events::counter_groups(kinds));
    found.push(permission::nmi_watchdog(patient.root));
    found.push(events::kernel_events(kinds));
    found.push(permission::perf_event_paranoid(patient.root, kinds));
    found.push(permission::seccomp(patient.root, kinds));
    found.push(permission::tracefs(patient.root));
    found
}
