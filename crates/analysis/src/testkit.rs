//! For tests: bound plans and observations written by hand.

use crate::{EffectQuestion, Findings, SLICE_US, analyse, effect};
use plan::TickRate;
use plan::{
    AccessKind, Address, Arm, ArmKind, Bound, BoundArm, Case, Count, CountedBy, Cpu, CpuChoice, CpuId, Field, Layout,
    Lock, LockKind, Measure, Nanos, Op, OpKind, Placed, PlacedLock, Placement, Plan, Program, Repetitions, Role,
    Strategy, Topology, Width, WorkerIndex, WorkerProgram,
};
use plan::{Action, Element, Step, Target};
use record::{CountedEvent, Effect, LockObservation, Observation, Slice, Trace};

/// An 8-byte element by hand.
#[derive(Clone)]
pub(crate) struct Spot {
    field: String,
    element: u32,
    offset: u64,
    lock: bool,
    writers: Vec<u32>,
    readers: Vec<u32>,
}

impl Spot {
    pub(crate) fn data(field: &str, offset: u64, writers: &[u32], readers: &[u32]) -> Spot {
        let (writers, readers) = (writers.to_vec(), readers.to_vec());
        Spot { field: field.into(), element: 0, offset, lock: false, writers, readers }
    }

    pub(crate) fn lock(name: &str, offset: u64, writers: &[u32]) -> Spot {
        Spot { lock: true, ..Spot::data(name, offset, writers, &[]) }
    }

    /// The same as element `element` of its field.
    pub(crate) fn nth(self, element: u32) -> Spot {
        Spot { element, ..self }
    }

    pub(crate) fn placed(&self) -> Placed {
        let workers = |all: &[u32]| all.iter().map(|w| WorkerIndex(*w)).collect();
        Placed {
            field: self.field.clone(),
            element: self.element,
            offset: self.offset,
            bytes: if self.lock { LockKind::BYTES } else { 8 },
            lock: self.lock,
            writers: workers(&self.writers),
            readers: workers(&self.readers),
        }
    }
}

/// A Program of that layout with one worker a role name given, on CPUs 0, 1, ….
pub(crate) fn program(spots: Vec<Spot>, roles: &[&str]) -> Program {
    let placed: Vec<Placed> = spots.iter().map(Spot::placed).collect();
    let bytes = placed.iter().map(|p| p.offset + p.bytes).max().unwrap_or(0);
    let worker = |(index, role): (u32, &&str)| WorkerProgram {
        process: 0,
        period: None,
        latency: false,
        index: WorkerIndex(index),
        role: index,
        role_name: (*role).into(),
        cpu: CpuId(index),
        after: Nanos(0),
        populate: vec![],
        steps: vec!["add hits[me]".into()],
        ops: Vec::new(),
    };
    Program {
        timed_locks: true,
        arm: "packed".into(),
        window: Nanos(100_000_000),
        warm_up: Nanos(20_000_000),
        layout: Layout { placed, bytes },
        area_bytes: 4096,
        locks: Vec::new(),
        regions: Vec::new(),
        workers: (0..).zip(roles).map(worker).collect(),
        shares_cpu: false,
        seed: 1,
    }
}

/// Two workers of one role, each with a counter of its own, so many bytes apart.
pub(crate) fn counters_program(stride: u64) -> Program {
    let hit = |i: u32| Spot { element: i, ..Spot::data("hits", u64::from(i) * stride, &[i], &[]) };
    let mut program = program(vec![hit(0), hit(1)], &["counter"; 2]);
    program.layout.bytes = 2 * stride;
    program
}

/// As an `unshared` arm has it: a copy of lock `m` for each worker.
pub(crate) fn twin_lock_program() -> Program {
    let lock = |offset| PlacedLock { name: "m".into(), kind: LockKind::Pthread, offset };
    Program { locks: vec![lock(0), lock(4096)], ..counters_program(64) }
}

/// The two workers of [`counters_program`] at one lock of that kind, `m`.
pub(crate) fn lock_program(kind: LockKind) -> Program {
    Program { locks: vec![PlacedLock { name: "m".into(), kind, offset: 0 }], ..counters_program(64) }
}

/// Operations of a pass, each in every pass: an atomic add at an offset; taking, and releasing, a lock by its index.
pub(crate) fn access(at: u64) -> Op {
    op(OpKind::Access { kind: AccessKind::Add, width: Width::U64, at: Address::Fixed(at) })
}

pub(crate) fn acquire(lock: u32) -> Op {
    op(OpKind::Lock { lock, shared: false, timeout: None })
}

pub(crate) fn release(lock: u32) -> Op {
    op(OpKind::Unlock { lock, shared: false })
}

fn op(kind: OpKind) -> Op {
    Op { every: 1, step: 0, kind }
}

/// A quiet worker: a window of 100 ms in slices of [`SLICE_US`] at so many nanoseconds a pass.
pub(crate) fn steady_trace(worker: u32, ns_per_op: f64, clock: TickRate) -> Trace {
    let ticks = |ns: f64| (ns * clock.ticks_per_ns) as u64;
    let open = 1_000_000_000;
    let slice_ns = SLICE_US * 1e3;
    let slice = |i: u64| Slice {
        start_ticks: open + i * ticks(slice_ns),
        end_ticks: open + (i + 1) * ticks(slice_ns),
        passes: (slice_ns / ns_per_op).round() as u64,
    };
    let slices: Vec<Slice> = (0..200).map(slice).collect();
    Trace {
        worker,
        pid: 100 + worker as i32,
        tid: 100 + worker as i32,
        cpu: worker,
        open_ticks: open,
        work_ticks: open,
        close_ticks: open + ticks(100e6),
        passes: slices.iter().map(|s| s.passes).sum(),
        all_passes: slices.iter().map(|s| s.passes).sum(),
        gave_up: false,
        span_ticks: ticks(100e6),
        slices,
        gaps: Vec::new(),
        gaps_lost: 0,
        read_distance_ticks: ticks(20_000.0),
        read_cost_ticks: ticks(20.0) as f64,
        blocked_ticks: 0,
        latency: None,
        queue_delays: Vec::new(),
        queue_delays_lost: 0,
        transfer_before_ticks: Some(54.0 * clock.ticks_per_ns),
        transfer_after_ticks: Some(54.0 * clock.ticks_per_ns),
        contended_before_ticks: Some(4.0),
        contended_after_ticks: Some(4.0),
        edges: Vec::new(),
        costs: Default::default(),
        core_loop_before_ticks: ticks(1000.0),
        core_loop_after_ticks: ticks(1000.0),
        noted_ticks: Some(ticks(125e6)),
        counters: Default::default(),
        memory: None,
        kernel: None,
        locks: Vec::new(),
        stuck_in_step: None,
    }
}

/// A worker's observation of a quiet repetition.
pub(crate) fn observation(arm: &str, block: u32, worker: u32, ns_per_op: f64) -> Observation {
    let passes = (1e8 / ns_per_op) as u64;
    Observation {
        arm: arm.into(),
        block,
        worker,
        role: "counter".into(),
        pid: Some(1),
        tid: None,
        cpu: worker,
        passes,
        kept_passes: passes,
        kept_ns: 1e8,
        lost_ns: 0.0,
        blocked_ns: 0.0,
        window_ns: 1e8,
        noted_ns: Some(1.25e8),
        ns_per_op: Some(ns_per_op),
        slice_ns_per_op: vec![0.9 * ns_per_op, ns_per_op, 1.1 * ns_per_op],
        transfer_before_ns: Some(54.0),
        transfer_after_ns: Some(54.0),
        contended_before_ns: Some(2.0),
        contended_after_ns: Some(2.0),
        core_loop_ns: 1000.0,
        regime: None,
        spoiled: Vec::new(),
        counters: Default::default(),
        locks: Vec::new(),
        ..Default::default()
    }
}

/// A worker's dealings with a lock: `all` waits, of which `kept` overlap no eviction; one handoff in ten.
pub(crate) fn lock_observation(lock: &str, acquisitions: u64, kept: &[u64], all: &[u64]) -> LockObservation {
    LockObservation {
        lock: lock.into(),
        acquisitions,
        contended: all.len() as u64,
        kept_waits: crate::times::tally(kept.iter().copied()),
        all_waits: crate::times::tally(all.iter().copied()),
        waits_lost: 0,
        handoffs: acquisitions / 10,
        longest_run: 10,
        owner_died: 0,
        ..Default::default()
    }
}

/// What stands behind a counter's name on CPUs 0 and 1.
pub(crate) fn counted_event(name: &str, shown: &str, counted_by: CountedBy) -> CountedEvent {
    CountedEvent {
        name: name.into(),
        shown: shown.into(),
        event: None,
        counts: format!("what {name} counts"),
        source: "a manual".into(),
        counted_by,
        cpus: "0-1".into(),
    }
}

/// A run by hand: variants named after their placement, a control, and baselines on request.
pub(crate) struct Bench {
    pub(crate) plan: Plan,
    pub(crate) bound: Bound,
    pub(crate) topology: Topology,
    pub(crate) events: Vec<CountedEvent>,
    pub(crate) observations: Vec<Observation>,
}

impl Bench {
    /// Variants of two workers of the role `counter`: `padded-N` has its counters N bytes apart, any other 8. A control
    /// of the first follows.
    pub(crate) fn new(variants: &[&str]) -> Bench {
        Bench::with_roles(variants, &["counter"])
    }

    /// The same with these roles of one worker each, or one role of two.
    pub(crate) fn with_roles(variants: &[&str], roles: &[&str]) -> Bench {
        let case = case(roles);
        let mut arms: Vec<BoundArm> = variants.iter().map(|v| bound_arm(v, ArmKind::Variant, v, &case)).collect();
        arms.push(bound_arm("control", ArmKind::Control, variants[0], &case));
        let measure = Measure {
            repetitions: Repetitions::Fixed(10),
            precision: 0.05,
            budget: Nanos(20_000_000_000),
            baselines: None,
            headline_role: 0,
            events: Vec::new(),
        };
        let text = || "test".to_owned();
        let planned = arms.iter().filter(|a| a.arm.kind == ArmKind::Variant).map(|a| a.arm.clone()).collect();
        let plan = Plan {
            name: text(),
            title: text(),
            question: text(),
            measure,
            arms: planned,
            expects: Vec::new(),
            predictions: Vec::new(),
        };
        let cpu = |id| Cpu { id: CpuId(id), core: id, llc: 0, node: 0, socket: 0, usable: true };
        let topology = Topology { cpus: vec![cpu(0), cpu(1)] };
        Bench { plan, bound: Bound { arms }, topology, events: Vec::new(), observations: Vec::new() }
    }

    pub(crate) fn with_solo(self) -> Bench {
        self.with_baseline("solo:counter".into(), ArmKind::Solo { role: 0 })
    }

    pub(crate) fn with_unshared(self) -> Bench {
        let name = format!("unshared:{}", self.bound.arms[0].arm.name);
        self.with_baseline(name, ArmKind::Unshared)
    }

    fn with_baseline(mut self, name: String, kind: ArmKind) -> Bench {
        let first = &self.bound.arms[0].arm;
        let mut arm = bound_arm(&name, kind.clone(), &first.variant, &first.case);
        if let (Ok(program), ArmKind::Solo { .. }) = (&mut arm.program, kind) {
            program.workers.truncate(1);
        }
        self.bound.arms.push(arm);
        self
    }

    pub(crate) fn with_layout(mut self, arm: &str, spots: Vec<Spot>) -> Bench {
        let arm = self.bound.arms.iter_mut().find(|a| a.arm.name == arm).unwrap();
        let bytes = spots.iter().map(|s| s.offset + 8).max().unwrap();
        if let Ok(program) = &mut arm.program {
            program.layout = Layout { placed: spots.iter().map(Spot::placed).collect(), bytes };
        }
        self
    }

    pub(crate) fn with_steps(mut self, arm: &str, text: &str) -> Bench {
        let arm = self.bound.arms.iter_mut().find(|a| a.arm.name == arm).unwrap();
        arm.arm.case.roles[0].steps[0].text = text.into();
        self
    }

    pub(crate) fn with_lock(self, name: &str) -> Bench {
        self.with_lock_kinds(name, |_| LockKind::Pthread)
    }

    /// A lock in every arm, of the kind that the arm's name asks for.
    pub(crate) fn with_lock_kinds(mut self, name: &str, kind: impl Fn(&str) -> LockKind) -> Bench {
        for arm in &mut self.bound.arms {
            let kind = kind(&arm.arm.name);
            arm.arm.case.locks.push(Lock { name: name.into(), kind, at: None });
            if let Ok(program) = &mut arm.program {
                program.locks.push(PlacedLock { name: name.into(), kind, offset: 0 });
            }
        }
        self
    }

    /// Changes every Program that is there.
    pub(crate) fn programs(&mut self, change: impl Fn(&str, &mut Program)) {
        for arm in &mut self.bound.arms {
            if let Ok(program) = &mut arm.program {
                change(&arm.arm.name, program);
            }
        }
    }

    /// Gives every observation its dealings with a lock.
    pub(crate) fn at_lock(&mut self, dealings: impl Fn(&Observation) -> LockObservation) {
        for observation in &mut self.observations {
            let seen = dealings(observation);
            observation.locks.push(seen);
        }
    }

    /// The first variant's twin whose locks are neither tried first nor timed.
    pub(crate) fn with_plain(self) -> Bench {
        let mut bench = self.with_baseline("plain".into(), ArmKind::Plain);
        if let Some(Ok(program)) = bench.bound.arms.last_mut().map(|a| &mut a.program) {
            program.timed_locks = false;
        }
        bench
    }

    /// Runs so many blocks; every worker of an arm reads `ns(arm, block)`. Baselines run in every other block.
    pub(crate) fn run(&mut self, blocks: u32, ns: impl Fn(&str, u32) -> f64) {
        for block in 0..blocks {
            for arm in &self.bound.arms {
                let baseline = matches!(arm.arm.kind, ArmKind::Solo { .. } | ArmKind::Unshared);
                let Ok(program) = &arm.program else { continue };
                if baseline && block % 2 == 1 {
                    continue;
                }
                for worker in &program.workers {
                    let name = &arm.arm.name;
                    let mut seen = observation(name, block, worker.index.0, ns(name, block));
                    seen.role.clone_from(&worker.role_name);
                    if program.workers.len() == 1 {
                        (seen.transfer_before_ns, seen.transfer_after_ns) = (None, None);
                        (seen.contended_before_ns, seen.contended_after_ns) = (None, None);
                    }
                    self.observations.push(seen);
                }
            }
        }
    }

    pub(crate) fn analyse(&mut self) -> Findings {
        analyse(&self.plan, &self.bound, &self.topology, &self.events, &mut self.observations, 7)
    }

    pub(crate) fn effect(&mut self, question: &EffectQuestion) -> Effect {
        effect(&self.plan, &self.bound, &self.topology, &self.events, &mut self.observations, 7, question)
    }
}

fn case(roles: &[&str]) -> Case {
    let target = Target { field: 0, element: Element::Me };
    let step = Step { every: 1, action: Action::Add(target), text: "add hits[me]".into() };
    let role = |name: &&str| Role {
        threads: 1,
        joins: false,
        period: None,
        latency: false,
        name: (*name).into(),
        workers: if roles.len() == 1 { 2 } else { 1 },
        cpus: CpuChoice::Spread,
        after: Nanos(0),
        populate: vec![],
        steps: vec![step.clone()],
    };
    Case {
        fields: vec![Field { name: "hits".into(), width: Width::U64, count: Count::PerWorker, at: None }],
        locks: Vec::new(),
        regions: Vec::new(),
        roles: roles.iter().map(role).collect(),
        placement: Placement { strategy: Strategy::Packed, shift: 0 },
        oversubscribe: false,
    }
}

fn bound_arm(name: &str, kind: ArmKind, variant: &str, case: &Case) -> BoundArm {
    let stride = variant.strip_prefix("padded-").map_or(8, |n| n.parse().unwrap());
    let mut program = counters_program(stride);
    program.arm = name.into();
    let roles = case.roles.iter().flat_map(|r| vec![r.name.clone(); r.workers as usize]);
    for (worker, role) in program.workers.iter_mut().zip(roles) {
        worker.role_name = role;
    }
    let arm = Arm {
        name: name.into(),
        kind,
        variant: variant.into(),
        sweep: Vec::new(),
        window: Nanos(100_000_000),
        warm_up: Nanos(20_000_000),
        case: case.clone(),
    };
    BoundArm { arm, program: Ok(program) }
}
