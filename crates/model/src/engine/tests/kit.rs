//! Machines and Programs by hand, and simulations with a witness.

use crate::engine::witness::Witness;
use crate::engine::{Engine, Limits};
use crate::machine::{CacheShape, Caches, Costs, Distance, Distances, Machine, Shape};
use crate::protocol::Protocol;
use crate::script::Scripts;
use crate::{Modelled, Refusal, simulate};
use plan::{
    AccessKind, Address, CpuId, Layout, LockKind, Nanos, Op, OpKind, PlacedLock, Program, Topology, Width, WorkerIndex,
    WorkerProgram,
};

pub(super) const NEAR: Distance = Distance { fetch_ns: 36.0, tenure_ns: 0.6, spread: 0.03 };
pub(super) const FAR: Distance = Distance { fetch_ns: 143.0, tenure_ns: 35.0, spread: 0.03 };

pub(super) const COSTS: Costs = Costs {
    load_ns: 0.15,
    store_ns: 0.25,
    bump_ns: 0.33,
    atomic_ns: 2.35,
    fence_ns: 8.0,
    pause_ns: 10.0,
    flush_ns: 50.0,
    instruction_ns: 0.08,
    clock_ns: 12.0,
    syscall_ns: 300.0,
    futex_ns: 300.0,
    wake_ns: 5000.0,
    store_buffer: 64,
    window: 448,
};

const LARGE: Caches = Caches {
    l1: CacheShape { bytes: 48 << 10, ways: 12, ns: 0.0 },
    l2: CacheShape { bytes: 1 << 20, ways: 16, ns: 3.0 },
    llc: CacheShape { bytes: 32 << 20, ways: 16, ns: 12.0 },
    llc_is_inclusive: false,
    memory_ns: 100.0,
    fetches_pairs: false,
};

/// Caches of a few lines: 4, 8 and 16.
pub(super) const TINY: Caches = Caches {
    l1: CacheShape { bytes: 256, ways: 2, ns: 0.0 },
    l2: CacheShape { bytes: 512, ways: 2, ns: 3.0 },
    llc: CacheShape { bytes: 1024, ways: 2, ns: 12.0 },
    ..LARGE
};

/// Four cores of one cluster.
pub(super) const FOUR_CORES: Shape = Shape { sockets: 1, clusters: 1, cores: 4, threads: 1 };

pub(super) fn machine(protocol: Protocol, shape: Shape, distance: Distance) -> Machine {
    Machine {
        name: "test".into(),
        title: "a machine for tests".into(),
        protocol,
        shape,
        caches: LARGE,
        distances: Distances { cluster: distance, socket: distance, machine: distance },
        costs: COSTS,
        sources: Vec::new(),
    }
}

/// One socket with one last level.
pub(super) fn cluster(cores: u32, distance: Distance) -> Machine {
    machine(Protocol::Moesi, Shape { sockets: 1, clusters: 1, cores, threads: 1 }, distance)
}

pub(super) fn every(every: u32, kind: OpKind) -> Op {
    Op { every, step: 0, kind }
}

pub(super) fn access(kind: AccessKind, offset: u64) -> OpKind {
    OpKind::Access { kind, width: Width::U64, at: Address::Fixed(offset) }
}

pub(super) fn lock(timeout: Option<u64>) -> OpKind {
    OpKind::Lock { lock: 0, shared: false, timeout: timeout.map(Nanos) }
}

pub(super) fn unlock() -> OpKind {
    OpKind::Unlock { lock: 0, shared: false }
}

/// A worker on the CPU of its number.
pub(super) fn worker(index: u32, ops: Vec<OpKind>) -> WorkerProgram {
    WorkerProgram {
        index: WorkerIndex(index),
        role: 0,
        role_name: "role".into(),
        cpu: CpuId(index),
        process: index,
        period: None,
        latency: false,
        after: Nanos(0),
        populate: vec![],
        steps: vec![],
        ops: ops.into_iter().map(|kind| every(1, kind)).collect(),
    }
}

pub(super) fn program(workers: Vec<WorkerProgram>) -> Program {
    Program {
        arm: "arm".into(),
        window: Nanos(1),
        warm_up: Nanos(1),
        layout: Layout { placed: vec![], bytes: 64 },
        area_bytes: 1 << 16,
        locks: vec![],
        regions: vec![],
        workers,
        shares_cpu: false,
        timed_locks: true,
        seed: 1,
    }
}

/// Where the tests' lock lies.
pub(super) const LOCK_AT: u64 = 4096;

pub(super) fn locked(kind: LockKind, workers: Vec<WorkerProgram>) -> Program {
    let lock = |nth: u64| PlacedLock { name: format!("lock {nth}"), kind, offset: LOCK_AT + nth * LockKind::BYTES };
    Program { locks: vec![lock(0), lock(1)], ..program(workers) }
}

pub(super) fn limits(accesses: u64) -> Limits {
    Limits { accesses, window_ns: 1e9 }
}

pub(super) fn model(program: &Program, machine: &Machine, accesses: u64) -> Modelled {
    simulate(program, machine, &machine.shape.topology(), limits(accesses), 1).expect("a Program that the model knows")
}

pub(super) fn refused(program: &Program, machine: &Machine) -> Refusal {
    simulate(program, machine, &machine.shape.topology(), limits(100), 1).expect_err("a Program that it does not know")
}

/// Simulates with a witness, and then lets `after` look at what has become of the engine and of the window.
pub(super) fn witnessed<T>(
    program: &Program,
    machine: &Machine,
    (limits, seed): (Limits, u64),
    after: impl FnOnce(&Engine<'_>, &Modelled) -> T,
) -> T {
    let (topology, scripts): (Topology, Scripts) = (machine.shape.topology(), Scripts::of(program));
    let mut engine = Engine::new(&scripts, program, machine, &topology, seed);
    engine.begin_locks();
    engine.witness = Some(Box::new(Witness::of(&engine)));
    let opened = engine.simulate(limits);
    let modelled = engine.finish(program, opened);
    after(&engine, &modelled)
}
