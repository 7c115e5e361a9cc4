//! The POSIX semaphore, process-shared, of one: glibc's (`nptl/sem_waitcommon.c`).
#![allow(unsafe_code)] // semaphore calls on memory in a segment

use super::algorithm::{Algorithm, Outcome, Released, Waiting};
use super::error::LockError;
use super::place::STATE_BYTES;
use super::time::{CLOCK, on_the_clock};
use nix::errno::Errno;
use std::marker::PhantomData;
use std::mem::{align_of, size_of};

const _: () = assert!(size_of::<libc::sem_t>() <= STATE_BYTES && align_of::<libc::sem_t>() <= 8);

unsafe extern "C" {
    /// POSIX.1-2024, glibc 2.30, which `libc` does not name.
    fn sem_clockwait(semaphore: *mut libc::sem_t, clock: libc::clockid_t, until: *const libc::timespec) -> libc::c_int;
}

/// # Safety
/// `at` points to [`STATE_BYTES`] writable bytes aligned to 8 that nobody else uses yet.
pub(super) unsafe fn initialise(at: *mut u8) -> Result<(), LockError> {
    // SAFETY: writable, aligned and large enough (asserted above): the caller's promise.
    done("sem_init", unsafe { libc::sem_init(at.cast(), libc::PTHREAD_PROCESS_SHARED, 1) })
}

/// What a call returned: 0, or -1 with the reason in `errno`.
fn done(call: &'static str, code: libc::c_int) -> Result<(), LockError> {
    Errno::result(code).map(drop).map_err(|errno| LockError::Call { call, errno })
}

/// A semaphore in a segment.
pub(super) struct Semaphore<'a> {
    /// Initialised and mapped for `'a`: the caller of [`Semaphore::at`] upholds it. Changed by semaphore calls alone.
    semaphore: *mut libc::sem_t,
    mapping: PhantomData<&'a ()>,
}

impl Semaphore<'_> {
    /// # Safety
    /// `at` was given to [`initialise`] by any process, stays mapped for `'a`, and is changed by semaphore calls alone.
    pub(super) unsafe fn at<'a>(at: *mut u8) -> Semaphore<'a> {
        Semaphore { semaphore: at.cast(), mapping: PhantomData }
    }

    /// Whether nobody holds it.
    fn is_free(&self) -> Result<bool, LockError> {
        let mut value = 0;
        // SAFETY: mapped and initialised: the field's promise; `value` is this function's own.
        done("sem_getvalue", unsafe { libc::sem_getvalue(self.semaphore, &raw mut value) })?;
        Ok(value > 0)
    }
}

/// Makes a waiting call until it ends otherwise than by a signal (EINTR).
fn uninterrupted(call: &'static str, mut wait: impl FnMut() -> libc::c_int) -> Result<Outcome, LockError> {
    loop {
        match Errno::result(wait()) {
            Ok(_) => return Ok(Outcome::Owned),
            Err(Errno::EAGAIN | Errno::ETIMEDOUT) => return Ok(Outcome::Busy),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(LockError::Call { call, errno }),
        }
    }
}

impl Algorithm for Semaphore<'_> {
    fn attempt(&mut self, _shared: bool) -> Result<Outcome, LockError> {
        // SAFETY: mapped and initialised: the field's promise.
        uninterrupted("sem_trywait", || unsafe { libc::sem_trywait(self.semaphore) })
    }

    /// -1 is no more than that: it is another's, or a signal came, and waiting settles both.
    fn settle(&mut self, _shared: bool, told: i64) -> Result<Outcome, LockError> {
        Ok(if told == 0 { Outcome::Owned } else { Outcome::Busy })
    }

    fn wait(&mut self, shared: bool, waiting: &mut Waiting<'_>) -> Result<Outcome, LockError> {
        let Some(deadline) = waiting.deadline else { return self.acquire_plain(shared, waiting) };
        let until = on_the_clock(deadline);
        // SAFETY: mapped and initialised: the field's promise; `until` lives through the call.
        uninterrupted("sem_clockwait", || unsafe { sem_clockwait(self.semaphore, CLOCK, &raw const until) })
    }

    fn acquire_plain(&mut self, _shared: bool, _waiting: &mut Waiting<'_>) -> Result<Outcome, LockError> {
        // SAFETY: mapped and initialised: the field's promise; blocking keeps the mapping, since `'a` ends later.
        uninterrupted("sem_wait", || unsafe { libc::sem_wait(self.semaphore) })
    }

    fn release(&mut self, _shared: bool, _waiting: &mut Waiting<'_>) -> Result<Released, LockError> {
        // While one holds it nobody else can raise it, so this says nothing wrong.
        if self.is_free()? {
            return Err(LockError::NotHeld);
        }
        // SAFETY: mapped and initialised: the field's promise.
        self.release_after(i64::from(unsafe { libc::sem_post(self.semaphore) }))?;
        Ok(Released::Done)
    }

    fn release_after(&mut self, told: i64) -> Result<(), LockError> {
        done("sem_post", told as libc::c_int)
    }

    fn is_held(&self) -> bool {
        self.is_free() == Ok(false)
    }
}
