//! Why a lock could not do what it was asked.

use nix::errno::Errno;

/// Why a lock could not be made, acquired or released. None of them leaves the caller owning it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    /// A call of the C library failed.
    #[error("{call} failed: {errno}")]
    Call {
        /// The call.
        call: &'static str,
        /// What it returned, or left in `errno`.
        errno: Errno,
    },
    /// The package `raw_sync` said no.
    #[error("raw_sync's {call} failed: {message}")]
    Library {
        /// Its method.
        call: &'static str,
        /// Its words, with the number that the C library returned.
        message: String,
    },
    /// It was released by a worker that does not hold it. Kinds that record no owner notice only that nobody holds it;
    /// `docs/locks.md` says which notice nothing.
    #[error("it was released while not held")]
    NotHeld,
    /// It was acquired by a worker that stands in its queue already.
    #[error("it was acquired again by the worker that waits for it")]
    HeldAlready,
    /// The caller's `stop` said so while it waited. A queue still holds the waiter's node: the lock is of no more use.
    #[error("the wait for it was given up")]
    Abandoned,
    /// Its waiters cannot leave ([`plan::LockKind::times_out`]).
    #[error("a wait for a lock of kind {kind} cannot end at a time: take a kind whose waiters can leave")]
    NoTimeout {
        /// The kind, as scenarios spell it.
        kind: &'static str,
    },
    /// Compiled code told of a release that it cannot have made by itself ([`fast_path`](super::fast_path)): a fault of
    /// the caller.
    #[error("compiled code cannot have done this by itself")]
    NoFastPath,
    /// A word of it holds what no lock operation writes: something else wrote there.
    #[error("its {word} holds {found}, which no lock operation writes: does something else write there?")]
    Corrupt {
        /// Which.
        word: &'static str,
        /// What it holds.
        found: u32,
    },
}

/// What a pthread call returned: 0, or an errno.
pub(super) fn check(call: &'static str, code: libc::c_int) -> Result<(), LockError> {
    if code == 0 { Ok(()) } else { Err(LockError::Call { call, errno: Errno::from_raw(code) }) }
}
