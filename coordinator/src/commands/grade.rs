//! `grade`: a student's repair through three gates. The first two look at the file and at what its workers count, on
//! any machine; the third measures it between the starter and the reference.

mod effect;
mod fast;
mod hints;
mod task;
mod watch;

use crate::assemble;
use crate::cli::GradeOptions;
use crate::exit::{CommandError, Ending};
use crate::leftovers;
use crate::machine::Machine;
use crate::report::data;
use crate::report::grade as screen;
use crate::report::style::{ColourChoice, Style};
use crate::report::window;
use crate::signals::Signals;
use effect::Measured;
use record::{Gate, GateOutcome, GateState, Grade, GradeVerdict, SCHEMA_VERSION};
use std::io::Write;
use std::time::{Instant, SystemTime};
use task::Task;

pub(crate) fn grade(options: &GradeOptions, colour: ColourChoice) -> Result<Ending, CommandError> {
    let style = Style::for_stdout(colour, window::columns(std::io::stdout()));
    let machine = Machine::read().map_err(CommandError::Failed)?;
    leftovers::sweep();
    if options.watch {
        return watch::watch(options, &machine, &style);
    }
    let mut grade = grade_once(options, &machine, Depth::Measure)?;
    grade.hint = hints::due(options, &grade, !options.json);
    show(&grade, options, &style)?;
    Ok(ending(grade.verdict))
}

/// How far a grading goes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Depth {
    /// The two gates that measure nothing.
    Look,
    /// All three.
    Measure,
}

/// Grades the file as it stands; the hint is the caller's.
fn grade_once(options: &GradeOptions, machine: &Machine, depth: Depth) -> Result<Grade, CommandError> {
    let started = (SystemTime::now(), Instant::now());
    let task = Task::load(options)?;
    let seed = options.seed.unwrap_or_else(|| u64::from(rand::random::<u32>()));
    let signals = Signals::block()?;
    let mut gates = fast::gates(&task, machine, &signals, seed)?;
    let passed = gates.iter().all(|gate| gate.state == GateState::Passes);
    let measured = match passed && depth == Depth::Measure {
        true => effect::measure(&task, options, machine, &signals, seed)?,
        false => Measured::not_reached(),
    };
    gates.push(measured.gate);
    let (verdict, why) = verdict(&gates, depth);
    let text = assemble::sha256;
    let files = task.files.iter().map(|(what, path, content)| record::GradedFile {
        what: (*what).to_owned(),
        path: path.display().to_string(),
        sha256: text(content),
        text: content.clone(),
    });
    Ok(Grade {
        schema_version: SCHEMA_VERSION,
        tool: assemble::tool(),
        command: assemble::typed_command(),
        seed,
        started_utc: humantime::format_rfc3339_seconds(started.0).to_string(),
        duration_s: started.1.elapsed().as_secs_f64(),
        host: machine.record(),
        exercise: task.exercise.title.clone(),
        verdict,
        why,
        hint: None,
        gates,
        effect: measured.effect,
        files: files.collect(),
        method: measured.method,
        arms: measured.arms,
        observations: measured.observations,
        warnings: measured.warnings,
    })
}

/// What the gates add up to. A file that only the gates behind could fail passes where there are none, or nobody asked.
fn verdict(gates: &[GateOutcome], depth: Depth) -> (GradeVerdict, String) {
    let reason = |gate: &GateOutcome| {
        let told = gate.checks.iter().find(|check| check.state == gate.state);
        told.map_or(String::new(), |check| format!("{}: {}", check.what, check.why))
    };
    for (state, verdict) in [
        (GateState::Fails, GradeVerdict::NotYet),
        (GateState::HostUnsuitable, GradeVerdict::HostUnsuitable),
        (GateState::Undecided, GradeVerdict::Inconclusive),
    ] {
        if let Some(gate) = gates.iter().find(|gate| gate.state == state) {
            return (verdict, reason(gate));
        }
    }
    let measured = gates.iter().any(|gate| gate.gate == Gate::Effect && gate.state == GateState::Passes);
    let why = match (measured, depth) {
        (true, _) => "every count is exact, the cause is gone, and it is faster here",
        (false, Depth::Measure) => "every count is exact, and the cause is gone; this exercise measures nothing",
        (false, Depth::Look) => "every count is exact, and the cause is gone; nothing is measured yet",
    };
    (GradeVerdict::Pass, why.to_owned())
}

fn show(grade: &Grade, options: &GradeOptions, style: &Style) -> Result<(), CommandError> {
    let mut out = std::io::stdout().lock();
    match options.json {
        true => data::json(grade)?,
        false => out.write_all(screen::render(grade, style).as_bytes())?,
    }
    out.flush()?;
    Ok(())
}

fn ending(verdict: GradeVerdict) -> Ending {
    match verdict {
        GradeVerdict::Pass => Ending::Done,
        GradeVerdict::NotYet => Ending::ExpectationFails,
        GradeVerdict::Inconclusive => Ending::Inconclusive,
        GradeVerdict::HostUnsuitable => Ending::HostCannot,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::GateCheck;

    fn of(states: [GateState; 3], depth: Depth) -> (GradeVerdict, String) {
        let gates = [Gate::Conservation, Gate::Mechanism, Gate::Effect].into_iter().zip(states);
        let gate = |(gate, state): (Gate, GateState)| GateOutcome {
            gate,
            state,
            checks: vec![GateCheck { what: format!("{gate:?}"), state, why: "seen".into() }],
        };
        verdict(&gates.map(gate).collect::<Vec<_>>(), depth)
    }

    #[test]
    fn the_gates_add_up_to_a_verdict() {
        use GateState::{Fails, HostUnsuitable, NotReached, Passes, Undecided};
        let full = |states| of(states, Depth::Measure).0;
        assert_eq!(full([Passes, Passes, Passes]), GradeVerdict::Pass);
        assert_eq!(full([Passes, Passes, NotReached]), GradeVerdict::Pass, "an exercise without an effect");
        assert_eq!(full([Fails, NotReached, NotReached]), GradeVerdict::NotYet);
        assert_eq!(full([Passes, Passes, Fails]), GradeVerdict::NotYet);
        assert_eq!(full([Passes, Passes, Undecided]), GradeVerdict::Inconclusive);
        assert_eq!(full([HostUnsuitable, NotReached, NotReached]), GradeVerdict::HostUnsuitable);
        assert_eq!(of([Passes, Fails, NotReached], Depth::Look), (GradeVerdict::NotYet, "Mechanism: seen".into()));
        assert!(of([Passes, Passes, NotReached], Depth::Look).1.contains("nothing is measured yet"));
    }

    #[test]
    fn a_machine_that_cannot_say_fails_nobody() {
        assert_eq!(ending(GradeVerdict::Inconclusive), Ending::Inconclusive);
        assert_eq!(ending(GradeVerdict::HostUnsuitable), Ending::HostCannot);
    }
}
