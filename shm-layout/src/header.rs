//! The segment's first 128 bytes: who may attach, and where everything lies.

use crate::SharedMemory;
use crate::clock::TickRate;
use crate::control::Control;
use crate::slot::Slot;
use plan::{LINE_PAIR_BYTES, Program};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::{align_of, offset_of, size_of};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// `contlab` and a zero byte, little-endian: tells the lab's segments from others.
const MAGIC: u64 = u64::from_le_bytes(*b"contlab\0");

/// Version of the map. A worker and a coordinator of different versions never meet: they are one executable.
const VERSION: u32 = 1;

/// Alignment of the fields area: a page, so that offsets in it decide lines and pairs alone.
const AREA_ALIGN: u64 = 4096;

/// The header. All atomics only because shared memory allows no other plain access; it is written before the segment's
/// name is given to anyone, and never again.
#[repr(C, align(128))]
#[derive(Debug, Default)]
pub struct Header {
    magic: AtomicU64,
    version: AtomicU32,
    workers: AtomicU32,
    program_hash: AtomicU64,
    segment_bytes: AtomicU64,
    slots_offset: AtomicU64,
    slot_bytes: AtomicU64,
    area_offset: AtomicU64,
    area_bytes: AtomicU64,
    ticks_per_ns_bits: AtomicU64,
}

// SAFETY: repr(C), fixed-width atomics only; any bit pattern is valid and is checked before use.
#[allow(unsafe_code)]
unsafe impl SharedMemory for Header {}

const _: () = {
    assert!(size_of::<Header>() == 128 && align_of::<Header>() == 128);
    assert!(offset_of!(Header, magic) == 0);
    assert!(offset_of!(Header, program_hash) == 16);
    assert!(offset_of!(Header, ticks_per_ns_bits) == 64);
    assert!(size_of::<Control>().is_multiple_of(LINE_PAIR_BYTES as usize));
    assert!(size_of::<Slot>().is_multiple_of(LINE_PAIR_BYTES as usize));
};

/// Where everything lies in a segment for so many workers and such an area. Offsets from the segment's start, bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SegmentMap {
    /// Number of slots.
    pub workers: u32,
    /// The control block.
    pub control_offset: u64,
    /// The first slot.
    pub slots_offset: u64,
    /// The fields area, page-aligned.
    pub area_offset: u64,
    /// Its length.
    pub area_bytes: u64,
    /// The whole segment, whole pages.
    pub segment_bytes: u64,
}

impl SegmentMap {
    /// The map for `workers` slots and a fields area of `area_bytes`.
    pub fn new(workers: u32, area_bytes: u64) -> SegmentMap {
        let control_offset = size_of::<Header>() as u64;
        let slots_offset = control_offset + size_of::<Control>() as u64;
        let slots_end = slots_offset + u64::from(workers) * size_of::<Slot>() as u64;
        let area_offset = slots_end.next_multiple_of(AREA_ALIGN);
        let segment_bytes = (area_offset + area_bytes.max(1)).next_multiple_of(AREA_ALIGN);
        SegmentMap { workers, control_offset, slots_offset, area_offset, area_bytes, segment_bytes }
    }
}

/// Hash of the encoded Program, which both sides must share. Std's `DefaultHasher` is the same in one executable, and
/// coordinator and worker are one.
pub fn program_hash(encoded: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    encoded.hash(&mut hasher);
    hasher.finish()
}

/// Why a worker will not use a segment.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// A number in the header is not what this worker's Program and executable say.
    #[error("the segment's {field} is {found:#x} where {expected:#x} is expected")]
    Mismatch {
        /// Which.
        field: &'static str,
        /// In the segment.
        found: u64,
        /// As computed here.
        expected: u64,
    },
    /// An operation of the Program lies outside the fields area.
    #[error("operation at offset {offset} of {bytes} bytes lies outside the fields area of {area_bytes} bytes")]
    OutsideArea {
        /// Its offset in the area.
        offset: u64,
        /// Its size.
        bytes: u64,
        /// The area's size.
        area_bytes: u64,
    },
    /// The Program names no such lock or worker.
    #[error("the program names {what} {index}, and there are {count}")]
    NoSuch {
        /// `lock` or `worker`.
        what: &'static str,
        /// The index.
        index: u64,
        /// How many there are.
        count: u64,
    },
}

impl Header {
    /// Writes the header. Coordinator only, before the name is given away.
    pub fn write(&self, map: &SegmentMap, program_hash: u64, rate: TickRate) {
        let set = |word: &AtomicU64, value| word.store(value, Ordering::Relaxed);
        set(&self.program_hash, program_hash);
        set(&self.segment_bytes, map.segment_bytes);
        set(&self.slots_offset, map.slots_offset);
        set(&self.slot_bytes, size_of::<Slot>() as u64);
        set(&self.area_offset, map.area_offset);
        set(&self.area_bytes, map.area_bytes);
        set(&self.ticks_per_ns_bits, rate.ticks_per_ns.to_bits());
        self.workers.store(map.workers, Ordering::Relaxed);
        self.version.store(VERSION, Ordering::Relaxed);
        // Release; pairs with the Acquire in `check`: who sees the magic sees the rest.
        self.magic.store(MAGIC, Ordering::Release);
    }

    /// Checks every number against what this process computed itself, so that no offset is taken from the segment.
    ///
    /// # Errors
    /// [`HeaderError::Mismatch`] with the first that differs.
    pub fn check(&self, map: &SegmentMap, program_hash: u64) -> Result<(), HeaderError> {
        // Acquire; pairs with the Release in `write`.
        let magic = self.magic.load(Ordering::Acquire);
        let get = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let rows = [
            ("magic", magic, MAGIC),
            ("version", u64::from(self.version.load(Ordering::Relaxed)), u64::from(VERSION)),
            ("worker count", u64::from(self.workers.load(Ordering::Relaxed)), u64::from(map.workers)),
            ("program hash", get(&self.program_hash), program_hash),
            ("size", get(&self.segment_bytes), map.segment_bytes),
            ("slots offset", get(&self.slots_offset), map.slots_offset),
            ("slot size", get(&self.slot_bytes), size_of::<Slot>() as u64),
            ("area offset", get(&self.area_offset), map.area_offset),
            ("area size", get(&self.area_bytes), map.area_bytes),
        ];
        match rows.into_iter().find(|(_, found, expected)| found != expected) {
            Some((field, found, expected)) => Err(HeaderError::Mismatch { field, found, expected }),
            None => Ok(()),
        }
    }

    /// The coordinator's calibration.
    pub fn tick_rate(&self) -> TickRate {
        TickRate { ticks_per_ns: f64::from_bits(self.ticks_per_ns_bits.load(Ordering::Relaxed)) }
    }
}

/// Checks that every operation of `program` lies inside its fields area and names locks that exist: compiled code
/// trusts these numbers from then on.
///
/// # Errors
/// [`HeaderError::OutsideArea`] or [`HeaderError::NoSuch`] with the first offender.
pub(crate) fn check_program(program: &Program) -> Result<(), HeaderError> {
    use plan::{Address, OpKind};
    let inside = |offset: u64, bytes: u64| match offset.checked_add(bytes) {
        Some(end) if end <= program.area_bytes => Ok(()),
        _ => Err(HeaderError::OutsideArea { offset, bytes, area_bytes: program.area_bytes }),
    };
    let all_inside = |at: &Address, bytes: u64| match at {
        Address::Fixed(offset) => inside(*offset, bytes),
        Address::Any(offsets) => offsets.iter().try_for_each(|offset| inside(*offset, bytes)),
    };
    for lock in &program.locks {
        inside(lock.offset, lock.kind.bytes())?;
    }
    let locks = program.locks.len() as u64;
    for op in program.workers.iter().flat_map(|w| &w.ops) {
        match &op.kind {
            OpKind::Access { width, at, .. } => all_inside(at, width.bytes())?,
            OpKind::Post { width, at } | OpKind::Wait { width, at } => inside(*at, width.bytes())?,
            OpKind::Flush { at } => all_inside(at, 1)?,
            OpKind::Lock { lock } | OpKind::Unlock { lock } if u64::from(*lock) >= locks => {
                return Err(HeaderError::NoSuch { what: "lock", index: u64::from(*lock), count: locks });
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written() -> (Header, SegmentMap) {
        let map = SegmentMap::new(2, 128);
        let header = Header::default();
        header.write(&map, 7, TickRate { ticks_per_ns: 2.6 });
        (header, map)
    }

    #[test]
    fn what_was_written_checks() {
        let (header, map) = written();
        assert_eq!(header.check(&map, 7), Ok(()));
        assert_eq!(header.tick_rate().ticks_per_ns, 2.6);
    }

    #[test]
    fn every_number_that_differs_is_named() {
        let (header, map) = written();
        assert!(matches!(header.check(&map, 8), Err(HeaderError::Mismatch { field: "program hash", .. })));
        let other = SegmentMap::new(3, 128);
        assert!(matches!(header.check(&other, 7), Err(HeaderError::Mismatch { field: "worker count", .. })));
        header.magic.store(0, Ordering::Relaxed);
        assert!(matches!(header.check(&map, 7), Err(HeaderError::Mismatch { field: "magic", .. })));
        let (header, _) = written();
        header.area_offset.store(1 << 40, Ordering::Relaxed);
        assert!(matches!(header.check(&map, 7), Err(HeaderError::Mismatch { field: "area offset", .. })));
    }

    #[test]
    fn parts_of_the_map_share_no_line_pair() {
        for workers in [1, 2, 17, 128] {
            let map = SegmentMap::new(workers, 100);
            assert_eq!(map.control_offset, 128);
            assert_eq!(map.slots_offset, 640);
            assert!(map.slots_offset + u64::from(workers) * 256 <= map.area_offset);
            assert_eq!(map.area_offset % 4096, 0);
            assert!(map.area_offset + 100 <= map.segment_bytes);
        }
    }
}
