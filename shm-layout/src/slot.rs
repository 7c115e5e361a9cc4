//! A worker's slot: what the coordinator may want to know of a worker that has died or hangs, and the line that two
//! ring neighbours hand to and fro to learn how long a transfer takes.

use crate::SharedMemory;
use crate::atom::Atom;
use crossbeam_utils::CachePadded;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// One worker's slot. Zeroed memory is its initial state.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Slot<A = AtomicU32, B = AtomicU64> {
    pub(crate) status: CachePadded<Status<A, B>>,
    /// The court of the pair (this worker, its next neighbour).
    pub court: CachePadded<Court>,
}

/// Offset in a slot of the lock that its worker is blocked on, a u32: its index plus 1, or 0. Compiled code writes it
/// around a blocking call of its own; hooks write it else ([`Slot::set_waits_for`]).
pub const WAITS_FOR_OFFSET: u64 = 4;

/// Offset in a slot of the locks that its worker takes or has as a reader among others, a u64 with a bit for each of
/// the first 64. Compiled code alone writes it: the bit is set before the first attempt, and cleared behind the
/// release.
pub const READS_OFFSET: u64 = 8;

/// The line on which two ring neighbours probe how lines travel between their CPUs.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Court {
    /// Handed to and fro: the slot's worker stores odd numbers, the neighbour even ones.
    pub ball: AtomicU64,
    /// Counted up by the slot's worker and by the neighbour, both at once: words of one line.
    pub tallies: [AtomicU64; 2],
}

#[repr(C)]
#[derive(Debug, Default)]
pub(crate) struct Status<A = AtomicU32, B = AtomicU64> {
    pub(crate) state: A,
    /// Lock index plus 1, or 0.
    pub(crate) waits_for: A,
    /// One bit for each of the first 64 locks.
    pub(crate) reads: B,
    /// The worker's last clock read, in phases where a neighbour must know that it runs.
    pub(crate) seen_ticks: B,
    /// The worker's thread, as the kernel numbers it; 0 until it has attached.
    pub(crate) thread: A,
    /// Lock index plus 1, or 0.
    pub(crate) took_over: A,
}

// SAFETY: repr(C), fixed-width atomics only; discriminants are checked when read.
#[allow(unsafe_code)]
unsafe impl SharedMemory for Slot {}

/// How far a worker has come; single writer: the worker.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum WorkerState {
    /// Not attached yet.
    Starting = 0,
    /// Attached, pinned, compiled.
    Attached = 1,
    /// Probing the line transfer and the core's speed.
    Probing = 2,
    /// Running passes, before or in the window.
    Running = 3,
    /// Past its window.
    Left = 4,
    /// Trace written.
    Done = 5,
    /// Waiting at a gate, before or after its window.
    Held = 6,
}

impl WorkerState {
    /// In words, to follow "was".
    pub fn words(self) -> &'static str {
        match self {
            WorkerState::Starting => "starting up",
            WorkerState::Attached => "waiting for the others to attach",
            WorkerState::Probing => "probing the line transfer",
            WorkerState::Running => "running passes",
            WorkerState::Left => "waiting for the others to leave the window",
            WorkerState::Done => "done",
            WorkerState::Held => "held at a gate",
        }
    }
}

impl<A: Atom<u32>, B: Atom<u64>> Slot<A, B> {
    /// Publishes how far this worker has come.
    pub fn set_state(&self, state: WorkerState) {
        // Release; pairs with the Acquire in `state`.
        self.status.state.store(state as u32, Ordering::Release);
    }

    /// How far the worker has come; an unknown number, which only a foreign writer can leave, reads as starting.
    pub fn state(&self) -> WorkerState {
        // Acquire; pairs with the Release in `set_state`.
        match self.status.state.load(Ordering::Acquire) {
            1 => WorkerState::Attached,
            2 => WorkerState::Probing,
            3 => WorkerState::Running,
            4 => WorkerState::Left,
            5 => WorkerState::Done,
            6 => WorkerState::Held,
            _ => WorkerState::Starting,
        }
    }

    /// Notes the thread that this worker is (`gettid(2)`), for messages to name.
    pub fn set_thread(&self, tid: i32) {
        // Relaxed: published by the byte on the ready pipe that says the worker has attached.
        self.status.thread.store(tid.cast_unsigned(), Ordering::Relaxed);
    }

    /// The thread that this worker is; `None` until it has attached. Nobody is signalled by it: a thread's number may
    /// be another's once it has ended.
    pub fn thread(&self) -> Option<i32> {
        // Relaxed, no partner in memory: see `set_thread`.
        let tid = self.status.thread.load(Ordering::Relaxed).cast_signed();
        (tid > 0).then_some(tid)
    }

    /// Notes a clock read of this worker, for its neighbour to see that it was running then.
    #[inline]
    pub fn set_seen(&self, ticks: u64) {
        // Relaxed, no partner: the number itself is all that the neighbour learns.
        self.status.seen_ticks.store(ticks, Ordering::Relaxed);
    }

    /// The worker's last noted clock read.
    #[inline]
    pub fn seen(&self) -> u64 {
        // Relaxed, no partner: see `set_seen`.
        self.status.seen_ticks.load(Ordering::Relaxed)
    }

    /// Notes the lock this worker is blocked on, or none.
    #[inline]
    pub fn set_waits_for(&self, lock: Option<u32>) {
        // Relaxed, no partner: read when the worker has ended (its end, seen by `waitid`, orders it) or hangs (then the
        // store is long past); in the window a stronger order would cost the worker time.
        self.status.waits_for.store(lock.map_or(0, |l| l + 1), Ordering::Relaxed);
    }

    /// The lock the worker is blocked on.
    pub fn waits_for(&self) -> Option<u32> {
        // Relaxed, no partner: see `set_waits_for`.
        self.status.waits_for.load(Ordering::Relaxed).checked_sub(1)
    }

    /// Whether the worker takes or has that lock as a reader among others, of the first 64 locks: [`READS_OFFSET`].
    pub fn reads(&self, lock: u32) -> bool {
        // Relaxed, no partner: see `set_waits_for`.
        self.status.reads.load(Ordering::Relaxed).checked_shr(lock).is_some_and(|bits| bits & 1 == 1)
    }

    /// Notes that this worker took over a lock whose owner had died.
    pub fn set_took_over(&self, lock: u32) {
        // Relaxed, no partner: see `set_waits_for`.
        self.status.took_over.store(lock + 1, Ordering::Relaxed);
    }

    /// The last lock that the worker took over from one that had died.
    pub fn took_over(&self) -> Option<u32> {
        // Relaxed, no partner: see `set_waits_for`.
        self.status.took_over.load(Ordering::Relaxed).checked_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_lock_is_told_from_none() {
        let slot = <Slot>::default();
        assert_eq!((slot.waits_for(), slot.took_over()), (None, None));
        slot.set_waits_for(Some(0));
        slot.set_took_over(0);
        assert_eq!((slot.waits_for(), slot.took_over()), (Some(0), Some(0)));
        slot.set_waits_for(None);
        assert_eq!(slot.waits_for(), None);
    }

    #[test]
    fn reading_is_noted_of_the_first_64_locks() {
        let slot = <Slot>::default();
        slot.status.reads.store(1 << 63 | 1 << 2, Ordering::Relaxed);
        assert_eq!([0, 2, 63, 64, 200].map(|lock| slot.reads(lock)), [false, true, true, false, false]);
    }

    #[test]
    fn a_thread_is_known_once_it_has_said_so() {
        let slot = <Slot>::default();
        assert_eq!(slot.thread(), None);
        slot.set_thread(4711);
        assert_eq!(slot.thread(), Some(4711));
        slot.set_thread(-1); // a stranger's
        assert_eq!(slot.thread(), None);
    }

    #[test]
    fn states_read_back_and_a_foreign_one_reads_as_starting() {
        let slot = <Slot>::default();
        assert_eq!(slot.state(), WorkerState::Starting);
        use WorkerState::{Attached, Done, Held, Left, Probing, Running, Starting};
        for state in [Starting, Attached, Probing, Running, Left, Done, Held] {
            slot.set_state(state);
            assert_eq!(slot.state(), state);
        }
        slot.status.state.store(77, Ordering::Relaxed);
        assert_eq!(slot.state(), Starting);
    }
}
