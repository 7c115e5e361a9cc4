//! What was seen: from one worker's trace to the run that is written to disk. Types alone: what they hold is made by
//! `worker`, `analysis` and the coordinator.
//!
//! Begin with [`Trace`], what a worker wrote, in ticks; `analysis` judges it into an [`Observation`], and many of these
//! into the [`ArmSummary`]s, claims and diagnoses of a [`Run`]. A count that could not be taken is a [`Reading`] that
//! says why, never 0.
//!
//! The serialised form of [`Run`] is the JSON contract, as are those of the other commands ([`Attach`], [`ModelRun`],
//! [`Comparison`], …): field names are part of it, and it only grows within one [`SCHEMA_VERSION`].
#![forbid(unsafe_code)]

mod advise;
mod arm;
mod attach;
mod claim;
mod compare;
mod costs;
mod diagnosis;
mod doctor;
mod emitted;
mod events;
mod figure;
mod grade;
mod import;
mod kernel_log;
mod lock;
mod memory;
mod modelled;
mod observation;
mod reading;
mod run;
mod times;
mod topology;
mod trace;

pub use advise::{AdviceRecord, AdviseRun, AdvisedLayout, AdvisedRole, LayoutState, LeftOutVariant};
pub use arm::{
    ArmState, ArmSummary, Contention, CounterSummary, Kind, LayoutRow, Measured, Modelled, OtherRegime,
    RepetitionCount, RoleSummary, WorkerSummary,
};
pub use attach::{
    Attach, AttachListing, AttachNote, AttachedProcess, AttachedSegment, LineVerdict, ListedSegment, LockFinding,
    LockUser, ProbedLock, ProcessEnd, SegmentKind, SegmentMapping, SegmentQuiet, SegmentUser, TouchedLine, TouchedWord,
    TouchingInstruction, WaitTimes, WatchCost, WatchedLock, WordPace,
};
pub use claim::{ExpectOutcome, ExpectState, Prediction};
pub use compare::{
    Asks, Both, CompareLock, CompareRow, ComparedPair, ComparedRun, Comparison, ConditionOutcome, ConditionRow,
    ConditionState, Difference, Side, Unmatched, Verdict,
};
pub use costs::CostProbe;
pub use diagnosis::{Diagnosis, Evidence, Gain, Severity, Warning};
pub use doctor::{Check, CheckState, Doctor};
pub use emitted::{EmittedRole, EmittedScenario, EmittedState};
pub use events::{CountedEvent, Events};
pub use figure::{Interval, Percentiles, Quantiles};
pub use grade::{Effect, Gate, GateCheck, GateOutcome, GateState, Grade, GradeVerdict, GradedFile, Hint};
pub use import::{Declared, Elements, Import, ImportedBase, ImportedField, ImportedHole};
pub use kernel_log::{
    FlushReason, KernelEvent, KernelEventKind, KernelObservation, KernelTrace, StackCount, StackSummary,
};
pub use lock::{LockSummary, LockWorker};
pub use memory::{
    BatchBucket, BatchTimes, MemoryCall, MemoryObservation, MemoryTrace, Punched, Stall, Timeline, TimelineBucket,
    TimelineSpan, WorkerTimeline,
};
pub use modelled::{
    CurvePoint, ModelRun, ModelRunArm, ModelledArm, ModelledLine, ModelledLock, ModelledMachine, ModelledPair,
    ModelledRole, ModelledWorker,
};
pub use observation::{LockObservation, Observation};
pub use reading::{CounterReadings, NO_PMU, Reading, ReadingError};
pub use run::{Code, CodeListing, Host, Method, Regime, Run, ScenarioText, Tool};
pub use times::{NsCount, TickCount, TickSpan};
pub use topology::{AdjacentLine, CacheRow, CpuRow, DistanceRow, PairLatency, PairSample, Reach, Topology};
pub use trace::{EdgeProbe, Gap, LatencyTrace, LockTrace, QueueDelay, Slice, Trace};

/// Version of the JSON that [`Run`] and the other commands print.
pub const SCHEMA_VERSION: u32 = 1;

/// Least length of a slice of a worker's window, ns; a pass that is longer is its own. Evictions come some milliseconds
/// apart on a busy machine: slices of half a millisecond leave many whole.
pub const SLICE_NS: u64 = 500_000;

/// Unexplained time between two clock reads, and run-queue delay in a blocking, beyond which a worker may have been off
/// its CPU, ns. A worker logs what is longer, whoever judges goes by what was logged. Clock reads are about 20 µs apart
/// and an interrupt takes a few µs, rarely 20: lower would mask interrupts, higher would let evictions pass as slow
/// slices.
pub const EVICTION_NS: u64 = 50_000;

/// One hold in so many is timed: two clock reads each, 25 to 80 ns, over as many acquisitions are under 0.4 ns apiece,
/// where a free lock's cost 4 and more. A prime, so that it does not keep step with a loop that takes several locks.
pub const HOLD_SAMPLING: u64 = 251;
