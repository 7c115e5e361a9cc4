//! Locks in shared memory. Their size and alignment are `plan`'s ([`LockKind::bytes`]), asserted here; where they lie
//! is the Program's, within the fields area of the map (`map.rs`). One lock's own bytes:
//!
//! ```text
//! offset   bytes   what
//! 0        40      pthread_mutex_t, process-shared, robust
//! 40       4       last owner: worker index plus 1; written by the owner alone
//! 44       4       acquisitions since the last handoff; written by the owner alone
//! ```
#![allow(unsafe_code)] // pthread calls on memory in a segment

use nix::errno::Errno;
use plan::LockKind;
use std::marker::PhantomData;
use std::mem::{MaybeUninit, align_of, offset_of, size_of};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

#[repr(C)]
struct PthreadLock {
    mutex: libc::pthread_mutex_t,
    last_owner: AtomicU32,
    run: AtomicU32,
    spare: [u64; 2],
}

const _: () = {
    assert!(size_of::<PthreadLock>() as u64 == plan_bytes());
    assert!(align_of::<PthreadLock>() as u64 == plan_align());
    assert!(offset_of!(PthreadLock, mutex) == 0 && size_of::<libc::pthread_mutex_t>() == 40);
    assert!(offset_of!(PthreadLock, last_owner) == 40 && offset_of!(PthreadLock, run) == 44);
};

const fn plan_bytes() -> u64 {
    LockKind::BYTES
}

const fn plan_align() -> u64 {
    LockKind::ALIGN
}

/// A pthread call on a lock failed.
#[derive(Debug, thiserror::Error)]
#[error("{call} failed: {errno}")]
pub struct LockError {
    /// The call.
    pub call: &'static str,
    /// What it returned.
    pub errno: Errno,
}

fn check(call: &'static str, code: libc::c_int) -> Result<(), LockError> {
    if code == 0 { Ok(()) } else { Err(LockError { call, errno: Errno::from_raw(code) }) }
}

/// What an acquisition found.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Acquired {
    /// The previous owner died holding it (EOWNERDEAD); the lock was made consistent.
    pub owner_died: bool,
    /// Another worker owned it before.
    pub handoff: bool,
    /// Acquisitions by this worker since the last handoff, this one included.
    pub run: u32,
}

/// Makes a lock at `at`.
///
/// # Safety
/// `at` points to [`LockKind::bytes`] writable bytes aligned to [`LockKind::align`], which nobody else uses yet.
///
/// # Errors
/// [`LockError`] with the call that failed.
pub unsafe fn initialise(at: *mut u8, kind: LockKind) -> Result<(), LockError> {
    match kind {
        LockKind::Pthread | LockKind::PthreadRobust => {
            let lock = at.cast::<PthreadLock>();
            let mut attributes = MaybeUninit::uninit();
            let attr = attributes.as_mut_ptr();
            // SAFETY: the first call initialises the attributes before the others read them, or this returns. `lock` is
            // writable, aligned and unshared: the caller upholds this function's contract. Its words are written
            // through raw pointers and atomics, never read before.
            unsafe {
                check("pthread_mutexattr_init", libc::pthread_mutexattr_init(attr))?;
                check(
                    "pthread_mutexattr_setpshared",
                    libc::pthread_mutexattr_setpshared(attr, libc::PTHREAD_PROCESS_SHARED),
                )?;
                check(
                    "pthread_mutexattr_setrobust",
                    libc::pthread_mutexattr_setrobust(attr, libc::PTHREAD_MUTEX_ROBUST),
                )?;
                check("pthread_mutex_init", libc::pthread_mutex_init(&raw mut (*lock).mutex, attr))?;
                check("pthread_mutexattr_destroy", libc::pthread_mutexattr_destroy(attr))?;
                (*lock).last_owner.store(0, Ordering::Relaxed);
                (*lock).run.store(0, Ordering::Relaxed);
            }
            Ok(())
        }
        _ => Err(LockError { call: "initialise", errno: Errno::ENOSYS }),
    }
}

/// A lock in this process's mapping of the segment. Holds an address, no reference: other processes change what is
/// there.
#[derive(Copy, Clone)]
pub struct SharedLock<'a> {
    /// Points to an initialised lock for all of `'a`: the caller of [`SharedLock::new`] upholds it.
    lock: NonNull<PthreadLock>,
    worker: u32,
    mapping: PhantomData<&'a ()>,
}

impl<'a> SharedLock<'a> {
    /// The lock at `at`, for the use of worker `worker`.
    ///
    /// # Safety
    /// `at` was given to [`initialise`] (by any process that maps the segment) and stays mapped for `'a`.
    pub unsafe fn new(at: *mut u8, kind: LockKind, worker: u32) -> SharedLock<'a> {
        let _ = kind;
        // SAFETY: the caller upholds that `at` points into a mapping, which is never null.
        let lock = unsafe { NonNull::new_unchecked(at.cast::<PthreadLock>()) };
        SharedLock { lock, worker, mapping: PhantomData }
    }

    /// Tries once; `None` where another holds it. The caller's first try decides whether an acquisition is contended.
    ///
    /// # Errors
    /// [`LockError`] for anything but EBUSY.
    #[inline]
    pub fn try_acquire(self) -> Result<Option<Acquired>, LockError> {
        // SAFETY: the mutex is mapped and was initialised: the field `lock` promises both. From then on it is changed
        // by pthread calls alone, since no operation of a Program lies on a lock (placement keeps them apart).
        match unsafe { libc::pthread_mutex_trylock(self.mutex()) } {
            libc::EBUSY => Ok(None),
            code => self.acquired("pthread_mutex_trylock", code).map(Some),
        }
    }

    /// Blocks until it is owned.
    ///
    /// # Errors
    /// [`LockError`], e.g. ENOTRECOVERABLE.
    pub fn acquire(self) -> Result<Acquired, LockError> {
        // SAFETY: mapped and initialised, by the promise of the field `lock`. Blocking keeps the mapping: the borrow
        // behind `'a` ends after this call at the earliest.
        let code = unsafe { libc::pthread_mutex_lock(self.mutex()) };
        self.acquired("pthread_mutex_lock", code)
    }

    /// Gives it back.
    ///
    /// # Errors
    /// [`LockError`], EPERM where this worker does not own it.
    #[inline]
    pub fn release(self) -> Result<(), LockError> {
        // SAFETY: mapped and initialised, by the promise of the field `lock`. That the caller owns it is no condition:
        // a robust mutex knows its owner and answers EPERM to others.
        check("pthread_mutex_unlock", unsafe { libc::pthread_mutex_unlock(self.mutex()) })
    }

    #[inline]
    fn acquired(self, call: &'static str, code: libc::c_int) -> Result<Acquired, LockError> {
        let owner_died = code == libc::EOWNERDEAD;
        if owner_died {
            // SAFETY: mapped and initialised, by the promise of the field `lock`. EOWNERDEAD, which the kernel or glibc
            // just gave this thread, says that it owns the mutex in the one state this call is made for.
            check("pthread_mutex_consistent", unsafe { libc::pthread_mutex_consistent(self.mutex()) })?;
        } else {
            check(call, code)?;
        }
        let (last_owner, run) = self.owner_record();
        // Relaxed, all four: both words are touched by the lock's owner alone, and the mutex orders one owner's
        // accesses before the next one's (unlock pairs with lock).
        let me = self.worker + 1;
        let last = last_owner.load(Ordering::Relaxed);
        let length = if last == me { run.load(Ordering::Relaxed).saturating_add(1) } else { 1 };
        run.store(length, Ordering::Relaxed);
        if last != me {
            last_owner.store(me, Ordering::Relaxed);
        }
        Ok(Acquired { owner_died, handoff: last != me && last != 0, run: length })
    }

    #[inline]
    fn mutex(self) -> *mut libc::pthread_mutex_t {
        // SAFETY: the address of a field of a mapped PthreadLock, by the promise of the field `lock`; nothing is read.
        unsafe { &raw mut (*self.lock.as_ptr()).mutex }
    }

    #[inline]
    fn owner_record(self) -> (&'a AtomicU32, &'a AtomicU32) {
        let lock = self.lock.as_ptr();
        // SAFETY: mapped for `'a` and aligned, by the promise of the field `lock`; every process touches these two
        // words as atomics only, through this function and `initialise`.
        unsafe { (&(*lock).last_owner, &(*lock).run) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::UnsafeCell;

    #[repr(align(64))]
    struct Memory(UnsafeCell<[u8; 64]>);

    // SAFETY: after `made`, only `lock` uses the bytes, and what it gives touches them as one process touches
    // another's: by pthread calls and atomics.
    unsafe impl Sync for Memory {}

    fn made() -> Box<Memory> {
        let memory = Box::new(Memory(UnsafeCell::new([0; 64])));
        // SAFETY: 64 bytes aligned to 64, which nobody else knows yet and which stay where they are.
        unsafe { initialise(memory.0.get().cast(), LockKind::Pthread).unwrap() };
        memory
    }

    fn lock(memory: &Memory, worker: u32) -> SharedLock<'_> {
        // SAFETY: initialised by `made`, where every test's memory comes from, and borrowed for as long as the lock.
        unsafe { SharedLock::new(memory.0.get().cast(), LockKind::Pthread, worker) }
    }

    #[test]
    fn handoffs_and_runs_are_told() {
        let memory = made();
        let take = |worker| {
            let acquired = lock(&memory, worker).try_acquire().unwrap().unwrap();
            lock(&memory, worker).release().unwrap();
            (acquired.handoff, acquired.run)
        };
        assert_eq!(
            [take(0), take(0), take(1), take(1), take(1), take(0)],
            [(false, 1), (false, 2), (true, 1), (false, 2), (false, 3), (true, 1)]
        );
    }

    #[test]
    fn a_held_lock_is_busy_and_then_excludes() {
        let memory = made();
        lock(&memory, 0).acquire().unwrap();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| lock(&memory, 1).try_acquire().unwrap());
            assert_eq!(other.join().unwrap(), None);
            let waiter = scope.spawn(|| {
                let acquired = lock(&memory, 1).acquire().unwrap();
                lock(&memory, 1).release().unwrap();
                acquired
            });
            lock(&memory, 0).release().unwrap();
            assert!(waiter.join().unwrap().handoff);
        });
    }

    #[test]
    fn an_owner_that_dies_is_reported_once_and_the_lock_goes_on() {
        let memory = made();
        std::thread::scope(|scope| {
            scope.spawn(|| lock(&memory, 0).acquire().unwrap());
        });
        let after = lock(&memory, 1).acquire().unwrap();
        assert!(after.owner_died && after.handoff);
        lock(&memory, 1).release().unwrap();
        let next = lock(&memory, 1).try_acquire().unwrap().unwrap();
        assert!(!next.owner_died);
        lock(&memory, 1).release().unwrap();
    }
}
