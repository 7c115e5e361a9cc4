//! The sequence lock: a count, odd while a writer is inside. Readers write nothing; they look at the count before and
//! after, and read again if it moved. Writers exclude each other by who makes the count odd.
//!
//! C. Lameter, "Effective Synchronization on Linux/NUMA Systems", 2005; orderings as in H.-J. Boehm, "Can Seqlocks Get
//! Along with Programming Language Memory Models?", MSPC 2012.

use super::algorithm::{Algorithm, Outcome, Released, Waiting};
use super::error::LockError;
use super::word::Word;
use std::sync::atomic::Ordering;

/// Whether a writer is inside at this count.
fn is_inside(count: u32) -> bool {
    count % 2 == 1
}

/// A sequence lock as one worker uses it. A reader that sleeps through 2^31 writings exactly would miss them.
pub(super) struct Seqlock<'a, W> {
    count: &'a W,
    /// The count, which is even, at which this worker's reading began.
    begun: Option<u32>,
}

impl<'a, W: Word> Seqlock<'a, W> {
    pub(super) fn new(count: &'a W) -> Seqlock<'a, W> {
        Seqlock { count, begun: None }
    }

    /// Goes inside if no writer is; else gives the count that stood in the way.
    #[inline]
    fn begin(&mut self, shared: bool) -> Result<(), u32> {
        if shared {
            // Acquire; pairs with the Release of the store in `release` (and in compiled code): what that writer wrote
            // is there to read.
            let count = self.count.load(Ordering::Acquire);
            if is_inside(count) {
                return Err(count);
            }
            self.begun = Some(count);
            return Ok(());
        }
        // Relaxed: only what to exchange for.
        let count = self.count.load(Ordering::Relaxed);
        if is_inside(count) {
            return Err(count);
        }
        // Acquire; pairs with the Release of the store in `release` (and in compiled code): one writer after the other.
        self.count.compare_exchange(count, count.wrapping_add(1), Ordering::Acquire, Ordering::Relaxed)?;
        // Release; pairs with the Acquire fence in `end_reading` (and in compiled code): a reader that saw any of this
        // writer's stores sees that the count moved.
        W::fence(Ordering::Release);
        Ok(())
    }

    fn end_reading(&mut self) -> Result<Released, LockError> {
        let begun = self.begun.take().ok_or(LockError::NotHeld)?;
        // Acquire; pairs with the Release fence in `begin` (and in compiled code). What was read before it is as old as
        // the count read behind it, or the count has moved.
        W::fence(Ordering::Acquire);
        let moved = self.count.load(Ordering::Relaxed) != begun;
        Ok(if moved { Released::ReadAgain } else { Released::Done })
    }
}

impl<W: Word> Algorithm for Seqlock<'_, W> {
    fn attempt(&mut self, shared: bool) -> Result<Outcome, LockError> {
        Ok(self.begin(shared).map_or(Outcome::Busy, |()| Outcome::Owned))
    }

    fn settle(&mut self, _shared: bool, _told: i64) -> Result<Outcome, LockError> {
        Ok(Outcome::Busy)
    }

    fn adopt(&mut self, shared: bool, told: i64) {
        let count = told as u32;
        if shared && !is_inside(count) {
            self.begun = Some(count);
        }
    }

    fn wait(&mut self, shared: bool, waiting: &mut Waiting<'_>) -> Result<Outcome, LockError> {
        while waiting.turn()? {
            match self.begin(shared) {
                Ok(()) => return Ok(Outcome::Owned),
                Err(count) if is_inside(count) => self.count.pause(count, 1),
                // Another writer was faster, and is done already.
                Err(_) => {}
            }
        }
        Ok(Outcome::Busy)
    }

    fn release(&mut self, shared: bool, _waiting: &mut Waiting<'_>) -> Result<Released, LockError> {
        if shared {
            return self.end_reading();
        }
        // Relaxed: a writer inside is the only one that writes it.
        let count = self.count.load(Ordering::Relaxed);
        if !is_inside(count) {
            return Err(LockError::NotHeld);
        }
        // Release; pairs with both Acquires in `begin` (and in compiled code).
        self.count.store(count.wrapping_add(1), Ordering::Release);
        Ok(Released::Done)
    }

    fn is_held(&self) -> bool {
        // Relaxed, no partner: see the trait.
        is_inside(self.count.load(Ordering::Relaxed))
    }
}
