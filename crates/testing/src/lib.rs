//! For tests alone: a skip that is seen, a wait that ends, a child's words, and perf as a witness.
#![forbid(unsafe_code)]

mod lines;
mod perf;
mod skips;
mod waits;

pub use lines::Lines;
pub use perf::Perf;
pub use skips::{not_here, skip};
pub use waits::{A_LONG_TIME, within};
