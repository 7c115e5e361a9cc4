//! What is wrong, what it rests on, what would cure it and what that gave; then the scenario's own claims.

use crate::answer::name;
use crate::limits::left_out;
use crate::names::Arms;
use crate::table::{Table, details, interval_or_none, prose};
use figures::{Figure, plain};
use maud::{Markup, html};
use record::{Diagnosis, Evidence, ExpectState, Run, Severity};

/// Rows of a table here.
const ROWS: usize = 2 * crate::limits::POINTS;

pub(crate) fn section(run: &Run, arms: &Arms<'_>) -> Markup {
    html! {
        @for one in &run.diagnosis { (diagnosis(one, arms)) }
        @if !run.expect.is_empty() {
            h3 { "What the scenario expected" }
            (claims(run))
            (left_out(run.expect.len(), ROWS, "claims"))
        }
    }
}

fn diagnosis(one: &Diagnosis, arms: &Arms<'_>) -> Markup {
    html! {
        h3 { (name(one, arms)) }
        p { (prose(&one.text)) }
        dl {
            @if !one.cure.is_empty() { dt { "Cure" } dd { (prose(&one.cure)) } }
            @if let Some(gain) = &one.expected_gain {
                dt { "Gain, measured in this run" }
                dd { (Figure::new(&gain.ratio).line()) " ×, with " (gain.arm) }
            } @else if one.severity > Severity::None {
                dt { "Gain" } dd { "not measured: no arm of this run holds the cure" }
            }
            @if !one.arms.is_empty() { dt { "Seen in" } dd { (one.arms.join(", ")) } }
            @if !one.fields.is_empty() { dt { "Fields" } dd { (one.fields.join(", ")) } }
            @if !one.roles.is_empty() { dt { "Roles" } dd { (one.roles.join(", ")) } }
        }
        @if !one.evidence.is_empty() { (details("What it rests on", evidence(&one.evidence)))
            (left_out(one.evidence.len(), ROWS, "figures")) }
    }
}

fn evidence(all: &[Evidence]) -> Table {
    let mut table = Table::new("Evidence", 1, &["what", "figure"]);
    ["unit", "source"].into_iter().for_each(|head| table.words(head));
    for one in all.iter().take(ROWS) {
        let figure = one.value.map_or_else(crate::table::none, |value| html! { (plain(value)) });
        table.row(vec![prose(&one.name), figure, html! { (one.unit) }, html! { (one.source) }]);
    }
    table
}

fn claims(run: &Run) -> Table {
    let mut table = Table::new("Claims, judged on their intervals", 2, &["claim", "state", "seen"]);
    table.words("why");
    for one in run.expect.iter().take(ROWS) {
        let (class, state) = match one.state {
            ExpectState::Holds => ("good", "✓ holds"),
            ExpectState::Fails => ("bad", "✗ fails"),
            ExpectState::Undecided => ("care", "? undecided"),
            ExpectState::NotApplicable => ("left", "– not applicable"),
        };
        table.row(vec![
            html! { code { (one.claim) } },
            html! { span class=(class) { (state) } },
            interval_or_none(one.seen.as_ref()),
            prose(&one.why),
        ]);
    }
    table
}
