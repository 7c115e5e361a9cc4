//! The words that somebody waited for in the kernel: how often, how long, who, and who has it.

use super::{hex, time, who, whom};
use crate::report::figures::{count, plural};
use crate::report::page::Page;
use crate::report::style::Tone;
use crate::report::table::{Cell, Column, Grid, Notes, Row};
use record::{Attach, LockUser, WatchedLock};

/// Users named of one lock.
const MOST_USERS: usize = 4;

pub(super) fn write(page: &mut Page, seen: &Attach) {
    if seen.locks.is_empty() {
        return;
    }
    page.heading("Lock words, the longest waits first");
    let columns = vec![
        Column::words("word"),
        Column::figures("waits", "waits"),
        Column::figures("refused", "refused"),
        Column::figures("unended", "unended"),
        Column::figures("wait p50", "wait p50"),
        Column::figures("p99", "p99"),
        Column::figures("max", "max"),
        Column::words("owner now"),
    ];
    let rows = seen.locks.iter().map(|lock| row(seen, lock)).collect();
    page.grid(&Grid { columns, rows }, &Notes::default());
    page.legend(
        "wait: from asking the kernel until it lets go. refused: at once, because the word had changed. unended: still \
         waiting when the watch ended.",
    );
    seen.locks.iter().for_each(|lock| users(page, seen, lock));
}

fn row(seen: &Attach, lock: &WatchedLock) -> Row {
    let waited = lock.waits > 0;
    let point = |ns: u64| Cell::text(if waited { time(ns) } else { "–".to_owned() });
    Row::new(vec![
        Cell::text(place(lock)),
        Cell::text(count(lock.waits)),
        Cell::text(count(lock.refused)),
        Cell::text(count(lock.unended)),
        point(lock.wait_ns.p50),
        point(lock.wait_ns.p99),
        point(lock.wait_ns.max),
        Cell::text(lock.owner_pid.map_or_else(|| "–".to_owned(), |pid| who(seen, pid))),
    ])
}

fn place(lock: &WatchedLock) -> String {
    lock.field.as_ref().map_or_else(|| hex(lock.offset), |field| format!("{} {field}", hex(lock.offset)))
}

fn users(page: &mut Page, seen: &Attach, lock: &WatchedLock) {
    for finding in &lock.findings {
        page.verdict(Tone::Bad, &finding.kind.replace('_', " "), &format!("{}: {}", place(lock), finding.text));
    }
    let named = |users: &[LockUser], amount: &dyn Fn(&LockUser) -> String| {
        let told = users.iter().take(MOST_USERS).map(|user| format!("{} {}", who(seen, user.pid), amount(user)));
        told.collect::<Vec<_>>().join(", ")
    };
    let mut told = Vec::new();
    if !lock.waiters.is_empty() {
        told.push(format!(
            "waited: {}",
            named(&lock.waiters, &|user| format!("{} × ({})", count(user.calls), time(user.amount)))
        ));
    }
    if !lock.wakers.is_empty() {
        told.push(format!(
            "woke: {}",
            named(&lock.wakers, &|user| format!("{} × ({})", count(user.calls), count(user.amount)))
        ));
    }
    if !lock.spinners.is_empty() {
        told.push(format!("seen spinning: {}", whom(seen, &lock.spinners)));
    }
    if lock.begun_before > 0 {
        told.push(format!("{} begun before the watch", plural(lock.begun_before, "wait")));
    }
    if lock.lost > 0 {
        told.push(format!("{} found the buffer full", plural(lock.lost, "event")));
    }
    if let Some(probed) = lock.probed {
        let counted = [
            (probed.calls, "calls of pthread_mutex_lock"),
            (probed.contended, "waits begun at markers"),
            (probed.acquired, "that ended in owning it"),
        ];
        let counted = counted.into_iter().filter_map(|(times, what)| Some(format!("{} {what}", count(times?))));
        told.push(format!("probes counted {}", counted.collect::<Vec<_>>().join(", ")));
    }
    if !told.is_empty() {
        page.item(0, &format!("{}: ", place(lock)), &told.join("; "));
    }
}
