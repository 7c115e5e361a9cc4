//! Arms through the model: each Program on a modelled machine, as the record has it. Computed, never measured.

mod lines;

use crate::exit::CommandError;
use crate::host_machine;
use host::Root;
use model::{HOST, HostFigures, Limits, Machine, Modelled, Refusal, Tally};
use plan::{Bound, Program, Topology};
use record::{
    ArmSummary, CostProbe, Kind, ModelledArm, ModelledLock, ModelledMachine, ModelledRole, ModelledWorker, Regime, Run,
};
use std::collections::BTreeMap;

/// How much of an arm is simulated: a fraction of a second of this process's time. The window's length bounds what
/// sleeps, or is paced, most of the time.
pub(crate) const LIMITS: Limits = Limits { accesses: 400_000, window_ns: 50e6 };

/// The machine of that name or file with its CPUs; the present one, measured now, where none is named.
///
/// # Errors
/// [`CommandError`] for what is no machine, or cannot be measured.
pub(crate) fn find(name: Option<&str>) -> Result<(Machine, Topology), CommandError> {
    match name {
        None | Some(HOST) => host_machine::measured(),
        Some(name) => {
            let machine = Machine::find(name)?;
            let topology = machine.shape.topology();
            Ok((machine, topology))
        }
    }
}

/// Whether some arm lacks a count of what the model computes: then its figures are all that is to be had.
pub(crate) fn is_wanted(run: &Run) -> bool {
    let lacks = |arm: &ArmSummary| {
        let role = arm.roles.iter().find(|role| role.role == arm.headline_role);
        let counter = role.and_then(|role| role.counters.get("l1d_load_misses"));
        counter.is_some_and(|counter| counter.measured.reading.value().is_none())
    };
    run.arms.iter().any(lacks)
}

/// Models every arm of a finished run on the machine of this very run: what its probes read in the arm's regime. The
/// counts that were asked for stand beside the measured ones.
pub(crate) fn beside(run: &mut Run, bound: &Bound, topology: &Topology) {
    let root = Root::system();
    for arm in &bound.arms {
        let Some(summary) = run.arms.iter_mut().find(|summary| summary.name == arm.arm.name) else { continue };
        let Ok(program) = &arm.program else { continue };
        if matches!(summary.kind, Kind::Control | Kind::Plain) {
            continue; // twins of an arm: the model knows no difference
        }
        let not_modelled = |why| ModelledArm { machine: HOST.to_owned(), why: Some(why), ..ModelledArm::default() };
        // What no machine could do comes before what this run's probes lack.
        let machine = model::knows(program, topology)
            .map_err(|refusal| refusal.to_string())
            .and_then(|()| of_regime((&root, topology), &run.method.regimes, summary.regime, program));
        let modelled = match machine {
            Ok((machine, number)) => {
                ModelledArm { regime: Some(number), ..self::arm(program, &machine, topology, run.seed) }
            }
            Err(why) => not_modelled(why),
        };
        for role in &mut summary.roles {
            let Some(computed) = modelled.role(&role.role) else { continue };
            for (name, counter) in &mut role.counters {
                counter.modelled = computed.counters.get(name).cloned();
            }
        }
        summary.modelled = Some(modelled);
    }
}

/// The machine as a regime of this run knew it; the first one where the arm has none of its own. What a regime of lone
/// workers could not read is another's.
pub(crate) fn of_regime(
    (root, topology): (&Root, &Topology),
    regimes: &[Regime],
    wanted: Option<u32>,
    program: &Program,
) -> Result<(Machine, u32), String> {
    let regime = regimes.iter().find(|regime| Some(regime.number) == wanted).or(regimes.first());
    let regime = regime.ok_or("no repetition of this run was sound, so its probes say nothing")?;
    let probed = |regime: &Regime| regime.transfer_ns.zip(regime.contended_ns);
    let mut distance = probed(regime).or_else(|| regimes.iter().find_map(probed));
    let mut costs = regime.costs.or(CostProbe::median(regimes.iter().map(|regime| &regime.costs)));
    if program.workers.len() == 1 {
        // Nobody is there whose line it could take or whom it could wake: any figure does, and none is used.
        costs.wake_ns = costs.wake_ns.or(costs.futex_ns);
        distance = distance.or(costs.memory_ns.zip(costs.memory_ns));
    }
    let figures = HostFigures {
        measured: format!("the probes of this run, regime {}", regime.number),
        // The workers of this run: however far they are from each other, this is how far the probes found them.
        distances: [distance; 3],
        costs,
        ..host_machine::described(root, topology)
    };
    Ok((figures.machine().map_err(|error| error.to_string())?, regime.number))
}

/// What the model makes of an arm on `machine`, whose CPUs `topology` numbers; in the words of [`Refusal`] where it
/// makes nothing of it.
pub(crate) fn arm(program: &Program, machine: &Machine, topology: &Topology, seed: u64) -> ModelledArm {
    let blank = ModelledArm { machine: machine.name.clone(), ..ModelledArm::default() };
    match model::simulate(program, machine, topology, LIMITS, seed) {
        Ok(modelled) => ModelledArm {
            roles: roles(&modelled),
            workers: workers(&modelled),
            locks: locks(program, &modelled),
            lines: lines::of(program, &modelled),
            ..blank
        },
        Err(refusal) => not_modelled(blank, &refusal),
    }
}

/// An arm that has no place on the modelled machine.
pub(crate) fn unplaced(machine: &Machine, why: &str) -> ModelledArm {
    ModelledArm { machine: machine.name.clone(), why: Some(why.to_owned()), ..ModelledArm::default() }
}

fn not_modelled(blank: ModelledArm, refusal: &Refusal) -> ModelledArm {
    ModelledArm { why: Some(refusal.to_string()), ..blank }
}

/// The machine as the record has it.
pub(crate) fn machine(machine: &Machine) -> ModelledMachine {
    let shape = &machine.shape;
    ModelledMachine {
        name: machine.name.clone(),
        title: machine.title.clone(),
        protocol: machine.protocol.name().to_owned(),
        cpus: shape.sockets * shape.clusters * shape.cores * shape.threads,
        sources: machine.sources.iter().map(|source| (source.of.clone(), source.text.clone())).collect(),
    }
}

fn roles(modelled: &Modelled) -> Vec<ModelledRole> {
    let mut names: Vec<&str> = Vec::new();
    for worker in &modelled.workers {
        if !names.contains(&worker.role.as_str()) {
            names.push(&worker.role);
        }
    }
    names.into_iter().map(|name| role(modelled, name)).collect()
}

fn role(modelled: &Modelled, name: &str) -> ModelledRole {
    let of: Vec<&model::ModelledWorker> = modelled.workers.iter().filter(|worker| worker.role == name).collect();
    let mut times: Option<Vec<f64>> = of.iter().map(|worker| worker.ns_per_op).collect();
    times.iter_mut().for_each(|times| times.sort_by(f64::total_cmp));
    let passes: u64 = of.iter().map(|worker| worker.passes).sum();
    ModelledRole {
        role: name.to_owned(),
        ns_per_op: times.map(|times| times[times.len() / 2]),
        ops_per_second: passes as f64 / modelled.window_ns * 1e9,
        counters: counters(&of),
    }
}

/// What the caches of these workers would count, summed, and for each of their passes.
fn counters(workers: &[&model::ModelledWorker]) -> BTreeMap<String, record::Modelled> {
    let passes: u64 = workers.iter().map(|worker| worker.passes).sum();
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, count) in workers.iter().flat_map(|worker| named(&worker.tally)) {
        *sums.entry(name).or_default() += count;
    }
    let counter = |count: u64| record::Modelled { value: count as f64, per_op: count as f64 / passes.max(1) as f64 };
    sums.into_iter().map(|(name, count)| (name.to_owned(), counter(count))).collect()
}

/// The counts with their names, and the misses of reads and writes together.
fn named(tally: &Tally) -> Vec<(&'static str, u64)> {
    let mut named = tally.named();
    named.push(("l1d_misses", tally.l1d_load_misses + tally.l1d_store_misses));
    named
}

fn workers(modelled: &Modelled) -> Vec<ModelledWorker> {
    let worker = |w: &model::ModelledWorker| ModelledWorker {
        index: w.worker,
        role: w.role.clone(),
        cpu: w.cpu,
        ns_per_op: w.ns_per_op,
        counters: counters(&[w]),
    };
    modelled.workers.iter().map(worker).collect()
}

/// The locks by name: an unshared arm's copies together.
fn locks(program: &Program, modelled: &Modelled) -> Vec<ModelledLock> {
    let mut tallies: Vec<(&plan::PlacedLock, u64, u64, u64)> = Vec::new();
    for (index, placed) in program.locks.iter().enumerate() {
        let of = |count: fn(&model::LockTally) -> u64| modelled.workers.iter().map(|w| count(&w.locks[index])).sum();
        let [acquisitions, contended, waited]: [u64; 3] =
            [of(|l| l.acquisitions), of(|l| l.contended), of(|l| l.waited_ps)];
        match tallies.iter_mut().find(|(known, ..)| known.name == placed.name) {
            Some((_, a, c, w)) => (*a, *c, *w) = (*a + acquisitions, *c + contended, *w + waited),
            None => tallies.push((placed, acquisitions, contended, waited)),
        }
    }
    let lock = |(placed, acquisitions, contended, waited): (&plan::PlacedLock, u64, u64, u64)| ModelledLock {
        lock: placed.name.clone(),
        kind: placed.kind.name().to_owned(),
        acquisitions,
        contended_share: (acquisitions > 0).then(|| contended as f64 / acquisitions as f64),
        mean_wait_ns: (contended > 0).then(|| waited as f64 / 1e3 / contended as f64),
    };
    tallies.into_iter().map(lock).collect()
}
