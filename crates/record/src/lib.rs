//! What was seen: from one worker's trace to the run that is written to disk. The serialised form of [`Run`] is the
//! JSON contract; its field names are part of it, and it only grows within one [`SCHEMA_VERSION`].
#![forbid(unsafe_code)]

mod advise;
mod attach;
mod compare;
mod costs;
mod doctor;
mod emitted;
mod events;
mod grade;
mod import;
mod kernel_log;
mod memory;
mod modelled;
mod observation;
mod reading;
mod run;
mod topology;
mod trace;

pub use advise::{AdviceRecord, AdviseRun, AdvisedLayout, AdvisedRole, LayoutState, LeftOutVariant};
pub use attach::{
    Attach, AttachListing, AttachNote, AttachedProcess, AttachedSegment, LineVerdict, ListedSegment, LockFinding,
    LockUser, ProbedLock, ProcessEnd, SegmentKind, SegmentMapping, SegmentQuiet, SegmentUser, TouchedLine, TouchedWord,
    TouchingInstruction, WaitTimes, WatchCost, WatchedLock, WordPace,
};
pub use compare::{
    Asks, Both, CompareLock, CompareRow, ComparedPair, ComparedRun, Comparison, ConditionOutcome, ConditionRow,
    ConditionState, Difference, Side, Unmatched, Verdict,
};
pub use costs::CostProbe;
pub use doctor::{Check, CheckState, Doctor};
pub use emitted::{EmittedRole, EmittedScenario, EmittedState};
pub use events::Events;
pub use grade::{Effect, Gate, GateCheck, GateOutcome, GateState, Grade, GradeVerdict, GradedFile, Hint};
pub use import::{Declared, Elements, Import, ImportedBase, ImportedField, ImportedHole};
pub use kernel_log::{
    FlushReason, KernelEvent, KernelEventKind, KernelObservation, KernelTrace, StackCount, StackSummary,
};
pub use memory::{
    BatchBucket, BatchTimes, MemoryCall, MemoryObservation, MemoryTrace, Punched, Stall, Timeline, TimelineBucket,
    TimelineSpan, WorkerTimeline,
};
pub use modelled::{
    CurvePoint, ModelRun, ModelRunArm, ModelledArm, ModelledLine, ModelledLock, ModelledMachine, ModelledPair,
    ModelledRole, ModelledWorker,
};
pub use observation::{LockObservation, Observation, WaitCount};
pub use reading::{NO_PMU, Reading, ReadingError};
pub use run::*;
pub use topology::{AdjacentLine, CacheRow, CpuRow, DistanceRow, PairLatency, PairSample, Topology};
pub use trace::{CounterReadings, EdgeProbe, Gap, LatencyTrace, LockTrace, QueueDelay, Slice, TickCount, Trace, Wait};

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
