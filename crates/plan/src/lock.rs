//! The locks that scenarios can name: their kinds, and what each can do.

use serde::{Deserialize, Serialize};

/// A process-shared lock of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// Its name in steps and results.
    pub name: String,
    /// The algorithm.
    pub kind: LockKind,
    /// Byte offset under `declared`; else `None`.
    pub at: Option<u64>,
}

/// The lock algorithms, all for memory that processes share. `shm-layout` holds them.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum LockKind {
    /// A POSIX mutex, process-shared, of the default type (`pthread_mutexattr_setpshared(3)`). One whose owner dies
    /// stays locked.
    Pthread,
    /// The same of glibc's adaptive type: a waiter spins a little before it sleeps (`PTHREAD_MUTEX_ADAPTIVE_NP`).
    PthreadAdaptive,
    /// The same, robust: the next owner learns that the last one died (`pthread_mutexattr_setrobust(3)`).
    PthreadRobust,
    /// The same, with priority inheritance: waiting and waking go through the kernel (`PTHREAD_PRIO_INHERIT`).
    PthreadPi,
    /// A POSIX spin lock (`pthread_spin_init(3)`).
    PthreadSpin,
    /// A POSIX reader-writer lock (`pthread_rwlock_init(3p)`).
    PthreadRwlock,
    /// A POSIX semaphore of one (`sem_init(3)`).
    Semaphore,
    /// The mutex of the package `raw_sync`: a process-shared POSIX mutex behind its interface.
    RawSync,
    /// Test-and-set: an atomic exchange until it finds the word free.
    Tas,
    /// Test-and-test-and-set: reads until the word is free, with exponential backoff, then exchanges (Anderson 1990).
    Ttas,
    /// Ticket lock: first come, first served, all waiting on one word (Reed and Kanodia 1979).
    Ticket,
    /// Queue lock of Mellor-Crummey and Scott (1991): each waits on a line of its own.
    Mcs,
    /// Queue lock of Craig, Landin and Hagersten (1993): each waits on its predecessor's line.
    Clh,
    /// Three states and a futex: free, held, held with waiters (Drepper 2011, "Futexes Are Tricky", mutex 2).
    Futex,
    /// Sequence lock: writers count up, readers read again if the count moved (Lameter 2005).
    Seqlock,
}

impl LockKind {
    /// Every kind, in the order in which messages list them.
    pub const ALL: [LockKind; 15] = [
        LockKind::Pthread,
        LockKind::PthreadAdaptive,
        LockKind::PthreadRobust,
        LockKind::PthreadPi,
        LockKind::PthreadSpin,
        LockKind::PthreadRwlock,
        LockKind::Semaphore,
        LockKind::RawSync,
        LockKind::Tas,
        LockKind::Ttas,
        LockKind::Ticket,
        LockKind::Mcs,
        LockKind::Clh,
        LockKind::Futex,
        LockKind::Seqlock,
    ];

    /// Bytes that a lock takes in the segment, whatever its kind: the largest kind's 56 (glibc's reader-writer lock)
    /// and the lab's owner record, 4, up to a whole 8. One size for all, so that comparing kinds does not change the
    /// layout.
    pub const BYTES: u64 = 64;

    /// Offset of the owner record in a lock's bytes: behind the largest kind's own state. `shm-layout` holds its map
    /// against it.
    pub const LAST_OWNER_OFFSET: u64 = 56;

    /// A lock's alignment in bytes, whatever its kind.
    pub const ALIGN: u64 = 8;

    /// As scenarios spell it.
    pub const fn name(self) -> &'static str {
        match self {
            LockKind::Pthread => "pthread",
            LockKind::PthreadAdaptive => "pthread-adaptive",
            LockKind::PthreadRobust => "pthread-robust",
            LockKind::PthreadPi => "pthread-pi",
            LockKind::PthreadSpin => "pthread-spin",
            LockKind::PthreadRwlock => "pthread-rwlock",
            LockKind::Semaphore => "semaphore",
            LockKind::RawSync => "raw-sync",
            LockKind::Tas => "tas",
            LockKind::Ttas => "ttas",
            LockKind::Ticket => "ticket",
            LockKind::Mcs => "mcs",
            LockKind::Clh => "clh",
            LockKind::Futex => "futex",
            LockKind::Seqlock => "seqlock",
        }
    }

    /// Whether several readers can hold it at once; with the others `rlock` takes it as `lock` does.
    pub const fn shares_readers(self) -> bool {
        matches!(self, LockKind::PthreadRwlock | LockKind::Seqlock)
    }

    /// Whether a waiter spins until it owns the lock, and never sleeps: with more workers than CPUs it waits for the
    /// scheduler.
    pub const fn spins(self) -> bool {
        matches!(
            self,
            LockKind::PthreadSpin
                | LockKind::Tas
                | LockKind::Ttas
                | LockKind::Ticket
                | LockKind::Mcs
                | LockKind::Clh
                | LockKind::Seqlock
        )
    }

    /// Whether waiters get it in the order in which they came, so that whoever releases it cannot take it again before
    /// them.
    pub const fn serves_by_arrival(self) -> bool {
        matches!(self, LockKind::Ticket | LockKind::Mcs | LockKind::Clh)
    }

    /// Whether the next owner takes over from one that died.
    pub const fn is_robust(self) -> bool {
        matches!(self, LockKind::PthreadRobust)
    }

    /// Whether `lock NAME timeout TIME` works with it: a waiter in a queue cannot leave it, and `raw_sync`'s timed try
    /// fails by an overflow of its own.
    pub const fn times_out(self) -> bool {
        !matches!(self, LockKind::PthreadSpin | LockKind::RawSync | LockKind::Ticket | LockKind::Mcs | LockKind::Clh)
    }

    /// Whether waiters queue on nodes of their own, which lie in the segment beside the slots.
    pub const fn has_nodes(self) -> bool {
        matches!(self, LockKind::Mcs | LockKind::Clh)
    }

    /// Whether the first attempt is a try of the lab's before the call that waits, since the library's call does not
    /// tell whether it waited: a `plain` arm prices that. The lab's own locks tell by themselves.
    pub const fn is_tried_first(self) -> bool {
        matches!(
            self,
            LockKind::Pthread
                | LockKind::PthreadAdaptive
                | LockKind::PthreadRobust
                | LockKind::PthreadPi
                | LockKind::PthreadSpin
                | LockKind::PthreadRwlock
                | LockKind::Semaphore
                | LockKind::RawSync
        )
    }
}
