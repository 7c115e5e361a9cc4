//! The locks of `c/locks.c`.
#![allow(unsafe_code)] // declarations of C functions

use plan::LockKind;

/// What one process knows of its C lock: `struct seat` of `c/locks.c`, whose text says what each member is.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Seat {
    /// 64 bytes, shared.
    pub(crate) lock: *mut u8,
    /// Three nodes of 128 bytes, shared.
    pub(crate) nodes: *mut u8,
    /// What the section bumps, shared.
    pub(crate) word: *mut u64,
    /// Turns of `work` outside the section.
    pub(crate) turns: u64,
    chain: u64,
    me: u32,
    before: u32,
    odd: u32,
}

impl Seat {
    /// The seat of process `process` at a lock with these nodes and that word.
    pub(crate) fn new(process: usize, lock: *mut u8, nodes: *mut u8, word: *mut u64, turns: u64) -> Seat {
        // SAFETY: a constant that nobody writes.
        let in_c = unsafe { c_seat_bytes };
        assert_eq!(size_of::<Seat>() as u64, in_c, "Seat must be laid out as `struct seat` of bench/c/locks.c");
        Seat { lock, nodes, word, turns, chain: 0, me: process as u32 + 1, before: 0, odd: 0 }
    }
}

/// Makes the lock of a seat, whose bytes and nodes are zero. 0, or what a call returned.
///
/// # Safety
/// The seat's lock and nodes are mapped, writable, and nobody uses them yet.
pub(crate) type Init = unsafe extern "C" fn(*mut Seat) -> i32;

/// Makes passes, at least one. 0 unless a call failed.
///
/// # Safety
/// The seat's lock was made for this kind of loop; lock, nodes and word stay mapped and are touched by such loops
/// alone; no other process has a seat of the same number at it.
pub(crate) type Loop = unsafe extern "C" fn(*mut Seat, u64) -> i32;

/// A kind of lock in C.
pub(crate) struct InC {
    /// Makes it.
    pub(crate) init: Init,
    /// Acquires and releases.
    pub(crate) free: Loop,
    /// Acquires, bumps the word, releases and works outside.
    pub(crate) contended: Loop,
    /// The same, trying first; `None` for kinds that are no calls of the C library.
    pub(crate) tries_first: Option<Loop>,
    /// Acquires and releases as a reader, for kinds whose readers share.
    pub(crate) reads: Option<Loop>,
}

macro_rules! loops {
    ($($name:ident)*) => {
        unsafe extern "C" { $(fn $name(seat: *mut Seat, passes: u64) -> i32;)* }
    };
}
macro_rules! inits {
    ($($name:ident)*) => {
        unsafe extern "C" { $(fn $name(seat: *mut Seat) -> i32;)* }
    };
}

loops! {
    c_mutex_free c_spin_free c_rwlock_free c_semaphore_free
    c_tas_free c_ttas_free c_ticket_free c_mcs_free c_clh_free c_futex_free c_seqlock_free
    c_mutex_contended c_spin_contended c_rwlock_contended c_semaphore_contended
    c_tas_contended c_ttas_contended c_ticket_contended c_mcs_contended c_clh_contended c_futex_contended
    c_seqlock_contended
    c_mutex_contended_tries_first c_spin_contended_tries_first c_rwlock_contended_tries_first
    c_semaphore_contended_tries_first
    c_rwlock_read c_seqlock_read
}
inits! {
    c_mutex_init c_adaptive_init c_robust_init c_pi_init c_spin_init c_rwlock_init c_semaphore_init c_clh_init
    c_zeroed_init
}
unsafe extern "C" {
    static c_seat_bytes: u64;
}

/// The same kind in C; `raw-sync` is the POSIX mutex that it wraps.
pub(crate) fn in_c(kind: LockKind) -> InC {
    let mutex = |init: Init| InC {
        init,
        free: c_mutex_free,
        contended: c_mutex_contended,
        tries_first: Some(c_mutex_contended_tries_first),
        reads: None,
    };
    let own = |init: Init, free: Loop, contended: Loop| InC { init, free, contended, tries_first: None, reads: None };
    match kind {
        LockKind::Pthread | LockKind::RawSync => mutex(c_mutex_init),
        LockKind::PthreadAdaptive => mutex(c_adaptive_init),
        LockKind::PthreadRobust => mutex(c_robust_init),
        LockKind::PthreadPi => mutex(c_pi_init),
        LockKind::PthreadSpin => {
            InC { tries_first: Some(c_spin_contended_tries_first), ..own(c_spin_init, c_spin_free, c_spin_contended) }
        }
        LockKind::PthreadRwlock => InC {
            tries_first: Some(c_rwlock_contended_tries_first),
            reads: Some(c_rwlock_read),
            ..own(c_rwlock_init, c_rwlock_free, c_rwlock_contended)
        },
        LockKind::Semaphore => InC {
            tries_first: Some(c_semaphore_contended_tries_first),
            ..own(c_semaphore_init, c_semaphore_free, c_semaphore_contended)
        },
        LockKind::Tas => own(c_zeroed_init, c_tas_free, c_tas_contended),
        LockKind::Ttas => own(c_zeroed_init, c_ttas_free, c_ttas_contended),
        LockKind::Ticket => own(c_zeroed_init, c_ticket_free, c_ticket_contended),
        LockKind::Mcs => own(c_zeroed_init, c_mcs_free, c_mcs_contended),
        LockKind::Clh => own(c_clh_init, c_clh_free, c_clh_contended),
        LockKind::Futex => own(c_zeroed_init, c_futex_free, c_futex_contended),
        LockKind::Seqlock => {
            InC { reads: Some(c_seqlock_read), ..own(c_zeroed_init, c_seqlock_free, c_seqlock_contended) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contest::arena::Arena;
    use nix::sys::wait::{WaitStatus, waitpid};
    use nix::unistd::{ForkResult, fork};
    use std::sync::atomic::Ordering;

    const PASSES: u64 = 20_000;
    /// A child that takes longer waits for ever: a lock forgot it.
    const STUCK_S: u32 = 120;

    /// Two processes run `contended` on one lock; gives what they bumped.
    fn bumped_by_two(init: Init, contended: Loop) -> u64 {
        let arena = Arena::new(1).unwrap();
        let seat = |process| arena.seat(process, 0, 20);
        let mut first = seat(0);
        // SAFETY: the arena's lock and nodes are zero, and nobody else uses them yet.
        assert_eq!(unsafe { init(&raw mut first) }, 0);
        let child = |process| {
            let mut seat = seat(process);
            // SAFETY: the child calls nothing but C that allocates and locks nothing of this process, and leaves at
            // once.
            match unsafe { fork() }.unwrap() {
                ForkResult::Parent { child } => child,
                // SAFETY: the lock was made by `init`; each child has a seat of its own; `_exit` runs nothing else.
                ForkResult::Child => unsafe {
                    libc::alarm(STUCK_S);
                    libc::_exit(contended(&raw mut seat, PASSES));
                },
            }
        };
        for child in [0, 1].map(child) {
            assert_eq!(waitpid(child, None).unwrap(), WaitStatus::Exited(child, 0));
        }
        arena.protected().load(Ordering::Relaxed)
    }

    #[test]
    fn two_processes_lose_no_update_under_any_kind_in_c() {
        for kind in LockKind::ALL {
            let in_c = in_c(kind);
            assert_eq!(bumped_by_two(in_c.init, in_c.contended), 2 * PASSES, "{kind:?}");
            if let Some(tries_first) = in_c.tries_first {
                assert_eq!(bumped_by_two(in_c.init, tries_first), 2 * PASSES, "{kind:?}, tried first");
            }
            assert_eq!(in_c.tries_first.is_some(), kind.is_tried_first(), "{kind:?}");
            assert_eq!(in_c.reads.is_some(), kind.shares_readers(), "{kind:?}");
        }
    }

    #[test]
    fn what_is_free_before_is_free_after() {
        for kind in LockKind::ALL {
            let in_c = in_c(kind);
            let arena = Arena::new(1).unwrap();
            let mut seat = arena.seat(0, 0, 20);
            // SAFETY: the arena's lock and nodes are zero, and this thread alone uses them.
            unsafe {
                assert_eq!((in_c.init)(&raw mut seat), 0, "{kind:?}");
                assert_eq!((in_c.free)(&raw mut seat, 1_000), 0, "{kind:?}");
                in_c.reads.inspect(|reads| assert_eq!(reads(&raw mut seat, 1_000), 0, "{kind:?}"));
                assert_eq!((in_c.contended)(&raw mut seat, 1_000), 0, "{kind:?}");
            }
            assert_eq!(arena.protected().load(Ordering::Relaxed), 1_000, "{kind:?}");
        }
    }
}
