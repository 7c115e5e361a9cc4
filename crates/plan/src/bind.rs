//! Binding: a Plan meets a Topology and becomes one Program an arm.

mod accesses;
mod cpus;
mod dying;
mod elements;
mod locking;
mod mapping;
mod memory;
mod ops;
#[cfg(test)]
mod properties;

pub use accesses::{Touch, Usage, usage};

use crate::placement::{Layout, MAX_LAYOUT_BYTES};
use crate::program::{PlacedLock, Program, WorkerProgram};
use crate::scenario::{Arm, ArmKind, Case, Plan, Role};
use crate::step::Step;
use crate::topology::Topology;
use crate::units::{CpuId, WorkerIndex};
use memory::Memory;

/// Most workers of one arm: beyond it a slip of the keyboard is likelier than an experiment, and the coordinator, which
/// holds descriptors for each worker, would run out of them first (`getrlimit(2)`: 1,024 by default).
const MAX_WORKERS: u32 = 1024;

/// A Plan bound to a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The plan's arms and references, in the order in which results list them.
    pub arms: Vec<BoundArm>,
}

/// One arm and what became of it on this machine.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundArm {
    /// The arm as planned.
    pub arm: Arm,
    /// Its Program, or why this machine cannot place it.
    pub program: Result<Program, NotApplicable>,
}

/// Why this machine cannot run an arm. Not an error: the others run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotApplicable {
    /// In plain words, with the numbers: "needs 4 CPUs, this host has 2; `oversubscribe = true` would share them".
    pub why: String,
}

/// What only the machine, or the whole plan together, can refuse; the scenario's text is at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct BindError {
    /// Path of the key in the scenario: `role.counter.cpus`, `field.b.at`; the `scenario` crate finds its place. A step
    /// adds its index: `role.counter.loop.1`. A key that the variant inherits keeps the variant's path:
    /// `variant.packed.placement` may stand in `placement`.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub cure: String,
}

impl BindError {
    pub(crate) fn new(path: impl Into<String>, message: impl Into<String>, cure: impl Into<String>) -> BindError {
        BindError { path: path.into(), message: message.into(), cure: cure.into() }
    }
}

/// Why an arm has no Program: the scenario's fault ends the binding, the machine's leaves the other arms.
#[derive(Debug)]
enum Refusal {
    Scenario(BindError),
    Machine(NotApplicable),
}

impl From<BindError> for Refusal {
    fn from(error: BindError) -> Refusal {
        Refusal::Scenario(error)
    }
}

impl Refusal {
    fn machine(why: impl Into<String>) -> Refusal {
        Refusal::Machine(NotApplicable { why: why.into() })
    }
}

/// Binds every arm of `plan`, references included, to the CPUs of `topology`. `seed` becomes each Program's. The same
/// input gives the same result. The references derive from the largest point of the first variant that this machine can
/// place, so that a small host still has its control arm.
///
/// # Errors
/// [`BindError`] where the scenario's text is at fault: a CPU that is not there or not allowed, an element that does
/// not exist, offsets that overlap, a pass that ends holding a lock, a wait that cannot time out, a baseline that
/// cannot apply.
pub fn bind(plan: &Plan, topology: &Topology, seed: u64) -> Result<Bound, BindError> {
    let placeable = |arm: &Arm| count_workers(&arm.case).is_ok() && cpus::choose(&arm.case, topology).is_ok();
    let arms = plan.arms_with_references(placeable)?.into_iter().map(|arm| {
        let program = match program(&arm, plan.measure.headline_role, topology, seed) {
            Ok(program) => Ok(program),
            Err(Refusal::Machine(not_applicable)) => Err(not_applicable),
            Err(Refusal::Scenario(error)) => return Err(error),
        };
        Ok(BoundArm { arm, program })
    });
    Ok(Bound { arms: arms.collect::<Result<_, _>>()? })
}

/// Looks at the scenario's text before the machine, so that a mistake shows on every host.
fn program(arm: &Arm, headline_role: usize, topology: &Topology, seed: u64) -> Result<Program, Refusal> {
    let case = &arm.case;
    count_workers(case)?;
    locking::check(arm)?;
    dying::check(case, headline_role)?;
    mapping::check(case)?;
    let layout = memory::lay_out(arm)?;
    let memory = Memory::of(case, &layout);
    let cpus = cpus::choose(case, topology)?;
    let running = running_seats(arm);
    let copies = if arm.kind == ArmKind::Unshared { running.len() as u64 } else { 1 };
    let area_bytes = memory.area_bytes(copies);
    if area_bytes > MAX_LAYOUT_BYTES {
        return Err(Refusal::machine(format!(
            "{copies} copies of the layout take {area_bytes} bytes; the lab's fields area holds {MAX_LAYOUT_BYTES}"
        )));
    }
    let workers: Vec<WorkerProgram> = running
        .iter()
        .zip(processes(case, &running))
        .enumerate()
        .map(|(nth, (seat, process))| {
            let copy = if arm.kind == ArmKind::Unshared { nth as u64 } else { 0 };
            worker(case, &memory, *seat, Home { cpu: cpus[seat.index.0 as usize], process, copy })
        })
        .collect::<Result<_, _>>()?;
    Ok(Program {
        timed_locks: arm.kind != ArmKind::Plain,
        arm: arm.name.clone(),
        window: arm.window,
        warm_up: arm.warm_up,
        area_bytes,
        regions: (0..copies).flat_map(|_| case.regions.iter().cloned()).collect(),
        locks: (0..copies).flat_map(|copy| memory.locks(case, copy)).collect::<Vec<PlacedLock>>(),
        shares_cpu: shares_cpu(&workers),
        workers,
        layout: touched_by(layout, &running),
        seed,
    })
}

/// A worker's index and its role's.
#[derive(Copy, Clone, Debug)]
struct Seat {
    index: WorkerIndex,
    role: usize,
}

/// Every worker of the case, ascending by index, in the order of the roles.
fn seats(case: &Case) -> impl Iterator<Item = Seat> + '_ {
    let roles = case.roles.iter().enumerate();
    let of_worker = roles.flat_map(|(role, r)| (0..r.workers).map(move |_| role));
    of_worker.enumerate().map(|(index, role)| Seat { index: WorkerIndex(index as u32), role })
}

/// The workers that the arm starts: of a solo arm, the first of its role.
fn running_seats(arm: &Arm) -> Vec<Seat> {
    match arm.kind {
        ArmKind::Solo { role } => seats(&arm.case).find(|seat| seat.role == role).into_iter().collect(),
        ArmKind::Variant | ArmKind::Unshared | ArmKind::Control | ArmKind::Plain => seats(&arm.case).collect(),
    }
}

/// The process of each running worker, from 0 in the order of the workers: those of a role fill its processes, so many
/// threads each, one after the other; those of a role that joins the one before it are threads of that one's process.
fn processes(case: &Case, running: &[Seat]) -> Vec<u32> {
    let mut number = 0;
    let mut last: Option<(usize, u32)> = None;
    let next = |seat: &Seat| {
        let Role { threads, joins, .. } = case.roles[seat.role];
        last = match last {
            Some((role, seated)) if role == seat.role && (joins || seated < threads) => Some((role, seated + 1)),
            Some((role, _)) if joins && role + 1 == seat.role => Some((seat.role, 1)),
            before => {
                number += u32::from(before.is_some());
                Some((seat.role, 1))
            }
        };
        number
    };
    running.iter().map(next).collect()
}

fn count_workers(case: &Case) -> Result<(), BindError> {
    let workers = case.worker_count();
    match case.roles.iter().max_by_key(|role| role.workers) {
        Some(role) if workers > MAX_WORKERS => Err(BindError::new(
            format!("role.{}.workers", role.name),
            format!("the roles have {workers} workers together; an arm may have {MAX_WORKERS}"),
            "ask for fewer workers",
        )),
        _ => Ok(()),
    }
}

/// Where a worker runs, and on which copy of the memory.
struct Home {
    cpu: CpuId,
    process: u32,
    copy: u64,
}

fn worker(case: &Case, memory: &Memory, seat: Seat, home: Home) -> Result<WorkerProgram, BindError> {
    let role = &case.roles[seat.role];
    Ok(WorkerProgram {
        process: home.process,
        period: role.period,
        latency: role.latency || role.period.is_some(),
        index: seat.index,
        role: seat.role as u32,
        role_name: role.name.clone(),
        cpu: home.cpu,
        after: role.after,
        populate: role.populate.iter().map(|region| ops::region(case, *region, home.copy)).collect(),
        steps: role.steps.iter().map(|step| step.text.clone()).collect(),
        ops: ops::of_worker(case, memory, seat, home.copy)?,
    })
}

/// A refusal of one of the role's steps, at its place in the loop.
fn refuse_step(role: &Role, step: &Step, why: &str, cure: impl Into<String>) -> BindError {
    let message = format!("role `{}`: step `{}` {why}", role.name, step.text);
    let place = role.steps.iter().position(|of_loop| std::ptr::eq(of_loop, step));
    let nth = place.map_or(String::new(), |index| format!(".{index}"));
    BindError::new(format!("role.{}.loop{nth}", role.name), message, cure)
}

fn shares_cpu(workers: &[WorkerProgram]) -> bool {
    let cpus: std::collections::BTreeSet<CpuId> = workers.iter().map(|worker| worker.cpu).collect();
    cpus.len() < workers.len()
}

/// The layout with the writers and readers that run: places stay as in the full arm.
fn touched_by(mut layout: Layout, running: &[Seat]) -> Layout {
    let runs = |worker: &WorkerIndex| running.binary_search_by_key(worker, |seat| seat.index).is_ok();
    for placed in &mut layout.placed {
        placed.writers.retain(runs);
        placed.readers.retain(runs);
    }
    layout
}

#[cfg(test)]
mod tests;
