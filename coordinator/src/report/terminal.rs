//! The page that a run ends with: what a student reads without a manual.

mod arms;
mod batches;
mod closing;
mod counters;
mod latency;
mod locks;
mod method;
mod modelled;
mod opening;
mod percentiles;
mod predictions;
mod readings;
mod stacks;
mod verdict;
mod workers;

use crate::report::page::Page;
use crate::report::style::Style;
use record::{ArmState, ArmSummary, Kind, Run};
use std::path::Path;

pub(super) use verdict::finding;

/// The page for `run`, whose files are in `results` (`None` where none were written). Lines take at most the style's
/// width; every text that comes from the scenario or the host is escaped. Its last line repeats the run.
pub(crate) fn render(run: &Run, results: Option<&Path>, style: &Style) -> String {
    let mut page = Page::new(style);
    opening::write(&mut page, run);
    arms::write(&mut page, run);
    predictions::write(&mut page, run);
    workers::write(&mut page, run);
    latency::write(&mut page, run);
    batches::write(&mut page, run);
    locks::write(&mut page, run);
    stacks::write(&mut page, run);
    verdict::write(&mut page, run);
    method::write(&mut page, run);
    counters::write(&mut page, run);
    modelled::write(&mut page, run);
    verdict::warnings(&mut page, run);
    closing::write(&mut page, run, results);
    page.finish()
}

/// The arms under comparison that have figures.
fn measured_variants(run: &Run) -> impl Iterator<Item = &ArmSummary> {
    run.arms.iter().filter(|arm| arm.kind == Kind::Variant && arm.state == ArmState::Measured)
}

#[cfg(test)]
mod tests;
