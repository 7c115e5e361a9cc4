//! Where each process has the segment, while processes fork, execute and map it anew.

use super::follow::Thread;
use crate::segment::Key;
use crate::target::of_segment;
use crate::{Target, Targets};
use host::Root;
use record::SegmentMapping;
use std::collections::BTreeMap;

/// A process's maps are not read more often, nanoseconds: reading them can make an mmap of its own wait.
const BETWEEN_READS_NS: u64 = 100_000_000;

/// The mappings of all processes that events come from.
#[derive(Debug)]
pub(super) struct Places {
    root: Root,
    key: Key,
    of: BTreeMap<u32, Place>,
}

#[derive(Clone, Debug)]
struct Place {
    mappings: Vec<SegmentMapping>,
    /// When its maps were last read.
    read_at: u64,
}

impl Places {
    pub(super) fn new(root: &Root, targets: &Targets, now: u64) -> Places {
        let place = |target: &Target| Place { mappings: target.mappings.clone(), read_at: now };
        let of = targets.processes.iter().map(|target| (target.pid, place(target))).collect();
        Places { root: root.clone(), key: (targets.segment.device, targets.segment.inode), of }
    }

    /// A thread was begun: of a new process, which has all that its parent has.
    pub(super) fn born(&mut self, thread: Thread, parent: u32) {
        if let Some(place) = self.of.get(&parent).cloned().filter(|_| thread.pid != parent) {
            self.of.insert(thread.pid, place);
        }
    }

    /// A process executes another program, which has nothing yet.
    pub(super) fn executed(&mut self, pid: u32) {
        self.of.insert(pid, Place { mappings: Vec::new(), read_at: 0 });
    }

    /// The offset in the segment of an address that a process has used; `None` of one elsewhere. `anew`: whether it is worth a
    /// look at the maps that the process has by now.
    pub(super) fn offset(&mut self, pid: u32, address: u64, at: u64, anew: bool) -> Option<u64> {
        let place = self.of.entry(pid).or_insert(Place { mappings: Vec::new(), read_at: 0 });
        if let Some(offset) = offset(&place.mappings, address) {
            return Some(offset);
        }
        if !anew || at < place.read_at.saturating_add(BETWEEN_READS_NS) {
            return None;
        }
        place.read_at = at;
        // What has ended since has no maps: what was known of it stands.
        if let Ok(seen) = host::mappings(&self.root, pid) {
            place.mappings = of_segment(&seen, self.key);
        }
        offset(&place.mappings, address)
    }
}

fn offset(mappings: &[SegmentMapping], address: u64) -> Option<u64> {
    let holds = |one: &&SegmentMapping| (one.address..one.address + one.bytes).contains(&address);
    mappings.iter().find(holds).map(|one| address - one.address + one.offset)
}
