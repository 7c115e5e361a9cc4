//! Memory grows with the lines touched, never with time.

use super::kit::{NEAR, TINY, access, cluster, limits, lock, locked, program, unlock, witnessed, worker};
use crate::engine::{Engine, Limits};
use plan::{AccessKind, Address, LockKind, Nanos, OpKind, Program, Width};

/// What the longer run may come to need once more, as something rare happens: one reservation.
const SLACK: usize = 64;

/// What is reserved and entered, in things of all kinds.
fn size(engine: &Engine<'_>) -> usize {
    let workers: usize = engine.workers.iter().map(|worker| worker.capacity()).sum();
    let sleepers: usize = engine.sleepers.iter().map(|sleepers| sleepers.capacity()).sum();
    let lines: usize = engine.lines.iter().map(|line| line.held.capacity() + line.story.capacity()).sum();
    workers + sleepers + lines + engine.calendar.capacity()
}

fn sizes(program: &Program) -> [usize; 2] {
    [20_000, 200_000]
        .map(|accesses| witnessed(program, &cluster(4, NEAR), (limits(accesses), 1), |engine, _| size(engine)))
}

#[test]
fn ten_times_as_long_needs_no_more_room() {
    let packed = |kind| program((0..4).map(|i| worker(i, vec![access(kind, 8 * u64::from(i))])).collect());
    for kind in [AccessKind::Bump, AccessKind::Add, AccessKind::Load, AccessKind::Store] {
        let [short, long] = sizes(&packed(kind));
        assert!(long <= short + SLACK, "{kind:?}: {short}, {long}");
    }
    // Timeouts that never come to pass are struck out.
    for kind in [LockKind::Futex, LockKind::Ttas, LockKind::PthreadPi] {
        let section = |i| {
            worker(i, vec![lock(Some(1_000_000_000)), access(AccessKind::Bump, 0), unlock(), OpKind::Work(Nanos(20))])
        };
        let [short, long] = sizes(&locked(kind, (0..4).map(section).collect()));
        assert!(long <= short + SLACK, "{}: {short}, {long}", kind.name());
    }
}

#[test]
fn lines_that_nobody_touches_take_no_room_for_cores() {
    let at = Address::Any((0..1_000).map(|line| 64 * line).collect());
    let op = OpKind::Access { kind: AccessKind::Load, width: Width::U64, at };
    let wide = program((0..4).map(|i| worker(i, vec![op.clone()])).collect());
    let mut tiny = cluster(4, NEAR);
    tiny.caches = TINY;
    witnessed(&wide, &tiny, (Limits { accesses: 100, window_ns: 1e9 }, 1), |engine, modelled| {
        let touched = engine.lines.iter().filter(|line| line.held.capacity() > 0).count();
        assert!(touched <= 150 && touched >= modelled.lines.len(), "{touched} of 1000");
    });
}
