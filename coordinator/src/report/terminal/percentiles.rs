//! Distributions as rows, a few to each role: its variant and role stand in the first.

use crate::report::figures::count;
use crate::report::page::Page;
use crate::report::table::{Cell, Column, Grid, Notes, Row};
use crate::report::terminal::measured_variants;
use record::{ArmSummary, Percentiles, RoleSummary, Run};

/// What a row's times are, and their distribution.
pub(super) type Kind = (&'static str, Option<Percentiles>);

/// A figure of a distribution: the head of its column, and the figure.
pub(super) type Figure = (&'static str, fn(&Percentiles) -> u64);

/// Writes the heading and a row for each kind of each role that has it, in each measured variant; whether there was
/// one. `what` heads the column of their names.
pub(super) fn write(
    page: &mut Page,
    run: &Run,
    heading: &str,
    what: &'static str,
    figures: &[Figure],
    kinds: impl Fn(&RoleSummary) -> Vec<Kind>,
) -> bool {
    let roles = measured_variants(run).flat_map(|arm| arm.roles.iter().map(move |role| (arm, role)));
    let rows: Vec<Row> = roles.flat_map(|(arm, role)| rows(arm, role, figures, kinds(role))).collect();
    if rows.is_empty() {
        return false;
    }
    page.heading(heading);
    let words = ["variant", "role", what].map(Column::words);
    let columns = words.into_iter().chain(figures.iter().map(|(name, _)| Column::figures(*name, *name))).collect();
    page.grid_in_bands(Grid { columns, rows }, 3, &Notes::default());
    true
}

fn rows(arm: &ArmSummary, role: &RoleSummary, figures: &[Figure], kinds: Vec<Kind>) -> Vec<Row> {
    let there = kinds.into_iter().filter_map(|(name, times)| Some((name, times?)));
    let row = |(index, (name, times)): (usize, (&str, Percentiles))| {
        let once = |text: &str| if index == 0 { Cell::text(text) } else { Cell::empty() };
        let mut cells = vec![once(&arm.name), once(&role.role), Cell::text(name)];
        cells.extend(figures.iter().map(|(_, figure)| Cell::text(count(figure(&times)))));
        Row { block: Some(format!("{}, {}: {name}", arm.name, role.role)), section: None, cells }
    };
    there.enumerate().map(row).collect()
}
