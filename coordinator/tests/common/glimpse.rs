//! The memory that a repetition's workers share, read from outside: as one of them maps it, by the byte map of
//! shm-layout/src/map.rs.

use super::Worker;
use shm_layout::{SegmentMap, WorkerState};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Bytes of a worker's slot.
const SLOT_BYTES: u64 = 256;

/// A segment that a worker has mapped.
pub(crate) struct Glimpse {
    memory: File,
    base: u64,
    /// Where everything lies.
    pub(crate) map: SegmentMap,
}

impl Glimpse {
    /// `None` where the worker has not mapped it yet, or is gone.
    pub(crate) fn of(worker: &Worker, map: SegmentMap) -> Option<Glimpse> {
        let maps = std::fs::read_to_string(format!("/proc/{}/maps", worker.pid)).ok()?;
        let line = maps.lines().find(|line| line.contains(&worker.segment))?;
        let base = u64::from_str_radix(line.split('-').next()?, 16).ok()?;
        let memory = File::open(format!("/proc/{}/mem", worker.pid)).ok()?;
        Some(Glimpse { memory, base, map })
    }

    /// The eight bytes at an offset.
    pub(crate) fn word(&self, offset: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.memory.read_exact_at(&mut bytes, self.base + offset).ok()?;
        Some(u64::from_ne_bytes(bytes))
    }

    /// How far a worker has come.
    pub(crate) fn has_come_to(&self, worker: u32, state: WorkerState) -> Option<bool> {
        Some(self.slot(worker)? & 0xffff_ffff == state as u64)
    }

    /// Whether a worker waits for lock 0.
    pub(crate) fn waits_for_the_first_lock(&self, worker: u32) -> Option<bool> {
        Some(self.slot(worker)? >> 32 == 1)
    }

    /// A word of the fields area.
    pub(crate) fn field(&self, offset: u64) -> Option<u64> {
        self.word(self.map.area_offset + offset)
    }

    /// `state` and `waits_for` begin a slot.
    fn slot(&self, worker: u32) -> Option<u64> {
        self.word(self.map.slots_offset + SLOT_BYTES * u64::from(worker))
    }
}
