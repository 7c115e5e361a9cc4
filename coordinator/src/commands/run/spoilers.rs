//! What on this machine spoils the run that is about to begin, told before it begins.

use crate::cli::{RunOptions, ShapeOptions};
use crate::exit::say;
use crate::machine::Machine;
use crate::needs;
use crate::report::doctor as report;
use crate::shell;
use counters::Selection;
use doctor::{Finding, Patient};
use host::Root;
use plan::{Bound, Plan};
use record::Warning;

/// Examines the CPUs that the run uses; prints one line on standard error where something spoils it, unless `--quiet`,
/// and gives the same as a warning for the record. Watches the CPUs for [`doctor::WATCH`] beforehand: a shorter look
/// would blame whoever was caught.
pub(super) fn look(
    options: &RunOptions,
    plan: &Plan,
    bound: &Bound,
    selection: &Selection,
    machine: &Machine,
) -> Option<Warning> {
    let needs = needs::of(plan, bound, selection);
    let patient = Patient { root: &Root::system(), topology: &machine.topology, cpus: &needs.cpus };
    let themes = doctor::examine(&patient, doctor::WATCH);
    let findings = themes.iter().flat_map(|theme| &theme.findings);
    let spoiling: Vec<&Finding> = findings.filter(|finding| finding.spoils(&needs)).collect();
    let text = report::spoilers(&spoiling)?;
    let command = command(options);
    if !options.quiet {
        say(&report::line(&text, &command));
    }
    Some(Warning { id: "doctor".into(), text, advice: format!("`{command}` says why, and what changes it") })
}

/// The command that tells more about the same run, as a shell takes it.
fn command(options: &RunOptions) -> String {
    let ShapeOptions { workers, cpus, events, only } = &options.shape;
    let mut words = vec!["coordinator".to_owned(), "doctor".to_owned()];
    let mut flag = |name: &str, value: &str| words.extend([name.to_owned(), shell::quoted(value)]);
    workers.iter().for_each(|workers| flag("--workers", &workers.to_string()));
    cpus.iter().for_each(|cpus| flag("--cpus", cpus));
    events.iter().for_each(|events| flag("--events", events));
    only.iter().for_each(|variant| flag("--only", variant));
    words.push(shell::quoted(&options.scenario.to_string_lossy()));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::command;
    use crate::cli::{Cli, Command};
    use clap::Parser;

    #[test]
    fn the_command_asks_about_the_same_run() {
        let of = |line: &[&str]| {
            let Command::Run(options) = Cli::parse_from(["coordinator", "run"].iter().chain(line)).command else {
                unreachable!()
            };
            command(&options)
        };
        assert_eq!(of(&["case.toml", "--window", "1ms"]), "coordinator doctor case.toml");
        let flags =
            ["my case.toml", "--cpus", "1,0", "--workers", "2", "--events", "r1,cs", "--events", "cpu/event=1/u"];
        assert_eq!(
            of(&[&flags[..], &["--only", "packed", "--only", "a;b"]].concat()),
            "coordinator doctor --workers 2 --cpus 1,0 --events r1,cs --events cpu/event=1/u --only packed --only \
             'a;b' 'my case.toml'"
        );
        let line = of(&["case.toml", "--cpus", "spread", "--only", "packed"]);
        assert!(Cli::try_parse_from(line.split(' ')).is_ok(), "doctor takes what it is told to: {line}");
    }
}
