//! What compiled code does by itself where nobody else wants the lock, and what it then tells a hook where somebody
//! does.
#![allow(unsafe_code)] // types of C functions

use plan::LockKind;
use std::ffi::{c_int, c_void};

/// How compiled code acquires and releases a lock of a kind while nobody else wants it. Offsets are from the lock's
/// first byte unless they say otherwise.
///
/// Acquiring code must keep the section's accesses behind the operation that acquired, and releasing code before the
/// one that released, as Acquire and Release do. Where the first attempt is no plain success, a hook is told what it
/// came to and goes on with [`SharedLock::settle`](super::SharedLock::settle). Who acquires exclusively then sees to
/// the owner record: [`LAST_OWNER_OFFSET`](super::LAST_OWNER_OFFSET). A release may be left to a hook each time:
/// [`SharedLock::release_for`](super::SharedLock::release_for), which is told what the acquisition left to remember.
#[derive(Copy, Clone, Debug)]
pub enum FastPath {
    /// A u32 at 0. Exchange with 1 acquires where it gave 0. A store of 0 releases.
    Word,
    /// A u32 at 0. Compare-exchange 0 to 1 acquires. Exchange with 0 releases; where it gave anything but 1, the hook
    /// is told what it gave ([`SharedLock::release_after`](super::SharedLock::release_after)).
    FutexWord,
    /// A u32 `next` at 0 and a u32 `serving` at 4. Fetch-and-add 1 on `next` gives a ticket; it is acquired if
    /// `serving` equals the ticket, else the hook is told the ticket. A store of `serving` + 1 to `serving` releases.
    Ticket,
    /// A u32 `tail` at 0 that names nodes, and in the worker's own node a u32 `next` at 0. The node's index is the
    /// worker's, its name that plus 1. A store of 0 to `next`, then an exchange of `tail` with the own name; it is
    /// acquired where that gave 0, else the hook is told what it gave. To release: where `next` is 0, a
    /// compare-exchange of `tail` from the own name to 0; where either fails a successor is there, and the hook does
    /// all of it.
    Mcs,
    /// A u32 `tail` at 0 that names nodes, and in each node a u32 `taken` at 0. A node's name is where it ends, in
    /// bytes from the first node's begin ([`clh_name`]); the worker's own is at first the one of its index. A store of
    /// 1 to the own node's `taken`, then an exchange of `tail` with the own name, which gives the predecessor's; it is
    /// acquired where that is a node's and its `taken` is 0, else the hook is told both names ([`clh_names`]). A store of 0 to the
    /// own node's `taken` releases, and the predecessor's node is the worker's own from then on, also where the hook
    /// has released.
    Clh,
    /// A u32 `count` at 0, odd while a writer is inside. Writer: a compare-exchange of an even count to the next
    /// acquires, followed by a Release fence; a store of the count + 1 releases. Reader: a load of an even count
    /// acquires; an Acquire fence and another load release where it gives the same, else the hook does. It is told the
    /// count that the reader began at, or an odd one where the hook itself acquired.
    Seqlock,
    /// Calls of the C library with the lock's address. 0 is success; the hook is told any other result.
    Calls {
        /// For an owner, and for a reader where the kind has none.
        exclusive: Calls,
        /// For a reader, where readers share.
        shared: Option<Calls>,
    },
}

/// The calls of one part.
#[derive(Copy, Clone, Debug)]
pub struct Calls {
    /// Tries to acquire, without waiting.
    pub try_acquire: Function,
    /// Waits until it has acquired.
    pub acquire: Function,
    /// Releases. Where it fails, the hook is told the result
    /// ([`SharedLock::release_after`](super::SharedLock::release_after)).
    pub release: Function,
}

/// A function of the C library.
#[derive(Copy, Clone, Debug)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// Itself, taking the lock's address untyped.
    pub call: unsafe extern "C" fn(*mut c_void) -> c_int,
}

/// The name of the node of that index of a CLH lock.
pub const fn clh_name(index: u32) -> u32 {
    super::clh::name(index)
}

/// What a hook is told of a CLH lock: the worker's own node and its predecessor's, by name.
pub const fn clh_names(told: i64) -> (u32, u32) {
    (told as u32, (told >> 32) as u32)
}

/// The same function, taking the lock's address untyped, with its name.
macro_rules! untyped {
    ($function:ident, $lock:ident) => {{
        let call: unsafe extern "C" fn(*mut libc::$lock) -> c_int = libc::$function;
        // SAFETY: the two types differ in a pointer's target alone, which makes no difference to a call (the ABI
        // compatibility rules of `fn`). Who calls it upholds that the pointer is to such a lock: `FastPath` says so.
        let call = unsafe {
            std::mem::transmute::<
                unsafe extern "C" fn(*mut libc::$lock) -> c_int,
                unsafe extern "C" fn(*mut c_void) -> c_int,
            >(call)
        };
        Function { name: stringify!($function), call }
    }};
}

/// What compiled code does with a lock of this kind.
pub fn fast_path(kind: LockKind) -> FastPath {
    match kind {
        LockKind::Tas | LockKind::Ttas => FastPath::Word,
        LockKind::Futex => FastPath::FutexWord,
        LockKind::Ticket => FastPath::Ticket,
        LockKind::Mcs => FastPath::Mcs,
        LockKind::Clh => FastPath::Clh,
        LockKind::Seqlock => FastPath::Seqlock,
        // The package's mutex is a POSIX mutex at the lock's first byte, and these are what its guard calls.
        LockKind::RawSync
        | LockKind::Pthread
        | LockKind::PthreadAdaptive
        | LockKind::PthreadRobust
        | LockKind::PthreadPi => FastPath::Calls { exclusive: mutex(), shared: None },
        LockKind::PthreadSpin => FastPath::Calls { exclusive: spin(), shared: None },
        LockKind::Semaphore => FastPath::Calls { exclusive: semaphore(), shared: None },
        LockKind::PthreadRwlock => FastPath::Calls { exclusive: writer(), shared: Some(reader()) },
    }
}

fn mutex() -> Calls {
    Calls {
        try_acquire: untyped!(pthread_mutex_trylock, pthread_mutex_t),
        acquire: untyped!(pthread_mutex_lock, pthread_mutex_t),
        release: untyped!(pthread_mutex_unlock, pthread_mutex_t),
    }
}

fn spin() -> Calls {
    Calls {
        try_acquire: untyped!(pthread_spin_trylock, pthread_spinlock_t),
        acquire: untyped!(pthread_spin_lock, pthread_spinlock_t),
        release: untyped!(pthread_spin_unlock, pthread_spinlock_t),
    }
}

fn semaphore() -> Calls {
    Calls {
        try_acquire: untyped!(sem_trywait, sem_t),
        acquire: untyped!(sem_wait, sem_t),
        release: untyped!(sem_post, sem_t),
    }
}

fn writer() -> Calls {
    Calls {
        try_acquire: untyped!(pthread_rwlock_trywrlock, pthread_rwlock_t),
        acquire: untyped!(pthread_rwlock_wrlock, pthread_rwlock_t),
        release: untyped!(pthread_rwlock_unlock, pthread_rwlock_t),
    }
}

fn reader() -> Calls {
    Calls {
        try_acquire: untyped!(pthread_rwlock_tryrdlock, pthread_rwlock_t),
        acquire: untyped!(pthread_rwlock_rdlock, pthread_rwlock_t),
        release: untyped!(pthread_rwlock_unlock, pthread_rwlock_t),
    }
}
