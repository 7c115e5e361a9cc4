//! The ticket lock: draw a number, wait until it is served.
//!
//! D. P. Reed and R. K. Kanodia, "Synchronization with Eventcounts and Sequencers", CACM 1979; as a spin lock in
//! Mellor-Crummey and Scott, ACM TOCS 1991.

use super::algorithm::{Algorithm, Outcome, Released, Waiting};
use super::error::LockError;
use super::word::Word;
use crate::SharedMemory;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU32, Ordering};

/// Both counters; they are equal while the lock is free, and wrap together after 2^32 acquisitions.
#[repr(C)]
#[derive(Debug, Default)]
pub(super) struct Counters<W> {
    /// The number that the next to come will draw.
    pub(super) next: W,
    /// The number that owns the lock.
    pub(super) serving: W,
}

const _: () = assert!(offset_of!(Counters<AtomicU32>, next) == 0 && offset_of!(Counters<AtomicU32>, serving) == 4);

// SAFETY: repr(C), two fixed-width atomics; any bit pattern is valid.
#[allow(unsafe_code)]
unsafe impl SharedMemory for Counters<AtomicU32> {}

/// A ticket lock as one worker uses it.
pub(super) struct Ticket<'a, W> {
    counters: &'a Counters<W>,
    /// The number drawn and not yet served.
    drawn: Option<u32>,
}

impl<'a, W: Word> Ticket<'a, W> {
    pub(super) fn new(counters: &'a Counters<W>) -> Ticket<'a, W> {
        Ticket { counters, drawn: None }
    }

    /// The number that owns the lock.
    #[inline]
    fn served(&self) -> u32 {
        // Acquire; pairs with the Release in `release` (and in compiled code): the owner before this number is done.
        self.counters.serving.load(Ordering::Acquire)
    }
}

impl<W: Word> Algorithm for Ticket<'_, W> {
    fn attempt(&mut self, _shared: bool) -> Result<Outcome, LockError> {
        if self.drawn.is_some() {
            return Err(LockError::HeldAlready);
        }
        // Relaxed: a number carries nothing but itself; `serving` says when it owns the lock.
        let number = self.counters.next.fetch_add(1, Ordering::Relaxed);
        if self.served() == number {
            return Ok(Outcome::Owned);
        }
        self.drawn = Some(number);
        Ok(Outcome::Busy)
    }

    fn settle(&mut self, _shared: bool, told: i64) -> Result<Outcome, LockError> {
        self.drawn = Some(told as u32);
        Ok(Outcome::Busy)
    }

    fn wait(&mut self, shared: bool, waiting: &mut Waiting<'_>) -> Result<Outcome, LockError> {
        if self.drawn.is_none() && self.attempt(shared)? == Outcome::Owned {
            return Ok(Outcome::Owned);
        }
        loop {
            let served = self.served();
            if self.drawn.is_none_or(|number| number == served) {
                self.drawn = None;
                return Ok(Outcome::Owned);
            }
            waiting.turn()?;
            self.counters.serving.pause(served, 1);
        }
    }

    fn release(&mut self, _shared: bool, _waiting: &mut Waiting<'_>) -> Result<Released, LockError> {
        let Counters { next, serving } = self.counters;
        // Relaxed, both: `serving` is written by owners alone, and this one owns it; `next` has passed its own number.
        let number = serving.load(Ordering::Relaxed);
        if next.load(Ordering::Relaxed) == number {
            return Err(LockError::NotHeld);
        }
        // Release; pairs with the Acquire in `served` (and in compiled code).
        serving.store(number.wrapping_add(1), Ordering::Release);
        Ok(Released::Done)
    }

    fn is_held(&self) -> bool {
        // Relaxed, no partner: see the trait.
        self.counters.next.load(Ordering::Relaxed) != self.counters.serving.load(Ordering::Relaxed)
    }
}
