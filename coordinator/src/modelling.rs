//! Arms through the model: each Program on a modelled machine, as the record has it. Computed, never measured.

mod lines;

use model::{Limits, Machine, Modelled, Refusal, Tally};
use plan::{Program, Topology};
use record::{ModelledArm, ModelledLock, ModelledMachine, ModelledRole, ModelledWorker};
use std::collections::BTreeMap;

/// How much of an arm is simulated: a fraction of a second of this process's time. The window's length bounds what
/// sleeps, or is paced, most of the time.
pub(crate) const LIMITS: Limits = Limits { accesses: 400_000, window_ns: 50e6 };

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
    let workers = || modelled.workers.iter().filter(|worker| worker.role == name);
    let mut times: Option<Vec<f64>> = workers().map(|worker| worker.ns_per_op).collect();
    times.iter_mut().for_each(|times| times.sort_by(f64::total_cmp));
    let passes: u64 = workers().map(|worker| worker.passes).sum();
    let mut counters: BTreeMap<String, record::Modelled> = BTreeMap::new();
    for (name, count) in workers().flat_map(|worker| named(&worker.tally)) {
        let counter = counters.entry(name.to_owned()).or_insert(record::Modelled { value: 0.0, per_op: 0.0 });
        counter.value += count as f64;
    }
    for counter in counters.values_mut() {
        counter.per_op = counter.value / passes.max(1) as f64;
    }
    ModelledRole {
        role: name.to_owned(),
        ns_per_op: times.map(|times| times[times.len() / 2]),
        ops_per_second: passes as f64 / modelled.window_ns * 1e9,
        counters,
    }
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
    };
    modelled.workers.iter().map(worker).collect()
}

/// The locks by name: an unshared arm's copies together.
fn locks(program: &Program, modelled: &Modelled) -> Vec<ModelledLock> {
    let mut tallies: Vec<(&plan::PlacedLock, u64, u64, u64)> = Vec::new();
    for (index, placed) in program.locks.iter().enumerate() {
        let of = |count: fn(&model::LockTally) -> u64| modelled.workers.iter().map(|w| count(&w.locks[index])).sum();
        let [acquisitions, contended, waited]: [u64; 3] = [of(|l| l.acquisitions), of(|l| l.contended), of(|l| l.waited_ps)];
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
