//! The table of variants, the references set apart below it, and what sharing cost against them.

use crate::report::figures::{count, percent};
use crate::report::page::Page;
use crate::report::table::{Cell, Column, Grid, Notes, Row, head};
use crate::report::terminal::counters::{L1D, LLC, REFERENCES, meaning};
use crate::report::terminal::readings::{self, Per};
use record::{ArmState, ArmSummary, Events, Interval, Kind, Run};

/// Variants, references, cost of sharing.
pub(super) fn write(page: &mut Page, run: &Run) {
    page.heading("Variants, as measured");
    let mut notes = Notes::default();
    let (variants, references): (Vec<_>, Vec<_>) = run.arms.iter().partition(|arm| arm.kind == Kind::Variant);
    let mut rows: Vec<Row> = variants.iter().map(|arm| row(arm, run, &mut notes)).collect();
    for (index, arm) in references.iter().enumerate() {
        let section = (index == 0).then_some(REFERENCES);
        rows.push(Row { section, ..row(arm, run, &mut notes) });
    }
    page.grid(&Grid { columns: columns(run), rows }, &notes);
    page.legend(&legend(run));
    sharing(page, run);
}

fn columns(run: &Run) -> Vec<Column> {
    vec![
        Column::words("variant"),
        Column::figures("bytes", "bytes"),
        Column::figures("ns/op", "ns/op\n(interval)"),
        Column::figures("ratio to best", "ratio to best\n(interval)"),
        Column::figures("kept", "kept"),
        column(run, L1D, "L1D misses/op", "L1D\nmiss\n/op"),
        column(run, LLC, "LLC misses/op", "LLC\nmiss\n/op"),
    ]
}

fn row(arm: &ArmSummary, run: &Run, notes: &mut Notes) -> Row {
    let repetitions = arm.repetitions;
    let ran = repetitions.kept + repetitions.spoiled + repetitions.other_regime;
    let kept = match arm.state {
        ArmState::NotApplicable => notes.missing(reason(arm)),
        _ => Cell::text(format!("{}/{ran}", repetitions.kept)),
    };
    Row::new(vec![
        Cell::text(&arm.name),
        Cell::text(count(arm.bytes)),
        figure(arm.ns_per_op.as_ref(), arm, notes),
        ratio(arm, run, notes),
        kept,
        misses(arm, L1D, notes),
        misses(arm, LLC, notes),
    ])
}

fn figure(interval: Option<&Interval>, arm: &ArmSummary, notes: &mut Notes) -> Cell {
    match interval {
        Some(interval) => Cell::interval(interval),
        None => notes.missing(reason(arm)),
    }
}

/// Why an arm has no figures.
fn reason(arm: &ArmSummary) -> String {
    match (&arm.why, arm.state) {
        (Some(why), ArmState::NotApplicable) => format!("not applicable here: {why}"),
        (Some(why), _) => format!("unresolved: {why}"),
        (None, ArmState::NotApplicable) => "not applicable on this host".to_owned(),
        (None, _) => "unresolved: too few repetitions kept".to_owned(),
    }
}

/// The best variant is 1 by definition; a reference is not among those compared.
fn ratio(arm: &ArmSummary, run: &Run, notes: &mut Notes) -> Cell {
    match &arm.ratio_to_best {
        Some(Interval { median: 1.0, low: 1.0, high: 1.0 }) => Cell::text("1"),
        Some(interval) => Cell::interval(interval),
        None if arm.state != ArmState::Measured => notes.missing(reason(arm)),
        None if arm.kind == Kind::Variant => notes.missing(match best(run) {
            Some(_) => "no ratio could be made within one regime".to_owned(),
            None => "no variant to compare with".to_owned(),
        }),
        None => Cell::empty(),
    }
}

fn best(run: &Run) -> Option<&ArmSummary> {
    run.arms.iter().find(|arm| arm.kind == Kind::Variant && arm.ratio_to_best.is_some())
}

/// A counter of the headline role, for each pass.
fn misses(arm: &ArmSummary, counter: &str, notes: &mut Notes) -> Cell {
    if arm.state == ArmState::NotApplicable {
        return notes.missing(reason(arm));
    }
    let role = arm.roles.iter().find(|role| role.role == arm.headline_role);
    readings::cell(role.and_then(|role| role.counters.get(counter)).map(|c| &c.measured), Per::Op, notes)
}

/// Whether some arm has a count of it: else it matters to nobody what would have been counted.
fn was_counted(run: &Run, counter: &str) -> bool {
    let mut roles = run.arms.iter().flat_map(|arm| &arm.roles);
    roles.any(|role| role.counters.get(counter).is_some_and(|c| c.measured.reading.value().is_some()))
}

/// A column of misses: where the generic event counts something else on this machine, its head says what.
fn column(run: &Run, counter: &str, name: &'static str, plain: &'static str) -> Column {
    let events = Events(&run.events);
    match events.differs(counter) && was_counted(run, counter) {
        true => {
            let shown = events.shown(counter);
            Column::figures(format!("{shown}/op"), head(&shown, Per::Op.unit()))
        }
        false => Column::figures(name, plain),
    }
}

fn legend(run: &Run) -> String {
    let mut roles: Vec<&str> = run.arms.iter().map(|arm| arm.headline_role.as_str()).collect();
    roles.dedup();
    let role = match roles[..] {
        [role] => format!("role {role}"),
        _ => "each row's headline role".to_owned(),
    };
    let level = percent(run.method.level);
    let explained = |counter: &&str| was_counted(run, counter);
    let meanings = [L1D, LLC].into_iter().filter(explained).filter_map(|counter| meaning(run, counter));
    let meanings: String = meanings.map(|meaning| format!(" {meaning}")).collect();
    format!(
        "ns/op: nanoseconds for one pass of {role}, per worker: median of the repetitions kept, with its {level} \
         interval. kept: repetitions that count, of those that ran.{meanings}"
    )
}

/// What each role pays for its company, where the references allow to say it.
fn sharing(page: &mut Page, run: &Run) {
    let mut rows = Vec::new();
    for arm in run.arms.iter().filter(|arm| arm.kind == Kind::Variant) {
        for role in &arm.roles {
            let cost = &role.contention;
            if cost.solo.is_none() && cost.unshared.is_none() {
                continue;
            }
            let cell = |ratio: &Option<Interval>| ratio.as_ref().map_or_else(|| Cell::text("–"), Cell::interval);
            let cells = vec![Cell::text(&arm.name), Cell::text(&role.role), cell(&cost.solo), cell(&cost.unshared)];
            rows.push(Row::new(cells));
        }
    }
    if rows.is_empty() {
        return;
    }
    page.heading("What sharing costs: how many times as long a pass takes");
    let columns = vec![
        Column::words("variant"),
        Column::words("role"),
        Column::figures("against one alone", "against a\nworker alone"),
        Column::figures("against own copies", "against a\ncopy for each"),
    ];
    page.grid(&Grid { columns, rows }, &Notes::default());
}
