//! What was counted for each process, a second: against the others, and against itself before it was disturbed.

use super::{name, rate};
use crate::report::figures::percent_number;
use crate::report::page::Page;
use crate::report::table::{Cell, Column, Grid, Notes, Row, head};
use record::{Attach, AttachedProcess};
use std::collections::BTreeMap;

/// In time's order, as the record has them.
const PHASES: [&str; 3] = ["before", "while", "after"];

/// What the column of CPU time says already.
const SHOWN_AS_CPU: &str = "task_clock";

pub(super) fn write(page: &mut Page, seen: &Attach) {
    page.heading("What each did, a second, before the watch looked closely, while it did, and after");
    let events = events(seen);
    let mut columns = vec![Column::words("process"), Column::words("phase"), Column::figures("CPU, %", "CPU\n%")];
    columns.extend(events.iter().map(|event| Column::figures(event.replace('_', " "), head(&event.replace('_', " "), "/s"))));
    let rows = seen.processes.iter().filter(|one| one.counted_ns > 0).flat_map(|one| rows(one, &events)).collect();
    page.grid_in_bands(Grid { columns, rows }, 2, &Notes::default());
    uncounted(page, seen);
}

/// Those that happened to somebody.
fn events(seen: &Attach) -> Vec<String> {
    let happened = |one: &AttachedProcess| {
        let counted = one.counters.iter().filter(|(_, reading)| reading.value().is_some_and(|value| value > 0));
        counted.map(|(name, _)| name.clone()).collect::<Vec<_>>()
    };
    let mut events: Vec<String> = seen.processes.iter().flat_map(happened).filter(|name| name != SHOWN_AS_CPU).collect();
    events.sort();
    events.dedup();
    events
}

fn rows(one: &AttachedProcess, events: &[String]) -> Vec<Row> {
    let row = |(phase, word): (usize, &&str)| {
        let cpu = one.cpu[phase].map_or("–".to_owned(), percent_number);
        let counted = events.iter().map(|event| {
            let per_second = one.per_second.get(event).and_then(|of| of[phase]);
            Cell::text(per_second.map_or("–".to_owned(), rate))
        });
        let who = if phase == 0 { Cell::text(name(one)) } else { Cell::empty() };
        Row {
            block: Some(format!("{}, {word}", name(one))),
            section: None,
            cells: [who, Cell::text(word), Cell::text(cpu)].into_iter().chain(counted).collect(),
        }
    };
    PHASES.iter().enumerate().map(row).collect()
}

/// What was not counted, each reason once with the events that it keeps back.
fn uncounted(page: &mut Page, seen: &Attach) {
    let mut reasons: BTreeMap<(String, Option<String>), Vec<String>> = BTreeMap::new();
    for (event, reading) in seen.processes.iter().flat_map(|one| &one.counters) {
        let Some(why) = reading.why() else { continue };
        // One cause for all that a processor counts, however each says it.
        let why = if reading.lacks_pmu() { record::NO_PMU.to_owned() } else { why.to_owned() };
        let events = reasons.entry((why, reading.cure().map(str::to_owned))).or_default();
        if !events.contains(event) {
            events.push(event.clone());
        }
    }
    for ((why, cure), events) in reasons {
        let cure = cure.map_or_else(String::new, |cure| format!("; {cure}"));
        page.item(0, "not counted: ", &format!("{}: {why}{cure}", events.join(", ")));
    }
}
