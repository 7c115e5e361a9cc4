//! The scenario under the command line's flags, which are checked like the file's own values.

use crate::cli::{RunOptions, ShapeOptions};
use crate::exit::CommandError;
use crate::machine::Machine;
use crate::needs;
use counters::Selection;
use host::Root;
use plan::{BindError, Bound, Plan, Program};
use scenario::Loaded;
use std::path::Path;

/// Loads the scenario with the overrides of a run.
pub(crate) fn load(options: &RunOptions) -> Result<Loaded, CommandError> {
    let mut overrides = length(options);
    overrides.extend(shape(&options.shape));
    Ok(scenario::load_with(&options.scenario, &overrides)?)
}

/// Loads a scenario with those that decide on CPUs and counters.
pub(crate) fn load_shape(scenario: &Path, options: &ShapeOptions) -> Result<Loaded, CommandError> {
    Ok(scenario::load_with(scenario, &shape(options))?)
}

/// Loads a scenario with the CPUs of its headline role, where some are given.
pub(crate) fn load_on(scenario: &Path, cpus: Option<&str>) -> Result<Loaded, CommandError> {
    load_shape(scenario, &ShapeOptions { cpus: cpus.map(str::to_owned), ..ShapeOptions::default() })
}

/// Path and TOML value of each flag that was given on how often and how long is measured.
fn length(options: &RunOptions) -> Vec<(String, String)> {
    let repetitions = |text: &String| or_quoted(text, text.parse::<u32>().is_ok().then(|| text.clone()));
    given([
        ("measure.repetitions", options.repetitions.as_ref().map(repetitions)),
        ("measure.window", options.window.as_ref().map(|text| or_quoted(text, None))),
    ])
}

/// The same on where what is run and counted; `--only` is no value of the scenario's.
fn shape(options: &ShapeOptions) -> Vec<(String, String)> {
    let cpus = |text: &String| {
        let is_list = text.starts_with(|c: char| c.is_ascii_digit());
        or_quoted(text, is_list.then(|| format!("[{text}]")))
    };
    given([
        ("workers", options.workers.map(|workers| workers.to_string())),
        ("cpus", options.cpus.as_ref().map(cpus)),
        ("measure.events", events(&options.events)),
    ])
}

fn given<const N: usize>(flags: [(&str, Option<String>); N]) -> Vec<(String, String)> {
    flags.into_iter().filter_map(|(path, value)| Some((path.to_owned(), value?))).collect()
}

fn or_quoted(text: &str, bare: Option<String>) -> String {
    bare.unwrap_or_else(|| format!("{text:?}"))
}

/// One text as it is, several as a list.
fn events(lists: &[String]) -> Option<String> {
    match lists {
        [] => None,
        [only] => Some(format!("{only:?}")),
        several => Some(format!("{several:?}")),
    }
}

/// `--only` is the command line's, everything else the file's. Where CPUs are refused, who limits them is told.
pub(crate) fn usage_or_refusal(loaded: &Loaded, mut error: BindError) -> CommandError {
    if error.path.rsplit('.').next() == Some("cpus") {
        error.cure = format!("{}; for this process, {}", error.cure, Machine::cpu_limits());
    }
    refused_elsewhere(loaded, &error)
}

/// The same on a machine that is not this one: nobody limits its CPUs.
pub(crate) fn refused_elsewhere(loaded: &Loaded, error: &BindError) -> CommandError {
    if error.path == "variant" {
        return CommandError::Usage(format!("--only: {}; {}", error.message, error.cure));
    }
    loaded.source.refuse(error).into()
}

/// What is counted on each CPU that some worker runs on; where some arm has steps on regions also what the kernel did
/// for them, with its stacks where `stacks`.
///
/// # Errors
/// An event of the scenario's or the command line's that means nothing here, shown where it stands.
pub(crate) fn selection(loaded: &Loaded, plan: &Plan, bound: &Bound, stacks: bool) -> Result<Selection, CommandError> {
    let root = Root::system();
    let has_steps = needs::programs(bound).any(Program::has_memory_steps);
    if stacks && !has_steps {
        return Err(CommandError::Usage(
            "--stacks: no arm of this scenario gives memory back, so there is no stack to keep: leave it out, or run a \
             scenario with steps on regions, such as scenarios/tlb_shootdown.toml"
                .to_owned(),
        ));
    }
    let chosen = Selection::choose(&root, &needs::cpus(bound), &plan.measure.events).map_err(|error| {
        let path = format!("measure.events.{}", error.index);
        CommandError::from(loaded.source.refuse(&BindError { path, message: error.what, cure: error.cure }))
    })?;
    Ok(if has_steps { chosen.with_memory(&root, stacks) } else { chosen })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    fn of(arguments: &[&str]) -> Vec<(String, String)> {
        let line = ["coordinator", "run", "case.toml"].iter().chain(arguments);
        let Command::Run(options) = Cli::parse_from(line).command else { unreachable!() };
        length(&options).into_iter().chain(shape(&options.shape)).collect()
    }

    #[test]
    fn flags_become_values_of_the_scenario() {
        let pair = |path: &str, value: &str| (path.to_owned(), value.to_owned());
        assert_eq!(of(&[]), []);
        assert_eq!(of(&["--repetitions", "5"]), [pair("measure.repetitions", "5")]);
        assert_eq!(of(&["--repetitions", "auto"]), [pair("measure.repetitions", "\"auto\"")]);
        assert_eq!(of(&["--cpus", "0,1", "--workers", "2"]), [pair("workers", "2"), pair("cpus", "[0,1]")]);
        assert_eq!(of(&["--cpus", "spread"]), [pair("cpus", "\"spread\"")]);
        assert_eq!(of(&["--window", "50ms"]), [pair("measure.window", "\"50ms\"")]);
        assert_eq!(of(&["--events", "r1,cs"]), [pair("measure.events", "\"r1,cs\"")]);
        assert_eq!(of(&["--events", "r1", "--events", "cs"]), [pair("measure.events", "[\"r1\", \"cs\"]")]);
    }
}
