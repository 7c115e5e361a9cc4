//! The screen of `attach --list`: what is shared on this machine, who maps it, and the options that choose it.

use super::{bare, short};
use crate::report::figures::{count, plural};
use crate::report::page::Page;
use crate::report::style::Style;
use crate::report::table::{Cell, Column, Grid, Notes, Row};
use attach::Closed;
use record::{AttachListing, ListedSegment, SegmentQuiet, SegmentUser};

/// Users named of one segment.
const MOST_USERS: usize = 4;

/// The screen; with `all` the segments on which nobody contends, too. `closed` says what processes could not be looked at.
pub(crate) fn render(listing: &AttachListing, all: bool, closed: Option<&Closed>, style: &Style) -> String {
    let mut page = Page::new(style);
    let shown: Vec<&ListedSegment> = listing.segments.iter().filter(|of| all || of.quiet.is_none()).collect();
    match shown.is_empty() {
        true => page.prose("No two processes share memory that one of them may write."),
        false => segments(&mut page, &shown),
    }
    left_out(&mut page, listing, all);
    if let Some(Closed { why, cure }) = closed {
        page.prose(&format!("{why}; {cure}."));
    }
    page.finish()
}

fn segments(page: &mut Page, shown: &[&ListedSegment]) {
    page.heading("Shared segments, those of most processes first");
    let columns = vec![
        Column::words("segment"),
        Column::words("kind"),
        Column::figures("bytes", "bytes"),
        Column::words("mapped by"),
    ];
    let row = |of: &&ListedSegment| Row {
        block: Some(bare(&of.segment.name).to_owned()),
        section: None,
        cells: vec![
            Cell::text(bare(&of.segment.name)),
            Cell::text(short(of.segment.kind)),
            Cell::text(count(of.segment.bytes)),
            Cell::text(users(&of.users)),
        ],
    };
    page.grid(&Grid { columns, rows: shown.iter().map(row).collect() }, &Notes::default());
    page.heading("To watch one of them");
    for of in shown {
        page.command(&format!("coordinator attach {}", of.choose), bare(&of.segment.name));
    }
}

/// `4711 writer, 4712 reader`; who may only read is marked.
fn users(users: &[SegmentUser]) -> String {
    let one = |user: &SegmentUser| {
        let writes = user.mappings.iter().any(|mapping| mapping.writable);
        format!("{} {}{}", user.pid, user.command, if writes { "" } else { " (reads)" })
    };
    let mut named: Vec<String> = users.iter().take(MOST_USERS).map(one).collect();
    if let Some(more) = users.len().checked_sub(MOST_USERS).filter(|more| *more > 0) {
        named.push(format!("{more} more"));
    }
    named.join(", ")
}

fn left_out(page: &mut Page, listing: &AttachListing, all: bool) {
    let of = |quiet| listing.segments.iter().filter(|of| of.quiet == Some(quiet)).count() as u64;
    let (read_only, alone) = (of(SegmentQuiet::ReadOnly), of(SegmentQuiet::OneProcess));
    if all || read_only + alone == 0 {
        return;
    }
    let mut told = Vec::new();
    if read_only > 0 {
        told.push(format!("{} that nobody may write", count(read_only)));
    }
    if alone > 0 {
        told.push(format!("{} that one process alone maps", count(alone)));
    }
    page.legend(&format!("Left out: {}; --all shows them. Devices are never shown. {}", told.join(", "), {
        let seen = listing.segments.len() as u64;
        format!("{} in all.", plural(seen, "segment"))
    }));
}
