//! Segments that dead runs left, in the way of the next one.

/// Removes them before a run, silently; those of a living process or of another user stay.
pub(crate) fn sweep() {
    // A folder that cannot be read has nothing to sweep; creating the segment will say what is wrong with it.
    for orphan in shm_layout::orphans().unwrap_or_default() {
        shm_layout::remove_orphan(&orphan.name);
    }
}
