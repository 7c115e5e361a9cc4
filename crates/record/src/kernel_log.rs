//! What the kernel did to a worker's translations, event by event.

use crate::reading::Reading;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The log of one worker's window. It is kept in memory of a fixed size: events that found it full are counted and
/// nothing more is known of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelTrace {
    /// The events, in order.
    pub events: Vec<KernelEvent>,
    /// Events that found the log full.
    pub lost: u64,
    /// Distinct stacks of the kernel's, each from the innermost frame outwards: return addresses. Empty unless asked
    /// for.
    pub stacks: Vec<Vec<u64>>,
    /// Why some kind of event is not logged, or none is; `None` where all are.
    pub missing: Option<Reading>,
}

/// Something that happened while the worker was on its CPU.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelEvent {
    /// When, ticks: the kernel's time, converted by readings of both clocks at the window's edges, to about 0.1 µs.
    pub ticks: u64,
    /// What.
    pub kind: KernelEventKind,
    /// Its stack, an index into [`KernelTrace::stacks`].
    pub stack: Option<u32>,
}

/// What happened.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KernelEventKind {
    /// Another CPU's function-call interrupt began: it asks for a flush, or for something else.
    Interrupt,
    /// Translations were flushed, or another CPU was asked to.
    Flush {
        /// Why.
        reason: FlushReason,
        /// How many pages; `None` where it was all of an address space.
        pages: Option<u64>,
    },
}

impl KernelEventKind {
    /// In a table's cell: `interrupt`, `flush_remote`, `flush_sent`.
    pub fn name(self) -> &'static str {
        match self {
            KernelEventKind::Interrupt => "interrupt",
            KernelEventKind::Flush { reason, .. } => reason.name(),
        }
    }
}

/// Why the kernel flushed, as its tracepoint `tlb:tlb_flush` numbers the reasons.
///
/// # References
/// `enum tlb_flush_reason` in `include/linux/mm_types.h`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlushReason {
    /// The CPU took up another task.
    TaskSwitch,
    /// Another CPU asked for it: the victim's side of a shootdown.
    Remote,
    /// This CPU's own change of a range.
    Local,
    /// This CPU's own change of a whole address space.
    LocalMm,
    /// Other CPUs were asked: the culprit's side of a shootdown.
    Sent,
    /// Another CPU asked for an address space that this one no longer runs.
    WrongCpu,
}

impl FlushReason {
    /// The reason of that number; `None` for one that the kernel has added since.
    pub fn of(number: u32) -> Option<FlushReason> {
        use FlushReason::{Local, LocalMm, Remote, Sent, TaskSwitch, WrongCpu};
        [TaskSwitch, Remote, Local, LocalMm, Sent, WrongCpu].get(number as usize).copied()
    }

    /// As [`KernelEventKind::name`] has it.
    pub fn name(self) -> &'static str {
        match self {
            FlushReason::TaskSwitch => "flush_task_switch",
            FlushReason::Remote => "flush_remote",
            FlushReason::Local => "flush_local",
            FlushReason::LocalMm => "flush_local_mm",
            FlushReason::Sent => "flush_sent",
            FlushReason::WrongCpu => "flush_wrong_cpu",
        }
    }
}

/// What the log of one worker's window comes to, beside those of the others.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelObservation {
    /// Logged events by [name](KernelEventKind::name); those that found the log full are in none.
    pub events: BTreeMap<String, u64>,
    /// Interrupts and flushes by another CPU's request that fell into a call with which another worker gave memory
    /// back.
    pub during_calls: u64,
    /// Of the calls of all other workers, those into which such an event of this worker's fell.
    pub calls_seen: u64,
    /// Of this worker's logged stalls, those into which such an event fell.
    pub stalls_explained: u64,
    /// The median length of these stalls beyond the median batch, nanoseconds; `None` with no such stall.
    pub stall_ns: Option<f64>,
    /// Events that found the log full.
    pub lost: u64,
    /// Why some kind of event is not logged, or none is; `None` where all are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Reading>,
    /// How often each stack was met. In memory only: addresses are the running kernel's secret.
    #[serde(skip)]
    pub stacks: Vec<StackCount>,
}

/// A stack of the kernel's at one kind of event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackCount {
    /// Name of the kind of event.
    pub event: &'static str,
    /// Return addresses, from the innermost frame outwards.
    pub frames: Vec<u64>,
    /// How often.
    pub count: u64,
}

/// A stack of the kernel's at one kind of event, by the names of its functions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackSummary {
    /// The role in whose time it was met.
    pub role: String,
    /// [Name](KernelEventKind::name) of the kind of event: `flush_sent` is the culprit's side, `flush_remote` and
    /// `interrupt` the victim's.
    pub event: String,
    /// How often, over the role's workers and the repetitions that count.
    pub count: u64,
    /// Functions, from the innermost outwards.
    pub frames: Vec<String>,
}
