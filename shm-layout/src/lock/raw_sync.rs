//! The mutex of the package `raw_sync`: a POSIX mutex, process-shared and of the default type, behind the package's
//! interface. A lock under study: its timed try fails whenever nanoseconds overflow, so it waits by `lock()` alone.
#![allow(unsafe_code)] // a mutex in a segment

use super::algorithm::{Algorithm, Outcome, Released, Waiting};
use super::error::{LockError, check};
use super::place::STATE_BYTES;
use super::pthread_mutex;
use raw_sync::locks::{LockImpl, LockInit, Mutex};
use std::fmt::Display;
use std::marker::PhantomData;
use std::mem::{align_of, size_of};

const _: () = assert!(size_of::<libc::pthread_mutex_t>() <= STATE_BYTES && align_of::<libc::pthread_mutex_t>() <= 8);

fn failed<E: Display>(call: &'static str) -> impl FnOnce(E) -> LockError {
    move |error| LockError::Library { call, message: error.to_string() }
}

/// # Safety
/// `at` points to [`STATE_BYTES`] writable bytes aligned to 8 that nobody else uses yet.
pub(super) unsafe fn initialise(at: *mut u8) -> Result<(), LockError> {
    // SAFETY: writable, aligned (so that the package adds no padding of its own) and large enough (asserted above): the
    // caller's promise. The second address is what a guard would give to its user, and none is used.
    unsafe { Mutex::new(at, at) }.map(drop).map_err(failed("Mutex::new"))
}

/// A `raw_sync` mutex in a segment, as one worker uses it.
pub(super) struct RawSync<'a> {
    mutex: Box<dyn LockImpl>,
    mapping: PhantomData<&'a ()>,
}

impl RawSync<'_> {
    /// # Safety
    /// `at` was given to [`initialise`] by any process, stays mapped for `'a`, and is changed by pthread calls alone.
    ///
    /// # Panics
    /// If the package says no, which its code does not.
    pub(super) unsafe fn at<'a>(at: *mut u8) -> RawSync<'a> {
        // SAFETY: the caller's promise.
        let (mutex, _) = unsafe { Mutex::from_existing(at, at) }.expect("raw_sync takes any address");
        RawSync { mutex, mapping: PhantomData }
    }
}

impl Algorithm for RawSync<'_> {
    /// By the C library on the package's own mutex, whose try is not usable.
    fn attempt(&mut self, shared: bool) -> Result<Outcome, LockError> {
        // SAFETY: `as_raw` gives the mutex of `at`, mapped and initialised: the promise of its caller.
        let code = unsafe { libc::pthread_mutex_trylock(self.mutex.as_raw().cast()) };
        self.settle(shared, code.into())
    }

    fn settle(&mut self, _shared: bool, told: i64) -> Result<Outcome, LockError> {
        match told as libc::c_int {
            libc::EBUSY => Ok(Outcome::Busy),
            code => check("pthread_mutex_lock or _trylock", code).map(|()| Outcome::Owned),
        }
    }

    fn wait(&mut self, shared: bool, waiting: &mut Waiting<'_>) -> Result<Outcome, LockError> {
        self.acquire_plain(shared, waiting)
    }

    fn acquire_plain(&mut self, _shared: bool, _waiting: &mut Waiting<'_>) -> Result<Outcome, LockError> {
        // The guard would release at the end of this function; `release` does it instead.
        std::mem::forget(self.mutex.lock().map_err(failed("lock"))?);
        Ok(Outcome::Owned)
    }

    fn release(&mut self, _shared: bool, _waiting: &mut Waiting<'_>) -> Result<Released, LockError> {
        self.mutex.release().map_err(failed("release"))?;
        Ok(Released::Done)
    }

    fn release_after(&mut self, told: i64) -> Result<(), LockError> {
        check("pthread_mutex_unlock", told as libc::c_int)
    }

    fn is_held(&self) -> bool {
        // SAFETY: as in `attempt`.
        unsafe { pthread_mutex::is_held(self.mutex.as_raw().cast()) }
    }
}
