//! Threads that already waited when watching began, of whose calls no beginning is seen.

use super::call::{Call, Place, Purpose, Syscall};
use crate::Target;
use host::Root;

/// The word at which a thread waits now, as an offset in the segment, and whether privately to its process; `None` where it does not, or the kernel does not tell.
/// Of one that waits at several at once it is not told.
pub(super) fn waits_at(root: &Root, target: &Target, tid: u32) -> Option<(u64, bool)> {
    let asleep = host::sleeping_call(root, target.pid, tid)?;
    let call = Call::of(Syscall::numbered(asleep.number, target.address_bits)?, &asleep.arguments)?;
    match (call.purpose, call.place) {
        (Purpose::Wait, Place::At(address, _)) => target.offset(address).map(|word| (word, call.private)),
        _ => None,
    }
}
