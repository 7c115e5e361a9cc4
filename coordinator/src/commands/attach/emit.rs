//! `--emit-scenario`: what was seen, as a scenario file; run in the lab, and its rates held against those of the targets.

mod accesses;
mod draft;
mod names;
mod offsets;
mod pass;
mod plain;
mod sites;
mod text;
mod trial;
mod users;
mod verbs;

use crate::assemble::typed_command;
use crate::exit::{CommandError, Ending, say};
use crate::machine::Machine;
use crate::report::new_file::NewFile;
use crate::report::text::shown;
use crate::shell;
use crate::signals::Signals;
use draft::{Draft, DraftRole};
use record::{Attach, EmittedRole, EmittedScenario, EmittedState, Interval};
use std::path::Path;
use std::time::SystemTime;
use text::Origin;
use trial::{Lab, Said};

/// Names the file.
pub(super) const OPTION: &str = "--emit-scenario";

/// How it is to be done.
pub(super) struct Emission<'a> {
    pub(super) file: &'a Path,
    /// Whether the lab runs it.
    pub(super) run: bool,
    pub(super) quiet: bool,
}

/// Makes the scenario, has the lab run it, and adds both to what was seen.
///
/// # Errors
/// [`CommandError`] where the file cannot be written, a repetition failed, or the user interrupted it.
pub(super) fn emit(seen: &mut Attach, emission: &Emission<'_>, signals: &Signals) -> Result<(), CommandError> {
    let machine = Machine::read().map_err(CommandError::Failed)?;
    let mut draft = Draft::of(seen);
    let file = emission.file.display().to_string();
    if draft.roles.is_empty() {
        let why = "nobody was seen to do anything with it that a role could do, so there is no scenario; watch longer \
                   (--for 20s), or while it is in use";
        seen.scenario = Some(scenario(&file, &draft, EmittedState::Unresolved, Some(why.to_owned()), &no_rate));
        return Ok(());
    }
    let when = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let command = typed_command();
    let cpus = machine.topology.cpus.iter().filter(|cpu| cpu.usable).count();
    let origin = Origin { seen: &*seen, command: &command, when: &when, cpus };
    let mut out = NewFile::create(OPTION, emission.file)?;
    out.write(&text::text(&draft, &origin))?;
    let said = match emission.run {
        true => Some(tried(&mut draft, &origin, &machine, signals, emission, &file)?),
        false => None,
    };
    out.write(&text::text(&draft, &origin))?;
    let made = match said {
        None => scenario(&file, &draft, EmittedState::NotRun, Some("it was not to be run".to_owned()), &no_rate),
        Some(Said::Failed(why)) => scenario(&file, &draft, EmittedState::Unresolved, Some(why), &no_rate),
        Some(Said::Cannot(why)) => scenario(&file, &draft, EmittedState::HostCannot, Some(why), &no_rate),
        Some(Said::Took(took)) => {
            let rate = |role: &DraftRole| took.passes.get(&role.name).map(|ns| inverted(*ns));
            judged(scenario(&file, &draft, EmittedState::Unresolved, None, &rate))
        }
    };
    seen.scenario = Some(made);
    Ok(())
}

/// How the command ends with it.
pub(super) fn ending(made: &EmittedScenario) -> Ending {
    match made.state {
        EmittedState::NotRun | EmittedState::Reproduced => Ending::Done,
        EmittedState::NotReproduced => Ending::ExpectationFails,
        EmittedState::Unresolved => Ending::Inconclusive,
        EmittedState::HostCannot => Ending::HostCannot,
    }
}

fn tried(
    draft: &mut Draft,
    origin: &Origin<'_>,
    machine: &Machine,
    signals: &Signals,
    emission: &Emission<'_>,
    file: &str,
) -> Result<Said, CommandError> {
    if !emission.quiet {
        let workers: u32 = draft.roles.iter().map(DraftRole::workers).sum();
        say(&format!(
            "attach: {} is written; the lab runs it now with {workers} workers of its own, beside what runs here (--no-run \
             leaves that out)",
            shown(emission.file)
        ));
    }
    let seed = u64::from(rand::random::<u32>());
    Lab { machine, signals, file, seed, quiet: emission.quiet }.run(draft, origin)
}

/// Passes a second of a worker in the lab.
type RateOf<'a> = dyn Fn(&DraftRole) -> Option<Interval> + 'a;

fn no_rate(_: &DraftRole) -> Option<Interval> {
    None
}

fn scenario(file: &str, draft: &Draft, state: EmittedState, why: Option<String>, rate: &RateOf<'_>) -> EmittedScenario {
    let role = |role: &DraftRole| {
        let (observed, lab) = (role.pass.observed, rate(role));
        let ratio = observed.zip(lab).map(|(observed, lab)| over(lab, observed));
        EmittedRole {
            role: role.name.clone(),
            pids: role.pids(),
            tids: draft.tids(role),
            workers: role.workers(),
            work_ns: role.work_ns,
            fitted: trial::is_fitted(role),
            observed_per_second: observed,
            lab_per_second: lab,
            ratio,
            reproduced: ratio.and_then(reproduced),
        }
    };
    let roles: Vec<EmittedRole> = draft.roles.iter().map(role).collect();
    let next = if roles.is_empty() { Vec::new() } else { next(file) };
    EmittedScenario { file: file.to_owned(), roles, differs: draft.differs.clone(), state, why, next }
}

/// A ratio whose ends lie further apart than by this factor and on both sides of 1 tells nothing.
const WIDE: f64 = 3.0;

/// Whether the lab has the rate; `None` where the intervals are too wide to tell.
fn reproduced(ratio: Interval) -> Option<bool> {
    let holds = (ratio.low..=ratio.high).contains(&1.0);
    (!holds || ratio.high <= ratio.low * WIDE).then_some(holds)
}

/// What goes on from here: advice, and once that is deployed, the same again.
fn next(file: &str) -> Vec<String> {
    let named = shell::quoted(file);
    let after = shell::quoted(&match file.strip_suffix(".toml") {
        Some(stem) => format!("{stem}-after.toml"),
        None => format!("{file}-after"),
    });
    vec![
        format!("coordinator advise {named}"),
        format!("coordinator run {named}"),
        format!("coordinator attach … --emit-scenario {after}"),
        format!("coordinator run {after}"),
        "coordinator compare BEFORE AFTER".to_owned(),
    ]
}

/// By its roles: what the lab has of the rates that are known.
fn judged(made: EmittedScenario) -> EmittedScenario {
    let roles = || made.roles.iter();
    let known: Vec<bool> = roles().filter_map(|role| role.reproduced).collect();
    let unresolved = |why: &str| (EmittedState::Unresolved, Some(why.to_owned()));
    let (state, why) = match () {
        () if known.contains(&false) => (EmittedState::NotReproduced, None),
        () if roles().any(|role| role.observed_per_second.is_some() && role.lab_per_second.is_none()) => unresolved(
            "the lab's own workers were disturbed too often to tell their rates; run it where nothing else runs",
        ),
        () if roles().any(|role| role.ratio.is_some() && role.reproduced.is_none()) => unresolved(
            "the rates vary so much that they meet whatever the lab does: the targets did not run all of the time, or not \
             beside each other; watch longer, or when the machine has less to do",
        ),
        () if known.is_empty() => {
            unresolved("no word of it counts what is done, so that the targets' own rate is not known")
        }
        () => (EmittedState::Reproduced, None),
    };
    EmittedScenario { state, why, ..made }
}

/// From nanoseconds a pass to passes a second.
fn inverted(ns: Interval) -> Interval {
    Interval { median: 1e9 / ns.median, low: 1e9 / ns.high, high: 1e9 / ns.low }
}

/// One rate over another, as far as both reach.
fn over(one: Interval, other: Interval) -> Interval {
    Interval { median: one.median / other.median, low: one.low / other.high, high: one.high / other.low }
}

#[cfg(test)]
mod tests;
