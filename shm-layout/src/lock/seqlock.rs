//! The sequence lock: a count, odd while a writer is inside. Readers write nothing; they look at the count before and
//! after, and read again if it moved. Writers exclude each other by who makes the count odd.
//!
//! C. Lameter, "Effective Synchronization on Linux/NUMA Systems", 2005; orderings as in H.-J. Boehm, "Can Seqlocks Get
//! Along with Programming Language Memory Models?", MSPC 2012.

use super::algorithm::{Algorithm, Outcome, Released, Waiting};
use super::error::LockError;
use super::word::Word;
use std::sync::atomic::Ordering;

/// What a worker does inside.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Part {
    None,
    /// Reads since the count was this, which is even.
    Reader(u32),
    /// Made the count this, which is odd.
    Writer(u32),
}

/// Whether a writer is inside at this count.
fn is_inside(count: u32) -> bool {
    count % 2 == 1
}

/// A sequence lock as one worker uses it. A reader that sleeps through 2^31 writings exactly would miss them.
pub(super) struct Seqlock<'a, W> {
    count: &'a W,
    part: Part,
}

impl<'a, W: Word> Seqlock<'a, W> {
    pub(super) fn new(count: &'a W) -> Seqlock<'a, W> {
        Seqlock { count, part: Part::None }
    }

    /// The part begun if no writer is inside; else the count that stood in the way.
    #[inline]
    fn begin(&self, shared: bool) -> Result<Part, u32> {
        if shared {
            // Acquire; pairs with the Release of the store in `release`: what that writer wrote is there to read.
            let count = self.count.load(Ordering::Acquire);
            return if is_inside(count) { Err(count) } else { Ok(Part::Reader(count)) };
        }
        // Relaxed: only what to exchange for.
        let count = self.count.load(Ordering::Relaxed);
        if is_inside(count) {
            return Err(count);
        }
        let odd = count.wrapping_add(1);
        // Acquire; pairs with the Release of the store in `release`: one writer after the other.
        self.count.compare_exchange(count, odd, Ordering::Acquire, Ordering::Relaxed)?;
        // Release; pairs with the Acquire fence in `release`: a reader that saw any of this writer's stores sees that
        // the count moved.
        W::fence(Ordering::Release);
        Ok(Part::Writer(odd))
    }
}

impl<W: Word> Algorithm for Seqlock<'_, W> {
    fn attempt(&mut self, shared: bool) -> Result<Outcome, LockError> {
        if self.part != Part::None {
            return Err(LockError::HeldAlready);
        }
        let Ok(part) = self.begin(shared) else { return Ok(Outcome::Busy) };
        self.part = part;
        Ok(Outcome::Owned)
    }

    fn wait(&mut self, shared: bool, waiting: &mut Waiting<'_>) -> Result<Outcome, LockError> {
        if self.part != Part::None {
            return Err(LockError::HeldAlready);
        }
        while waiting.turn()? {
            match self.begin(shared) {
                Ok(part) => {
                    self.part = part;
                    return Ok(Outcome::Owned);
                }
                Err(count) if is_inside(count) => self.count.pause(count, 1),
                // Another writer was faster, and is done already.
                Err(_) => {}
            }
        }
        Ok(Outcome::Busy)
    }

    fn release(&mut self, shared: bool, _waiting: &mut Waiting<'_>) -> Result<Released, LockError> {
        match (self.part, shared) {
            (Part::Reader(begun), true) => {
                self.part = Part::None;
                // Acquire; pairs with the Release fence in `begin`. What was read before it is as old as the count read
                // behind it, or the count has moved.
                W::fence(Ordering::Acquire);
                let moved = self.count.load(Ordering::Relaxed) != begun;
                Ok(if moved { Released::ReadAgain } else { Released::Done })
            }
            (Part::Writer(odd), false) => {
                self.part = Part::None;
                // Release; pairs with both Acquires in `begin`.
                self.count.store(odd.wrapping_add(1), Ordering::Release);
                Ok(Released::Done)
            }
            _ => Err(LockError::NotHeld),
        }
    }
}
