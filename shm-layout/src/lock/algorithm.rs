//! What every kind of lock can do: the trait behind [`SharedLock`](super::SharedLock).

use super::error::LockError;
use std::time::Instant;

/// What a first attempt or a wait came to.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The caller owns it.
    Owned,
    /// The caller owns it; its previous owner died holding it.
    OwnedAfterDeath,
    /// The caller does not own it: another does, or the time is up.
    Busy,
}

/// What giving a lock back came to.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Released {
    /// It is given back.
    Done,
    /// The caller was a reader of a sequence lock, and a writer came in between: what it read may be torn. It holds
    /// nothing now, and reads again from its acquisition on.
    ReadAgain,
}

/// What waiting cost, added up by the lab's own algorithms. The C library's calls do not tell, and leave it alone:
/// there 0 means that nobody counted.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// Turns of waiting loops: looks at the word waited on, or exchanges with it.
    pub spins: u64,
    /// Sleeps in the kernel.
    pub futex_waits: u64,
}

/// Turns between two questions whether to give up: some 10 to 50 us where a turn has a pause in it.
const TURNS_A_POLL: u32 = 1_000;

/// Turns between two looks at the clock where a wait ends at a time. One costs as much as a few turns.
const TURNS_A_CLOCK_READ: u32 = 32;

/// One wait: what it costs, and what ends it besides owning the lock.
pub(super) struct Waiting<'w> {
    pub(super) effort: &'w mut Effort,
    pub(super) stop: &'w dyn Fn() -> bool,
    /// When the caller gives up; `None`: never.
    pub(super) deadline: Option<Instant>,
    turns: u32,
}

impl<'w> Waiting<'w> {
    pub(super) fn new(effort: &'w mut Effort, stop: &'w dyn Fn() -> bool, deadline: Option<Instant>) -> Waiting<'w> {
        Waiting { effort, stop, deadline, turns: 0 }
    }

    /// Counts one turn of a waiting loop; false once the time is up.
    ///
    /// # Errors
    /// [`LockError::Abandoned`] once told to stop.
    #[inline]
    pub(super) fn turn(&mut self) -> Result<bool, LockError> {
        self.effort.spins += 1;
        self.turns = self.turns.wrapping_add(1);
        if self.turns.is_multiple_of(TURNS_A_POLL) {
            self.poll()?;
        }
        Ok(!(self.turns.is_multiple_of(TURNS_A_CLOCK_READ) && self.is_over()))
    }

    /// Asks whether to give up.
    ///
    /// # Errors
    /// [`LockError::Abandoned`] if so.
    pub(super) fn poll(&self) -> Result<(), LockError> {
        if (self.stop)() { Err(LockError::Abandoned) } else { Ok(()) }
    }

    /// Whether the time is up.
    pub(super) fn is_over(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

/// One kind of lock as one worker uses it. `shared` asks for a reader's part and is given only to kinds that have
/// readers; all the others take it exclusively.
pub(super) trait Algorithm {
    /// The algorithm's own first attempt. Where it is [`Outcome::Busy`], a queueing kind has taken its place already.
    fn attempt(&mut self, shared: bool) -> Result<Outcome, LockError>;

    /// Takes over after compiled code's first attempt, which came to `told` (`fast_path.rs`) and was no plain success.
    fn settle(&mut self, shared: bool, told: i64) -> Result<Outcome, LockError>;

    /// Remembers what compiled code's acquisition left to remember (`fast_path.rs`), before a release.
    fn adopt(&mut self, _shared: bool, _told: i64) {}

    /// Waits after a busy attempt; [`Outcome::Busy`] only where `waiting` has a deadline.
    fn wait(&mut self, shared: bool, waiting: &mut Waiting<'_>) -> Result<Outcome, LockError>;

    /// Attempts and waits in one, without a deadline: the library's own blocking call where there is one.
    fn acquire_plain(&mut self, shared: bool, waiting: &mut Waiting<'_>) -> Result<Outcome, LockError> {
        match self.attempt(shared)? {
            Outcome::Busy => self.wait(shared, waiting),
            owned => Ok(owned),
        }
    }

    /// Gives it back.
    fn release(&mut self, shared: bool, waiting: &mut Waiting<'_>) -> Result<Released, LockError>;

    /// Takes over after compiled code's release, which came to `told` and was no plain success.
    fn release_after(&mut self, _told: i64) -> Result<(), LockError> {
        Err(LockError::NoFastPath)
    }

    /// Whether the state says that somebody holds it or stands in its queue. Changes nothing, and asks nobody: the
    /// state of a dead owner's lock is looked at, too.
    fn is_held(&self) -> bool;
}
