//! The POSIX mutex, process-shared, in four kinds: default, adaptive, robust, with priority inheritance. What each does
//! is glibc's (`nptl/pthread_mutex_lock.c`).
#![allow(unsafe_code)] // pthread calls on memory in a segment

use super::algorithm::{Algorithm, Outcome, Released, Waiting};
use super::error::{LockError, check};
use super::place::STATE_BYTES;
use super::time::{CLOCK, on_the_clock};
use nix::errno::Errno;
use plan::LockKind;
use std::marker::PhantomData;
use std::mem::{MaybeUninit, align_of, size_of};
use std::sync::atomic::{AtomicU32, Ordering};

const _: () = assert!(size_of::<libc::pthread_mutex_t>() <= STATE_BYTES && align_of::<libc::pthread_mutex_t>() <= 8);

/// glibc's adaptive type, which `libc` does not name (`sysdeps/nptl/pthread.h`, PTHREAD_MUTEX_ADAPTIVE_NP). Another
/// value would make another type, or fail with EINVAL.
const ADAPTIVE: libc::c_int = 3;

unsafe extern "C" {
    /// POSIX.1-2024, glibc 2.30, which `libc` does not name. One that inherits priorities needs glibc 2.34 and Linux 5.14
    /// (`FUTEX_LOCK_PI2`), and answers EINVAL before.
    fn pthread_mutex_clocklock(
        mutex: *mut libc::pthread_mutex_t,
        clock: libc::clockid_t,
        until: *const libc::timespec,
    ) -> libc::c_int;
}

/// Makes a mutex of one of the four kinds.
///
/// # Safety
/// `at` points to [`STATE_BYTES`] writable bytes aligned to 8 that nobody else uses yet.
pub(super) unsafe fn initialise(at: *mut u8, kind: LockKind) -> Result<(), LockError> {
    let mut attributes = MaybeUninit::uninit();
    let attr = attributes.as_mut_ptr();
    // SAFETY: the first call initialises the attributes before the others read them, or this returns. `at` is writable,
    // aligned, large enough (asserted above) and unshared: the caller's promise.
    unsafe {
        check("pthread_mutexattr_init", libc::pthread_mutexattr_init(attr))?;
        let shared = libc::pthread_mutexattr_setpshared(attr, libc::PTHREAD_PROCESS_SHARED);
        check("pthread_mutexattr_setpshared", shared)?;
        match kind {
            LockKind::PthreadAdaptive => {
                check("pthread_mutexattr_settype", libc::pthread_mutexattr_settype(attr, ADAPTIVE))?;
            }
            LockKind::PthreadRobust => {
                let robust = libc::pthread_mutexattr_setrobust(attr, libc::PTHREAD_MUTEX_ROBUST);
                check("pthread_mutexattr_setrobust", robust)?;
            }
            LockKind::PthreadPi => {
                let inherits = libc::pthread_mutexattr_setprotocol(attr, libc::PTHREAD_PRIO_INHERIT);
                check("pthread_mutexattr_setprotocol", inherits)?;
            }
            _ => {}
        }
        check("pthread_mutex_init", libc::pthread_mutex_init(at.cast(), attr))?;
        check("pthread_mutexattr_destroy", libc::pthread_mutexattr_destroy(attr))
    }
}

/// Whether somebody holds the mutex at `at`, or died holding it: glibc's word is 0 in a free one alone, whatever its
/// type (`sysdeps/nptl/bits/struct_mutex.h`, `__lock`). Elsewhere in the mutex it would say anything.
///
/// # Safety
/// `at` was given to [`initialise`], or made by `raw_sync`, and is mapped.
pub(super) unsafe fn is_held(at: *mut u8) -> bool {
    // SAFETY: the mutex's first word, aligned as it is, which glibc changes by atomics alone. Relaxed, no partner: only
    // whether it is 0.
    unsafe { &*at.cast::<AtomicU32>() }.load(Ordering::Relaxed) != 0
}

/// A mutex in a segment.
pub(super) struct PthreadMutex<'a> {
    /// Initialised and mapped for `'a`: the caller of [`PthreadMutex::at`] upholds it. Changed by pthread calls alone.
    mutex: *mut libc::pthread_mutex_t,
    mapping: PhantomData<&'a ()>,
}

impl PthreadMutex<'_> {
    /// # Safety
    /// `at` was given to [`initialise`] by any process, stays mapped for `'a`, and is changed by pthread calls alone.
    pub(super) unsafe fn at<'a>(at: *mut u8) -> PthreadMutex<'a> {
        PthreadMutex { mutex: at.cast(), mapping: PhantomData }
    }

    fn outcome(&self, call: &'static str, code: libc::c_int) -> Result<Outcome, LockError> {
        match code {
            0 => Ok(Outcome::Owned),
            libc::EBUSY | libc::ETIMEDOUT => Ok(Outcome::Busy),
            libc::EOWNERDEAD => {
                // SAFETY: mapped and initialised (the field's promise). EOWNERDEAD, which glibc just gave this thread,
                // says that it owns the mutex in the one state this call is made for.
                check("pthread_mutex_consistent", unsafe { libc::pthread_mutex_consistent(self.mutex) })?;
                Ok(Outcome::OwnedAfterDeath)
            }
            code => Err(LockError::Call { call, errno: Errno::from_raw(code) }),
        }
    }
}

impl Algorithm for PthreadMutex<'_> {
    fn attempt(&mut self, _shared: bool) -> Result<Outcome, LockError> {
        // SAFETY: mapped and initialised: the field's promise.
        self.outcome("pthread_mutex_trylock", unsafe { libc::pthread_mutex_trylock(self.mutex) })
    }

    fn settle(&mut self, _shared: bool, told: i64) -> Result<Outcome, LockError> {
        self.outcome("pthread_mutex_lock or _trylock", told as libc::c_int)
    }

    fn wait(&mut self, shared: bool, waiting: &mut Waiting<'_>) -> Result<Outcome, LockError> {
        let Some(deadline) = waiting.deadline else { return self.acquire_plain(shared, waiting) };
        let until = on_the_clock(deadline);
        // SAFETY: mapped and initialised: the field's promise; `until` lives through the call.
        let told = unsafe { pthread_mutex_clocklock(self.mutex, CLOCK, &raw const until) };
        self.outcome("pthread_mutex_clocklock", told)
    }

    fn acquire_plain(&mut self, _shared: bool, _waiting: &mut Waiting<'_>) -> Result<Outcome, LockError> {
        // SAFETY: mapped and initialised: the field's promise. Blocking keeps the mapping: the borrow behind `'a` ends
        // after this call at the earliest.
        self.outcome("pthread_mutex_lock", unsafe { libc::pthread_mutex_lock(self.mutex) })
    }

    fn release(&mut self, _shared: bool, _waiting: &mut Waiting<'_>) -> Result<Released, LockError> {
        // SAFETY: mapped and initialised: the field's promise. That the caller owns it is no condition of memory
        // safety: a robust one answers EPERM to others, a default one is released.
        self.release_after(i64::from(unsafe { libc::pthread_mutex_unlock(self.mutex) }))?;
        Ok(Released::Done)
    }

    fn release_after(&mut self, told: i64) -> Result<(), LockError> {
        match told as libc::c_int {
            libc::EPERM => Err(LockError::NotHeld),
            code => check("pthread_mutex_unlock", code),
        }
    }

    fn is_held(&self) -> bool {
        // SAFETY: mapped and initialised: the field's promise.
        unsafe { is_held(self.mutex.cast()) }
    }
}
