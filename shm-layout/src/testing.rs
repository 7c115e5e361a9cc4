//! What this crate's own tests share.

use crate::segment::{SHM_FOLDER, SegmentSpec};
use plan::TickRate;
use plan::{CpuId, Layout, LockKind, Nanos, PlacedLock, Program, WorkerIndex, WorkerProgram};

/// One worker that does nothing, and one lock, `m`, at offset 64.
pub(crate) fn program(area_bytes: u64) -> Program {
    Program {
        timed_locks: true,
        arm: "test".into(),
        window: Nanos(1_000_000),
        warm_up: Nanos(0),
        layout: Layout { placed: vec![], bytes: area_bytes },
        area_bytes,
        locks: vec![PlacedLock { name: "m".into(), kind: LockKind::Pthread, offset: 64 }],
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

/// What a segment of two slots for `program` is made from.
pub(crate) fn spec<'a>(program: &'a Program, encoded: &'a [u8]) -> SegmentSpec<'a> {
    SegmentSpec { program, encoded_program: encoded, slots: 2, rate: TickRate { ticks_per_ns: 1.0 }, node: None }
}

/// Whether a segment of that name can be found.
pub(crate) fn exists(name: &str) -> bool {
    std::path::Path::new(SHM_FOLDER).join(name).exists()
}
