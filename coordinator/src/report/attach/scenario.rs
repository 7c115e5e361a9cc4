//! What the lab says to the scenario that was made: its rates beside those that were observed.

use crate::report::figures::{Figure, plain};
use crate::report::page::Page;
use crate::report::style::Tone;
use crate::report::table::{Cell, Column, Grid, Notes, Row};
use record::{Attach, EmittedRole, EmittedScenario, EmittedState, Interval};

/// What stands for a figure that is not known.
const NONE: &str = "–";

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

/// `goes 1.3 times as fast`, `goes 0.6 times as fast`.
fn times(ratio: Interval) -> String {
    format!("goes {}\u{a0}times as fast", plain(ratio.median))
}

fn roles(page: &mut Page, made: &EmittedScenario) {
    let columns = vec![
        Column::words("role"),
        Column::figures("workers", "workers"),
        Column::figures("work", "work ns"),
        Column::figures("targets", "targets /s"),
        Column::figures("lab", "lab /s"),
        Column::figures("ratio", "lab/targets"),
        Column::words(""),
    ];
    page.grid(&Grid { columns, rows: made.roles.iter().map(row).collect() }, &Notes::default());
    page.legend(
        "targets: passes a second that each made, of its CPU time, or of all time where it takes a lock; the range holds 19 \
         of 20 pieces of 20 ms. lab: a worker's, with its 95 % interval. reproduced: the ranges meet.",
    );
}

fn row(role: &EmittedRole) -> Row {
    let word = match role.reproduced {
        Some(true) => "reproduced",
        Some(false) => "not reproduced",
        None => NONE,
    };
    Row::new(vec![
        Cell::text(role.role.clone()),
        Cell::text(role.workers.to_string()),
        Cell::text(role.work_ns.to_string()),
        Cell::text(spread(role.observed_per_second)),
        Cell::text(spread(role.lab_per_second)),
        Cell::text(role.ratio.map_or_else(|| NONE.to_owned(), |ratio| Figure::new(&ratio).line())),
        Cell::text(word.to_owned()),
    ])
}

/// A rate with its range, in millions or thousands where it is so large.
fn spread(of: Option<Interval>) -> String {
    let Some(of) = of else { return NONE.to_owned() };
    let (by, unit) = match of.median {
        large if large >= 1e6 => (1e-6, "\u{a0}M"),
        middle if middle >= 1e3 => (1e-3, "\u{a0}k"),
        _ => return Figure::new(&of).line(),
    };
    let scaled = Interval { median: of.median * by, low: of.low * by, high: of.high * by };
    format!("{}{unit}", Figure::new(&scaled).line())
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
