//! Every byte that two processes of the lab must agree on: the segment's map, the control block through which a
//! repetition's phases go, one slot a worker, the locks, and the segment's creation, attachment and removal.
//!
//! Where each byte lies is drawn once, in `map.rs`, above the assertions that hold the types to it.
//! Everything but the fields area is made of atomics; the fields area is touched by compiled code and locks alone.

mod atom;
mod check;
mod clock;
mod control;
mod header;
pub mod lock;
mod map;
#[cfg(test)]
mod modelled;
#[cfg(test)]
mod models;
mod orphans;
mod reserve;
mod segment;
mod slot;
#[cfg(test)]
mod testing;
mod window;

pub use check::ProgramError;
pub use clock::{calibrate, ticks};
pub use control::{Control, Gate, Phase, WindowTicks};
pub use header::{Header, HeaderError};
pub use map::SegmentMap;
pub use orphans::{Orphan, orphans, remove_orphan};
pub use segment::{AttachError, CreateError, RegionError, Segment, SegmentSpec, region_file};
pub use slot::{Court, READS_OFFSET, Slot, WAITS_FOR_OFFSET, WorkerState};

/// A type that may lie in shared memory.
///
/// # Safety
/// The implementer upholds: `repr(C)` with fixed-width members, no pointer, reference, handle or `Drop`; every bit
/// pattern is a valid value; all mutation goes through atomics. Then a reference to it stays sound whatever another
/// process writes there.
#[allow(unsafe_code)] // the marker itself
pub unsafe trait SharedMemory: Sync {}
