//! Every byte that two processes of the lab must agree on: the segment's map, the control block through which a
//! repetition's phases go, one slot a worker, the locks, and the segment's creation, attachment and removal.
//!
//! The map, from the segment's first byte ([`SegmentMap`] computes it, the header repeats it, attaching checks it):
//!
//! ```text
//! offset            bytes                     what                              written by
//! 0                 128                       Header                            coordinator, before any worker attaches
//! 128               4 x 128                   Control: one line pair a word     see `control`
//! 640               256 x workers             Slot: status pair, probe pair     its worker; probe: also its ring neighbour
//! next page         area_bytes                fields area: the scenario's       the workers' compiled loops
//!                                             fields and locks
//! ```
//!
//! No two of these share a 128-byte pair, so that the lab's own words never take part in what it measures.
//! Everything but the fields area is made of atomics; the fields area is touched by compiled code and locks alone.

mod clock;
mod control;
mod header;
pub mod lock;
mod segment;
mod slot;

pub use clock::{TickRate, ticks};
pub use control::{Control, Phase, WindowTicks};
pub use header::{Header, HeaderError, SegmentMap, program_hash};
pub use segment::{AttachError, CreateError, NAME_PREFIX, Orphan, Segment, SegmentSpec, orphans, remove_orphan};
pub use slot::{Court, Slot, WorkerState};

/// A type that may lie in shared memory.
///
/// # Safety
/// The implementer upholds: `repr(C)` with fixed-width members, no pointer, reference, handle or `Drop`; every bit
/// pattern is a valid value; all mutation goes through atomics. Then a reference to it stays sound whatever another
/// process writes there.
#[allow(unsafe_code)] // the marker itself
pub unsafe trait SharedMemory: Sync {}
