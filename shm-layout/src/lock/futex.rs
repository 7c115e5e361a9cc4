//! A lock of three states over a futex: free, held, held with sleepers.
//!
//! U. Drepper, "Futexes Are Tricky", 2011, the second mutex; the call is futex(2).

use super::algorithm::{Algorithm, Outcome, Released, Waiting};
use super::error::LockError;
use super::word::Word;
use nix::errno::Errno;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const FREE: u32 = 0;
const HELD: u32 = 1;
/// Held, and its release must wake one: somebody may sleep.
const SLEPT_FOR: u32 = 2;

/// A sleeper looks up so often whether it is to give up. Waits that long are no lock's ordinary ones.
const LONGEST_SLEEP: Duration = Duration::from_millis(50);

/// A futex lock.
pub(super) struct Futex<'a, W>(pub(super) &'a W);

fn failed(call: &'static str) -> impl FnOnce(Errno) -> LockError {
    move |errno| LockError::Call { call, errno }
}

impl<W: Word> Algorithm for Futex<'_, W> {
    fn attempt(&mut self, _shared: bool) -> Result<Outcome, LockError> {
        // Acquire; pairs with the Release in `release` (and in compiled code). Relaxed where it fails: nothing is read
        // by it.
        match self.0.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => Ok(Outcome::Owned),
            Err(_) => Ok(Outcome::Busy),
        }
    }

    fn settle(&mut self, _shared: bool, _told: i64) -> Result<Outcome, LockError> {
        Ok(Outcome::Busy)
    }

    fn wait(&mut self, _shared: bool, waiting: &mut Waiting<'_>) -> Result<Outcome, LockError> {
        // Acquire; pairs with the Release in `release` (and in compiled code). Whoever waited takes it as slept for: it
        // cannot know whether it was the only one. So no sleeper is forgotten, also not by one that leaves: the state
        // it leaves makes the owner wake the next.
        while self.0.swap(SLEPT_FOR, Ordering::Acquire) != FREE {
            waiting.poll()?;
            let left = waiting.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Ok(Outcome::Busy);
            }
            let at_most = left.map_or(LONGEST_SLEEP, |left| left.min(LONGEST_SLEEP));
            let slept = self.0.sleep_if(SLEPT_FOR, at_most).map_err(failed("futex(FUTEX_WAIT)"))?;
            waiting.effort.futex_waits += u64::from(slept);
        }
        Ok(Outcome::Owned)
    }

    fn release(&mut self, _shared: bool, _waiting: &mut Waiting<'_>) -> Result<Released, LockError> {
        // Release; pairs with the Acquire in `attempt` and `wait` (and in compiled code).
        let before = self.0.swap(FREE, Ordering::Release);
        self.release_after(before.into())?;
        Ok(Released::Done)
    }

    fn release_after(&mut self, told: i64) -> Result<(), LockError> {
        match told as u32 {
            FREE => Err(LockError::NotHeld),
            HELD => Ok(()),
            SLEPT_FOR => self.0.wake_one().map_err(failed("futex(FUTEX_WAKE)")),
            found => Err(LockError::Corrupt { word: "state", found }),
        }
    }

    fn is_held(&self) -> bool {
        // Relaxed, no partner: see the trait.
        self.0.load(Ordering::Relaxed) != FREE
    }
}
