//! Locks: how often they made a worker wait, for how long, and whom.

use crate::report::figures::{count, percent, plural};
use crate::report::page::Page;
use crate::report::table::{Cell, Column, Grid, Notes, Row};
use crate::report::terminal::measured_variants;
use record::{ArmSummary, LockSummary, Percentiles, Run};

/// Both tables, and what they leave out. Nothing where no variant uses a lock.
pub(super) fn write(page: &mut Page, run: &Run) {
    let locks: Vec<_> = measured_variants(run).flat_map(|arm| arm.locks.iter().map(move |lock| (arm, lock))).collect();
    if locks.is_empty() {
        return;
    }
    page.heading("Locks, all kept repetitions together");
    page.grid(
        &Grid { columns: lock_columns(), rows: locks.iter().map(|(arm, lock)| lock_row(arm, lock)).collect() },
        &Notes::default(),
    );
    page.legend(
        "contended: share of acquisitions whose first try failed. handoff: the lock passed to another worker. longest \
         run: acquisitions in a row by one worker.",
    );
    page.heading("Waits of contended acquisitions, ns");
    let mut notes = Notes::default();
    let rows = locks.iter().flat_map(|(arm, lock)| wait_rows(arm, lock, &mut notes)).collect();
    page.grid(&Grid { columns: wait_columns(), rows }, &notes);
    for (arm, lock) in &locks {
        for remark in remarks(arm, lock) {
            page.prose(&remark);
        }
    }
}

fn lock_columns() -> Vec<Column> {
    vec![
        Column::words("variant"),
        Column::words("lock"),
        Column::figures("acquisitions", "acquisitions"),
        Column::figures("contended", "contended"),
        Column::figures("handoffs", "handoffs"),
        Column::figures("longest run", "longest\nrun"),
    ]
}

fn lock_row(arm: &ArmSummary, lock: &LockSummary) -> Row {
    Row {
        block: Some(format!("{}, lock {}", arm.name, lock.lock)),
        section: None,
        cells: vec![
            Cell::text(&arm.name),
            Cell::text(format!("{} ({})", lock.lock, lock.kind)),
            Cell::text(count(lock.acquisitions)),
            contended(lock.contended, lock.acquisitions),
            Cell::text(count(lock.handoffs)),
            Cell::text(count(lock.longest_run)),
        ],
    }
}

fn wait_columns() -> Vec<Column> {
    vec![
        Column::words("variant"),
        Column::words("who waited"),
        Column::figures("contended", "contended"),
        Column::figures("waits", "waits"),
        Column::figures("wait p50, ns", "p50"),
        Column::figures("wait p99, ns", "p99"),
        Column::figures("wait max, ns", "max"),
    ]
}

fn wait_rows(arm: &ArmSummary, lock: &LockSummary, notes: &mut Notes) -> Vec<Row> {
    let several = arm.locks.len() > 1;
    let all = if several { format!("all, at {}", lock.lock) } else { "all".to_owned() };
    let mut rows = vec![wait_row(arm, lock, &all, Share(lock.contended, lock.acquisitions), lock.wait_ns, notes)];
    for worker in &lock.by_worker {
        let who = format!("worker {} ({})", worker.worker, worker.role);
        let share = Share(worker.contended, worker.acquisitions);
        rows.push(wait_row(arm, lock, &who, share, worker.wait_ns, notes));
        if let Some(name) = rows.last_mut().and_then(|row| row.cells.first_mut()) {
            *name = Cell::empty();
        }
    }
    rows
}

/// So many of so many.
struct Share(u64, u64);

fn wait_row(
    arm: &ArmSummary,
    lock: &LockSummary,
    who: &str,
    share: Share,
    wait: Option<Percentiles>,
    notes: &mut Notes,
) -> Row {
    let mut cells = vec![Cell::text(&arm.name), Cell::text(who), contended(share.0, share.1)];
    match wait {
        Some(wait) => cells.extend([wait.count, wait.p50, wait.p99, wait.max].map(|n| Cell::text(count(n)))),
        None => {
            let reason = match share.0 {
                0 => "nobody had to wait",
                _ => "every wait overlapped an eviction or found the log full",
            };
            cells.extend((0..4).map(|_| notes.missing(reason.to_owned())));
        }
    }
    Row { block: Some(format!("{}, {}: {who}", arm.name, lock.lock)), section: None, cells }
}

fn contended(contended: u64, acquisitions: u64) -> Cell {
    match acquisitions {
        0 => Cell::text("–"),
        _ => Cell::text(percent(contended as f64 / acquisitions as f64)),
    }
}

/// What the tables do not hold, in sentences.
fn remarks(arm: &ArmSummary, lock: &LockSummary) -> Vec<String> {
    let place = format!("{}, lock {}", arm.name, lock.lock);
    let mut remarks = Vec::new();
    if lock.masked > 0 {
        let longest = lock.wait_ns_all.map_or_else(String::new, |all| {
            format!(" (longest of all waits: {} ns; `wait_ns_all` in run.json has every one)", count(all.max))
        });
        remarks.push(format!(
            "{place}: {} left out because some worker was off its CPU meanwhile{longest}.",
            plural(lock.masked, "wait")
        ));
    }
    if lock.waits_lost > 0 {
        let lost = plural(lock.waits_lost, "wait");
        remarks.push(format!("{place}: {lost} found the log full and are in no figure; a shorter window keeps them."));
    }
    if lock.owner_died > 0 {
        let died = plural(lock.owner_died, "acquisition");
        remarks.push(format!("{place}: {died} found the previous owner dead."));
    }
    if let Some(hold) = lock.hold_ns {
        let [p50, p99, max] = [hold.p50, hold.p99, hold.max].map(count);
        remarks.push(format!("{place}: held for {p50} ns (p50), {p99} ns (p99), {max} ns at most."));
    }
    remarks
}
