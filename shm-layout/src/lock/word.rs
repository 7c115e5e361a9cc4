//! The word that the lab's own algorithms are made of. In a segment it is the processor's; the models of `models.rs` run
//! the same algorithms on a word that shows every value its memory orderings allow.
#![allow(unsafe_code)] // the futex call

use super::time::timespec;
use crate::SharedMemory;
use crate::atom::Atom;
use nix::errno::Errno;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A 32-bit word that several processes use at once. Orderings are those of [`AtomicU32`].
pub(super) trait Word: Atom<u32> {
    #[cfg_attr(test, track_caller)]
    fn swap(&self, value: u32, order: Ordering) -> u32;
    #[cfg_attr(test, track_caller)]
    fn compare_exchange(&self, current: u32, new: u32, success: Ordering, failure: Ordering) -> Result<u32, u32>;

    /// Sleeps if the word is `expected`, until woken or for `at_most`; it may wake for no reason. Whether it slept.
    fn sleep_if(&self, expected: u32, at_most: Duration) -> Result<bool, Errno>;

    /// Wakes one that sleeps on the word, if any does.
    fn wake_one(&self) -> Result<(), Errno>;

    /// One turn of a waiting loop that found `seen` here and goes on only when the word is another: so many spin-loop
    /// hints, which may be none.
    fn pause(&self, seen: u32, hints: u32);

    /// A fence between accesses of this thread.
    #[cfg_attr(test, track_caller)]
    fn fence(order: Ordering);
}

// SAFETY: one fixed-width atomic; any bit pattern is a valid value.
unsafe impl SharedMemory for AtomicU32 {}

impl Word for AtomicU32 {
    #[inline(always)]
    fn swap(&self, value: u32, order: Ordering) -> u32 {
        self.swap(value, order)
    }

    #[inline(always)]
    fn compare_exchange(&self, current: u32, new: u32, success: Ordering, failure: Ordering) -> Result<u32, u32> {
        self.compare_exchange(current, new, success, failure)
    }

    fn sleep_if(&self, expected: u32, at_most: Duration) -> Result<bool, Errno> {
        let at_most = timespec(at_most);
        // Without FUTEX_PRIVATE_FLAG: the waker has another address space, and the kernel finds the sleeper by the
        // page's identity (futex(2)).
        // SAFETY: the kernel reads an aligned u32 that `self` borrows, and a timespec that lives through the call.
        let code =
            unsafe { libc::syscall(libc::SYS_futex, self.as_ptr(), libc::FUTEX_WAIT, expected, &raw const at_most) };
        match Errno::result(code) {
            Ok(_) | Err(Errno::ETIMEDOUT | Errno::EINTR) => Ok(true),
            Err(Errno::EAGAIN) => Ok(false),
            Err(errno) => Err(errno),
        }
    }

    fn wake_one(&self) -> Result<(), Errno> {
        // SAFETY: the kernel uses the address, which `self` borrows, to find sleepers; it reads nothing there.
        let code = unsafe { libc::syscall(libc::SYS_futex, self.as_ptr(), libc::FUTEX_WAKE, 1) };
        Errno::result(code).map(drop)
    }

    #[inline(always)]
    fn pause(&self, _seen: u32, hints: u32) {
        for _ in 0..hints {
            std::hint::spin_loop();
        }
    }

    #[inline(always)]
    fn fence(order: Ordering) {
        std::sync::atomic::fence(order);
    }
}
