//! Which layouts of a shared struct are worth measuring, which of those that were measured is worth its memory, and the
//! struct's text in C, C++ or Rust.
//!
//! Pure functions in two halves: [`candidates`] makes layouts from the fields and from what the roles do with them;
//! [`judge`](judge::judge) turns what was measured of them into advice. What lies between, the model and the
//! measurement, is the coordinator's. `docs/advise.md` has the rules.
#![forbid(unsafe_code)]

mod arrange;
mod candidate;
mod code;
mod cost;
pub mod emit;
mod held;
pub mod judge;
mod lines;
mod rules;
mod units;
mod variant;

pub use candidate::{Candidate, Change, PRESENT, add, candidates, of_variant};
pub use cost::{Rates, misses_per_second};
pub use lines::lines_per_op;
pub use variant::toml;
