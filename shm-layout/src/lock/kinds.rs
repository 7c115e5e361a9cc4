//! Which algorithm each kind is, and where its words lie in a lock's bytes and nodes.
#![allow(unsafe_code)] // views of mapped memory

use super::algorithm::Algorithm;
use super::clh::{self, Clh};
use super::error::LockError;
use super::flag::{Tas, Ttas};
use super::futex::Futex;
use super::mcs::{self, Mcs};
use super::place::{LockPlace, nodes, state};
use super::pthread_mutex::{self, PthreadMutex};
use super::pthread_rwlock::{self, PthreadRwlock};
use super::pthread_spin::{self, PthreadSpin};
use super::raw_sync::{self, RawSync};
use super::semaphore::{self, Semaphore};
use super::seqlock::Seqlock;
use super::ticket::{Counters, Ticket};
use plan::LockKind;
use std::sync::atomic::{AtomicU32, Ordering};

/// Makes the state of a lock of this kind.
///
/// # Safety
/// `place` is writable and aligned as [`LockPlace`] says, and nobody else uses it yet.
pub(super) unsafe fn initialise(place: LockPlace, kind: LockKind) -> Result<(), LockError> {
    let at = place.at;
    // Relaxed, all: nobody else uses a lock that is being made; the header's magic publishes it (`Header::write`).
    let set = |word: &AtomicU32, value| word.store(value, Ordering::Relaxed);
    // SAFETY: the caller's promise is what each of these asks for.
    unsafe {
        match kind {
            LockKind::Pthread | LockKind::PthreadAdaptive | LockKind::PthreadRobust | LockKind::PthreadPi => {
                pthread_mutex::initialise(at, kind)?;
            }
            LockKind::PthreadSpin => pthread_spin::initialise(at)?,
            LockKind::PthreadRwlock => pthread_rwlock::initialise(at)?,
            LockKind::Semaphore => semaphore::initialise(at)?,
            LockKind::RawSync => raw_sync::initialise(at)?,
            LockKind::Tas | LockKind::Ttas | LockKind::Futex | LockKind::Seqlock => set(state(at), 0),
            LockKind::Ticket => {
                let counters = state::<Counters<AtomicU32>>(at);
                set(&counters.next, 0);
                set(&counters.serving, 0);
            }
            LockKind::Mcs => {
                set(state(at), super::queue::NOBODY);
                for node in nodes::<mcs::Node<AtomicU32>>(place) {
                    set(&node.next, super::queue::NOBODY);
                    set(&node.waits, 0);
                }
            }
            LockKind::Clh => {
                set(state(at), clh::first_dummy(place.slots));
                for node in nodes::<clh::Node<AtomicU32>>(place) {
                    set(&node.taken, 0);
                }
            }
        }
    }
    Ok(())
}

/// A lock of this kind as worker `worker` uses it.
///
/// # Safety
/// `place` was given to [`initialise`] with this `kind` by any process, stays mapped for `'a`, and only lock operations
/// touch it.
pub(super) unsafe fn algorithm<'a>(place: LockPlace, kind: LockKind, worker: u32) -> Box<dyn Algorithm + 'a> {
    let at = place.at;
    // SAFETY: the caller's promise is what each of these asks for; a kind's words are those that `initialise` made.
    unsafe {
        match kind {
            LockKind::Pthread | LockKind::PthreadAdaptive | LockKind::PthreadRobust | LockKind::PthreadPi => {
                Box::new(PthreadMutex::at(at))
            }
            LockKind::PthreadSpin => Box::new(PthreadSpin::at(at)),
            LockKind::PthreadRwlock => Box::new(PthreadRwlock::at(at)),
            LockKind::Semaphore => Box::new(Semaphore::at(at)),
            LockKind::RawSync => Box::new(RawSync::at(at)),
            LockKind::Tas => Box::new(Tas(state::<AtomicU32>(at))),
            LockKind::Ttas => Box::new(Ttas(state::<AtomicU32>(at))),
            LockKind::Futex => Box::new(Futex(state::<AtomicU32>(at))),
            LockKind::Seqlock => Box::new(Seqlock::new(state::<AtomicU32>(at))),
            LockKind::Ticket => Box::new(Ticket::new(state::<Counters<AtomicU32>>(at))),
            LockKind::Mcs => Box::new(Mcs::new(state::<AtomicU32>(at), nodes(place), worker)),
            LockKind::Clh => Box::new(Clh::new(state::<AtomicU32>(at), nodes(place), worker)),
        }
    }
}
