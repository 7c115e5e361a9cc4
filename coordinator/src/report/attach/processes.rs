//! Who maps the segment, where each has it, and how each left.

use super::{hex, name};
use crate::report::figures::{count, plural};
use crate::report::page::Page;
use crate::report::style::Tone;
use crate::report::table::{Cell, Column, Grid, Notes, Row};
use record::{Attach, AttachedProcess, ProcessEnd, SegmentMapping};

pub(super) fn write(page: &mut Page, seen: &Attach) {
    page.heading("Who maps it");
    let columns = vec![
        Column::words("process"),
        Column::figures("at", "at"),
        Column::figures("bytes", "bytes"),
        Column::figures("offset", "offset"),
        Column::words("may"),
        Column::figures("threads", "threads"),
    ];
    let rows = seen.processes.iter().flat_map(rows).collect();
    page.grid(&Grid { columns, rows }, &Notes::default());
    for one in &seen.processes {
        remarks(one).into_iter().for_each(|(tone, word, text)| page.verdict(tone, word, &text));
    }
}

fn rows(one: &AttachedProcess) -> Vec<Row> {
    let first = |mapping: Option<&SegmentMapping>| Row {
        block: Some(name(one)),
        section: None,
        cells: [vec![Cell::text(name(one))], place(mapping), vec![Cell::text(count(u64::from(one.threads)))]].concat(),
    };
    let further = |mapping: &SegmentMapping| Row {
        block: Some(format!("{}, further", name(one))),
        section: None,
        cells: [vec![Cell::empty()], place(Some(mapping)), vec![Cell::empty()]].concat(),
    };
    let further = one.mappings.iter().skip(1).map(further);
    std::iter::once(first(one.mappings.first())).chain(further).collect()
}

fn place(mapping: Option<&SegmentMapping>) -> Vec<Cell> {
    let Some(mapping) = mapping else { return vec!["–", "–", "–", "–"].into_iter().map(Cell::text).collect() };
    vec![
        Cell::text(hex(mapping.address)),
        Cell::text(count(mapping.bytes)),
        Cell::text(count(mapping.offset)),
        Cell::text(if mapping.writable { "write" } else { "read" }),
    ]
}

/// What the table does not hold.
fn remarks(one: &AttachedProcess) -> Vec<(Tone, &'static str, String)> {
    let name = name(one);
    let mut remarks = Vec::new();
    if let Some(why) = &one.unwatched {
        remarks.push((Tone::Bad, "not watched", format!("{name}: {why}")));
    }
    if let Some(inside) = one.pid_inside {
        remarks.push((Tone::Faint, "container", format!("{name} is process {inside} in its own namespace of pids")));
    }
    if one.address_bits != 64 {
        remarks.push((
            Tone::Faint,
            "addresses",
            format!("{name} has {} of them", plural(u64::from(one.address_bits), "bit")),
        ));
    }
    let ended = match one.ended {
        None => return remarks,
        Some(ProcessEnd::Exited) => "ended while it was watched",
        Some(ProcessEnd::Executed) => "executed another program while it was watched",
        Some(ProcessEnd::Unmapped) => "unmapped the segment while it was watched",
    };
    remarks.push((Tone::Caution, "left", format!("{name} {ended}")));
    remarks
}
