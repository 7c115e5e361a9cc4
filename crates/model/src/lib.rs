//! Caches and a coherence protocol on paper: what the cores would do with a [`plan::Program`], and what their caches
//! would count. All figures that come from here are *modelled*: computed, never measured.
//!
//! Time is event-driven and in whole picoseconds: a worker computes until it needs a line that its core does not have
//! in the right state; its request reaches whoever has it after half a fetch, waits until the holder's tenure is over,
//! and brings the line after the other half. `docs/model.md` says what is modelled, what is not, and how well it
//! predicts.
//!
//! [`simulate`] is the one way in: a Program and a [`Machine`] give a [`Modelled`]. Within, `script` resolves the
//! Program's offsets to lines and words, `engine` lets its workers go through that by a calendar of events (`steps` and
//! `locks` are what they do, `accesses` and `buffer` how that touches memory, `requests` what it asks of other cores),
//! and `tally` and `story` keep what a worker counts and what becomes of a line.
#![forbid(unsafe_code)]

mod cache;
mod chance;
mod engine;
mod line;
mod machine;
mod protocol;
mod script;
mod set;
mod story;
mod tally;
mod time;
mod way;

pub use engine::{Limits, Refusal, knows, simulate};
pub use machine::{
    CacheShape, Caches, CoreFacts, Costs, Distance, Distances, Geometry, HOST, HostFigures, Machine, Shape, Source,
    Unmeasured, names,
};
pub use protocol::Protocol;
pub use story::{LineStory, PairStory};
pub use tally::{LockTally, Tally};
pub use toml_text::Refusal as MachineRefusal;

/// What the model made of one arm.
#[derive(Clone, Debug, PartialEq)]
pub struct Modelled {
    /// One for each worker, in the Program's order.
    pub workers: Vec<ModelledWorker>,
    /// One for each line that was touched, ascending by offset.
    pub lines: Vec<LineStory>,
    /// Length of the simulated window.
    pub window_ns: f64,
    /// Memory accesses simulated, warm-up included.
    pub accesses: u64,
    /// The workers that wait for ever, by index: nobody was left who could have ended their waits, and the rest of the
    /// window passed without anything happening. Empty where anybody went on.
    pub stuck: Vec<u32>,
}

/// One worker's part of the simulated window.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelledWorker {
    /// Its index over all roles.
    pub worker: u32,
    /// Its role's name.
    pub role: String,
    /// Its CPU on the modelled machine.
    pub cpu: u32,
    /// Passes in the window.
    pub passes: u64,
    /// Nanoseconds a pass; `None` where it completed none.
    pub ns_per_op: Option<f64>,
    /// What its caches would have counted.
    pub tally: Tally,
    /// Its dealings with the Program's locks, by their index.
    pub locks: Vec<LockTally>,
}
