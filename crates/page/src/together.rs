//! What sharing costs: each role against itself alone, and against a copy for each.

use crate::axis::Axis;
use crate::chart::{Chart, Mark};
use crate::limits::{ROWS, left_out};
use crate::names::{Arm, Arms, clipped};
use crate::table::{Table, figure, interval_or_none, prose};
use figures::Figure;
use maud::{Markup, html};
use record::{Interval, Kind, RoleSummary, Run};

pub(crate) fn section(run: &Run, arms: &Arms<'_>) -> Markup {
    let measured = arms.measured();
    let rows: Vec<(Arm<'_>, &RoleSummary)> = measured
        .iter()
        .flat_map(|arm| arm.summary.roles.iter().map(|role| (*arm, role)))
        .filter(|(_, role)| role.contention.solo.is_some() || role.contention.unshared.is_some())
        .collect();
    html! {
        @if rows.is_empty() { p { (prose(why_none(run))) } } @else { (compared(&rows)) }
        (references(run))
    }
}

fn why_none(run: &Run) -> &'static str {
    let has = run.arms.iter().any(|arm| matches!(arm.kind, Kind::Solo | Kind::Unshared));
    match has {
        true => "The baselines ran, but no ratio to them could be made within one regime.",
        false => {
            "This run has no baseline: `solo` needs a role that waits for nobody, `unshared` a scenario in which nobody \
             waits for another's post, and `[measure] baselines` may have turned them off."
        }
    }
}

/// Alone and with copies, a row a variant and role.
fn compared(rows: &[(Arm<'_>, &RoleSummary)]) -> Markup {
    let shown = &rows[..rows.len().min(ROWS)];
    let several = shown.iter().any(|(arm, role)| role.role != arm.summary.headline_role);
    let name = |(arm, role): &(Arm<'_>, &RoleSummary)| match several {
        true => format!("{} {}", arm.letter(), clipped(&format!("{} {}", arm.summary.name, role.role), 22)),
        false => arm.in_chart(),
    };
    let both = |role: &RoleSummary| [role.contention.solo, role.contention.unshared];
    let all = shown.iter().flat_map(|(_, role)| both(role)).flatten();
    let ends = all.flat_map(|ratio| [ratio.low, ratio.high]).chain([1.0]);
    let names: Vec<String> = shown.iter().map(name).collect();
    let mut chart = Chart::of_rows(Axis::logarithmic("times as long as without sharing", ends), &names);
    chart.marks.push(Mark::Guide((1.0, f64::MIN), (1.0, f64::MAX)));
    let heads = ["variant", "role", "● against a worker alone", "□ against a copy for each"];
    let mut table = Table::new("How many times as long a pass takes", 2, &heads);
    for (row, (arm, role)) in shown.iter().enumerate() {
        let y = -(row as f64);
        let mut span = |series: usize, y: f64, ratio: &Interval| {
            chart.marks.push(Mark::Span(series, (ratio.low, y), (ratio.high, y)));
            let at = (ratio.median, y);
            chart.marks.push(if series == 0 { Mark::Dot(0, at) } else { Mark::Square(1, at) });
        };
        role.contention.solo.iter().for_each(|ratio| span(0, y + 0.18, ratio));
        role.contention.unshared.iter().for_each(|ratio| span(1, y - 0.18, ratio));
        let (solo, unshared) = (role.contention.solo.as_ref(), role.contention.unshared.as_ref());
        table.row(vec![arm.label(), html! { (role.role) }, interval_or_none(solo), interval_or_none(unshared)]);
    }
    let drawing = html! {
        (chart.svg("alone"))
        p .legend { "● against one worker alone. □ against all of them, each with a copy of its own: turbo and shared \
                     execution units are then alike, so what is left is the sharing of memory." }
    };
    html! { (figure("alone", finding(rows), drawing, table)) (left_out(rows.len(), shown.len(), "rows")) }
}

fn finding(rows: &[(Arm<'_>, &RoleSummary)]) -> Markup {
    let solo =
        rows.iter().filter_map(|(arm, role)| Some((arm, role, role.contention.solo.or(role.contention.unshared)?)));
    let most = solo.max_by(|(.., a), (.., b)| a.median.total_cmp(&b.median));
    html! { @if let Some((arm, role, ratio)) = most {
        @if ratio.low > 1.0 {
            "A pass of " (role.role) " takes up to " (Figure::new(&ratio).line()) " times as long in company: in "
            (arm.summary.name)
        } @else {
            "No role is told to be slower in company than without"
        }
    } }
}

/// The baselines' own figures.
fn references(run: &Run) -> Markup {
    let mut table =
        Table::new("References: not compared, but compared with", 2, &["reference", "role", "ns per pass", "kept"]);
    let all: Vec<_> = run.arms.iter().filter(|arm| arm.kind != Kind::Variant).collect();
    for arm in all.iter().take(ROWS) {
        let fate = arm.repetitions;
        table.row(vec![
            html! { (arm.name) },
            html! { (arm.headline_role) },
            interval_or_none(arm.ns_per_op.as_ref()),
            html! { (fate.kept) "/" (fate.all()) },
        ]);
    }
    html! { @if !table.is_empty() { (table) (left_out(all.len(), ROWS, "references")) } }
}
