//! Counters that were not counted: what keeps them away, and what helps.

use super::warning;
use crate::view::View;
use crate::words::list;
use record::{Observation, Reading, Warning};
use std::collections::{BTreeMap, BTreeSet};

/// Counters that a warning names one by one; of more it says how many.
const MOST_NAMED: usize = 4;

/// Counters in one state for one reason, over all observations.
struct Uncounted<'a> {
    state: &'a str,
    reading: &'a Reading,
    names: Vec<&'a str>,
}

/// What was not counted, in some window or in all: by state and reason, in the order of names.
fn uncounted<'a>(view: &View<'a>) -> Vec<Uncounted<'a>> {
    let mut first: BTreeMap<(&str, &str), &Reading> = BTreeMap::new();
    for (name, reading) in view.observations.iter().flat_map(|o| &o.counters) {
        if reading.value().is_none() {
            first.entry((reading.state(), name)).or_insert(reading);
        }
    }
    let mut found: Vec<Uncounted> = Vec::new();
    for ((state, name), reading) in first {
        match found.iter_mut().find(|one| one.reading == reading) {
            Some(one) => one.names.push(name),
            None => found.push(Uncounted { state, reading, names: vec![name] }),
        }
    }
    found
}

/// What keeps counters away, and what helps: a warning a cause, but one for all that this machine lacks, since no cure
/// tells those causes apart.
pub(super) fn warnings(view: &View) -> Vec<Warning> {
    let mut found = uncounted(view);
    let mut warnings: Vec<Warning> = no_pmu(view, &mut found).into_iter().collect();
    for Uncounted { reading, names, .. } in &found {
        let (id, what) = match reading {
            Reading::Denied { .. } => ("counters_denied", "may not be counted"),
            Reading::NotScheduled => ("counters_not_scheduled", "not counted in some window"),
            Reading::Unsupported { .. } | Reading::Counted { .. } | Reading::Scaled { .. } => continue,
        };
        let (why, cure) = (reading.why().unwrap_or_default(), reading.cure().unwrap_or_default());
        warnings.push(warning(id, format!("{what}: {} ({why})", named(names)), cure));
    }
    warnings.extend(unsupported(view, &found));
    warnings
}

fn unsupported(view: &View, found: &[Uncounted]) -> Option<Warning> {
    let lacking: Vec<&Uncounted> = found.iter().filter(|one| one.state == "unsupported").collect();
    let mut names: Vec<&str> = lacking.iter().flat_map(|one| &one.names).copied().collect();
    names.sort_unstable();
    let why = match &lacking[..] {
        [] => return None,
        [one] => one.reading.why().unwrap_or_default().to_owned(),
        several => format!("for {} reasons, each beside its counter under `counters`", several.len()),
    };
    let text = format!("cannot be counted on this machine: {} ({why})", named(&names));
    let mut others = view.observations.iter().flat_map(|o| &o.counters).filter(|(n, _)| !names.contains(&n.as_str()));
    let advice = match others.next().is_some_and(|(_, first)| first.value().is_some()) {
        true if others.all(|(_, reading)| reading.value().is_some()) => {
            "the others count; docs/counters.md says what each CPU family can count"
        }
        _ => "docs/counters.md says what each CPU family can count, and what else keeps counts away",
    };
    Some(warning("counters_unsupported", text, advice))
}

/// Where no event of the processor could be counted in any window, for want of a PMU: one warning for all of them,
/// which are taken out of `found`. A few may be none of this processor's anyway; where most lack for another reason (a
/// sandbox, a failed read), it is not the PMU that is missing.
fn no_pmu(view: &View, found: &mut Vec<Uncounted>) -> Option<Warning> {
    let processor = |name: &str| view.events.by_processor(name) && plan::event::is_counter(name);
    let all: BTreeSet<&str> =
        view.observations.iter().flat_map(|o| o.counters.keys()).map(String::as_str).filter(|n| processor(n)).collect();
    let missing = |one: &&Uncounted| one.state == "unsupported";
    let unsupported: BTreeSet<&str> =
        found.iter().filter(missing).flat_map(|one| &one.names).copied().filter(|n| processor(n)).collect();
    let elsewhere = |o: &Observation| o.counters.iter().any(|(n, r)| processor(n) && r.state() != "unsupported");
    if all.is_empty() || unsupported != all || view.observations.iter().any(elsewhere) {
        return None;
    }
    let main = found.iter().filter(missing).max_by_key(|one| one.names.iter().filter(|n| processor(n)).count())?;
    if !main.reading.lacks_pmu() {
        return None;
    }
    let why = main.reading.why().unwrap_or_default();
    let text = match all.len() {
        1 => format!("the one event of the processor that was asked for cannot be counted: {why}"),
        n => format!("none of the {n} events of the processor can be counted: {why}"),
    };
    found.iter_mut().filter(|one| one.state == "unsupported").for_each(|one| one.names.retain(|n| !processor(n)));
    found.retain(|one| !one.names.is_empty());
    Some(warning(
        "no_pmu",
        text,
        "times and verdicts do not need them; run on bare metal, or a VM with a virtual PMU, to count",
    ))
}

/// The names, or of many the first and how many more.
fn named(names: &[&str]) -> String {
    match names.len() > MOST_NAMED {
        true => {
            let first: Vec<String> = names[..MOST_NAMED - 1].iter().map(|name| format!("`{name}`")).collect();
            format!("{} and {} more", first.join(", "), names.len() - MOST_NAMED + 1)
        }
        false => list(names),
    }
}
