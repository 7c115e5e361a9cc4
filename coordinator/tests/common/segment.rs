//! Segments as a coordinator makes them, for tests that need one with its name for as long as they like.

use plan::{CpuId, Layout, LockKind, Nanos, PlacedLock, Program, TickRate, WorkerIndex, WorkerProgram};
use shm_layout::{Segment, SegmentSpec};

/// One worker that does nothing, and a lock.
pub(crate) fn program() -> Program {
    Program {
        timed_locks: true,
        arm: "test".into(),
        window: Nanos(1_000_000),
        warm_up: Nanos(0),
        layout: Layout { placed: vec![], bytes: 64 },
        area_bytes: 64,
        locks: vec![PlacedLock { name: "m".into(), kind: LockKind::Ticket, offset: 0 }],
        regions: vec![],
        workers: vec![WorkerProgram {
            process: 0,
            period: None,
            latency: false,
            index: WorkerIndex(0),
            role: 0,
            role_name: "r".into(),
            cpu: CpuId(0),
            after: Nanos(0),
            populate: vec![],
            steps: vec![],
            ops: vec![],
        }],
        shares_cpu: false,
        seed: 1,
    }
}

/// What stands for the encoded program; its hash is what counts.
pub(crate) const ENCODED: &[u8] = b"a program";

/// A segment with its name, which this process holds.
pub(crate) fn created() -> Segment {
    let (program, rate) = (program(), TickRate { ticks_per_ns: 1.0 });
    Segment::create(&SegmentSpec { program: &program, encoded_program: ENCODED, slots: 1, rate, node: None }).unwrap()
}
