//! One seed, one result, to the bit: a fixed set of Programs on machines of each protocol, against a hash that stands
//! here. Debug and release builds are held against the same one, so they agree with each other. A change of the model
//! that is meant to change what comes out changes the hashes; the failure prints the new ones.

use super::kit::{self, worker};
use crate::machine::{CacheShape, Caches, Costs, Distance, Distances, Machine, Shape};
use crate::protocol::Protocol;
use crate::{Limits, Modelled, simulate};
use plan::{AccessKind, Address, CpuId, LockKind, Nanos, OpKind, PlacedLock, Program, Width, WorkerProgram};
use std::fmt::Write;

/// Two sockets of two clusters of four cores.
const SHAPE: Shape = Shape { sockets: 2, clusters: 2, cores: 4, threads: 2 };

const NEAR: Distance = Distance { fetch_ns: 31.7, tenure_ns: 1.3, spread: Distance::USUAL_SPREAD };

/// Figures that are nobody's: a machine that the lab knows may come to be known better.
const COSTS: Costs = Costs {
    load_ns: 0.11,
    store_ns: 0.27,
    bump_ns: 0.31,
    atomic_ns: 2.37,
    fence_ns: 7.9,
    pause_ns: 11.3,
    flush_ns: 51.7,
    instruction_ns: 0.083,
    clock_ns: 12.1,
    syscall_ns: 103.7,
    futex_ns: 251.3,
    wake_ns: 3_017.9,
    store_buffer: 16,
    window: 128,
};

const ACCESSES: u64 = 20_000;

fn machine(protocol: Protocol) -> Machine {
    let far = |fetch_ns, tenure_ns| Distance { fetch_ns, tenure_ns, ..NEAR };
    Machine {
        caches: Caches {
            l1: CacheShape { bytes: 1 << 10, ways: 4, ns: 0.0 },
            l2: CacheShape { bytes: 2 << 10, ways: 4, ns: 2.7 },
            llc: CacheShape { bytes: 8 << 10, ways: 8, ns: 10.9 },
            llc_is_inclusive: protocol == Protocol::Mesif,
            memory_ns: 97.3,
            fetches_pairs: true,
        },
        distances: Distances { cluster: NEAR, socket: far(71.3, 17.9), machine: far(133.1, 29.7) },
        costs: COSTS,
        ..kit::machine(protocol, SHAPE, NEAR)
    }
}

fn access(kind: AccessKind, at: Address) -> OpKind {
    OpKind::Access { kind, width: Width::U64, at }
}

fn fixed(kind: AccessKind, offset: u64) -> OpKind {
    kit::access(kind, offset)
}

/// Workers on every third CPU, so that they stand at all three distances.
fn program(workers: u32, ops: impl Fn(u64) -> Vec<OpKind>) -> Program {
    let on_every_third = |index: u32| WorkerProgram { cpu: CpuId(3 * index), ..worker(index, ops(index.into())) };
    kit::program((0..workers).map(on_every_third).collect())
}

fn packed(kind: AccessKind) -> Program {
    program(4, move |me| vec![fixed(kind, 8 * me)])
}

fn locked(kind: LockKind) -> Program {
    let timeout = None;
    let section = |me: u64| {
        let shared = kind.shares_readers() && me == 3;
        let inside = fixed(if shared { AccessKind::Load } else { AccessKind::Bump }, 64);
        vec![
            OpKind::Lock { lock: 0, shared, timeout },
            inside,
            OpKind::Work(Nanos(40)),
            OpKind::Unlock { lock: 0, shared },
            OpKind::Work(Nanos(90)),
        ]
    };
    let lock = PlacedLock { name: "m".into(), kind, offset: 1024 };
    Program { locks: vec![lock], ..program(4, section) }
}

/// What the hash is made of, by name.
fn programs() -> Vec<(String, Program)> {
    use AccessKind::{Add, Bump, Cas, Load, Store, Swap};
    let mut all: Vec<(String, Program)> = [Bump, Add, Load, Store, Swap, Cas]
        .into_iter()
        .map(|kind| (format!("packed {kind:?}"), packed(kind)))
        .collect();
    all.push(("padded".into(), program(4, |me| vec![fixed(Bump, 128 * me)])));
    let mut siblings = packed(Bump);
    siblings.workers[1].cpu = CpuId(16); // the first one's core
    all.push(("threads of a core".into(), siblings));
    all.push(("read-mostly".into(), program(4, |me| vec![fixed(if me == 0 { Add } else { Load }, 0)])));
    all.push(("pairs".into(), program(2, |me| vec![fixed(Bump, 64 * me), fixed(Load, 4096 + 128 * me)])));
    all.push(("straddling".into(), program(3, |me| vec![fixed(Add, 60), fixed(Bump, 124 + 128 * me)])));
    let many = || Address::Any((0..200).map(|line| 64 * line).collect());
    all.push((
        "more than the caches hold".into(),
        program(3, move |_| vec![access(Load, many()), access(Bump, many())]),
    ));
    let throw = |me: u64| {
        let (mine, other) = (64 * me, 64 * (1 - me));
        let (post, wait) =
            (OpKind::Post { width: Width::U64, at: mine }, OpKind::Wait { width: Width::U64, at: other });
        if me == 0 { vec![post, wait] } else { vec![wait, post] }
    };
    all.push(("thrown".into(), program(2, throw)));
    let mixed = |me: u64| {
        let flush = OpKind::Flush { at: Address::Fixed(0) };
        vec![fixed(Store, 8 * me), OpKind::Fence, fixed(Load, 0), flush, OpKind::Pause, OpKind::Sleep(Nanos(200))]
    };
    all.push(("fences, flushes and sleep".into(), program(3, mixed)));
    all.extend(LockKind::ALL.into_iter().map(|kind| (kind.name().to_owned(), locked(kind))));
    all
}

/// All that came out, floating-point figures by their bits.
fn canonical(modelled: &Modelled) -> String {
    let bits = |figure: Option<f64>| figure.map(f64::to_bits);
    let Modelled { workers, lines, window_ns, accesses, stuck } = modelled;
    let mut text = format!("{} {accesses} {stuck:?}\n", window_ns.to_bits());
    for of in workers {
        let crate::ModelledWorker { worker, role, cpu, passes, ns_per_op, tally, locks } = of;
        writeln!(text, "{worker} {role} {cpu} {passes} {:?} {:?} {locks:?}", bits(*ns_per_op), tally.named()).unwrap();
    }
    for of in lines {
        let crate::LineStory { index, transfers, tenures, ops_per_tenure, tenures_by_worker, pairs } = of;
        let ops = bits(*ops_per_tenure);
        writeln!(text, "{index} {transfers} {tenures} {ops:?} {tenures_by_worker:?} {pairs:?}").unwrap();
    }
    text
}

/// FNV-1a, 64 bits.
fn hash(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

fn modelled(program: &Program, machine: &Machine, seed: u64) -> Modelled {
    let limits = Limits { accesses: ACCESSES, window_ns: 1e6 };
    simulate(program, machine, &machine.shape.topology(), limits, seed).expect("a Program that the model knows")
}

/// Of every Program, by name and in order.
fn fingerprint(protocol: Protocol) -> (u64, String) {
    let machine = machine(protocol);
    let of = |(name, program): &(String, Program)| {
        let text = canonical(&modelled(program, &machine, 7));
        assert!(text.contains("l1d_loads"), "{name}: {text}");
        (hash(&text), format!("{name}: {:016x}\n", hash(&text)))
    };
    let each: Vec<(u64, String)> = programs().iter().map(of).collect();
    let lines: String = each.into_iter().map(|(_, line)| line).collect();
    (hash(&lines), lines)
}

fn assert_fingerprint(protocol: Protocol, expected: u64) {
    let (found, of_each) = fingerprint(protocol);
    assert_eq!(
        format!("{found:016x}"),
        format!("{expected:016x}"),
        "{} gives something else than it did, or than another build does. By Program:\n{of_each}",
        protocol.name()
    );
}

#[test]
fn mesi_gives_the_same_bits_in_every_build() {
    assert_fingerprint(Protocol::Mesi, 0xb34f_8987_4c68_4900);
}

#[test]
fn mesif_gives_the_same_bits_in_every_build() {
    assert_fingerprint(Protocol::Mesif, 0xab04_e9ac_2988_e908);
}

#[test]
fn moesi_gives_the_same_bits_in_every_build() {
    assert_fingerprint(Protocol::Moesi, 0x0184_ba9c_d45e_d69d);
}

#[test]
fn a_seed_gives_the_same_bits_twice_and_another_one_others() {
    let machine = machine(Protocol::Moesi);
    for (name, program) in programs() {
        let of = |seed| canonical(&modelled(&program, &machine, seed));
        assert_eq!(of(7), of(7), "{name}");
    }
    // Where cores meet, something is drawn: when a line is given up.
    let of = |seed| canonical(&modelled(&packed(AccessKind::Bump), &machine, seed));
    assert_ne!(of(7), of(8));
}
