//! The two gates that measure no time: they grade on any machine, and fast.

use super::task::{Entry, Task};
use crate::exit::CommandError;
use crate::machine::Machine;
use crate::overrides;
use crate::repetition::{self, RepetitionError};
use crate::signals::Signals;
use plan::Program;
use record::{Gate, GateCheck, GateOutcome, GateState};

/// Conservation and mechanism, in order.
///
/// # Errors
/// [`CommandError`] where a file cannot be bound, or the run that counts was interrupted or could not begin.
pub(super) fn gates(
    task: &Task,
    machine: &Machine,
    signals: &Signals,
    seed: u64,
) -> Result<Vec<GateOutcome>, CommandError> {
    let starter = bound(task, &task.starter, machine, seed)?;
    let yours = bound(task, &task.yours, machine, seed)?;
    let (starter, yours) = match (starter, yours) {
        (Ok(starter), Ok(yours)) => (starter, yours),
        (Err(why), _) | (_, Err(why)) => {
            let check = GateCheck { what: "it runs here".into(), state: GateState::HostUnsuitable, why };
            return Ok(vec![outcome(Gate::Conservation, vec![check]), not_reached(Gate::Mechanism)]);
        }
    };
    let arms = ((&task.starter.arm, &starter), (&task.yours.arm, &yours));
    let mut checks = exercise::conservation(&task.exercise, arms.0, arms.1);
    if checks.iter().all(|check| check.state == GateState::Passes) {
        checks.extend(counted(task, &yours, machine, signals)?);
    }
    let conservation = outcome(Gate::Conservation, checks);
    let mechanism = match conservation.state {
        GateState::Passes => outcome(Gate::Mechanism, exercise::mechanism(&task.exercise, &task.yours.arm, &yours)),
        _ => not_reached(Gate::Mechanism),
    };
    Ok(vec![conservation, mechanism])
}

/// The entry's Program, with workers on shared CPUs where there are too few: what these gates look at is the same then.
/// The inner error says why this machine cannot run it even so.
fn bound(task: &Task, entry: &Entry, machine: &Machine, seed: u64) -> Result<Result<Program, String>, CommandError> {
    let mut plan = task.plan(&[entry]);
    let mut first = None;
    for oversubscribe in [false, true] {
        plan.arms.iter_mut().for_each(|arm| arm.case.oversubscribe |= oversubscribe);
        let bound = plan::bind(&plan, &machine.topology, seed)
            .map_err(|error| overrides::usage_or_refusal(&entry.loaded, error))?;
        match bound.arms.into_iter().next().map(|arm| arm.program) {
            Some(Ok(program)) => return Ok(Ok(program)),
            Some(Err(not)) => first = first.or(Some(not.why)),
            None => {}
        }
    }
    Ok(Err(first.unwrap_or_else(|| "there is no arm".to_owned())))
}

/// Runs the student's file once and counts.
fn counted(
    task: &Task,
    program: &Program,
    machine: &Machine,
    signals: &Signals,
) -> Result<Vec<GateCheck>, CommandError> {
    if task.exercise.counts.is_empty() {
        return Ok(Vec::new());
    }
    let counts = repetition::inspected(program, machine.rate, signals, |traces, segment| {
        exercise::exact(&task.exercise, program, traces, |offset| segment.integer(offset, 8))
    });
    match counts {
        Ok(checks) => Ok(checks),
        Err(RepetitionError::Interrupted) => {
            signals.take();
            Err(CommandError::Interrupted)
        }
        Err(error @ (RepetitionError::Provision(_) | RepetitionError::Launch(_))) => {
            Err(CommandError::Failed(error.to_string()))
        }
        // What ends a run of the student's file is the file's doing.
        Err(error) => Ok(vec![GateCheck::of("it runs to its end", Err(error.to_string()))]),
    }
}

/// A gate with its checks: as bad as the worst of them.
pub(super) fn outcome(gate: Gate, checks: Vec<GateCheck>) -> GateOutcome {
    let worst = [GateState::HostUnsuitable, GateState::Undecided, GateState::Fails];
    let has = |state: &GateState| checks.iter().any(|check| check.state == *state);
    let state = worst.into_iter().find(has).unwrap_or(GateState::Passes);
    GateOutcome { gate, state, checks }
}

/// A gate that was not come to.
pub(super) fn not_reached(gate: Gate) -> GateOutcome {
    GateOutcome { gate, state: GateState::NotReached, checks: Vec::new() }
}
