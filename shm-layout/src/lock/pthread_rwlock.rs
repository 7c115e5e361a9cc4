//! The POSIX reader-writer lock, process-shared: glibc's (`nptl/pthread_rwlock_common.c`), which prefers readers.
#![allow(unsafe_code)] // pthread calls on memory in a segment

use super::algorithm::{Algorithm, Outcome, Released, Waiting};
use super::error::{LockError, check};
use super::place::STATE_BYTES;
use super::time::{CLOCK, on_the_clock};
use nix::errno::Errno;
use std::marker::PhantomData;
use std::mem::{MaybeUninit, align_of, size_of};
use std::sync::atomic::{AtomicU32, Ordering};

const _: () = assert!(size_of::<libc::pthread_rwlock_t>() <= STATE_BYTES && align_of::<libc::pthread_rwlock_t>() <= 8);

unsafe extern "C" {
    /// POSIX.1-2024, glibc 2.30, which `libc` does not name.
    fn pthread_rwlock_clockrdlock(
        lock: *mut libc::pthread_rwlock_t,
        clock: libc::clockid_t,
        until: *const libc::timespec,
    ) -> libc::c_int;
    /// POSIX.1-2024, glibc 2.30, which `libc` does not name.
    fn pthread_rwlock_clockwrlock(
        lock: *mut libc::pthread_rwlock_t,
        clock: libc::clockid_t,
        until: *const libc::timespec,
    ) -> libc::c_int;
}

/// # Safety
/// `at` points to [`STATE_BYTES`] writable bytes aligned to 8 that nobody else uses yet.
pub(super) unsafe fn initialise(at: *mut u8) -> Result<(), LockError> {
    let mut attributes = MaybeUninit::uninit();
    let attr = attributes.as_mut_ptr();
    // SAFETY: the first call initialises the attributes before the others read them, or this returns. `at` is writable,
    // aligned, large enough (asserted above) and unshared: the caller's promise.
    unsafe {
        check("pthread_rwlockattr_init", libc::pthread_rwlockattr_init(attr))?;
        let shared = libc::pthread_rwlockattr_setpshared(attr, libc::PTHREAD_PROCESS_SHARED);
        check("pthread_rwlockattr_setpshared", shared)?;
        check("pthread_rwlock_init", libc::pthread_rwlock_init(at.cast(), attr))?;
        check("pthread_rwlockattr_destroy", libc::pthread_rwlockattr_destroy(attr))
    }
}

/// A reader-writer lock in a segment, as one worker uses it.
pub(super) struct PthreadRwlock<'a> {
    /// Initialised and mapped for `'a`: the caller of [`PthreadRwlock::at`] upholds it. Changed by pthread calls alone.
    lock: *mut libc::pthread_rwlock_t,
    mapping: PhantomData<&'a ()>,
}

impl PthreadRwlock<'_> {
    /// # Safety
    /// `at` was given to [`initialise`] by any process, stays mapped for `'a`, and is changed by pthread calls alone.
    pub(super) unsafe fn at<'a>(at: *mut u8) -> PthreadRwlock<'a> {
        PthreadRwlock { lock: at.cast(), mapping: PhantomData }
    }

    fn outcome(&self, call: &'static str, code: libc::c_int) -> Result<Outcome, LockError> {
        match code {
            0 => Ok(Outcome::Owned),
            libc::EBUSY | libc::ETIMEDOUT => Ok(Outcome::Busy),
            code => Err(LockError::Call { call, errno: Errno::from_raw(code) }),
        }
    }
}

impl Algorithm for PthreadRwlock<'_> {
    fn attempt(&mut self, shared: bool) -> Result<Outcome, LockError> {
        // SAFETY: mapped and initialised: the field's promise.
        unsafe {
            if shared {
                self.outcome("pthread_rwlock_tryrdlock", libc::pthread_rwlock_tryrdlock(self.lock))
            } else {
                self.outcome("pthread_rwlock_trywrlock", libc::pthread_rwlock_trywrlock(self.lock))
            }
        }
    }

    fn wait(&mut self, shared: bool, waiting: &mut Waiting<'_>) -> Result<Outcome, LockError> {
        let Some(deadline) = waiting.deadline else { return self.acquire_plain(shared, waiting) };
        let until = on_the_clock(deadline);
        // SAFETY: mapped and initialised: the field's promise; `until` lives through the call.
        unsafe {
            if shared {
                let code = pthread_rwlock_clockrdlock(self.lock, CLOCK, &raw const until);
                self.outcome("pthread_rwlock_clockrdlock", code)
            } else {
                let code = pthread_rwlock_clockwrlock(self.lock, CLOCK, &raw const until);
                self.outcome("pthread_rwlock_clockwrlock", code)
            }
        }
    }

    fn acquire_plain(&mut self, shared: bool, _waiting: &mut Waiting<'_>) -> Result<Outcome, LockError> {
        // SAFETY: mapped and initialised: the field's promise; blocking keeps the mapping, since `'a` ends later.
        unsafe {
            if shared {
                self.outcome("pthread_rwlock_rdlock", libc::pthread_rwlock_rdlock(self.lock))
            } else {
                self.outcome("pthread_rwlock_wrlock", libc::pthread_rwlock_wrlock(self.lock))
            }
        }
    }

    fn settle(&mut self, shared: bool, told: i64) -> Result<Outcome, LockError> {
        let call = if shared { "pthread_rwlock_rdlock or _tryrdlock" } else { "pthread_rwlock_wrlock or _trywrlock" };
        self.outcome(call, told as libc::c_int)
    }

    fn release(&mut self, _shared: bool, _waiting: &mut Waiting<'_>) -> Result<Released, LockError> {
        // SAFETY: mapped and initialised: the field's promise. Who holds it, the lock does not know as a whole: that
        // this worker does is for the scenario to see to, which is refused else.
        self.release_after(i64::from(unsafe { libc::pthread_rwlock_unlock(self.lock) }))?;
        Ok(Released::Done)
    }

    fn release_after(&mut self, told: i64) -> Result<(), LockError> {
        check("pthread_rwlock_unlock", told as libc::c_int)
    }

    fn is_held(&self) -> bool {
        // glibc's `__readers` (`nptl/pthread_rwlock_common.c`): bit 1 says that a writer holds it, from bit 3 on stand
        // the readers. Bit 0, the phase, outlives a writer, and bit 2 a waiting reader.
        const HELD: u32 = !0b101;
        // SAFETY: mapped and initialised: the field's promise; the lock's first word, which glibc changes by atomics
        // alone. Relaxed, no partner: see the trait.
        unsafe { &*self.lock.cast::<AtomicU32>() }.load(Ordering::Relaxed) & HELD != 0
    }
}
