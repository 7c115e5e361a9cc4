//! What is asked: the layout as it stands, and every other that comes into question.

use crate::cli::{AdviseOptions, ShapeOptions};
use crate::exit::CommandError;
use crate::machine::Machine;
use crate::overrides;
use advise::Candidate;
use plan::{Arm, BindError, Bound, Measure, Plan, Program, Repetitions, Strategy, Topology, WorkerIndex};
use record::LeftOutVariant;
use scenario::Loaded;
use std::collections::BTreeSet;

/// A scenario and its candidates.
pub(crate) struct Question {
    pub(crate) loaded: Loaded,
    /// The variant that stands for the present layout, with its point of the sweep.
    pub(crate) present: String,
    /// The present layout first.
    pub(crate) candidates: Vec<Candidate>,
    /// Each of them bound to this host, in the same order.
    pub(crate) programs: Vec<Result<Program, String>>,
    pub(crate) left_out: Vec<LeftOutVariant>,
}

impl Question {
    /// The roles that leave figures, by name.
    pub(crate) fn roles(&self) -> Vec<&str> {
        let roles = &self.candidates[0].arm.case.roles;
        roles.iter().filter(|role| !role.dies()).map(|role| role.name.as_str()).collect()
    }

    /// A plan that runs these candidates and no baselines.
    pub(crate) fn plan(&self, chosen: &[usize], repetitions: Repetitions) -> Plan {
        let arms = chosen.iter().map(|&index| self.candidates[index].arm.clone()).collect();
        let measure = Measure {
            repetitions,
            baselines: Some(Vec::new()),
            events: Vec::new(),
            ..self.loaded.plan.measure.clone()
        };
        Plan { measure, arms, expects: Vec::new(), ..self.loaded.plan.clone() }
    }

    /// Cache lines that a pass touches, over all roles.
    pub(crate) fn lines(&self, candidate: &Candidate) -> f64 {
        let places = candidate.places();
        let roles = 0..candidate.arm.case.roles.len();
        roles.map(|role| advise::lines_per_op(&candidate.usage, role, &places)).sum()
    }
}

/// Loads the scenario and makes the candidates.
///
/// # Errors
/// [`CommandError`] where the scenario, or a flag, is at fault, or this host can measure none of them.
pub(crate) fn ask(options: &AdviseOptions, topology: &Topology, seed: u64) -> Result<Question, CommandError> {
    let shape = ShapeOptions { workers: options.workers, cpus: options.cpus.clone(), ..ShapeOptions::default() };
    let loaded = overrides::load_shape(&options.scenario, &shape)?;
    let refused = |error: BindError| overrides::usage_or_refusal(&loaded, error);
    let plan = loaded.plan.clone().only(&options.only).map_err(refused)?;
    let bare = Plan { measure: Measure { baselines: Some(Vec::new()), ..plan.measure.clone() }, ..plan.clone() };
    let bound = plan::bind(&bare, topology, seed).map_err(refused)?;
    let wanted = present_variant(&plan, options.present.as_deref())?;
    let (arm, program) = present_arm(&bound, wanted).map_err(|why| cannot(&why))?;
    if let Some(why) = shares_one_cpu(program) {
        return Err(cannot(&why));
    }
    let present = match arm.sweep.is_empty() {
        true => arm.variant.clone(),
        false => arm.name.clone(),
    };
    let mut candidates = advise::candidates(arm, &program.layout).map_err(refused)?;
    let mut left_out = Vec::new();
    for other in
        bound.arms.iter().filter(|other| other.arm.kind == plan::ArmKind::Variant && other.arm.sweep == arm.sweep)
    {
        let Ok(program) = &other.program else { continue };
        if other.arm.variant == arm.variant {
            continue;
        }
        match advise::of_variant(arm, &other.arm, &program.layout).map_err(refused)? {
            Some(own) => advise::add(&mut candidates, own),
            None => left_out.push(LeftOutVariant {
                variant: other.arm.variant.clone(),
                why: "its roles, fields or locks are not those of the present layout, so that times say nothing of where \
                      fields lie"
                    .to_owned(),
            }),
        }
    }
    let mut question = Question { present, candidates, programs: Vec::new(), left_out, loaded: loaded.clone() };
    let all: Vec<usize> = (0..question.candidates.len()).collect();
    let bound = plan::bind(&question.plan(&all, Repetitions::Fixed(1)), topology, seed).map_err(refused)?;
    let program = |arm: plan::BoundArm| arm.program.map_err(|not| not.why);
    question.programs = bound.arms.into_iter().take(all.len()).map(program).collect();
    Ok(question)
}

fn cannot(why: &str) -> CommandError {
    let limits = Machine::cpu_limits();
    CommandError::HostCannot(format!("no layout can be measured on this host: {why}\n  for this process, {limits}"))
}

/// The variant that was asked for; else the first, unless another alone says where its fields lie in the struct as it
/// is declared.
fn present_variant<'a>(plan: &'a Plan, asked: Option<&str>) -> Result<&'a str, CommandError> {
    let variants: Vec<&str> = {
        let mut seen = BTreeSet::new();
        plan.arms.iter().map(|arm| arm.variant.as_str()).filter(|name| seen.insert(*name)).collect()
    };
    if let Some(asked) = asked {
        return variants.iter().copied().find(|name| *name == asked).ok_or_else(|| {
            let near =
                plan::nearest(asked, &variants).map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            let all: Vec<String> = variants.iter().map(|name| format!("`{name}`")).collect();
            CommandError::Usage(format!(
                "--present {asked}: no variant is called so{near} The variants are {}",
                all.join(", ")
            ))
        });
    }
    let given = |arm: &&Arm| matches!(arm.case.placement.strategy, Strategy::Declared | Strategy::Explicit(_));
    let first = plan.arms.first().expect("a plan has an arm");
    let declared = plan.arms.iter().find(|arm| arm.case.placement.strategy == Strategy::Declared);
    Ok(if given(&first) { &first.variant } else { &declared.unwrap_or(first).variant })
}

/// The largest point of the sweep that this host can place.
fn present_arm<'a>(bound: &'a Bound, variant: &str) -> Result<(&'a Arm, &'a Program), String> {
    let of_variant =
        || bound.arms.iter().filter(|arm| arm.arm.kind == plan::ArmKind::Variant && arm.arm.variant == variant);
    let placed = of_variant().filter_map(|arm| Some((&arm.arm, arm.program.as_ref().ok()?)));
    let mut most: Option<(&Arm, &Program)> = None;
    for (arm, program) in placed {
        if most.is_none_or(|(known, _)| known.case.worker_count() < arm.case.worker_count()) {
            most = Some((arm, program));
        }
    }
    most.ok_or_else(|| {
        let why = of_variant().find_map(|arm| arm.program.as_ref().err());
        why.map_or_else(|| "the scenario has no variant".to_owned(), |not| not.why.clone())
    })
}

/// Several workers on one CPU take turns on one cache: nothing is shared between caches, and times are the scheduler's.
fn shares_one_cpu(program: &Program) -> Option<String> {
    let cpus: BTreeSet<_> = program.workers.iter().map(|worker| worker.cpu).collect();
    let workers: BTreeSet<WorkerIndex> = program.workers.iter().map(|worker| worker.index).collect();
    (workers.len() > 1 && cpus.len() < 2).then(|| {
        format!(
            "its {} workers run on one CPU, whose cache they take turns in, so that no layout can make a difference",
            workers.len()
        )
    })
}
