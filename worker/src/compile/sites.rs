//! Where compiled code finds a program's locks: distances from the fields area, whose address it has in a register.

use plan::{LockKind, Program, WorkerIndex};
use shm_layout::{READS_OFFSET, SegmentMap, WAITS_FOR_OFFSET};

/// The locks of a program as one worker's compiled loop reaches them.
#[derive(Clone, Debug)]
pub struct LockSites {
    /// By the Program's index.
    pub(super) sites: Vec<LockSite>,
    /// The worker's name in words of the segment: its index plus 1.
    pub(super) me: u32,
    /// How many nodes each CLH lock has: one a worker, and the first dummy.
    pub(super) clh_nodes: u32,
    /// The slot's words.
    pub(super) waits_for: i64,
    pub(super) reads: i64,
    /// Whether waits and holds are timed; not in a `plain` arm.
    pub(super) timed: bool,
}

/// One lock, and its first queue node: bytes from the area's first.
#[derive(Clone, Debug)]
pub(super) struct LockSite {
    pub(super) kind: LockKind,
    pub(super) at: i64,
    pub(super) nodes: i64,
}

impl LockSites {
    /// For loops without locks.
    pub const NONE: LockSites =
        LockSites { sites: Vec::new(), me: 0, clh_nodes: 0, waits_for: 0, reads: 0, timed: true };

    /// Those of `program` in a segment of that map, which must be the Program's, for the worker of that index, which
    /// must have a slot there.
    ///
    /// # Panics
    /// If it has none, or the map has fewer locks than the Program.
    pub fn of(program: &Program, map: &SegmentMap, worker: WorkerIndex) -> LockSites {
        // No wrap: the map's offsets fit an isize.
        let from_area = |offset: u64| offset as i64 - map.area_offset as i64;
        let site = |(lock, placed): (u32, &plan::PlacedLock)| LockSite {
            kind: placed.kind,
            at: placed.offset as i64,
            nodes: from_area(map.lock_nodes_offset(lock).expect("the map is the Program's")),
        };
        let slot = map.slot_offset(worker.0).expect("the worker has a slot");
        LockSites {
            sites: (0..).zip(&program.locks).map(site).collect(),
            me: worker.0 + 1,
            clh_nodes: map.workers.saturating_add(1),
            waits_for: from_area(slot + WAITS_FOR_OFFSET),
            reads: from_area(slot + READS_OFFSET),
            timed: program.timed_locks,
        }
    }

    /// The distances that must be within a displacement's reach for a lock to be used; `None` where there is no such
    /// lock.
    pub(super) fn distances(&self, lock: u32) -> Option<[i64; 4]> {
        let site = self.sites.get(lock as usize)?;
        Some([site.at, site.nodes, self.waits_for, self.reads])
    }
}
