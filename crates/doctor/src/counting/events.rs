//! Which of the lab's counters count here.

use super::asked::{Answers, Kind};
use crate::{Finding, Spoils};
use host::Root;
use plan::CountedBy::{self, Kernel, Processor};
use record::{CountedEvent, Reading};
use std::collections::BTreeMap;

/// Names that fit into one line of the screen beside the figures; the sentence behind it has all.
const NAMED: usize = 2;

/// What is lost where no processor counts, whatever the reason.
const WITHOUT: &str = "cache misses cannot be counted; times and verdicts do not need it";

/// The counters of one sort on one kind of core.
struct Tally<'a> {
    cpus: &'a str,
    counted: Vec<(&'a CountedEvent, &'a Reading)>,
    not: Vec<(&'a str, &'a Reading)>,
}

impl Tally<'_> {
    fn total(&self) -> usize {
        self.counted.len() + self.not.len()
    }
}

fn answers(kinds: &[Kind]) -> impl Iterator<Item = (&Kind, &Answers)> {
    kinds.iter().filter_map(|kind| Some((kind, kind.answers.as_ref().ok()?)))
}

fn tallies<'a>(kinds: &'a [Kind], counted_by: CountedBy) -> Vec<Tally<'a>> {
    let of = |(kind, answers): (&'a Kind, &'a Answers)| {
        let mut tally = Tally { cpus: &kind.cpus, counted: Vec::new(), not: Vec::new() };
        for event in kind.events.iter().filter(|event| event.counted_by == counted_by) {
            match answers.readings.get(&event.name) {
                Some(reading) if reading.value().is_some() => tally.counted.push((event, reading)),
                Some(reading) => tally.not.push((&event.name, reading)),
                None => {}
            }
        }
        tally
    };
    answers(kinds).map(of).filter(|tally| tally.total() > 0).collect()
}

/// Whether this process may not count what somebody could.
fn may_not(tally: &Tally<'_>) -> bool {
    tally.not.iter().any(|(_, reading)| matches!(reading, Reading::Denied { .. }))
}

/// Whether anything was counted that the processor counts.
fn counts(kinds: &[Kind]) -> bool {
    tallies(kinds, Processor).iter().any(|tally| !tally.counted.is_empty())
}

/// Whether perf let this process count anything at all; `None` where it was not tried.
pub(super) fn perf_counts(kinds: &[Kind]) -> Option<bool> {
    let mut tallies = [Processor, Kernel].into_iter().flat_map(|by| tallies(kinds, by)).peekable();
    tallies.peek()?;
    Some(tallies.any(|tally| !tally.counted.is_empty()))
}

/// The names of the cores' counting units; none where the machine has no PMU.
pub(super) fn core_units(root: &Root) -> Vec<String> {
    host::core_pmus(root).into_iter().map(|unit| unit.name).collect()
}

/// The hardware that counts.
pub(super) fn pmu(root: &Root, kinds: &[Kind]) -> Finding {
    let names = core_units(root).join(", ");
    let why = "the processor's counters show why a layout is slow, beside the times that show that it is";
    match (counts(kinds), names.is_empty()) {
        (true, false) => Finding::ok("pmu", format!("{names}, and counts"), why),
        (true, true) => Finding::ok("pmu", "counts, though /sys names none", why),
        (false, false) if tallies(kinds, Processor).iter().any(may_not) => {
            Finding::ok("pmu", format!("{names}, closed to this process"), why)
        }
        (false, false) => {
            Finding::warn("pmu", format!("{names}, but nothing counted"), WITHOUT).spoiling(Spoils::HardwareCounts)
        }
        (false, true) => Finding::missing("pmu", absent(root), WITHOUT).spoiling(Spoils::HardwareCounts),
    }
}

fn absent(root: &Root) -> String {
    match host::hypervisor(root) {
        None => "none: cache misses cannot be counted".to_owned(),
        Some(hypervisor) => format!("none, {}: no cache misses", hypervisor.passes_no_pmu()),
    }
}

/// The processor's events in one line.
pub(super) fn hardware_events(root: &Root, kinds: &[Kind]) -> Finding {
    let why = "what the processor counted tells the cause of a time";
    let found = summary("hardware_events", kinds, Processor, why);
    let refused = tallies(kinds, Processor).iter().any(may_not);
    match (counts(kinds), core_units(root).is_empty()) {
        (true, _) => found,
        (false, false) => found.spoiling(Spoils::HardwareCounts),
        // The check of the PMU spoils what this one would, and one reason for all is enough.
        (false, true) if !refused && found.check.seen.starts_with("none") => Finding::missing(
            "hardware_events",
            found.check.seen,
            "what they would tell of a time's cause, nobody counts without a PMU",
        ),
        (false, true) => found,
    }
}

/// The kernel's events in one line.
pub(super) fn kernel_events(kinds: &[Kind]) -> Finding {
    let why = "context switches, faults and the kernel's other counts tell a slow layout from a disturbed worker";
    summary("kernel_events", kinds, Kernel, why)
}

/// Missing where nothing counts or a kind of core lacks some; a warning where this process or the moment is the cause.
fn summary(name: &str, kinds: &[Kind], counted_by: CountedBy, why: &str) -> Finding {
    let tallies = tallies(kinds, counted_by);
    if tallies.is_empty() {
        let untried = kinds.iter().find_map(|kind| kind.answers.as_ref().err());
        let reason = untried.map_or("no CPU is in question", String::as_str);
        return Finding::missing(name, "not tried", format!("{why}; {reason}"));
    }
    let refused = || tallies.iter().flat_map(|tally| &tally.not);
    let passing = |reading: &Reading| matches!(reading, Reading::Denied { .. } | Reading::NotScheduled);
    let seen = tallies.iter().map(|tally| seen(tally, tallies.len() > 1)).collect::<Vec<_>>().join("; ");
    if refused().next().is_none() {
        return Finding::ok(name, seen, why);
    }
    let why = format!("{why}; {}", reasons(&tallies));
    let none = tallies.iter().all(|tally| tally.counted.is_empty());
    let found = if !none && refused().any(|(_, reading)| passing(reading)) {
        Finding::warn(name, seen, why)
    } else {
        Finding::missing(name, seen, why)
    };
    match refused().find_map(|(_, reading)| reading.cure()) {
        Some(cure) => found.cured_by(cure),
        None => found,
    }
}

fn seen(tally: &Tally<'_>, one_of_several: bool) -> String {
    let (counted, total) = (tally.counted.len(), tally.total());
    let share = if counted == 0 { format!("none of {total}") } else { format!("{counted} of {total}") };
    if one_of_several {
        return format!("CPUs {}: {share}", tally.cpus);
    }
    if counted == 0 || tally.not.is_empty() {
        return share;
    }
    let names: Vec<&str> = tally.not.iter().take(NAMED).map(|(name, _)| *name).collect();
    let more = tally.not.len() - names.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{share}; not: {}{more}", names.join(", "))
}

/// Each reason with the counters that it keeps from counting: `llc_loads, llc_load_misses: this processor's PMU has…`.
fn reasons(tallies: &[Tally<'_>]) -> String {
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, reading) in tallies.iter().flat_map(|tally| &tally.not) {
        let names = by_reason.entry(reading.why().unwrap_or_default()).or_default();
        if !names.contains(name) {
            names.push(name);
        }
    }
    let all = by_reason.len() == 1 && tallies.iter().all(|tally| tally.counted.is_empty());
    let written = |(reason, names): (&str, Vec<&str>)| {
        if all { reason.to_owned() } else { format!("{}: {reason}", names.join(", ")) }
    };
    by_reason.into_iter().map(written).collect::<Vec<_>>().join("; ")
}

/// A line for each event that the processor counts, with what it counts on this processor.
pub(super) fn each_event(kinds: &[Kind]) -> Vec<Finding> {
    let mut by_name: Vec<(&str, Vec<(&str, &CountedEvent)>)> = Vec::new();
    for tally in &tallies(kinds, Processor) {
        for (event, _) in &tally.counted {
            match by_name.iter_mut().find(|(name, _)| *name == event.name) {
                Some((_, events)) => events.push((tally.cpus, event)),
                None => by_name.push((&event.name, vec![(tally.cpus, event)])),
            }
        }
    }
    let of = |(name, events): (&str, Vec<(&str, &CountedEvent)>)| {
        let same =
            events.iter().all(|(_, event)| (&event.shown, &event.counts) == (&events[0].1.shown, &events[0].1.counts));
        let per_kind = |text: fn(&CountedEvent) -> &str| match same {
            true => text(events[0].1).to_owned(),
            false => {
                let written = events.iter().map(|(cpus, event)| format!("CPUs {cpus}: {}", text(event)));
                written.collect::<Vec<_>>().join("; ")
            }
        };
        Finding::ok(&format!("event_{name}"), per_kind(|event| &event.shown), per_kind(|event| &event.counts))
    };
    by_name.into_iter().map(of).collect()
}

/// Whether the processor's events have to take turns; no check where it counts none.
pub(super) fn counter_groups(kinds: &[Kind]) -> Option<Finding> {
    let groups = answers(kinds).map(|(_, answers)| answers.hardware_groups).max().filter(|groups| *groups > 0)?;
    let readings = || tallies(kinds, Processor).into_iter().flat_map(|tally| tally.counted);
    let ratio = |reading: &Reading| match reading {
        Reading::Scaled { ratio, .. } => *ratio,
        _ => 1.0,
    };
    let least = readings().map(|(_, reading)| ratio(reading)).fold(1.0, f64::min);
    let why = "groups that take turns are counted for a share of the window and scaled: right for a steady loop, \
               doubtful for one that changes";
    let seen = match (groups, least < 1.0) {
        (1, false) => "1 group, counted all the time".to_owned(),
        (1, true) => format!("1 group, counted for {:.0} % of the time", least * 100.0),
        (_, false) => format!("{groups} groups"),
        (_, true) => format!("{groups} groups take turns, each from {:.0} % of the time", least * 100.0),
    };
    let never_ran = |tally: &Tally<'_>| tally.not.iter().any(|(_, reading)| **reading == Reading::NotScheduled);
    let never = tallies(kinds, Processor).iter().any(never_ran);
    Some(if never || groups == 1 && least < 1.0 {
        Finding::warn("counter_groups", seen, why).cured_by(Reading::NotScheduled.cure().unwrap_or_default())
    } else {
        Finding::ok("counter_groups", seen, why)
    })
}

#[cfg(test)]
pub(super) use tests::test_kind;

#[cfg(test)]
mod tests;
