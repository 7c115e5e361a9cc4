//! What a worker's CPU and kernel counted for it inside the measuring window, and why not where they did not.
//!
//! A worker counts on itself: [`Counters::open`] before the warm-up, [`Counters::enable`] and [`Counters::disable`] at
//! the window's edges, [`Counters::read`] after it. Nothing here can fail a run: what cannot be counted is a
//! [`record::Reading`] that says why and, where there is one, the cure. `docs/counters.md` says what each name counts
//! on which processor.
#![forbid(unsafe_code)]

mod counters;
mod event;
mod kernel;
mod open;
mod pmu;
mod refusal;

pub use counters::Counters;
pub use event::{EVENTS, Event};

#[cfg(test)]
mod fake;
