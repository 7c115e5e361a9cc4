//! Latencies of passes, where a role times them: from when a pass was due, and from when it began.

use crate::report::figures::count;
use crate::report::page::Page;
use crate::report::table::{Cell, Column, Grid, Notes, Row};
use crate::report::terminal::measured_variants;
use record::{ArmSummary, Percentiles, RoleSummary, Run};

/// A row for each kind of latency of each role that has one. Nothing where no role times its passes.
pub(super) fn write(page: &mut Page, run: &Run) {
    let roles = measured_variants(run).flat_map(|arm| arm.roles.iter().map(move |role| (arm, role)));
    let rows: Vec<Row> = roles.flat_map(|(arm, role)| rows(arm, role)).collect();
    if rows.is_empty() {
        return;
    }
    page.heading("Latency of a pass, as measured, ns");
    let columns = vec![
        Column::words("variant"),
        Column::words("role"),
        Column::words("latency"),
        Column::figures("passes", "passes"),
        Column::figures("p50", "p50"),
        Column::figures("p90", "p90"),
        Column::figures("p99", "p99"),
        Column::figures("p99.9", "p99.9"),
        Column::figures("max", "max"),
    ];
    page.grid_in_bands(Grid { columns, rows }, 3, &Notes::default());
    page.legend(
        "response: from when the pass was due to its end; in a closed loop it is due when it begins. service: from its \
         begin. corrected: service with what HdrHistogram adds for passes that were late (coordinated omission). None \
         is masked: a stall is what they are for.",
    );
}

fn rows(arm: &ArmSummary, role: &RoleSummary) -> Vec<Row> {
    let kinds = [("response", role.latency_ns), ("service", role.service_ns), ("corrected", role.service_corrected_ns)];
    let there = kinds.into_iter().filter_map(|(name, latency)| Some((name, latency?)));
    there.enumerate().map(|(index, (name, latency))| row(arm, role, name, &latency, index == 0)).collect()
}

fn row(arm: &ArmSummary, role: &RoleSummary, name: &str, latency: &Percentiles, first: bool) -> Row {
    let once = |text: &str| if first { Cell::text(text) } else { Cell::empty() };
    let mut cells = vec![once(&arm.name), once(&role.role), Cell::text(name)];
    let Percentiles { count: passes, p50, p90, p99, p999, max, .. } = *latency;
    cells.extend([passes, p50, p90, p99, p999, max].map(|figure| Cell::text(count(figure))));
    Row { block: Some(format!("{}, {}: {name}", arm.name, role.role)), section: None, cells }
}
