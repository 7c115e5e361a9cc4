//! What the model computed, beside what was measured: under its own heading, never in a measured figure's place.

use crate::report::modelled::{Subject, map, table};
use crate::report::page::Page;
use record::{Kind, Run};

/// The modelled figures and the lines' map. Nothing where no model ran.
pub(super) fn write(page: &mut Page, run: &Run) {
    let subjects: Vec<Subject> = run
        .arms
        .iter()
        .filter(|arm| !matches!(arm.kind, Kind::Control | Kind::Plain))
        .filter_map(|arm| {
            Some(Subject {
                name: &arm.name,
                headline_role: &arm.headline_role,
                modelled: arm.modelled.as_ref()?,
                measured: &arm.roles,
            })
        })
        .collect();
    if subjects.is_empty() {
        return;
    }
    page.heading("Modelled: computed from the program and this run's probes, not measured");
    table(page, &subjects, true);
    let variants = run.arms.iter().filter(|arm| arm.kind == Kind::Variant).map(|arm| arm.name.as_str()).collect();
    map(page, &subjects, &variants);
}
