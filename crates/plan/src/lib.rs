//! What is to be run, before and after it meets a machine.
//!
//! A [`Plan`] is a scenario with its variants, sweeps and overrides resolved; it names no machine.
//! [`bind`](bind::bind) joins it with a [`Topology`] and yields one [`Program`] an arm: operations on offsets, one
//! list a worker. The worker compiles that Program and the model simulates it, so both run the same thing.
#![forbid(unsafe_code)]

mod arms;
pub mod bind;
pub mod event;
pub mod expect;
#[cfg(test)]
mod fixtures;
mod lock;
mod nearest;
mod outside;
pub mod placement;
pub mod program;
pub mod region;
mod scenario;
pub mod step;
pub mod topology;
pub mod units;

pub use bind::{BindError, Bound, BoundArm, NotApplicable, Touch, Usage, bind, usage};
pub use event::{CountedBy, EventForm, EventSpec};
pub use lock::{Lock, LockKind};
pub use nearest::{nearest, slip_of};
pub use outside::{escaped, is_plain};
pub use placement::{Item, Layout, Placed, Placement, PlacementError, Strategy};
pub use program::{AccessKind, Address, Op, OpKind, PlacedLock, Program, WorkerProgram};
pub use region::{MemoryStep, MemoryVerb, Pages, Region};
pub use scenario::{Arm, ArmKind, Baseline, Case, Count, CpuChoice, Field, Measure, Plan, Repetitions, Role, Width};
pub use step::{Action, Element, Step, Target};
pub use topology::{Cpu, Topology};
pub use units::{CACHE_LINE_BYTES, CpuId, HUGE_PAGE_BYTES, LINE_PAIR_BYTES, Nanos, PAGE_BYTES, TickRate, WorkerIndex};
