//! Locks in shared memory: every kind of [`LockKind`] behind one interface. Their size and alignment are `plan`'s;
//! where they and their queue nodes lie is the map's (`map.rs`); how a lock's bytes are divided stands in
//! `lock/place.rs`. What each algorithm does, costs and promises: `docs/locks.md`.
#![allow(unsafe_code)] // locks at addresses in a mapped segment

mod algorithm;
mod clh;
mod error;
mod fast_path;
mod flag;
mod futex;
mod kinds;
mod mcs;
#[cfg(test)]
mod models;
mod place;
mod pthread_mutex;
mod pthread_rwlock;
mod pthread_spin;
mod queue;
mod raw_sync;
mod semaphore;
mod seqlock;
#[cfg(test)]
mod tests;
mod ticket;
mod time;
mod word;

pub use algorithm::{Effort, Released};
pub use error::LockError;
pub use fast_path::{Calls, FastPath, Function, clh_name, clh_names, fast_path};
pub use place::{LAST_OWNER_OFFSET, LockPlace, NODE_BYTES};

use algorithm::{Algorithm, Outcome, Waiting};
use place::OwnerRecord;
use plan::LockKind;
use std::time::{Duration, Instant};

/// What an acquisition found. A reader's, where the kind has readers, tells nothing: it leaves the owner record alone.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Acquired {
    /// The previous owner died holding it (EOWNERDEAD); the lock was made consistent.
    pub owner_died: bool,
    /// Another worker owned it before.
    pub handoff: bool,
}

/// What a first attempt came to.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// The caller owns it.
    Acquired(Acquired),
    /// Another owns it. A queueing kind has taken its place: [`SharedLock::acquire`] must finish the acquisition.
    Contended,
}

/// Makes a lock.
///
/// # Safety
/// `place` is writable and aligned as [`LockPlace`] says, and nobody else uses it yet.
///
/// # Errors
/// [`LockError`] with the call that failed.
pub unsafe fn initialise(place: LockPlace, kind: LockKind) -> Result<(), LockError> {
    // SAFETY: the caller's promise is the one that both ask for.
    unsafe {
        OwnerRecord::at(place.at).clear();
        kinds::initialise(place, kind)
    }
}

/// A lock as one worker uses it, through this process's mapping of the segment. It holds addresses, no reference to
/// memory that others change otherwise than atomically.
///
/// One worker has one of these for each lock, for the whole repetition: queueing kinds keep here which node is theirs.
pub struct SharedLock<'a> {
    algorithm: Box<dyn Algorithm + 'a>,
    owner: &'a OwnerRecord,
    kind: LockKind,
    worker: u32,
}

impl<'a> SharedLock<'a> {
    /// The lock at `place`, for the use of worker `worker`.
    ///
    /// # Safety
    /// `place` was given to [`initialise`] with this `kind` (by any process that maps the segment), stays mapped for
    /// `'a`, and nothing but lock operations touches it. `worker` is below `place.slots`, and no other `SharedLock` of
    /// this worker for this lock has been used, but to look at it ([`SharedLock::is_held`],
    /// [`SharedLock::last_owner`]).
    pub unsafe fn new(place: LockPlace, kind: LockKind, worker: u32) -> SharedLock<'a> {
        // SAFETY: the caller's promise covers the record and the kind's own state.
        let (owner, algorithm) = unsafe { (OwnerRecord::at(place.at), kinds::algorithm(place, kind, worker)) };
        SharedLock { algorithm, owner, kind, worker }
    }

    /// The algorithm's own first attempt: it decides whether an acquisition is contended. `shared` asks for a reader's
    /// part, and is taken exclusively by kinds without readers.
    ///
    /// # Errors
    /// [`LockError`].
    #[inline]
    pub fn try_acquire(&mut self, shared: bool) -> Result<Attempt, LockError> {
        let shared = self.is_shared(shared);
        let outcome = self.algorithm.attempt(shared)?;
        Ok(self.attempted(shared, outcome))
    }

    /// Waits until it is owned, finishing what a contended [`SharedLock::try_acquire`] or [`SharedLock::settle`] began.
    /// `stop` is asked now and then: with it a dead owner hangs no waiter of the lab's own algorithms. Calls of the C
    /// library ask nobody; whoever ends the process ends them.
    ///
    /// # Errors
    /// [`LockError::Abandoned`] where `stop` said so; others as they come, e.g. ENOTRECOVERABLE.
    pub fn acquire(
        &mut self,
        shared: bool,
        effort: &mut Effort,
        stop: &dyn Fn() -> bool,
    ) -> Result<Acquired, LockError> {
        let shared = self.is_shared(shared);
        let outcome = self.algorithm.wait(shared, &mut Waiting::new(effort, stop, None))?;
        Ok(self.acquired(shared, outcome))
    }

    /// The same, for `timeout` from now at most; `None` where it was not owned by then.
    ///
    /// # Errors
    /// [`LockError::NoTimeout`] for kinds whose waiters cannot leave; else as [`SharedLock::acquire`].
    pub fn acquire_until(
        &mut self,
        shared: bool,
        timeout: Duration,
        effort: &mut Effort,
        stop: &dyn Fn() -> bool,
    ) -> Result<Option<Acquired>, LockError> {
        if !self.kind.times_out() {
            return Err(LockError::NoTimeout { kind: self.kind.name() });
        }
        let shared = self.is_shared(shared);
        // No deadline where it lies past what the clock can say: centuries.
        let deadline = Instant::now().checked_add(timeout);
        match self.algorithm.wait(shared, &mut Waiting::new(effort, stop, deadline))? {
            Outcome::Busy => Ok(None),
            owned => Ok(Some(self.acquired(shared, owned))),
        }
    }

    /// Acquires as a program does that does not ask whether it waited: by the library's blocking call, which in a `plain`
    /// arm compiled code makes itself, or by the attempt and the wait of the lab's own algorithms.
    ///
    /// # Errors
    /// As [`SharedLock::acquire`].
    pub fn acquire_plain(
        &mut self,
        shared: bool,
        effort: &mut Effort,
        stop: &dyn Fn() -> bool,
    ) -> Result<Acquired, LockError> {
        let shared = self.is_shared(shared);
        let outcome = self.algorithm.acquire_plain(shared, &mut Waiting::new(effort, stop, None))?;
        Ok(self.acquired(shared, outcome))
    }

    /// Takes over where compiled code's first attempt was no plain success; `told` is what [`FastPath`] says the hook
    /// is told. It may be owned all the same (EOWNERDEAD); else [`SharedLock::acquire`] or
    /// [`SharedLock::acquire_until`] goes on.
    ///
    /// # Errors
    /// [`LockError`] for what `told` says.
    pub fn settle(&mut self, shared: bool, told: i64) -> Result<Attempt, LockError> {
        let shared = self.is_shared(shared);
        let outcome = self.algorithm.settle(shared, told)?;
        Ok(self.attempted(shared, outcome))
    }

    /// Writes the owner record after an exclusive acquisition by compiled code alone. Whether another owned it before.
    pub fn note_owner(&self) -> bool {
        self.owner.note(self.worker)
    }

    /// Whether its state says that somebody holds it or stands in its queue: of a dead worker's lock, that nobody can
    /// have it any more. Changes nothing and waits for nobody; where its users run, it is old news at once.
    pub fn is_held(&self) -> bool {
        self.algorithm.is_held()
    }

    /// The worker that acquired it last, exclusively.
    pub fn last_owner(&self) -> Option<u32> {
        self.owner.last()
    }

    /// Gives it back; `shared` as it was acquired. `stop` is asked where a queue's owner waits for its successor to
    /// finish queueing.
    ///
    /// # Errors
    /// [`LockError::NotHeld`] where the kind can tell; [`LockError::Abandoned`] where `stop` said so.
    #[inline]
    pub fn release(&mut self, shared: bool, stop: &dyn Fn() -> bool) -> Result<Released, LockError> {
        let shared = self.is_shared(shared);
        self.algorithm.release(shared, &mut Waiting::new(&mut Effort::default(), stop, None))
    }

    /// Gives back, as [`SharedLock::release`], what compiled code may have acquired; `told` is what [`FastPath`] says
    /// that such an acquisition leaves to remember.
    ///
    /// # Errors
    /// As [`SharedLock::release`].
    pub fn release_for(&mut self, shared: bool, told: i64, stop: &dyn Fn() -> bool) -> Result<Released, LockError> {
        self.algorithm.adopt(self.is_shared(shared), told);
        self.release(shared, stop)
    }

    /// Takes over where compiled code's release was no plain success; `told` is what [`FastPath`] says the hook is
    /// told.
    ///
    /// # Errors
    /// [`LockError::NotHeld`] where `told` says so; [`LockError::Call`] with what a call returned;
    /// [`LockError::NoFastPath`] for kinds whose release by compiled code is always a plain success.
    pub fn release_after(&mut self, told: i64) -> Result<(), LockError> {
        self.algorithm.release_after(told)
    }

    #[inline]
    fn is_shared(&self, asked: bool) -> bool {
        asked && self.kind.shares_readers()
    }

    #[inline]
    fn attempted(&self, shared: bool, outcome: Outcome) -> Attempt {
        match outcome {
            Outcome::Busy => Attempt::Contended,
            owned => Attempt::Acquired(self.acquired(shared, owned)),
        }
    }

    #[inline]
    fn acquired(&self, shared: bool, owned: Outcome) -> Acquired {
        debug_assert_ne!(owned, Outcome::Busy, "noted by one that does not hold it");
        let owner_died = owned == Outcome::OwnedAfterDeath;
        Acquired { owner_died, handoff: !shared && self.owner.note(self.worker) }
    }
}
