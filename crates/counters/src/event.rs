//! One event as it is asked of the kernel.

use serde::{Deserialize, Serialize};

/// What one counter asks for, found out for one kind of core.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The counter's name, a key of [`record::CounterReadings`].
    pub name: String,
    /// Who counts it, and with which others it is compared.
    pub family: Family,
    /// What perf_event_open is asked.
    pub attr: Attr,
    /// Of a tracepoint: which of its hits count, as `Documentation/trace/events.rst` spells filters; `None` for all.
    pub filter: Option<String>,
}

/// The part of `struct perf_event_attr` that tells one event from another.
///
/// # References
/// perf_event_open(2).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attr {
    /// `type`: 0 generic hardware, 1 software, 2 tracepoint, 3 generic cache, 4 raw, else a PMU's own number.
    pub kind: u32,
    /// `config`. On a machine with several kinds of core, generic events hold the PMU's number in bits 63:32.
    pub config: u64,
    /// `config1`.
    pub config1: u64,
    /// `config2`.
    pub config2: u64,
    /// Whether what happens in user mode is left out.
    pub exclude_user: bool,
    /// Whether what happens in the kernel on the worker's behalf is left out. The lab's hardware events leave it out,
    /// so that they need no privilege and show the worker's own loop.
    pub exclude_kernel: bool,
}

impl Attr {
    /// An event of user mode alone.
    pub const fn user(kind: u32, config: u64) -> Attr {
        Attr { kind, config, config1: 0, config2: 0, exclude_user: false, exclude_kernel: true }
    }

    /// The same, counted in the kernel too.
    pub const fn with_kernel(self) -> Attr {
        Attr { exclude_kernel: false, ..self }
    }
}

/// Events whose ratios mean something share a family, and a family is counted together where the hardware allows.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Family {
    /// Cycles and instructions.
    Cycles,
    /// The first-level data cache.
    L1d,
    /// Lines that came from other cores' caches.
    Transfers,
    /// The last level.
    LastLevel,
    /// The kernel's two oldest cache events.
    CacheReferences,
    /// The data TLB.
    DataTlb,
    /// The user's own, of the core's PMU.
    Own,
    /// The user's own, of a unit beside the cores that counts for one process all the same, as `msr` does.
    Unit,
    /// Counted by the kernel: needs no hardware.
    Software,
}

impl Event {
    /// Whether the processor counts it, rather than the kernel.
    pub fn is_hardware(&self) -> bool {
        self.family != Family::Software
    }

    /// Whether a unit beside the cores counts it, which leaves the core's counters alone.
    pub fn is_beside_the_cores(&self) -> bool {
        self.family == Family::Unit
    }
}
