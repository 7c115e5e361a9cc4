//! The map of the lines: each cache line of an arm as a row of cells, byte by byte, the hottest first.

mod line;

use crate::limits::{FIELDS, LINES, MAPS, left_out};
use crate::names::{Arm, Arms, ranges};
use crate::table::{Table, details, scrolled};
use figures::{percent, plain};
pub(crate) use line::hottest;
use line::{Cell, Line, lines, spaced};
use maud::{Markup, html};
use plan::CACHE_LINE_BYTES;
use record::ArmSummary;

/// Pairs of words that are named of a line that moves.
const PAIRS: usize = 2;
/// Arms that are shown without being opened.
const OPEN: usize = 3;

pub(crate) fn section(arms: &Arms<'_>) -> Markup {
    let placed: Vec<&Arm<'_>> = arms.all().iter().filter(|arm| !arm.summary.layout.is_empty()).collect();
    if placed.is_empty() {
        return html! { p { "This scenario places no field and no lock: its workers share regions of pages, which the \
        timeline below is about." } };
    }
    let shown = &placed[..placed.len().min(MAPS)];
    html! {
        p .legend {
            "A row is one cache line of " (CACHE_LINE_BYTES) " bytes. W: who writes a cell, and its colour: "
            @for worker in 0..3u32 { span class=(format!("sample w{worker}")) { "W " (worker) } " " }
            span .sample.many { "W 0, 1" } " several. R, hatched: "
            span .sample.read { "R 1" } " who else reads it. A thick frame and ⇄ mark a line that has to move between \
            CPUs. \
            Dotted: nothing lies there."
        }
        @for (index, arm) in shown.iter().enumerate() {
            @let body = one(arm);
            @if index < OPEN { h3 { (arm.label()) } (body) }
            @else { details { summary { (arm.label()) } (body) } }
        }
        (left_out(placed.len(), shown.len(), "variants"))
    }
}

fn one(arm: &Arm<'_>) -> Markup {
    let lines = lines(arm.summary);
    let shown = &lines[..lines.len().min(LINES)];
    let name = format!("Lines of {}", arm.summary.name);
    html! {
        (scrolled(&name, html! {
            table .map {
                caption { (name) ": " (finding(&lines)) }
                colgroup { col .name; @for _ in 0..CACHE_LINE_BYTES { col; } }
                tbody { @for line in shown { (row(line)) } }
            }
        }))
        (movements(shown))
        (measured(arm.summary))
        (left_out(lines.len(), shown.len(), "lines, none of them hotter,"))
        (details("The same as a list", list(arm.summary, &lines)))
    }
}

fn finding(lines: &[Line<'_>]) -> String {
    let moving = lines.iter().filter(|line| line.moves()).count();
    match (moving, lines.len()) {
        (0, 1) => "it need not move".to_owned(),
        (0, all) => format!("none of {all} has to move"),
        (1, 1) => "it has to move".to_owned(),
        (some, all) => format!("{some} of {all} have to move"),
    }
}

fn row(line: &Line<'_>) -> Markup {
    let mark = if line.moves() { "⇄ " } else { "" };
    html! {
        tr class=[line.moves().then_some("moves")] {
            th scope="row" { (mark) "line " (line.index)
                @if let Some(transfers) = line.transfers().filter(|t| *t > 0.0) { br; (plain(transfers)) " a pass" }
            }
            @for (gap, cell) in spaced(line) {
                @if gap > 0 { td .gap colspan=(gap) { "–" } }
                @if let Some(cell) = cell {
                    td class=(cell.class()) colspan=(cell.bytes) { b { (cell.name()) } (cell.touched_by()) }
                }
            }
        }
    }
}

/// What moves each line, in words.
fn movements(lines: &[Line<'_>]) -> Markup {
    let said = |line: &Line<'_>| {
        let movement = match (line.movement(), line.moves()) {
            (Some(text), _) => text,
            (None, true) => "how often it moves was neither modelled nor counted line by line".to_owned(),
            (None, false) => return format!("line {} is {}", line.index, line.sharing()),
        };
        let pairs = line.modelled.map_or(&[][..], |modelled| &modelled.pairs[..modelled.pairs.len().min(PAIRS)]);
        let wants = |to_write: bool| if to_write { "writing" } else { "reading" };
        let pairs = pairs.iter().map(|pair| {
            format!("; {} {} takes it from {} ({})", wants(pair.to_write), pair.wanted, pair.held, percent(pair.share))
        });
        format!("line {} is {}; {movement}{}", line.index, line.sharing(), pairs.collect::<String>())
    };
    html! { ul { @for line in lines.iter().filter(|line| line.moves()) { li { (said(line)) } } } }
}

/// What the hardware counted of lines coming from other cores: of all lines together, which is all that it tells.
fn measured(arm: &ArmSummary) -> Markup {
    let counted = arm.roles.iter().flat_map(|role| {
        let transfers = role.counters.iter().filter(|(name, _)| name.starts_with("transfers_"));
        transfers.filter_map(move |(name, counter)| Some((&role.role, name, counter.measured.per_op?)))
    });
    let counted: Vec<_> = counted.collect();
    html! { @if !counted.is_empty() {
        p { "Measured, all lines together: "
            @for (index, (role, name, per_op)) in counted.iter().enumerate() {
                @if index > 0 { "; " } (name) " of " (role) " " (plain(*per_op)) " a pass"
            } "."
        }
    } }
}

fn list(arm: &ArmSummary, lines: &[Line<'_>]) -> Markup {
    let caption = format!("Fields of {}, hottest line first", arm.name);
    let mut table = Table::new(caption, 2, &["field", "line", "offset", "bytes", "written by", "read by"]);
    let cells: Vec<(&Line<'_>, &Cell)> =
        lines.iter().flat_map(|line| line.cells.iter().map(move |cell| (line, cell))).collect();
    let all = |workers: &[u32]| if workers.is_empty() { "nobody".to_owned() } else { ranges(workers.iter().copied()) };
    for (line, cell) in cells.iter().take(FIELDS) {
        table.row(vec![
            html! { (cell.name()) },
            html! { (line.index) },
            html! { (cell.offset) },
            html! { (cell.bytes) },
            html! { (all(&cell.writers)) },
            html! { (all(&cell.readers)) },
        ]);
    }
    html! { (table) (left_out(cells.len(), FIELDS.min(cells.len()), "fields")) }
}
