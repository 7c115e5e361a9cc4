//! Locks of one flag, 0 free and 1 held: test-and-set, and test-and-test-and-set with backoff.
//!
//! T. E. Anderson, "The Performance of Spin Lock Alternatives for Shared-Memory Multiprocessors", IEEE TPDS 1990.

use super::algorithm::{Algorithm, Outcome, Released, Waiting};
use super::error::LockError;
use super::word::Word;
use std::sync::atomic::Ordering;

const FREE: u32 = 0;
const HELD: u32 = 1;

/// Spin-loop hints after the first exchange that lost; each further one doubles them, up to [`LONGEST_BACKOFF`].
const FIRST_BACKOFF: u32 = 4;

/// Where doubling ends: 1 to 6 us where a hint takes 10 to 45 ns. Anderson bounds it by what all waiters together need;
/// much more, and a free lock lies unused; much less, and it is the plain exchange again.
const LONGEST_BACKOFF: u32 = 128;

/// Takes the flag if it is free. Acquire; pairs with the Release in [`release`] (and in compiled code): what the last
/// owner did comes before what this one does.
#[inline]
fn take<W: Word>(word: &W) -> Outcome {
    if word.swap(HELD, Ordering::Acquire) == FREE { Outcome::Owned } else { Outcome::Busy }
}

#[inline]
fn release<W: Word>(word: &W) -> Result<Released, LockError> {
    // Relaxed: the owner wrote it itself, and others only exchange 1 for 1.
    if word.load(Ordering::Relaxed) == FREE {
        return Err(LockError::NotHeld);
    }
    // Release; pairs with the Acquire in `take` (and in compiled code).
    word.store(FREE, Ordering::Release);
    Ok(Released::Done)
}

/// Test-and-set: each turn is an exchange, which takes the line away from the owner. No hint between turns: what it
/// costs to wait carelessly is what it is here to show.
pub(super) struct Tas<'a, W>(pub(super) &'a W);

impl<W: Word> Algorithm for Tas<'_, W> {
    fn attempt(&mut self, _shared: bool) -> Result<Outcome, LockError> {
        Ok(take(self.0))
    }

    fn settle(&mut self, _shared: bool, _told: i64) -> Result<Outcome, LockError> {
        Ok(Outcome::Busy)
    }

    fn wait(&mut self, _shared: bool, waiting: &mut Waiting<'_>) -> Result<Outcome, LockError> {
        while waiting.turn()? {
            if take(self.0) == Outcome::Owned {
                return Ok(Outcome::Owned);
            }
            self.0.pause(HELD, 0);
        }
        Ok(Outcome::Busy)
    }

    fn release(&mut self, _shared: bool, _waiting: &mut Waiting<'_>) -> Result<Released, LockError> {
        release(self.0)
    }

    fn is_held(&self) -> bool {
        // Relaxed, no partner: see the trait.
        self.0.load(Ordering::Relaxed) != FREE
    }
}

/// Test-and-test-and-set: waits on reads, which leave the line shared, and backs off after an exchange that lost.
pub(super) struct Ttas<'a, W>(pub(super) &'a W);

impl<W: Word> Algorithm for Ttas<'_, W> {
    fn attempt(&mut self, _shared: bool) -> Result<Outcome, LockError> {
        Ok(take(self.0))
    }

    fn settle(&mut self, _shared: bool, _told: i64) -> Result<Outcome, LockError> {
        Ok(Outcome::Busy)
    }

    fn wait(&mut self, _shared: bool, waiting: &mut Waiting<'_>) -> Result<Outcome, LockError> {
        let mut backoff = FIRST_BACKOFF;
        while waiting.turn()? {
            // Relaxed: only whether to try; the exchange is what acquires.
            if self.0.load(Ordering::Relaxed) == HELD {
                self.0.pause(HELD, 1);
            } else if take(self.0) == Outcome::Owned {
                return Ok(Outcome::Owned);
            } else {
                self.0.pause(HELD, backoff);
                backoff = (backoff * 2).min(LONGEST_BACKOFF);
            }
        }
        Ok(Outcome::Busy)
    }

    fn release(&mut self, _shared: bool, _waiting: &mut Waiting<'_>) -> Result<Released, LockError> {
        release(self.0)
    }

    fn is_held(&self) -> bool {
        // Relaxed, no partner: see the trait.
        self.0.load(Ordering::Relaxed) != FREE
    }
}
