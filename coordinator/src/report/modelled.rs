//! What a model computed, as tables and as a map of the lines: the page of `model`, and a section of a run's page.
//! Every heading says that it is modelled.

use crate::report::figures::{NONE, percent, plain};
use crate::report::page::Page;
use crate::report::style::Style;
use crate::report::table::{Cell, Column, Grid, Notes, Row};
use record::{CurvePoint, Kind, ModelRun, ModelledArm, ModelledLine, ModelledRole, RoleSummary};
use std::collections::BTreeSet;

/// Lines that the map shows of an arm, those that move most; of more it says how many.
const MOST_LINES: usize = 8;
/// Fields that are named of a line.
const MOST_FIELDS: usize = 6;
/// Pairs that are named of a line.
const MOST_PAIRS: usize = 2;

/// Counters of the table: name and head.
const COUNTERS: [(&str, &str, &str); 5] = [
    ("l1d_misses", "L1D misses/op", "L1D\nmiss\n/op"),
    ("coherence_misses", "of these coherence/op", "coher-\nence\n/op"),
    ("upgrades", "upgrades/op", "up-\ngrade\n/op"),
    ("llc_load_misses", "LLC misses/op", "LLC\nmiss\n/op"),
    ("invalidations_sent", "invalidations/op", "inval-\nidates\n/op"),
];

/// How many of them there is room for beside a measured figure and its interval.
const BESIDE_MEASURED: usize = 4;

/// One arm of a table.
pub(super) struct Subject<'a> {
    pub(super) name: &'a str,
    pub(super) headline_role: &'a str,
    pub(super) modelled: &'a ModelledArm,
    /// What was measured beside it: every role.
    pub(super) measured: &'a [RoleSummary],
}

/// The page of `model`.
pub(crate) fn render(run: &ModelRun, style: &Style) -> String {
    let mut page = Page::new(style);
    page.heading(&run.scenario.title);
    page.prose(&run.scenario.question);
    let machine = &run.machine;
    page.prose(&format!(
        "Modelled on {} ({}, {} CPUs): computed from the program and that machine's figures, not measured.",
        machine.title, machine.protocol, machine.cpus
    ));
    let subjects: Vec<Subject> = run
        .arms
        .iter()
        .map(|arm| Subject {
            name: &arm.name,
            headline_role: &arm.headline_role,
            modelled: &arm.modelled,
            measured: &[],
        })
        .collect();
    page.heading("Variants, as modelled");
    table(&mut page, &subjects, false);
    let variants = run.arms.iter().filter(|arm| arm.kind == Kind::Variant).map(|arm| arm.name.as_str()).collect();
    map(&mut page, &subjects, &variants);
    curve(&mut page, &run.curve);
    page.finish()
}

/// A row an arm and role. With `beside_measured`, what was measured of each role stands before what was modelled, and
/// the counters that say least beside the others are left out for it.
pub(super) fn table(page: &mut Page, subjects: &[Subject<'_>], beside_measured: bool) {
    if subjects.iter().all(|subject| subject.modelled.why.is_some()) {
        return nothing_modelled(page, subjects);
    }
    let counters = if beside_measured { &COUNTERS[..BESIDE_MEASURED] } else { &COUNTERS[..] };
    let several_roles = subjects.iter().any(|subject| subject.modelled.roles.len() > 1);
    let mut columns = vec![Column::words("variant")];
    columns.extend(several_roles.then(|| Column::words("role")));
    columns
        .extend(beside_measured.then(|| Column::figures("measured ns/op (interval)", "measured\nns/op\n(interval)")));
    columns.push(Column::figures("modelled ns/op", "modelled\nns/op"));
    columns.extend(counters.iter().map(|(_, name, head)| Column::figures(*name, *head)));
    let mut notes = Notes::default();
    let mut rows = Vec::new();
    for subject in subjects {
        if let Some(why) = &subject.modelled.why {
            let mut cells = vec![Cell::text(subject.name)];
            cells.extend(several_roles.then(Cell::empty));
            cells.extend(beside_measured.then(|| measured(subject, subject.headline_role)));
            cells.extend((0..=counters.len()).map(|_| notes.missing(format!("not modelled: {why}"))));
            rows.push(Row::new(cells));
        }
        for role in &subject.modelled.roles {
            let mut cells = vec![Cell::text(subject.name)];
            cells.extend(several_roles.then(|| Cell::text(&role.role)));
            cells.extend(beside_measured.then(|| measured(subject, &role.role)));
            cells.push(match role.ns_per_op {
                Some(ns) => Cell::text(plain(ns)),
                None => notes.missing(no_pass(subject.modelled, &role.role)),
            });
            cells.extend(counters.iter().map(|(name, ..)| Cell::text(per_op(role, name))));
            rows.push(Row { block: Some(format!("{}, {}", subject.name, role.role)), ..Row::new(cells) });
        }
    }
    page.grid(&Grid { columns, rows }, &notes);
    page.legend(
        "L1D miss: an access that asks beyond the first level; coherence: of these, another core had taken the line away; \
         upgrade: the line was here, but shared. LLC miss: memory or another cluster served it.",
    );
}

/// Why there is no figure: arms of one reason together.
fn nothing_modelled(page: &mut Page, subjects: &[Subject<'_>]) {
    let mut arms: Vec<(&str, Vec<&str>)> = Vec::new();
    for subject in subjects {
        let why = subject.modelled.why.as_deref().unwrap_or_default();
        match arms.iter_mut().find(|(known, _)| *known == why) {
            Some((_, names)) => names.push(subject.name),
            None => arms.push((why, vec![subject.name])),
        }
    }
    for (why, names) in arms {
        page.item(0, "", &format!("{}: not modelled: {why}", names.join(", ")));
    }
}

/// Why a role has no time of a pass.
fn no_pass(modelled: &ModelledArm, role: &str) -> String {
    let idle = modelled.workers.iter().filter(|worker| worker.role == role && worker.ns_per_op.is_none());
    let idle: Vec<u32> = idle.map(|worker| worker.index).collect();
    let workers = if idle.len() == 1 { "worker" } else { "workers" };
    format!("{workers} {} completed no pass in the modelled window", workers_in_words(&idle))
}

fn measured(subject: &Subject<'_>, role: &str) -> Cell {
    let measured = subject.measured.iter().find(|measured| measured.role == role);
    measured.and_then(|measured| measured.ns_per_op.as_ref()).map_or_else(Cell::empty, Cell::interval)
}

fn per_op(role: &ModelledRole, counter: &str) -> String {
    role.counters.get(counter).map_or_else(|| NONE.to_owned(), |counter| plain(counter.per_op))
}

/// Each line of the named arms: what lies on it, who touches it, how it moves.
pub(super) fn map(page: &mut Page, subjects: &[Subject<'_>], named: &BTreeSet<&str>) {
    let shown: Vec<&Subject> =
        subjects.iter().filter(|s| named.contains(s.name) && !s.modelled.lines.is_empty()).collect();
    if shown.is_empty() {
        return;
    }
    page.heading("Lines, as modelled");
    for subject in shown {
        page.item(0, "", &format!("{}:", subject.name));
        let mut lines: Vec<&ModelledLine> = subject.modelled.lines.iter().collect();
        lines.sort_by(|a, b| b.transfers_per_op.total_cmp(&a.transfers_per_op).then(a.index.cmp(&b.index)));
        let (shown, rest) = lines.split_at(lines.len().min(MOST_LINES));
        for line in shown {
            page.item(2, "", &sentence(line));
        }
        if !rest.is_empty() {
            let most = rest.iter().map(|line| line.transfers_per_op).fold(0.0, f64::max);
            page.item(2, "", &format!("and {} more, which move at most {} times a pass", rest.len(), plain(most)));
        }
    }
}

fn sentence(line: &ModelledLine) -> String {
    let mut fields = line.fields[..line.fields.len().min(MOST_FIELDS)].join(" ");
    if line.fields.len() > MOST_FIELDS {
        fields.push_str(&format!(" and {} more", line.fields.len() - MOST_FIELDS));
    }
    let mut text = format!("line {} [{fields}]", line.index);
    for (what, workers) in [("written by", &line.writers), ("read by", &line.readers)] {
        if !workers.is_empty() {
            text.push_str(&format!(" {what} {}", workers_in_words(workers)));
        }
    }
    if line.transfers_per_op == 0.0 {
        return text + "; stays where it is";
    }
    let moves = match plain(line.transfers_per_op).as_str() {
        "1" => "once".to_owned(),
        times => format!("{times} times"),
    };
    text.push_str(&format!("; moves {moves} a pass"));
    if let Some(passes) = line.tenure_passes.map(plain) {
        let unit = if passes == "1" { "pass" } else { "passes" };
        text.push_str(&format!(", {passes} {unit} a tenure"));
    }
    let pairs: Vec<String> = line.pairs.iter().take(MOST_PAIRS).map(pair).collect();
    if !pairs.is_empty() {
        text.push_str(&format!("; {}", pairs.join(", ")));
    }
    text
}

fn pair(pair: &record::ModelledPair) -> String {
    let wants = if pair.to_write { "writing" } else { "reading" };
    format!("{wants} {} takes it from {} ({})", pair.wanted, pair.held, percent(pair.share))
}

/// `0–3` or `0, 2, 5`.
fn workers_in_words(workers: &[u32]) -> String {
    let run = workers.windows(2).all(|pair| pair[1] == pair[0] + 1);
    match workers {
        [first, .., last] if run && workers.len() > 2 => format!("{first}–{last}"),
        _ => workers.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// Million passes a second: a row a number of workers, a column a variant.
fn curve(page: &mut Page, curve: &[CurvePoint]) {
    if curve.is_empty() {
        return;
    }
    page.heading("Throughput by workers, as modelled");
    let mut arms: Vec<&str> = Vec::new();
    for point in curve {
        // A sweep over workers names its arms by them: the curve is over the variants' own names.
        if !arms.contains(&point.arm.as_str()) {
            arms.push(&point.arm);
        }
    }
    let counts: BTreeSet<u32> = curve.iter().map(|point| point.workers).collect();
    let mut columns = vec![Column::figures("workers", "workers")];
    columns.extend(arms.iter().map(|arm| Column::figures(format!("{arm}, M passes/s"), format!("{arm}\nM/s"))));
    let mut notes = Notes::default();
    let row = |workers: &u32| {
        let mut cells = vec![Cell::text(workers.to_string())];
        for arm in &arms {
            let point = curve.iter().find(|point| point.arm == *arm && point.workers == *workers);
            cells.push(match point {
                Some(CurvePoint { ops_per_second: Some(rate), .. }) => Cell::text(plain(rate / 1e6)),
                Some(CurvePoint { why: Some(why), .. }) => notes.missing(format!("not modelled: {why}")),
                _ => Cell::empty(),
            });
        }
        Row { block: Some(format!("{workers} workers")), ..Row::new(cells) }
    };
    let rows = counts.iter().map(row).collect();
    page.grid(&Grid { columns, rows }, &notes);
}
