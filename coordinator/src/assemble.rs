//! The run's record: what was measured and found, with where it came from.

use crate::campaign::{Measured, RunError};
use crate::machine::Machine;
use crate::shell;
use counters::Selection;
use plan::{Measure, Repetitions};
use record::{Run, SCHEMA_VERSION, ScenarioText, Tool, Warning};
use scenario::Loaded;
use sha2::{Digest, Sha256};
use std::time::{Instant, SystemTime};

/// What a run came from.
pub(crate) struct Origin<'a> {
    pub(crate) loaded: &'a Loaded,
    pub(crate) machine: &'a Machine,
    pub(crate) selection: &'a Selection,
    /// What was found before the first repetition to spoil this run.
    pub(crate) spoilers: Option<Warning>,
    pub(crate) seed: u64,
    /// When it began, by two clocks.
    pub(crate) started: (SystemTime, Instant),
}

/// What decides how the command ends, beside the record.
pub(crate) struct Verdict {
    /// False where noise hid an answer.
    pub(crate) conclusive: bool,
    pub(crate) ended_early: Option<RunError>,
}

pub(crate) fn assemble(origin: Origin<'_>, measured: Measured) -> (Run, Verdict) {
    let Origin { loaded, machine, selection, spoilers, seed, started } = origin;
    let findings = measured.findings;
    let mut method = findings.method;
    (method.blocks, method.extended) = (measured.blocks, measured.extended);
    method.watching_cost = measured.watching_cost;
    let own = [
        measured.ended_early.as_ref().map(ended_early),
        clock_not_invariant(machine.invariant_clock()),
        budget_spent(&loaded.plan.measure, findings.precision_reached),
        spoilers,
    ];
    let run = Run {
        schema_version: SCHEMA_VERSION,
        tool: tool(),
        command: typed_command(),
        seed,
        started_utc: humantime::format_rfc3339_seconds(started.0).to_string(),
        duration_s: started.1.elapsed().as_secs_f64(),
        host: machine.record(),
        scenario: scenario_text(loaded),
        method,
        events: selection.events(),
        arms: findings.arms,
        observations: measured.observations,
        expect: findings.expect,
        predictions: findings.predictions,
        diagnosis: findings.diagnosis,
        warnings: own.into_iter().flatten().chain(findings.warnings).collect(),
        code: None,
    };
    (run, Verdict { conclusive: findings.conclusive, ended_early: measured.ended_early })
}

/// This program.
pub(crate) fn tool() -> Tool {
    Tool { version: env!("CARGO_PKG_VERSION").into(), commit: option_env!("LAB_COMMIT").map(str::to_owned) }
}

/// The scenario as the record has it.
pub(crate) fn scenario_text(loaded: &Loaded) -> ScenarioText {
    let text = &loaded.source.text;
    ScenarioText {
        title: loaded.plan.title.clone(),
        question: loaded.plan.question.clone(),
        path: loaded.source.path.clone(),
        sha256: sha256(text),
        text: text.clone(),
    }
}

/// SHA-256 of a text, hexadecimal.
pub(crate) fn sha256(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn ended_early(error: &RunError) -> Warning {
    Warning {
        id: "ended_early".into(),
        text: format!("the run ended before its time: {error}"),
        advice: "take these figures for what they are, a part, and run again".into(),
    }
}

/// With `repetitions = "auto"`: that time, not the precision asked for, ended the run.
fn budget_spent(measure: &Measure, reached: Option<f64>) -> Option<Warning> {
    let precise = reached.is_some_and(|reached| reached <= measure.precision);
    (measure.repetitions == Repetitions::Auto && !precise).then(|| Warning {
        id: "budget_spent".into(),
        text: match reached {
            Some(reached) => format!(
                "the budget of {} was spent with intervals within {:.2} %, where {:.2} % was asked for",
                measure.budget,
                reached * 100.0,
                measure.precision * 100.0
            ),
            None => format!("the budget of {} was spent before there were intervals", measure.budget),
        },
        advice: "raise `budget`, or ask for less `precision`".into(),
    })
}

/// Every time is a number of ticks at a rate calibrated once: where the rate may change, so do all figures.
fn clock_not_invariant(invariant: Option<bool>) -> Option<Warning> {
    (invariant == Some(false)).then(|| Warning {
        id: "clock_not_invariant".into(),
        text: "the processor does not promise a time-stamp counter of one rate in every power state (`constant_tsc` \
               and `nonstop_tsc` are not both among the flags of /proc/cpuinfo), and all times are read from it"
            .into(),
        advice: "fix the CPU's frequency and keep it out of deep idle states, or measure elsewhere; in a virtual \
                 machine, let the hypervisor pass the flag on (`invtsc`)"
            .into(),
    })
}

/// The command line as a shell would take it again; what is not UTF-8 is shown with U+FFFD in its place.
pub(crate) fn typed_command() -> String {
    let words = std::env::args_os().map(|word| shell::quoted(&word.to_string_lossy()));
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_may_change_its_rate_is_warned_of_and_one_that_says_nothing_is_not() {
        let warning = clock_not_invariant(Some(false)).unwrap();
        assert_eq!(warning.id, "clock_not_invariant");
        assert!(warning.text.contains("nonstop_tsc") && !warning.advice.is_empty());
        assert_eq!((clock_not_invariant(Some(true)), clock_not_invariant(None)), (None, None));
    }
}
