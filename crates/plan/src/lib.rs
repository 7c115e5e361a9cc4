//! What is to be run, before and after it meets a machine.
//!
//! A [`Plan`] is a scenario with its variants, sweeps and overrides resolved; it names no machine. [`bind()`] joins it with
//! a [`Topology`]: fields and locks get offsets by the arm's [`Placement`], workers their CPUs, and each arm becomes a
//! [`Program`], operations on offsets, one list a worker. The worker compiles that Program and the model simulates it, so
//! both run the same thing.
//!
//! To read on, begin with [`Arm`] and its [`Case`] (what a scenario says), then [`Program`] and its [`Op`]s (what runs).
//! [`event`] is what a user may count, in perf's spelling; [`expect`] what a scenario may claim.
#![forbid(unsafe_code)]

mod arms;
mod bind;
mod cpu_identity;
pub mod event;
pub mod expect;
#[cfg(test)]
mod fixtures;
mod lock;
mod nearest;
mod outside;
mod placement;
mod program;
mod region;
mod scenario;
mod step;
mod topology;
mod units;

pub use bind::{BindError, Bound, BoundArm, NotApplicable, Touch, Usage, bind, usage};
pub use cpu_identity::CpuIdentity;
pub use event::{CountedBy, EventForm, EventSpec};
pub use lock::{Lock, LockKind};
pub use nearest::{nearest, slip_of};
pub use outside::{escaped, is_plain};
pub use placement::{HOT_SHARE, Item, Layout, Placed, Placement, PlacementError, Strategy};
pub use program::{AccessKind, Address, Op, OpKind, PlacedLock, Program, WorkerProgram};
pub use region::{MemoryStep, MemoryVerb, Pages, Region};
pub use scenario::{Arm, ArmKind, Baseline, Case, Count, CpuChoice, Field, Measure, Plan, Repetitions, Role, Width};
pub use step::{Action, Element, Step, Target};
pub use topology::{Cpu, Topology};
pub use units::{
    CACHE_LINE_BYTES, CpuId, HUGE_PAGE_BYTES, LINE_PAIR_BYTES, Nanos, PAGE_BYTES, TIMER_SLACK, TickRate, WorkerIndex,
};
