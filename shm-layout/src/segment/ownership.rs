//! Who holds which lock, as the locks themselves say: no worker spends a store on it while it runs.
//!
//! A lock's state says whether it is held, its owner record by whom: its owner has written that right behind the
//! acquisition. A worker that died in between is told by elimination. Readers among others, who leave no record, note
//! themselves in their slots.
#![allow(unsafe_code)] // locks in mapped memory

use super::Segment;
use crate::lock::SharedLock;
use plan::{OpKind, WorkerProgram};

impl Segment {
    /// The locks that a worker holds. Where workers run it is old news at once, and a lock that is just changing hands
    /// may be said to be with its last owner: look again before acting on it.
    pub fn holds(&self, worker: u32) -> Vec<u32> {
        let slot = self.slot(worker);
        let holds = |&lock: &u32| {
            let seen = self.lock_for_looking(lock);
            let is_last = || seen.last_owner() == Some(worker);
            slot.waits_for() != Some(lock) && (is_last() || slot.reads(lock)) && seen.is_held()
        };
        (0..self.map.locks).filter(holds).collect()
    }

    /// The locks that a worker held which has ended before its time: once the others have ended too, or have had the
    /// time to run into them. With a queueing kind also those in whose queue it stood: nobody gets past its place
    /// there.
    pub fn left_held(&self, ended: &WorkerProgram) -> Vec<u32> {
        let uses = |lock: u32| ended.ops.iter().any(|op| matches!(op.kind, OpKind::Lock { lock: l, .. } if l == lock));
        let left = |&lock: &u32| self.was_left_held(lock, ended.index.0) || self.was_taken_over(lock);
        (0..self.map.locks).filter(|&lock| uses(lock)).filter(left).collect()
    }

    /// The worker that acquired a lock last, exclusively, whether it still has it or not.
    pub fn last_owner(&self, lock: u32) -> Option<u32> {
        self.lock_for_looking(lock).last_owner()
    }

    /// The workers that wait for a lock, or did when they ended.
    pub fn waiters(&self, lock: u32) -> Vec<u32> {
        (0..self.map.workers).filter(|&worker| self.slot(worker).waits_for() == Some(lock)).collect()
    }

    fn was_left_held(&self, lock: u32, ended: u32) -> bool {
        let (seen, slot) = (self.lock_for_looking(lock), self.slot(ended));
        let reads = || slot.reads(lock) && slot.waits_for() != Some(lock);
        // A last owner that waits for it is not its owner any more. Who is has not come to write the record; the living
        // do that within nanoseconds.
        let is_owner = || match seen.last_owner() {
            Some(last) if last < self.map.workers => last == ended || self.slot(last).waits_for() == Some(lock),
            _ => true,
        };
        seen.is_held() && (reads() || is_owner())
    }

    fn was_taken_over(&self, lock: u32) -> bool {
        (0..self.map.workers).any(|worker| self.slot(worker).took_over() == Some(lock))
    }

    fn lock_for_looking(&self, lock: u32) -> SharedLock<'_> {
        let (_, kind) = self.locks[lock as usize];
        // SAFETY: every lock of the Program is initialised before the segment's name is given to anyone, stays mapped
        // as long as `self`, and is of this kind. No worker's: it is looked at alone, which writes nothing.
        unsafe { SharedLock::new(self.lock_place(lock), kind, 0) }
    }
}

#[cfg(test)]
mod tests {
    use crate::Segment;
    use crate::lock::{Effort, SharedLock};
    use crate::testing::{program, spec};

    #[test]
    fn the_last_owner_stays_so_until_another_comes() {
        let program = program(4096);
        let segment = Segment::create(&spec(&program, b"p")).unwrap();
        assert_eq!((segment.last_owner(0), segment.holds(1)), (None, vec![]));
        for worker in [1, 0] {
            // SAFETY: made by `Segment::create` with this kind, and this is the worker's only one.
            let mut lock = unsafe { SharedLock::new(segment.lock_place(0), program.locks[0].kind, worker) };
            lock.acquire(false, &mut Effort::default(), &|| false).unwrap();
            assert_eq!((segment.last_owner(0), segment.holds(worker)), (Some(worker), vec![0]));
            lock.release(false, &|| false).unwrap();
            assert_eq!((segment.last_owner(0), segment.holds(worker)), (Some(worker), vec![]));
        }
    }
}
