//! The third gate: starter, student's file and reference, and the starter once more, interleaved as arms of one run.

use super::fast::{not_reached, outcome};
use super::task::Task;
use crate::campaign::Campaign;
use crate::cli::GradeOptions;
use crate::exit::CommandError;
use crate::machine::Machine;
use crate::needs;
use crate::overrides;
use crate::pages;
use crate::report::logs::Logs;
use crate::report::write_error::WriteError;
use crate::signals::Signals;
use analysis::EffectQuestion;
use counters::Held;
use exercise::EffectRule;
use host::Root;
use plan::{Bound, Plan, Repetitions};
use record::{ArmSummary, Effect, Gate, GateCheck, GateOutcome, GateState, Method, Observation, Warning};

/// What the gate says, and what it was made of.
pub(super) struct Measured {
    pub(super) gate: GateOutcome,
    pub(super) effect: Option<Effect>,
    pub(super) method: Option<Method>,
    pub(super) arms: Vec<ArmSummary>,
    pub(super) observations: Vec<Observation>,
    pub(super) warnings: Vec<Warning>,
}

impl Measured {
    /// Nothing was measured, since a gate before it does not pass, the exercise has no effect, or nobody asked.
    pub(super) fn not_reached() -> Measured {
        Measured::without(not_reached(Gate::Effect))
    }

    fn without(gate: GateOutcome) -> Measured {
        Measured { gate, effect: None, method: None, arms: vec![], observations: vec![], warnings: vec![] }
    }

    fn cannot(state: GateState, what: &str, why: impl Into<String>) -> Measured {
        let check = GateCheck { what: what.to_owned(), state, why: why.into() };
        Measured::without(outcome(Gate::Effect, vec![check]))
    }
}

/// Measures and judges, where the exercise has an effect, a reference and a place on this host.
///
/// # Errors
/// [`CommandError`] where a file cannot be bound, or the run failed or was interrupted.
pub(super) fn measure(
    task: &Task,
    options: &GradeOptions,
    machine: &Machine,
    signals: &Signals,
    seed: u64,
) -> Result<Measured, CommandError> {
    let Some(rule) = &task.exercise.effect else { return Ok(Measured::not_reached()) };
    let Some(reference) = &task.reference else {
        let why = "the exercise's folder holds no reference.toml; name one with --reference";
        return Ok(Measured::cannot(GateState::Undecided, "there is a reference", why));
    };
    let mut plan = task.plan(&[&task.starter, &task.yours, reference]);
    plan.title.clone_from(&task.exercise.title);
    if let Some(blocks) = options.repetitions {
        plan.measure.repetitions = Repetitions::Fixed(blocks);
    }
    // Each file has been bound by itself before, but for the reference, which is not the student's.
    let mut bound = plan::bind(&plan, &machine.topology, seed)
        .map_err(|error| overrides::usage_or_refusal(&reference.loaded, error))?;
    pages::withdraw_unpaged(&mut bound, &Root::system());
    let unplaced = bound.arms.iter().find_map(|arm| arm.program.as_ref().err());
    if let Some(not) = unplaced {
        return Ok(Measured::cannot(GateState::HostUnsuitable, "this machine can run it", &*not.why));
    }
    run(task, rule, options, (&plan, &bound), machine, signals, seed)
}

fn run(
    task: &Task,
    rule: &EffectRule,
    options: &GradeOptions,
    (plan, bound): (&Plan, &Bound),
    machine: &Machine,
    signals: &Signals,
    seed: u64,
) -> Result<Measured, CommandError> {
    let selection = overrides::selection(&task.starter.loaded, plan, bound, false)?;
    let (orders, events) = (selection.orders(), selection.events());
    let held = Held::open(&orders);
    let folder = std::env::temp_dir();
    let failed = |error: WriteError| CommandError::Failed(error.to_string());
    let mut logs = Logs::create(&folder, false, needs::programs(bound)).map_err(failed)?;
    let campaign = Campaign { plan, bound, machine, orders: &orders, events: &events, signals, seed, hold: None };
    let measured = campaign.whole(None, options.quiet, &mut logs);
    drop(held);
    let mut measured = measured?;
    let question = EffectQuestion {
        metric: &rule.metric,
        of: rule.of.as_deref(),
        arms: ["starter", "yours", "reference"],
        wanted: rule.recovers,
    };
    let seen = &mut measured.observations;
    let effect = analysis::effect(plan, bound, &machine.topology, &events, seen, seed, &question);
    let mut method = measured.findings.method;
    (method.blocks, method.extended) = (measured.blocks, measured.extended);
    method.watching_cost = measured.watching_cost;
    Ok(Measured {
        gate: outcome(Gate::Effect, analysis::judge_effect(&effect)),
        effect: Some(effect),
        method: Some(method),
        arms: measured.findings.arms,
        observations: measured.observations,
        warnings: measured.findings.warnings,
    })
}
