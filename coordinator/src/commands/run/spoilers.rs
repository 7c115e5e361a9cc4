//! What on this machine spoils the run that is about to begin, told before it begins.

use super::say;
use crate::cli::RunOptions;
use crate::machine::Machine;
use crate::needs;
use crate::report::doctor as report;
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

/// The command that tells more about the same CPUs.
fn command(options: &RunOptions) -> String {
    let listed = options.cpus.as_ref().filter(|cpus| host::parse_cpu_list(cpus).is_some());
    let cpus = listed.map_or(String::new(), |cpus| format!("--cpus {cpus} "));
    format!("coordinator doctor {cpus}{}", options.scenario.display())
}
