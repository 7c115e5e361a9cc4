//! Counters: what was counted of each variant, and of what was not, why.

use crate::limits::{COLUMNS, POINTS, left_out};
use crate::names::{Arm, Arms};
use crate::table::{Notes, Table, details, prose};
use figures::{percent, plain};
use maud::{Markup, html};
use record::{CounterSummary, Events, Reading, Run};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) fn section(run: &Run, arms: &Arms<'_>) -> Markup {
    let measured = arms.measured();
    let mut roles: Vec<&str> = Vec::new();
    for role in measured.iter().flat_map(|arm| &arm.summary.roles) {
        if !roles.contains(&role.role.as_str()) {
            roles.push(&role.role);
        }
    }
    if roles.is_empty() {
        return html! { p { "No variant has figures, so none has counts." } };
    }
    html! {
        @for (index, role) in roles.iter().enumerate() {
            @if index == 0 { (of_role(run, &measured, role)) }
            @else { details { summary { "Role " (role) } (of_role(run, &measured, role)) } }
        }
        (not_counted(run, &measured))
        (details("What each name counts here, and where that is written down", meanings(run)))
    }
}

/// A row a counter that was counted somewhere, a column a variant.
fn of_role(run: &Run, arms: &[Arm<'_>], role: &str) -> Markup {
    let shown = &arms[..arms.len().min(COLUMNS)];
    let counters = |arm: &Arm<'_>| arm.summary.roles.iter().find(|r| r.role == role).map(|r| r.counters.clone());
    let columns: Vec<BTreeMap<String, CounterSummary>> =
        shown.iter().map(|arm| counters(arm).unwrap_or_default()).collect();
    let counted = |counter: &CounterSummary| counter.measured.reading.value().is_some() || counter.modelled.is_some();
    let names: BTreeSet<&String> =
        columns.iter().flatten().filter(|(_, counter)| counted(counter)).map(|(name, _)| name).collect();
    let mut table = Table::new(format!("Counted of role {role}"), 2, &["counter", "unit"]);
    shown.iter().for_each(|arm| table.head(arm.label()));
    let mut notes = Notes::default();
    for name in names {
        let per_pass = Events(&run.events).by_processor(name);
        let mut row =
            vec![html! { (Events(&run.events).shown(name)) }, html! { (if per_pass { "a pass" } else { "a second" }) }];
        row.extend(columns.iter().map(|column| cell(column.get(name), per_pass, &mut notes)));
        table.row(row);
    }
    if table.is_empty() {
        return html! { p { "Nothing was counted of role " (role) "." } };
    }
    html! { (table) (notes) (left_out(arms.len(), shown.len(), "variants")) }
}

/// A figure, or the number of the reason why there is none. What was modelled stands below and says so.
fn cell(counter: Option<&CounterSummary>, per_pass: bool, notes: &mut Notes) -> Markup {
    let Some(counter) = counter else { return notes.missing("this run has no reading of it".to_owned()) };
    let measured = &counter.measured;
    let figure = if per_pass { measured.per_op } else { measured.per_second };
    let shown = match (&measured.reading, figure) {
        (Reading::Scaled { ratio, .. }, Some(figure)) => {
            let why = format!("on a counter for {} of the window, scaled up to all of it", percent(*ratio));
            notes.marked(&plain(figure), why)
        }
        (_, Some(figure)) => html! { (plain(figure)) },
        (reading, None) => {
            notes.missing(reason(reading).unwrap_or_else(|| "counted, but nothing to divide it by".to_owned()))
        }
    };
    html! {
        (shown)
        @if let Some(modelled) = &counter.modelled { br; span .ends { (plain(modelled.per_op)) " modelled" } }
    }
}

/// What keeps a count away, with the cure.
fn reason(reading: &Reading) -> Option<String> {
    let why = reading.why()?;
    let kind = match reading {
        Reading::Denied { .. } => "not permitted: ",
        Reading::Unsupported { .. } => "this machine cannot count it: ",
        _ => "",
    };
    Some(format!("{kind}{why}{}", reading.cure().map_or(String::new(), |cure| format!("; cure: `{cure}`"))))
}

/// Counters that no variant has a count of, by reason.
fn not_counted(run: &Run, arms: &[Arm<'_>]) -> Markup {
    let all = || arms.iter().flat_map(|arm| &arm.summary.roles).flat_map(|role| &role.counters);
    let known: BTreeSet<&String> =
        all().filter(|(_, c)| c.measured.reading.value().is_some()).map(|(name, _)| name).collect();
    let mut reasons: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, counter) in all().filter(|(name, _)| !known.contains(name)) {
        let why = reason(&counter.measured.reading).unwrap_or_else(|| "no reading".to_owned());
        reasons.entry(why).or_default().insert(Events(&run.events).shown(name));
    }
    html! { @if !reasons.is_empty() {
        h3 { "Not counted" }
        dl { @for (why, names) in &reasons {
            dt { (names.iter().cloned().collect::<Vec<_>>().join(", ")) }
            dd { (prose(why)) }
        } }
    } }
}

fn meanings(run: &Run) -> Markup {
    let mut table = Table::new("Events of this run", 5, &["name", "counts", "event", "CPUs", "source"]);
    for event in run.events.iter().take(POINTS) {
        table.row(vec![
            html! { (event.shown) },
            html! { (event.counts) },
            html! { @if let Some(event) = &event.event { code { (event) } } },
            html! { (event.cpus) },
            html! { (event.source) },
        ]);
    }
    html! { (table) (left_out(run.events.len(), POINTS, "events")) }
}
