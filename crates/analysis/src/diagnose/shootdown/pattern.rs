//! Who can interrupt whom by giving memory back, as the Programs have it.

use plan::{MemoryStep, MemoryVerb, Program, WorkerProgram};

/// A worker's step by which another worker's CPU has to forget translations.
#[derive(Copy, Clone)]
pub(super) struct Shot<'a> {
    pub(super) culprit: &'a WorkerProgram,
    pub(super) step: &'a MemoryStep,
    /// The step as written.
    pub(super) text: &'a str,
    /// Whether the two are threads of one process: then whatever is given back counts. Else only what both map does.
    pub(super) one_process: bool,
}

/// The steps that can interrupt some worker of the role, each once.
pub(super) fn shots<'a>(program: &'a Program, role: &str) -> Vec<Shot<'a>> {
    let victims = || program.workers.iter().filter(|worker| worker.role_name == role);
    let mut found: Vec<Shot> = Vec::new();
    for culprit in &program.workers {
        for (op, step) in culprit.memory_steps() {
            let hit = victims().find(|victim| reaches(program, culprit, step, victim));
            let Some(victim) = hit else { continue };
            let text = culprit.ops.get(op).and_then(|op| culprit.steps.get(op.step as usize));
            let text = text.map_or(step.verb.name(), String::as_str);
            found.push(Shot { culprit, step, text, one_process: culprit.process == victim.process });
        }
    }
    found
}

/// Workers on one CPU interrupt nobody: the flush is the CPU's own.
fn reaches(program: &Program, culprit: &WorkerProgram, step: &MemoryStep, victim: &WorkerProgram) -> bool {
    let apart = culprit.index != victim.index && culprit.cpu != victim.cpu;
    match culprit.process == victim.process {
        true => apart && step.verb.gives_back(),
        false => apart && step.verb.punches() && program.maps(victim, step.region),
    }
}

/// What another variant does instead, in which the victim's loop is the same; in the order in which they are preferred.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Instead {
    /// The memory is touched again, and nothing is given back.
    Reuse,
    /// As much is given back in larger pieces.
    Batch,
    /// It is given back as before, by a process that is not the victim's.
    OwnProcess,
    /// It is given back as before, and the victim does not map it.
    FewerMappers,
    /// The culprit gives back its own view alone.
    OwnView,
    /// Nothing is given back: no cure, but what the victim's batches cost undisturbed.
    Nothing,
}

impl Instead {
    /// What `program` does in place of the sick one's shots, given its own; `None` where it shoots as the sick one
    /// does.
    pub(super) fn of(sick: &[Shot], program: &Program, own: &[Shot]) -> Option<Instead> {
        if let Some(own) = own.first() {
            let larger = |sick: &Shot| own.step.verb == sick.step.verb && own.step.chunk >= 2 * sick.step.chunk;
            return sick.iter().all(larger).then_some(Instead::Batch);
        }
        let culprits = |worker: &&WorkerProgram| sick.iter().any(|shot| shot.culprit.role_name == worker.role_name);
        let steps = || program.workers.iter().filter(culprits).flat_map(WorkerProgram::memory_steps).map(|(_, s)| s);
        let gives_back_as_before = || steps().any(|step| sick.iter().any(|shot| shot.step.verb == step.verb));
        Some(match () {
            () if gives_back_as_before() && sick.iter().any(|shot| shot.one_process) => Instead::OwnProcess,
            () if gives_back_as_before() => Instead::FewerMappers,
            () if steps().any(|step| step.verb.gives_back()) => Instead::OwnView,
            () if steps().any(|step| step.verb == MemoryVerb::Reuse) => Instead::Reuse,
            () => Instead::Nothing,
        })
    }

    /// As half a sentence about the variant that does so; `None` where it is no cure.
    pub(super) fn words(self) -> Option<&'static str> {
        match self {
            Instead::Reuse => Some("uses the same memory again and gives nothing back"),
            Instead::Batch => Some("gives it back in larger pieces, so in fewer calls"),
            Instead::OwnProcess => Some("has a process of its own do it"),
            Instead::FewerMappers => Some("gives it back where the victim does not map it"),
            Instead::OwnView => Some("gives back its own view alone"),
            Instead::Nothing => None,
        }
    }
}
