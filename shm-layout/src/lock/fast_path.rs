//! What compiled code may do by itself, and what it then tells the hook.
#![allow(unsafe_code)] // types of C functions

use plan::LockKind;
use std::ffi::{c_int, c_void};

/// How an exclusive acquisition and its release go while nobody else wants the lock. Offsets are from the lock's first
/// byte. Acquiring compiled code must keep the critical section's accesses behind the operation that acquired, and
/// releasing code before the one that released, as Acquire and Release do.
///
/// Who acquires by it then writes the owner record ([`LAST_OWNER_OFFSET`](super::LAST_OWNER_OFFSET)).
#[derive(Copy, Clone, Debug)]
pub enum FastPath {
    /// A u32 at 0. Compare-exchange 0 to 1 acquires; else the hook is told the value found. A store of 0 releases.
    Word,
    /// A u32 at 0. Compare-exchange 0 to 1 acquires; else the hook is told the value found. Exchange with 0 releases;
    /// where it gave anything but 1, the hook is told what it gave.
    FutexWord,
    /// A u32 `next` at 0 and a u32 `serving` at 4. Fetch-and-add 1 on `next` gives a ticket; it is acquired if `serving`
    /// equals the ticket, else the hook is told the ticket. A store of `serving` + 1 to `serving` releases.
    Ticket,
    /// Calls with the lock's address. 0 is success; the hook is told any other result.
    Calls {
        /// Tries to acquire, without waiting.
        try_acquire: unsafe extern "C" fn(*mut c_void) -> c_int,
        /// Releases.
        release: unsafe extern "C" fn(*mut c_void) -> c_int,
    },
    /// Nothing: hooks do all of it.
    Hooks,
}

type Call = unsafe extern "C" fn(*mut c_void) -> c_int;

/// The same function, taking the lock's address untyped.
macro_rules! untyped {
    ($function:path, $lock:ty) => {{
        let call: unsafe extern "C" fn(*mut $lock) -> c_int = $function;
        // SAFETY: the two types differ in a pointer's target alone, which makes no difference to a call (the ABI
        // compatibility rules of `fn`). Who calls it upholds that the pointer is to such a lock: `FastPath` says so.
        unsafe { std::mem::transmute::<unsafe extern "C" fn(*mut $lock) -> c_int, Call>(call) }
    }};
}

/// What compiled code may do for a lock of this kind.
pub fn fast_path(kind: LockKind) -> FastPath {
    match kind {
        LockKind::Tas | LockKind::Ttas => FastPath::Word,
        LockKind::Futex => FastPath::FutexWord,
        LockKind::Ticket => FastPath::Ticket,
        LockKind::Pthread | LockKind::PthreadAdaptive | LockKind::PthreadRobust | LockKind::PthreadPi => {
            FastPath::Calls {
                try_acquire: untyped!(libc::pthread_mutex_trylock, libc::pthread_mutex_t),
                release: untyped!(libc::pthread_mutex_unlock, libc::pthread_mutex_t),
            }
        }
        LockKind::PthreadSpin => FastPath::Calls {
            try_acquire: untyped!(libc::pthread_spin_trylock, libc::pthread_spinlock_t),
            release: untyped!(libc::pthread_spin_unlock, libc::pthread_spinlock_t),
        },
        LockKind::Semaphore => FastPath::Calls {
            try_acquire: untyped!(libc::sem_trywait, libc::sem_t),
            release: untyped!(libc::sem_post, libc::sem_t),
        },
        LockKind::PthreadRwlock | LockKind::RawSync | LockKind::Mcs | LockKind::Clh | LockKind::Seqlock => {
            FastPath::Hooks
        }
    }
}
