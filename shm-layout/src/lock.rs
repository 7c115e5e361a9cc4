//! Locks in shared memory. Their size and alignment are `plan`'s ([`LockKind::bytes`]), asserted here.
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
use std::cell::UnsafeCell;
use std::mem::{MaybeUninit, align_of, offset_of, size_of};
use std::sync::atomic::{AtomicU32, Ordering};

#[repr(C)]
struct PthreadLock {
    mutex: UnsafeCell<libc::pthread_mutex_t>,
    last_owner: AtomicU32,
    run: AtomicU32,
}

const _: () = {
    assert!(size_of::<PthreadLock>() as u64 == plan_bytes());
    assert!(align_of::<PthreadLock>() as u64 == plan_align());
    assert!(offset_of!(PthreadLock, last_owner) == size_of::<libc::pthread_mutex_t>());
};

const fn plan_bytes() -> u64 {
    LockKind::Pthread.bytes()
}

const fn plan_align() -> u64 {
    LockKind::Pthread.align()
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
        LockKind::Pthread => {
            let lock = at.cast::<PthreadLock>();
            let mut attributes = MaybeUninit::uninit();
            let attr = attributes.as_mut_ptr();
            // SAFETY: attributes are initialised by the first call before the others use them; `lock` is valid and
            // unshared by this function's contract.
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
                check("pthread_mutex_init", libc::pthread_mutex_init((*lock).mutex.get(), attr))?;
                check("pthread_mutexattr_destroy", libc::pthread_mutexattr_destroy(attr))?;
                (*lock).last_owner.store(0, Ordering::Relaxed);
                (*lock).run.store(0, Ordering::Relaxed);
            }
            Ok(())
        }
    }
}

/// A lock in this process's mapping of the segment.
#[derive(Copy, Clone)]
pub struct SharedLock<'a> {
    lock: &'a PthreadLock,
    worker: u32,
}

impl<'a> SharedLock<'a> {
    /// The lock at `at`, for the use of worker `worker`.
    ///
    /// # Safety
    /// `at` was given to [`initialise`] (by any process that maps the segment) and stays mapped for `'a`.
    pub unsafe fn new(at: *mut u8, kind: LockKind, worker: u32) -> SharedLock<'a> {
        let LockKind::Pthread = kind;
        // SAFETY: by contract valid for 'a; a PthreadLock changes only through atomics and pthread calls.
        let lock = unsafe { &*at.cast::<PthreadLock>() };
        SharedLock { lock, worker }
    }

    /// Tries once; `None` where another holds it. The caller's first try decides whether an acquisition is contended.
    ///
    /// # Errors
    /// [`LockError`] for anything but EBUSY.
    #[inline]
    pub fn try_acquire(self) -> Result<Option<Acquired>, LockError> {
        // SAFETY: an initialised mutex, by the contract of `new`.
        match unsafe { libc::pthread_mutex_trylock(self.lock.mutex.get()) } {
            libc::EBUSY => Ok(None),
            code => self.acquired("pthread_mutex_trylock", code).map(Some),
        }
    }

    /// Blocks until it is owned.
    ///
    /// # Errors
    /// [`LockError`], e.g. ENOTRECOVERABLE.
    pub fn acquire(self) -> Result<Acquired, LockError> {
        // SAFETY: an initialised mutex, by the contract of `new`.
        let code = unsafe { libc::pthread_mutex_lock(self.lock.mutex.get()) };
        self.acquired("pthread_mutex_lock", code)
    }

    /// Gives it back.
    ///
    /// # Errors
    /// [`LockError`], EPERM where this worker does not own it.
    #[inline]
    pub fn release(self) -> Result<(), LockError> {
        // SAFETY: an initialised mutex, by the contract of `new`.
        check("pthread_mutex_unlock", unsafe { libc::pthread_mutex_unlock(self.lock.mutex.get()) })
    }

    #[inline]
    fn acquired(self, call: &'static str, code: libc::c_int) -> Result<Acquired, LockError> {
        let owner_died = code == libc::EOWNERDEAD;
        if owner_died {
            // SAFETY: this worker owns the mutex, whose previous owner died.
            check("pthread_mutex_consistent", unsafe { libc::pthread_mutex_consistent(self.lock.mutex.get()) })?;
        } else {
            check(call, code)?;
        }
        // Relaxed: both words are written under the lock, which orders them.
        let me = self.worker + 1;
        let last = self.lock.last_owner.load(Ordering::Relaxed);
        let run = if last == me { self.lock.run.load(Ordering::Relaxed).saturating_add(1) } else { 1 };
        self.lock.run.store(run, Ordering::Relaxed);
        if last != me {
            self.lock.last_owner.store(me, Ordering::Relaxed);
        }
        Ok(Acquired { owner_died, handoff: last != me && last != 0, run })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(align(64))]
    struct Memory(UnsafeCell<[u8; 64]>);

    // SAFETY: tests hand it to locks only.
    unsafe impl Sync for Memory {}

    fn made() -> Memory {
        let memory = Memory(UnsafeCell::new([0; 64]));
        // SAFETY: 64 aligned bytes, unshared.
        unsafe { initialise(memory.0.get().cast(), LockKind::Pthread).unwrap() };
        memory
    }

    fn lock(memory: &Memory, worker: u32) -> SharedLock<'_> {
        // SAFETY: made by `made`, lives as long as the borrow.
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
