//! Whether a Program fits its segment: asked before anything is made, and again by every worker before it runs.

use crate::map::SegmentMap;
use plan::{Address, LockKind, MemoryStep, OpKind, Program};

/// Why a Program cannot run in any segment. Compiled code trusts its numbers, so none is taken unchecked.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// An operation or a lock lies outside the fields area.
    #[error("{bytes} bytes at offset {offset} lie outside the fields area of {area_bytes} bytes")]
    OutsideArea {
        /// Its offset in the area.
        offset: u64,
        /// Its size.
        bytes: u64,
        /// The area's size.
        area_bytes: u64,
    },
    /// A lock stands where its kind cannot work.
    #[error("lock `{name}` at offset {offset} is not aligned to the {align} bytes its kind needs: place it elsewhere")]
    MisalignedLock {
        /// Its name.
        name: String,
        /// Its offset in the area.
        offset: u64,
        /// What its kind needs.
        align: u64,
    },
    /// The Program names no such lock, region or worker.
    #[error("the program names {what} {index}, and there are {count}")]
    NoSuch {
        /// `lock`, `region` or `worker`.
        what: &'static str,
        /// The index.
        index: u64,
        /// How many there are.
        count: u64,
    },
    /// A step on a region would go across its end.
    #[error("chunks of {chunk} bytes, {bytes} bytes a pass, do not go round region `{region}`")]
    OutsideRegion {
        /// The region's name.
        region: String,
        /// Bytes of a pass.
        bytes: u64,
        /// Bytes of a chunk.
        chunk: u64,
    },
    /// No mapping can be that large.
    #[error("a fields area of {area_bytes} bytes is more than any process can map: make the layout smaller")]
    TooLarge {
        /// The area's size.
        area_bytes: u64,
    },
}

impl SegmentMap {
    /// The map of a segment with `slots` slots for `program`.
    ///
    /// # Errors
    /// [`ProgramError`] where none can hold it.
    pub fn of(program: &Program, slots: u32) -> Result<SegmentMap, ProgramError> {
        check_program(program, slots)
    }
}

/// Checks that `program` runs in a segment with `slots` slots, and gives that segment's map: every operation and lock
/// lies inside the fields area, locks stand aligned, and every lock, region and worker named exists. Fields may lie
/// unaligned: straddling a line is among what is studied.
///
/// # Errors
/// [`ProgramError`] with the first offender.
pub(crate) fn check_program(program: &Program, slots: u32) -> Result<SegmentMap, ProgramError> {
    for lock in &program.locks {
        inside(program, lock.offset, LockKind::BYTES)?;
        check_alignment(&lock.name, lock.offset)?;
    }
    for worker in &program.workers {
        named("worker", worker.index.0, u64::from(slots))?;
        worker.ops.iter().try_for_each(|op| check_op(program, &op.kind))?;
        worker.populate.iter().try_for_each(|region| named("region", *region, program.regions.len() as u64))?;
    }
    let area_bytes = program.area_bytes;
    // A count past u32 is refused as too large: its nodes alone are.
    let locks = u32::try_from(program.locks.len()).ok();
    let map = locks.and_then(|locks| SegmentMap::new(slots, locks, area_bytes));
    map.ok_or(ProgramError::TooLarge { area_bytes })
}

fn check_op(program: &Program, op: &OpKind) -> Result<(), ProgramError> {
    match op {
        OpKind::Access { width, at, .. } => all_inside(program, at, width.bytes()),
        OpKind::Post { width, at } | OpKind::Wait { width, at } => inside(program, *at, width.bytes()),
        OpKind::Flush { at } => all_inside(program, at, 1),
        OpKind::Lock { lock, .. } | OpKind::Unlock { lock, .. } => named("lock", *lock, program.locks.len() as u64),
        OpKind::Memory(step) => check_memory(program, step),
        OpKind::Work(_) | OpKind::Pause | OpKind::Fence | OpKind::Yield | OpKind::Sleep(_) | OpKind::Die => Ok(()),
    }
}

/// Its chunks go round the region, so that a worker takes none across its end.
fn check_memory(program: &Program, step: &MemoryStep) -> Result<(), ProgramError> {
    named("region", step.region, program.regions.len() as u64)?;
    let region = &program.regions[step.region as usize];
    let goes_round = step.chunk > 0 && region.bytes.is_multiple_of(step.chunk);
    let fits = step.bytes <= region.bytes && (goes_round || !step.verb.needs_mapping(region.shared));
    match fits {
        true => Ok(()),
        false => Err(ProgramError::OutsideRegion { region: region.name.clone(), bytes: step.bytes, chunk: step.chunk }),
    }
}

fn all_inside(program: &Program, at: &Address, bytes: u64) -> Result<(), ProgramError> {
    match at {
        Address::Fixed(offset) => inside(program, *offset, bytes),
        Address::Any(offsets) => offsets.iter().try_for_each(|offset| inside(program, *offset, bytes)),
    }
}

fn inside(program: &Program, offset: u64, bytes: u64) -> Result<(), ProgramError> {
    match offset.checked_add(bytes) {
        Some(end) if end <= program.area_bytes => Ok(()),
        _ => Err(ProgramError::OutsideArea { offset, bytes, area_bytes: program.area_bytes }),
    }
}

fn check_alignment(name: &str, offset: u64) -> Result<(), ProgramError> {
    let align = LockKind::ALIGN;
    if offset.is_multiple_of(align) {
        Ok(())
    } else {
        Err(ProgramError::MisalignedLock { name: name.to_owned(), offset, align })
    }
}

fn named(what: &'static str, index: u32, count: u64) -> Result<(), ProgramError> {
    let index = u64::from(index);
    if index < count { Ok(()) } else { Err(ProgramError::NoSuch { what, index, count }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::program;
    use plan::{AccessKind, MemoryVerb, Op, Pages, Region, Width};

    fn with_op(kind: OpKind) -> Program {
        let mut program = program(128);
        program.workers[0].ops = vec![Op { every: 1, step: 0, kind }];
        program
    }

    fn access(at: Address) -> Program {
        with_op(OpKind::Access { kind: AccessKind::Add, width: Width::U64, at })
    }

    #[test]
    fn operations_outside_the_area_are_refused_up_to_its_last_byte() {
        assert!(check_program(&access(Address::Fixed(120)), 2).is_ok());
        let posts = [121, u64::MAX].map(|at| with_op(OpKind::Post { width: Width::U64, at }));
        let waits = [121, u64::MAX].map(|at| with_op(OpKind::Wait { width: Width::U64, at }));
        let accesses = [Address::Fixed(121), Address::Fixed(u64::MAX - 3), Address::Any(vec![0, 128])].map(access);
        let flushes = [with_op(OpKind::Flush { at: Address::Fixed(128) })];
        for bad in posts.iter().chain(&waits).chain(&accesses).chain(&flushes) {
            assert!(matches!(check_program(bad, 2), Err(ProgramError::OutsideArea { .. })), "{bad:?}");
        }
    }

    #[test]
    fn a_field_may_straddle_a_line_and_a_lock_may_not_lie_unaligned() {
        assert!(check_program(&access(Address::Fixed(61)), 2).is_ok());
        let mut bad = program(128);
        for offset in [1, 4, 60, 63] {
            bad.locks[0].offset = offset;
            let refused = check_program(&bad, 2).unwrap_err();
            assert_eq!(refused, ProgramError::MisalignedLock { name: "m".into(), offset, align: 8 });
        }
        bad.locks[0].offset = 72;
        assert!(matches!(check_program(&bad, 2), Err(ProgramError::OutsideArea { offset: 72, bytes: 64, .. })));
        bad.locks[0].offset = 64;
        assert!(check_program(&bad, 2).is_ok());
    }

    #[test]
    fn locks_regions_and_workers_that_do_not_exist_are_named() {
        let touch = |bytes, chunk| {
            let verb = MemoryVerb::Touch;
            OpKind::Memory(MemoryStep { verb, region: 0, bytes, chunk, pause: plan::Nanos(0) })
        };
        let refused = check_program(&with_op(touch(4096, 4096)), 2);
        assert_eq!(refused, Err(ProgramError::NoSuch { what: "region", index: 0, count: 0 }));
        let mut populating = program(128);
        populating.workers[0].populate = vec![3];
        assert_eq!(check_program(&populating, 2), Err(ProgramError::NoSuch { what: "region", index: 3, count: 0 }));
        let in_region = |bytes, chunk| {
            let mut program = with_op(touch(bytes, chunk));
            program.regions = vec![Region { name: "heap".into(), bytes: 8192, shared: false, pages: Pages::Small }];
            check_program(&program, 2).is_ok()
        };
        assert!(in_region(8192, 4096) && in_region(4096, 4096));
        assert!(!in_region(12288, 4096) && !in_region(8192, 3 * 4096) && !in_region(4096, 0));
        for kind in [OpKind::Lock { lock: 1, shared: false, timeout: None }, OpKind::Unlock { lock: 1, shared: false }]
        {
            let refused = check_program(&with_op(kind), 2);
            assert_eq!(refused, Err(ProgramError::NoSuch { what: "lock", index: 1, count: 1 }));
        }
        let mut bad = program(128);
        bad.workers[0].index.0 = 2;
        assert_eq!(check_program(&bad, 2), Err(ProgramError::NoSuch { what: "worker", index: 2, count: 2 }));
    }

    #[test]
    fn an_area_that_no_process_can_map_is_refused() {
        let area_bytes = u64::MAX - 100;
        assert_eq!(check_program(&program(area_bytes), 2), Err(ProgramError::TooLarge { area_bytes }));
    }
}
