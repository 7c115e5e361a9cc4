//! The POSIX spin lock, process-shared: glibc's (`nptl/pthread_spin_lock.c`).
#![allow(unsafe_code)] // pthread calls on memory in a segment

use super::algorithm::{Algorithm, Outcome, Released, Waiting};
use super::error::{LockError, check};
use super::place::STATE_BYTES;
use std::marker::PhantomData;
use std::mem::{align_of, size_of};
use std::sync::atomic::{AtomicI32, Ordering};

const _: () =
    assert!(size_of::<libc::pthread_spinlock_t>() <= STATE_BYTES && align_of::<libc::pthread_spinlock_t>() <= 8);

/// # Safety
/// `at` points to [`STATE_BYTES`] writable bytes aligned to 8 that nobody else uses yet.
pub(super) unsafe fn initialise(at: *mut u8) -> Result<(), LockError> {
    // SAFETY: writable, aligned and large enough (asserted above): the caller's promise.
    check("pthread_spin_init", unsafe { libc::pthread_spin_init(at.cast(), libc::PTHREAD_PROCESS_SHARED) })
}

/// A spin lock in a segment.
pub(super) struct PthreadSpin<'a> {
    /// Initialised and mapped for `'a`: the caller of [`PthreadSpin::at`] upholds it. Changed by pthread calls alone.
    lock: *mut libc::pthread_spinlock_t,
    mapping: PhantomData<&'a ()>,
}

impl PthreadSpin<'_> {
    /// # Safety
    /// `at` was given to [`initialise`] by any process, stays mapped for `'a`, and is changed by pthread calls alone.
    pub(super) unsafe fn at<'a>(at: *mut u8) -> PthreadSpin<'a> {
        PthreadSpin { lock: at.cast(), mapping: PhantomData }
    }
}

impl Algorithm for PthreadSpin<'_> {
    fn attempt(&mut self, _shared: bool) -> Result<Outcome, LockError> {
        // SAFETY: mapped and initialised: the field's promise.
        self.settle(false, i64::from(unsafe { libc::pthread_spin_trylock(self.lock) }))
    }

    fn settle(&mut self, _shared: bool, told: i64) -> Result<Outcome, LockError> {
        match told as libc::c_int {
            libc::EBUSY => Ok(Outcome::Busy),
            code => check("pthread_spin_lock or _trylock", code).map(|()| Outcome::Owned),
        }
    }

    fn wait(&mut self, shared: bool, waiting: &mut Waiting<'_>) -> Result<Outcome, LockError> {
        self.acquire_plain(shared, waiting)
    }

    fn acquire_plain(&mut self, _shared: bool, _waiting: &mut Waiting<'_>) -> Result<Outcome, LockError> {
        // SAFETY: mapped and initialised: the field's promise; spinning keeps the mapping, since `'a` ends later.
        check("pthread_spin_lock", unsafe { libc::pthread_spin_lock(self.lock) })?;
        Ok(Outcome::Owned)
    }

    fn release(&mut self, _shared: bool, _waiting: &mut Waiting<'_>) -> Result<Released, LockError> {
        // SAFETY: mapped and initialised: the field's promise. Who owns it, the lock does not know.
        self.release_after(i64::from(unsafe { libc::pthread_spin_unlock(self.lock) }))?;
        Ok(Released::Done)
    }

    fn release_after(&mut self, told: i64) -> Result<(), LockError> {
        check("pthread_spin_unlock", told as libc::c_int)
    }

    fn is_held(&self) -> bool {
        // glibc's word of a free lock: 1 on x86, whose trylock decrements it (`sysdeps/x86/nptl/pthread_spin_init.c`),
        // else 0 (`nptl/pthread_spin_init.c`).
        const FREE: i32 = if cfg!(target_arch = "x86_64") { 1 } else { 0 };
        // SAFETY: mapped and initialised: the field's promise; glibc changes the word by atomics alone. Relaxed, no
        // partner: see the trait.
        unsafe { &*self.lock.cast::<AtomicI32>() }.load(Ordering::Relaxed) != FREE
    }
}
