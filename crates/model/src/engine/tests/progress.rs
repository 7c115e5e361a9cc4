//! Nothing that waits makes the simulation go on for ever: what nobody can end is told, and the window passes.

use super::kit::{FAR, NEAR, access, cluster, limits, locked, model, program, refused, witnessed, worker};
use crate::engine::{Limits, Refusal};
use crate::machine::Shape;
use crate::protocol::Protocol;
use plan::{AccessKind, LockKind, Nanos, OpKind, Width};

const WINDOW: Limits = Limits { accesses: 100_000, window_ns: 2e6 };

fn wait(at: u64) -> OpKind {
    OpKind::Wait { width: Width::U64, at }
}

fn post(at: u64) -> OpKind {
    OpKind::Post { width: Width::U64, at }
}

fn take(lock: u32) -> OpKind {
    OpKind::Lock { lock, shared: false, timeout: None }
}

fn give(lock: u32) -> OpKind {
    OpKind::Unlock { lock, shared: false }
}

#[test]
fn waits_that_nobody_ends_are_told_and_the_window_passes() {
    let waits = program(vec![worker(0, vec![wait(0), post(64)]), worker(1, vec![wait(64), post(0)])]);
    witnessed(&waits, &cluster(2, NEAR), (WINDOW, 1), |_, modelled| {
        assert_eq!(modelled.stuck, [0, 1]);
        assert_eq!(modelled.window_ns, 2e6);
        assert!(modelled.workers.iter().all(|worker| worker.passes == 0 && worker.ns_per_op.is_none()));
    });
}

#[test]
fn one_that_waits_in_vain_beside_one_that_goes_on_is_not_called_stuck() {
    let one = program(vec![worker(0, vec![wait(0)]), worker(1, vec![access(AccessKind::Bump, 64)])]);
    let modelled = model(&one, &cluster(2, NEAR), 10_000);
    assert!(modelled.stuck.is_empty());
    assert_eq!((modelled.workers[0].passes, modelled.workers[1].passes > 1_000), (0, true));
}

#[test]
fn locks_taken_in_opposite_orders_end_every_kind_in_time() {
    for kind in LockKind::ALL {
        let order = |index: u32, first: u32, second: u32| {
            let hold = || OpKind::Work(Nanos(500));
            worker(index, vec![take(first), hold(), take(second), hold(), give(second), give(first)])
        };
        let program = locked(kind, vec![order(0, 0, 1), order(1, 1, 0)]);
        witnessed(&program, &cluster(2, NEAR), (WINDOW, 1), |engine, modelled| {
            let gets_on = modelled.workers.iter().any(|worker| worker.passes > 0);
            // Test-and-set goes on trying; what else waits, waits for ever.
            assert!(modelled.stuck == [0, 1] || gets_on || kind == LockKind::Tas, "{}: {modelled:?}", kind.name());
            let looks = engine.witness.as_ref().map_or(0, |witness| witness.looks);
            assert!(looks < 2_000_000, "{}: {looks} events", kind.name());
        });
    }
}

#[test]
fn an_owner_that_never_releases_keeps_the_others_for_ever() {
    for kind in LockKind::ALL.into_iter().filter(|&kind| kind != LockKind::Tas) {
        let keeps = locked(kind, vec![worker(0, vec![take(0), wait(512)]), worker(1, vec![take(0), give(0)])]);
        let modelled = model(&keeps, &cluster(2, FAR), 50_000);
        assert!(modelled.stuck.contains(&0), "{}: {:?}", kind.name(), modelled.stuck);
    }
}

#[test]
fn threads_of_one_core_that_want_the_same_line_both_get_on() {
    let shape = Shape { sockets: 1, clusters: 1, cores: 2, threads: 2 };
    let machine = super::kit::machine(Protocol::Mesif, shape, NEAR);
    for kind in [AccessKind::Bump, AccessKind::Add, AccessKind::Cas, AccessKind::Load] {
        // CPUs 0 and 2 are threads of core 0.
        let program = program((0..4).map(|index| worker(index, vec![access(kind, 8 * u64::from(index))])).collect());
        witnessed(&program, &machine, (limits(20_000), 1), |_, modelled| {
            let passes: Vec<u64> = modelled.workers.iter().map(|worker| worker.passes).collect();
            assert!(passes.iter().all(|&passes| passes > 500), "{kind:?}: {passes:?}");
        });
    }
}

#[test]
fn passes_without_an_access_end_with_the_window() {
    for op in [OpKind::Pause, OpKind::Work(Nanos(0)), OpKind::Fence, OpKind::Yield, OpKind::Sleep(Nanos(0))] {
        let short = Limits { accesses: 1_000, window_ns: 1e5 };
        let program = program(vec![worker(0, vec![op.clone()])]);
        witnessed(&program, &cluster(1, NEAR), (short, 1), |_, modelled| {
            assert_eq!((modelled.window_ns, modelled.accesses), (1e5, 0), "{op:?}");
            assert!(modelled.workers[0].passes > 0, "{op:?}");
        });
    }
}

#[test]
fn more_cores_than_the_model_keeps_apart_are_refused() {
    let program = program((0..129).map(|index| worker(index, vec![access(AccessKind::Load, 0)])).collect());
    assert_eq!(refused(&program, &cluster(129, NEAR)), Refusal::TooManyCores { cores: 129, most: 128 });
}
