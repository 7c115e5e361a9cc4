//! What the two queue locks share: how words of the segment name nodes.

use super::error::LockError;

/// What a word names nobody by. Node `i` is named `i + 1`, an index and no pointer: every process maps the segment at
/// an address of its own.
pub(super) const NOBODY: u32 = 0;

/// The node that `name`, read from `word` in the segment, names.
pub(super) fn named<'n, N>(nodes: &'n [N], word: &'static str, name: u32) -> Result<&'n N, LockError> {
    // A name of 0 wraps to an index that no slice reaches.
    nodes.get(name.wrapping_sub(1) as usize).ok_or(LockError::Corrupt { word, found: name })
}
