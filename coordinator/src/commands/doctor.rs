//! `doctor`: the patient, what is found on it, and the screen or JSON that says so. It changes nothing.

use crate::cli::{DoctorOptions, ShapeOptions};
use crate::exit::{CommandError, Ending};
use crate::machine::Machine;
use crate::needs;
use crate::overrides;
use crate::report::data;
use crate::report::doctor::{self as screen, Screen};
use crate::report::style::{ColourChoice, Style};
use crate::report::window;
use doctor::{Finding, Needs, Patient, Theme};
use host::Root;
use plan::{CpuId, Topology};
use record::{Check, Doctor, SCHEMA_VERSION};
use std::io::Write;
use std::path::Path;

pub(crate) fn doctor(options: &DoctorOptions, colour: ColourChoice) -> Result<Ending, CommandError> {
    let topology = Machine::topology().map_err(CommandError::Failed)?;
    let subject = subject(options, &topology)?;
    let patient = Patient { root: &Root::system(), topology: &topology, cpus: &subject.cpus };
    let themes = doctor::examine(&patient, doctor::WATCH);
    let mut out = std::io::stdout().lock();
    if options.json {
        let record = record_of(&themes, &subject, options.scenario.as_deref());
        data::json(&record)?;
    } else {
        let style = Style::for_stdout(colour, window::columns(std::io::stdout()));
        let screen = Screen {
            themes: &themes,
            cpus: &subject.cpus,
            chosen_by: subject.chosen_by,
            needs: options.scenario.as_deref().zip(subject.needs.as_ref()),
            verbose: options.verbose,
        };
        out.write_all(screen::render(&screen, &style).as_bytes())?;
    }
    out.flush()?;
    Ok(Ending::Done)
}

/// What `--json` prints.
fn record_of(themes: &[Theme], subject: &Subject, scenario: Option<&Path>) -> Doctor {
    let spoils = |finding: &Finding| subject.needs.as_ref().is_some_and(|needs| finding.spoils(needs));
    let check = |finding: &Finding| Check { spoils: spoils(finding), ..finding.check.clone() };
    Doctor {
        schema_version: SCHEMA_VERSION,
        checks: themes.iter().flat_map(|theme| &theme.findings).map(check).collect(),
        cpus: subject.cpus.iter().map(|cpu| cpu.0).collect(),
        scenario: scenario.map(|file| file.to_string_lossy().into_owned()),
    }
}

/// What is asked about.
struct Subject {
    cpus: Vec<CpuId>,
    /// Why these.
    chosen_by: &'static str,
    /// Those of the scenario, where one is named.
    needs: Option<Needs>,
}

/// The CPUs of the scenario under the flags; without one those given, else all that this process may use.
fn subject(options: &DoctorOptions, topology: &Topology) -> Result<Subject, CommandError> {
    let usable = || topology.cpus.iter().filter(|cpu| cpu.usable).map(|cpu| cpu.id).collect();
    let Some(file) = options.scenario.as_deref() else {
        let (cpus, chosen_by) = match &options.shape.cpus {
            Some(list) => (cpus(list, topology)?, "as asked for"),
            None => (usable(), "all that this process may use"),
        };
        return Ok(Subject { cpus, chosen_by, needs: None });
    };
    let needs = needs_of(file, &options.shape, topology)?;
    let (cpus, chosen_by) = match needs.cpus.is_empty() {
        false => (needs.cpus.clone(), "those of the scenario"),
        true => (usable(), "all that this process may use, since it can place no arm of the scenario"),
    };
    let needs = Some(Needs { cpus: cpus.clone(), ..needs });
    Ok(Subject { cpus, chosen_by, needs })
}

/// What a run with these flags would need.
fn needs_of(file: &Path, shape: &ShapeOptions, topology: &Topology) -> Result<Needs, CommandError> {
    let loaded = overrides::load_shape(file, shape)?;
    let refused = |error: plan::BindError| overrides::usage_or_refusal(&loaded, error);
    let plan = loaded.plan.clone().only(&shape.only).map_err(refused)?;
    let bound = plan::bind(&plan, topology, 0).map_err(refused)?;
    let selection = overrides::selection(&loaded, &plan, &bound, false)?;
    Ok(needs::of(&plan, &bound, &selection))
}

/// A list of CPUs that are online. Whether this process may use them is one of the checks.
fn cpus(list: &str, topology: &Topology) -> Result<Vec<CpuId>, CommandError> {
    let usage = |what: String| CommandError::Usage(format!("--cpus {list}: {what}"));
    let cpus = host::parse_cpu_list(list).filter(|cpus| !cpus.is_empty());
    let cpus = cpus.ok_or_else(|| usage("no list of CPUs such as 0,1 or 0-3".to_owned()))?;
    match cpus.iter().find(|cpu| topology.cpu(CpuId(**cpu)).is_none()) {
        None => Ok(cpus.into_iter().map(CpuId).collect()),
        Some(absent) => {
            let online = host::format_cpu_list(&topology.cpus.iter().map(|cpu| cpu.id.0).collect());
            Err(usage(format!("CPU {absent} is not online on this machine; the CPUs online are {online}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::Cpu;

    #[test]
    fn lists_of_online_cpus_are_taken_and_others_refused_with_what_there_is() {
        let cpu = |id| Cpu { id: CpuId(id), core: id, llc: 0, node: 0, socket: 0, usable: false };
        let topology = Topology { cpus: vec![cpu(0), cpu(1), cpu(3)] };
        assert_eq!(cpus("1,3", &topology).unwrap(), [CpuId(1), CpuId(3)]);
        for (list, part) in [("0-3", "CPU 2 is not online"), ("spread", "0-3"), ("", "no list"), (",", "no list")] {
            let Err(CommandError::Usage(text)) = cpus(list, &topology) else { panic!("{list} is taken") };
            assert!(text.contains(part), "{text}");
        }
    }
}
