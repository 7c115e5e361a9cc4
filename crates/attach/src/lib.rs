//! Processes that the lab did not start: who maps a shared segment, what each does there, and who waits for whom.
//!
//! Everything is keyed by offset in the segment: each process has it at an address of its own.

mod perf;
mod target;

pub use target::{Target, Targets};
