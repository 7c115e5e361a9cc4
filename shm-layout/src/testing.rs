//! What this crate's own tests share.

use crate::segment::{SHM_FOLDER, SegmentSpec};
use plan::{Layout, LockKind, PlacedLock, Program, TickRate, WorkerProgram};

/// One worker that does nothing, and one lock, `m`, at offset 64.
pub(crate) fn program(area_bytes: u64) -> Program {
    Program {
        layout: Layout { placed: vec![], bytes: area_bytes },
        area_bytes,
        locks: vec![PlacedLock { name: "m".into(), kind: LockKind::Pthread, offset: 64 }],
        ..Program::of([WorkerProgram::of([])])
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
