//! The Plan: a scenario after variants, overrides and sweeps are resolved, and before a machine is known.

use crate::event::EventSpec;
use crate::expect::{Expect, Prediction};
use crate::lock::Lock;
use crate::placement::Placement;
use crate::region::Region;
use crate::step::{Action, Step};
use crate::units::{CpuId, Nanos};
use serde::{Deserialize, Serialize};

/// Everything one scenario asks for. Made by the `scenario` crate, which has refused what is impossible on any machine;
/// what only a machine can refuse is left to [`bind`](crate::bind::bind).
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The scenario file's stem, e.g. `false_sharing`: names the results folder.
    pub name: String,
    /// One line: what is under study.
    pub title: String,
    /// The question the scenario answers.
    pub question: String,
    /// What holds for the whole run.
    pub measure: Measure,
    /// Every variant at every point of the sweep, in file order, sweep points in the order of their lists.
    /// All of kind [`ArmKind::Variant`]; [`bind`](crate::bind::bind) adds the references.
    pub arms: Vec<Arm>,
    /// The claims the scenario makes about its own outcome.
    pub expects: Vec<Expect>,
    /// What whoever runs it predicts; never the file's.
    pub predictions: Vec<Prediction>,
}

/// What holds for the whole run and cannot differ between arms.
#[derive(Clone, Debug, PartialEq)]
pub struct Measure {
    /// Blocks: how often every arm is run.
    pub repetitions: Repetitions,
    /// With [`Repetitions::Auto`]: stop once every ratio's interval is narrower than this share (0.05 is 5 %).
    pub precision: f64,
    /// With [`Repetitions::Auto`]: stop after this much wall time.
    pub budget: Nanos,
    /// The baselines asked for; `None` means those that apply.
    pub baselines: Option<Vec<Baseline>>,
    /// The role whose figures head an arm: an index into [`Case::roles`], the same in every arm.
    pub headline_role: usize,
    /// The user's own events, counted beside [`COUNTERS`](crate::event::COUNTERS); no two of one [`EventSpec::key`].
    pub events: Vec<EventSpec>,
}

/// How many blocks a run has.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Repetitions {
    /// Exactly so many.
    Fixed(u32),
    /// Until [`Measure::precision`] or [`Measure::budget`].
    Auto,
}

/// A reference that says what sharing cost.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Baseline {
    /// One worker alone, one arm a role.
    Solo,
    /// All workers at once, each on its own copy of every field and lock.
    Unshared,
    /// The variant itself with its locks neither tried first nor timed: what watching them costs.
    Plain,
}

/// One thing that is run and compared: a variant at one point of the sweep, or a reference.
#[derive(Clone, Debug, PartialEq)]
pub struct Arm {
    /// As claims name it: `packed`, `packed@workers=4`, `solo:counter`, `unshared:packed`, `control`.
    pub name: String,
    /// What it is for.
    pub kind: ArmKind,
    /// The variant it comes from.
    pub variant: String,
    /// The sweep's point: path and value, as written; empty without a sweep.
    pub sweep: Vec<(String, String)>,
    /// Length of the measuring window.
    pub window: Nanos,
    /// Length of the warm-up before it, all workers running.
    pub warm_up: Nanos,
    /// The fields, locks, roles and placement in force.
    pub case: Case,
}

/// What an arm is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArmKind {
    /// A variant under comparison.
    Variant,
    /// The reference variant with one worker of one role alone.
    Solo {
        /// Index into [`Case::roles`].
        role: usize,
    },
    /// The reference variant with a copy of everything for each worker.
    Unshared,
    /// The reference variant once more, so that the run can say what difference it could have seen.
    Control,
    /// The reference variant with its locks neither tried first nor timed.
    Plain,
}

/// The memory and the roles of one arm.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Shared fields in declaration order.
    pub fields: Vec<Field>,
    /// Locks in declaration order; placed after the fields under declared order.
    pub locks: Vec<Lock>,
    /// Regions in declaration order; no placement says where they go.
    pub regions: Vec<Region>,
    /// Roles in declaration order.
    pub roles: Vec<Role>,
    /// Where fields and locks go.
    pub placement: Placement,
    /// Whether more workers than CPUs are wanted.
    pub oversubscribe: bool,
}

impl Case {
    /// Workers of all roles together: the number of elements of a field with `each = "worker"`. Saturates.
    pub fn worker_count(&self) -> u32 {
        self.roles.iter().fold(0, |sum, role| sum.saturating_add(role.workers))
    }

    /// Whether a step takes a lock whose first attempt is a try of the lab's: what a `plain` arm prices.
    pub fn tries_first(&self) -> bool {
        let mut steps = self.roles.iter().flat_map(|role| &role.steps);
        steps.any(|step| matches!(step.action, Action::Lock { lock, .. } if self.locks[lock].kind.is_tried_first()))
    }
}

/// An integer in shared memory, or an array of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name in steps and results.
    pub name: String,
    /// Size of one element.
    pub width: Width,
    /// How many elements.
    pub count: Count,
    /// Byte offset of the first element under `declared`, elements back to back; else `None`.
    pub at: Option<u64>,
}

/// How many elements a field has.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Count {
    /// A single value: steps name it without brackets.
    One,
    /// One element a worker.
    PerWorker,
    /// So many, at least 1.
    Fixed(u32),
}

impl Count {
    /// The number of elements where `workers` workers run.
    pub fn elements(self, workers: u32) -> u32 {
        match self {
            Count::One => 1,
            Count::PerWorker => workers,
            Count::Fixed(n) => n,
        }
    }
}

/// Size of an integer field's element; its alignment is the same.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Width {
    /// One byte.
    U8,
    /// Two bytes.
    U16,
    /// Four bytes.
    U32,
    /// Eight bytes.
    U64,
}

impl Width {
    /// Size and alignment in bytes.
    pub fn bytes(self) -> u64 {
        match self {
            Width::U8 => 1,
            Width::U16 => 2,
            Width::U32 => 4,
            Width::U64 => 8,
        }
    }
}

/// A program and where it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Role {
    /// Its name.
    pub name: String,
    /// How many workers run it, at least 1: its processes times [`Role::threads`].
    pub workers: u32,
    /// Which CPUs they take.
    pub cpus: CpuChoice,
    /// Threads of each of its processes, at least 1: all are workers, and share one address space.
    pub threads: u32,
    /// Whether its workers are threads of the process of the role before it, which has one.
    pub joins: bool,
    /// With `rate`: the time from one pass's intended start to the next one's, for each worker. A pass that is late
    /// begins at once, and its latency counts from the intended start. `None`: a closed loop.
    pub period: Option<Nanos>,
    /// Whether each pass's latency is recorded; [`bind`](crate::bind::bind) takes it as set beside a `period`.
    pub latency: bool,
    /// How long after the window's opening they begin their loop; zero is before the warm-up. Shorter than the window.
    pub after: Nanos,
    /// Regions that each of its workers touches whole before the warm-up: indices into [`Case::regions`].
    pub populate: Vec<u32>,
    /// One pass, in order.
    pub steps: Vec<Step>,
}

impl Role {
    /// Whether a pass waits for another worker's post: then a worker alone would never end it.
    pub fn waits(&self) -> bool {
        self.steps.iter().any(|step| matches!(step.action, Action::Wait(_)))
    }

    /// Whether a step ends the process: then its workers leave no figures.
    pub fn dies(&self) -> bool {
        self.steps.iter().any(|step| step.action == Action::Die)
    }
}

/// Which CPUs a role's workers take; [`bind`](crate::bind::bind) turns it into numbers. Roles choose in order, after
/// every list has taken its CPUs. In a role of one worker, `same-core`, `same-llc` and `cross-socket` relate to the
/// worker before it, of whichever role; the very first worker has none and takes the roomiest group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CpuChoice {
    /// Distinct cores, as far apart as the host allows: sockets first, then last-level groups, siblings last.
    Spread,
    /// Hardware threads of one core.
    SameCore,
    /// Distinct cores of one last-level cache.
    SameLlc,
    /// Alternating sockets.
    CrossSocket,
    /// These, one a worker, in order.
    List(Vec<CpuId>),
}
