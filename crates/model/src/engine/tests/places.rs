//! Where operations touch memory, how often, and when a worker begins.

use super::kit::{NEAR, access, cluster, every, limits, model, program, witnessed, worker};
use crate::engine::Limits;
use crate::machine::Caches;
use plan::{AccessKind, Address, Nanos, OpKind, Width};

#[test]
fn a_field_that_straddles_two_lines_is_an_access_in_each() {
    for (kind, accesses) in [(AccessKind::Load, 2), (AccessKind::Store, 2), (AccessKind::Bump, 4)] {
        let straddling = program(vec![worker(0, vec![access(kind, 60)])]);
        witnessed(&straddling, &cluster(1, NEAR), (limits(4_000), 1), |_, modelled| {
            assert_eq!(modelled.lines.iter().map(|line| line.index).collect::<Vec<_>>(), [0, 1]);
            let (worker, tally) = (&modelled.workers[0], modelled.workers[0].tally);
            assert_eq!(tally.l1d_loads + tally.l1d_stores, accesses * worker.passes, "{kind:?}");
        });
    }
    // Neither's other half is what it looks at, and both fight for the second line.
    let shared =
        program(vec![worker(0, vec![access(AccessKind::Bump, 60)]), worker(1, vec![access(AccessKind::Bump, 72)])]);
    let modelled = model(&shared, &cluster(2, NEAR), 40_000);
    let transfers = |index: usize| modelled.lines[index].transfers;
    assert!(transfers(1) > 1_000 && transfers(0) == 0, "{} {}", transfers(0), transfers(1));
    let pair = modelled.lines[1].pairs[0];
    assert_eq!([pair.held, pair.wanted].iter().max(), Some(&72));
}

#[test]
fn elements_drawn_at_random_straddle_where_they_do() {
    let at = Address::Any(vec![0, 60, 192]);
    let op = OpKind::Access { kind: AccessKind::Store, width: Width::U64, at };
    witnessed(&program(vec![worker(0, vec![op])]), &cluster(1, NEAR), (limits(6_000), 1), |_, modelled| {
        let worker = &modelled.workers[0];
        let share = worker.tally.l1d_stores as f64 / worker.passes as f64;
        assert!((share - 4.0 / 3.0).abs() < 0.05, "{share}");
    });
}

#[test]
fn every_nth_pass_makes_its_step_and_the_others_cost_an_instruction() {
    let mut rare = worker(0, vec![access(AccessKind::Load, 0)]);
    rare.ops.push(every(10, OpKind::Work(Nanos(100))));
    let modelled = model(&program(vec![rare]), &cluster(1, NEAR), 20_000);
    // 100 ns in ten passes, ten loads of 0.15 and nine instructions of 0.08.
    let expected = (100.0 + 10.0 * 0.15 + 9.0 * 0.08) / 10.0;
    let found = modelled.workers[0].ns_per_op.expect("passes");
    assert!((found / expected - 1.0).abs() < 0.01, "{found} where {expected} is expected");
}

#[test]
fn an_open_loop_keeps_its_rate_and_catches_up_after_a_long_pass() {
    let mut paced = worker(0, vec![access(AccessKind::Bump, 0)]);
    paced.period = Some(Nanos(1_000));
    paced.ops.push(every(50, OpKind::Work(Nanos(20_000))));
    let limits = Limits { accesses: 1_000_000, window_ns: 1e6 };
    witnessed(&program(vec![paced.clone()]), &cluster(1, NEAR), (limits, 1), |_, modelled| {
        assert!(modelled.workers[0].passes.abs_diff(1_000) <= 20, "{}", modelled.workers[0].passes);
    });
    // One that cannot keep up is a closed loop.
    paced.ops.push(every(1, OpKind::Work(Nanos(2_000))));
    witnessed(&program(vec![paced]), &cluster(1, NEAR), (limits, 1), |_, modelled| {
        assert!(modelled.workers[0].passes < 500, "{}", modelled.workers[0].passes);
    });
}

#[test]
fn a_worker_that_begins_later_touches_nothing_before() {
    let mut late = worker(1, vec![access(AccessKind::Bump, 0)]);
    late.after = Nanos(600_000);
    let early = worker(0, vec![access(AccessKind::Bump, 64), OpKind::Work(Nanos(100))]);
    let limits = Limits { accesses: 10_000_000, window_ns: 1e6 };
    witnessed(&program(vec![early.clone(), late.clone()]), &cluster(2, NEAR), (limits, 1), |_, modelled| {
        let passes = modelled.workers[1].passes;
        let expected = 400_000.0 / 0.33;
        assert!((passes as f64 / expected - 1.0).abs() < 0.01, "{passes}");
        assert!(modelled.workers[0].passes > 9_000);
    });
    late.after = Nanos(2_000_000);
    let modelled =
        crate::simulate(&program(vec![early, late]), &cluster(2, NEAR), &cluster(2, NEAR).shape.topology(), limits, 1)
            .expect("known");
    assert_eq!((modelled.workers[1].passes, modelled.stuck.is_empty()), (0, true));
}

#[test]
fn a_flush_drops_the_line_everywhere_and_its_stores_come_first() {
    let flush = OpKind::Flush { at: Address::Fixed(0) };
    let alone = program(vec![worker(0, vec![access(AccessKind::Store, 0), flush.clone()])]);
    witnessed(&alone, &cluster(1, NEAR), (limits(2_000), 1), |_, modelled| {
        let worker = &modelled.workers[0];
        assert!(worker.tally.write_backs.abs_diff(worker.passes) <= 1, "{worker:?}");
        assert!(worker.tally.l1d_store_misses.abs_diff(worker.passes) <= 1, "{worker:?}");
        // Memory, the flush, and what they are worth.
        assert!(worker.ns_per_op.is_some_and(|ns| (150.0..160.0).contains(&ns)), "{worker:?}");
    });
    let reader = worker(1, vec![access(AccessKind::Load, 8)]);
    let both = program(vec![worker(0, vec![flush, OpKind::Work(Nanos(1_000))]), reader]);
    witnessed(&both, &cluster(2, NEAR), (Limits { accesses: 10_000_000, window_ns: 1e6 }, 1), |_, modelled| {
        let (flusher, reader) = (&modelled.workers[0], &modelled.workers[1]);
        assert!(flusher.passes > 800 && reader.tally.l1d_load_misses.abs_diff(flusher.passes) <= 5, "{modelled:?}");
        assert!(flusher.tally.invalidations_sent.abs_diff(reader.tally.invalidations_received) <= 1);
    });
}

#[test]
fn a_line_comes_with_its_neighbour_where_the_machine_fetches_pairs() {
    let mut pairs = cluster(2, NEAR);
    pairs.caches = Caches { fetches_pairs: true, ..pairs.caches };
    let neighbours = program((0..2).map(|i| worker(i, vec![access(AccessKind::Bump, 64 * u64::from(i))])).collect());
    let apart = program((0..2).map(|i| worker(i, vec![access(AccessKind::Bump, 128 * u64::from(i))])).collect());
    let ns = |program, machine| model(program, machine, 40_000).workers[0].ns_per_op.expect("passes");
    assert!(ns(&apart, &pairs) < 0.34 && ns(&neighbours, &cluster(2, NEAR)) < 0.34);
    // A core's miss takes a copy of what its neighbour writes; once each has its own for itself nothing moves any more,
    // so that only lines which miss otherwise show it.
    let misses = |stride: u64| {
        let third = 8 * 64;
        let fights =
            |i: u64| worker(i as u32, vec![access(AccessKind::Bump, stride * i), access(AccessKind::Bump, third)]);
        let workers =
            vec![worker(0, vec![access(AccessKind::Bump, third), access(AccessKind::Bump, third + stride)]), fights(1)];
        model(&program(workers), &pairs, 40_000).workers[1].tally.pair_fetches
    };
    assert!(misses(64) > 100 * (misses(128) + 1), "{} against {}", misses(64), misses(128));
}
