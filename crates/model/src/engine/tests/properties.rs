//! What holds for every Program on every machine: the witness has looked after each event.

use super::kit::{TINY, locked, machine, witnessed, worker};
use crate::Modelled;
use crate::engine::{Engine, Limits};
use crate::machine::{Caches, Distance, Distances, Machine, Shape};
use crate::protocol::Protocol;
use plan::{AccessKind, Address, LockKind, Nanos, Op, OpKind, Program, Width, WorkerProgram};
use proptest::prelude::*;

/// Words that share lines, pairs, and sets of the tiny caches; one straddles two lines.
const OFFSETS: [u64; 10] = [0, 8, 60, 72, 128, 192, 512, 520, 1024, 1536];
/// Those that an atomic may touch.
const ALIGNED: [u64; 9] = [0, 8, 72, 128, 192, 512, 520, 1024, 1536];

fn address(offsets: &'static [u64]) -> impl Strategy<Value = Address> {
    prop_oneof![
        4 => prop::sample::select(offsets).prop_map(Address::Fixed),
        1 => prop::sample::subsequence(offsets, 1..offsets.len()).prop_map(Address::Any),
    ]
}

fn memory_op() -> impl Strategy<Value = OpKind> {
    let plain = prop::sample::select(&[AccessKind::Load, AccessKind::Store, AccessKind::Bump][..]);
    let atomic = prop::sample::select(&[AccessKind::Add, AccessKind::Swap, AccessKind::Cas][..]);
    let access = |(kind, at)| OpKind::Access { kind, width: Width::U64, at };
    prop_oneof![
        8 => (plain, address(&OFFSETS)).prop_map(access),
        4 => (atomic, address(&ALIGNED)).prop_map(access),
        1 => address(&ALIGNED).prop_map(|at| OpKind::Flush { at }),
    ]
}

fn quiet_op() -> impl Strategy<Value = OpKind> {
    prop_oneof![
        2 => (0_u64..300).prop_map(|ns| OpKind::Work(Nanos(ns))),
        1 => Just(OpKind::Pause),
        1 => Just(OpKind::Fence),
        1 => Just(OpKind::Yield),
    ]
}

fn signal_op() -> impl Strategy<Value = OpKind> {
    (prop::sample::select(&[0_u64, 72, 512][..]), any::<bool>()).prop_map(|(at, posts)| match posts {
        true => OpKind::Post { width: Width::U64, at },
        false => OpKind::Wait { width: Width::U64, at },
    })
}

/// Operations inside a section, or none where `lock` is `None`.
fn block() -> impl Strategy<Value = Vec<OpKind>> {
    let lock = prop::option::weighted(0.4, (0_u32..2, any::<bool>(), prop::option::weighted(0.3, 0_u64..9_000)));
    let body = prop::collection::vec(prop_oneof![5 => memory_op(), 1 => quiet_op()], 1..4);
    (lock, body).prop_map(|(section, body)| {
        let Some((lock, shared, timeout)) = section else { return body };
        let mut ops = vec![OpKind::Lock { lock, shared, timeout: timeout.map(Nanos) }];
        ops.extend(body);
        ops.push(OpKind::Unlock { lock, shared });
        ops
    })
}

fn looped(signals: bool) -> impl Strategy<Value = WorkerProgram> {
    let signal = if signals { signal_op().boxed() } else { quiet_op().boxed() };
    let part = prop_oneof![4 => block(), 1 => signal.prop_map(|op| vec![op])];
    let rare = prop_oneof![6 => Just(1_u32), 1 => 2_u32..6];
    let ops = prop::collection::vec((part, rare), 1..5);
    let times = (prop::option::weighted(0.1, 0_u64..2_000), prop_oneof![8 => Just(0_u64), 1 => 0_u64..3_000]);
    (ops, times).prop_map(|(parts, (period, after))| {
        let op = |every: u32| move |kind| Op { every, step: 0, kind };
        // A scenario locks in every pass: what a pass leaves out is never one half of a section.
        let is_section = |kinds: &[OpKind]| kinds.iter().any(|kind| matches!(kind, OpKind::Lock { .. }));
        let ops = parts.into_iter().flat_map(|(kinds, every)| {
            let every = if is_section(&kinds) { 1 } else { every };
            kinds.into_iter().map(op(every)).collect::<Vec<_>>()
        });
        let looped = worker(0, vec![]);
        WorkerProgram { ops: ops.collect(), period: period.map(Nanos), after: Nanos(after), ..looped }
    })
}

fn any_machine() -> impl Strategy<Value = Machine> {
    let protocol = prop::sample::select(&[Protocol::Mesi, Protocol::Mesif, Protocol::Moesi][..]);
    let shape = (1_u32..3, 1_u32..3, 1_u32..4, 1_u32..3);
    let distance = || {
        (1.0..200.0_f64, 0.0..50.0_f64, 0.0..0.3_f64).prop_map(|(fetch_ns, tenure_ns, spread)| Distance {
            fetch_ns,
            tenure_ns,
            spread,
        })
    };
    let distances = (distance(), distance(), distance());
    let caches = (any::<bool>(), any::<bool>(), any::<bool>());
    let buffers = (1_u32..9, 1_u32..40);
    (protocol, shape, distances, caches, buffers).prop_map(
        |(protocol, (sockets, clusters, cores, threads), distances, (tiny, llc_is_inclusive, pairs), buffers)| {
            let shape = Shape { sockets, clusters, cores, threads };
            let mut machine = machine(protocol, shape, distances.0);
            let caches = if tiny { TINY } else { machine.caches };
            machine.caches = Caches { llc_is_inclusive, fetches_pairs: pairs, ..caches };
            machine.distances = Distances { cluster: distances.0, socket: distances.1, machine: distances.2 };
            (machine.costs.store_buffer, machine.costs.window) = buffers;
            machine
        },
    )
}

fn any_program(signals: bool) -> impl Strategy<Value = (Program, Machine)> {
    let workers = prop::collection::vec(looped(signals), 1..7);
    let kind = prop::sample::select(&LockKind::ALL[..]);
    (workers, kind, any_machine()).prop_map(|(mut workers, kind, machine)| {
        let cpus = machine.shape.topology().cpus.len();
        workers.truncate(cpus);
        for (nth, worker) in workers.iter_mut().enumerate() {
            *worker =
                WorkerProgram { index: plan::WorkerIndex(nth as u32), cpu: plan::CpuId(nth as u32), ..worker.clone() };
            for op in &mut worker.ops {
                match &mut op.kind {
                    OpKind::Lock { timeout, .. } if !kind.times_out() => *timeout = None,
                    _ => {}
                }
            }
        }
        (locked(kind, workers), machine)
    })
}

const SHORT: Limits = Limits { accesses: 3_000, window_ns: 2e5 };

/// What must add up when all is over.
fn adds_up(engine: &Engine<'_>, modelled: &Modelled) -> Result<(), TestCaseError> {
    for worker in &engine.workers {
        let t = worker.tally;
        let kinds = t.cold_misses + t.capacity_misses + t.conflict_misses + t.coherence_misses + t.upgrades;
        prop_assert_eq!(kinds, t.l1d_load_misses + t.l1d_store_misses, "{:?}", t);
        prop_assert!(t.llc_load_misses <= t.llc_loads && t.llc_loads <= kinds, "{:?}", t);
    }
    let sum = |of: fn(&crate::Tally) -> u64| engine.workers.iter().map(|worker| of(&worker.tally)).sum::<u64>();
    prop_assert_eq!(sum(|t| t.invalidations_sent), sum(|t| t.invalidations_received));
    prop_assert!(sum(|t| t.modified_line_hits) <= sum(|t| t.l1d_load_misses + t.l1d_store_misses + t.pair_fetches));
    for line in &modelled.lines {
        prop_assert_eq!(line.pairs.iter().map(|pair| pair.transfers).sum::<u64>(), line.transfers);
        let tenures = line.tenures_by_worker.iter().sum::<u64>();
        prop_assert_eq!(line.tenures, tenures);
        // Each tenure but the first begins where another one, or sharing, has ended.
        prop_assert!(line.ops_per_tenure.is_some() == (tenures > 0));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn one_writes_or_many_read_and_a_value_read_is_the_last_one_written(
        (program, machine) in any_program(true),
        seed in any::<u64>(),
    ) {
        witnessed(&program, &machine, (SHORT, seed), adds_up)?;
    }

    #[test]
    fn without_signals_everybody_gets_on_or_is_told_to_be_stuck(
        (program, machine) in any_program(false),
        seed in any::<u64>(),
    ) {
        witnessed(&program, &machine, (SHORT, seed), |_, modelled| {
            prop_assert!(modelled.window_ns > 0.0);
            prop_assert!(modelled.accesses >= SHORT.accesses || modelled.window_ns >= 1e5, "{:?}", modelled);
            Ok(())
        })?;
    }

    #[test]
    fn passes_times_operations_are_the_accesses(
        ops in prop::collection::vec(memory_op(), 1..6),
        workers in 1_u32..5,
        machine in any_machine(),
        seed in any::<u64>(),
    ) {
        let cpus = machine.shape.topology().cpus.len() as u32;
        let aligned = |op: &OpKind| match op {
            OpKind::Access { at: Address::Fixed(offset), .. } => ALIGNED.contains(offset),
            OpKind::Access { at: Address::Any(offsets), .. } => offsets.iter().all(|offset| ALIGNED.contains(offset)),
            _ => true,
        };
        let ops: Vec<OpKind> = ops.into_iter().filter(aligned).collect();
        let a_pass = |of: &dyn Fn(AccessKind) -> bool| {
            ops.iter().filter(|op| matches!(op, OpKind::Access { kind, .. } if of(*kind))).count() as u64
        };
        let (reads, writes) = (a_pass(&|kind| kind != AccessKind::Store), a_pass(&|kind| kind != AccessKind::Load));
        let program = super::kit::program((0..workers.min(cpus)).map(|index| worker(index, ops.clone())).collect());
        witnessed(&program, &machine, (SHORT, seed), |_, modelled| {
            for worker in &modelled.workers {
                prop_assert!(worker.tally.l1d_loads.abs_diff(reads * worker.passes) <= reads, "{:?}", worker);
                prop_assert!(worker.tally.l1d_stores.abs_diff(writes * worker.passes) <= writes, "{:?}", worker);
            }
            Ok(())
        })?;
    }

    #[test]
    fn the_same_seed_gives_the_same_result(
        (program, machine) in any_program(true),
        seed in any::<u64>(),
    ) {
        let whole = || witnessed(&program, &machine, (SHORT, seed), |_, modelled| modelled.clone());
        prop_assert_eq!(whole(), whole());
    }
}
