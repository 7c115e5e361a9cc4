//! What was counted for each process, a second: against the others, and against itself before it was disturbed.

use super::{name, rate};
use crate::report::figures::{in_words, percent_number, plural};
use crate::report::page::Page;
use crate::report::table::{Cell, Column, Grid, Notes, Row, head};
use record::{Attach, AttachedProcess, NO_PMU};
use std::collections::{BTreeMap, BTreeSet};

/// In time's order, as the record has them.
const PHASES: [&str; 3] = ["before", "while", "after"];

/// What the column of CPU time says already.
const SHOWN_AS_CPU: &str = "task_clock";

pub(super) fn write(page: &mut Page, seen: &Attach) {
    page.heading("What each did, a second, before the watch looked closely, while it did, and after");
    let events = events(seen);
    let mut columns = vec![Column::words("process"), Column::words("phase"), Column::figures("CPU, %", "CPU\n%")];
    columns.extend(events.iter().map(|event| Column::figures(in_words(event), head(&in_words(event), "/s"))));
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
    let mut events: Vec<String> =
        seen.processes.iter().flat_map(happened).filter(|name| name != SHOWN_AS_CPU).collect();
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
    let mut reasons: BTreeMap<(&str, Option<&str>), BTreeSet<&str>> = BTreeMap::new();
    let mut of_processor: BTreeSet<&str> = BTreeSet::new();
    for (event, reading) in seen.processes.iter().flat_map(|one| &one.counters) {
        match reading.why() {
            None => {}
            Some(_) if reading.lacks_pmu() => _ = of_processor.insert(event),
            Some(why) => _ = reasons.entry((why, reading.cure())).or_default().insert(event),
        }
    }
    if !of_processor.is_empty() {
        let what = plural(of_processor.len() as u64, "event");
        page.item(0, "not counted: ", &format!("{what} of the processor's, since {NO_PMU}"));
    }
    for ((why, cure), events) in reasons {
        let events: Vec<&str> = events.into_iter().collect();
        let cure = cure.map_or_else(String::new, |cure| format!("; {cure}"));
        page.item(0, "not counted: ", &format!("{}: {why}{cure}", events.join(", ")));
    }
}
