//! The header: what a worker compares with its own numbers before it uses a segment. Its bytes: see `map`.

use crate::SharedMemory;
use crate::atom::Atom;
use crate::map::SegmentMap;
use crate::slot::Slot;
use plan::TickRate;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem::size_of;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// `contlab` and a zero byte, little-endian: tells the lab's segments from others.
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"contlab\0");

/// Version of the map. A worker and a coordinator of different versions never meet: they are one executable.
const VERSION: u32 = 3;

/// What counters of time have: 24 MHz is a slow one, and no core has 10 GHz. Beyond that the number is none of the lab's.
const TICKS_PER_NS: RangeInclusive<f64> = 0.001..=100.0;

/// The header. All atomics only because shared memory allows no other plain access; it is written before the segment's
/// name is given to anyone, and never again.
#[repr(C, align(128))]
#[derive(Debug, Default)]
pub struct Header<A = AtomicU32, B = AtomicU64> {
    pub(crate) magic: B,
    pub(crate) version: A,
    pub(crate) workers: A,
    pub(crate) program_hash: B,
    pub(crate) segment_bytes: B,
    pub(crate) slots_offset: B,
    pub(crate) slot_bytes: B,
    pub(crate) area_offset: B,
    pub(crate) area_bytes: B,
    pub(crate) ticks_per_ns_bits: B,
    pub(crate) nodes_offset: B,
    pub(crate) locks: A,
}

// SAFETY: repr(C), fixed-width atomics only; any bit pattern is valid and is checked before use.
#[allow(unsafe_code)]
unsafe impl SharedMemory for Header {}

/// Hash of the encoded Program, which both sides must share. Std's `DefaultHasher` is the same in one executable, and
/// coordinator and worker are one.
pub(crate) fn program_hash(encoded: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    encoded.hash(&mut hasher);
    hasher.finish()
}

/// Why a worker will not use a segment.
#[derive(Debug, PartialEq, thiserror::Error)]
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
    /// No clock runs at the rate that stands there.
    #[error("the segment's clock makes {ticks_per_ns} ticks a nanosecond, and clocks make 0.001 to 100")]
    Rate {
        /// In the segment.
        ticks_per_ns: f64,
    },
}

impl<A: Atom<u32>, B: Atom<u64>> Header<A, B> {
    /// Writes the header. Coordinator only, before the name is given away.
    pub fn write(&self, map: &SegmentMap, program_hash: u64, rate: TickRate) {
        let set = |word: &B, value| word.store(value, Ordering::Relaxed);
        set(&self.program_hash, program_hash);
        set(&self.segment_bytes, map.segment_bytes);
        set(&self.slots_offset, map.slots_offset);
        set(&self.slot_bytes, size_of::<Slot>() as u64);
        set(&self.area_offset, map.area_offset);
        set(&self.area_bytes, map.area_bytes);
        set(&self.ticks_per_ns_bits, rate.ticks_per_ns.to_bits());
        set(&self.nodes_offset, map.nodes_offset);
        self.locks.store(map.locks, Ordering::Relaxed);
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
        let get = |word: &B| word.load(Ordering::Relaxed);
        let rows = [
            ("magic", magic, MAGIC),
            ("version", u64::from(self.version.load(Ordering::Relaxed)), u64::from(VERSION)),
            ("worker count", u64::from(self.workers.load(Ordering::Relaxed)), u64::from(map.workers)),
            ("program hash", get(&self.program_hash), program_hash),
            ("size", get(&self.segment_bytes), map.segment_bytes),
            ("slots offset", get(&self.slots_offset), map.slots_offset),
            ("slot size", get(&self.slot_bytes), size_of::<Slot>() as u64),
            ("lock count", u64::from(self.locks.load(Ordering::Relaxed)), u64::from(map.locks)),
            ("nodes offset", get(&self.nodes_offset), map.nodes_offset),
            ("area offset", get(&self.area_offset), map.area_offset),
            ("area size", get(&self.area_bytes), map.area_bytes),
        ];
        match rows.into_iter().find(|(_, found, expected)| found != expected) {
            Some((field, found, expected)) => Err(HeaderError::Mismatch { field, found, expected }),
            None => Ok(()),
        }
    }

    /// The coordinator's calibration: the one number that a worker takes from here, once, and only if a clock can run so.
    ///
    /// # Errors
    /// [`HeaderError::Rate`].
    pub(crate) fn tick_rate(&self) -> Result<TickRate, HeaderError> {
        let ticks_per_ns = f64::from_bits(self.ticks_per_ns_bits.load(Ordering::Relaxed));
        match TICKS_PER_NS.contains(&ticks_per_ns) {
            true => Ok(TickRate { ticks_per_ns }),
            false => Err(HeaderError::Rate { ticks_per_ns }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written() -> (Header, SegmentMap) {
        let map = SegmentMap::new(2, 1, 128).unwrap();
        let header = <Header>::default();
        header.write(&map, 7, TickRate { ticks_per_ns: 2.6 });
        (header, map)
    }

    #[test]
    fn what_was_written_checks() {
        let (header, map) = written();
        assert_eq!(header.check(&map, 7), Ok(()));
        assert_eq!(header.tick_rate(), Ok(TickRate { ticks_per_ns: 2.6 }));
    }

    #[test]
    fn every_number_that_differs_is_named() {
        let (header, map) = written();
        assert!(matches!(header.check(&map, 8), Err(HeaderError::Mismatch { field: "program hash", .. })));
        let other = SegmentMap::new(3, 1, 128).unwrap();
        assert!(matches!(header.check(&other, 7), Err(HeaderError::Mismatch { field: "worker count", .. })));
        let other = SegmentMap::new(2, 2, 128).unwrap();
        assert!(matches!(header.check(&other, 7), Err(HeaderError::Mismatch { field: "lock count", .. })));
        header.magic.store(0, Ordering::Relaxed);
        assert!(matches!(header.check(&map, 7), Err(HeaderError::Mismatch { field: "magic", .. })));
        let (header, _) = written();
        for odd in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300, 1e300] {
            header.ticks_per_ns_bits.store(f64::to_bits(odd), Ordering::Relaxed);
            assert!(matches!(header.tick_rate(), Err(HeaderError::Rate { .. })), "{odd}");
        }
        header.area_offset.store(1 << 40, Ordering::Relaxed);
        assert!(matches!(header.check(&map, 7), Err(HeaderError::Mismatch { field: "area offset", .. })));
    }
}
