//! Each worker's rate: a sum can hide that one worker has all of it.

use crate::report::figures::{percent, plain};
use crate::report::page::Page;
use crate::report::table::{Cell, Column, Grid, Notes, Row};
use crate::report::terminal::measured_variants;
use record::{ArmSummary, Interval, Run, WorkerSummary};

/// The unit of a whole column of rates, by its largest.
struct RateUnit {
    divisor: f64,
    head: &'static str,
    name: &'static str,
}

/// Rates of the workers of every variant that has figures, with each role's index of fairness.
pub(super) fn write(page: &mut Page, run: &Run) {
    let unit = unit(run);
    let mut notes = Notes::default();
    let rows: Vec<Row> = measured_variants(run).flat_map(|arm| arm_rows(arm, &unit, &mut notes)).collect();
    if rows.is_empty() {
        return;
    }
    page.heading("Each worker's rate");
    let columns = vec![
        Column::words("variant"),
        Column::words("role"),
        Column::figures("worker", "worker"),
        Column::figures("CPU", "CPU"),
        Column::figures(unit.name, unit.head),
        Column::figures("share", "share"),
        Column::figures("Jain's index", "Jain's\nindex"),
    ];
    page.grid(&Grid { columns, rows }, &notes);
    page.legend(
        "share: of what the role's workers do together. Jain's index: 1 where they share evenly, 1/n where one of n \
         has it all.",
    );
}

fn unit(run: &Run) -> RateUnit {
    let rates = measured_variants(run).flat_map(|arm| &arm.workers).filter_map(|worker| worker.ops_per_second);
    match rates.map(|rate| rate.median).fold(0.0, f64::max) {
        largest if largest >= 1e6 => RateUnit { divisor: 1e6, head: "M ops/s\n(interval)", name: "M ops/s" },
        largest if largest >= 1e3 => RateUnit { divisor: 1e3, head: "k ops/s\n(interval)", name: "k ops/s" },
        _ => RateUnit { divisor: 1.0, head: "ops/s\n(interval)", name: "ops/s" },
    }
}

fn arm_rows(arm: &ArmSummary, unit: &RateUnit, notes: &mut Notes) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut last_role = None;
    for worker in &arm.workers {
        let new_role = last_role != Some(&worker.role);
        last_role = Some(&worker.role);
        let name = if rows.is_empty() { Cell::text(&arm.name) } else { Cell::empty() };
        let fairness = arm.roles.iter().find(|role| role.role == worker.role).and_then(|role| role.fairness_jain);
        let jain = match fairness {
            Some(index) if new_role => Cell::text(format!("{index:.2}")),
            _ => Cell::empty(),
        };
        rows.push(Row {
            block: Some(format!("{}, worker {} ({})", arm.name, worker.index, worker.role)),
            section: None,
            cells: vec![
                name,
                Cell::text(&worker.role),
                Cell::text(worker.index.to_string()),
                Cell::text(worker.cpu.to_string()),
                rate(worker, unit, notes),
                share(worker, arm),
                jain,
            ],
        });
    }
    rows
}

fn rate(worker: &WorkerSummary, unit: &RateUnit, notes: &mut Notes) -> Cell {
    match worker.ops_per_second {
        Some(rate) => {
            let Interval { median, low, high } = rate;
            Cell::interval(&Interval {
                median: median / unit.divisor,
                low: low / unit.divisor,
                high: high / unit.divisor,
            })
        }
        None => notes.missing("this worker kept too few repetitions for a figure".to_owned()),
    }
}

/// A worker's part of its role's rate; nothing where a role has one worker, or a rate is missing.
fn share(worker: &WorkerSummary, arm: &ArmSummary) -> Cell {
    let peers: Vec<_> = arm.workers.iter().filter(|peer| peer.role == worker.role).collect();
    let rates: Option<Vec<f64>> = peers.iter().map(|peer| peer.ops_per_second.map(|rate| rate.median)).collect();
    match (rates, worker.ops_per_second) {
        (Some(rates), Some(own)) if rates.len() > 1 && rates.iter().sum::<f64>() > 0.0 => {
            Cell::text(percent(own.median / rates.iter().sum::<f64>()))
        }
        _ => Cell::empty(),
    }
}

/// Lines for slices: how far single half-milliseconds spread around the median.
pub(super) fn spread(run: &Run) -> Option<String> {
    let spreads: Vec<String> = measured_variants(run)
        .filter_map(|arm| arm.slice_ns_per_op.map(|q| format!("{} {}–{}", arm.name, plain(q.p10), plain(q.p90))))
        .collect();
    (!spreads.is_empty()).then(|| format!("Single slices, ns/op, p10–p90: {}.", spreads.join(", ")))
}
