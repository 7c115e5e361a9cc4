//! Where one lock lies in this process, and how its 64 bytes are divided.
//!
//! ```text
//! offset   bytes   what                                               written by
//! 0        56      the kind's own state                               the kind's operations
//! 56       4       last_owner: worker index plus 1; 0: nobody yet     its exclusive owner
//! 60       4       unused
//! ```
#![allow(unsafe_code)] // the record's view in a lock's bytes

use crate::SharedMemory;
use plan::LockKind;
use std::mem::{align_of, offset_of, size_of};
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes that a kind's own state has, from the lock's first byte on.
pub(super) const STATE_BYTES: usize = 56;

/// Bytes of a queue node: a pair of lines, so that no two waiters' nodes are fetched together.
pub const NODE_BYTES: u64 = plan::LINE_PAIR_BYTES;

/// Offset of the last owner, a u32, from the lock's first byte: worker index plus 1; 0 while nobody has owned it. Its
/// exclusive owner alone writes it. Compiled code that has acquired exclusively reads it, and leaves it alone where it
/// is the worker's own; else it has a hook write it ([`SharedLock::note_owner`](super::SharedLock::note_owner)).
pub const LAST_OWNER_OFFSET: u32 = LockKind::LAST_OWNER_OFFSET as u32;

#[repr(C, align(8))]
struct Layout {
    state: [u8; STATE_BYTES],
    owner: OwnerRecord,
}

const _: () = {
    assert!(size_of::<Layout>() as u64 == LockKind::BYTES);
    assert!(align_of::<Layout>() as u64 == LockKind::ALIGN);
    assert!(offset_of!(Layout, owner) + offset_of!(OwnerRecord, last_owner) == LAST_OWNER_OFFSET as usize);
};

/// Where one lock lies in this process's mapping of the segment: [`Segment::lock_place`](crate::Segment::lock_place)
/// gives it.
#[derive(Copy, Clone, Debug)]
pub struct LockPlace {
    /// [`LockKind::BYTES`], aligned to [`LockKind::ALIGN`].
    pub at: *mut u8,
    /// `slots` + 1 nodes of [`NODE_BYTES`] each, aligned to that; unused unless the kind [has
    /// nodes](LockKind::has_nodes).
    pub nodes: *mut u8,
    /// How many workers can use it: their indices lie below.
    pub slots: u32,
}

/// A kind's own state in a lock's bytes.
///
/// # Safety
/// `at` points to [`LockKind::BYTES`] aligned to [`LockKind::ALIGN`] that stay mapped for `'a`, and whose first bytes
/// are touched as a `T` alone.
pub(super) unsafe fn state<'a, T: SharedMemory>(at: *mut u8) -> &'a T {
    const { assert!(size_of::<T>() <= STATE_BYTES && align_of::<T>() as u64 <= LockKind::ALIGN) }
    // SAFETY: large enough and aligned (asserted); whoever implements SharedMemory for `T` vouches that any content is
    // valid and every change atomic; the rest is the caller's promise.
    unsafe { &*at.cast::<T>() }
}

/// A lock's queue nodes.
///
/// # Safety
/// `place.nodes` points to `place.slots` + 1 nodes that stay mapped for `'a`, and are touched as `T`s alone.
pub(super) unsafe fn nodes<'a, T: SharedMemory>(place: LockPlace) -> &'a [T] {
    const { assert!(size_of::<T>() as u64 == NODE_BYTES && align_of::<T>() as u64 == NODE_BYTES) }
    // SAFETY: as in `state`.
    unsafe { std::slice::from_raw_parts(place.nodes.cast::<T>(), place.slots as usize + 1) }
}

/// Who owned a lock last.
#[repr(C)]
#[derive(Debug)]
pub(super) struct OwnerRecord {
    last_owner: AtomicU32,
}

impl OwnerRecord {
    /// The record in a lock's bytes.
    ///
    /// # Safety
    /// `at` points to [`LockKind::BYTES`] aligned to [`LockKind::ALIGN`] that stay mapped for `'a`, and whose last
    /// owner is touched as an atomic alone.
    pub(super) unsafe fn at<'a>(at: *mut u8) -> &'a OwnerRecord {
        // SAFETY: within the lock and aligned (the assertions above); any bit pattern is a valid record; the
        // rest is the caller's promise.
        unsafe { &*at.add(STATE_BYTES).cast::<OwnerRecord>() }
    }

    /// Forgets everybody.
    pub(super) fn clear(&self) {
        // Relaxed: nobody else uses a lock that is being made; the header's magic publishes it (`Header::write`).
        self.last_owner.store(0, Ordering::Relaxed);
    }

    /// Notes an exclusive acquisition by worker `worker`, which holds the lock. Whether another owned it before.
    #[inline]
    pub(super) fn note(&self, worker: u32) -> bool {
        // Relaxed, both: the lock's exclusive owner alone writes it, and the lock orders one owner's accesses before
        // the next one's.
        let (me, last) = (worker + 1, self.last_owner.load(Ordering::Relaxed));
        if last != me {
            self.last_owner.store(me, Ordering::Relaxed);
        }
        last != me && last != 0
    }

    /// The worker that owned it last.
    pub(super) fn last(&self) -> Option<u32> {
        // Relaxed, no partner: asked for when its owner has ended (its end, seen by `waitid`, orders it) or hangs.
        self.last_owner.load(Ordering::Relaxed).checked_sub(1)
    }
}
