//! The byte map of a segment, and what holds the types to it. Every other text on where something lies links here.
//!
//! ```text
//! offset      bytes            what                                written by
//! 0           128              Header                              coordinator, before any worker attaches
//!   0         8                  magic
//!   8         4                  version
//!   12        4                  workers: number of slots
//!   16        8                  program_hash
//!   24        8                  segment_bytes
//!   32        8                  slots_offset
//!   40        8                  slot_bytes
//!   48        8                  area_offset
//!   56        8                  area_bytes
//!   64        8                  ticks_per_ns_bits: an f64
//!   72        8                  nodes_offset
//!   80        4                  locks: number of locks
//! 128         384              Control
//!   0         4                  phase                             coordinator; the last worker to leave
//!   4         4                  closed_from: first closed gate    coordinator
//!   8         8                  open_ticks                        the last worker to arrive
//!   16        8                  close_ticks                       the last worker to arrive
//!   128       4                  ready                             each worker once
//!   256       4                  left                              each worker once
//! 512         256 x workers    Slot
//!   0         4                  state                             its worker
//!   4         4                  waits_for: lock index plus 1      its worker
//!   8         8                  reads: a bit a lock               its worker
//!   16        8                  seen_ticks                        its worker
//!   24        4                  thread                            its worker
//!   28        4                  took_over: lock index plus 1      its worker
//!   128       8                  court.ball                        its worker and its next neighbour in the ring
//!   136       2 x 8              court.tallies                     its worker; its next neighbour
//! + slots     nodes x locks    queue nodes: (workers + 1) x 128    see `lock`
//!                                bytes for each lock
//! next page   area_bytes       fields area: fields, locks          the workers' compiled loops; see `lock`
//! ```
//!
//! Control's three parts, each slot's status and its court, each node, and the fields area stand on 128-byte pairs of
//! their own: the lab's own words never take part in what it measures.

use crate::control::{Control, Published};
use crate::header::Header;
use crate::lock::NODE_BYTES;
use crate::slot::{Court, READS_OFFSET, Slot, Status, WAITS_FOR_OFFSET};
use plan::LINE_PAIR_BYTES;
use std::mem::{align_of, offset_of, size_of};

const PAIR: usize = LINE_PAIR_BYTES as usize;

const _: () = {
    assert!(size_of::<Header>() == PAIR && align_of::<Header>() == PAIR);
    assert!(offset_of!(Header, magic) == 0);
    assert!(offset_of!(Header, version) == 8);
    assert!(offset_of!(Header, workers) == 12);
    assert!(offset_of!(Header, program_hash) == 16);
    assert!(offset_of!(Header, segment_bytes) == 24);
    assert!(offset_of!(Header, slots_offset) == 32);
    assert!(offset_of!(Header, slot_bytes) == 40);
    assert!(offset_of!(Header, area_offset) == 48);
    assert!(offset_of!(Header, area_bytes) == 56);
    assert!(offset_of!(Header, ticks_per_ns_bits) == 64);
    assert!(offset_of!(Header, nodes_offset) == 72);
    assert!(offset_of!(Header, locks) == 80);
};

const _: () = {
    assert!(size_of::<Control>() == 3 * PAIR && align_of::<Control>() == PAIR);
    assert!(offset_of!(Control, published) == 0);
    assert!(offset_of!(Published, phase) == 0);
    assert!(offset_of!(Published, closed_from) == 4);
    assert!(offset_of!(Published, open_ticks) == 8);
    assert!(offset_of!(Published, close_ticks) == 16);
    assert!(offset_of!(Control, ready) == PAIR);
    assert!(offset_of!(Control, left) == 2 * PAIR);
};

const _: () = {
    assert!(size_of::<Slot>() == 2 * PAIR && align_of::<Slot>() == PAIR);
    assert!(offset_of!(Slot, status) == 0);
    assert!(offset_of!(Status, state) == 0);
    assert!(offset_of!(Status, waits_for) == WAITS_FOR_OFFSET as usize && WAITS_FOR_OFFSET == 4);
    assert!(offset_of!(Status, reads) == READS_OFFSET as usize && READS_OFFSET == 8);
    assert!(offset_of!(Status, seen_ticks) == 16);
    assert!(offset_of!(Status, thread) == 24);
    assert!(offset_of!(Status, took_over) == 28);
    assert!(offset_of!(Slot, court) == PAIR);
    assert!(offset_of!(Court, ball) == 0 && offset_of!(Court, tallies) == 8);
    assert!(size_of::<Court>() <= 64, "the court is one line");
};

const _: () = assert!(NODE_BYTES as usize == PAIR);

/// Alignment of the fields area: a page, so that offsets in it decide lines and pairs alone.
const AREA_ALIGN: u64 = 4096;

/// Where everything lies in a segment for so many workers and such an area. Offsets from the segment's start, bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SegmentMap {
    /// Number of slots.
    pub workers: u32,
    /// The control block.
    pub control_offset: u64,
    /// The first slot.
    pub slots_offset: u64,
    /// Number of locks.
    pub locks: u32,
    /// The first lock's first queue node.
    pub nodes_offset: u64,
    /// The fields area, page-aligned.
    pub area_offset: u64,
    /// Its length.
    pub area_bytes: u64,
    /// The whole segment, whole pages.
    pub segment_bytes: u64,
}

impl SegmentMap {
    /// The map for `workers` slots, `locks` locks and a fields area of `area_bytes`; `None` where no mapping can be
    /// that large: its size must fit an `isize`, as an object's, and an `off_t`, as a file's.
    pub fn new(workers: u32, locks: u32, area_bytes: u64) -> Option<SegmentMap> {
        let control_offset = size_of::<Header>() as u64;
        let slots_offset = control_offset + size_of::<Control>() as u64;
        // No overflow: 2^32 slots of 256 bytes.
        let nodes_offset = slots_offset + u64::from(workers) * size_of::<Slot>() as u64;
        let nodes_bytes = nodes_bytes(workers).checked_mul(u64::from(locks))?;
        let area_offset = nodes_offset.checked_add(nodes_bytes)?.checked_next_multiple_of(AREA_ALIGN)?;
        let segment_bytes = area_offset.checked_add(area_bytes.max(1))?.checked_next_multiple_of(AREA_ALIGN)?;
        isize::try_from(segment_bytes).ok()?;
        Some(SegmentMap {
            workers,
            control_offset,
            slots_offset,
            locks,
            nodes_offset,
            area_offset,
            area_bytes,
            segment_bytes,
        })
    }

    /// Where a worker's slot begins; `None` where there is none.
    pub fn slot_offset(&self, worker: u32) -> Option<u64> {
        // No overflow: as below.
        (worker < self.workers).then(|| self.slots_offset + u64::from(worker) * size_of::<Slot>() as u64)
    }

    /// Where the queue nodes of a lock begin; `None` where there is no such lock.
    pub fn lock_nodes_offset(&self, lock: u32) -> Option<u64> {
        // No overflow: what lies inside the map was added up in `new`.
        (lock < self.locks).then(|| self.nodes_offset + u64::from(lock) * nodes_bytes(self.workers))
    }
}

/// Bytes of one lock's queue nodes: one a worker, and the first dummy of a CLH lock.
fn nodes_bytes(workers: u32) -> u64 {
    (u64::from(workers) + 1) * NODE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_the_map_follow_each_other() {
        for (workers, locks) in [(0, 0), (1, 0), (2, 1), (17, 3), (128, 64), (u32::MAX, 1)] {
            let map = SegmentMap::new(workers, locks, 100).unwrap();
            assert_eq!(map.control_offset, 128);
            assert_eq!(map.slots_offset, 512);
            assert_eq!(map.nodes_offset, map.slots_offset + u64::from(workers) * 256);
            assert!(map.nodes_offset + u64::from(locks) * (u64::from(workers) + 1) * 128 <= map.area_offset);
            assert_eq!(map.area_offset % 4096, 0);
            assert!(map.area_offset + 100 <= map.segment_bytes);
        }
    }

    #[test]
    fn every_lock_has_a_node_for_each_worker_and_one_more() {
        let map = SegmentMap::new(2, 3, 100).unwrap();
        let offsets: Vec<_> = (0..4).map(|lock| map.lock_nodes_offset(lock)).collect();
        assert_eq!(offsets, [Some(1024), Some(1024 + 384), Some(1024 + 768), None]);
        assert!(1024 + 3 * 384 <= map.area_offset);
    }

    #[test]
    fn an_area_that_no_mapping_holds_is_refused_instead_of_wrapped() {
        for area_bytes in [u64::MAX, u64::MAX - 4096, u64::MAX - 8191, i64::MAX as u64, i64::MAX as u64 - 4096] {
            assert_eq!(SegmentMap::new(2, 1, area_bytes), None, "{area_bytes}");
        }
        assert_eq!(SegmentMap::new(u32::MAX, u32::MAX, 1), None);
        assert!(SegmentMap::new(2, 1, 1 << 50).is_some());
    }
}
