//! What a model computed, beside what was counted: under its own heading, never in a measured figure's place.

use crate::report::figures::{NONE, plain};
use crate::report::page::Page;
use crate::report::table::{Cell, Column, Grid, Notes, Row};
use record::Run;

/// The modelled counters. Nothing where no model ran.
pub(super) fn write(page: &mut Page, run: &Run) {
    let mut rows = Vec::new();
    for arm in &run.arms {
        for role in &arm.roles {
            for (name, counter) in &role.counters {
                let Some(modelled) = counter.modelled.as_ref() else {
                    continue;
                };
                let measured = counter.measured.reading.value().and(counter.measured.per_op);
                rows.push(Row {
                    block: Some(format!("{}, {}: {name}", arm.name, role.role)),
                    section: None,
                    cells: vec![
                        Cell::text(&arm.name),
                        Cell::text(&role.role),
                        Cell::text(name),
                        Cell::text(plain(modelled.per_op)),
                        Cell::text(measured.map_or_else(|| NONE.to_owned(), plain)),
                    ],
                });
            }
        }
    }
    if rows.is_empty() {
        return;
    }
    page.heading("Modelled: computed from the program, not measured");
    let columns = vec![
        Column::words("variant"),
        Column::words("role"),
        Column::words("counter"),
        Column::figures("modelled, per op", "modelled\nper op"),
        Column::figures("measured, per op", "measured\nper op"),
    ];
    page.grid(&Grid { columns, rows }, &Notes::default());
}
