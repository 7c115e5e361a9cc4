//! Processes that the lab did not start: who maps a shared segment, what each does there, and who waits for whom.
//!
//! Everything is keyed by offset in the segment: each process has it at an address of its own. [`census()`] lists what is
//! shared on the machine, [`find()`] goes from what a user names to a segment and the processes that map it, and
//! [`watch()`] watches them.

mod access;
mod candidates;
mod census;
mod cost;
mod counts;
mod cpu_clock;
mod decode;
mod fields;
mod find;
pub mod futex;
mod lookout;
mod maps;
mod memory;
mod notes;
mod own_mapping;
mod perf;
mod pidfd;
mod prove;
mod pulse;
mod registers;
mod sample;
mod segment;
pub mod symbols;
mod target;
pub mod touch;
mod verdict;
mod watch;
mod words;

pub use access::{Closed, closed_processes};
pub use census::census;
pub use fields::Fields;
pub use find::{FindError, Found, Wanted, find};
pub use lookout::{News, Phase};
pub use target::{Target, Targets};
pub use watch::{WatchOptions, watch};
