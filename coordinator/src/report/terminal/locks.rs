//! Locks: how often they made a worker wait, for how long, and whom; how they were shared out, and what watching cost.

use crate::report::figures::{Figure, count, percent, plain, plural};
use crate::report::page::Page;
use crate::report::table::{Cell, Column, Grid, Notes, Row};
use crate::report::terminal::measured_variants;
use record::{ArmSummary, Kind, LockSummary, LockWorker, Percentiles, Run};

/// The table of locks, then that of their workers, and what they leave out. Nothing where no variant uses a lock.
pub(super) fn write(page: &mut Page, run: &Run) {
    let locks: Vec<_> = measured_variants(run).flat_map(|arm| arm.locks.iter().map(move |lock| (arm, lock))).collect();
    if locks.is_empty() {
        return;
    }
    page.heading("Locks, all kept repetitions together");
    let shown = Shown::of(&locks);
    let mut notes = Notes::default();
    let rows = locks.iter().map(|(arm, lock)| shown.row(arm, lock, &mut notes)).collect();
    page.grid_in_bands(Grid { columns: shown.columns(), rows }, 2, &notes);
    page.legend(&shown.legend(&locks));
    page.heading("At each lock, worker by worker; waits and holds in ns");
    let mut notes = Notes::default();
    let rows = locks.iter().flat_map(|(arm, lock)| worker_rows(arm, lock, &mut notes)).collect();
    page.grid_in_bands(Grid { columns: worker_columns(), rows }, 2, &notes);
    for (arm, lock) in &locks {
        for remark in remarks(arm, lock) {
            page.prose(&remark);
        }
    }
    timing(run).into_iter().for_each(|sentence| page.prose(&sentence));
}

/// Which columns the locks of a run have: what only the lab's own algorithms tell is shown where one of them is there.
struct Shown {
    spins: bool,
    sleeps: bool,
}

impl Shown {
    fn of(locks: &[(&ArmSummary, &LockSummary)]) -> Shown {
        Shown {
            spins: locks.iter().any(|(_, lock)| lock.spins_per_wait.is_some()),
            sleeps: locks.iter().any(|(_, lock)| lock.futex_waits_per_op.is_some()),
        }
    }

    fn columns(&self) -> Vec<Column> {
        let mut columns = vec![
            Column::words("variant"),
            Column::words("lock"),
            Column::figures("acquisitions", "acquisitions"),
            Column::figures("contended", "contended"),
            Column::figures("wait p50, ns", "wait p50\nns"),
            Column::figures("wait p99, ns", "wait p99\nns"),
            Column::figures("wait max, ns", "wait max\nns"),
            Column::figures("hold p50, ns", "hold p50\nns"),
            Column::figures("hold p99, ns", "hold p99\nns"),
            Column::figures("handoffs/op", "handoffs\n/op"),
            Column::figures("longest run", "longest\nrun"),
            Column::figures("Jain's index", "Jain's\nindex"),
            Column::figures("longest gap, ms", "longest\ngap, ms"),
        ];
        columns.extend(self.spins.then(|| Column::figures("spins/wait", "spins\n/wait")));
        columns.extend(self.sleeps.then(|| Column::figures("sleeps/op", "sleeps\n/op")));
        columns
    }

    fn row(&self, arm: &ArmSummary, lock: &LockSummary, notes: &mut Notes) -> Row {
        let mut cells = vec![
            Cell::text(&arm.name),
            Cell::text(format!("{} ({})", lock.lock, lock.kind)),
            Cell::text(count(lock.acquisitions)),
            contended(lock.contended, lock.acquisitions),
        ];
        cells.extend(points(lock.wait_ns, [|w| w.p50, |w| w.p99, |w| w.max], || no_wait(lock.contended), notes));
        cells.extend(points(lock.hold_ns, [|h| h.p50, |h| h.p99], || no_hold(lock), notes));
        cells.push(optional(lock.handoffs_per_op.map(plain)));
        cells.push(Cell::text(count(lock.longest_run)));
        cells.push(optional(lock.fairness_jain.map(|index| format!("{index:.2}"))));
        cells.push(optional(lock.longest_gap_ns.map(|ns| plain(ns / 1e6))));
        cells.extend(self.spins.then(|| optional(lock.spins_per_wait.map(plain))));
        cells.extend(self.sleeps.then(|| optional(lock.futex_waits_per_op.map(plain))));
        Row { block: Some(format!("{}, lock {}", arm.name, lock.lock)), section: None, cells }
    }

    fn legend(&self, locks: &[(&ArmSummary, &LockSummary)]) -> String {
        let sampling = locks.iter().map(|(_, lock)| lock.hold_sampling).max().unwrap_or(0);
        let held = match sampling {
            0 => String::new(),
            n => format!(" hold: from owning to releasing, one in {n} timed."),
        };
        let spins = if self.spins { " spins: turns of a contended acquisition." } else { "" };
        let sleeps = if self.sleeps { " sleeps: in the kernel, for each acquisition." } else { "" };
        format!(
            "contended: share of acquisitions whose first try failed; wait: what those took.{held} handoff: the lock passed \
             to another worker. longest run: acquisitions in a row by one worker. Jain's index: of the workers' \
             acquisitions, 1 even, 1/n one has all. longest gap: of any worker, between two of its acquisitions or the \
             window's edges.{spins}{sleeps}"
        )
    }
}

/// Points of a distribution; where there is none, a reason in the place of each.
fn points<const N: usize>(
    of: Option<Percentiles>,
    picks: [fn(&Percentiles) -> u64; N],
    reason: impl Fn() -> &'static str,
    notes: &mut Notes,
) -> [Cell; N] {
    picks.map(|pick| match &of {
        Some(of) => Cell::text(count(pick(of))),
        None => notes.missing(reason().to_owned()),
    })
}

fn optional(text: Option<String>) -> Cell {
    Cell::text(text.as_deref().unwrap_or("–"))
}

fn no_wait(contended: u64) -> &'static str {
    match contended {
        0 => "nobody had to wait",
        _ => "every wait overlapped an eviction or found the log full",
    }
}

fn no_hold(lock: &LockSummary) -> &'static str {
    match lock.acquisitions < lock.hold_sampling {
        true => "too few acquisitions for one to be sampled",
        false => "no hold was sampled, or each overlapped an eviction",
    }
}

fn worker_columns() -> Vec<Column> {
    vec![
        Column::words("variant"),
        Column::words("worker"),
        Column::figures("acquisitions", "acquisitions"),
        Column::figures("contended", "contended"),
        Column::figures("wait p50, ns", "wait p50"),
        Column::figures("wait p99, ns", "wait p99"),
        Column::figures("wait max, ns", "wait max"),
        Column::figures("hold p50, ns", "hold p50"),
        Column::figures("hold p99, ns", "hold p99"),
        Column::figures("longest gap, ms", "gap, ms"),
    ]
}

fn worker_rows(arm: &ArmSummary, lock: &LockSummary, notes: &mut Notes) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for worker in &lock.by_worker {
        let name = if rows.is_empty() { Cell::text(&arm.name) } else { Cell::empty() };
        rows.push(worker_row(arm, lock, worker, name, notes));
    }
    rows
}

fn worker_row(arm: &ArmSummary, lock: &LockSummary, worker: &LockWorker, name: Cell, notes: &mut Notes) -> Row {
    let at = if arm.locks.len() > 1 { format!(", at {}", lock.lock) } else { String::new() };
    let who = format!("{} ({}{at})", worker.worker, worker.role);
    let block = Some(format!("{}, {}: worker {who}", arm.name, lock.lock));
    let mut cells = vec![
        name,
        Cell::text(who),
        Cell::text(count(worker.acquisitions)),
        contended(worker.contended, worker.acquisitions),
    ];
    cells.extend(points(worker.wait_ns, [|w| w.p50, |w| w.p99, |w| w.max], || no_wait(worker.contended), notes));
    cells.extend(points(worker.hold_ns, [|h| h.p50, |h| h.p99], || no_hold(lock), notes));
    cells.push(Cell::text(plain(worker.longest_gap_ns / 1e6)));
    Row { block, section: None, cells }
}

fn contended(contended: u64, acquisitions: u64) -> Cell {
    match acquisitions {
        0 => Cell::text("–"),
        _ => Cell::text(percent(contended as f64 / acquisitions as f64)),
    }
}

/// What the `plain` arm says of the others' figures.
fn timing(run: &Run) -> Option<String> {
    let plain = run.arms.iter().find(|arm| arm.kind == Kind::Plain);
    match (&run.method.lock_timing, plain) {
        (Some(ratio), _) => Some(format!(
            "Trying first and timing cost: a pass takes {} times as long as in the plain arm, whose locks are neither \
             tried first nor timed.",
            Figure::new(ratio).line()
        )),
        (None, Some(_)) => {
            Some("What trying first and timing cost: the plain arm kept too few repetitions.".to_owned())
        }
        (None, None) => None,
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
    if lock.shared > 0 {
        remarks.push(format!("{place}: {} of the acquisitions were readers'.", count(lock.shared)));
    }
    if lock.retries > 0 {
        let again = plural(lock.retries, "time");
        remarks.push(format!("{place}: a reader had to read again {again}, because a writer came in between."));
    }
    if lock.timeouts > 0 {
        let gave_up = plural(lock.timeouts, "attempt");
        remarks.push(format!("{place}: {gave_up} ended at the timeout without the lock, and in no other figure."));
    }
    remarks
}
