//! What the lab says to the scenario that was made: its rates beside those that were observed.

use crate::report::figures::{NONE, count, plain};
use crate::report::page::Page;
use crate::report::style::Tone;
use crate::report::table::{Cell, Column, Grid, Notes, Row};
use record::{Attach, EmittedRole, EmittedScenario, EmittedState, Interval};

pub(super) fn write(page: &mut Page, seen: &Attach) {
    let Some(made) = &seen.scenario else { return };
    page.heading(&format!("As a scenario: {}", made.file));
    verdict(page, made);
    if !made.roles.is_empty() {
        roles(page, made);
    }
    for one in &made.differs {
        page.item(0, "- ", one);
    }
    next(page, made);
}

/// The sentence that says what became of it.
fn verdict(page: &mut Page, made: &EmittedScenario) {
    let why = made.why.as_deref().unwrap_or_default();
    match made.state {
        EmittedState::NotRun => page.verdict(Tone::Caution, "not run", why),
        EmittedState::HostCannot => page.verdict(Tone::Caution, "this host cannot run it", why),
        EmittedState::Unresolved => page.verdict(Tone::Caution, "unresolved", why),
        EmittedState::Reproduced => page.verdict(
            Tone::Good,
            "reproduced",
            &format!(
                "the lab has the targets' rate within its interval, for each role of which it is known{}",
                fitted(made)
            ),
        ),
        EmittedState::NotReproduced => {
            let off = made.roles.iter().filter(|role| role.reproduced == Some(false));
            let off: Vec<String> =
                off.filter_map(|role| Some(format!("{} {}", role.role, times(role.ratio?)))).collect();
            page.verdict(
                Tone::Bad,
                "not reproduced",
                &format!("in the lab {} as in the targets. {CANNOT_KNOW}", off.join(", ")),
            );
        }
    }
}

const CANNOT_KNOW: &str = "A scenario cannot know what else they do between the accesses, what of it waits for the lines \
                           and what goes on beside that, which CPUs they were on and how far apart these are, and what they \
                           slept for.";

fn fitted(made: &EmittedScenario) -> &'static str {
    match made.roles.iter().any(|role| role.fitted && role.work_ns > 0) {
        true => {
            ". The work between the accesses was chosen so that it does: this shows that the accesses fit into a pass, and \
             not that nothing else does"
        }
        false => "",
    }
}

/// `goes 1.3 times as fast`.
fn times(ratio: Interval) -> String {
    format!("goes {}\u{a0}times as fast", plain(ratio.median))
}

fn roles(page: &mut Page, made: &EmittedScenario) {
    let columns = vec![
        Column::words("role"),
        Column::figures("workers", "workers"),
        Column::figures("work", "work\nns"),
        Column::figures("targets", "targets\nns/pass"),
        Column::figures("lab", "lab\nns/pass"),
        Column::figures("lab over targets", "lab as\nfast"),
        Column::words("verdict"),
    ];
    page.grid(&Grid { columns, rows: made.roles.iter().map(row).collect() }, &Notes::default());
    page.legend(
        "targets: a pass of each, in its own CPU time, or in all time where it takes a lock; the range holds 19 of 20 pieces \
         of 20 ms. lab: a worker's, with its 95 % interval. reproduced: the ranges meet.",
    );
}

fn row(role: &EmittedRole) -> Row {
    let word = match (role.reproduced, role.ratio) {
        (Some(true), _) => "reproduced",
        (Some(false), _) => "other",
        (None, Some(_)) => "too wide",
        (None, None) => NONE,
    };
    let figure = |of: Option<Interval>| of.map_or_else(|| Cell::text(NONE), |of| Cell::interval(&of));
    Row::new(vec![
        Cell::text(&role.role),
        Cell::text(count(u64::from(role.workers))),
        Cell::text(count(role.work_ns)),
        figure(role.observed_per_second.map(ns)),
        figure(role.lab_per_second.map(ns)),
        figure(role.ratio),
        Cell::text(word),
    ])
}

/// From passes a second to nanoseconds a pass.
fn ns(rate: Interval) -> Interval {
    Interval { median: 1e9 / rate.median, low: 1e9 / rate.high, high: 1e9 / rate.low }
}

fn next(page: &mut Page, made: &EmittedScenario) {
    if made.next.is_empty() {
        return;
    }
    let [advise, run, again, run_again, compare] = &made.next[..] else { return };
    page.item(0, "next: ", &format!("{advise}   (what each cure would gain)"));
    page.item(0, "then, once a cure is deployed: ", again);
    page.item(0, "to hold both against each other: ", &format!("{run}; {run_again}; {compare}"));
}
