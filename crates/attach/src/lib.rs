//! Processes that the lab did not start: who maps a shared segment, what each does there, and who waits for whom.
//!
//! Everything is keyed by offset in the segment: each process has it at an address of its own. [`census()`] lists what is
//! shared on the machine, [`find()`] goes from what a user names to a segment and the processes that map it, and
//! [`watch()`] watches them.

mod access;
mod census;
mod cost;
mod counts;
mod cpu_clock;
mod find;
pub mod futex;
mod lookout;
mod maps;
mod memory;
mod notes;
mod own_mapping;
mod perf;
mod pidfd;
mod segment;
mod target;
mod watch;

pub use access::{Closed, closed_memory};
pub use census::census;
pub use find::{FindError, Found, Wanted, find};
pub use target::{Target, Targets};
pub use watch::{Phase, WatchOptions, watch};
