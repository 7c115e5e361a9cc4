//! The table of variants, the references set apart below it, and what sharing cost against them.

use crate::report::figures::{count, percent, plain};
use crate::report::page::Page;
use crate::report::table::{Cell, Column, Grid, Notes, Row};
use record::{ArmState, ArmSummary, Interval, Kind, Reading, Run};

/// Shown under the heads that a student meets first; glossary names.
const L1D: &str = "l1d_load_misses";
const LLC: &str = "llc_load_misses";

/// Variants, references, cost of sharing.
pub(super) fn write(page: &mut Page, run: &Run) {
    page.heading("Variants, as measured");
    let mut notes = Notes::default();
    let (variants, references): (Vec<_>, Vec<_>) = run.arms.iter().partition(|arm| arm.kind == Kind::Variant);
    let mut rows: Vec<Row> = variants.iter().map(|arm| row(arm, run, &mut notes)).collect();
    for (index, arm) in references.iter().enumerate() {
        let section = (index == 0).then_some("references, to hold the figures above against");
        rows.push(Row { section, ..row(arm, run, &mut notes) });
    }
    page.grid(&Grid { columns: columns(), rows }, &notes);
    page.legend(&legend(run));
    sharing(page, run);
}

fn columns() -> Vec<Column> {
    vec![
        Column::words("variant"),
        Column::figures("bytes", "bytes"),
        Column::figures("ns/op", "ns/op\n(interval)"),
        Column::figures("ratio to best", "ratio to best\n(interval)"),
        Column::figures("kept", "kept"),
        Column::figures("L1D misses/op", "L1D\nmiss\n/op"),
        Column::figures("LLC misses/op", "LLC\nmiss\n/op"),
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

/// A counter of the headline role, for each pass. What could not be counted is not 0.
fn misses(arm: &ArmSummary, counter: &str, notes: &mut Notes) -> Cell {
    if arm.state == ArmState::NotApplicable {
        return notes.missing(reason(arm));
    }
    let role = arm.roles.iter().find(|role| role.role == arm.headline_role);
    let Some(summary) = role.and_then(|role| role.counters.get(counter)) else {
        return notes.missing("this run has no reading of it".to_owned());
    };
    match (&summary.measured.reading, summary.measured.per_op) {
        (Reading::Counted { .. }, Some(per_op)) => Cell::text(plain(per_op)),
        (Reading::Scaled { ratio, .. }, Some(per_op)) => notes.marked(
            &plain(per_op),
            format!("on a counter for {} of the window, scaled up to all of it", percent(*ratio)),
        ),
        (Reading::Counted { .. } | Reading::Scaled { .. }, None) => {
            notes.missing("counted, but no pass to divide it by".to_owned())
        }
        (Reading::NotScheduled, _) => notes.missing(
            "opened, but the kernel never gave it a counter in the window; count fewer events at once".to_owned(),
        ),
        (Reading::Unsupported { why }, _) => notes.missing(format!("this machine cannot count it: {why}")),
        (Reading::Denied { why, cure }, _) => notes.missing(format!("not permitted: {why}; cure: {cure}")),
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
    format!(
        "ns/op: nanoseconds for one pass of {role}, per worker: median of the repetitions kept, with its {level} \
         interval. kept: repetitions that count, of those that ran."
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
