//! What the two queue locks share: where a worker stands, and how words of the segment name nodes.

use super::error::LockError;

/// Where a worker stands with a queue lock.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Not in the queue.
    Out,
    /// In it, behind another.
    Queued,
    /// At its head: the owner.
    Owner,
}

impl Standing {
    /// A worker that is in the queue cannot enter it again: its node is in use.
    pub(super) fn check_out(self) -> Result<(), LockError> {
        if self == Standing::Out { Ok(()) } else { Err(LockError::HeldAlready) }
    }

    pub(super) fn check_owner(self) -> Result<(), LockError> {
        if self == Standing::Owner { Ok(()) } else { Err(LockError::NotHeld) }
    }
}

/// What a word names nobody by. Node `i` is named `i + 1`, an index and no pointer: every process maps the segment at
/// an address of its own.
pub(super) const NOBODY: u32 = 0;

/// The node that `name`, read from `word` in the segment, names.
pub(super) fn named<'n, N>(nodes: &'n [N], word: &'static str, name: u32) -> Result<&'n N, LockError> {
    // A name of 0 wraps to an index that no slice reaches.
    nodes.get(name.wrapping_sub(1) as usize).ok_or(LockError::Corrupt { word, found: name })
}
