//! The events that are counted, under their glossary names.

use perf_event::events::{self, Cache, CacheOp, CacheResult, Hardware, Software, WhichCache};

/// One event and the name under which results list it.
#[derive(Copy, Clone, Debug)]
pub struct Event {
    /// Glossary name, a key of [`record::CounterReadings`].
    pub name: &'static str,
    /// Who counts it, and with which others it is compared.
    pub(crate) family: Family,
    /// Whether what happens in the kernel on the worker's behalf is included. Hardware events never include it, so
    /// that they need no privilege and show the worker's own loop.
    pub(crate) with_kernel: bool,
    kind: Kind,
}

/// Events whose ratios mean something share a family, and a family is counted together where the hardware allows.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Cycles,
    CacheReferences,
    L1d,
    LastLevel,
    DataTlb,
    /// Counted by the kernel: needs no hardware.
    Software,
}

#[derive(Copy, Clone, Debug)]
enum Kind {
    Hardware(Hardware),
    Cache(WhichCache, CacheResult),
    Software(Software),
}

impl Event {
    /// Whether the processor counts it, rather than the kernel.
    pub fn is_hardware(&self) -> bool {
        self.family != Family::Software
    }

    /// As perf-event names it.
    pub(crate) fn perf(&self) -> events::Event {
        match self.kind {
            Kind::Hardware(hardware) => hardware.into(),
            Kind::Cache(which, result) => Cache { which, operation: CacheOp::READ, result }.into(),
            Kind::Software(software) => software.into(),
        }
    }
}

/// Every event, families together, the ones that matter most first: where counters are scarce, the first families
/// share a group.
///
/// - `cycles`, `instructions`, `stalled_cycles`: `stalled_cycles` is `PERF_COUNT_HW_STALLED_CYCLES_BACKEND`, cycles in
///   which nothing could issue for want of data or units; few processors have it.
/// - `l1d_loads`, `l1d_load_misses`, `llc_loads`, `llc_load_misses`, `cache_references`, `cache_misses`,
///   `dtlb_load_misses`: the kernel's generic events, which differ between processors more than their names say.
/// - `context_switches`, `cpu_migrations`: of the worker, whoever caused them; they happen in the kernel, so counting
///   them needs leave to count there.
/// - `page_faults`: taken by the worker's own instructions, minor and major. `task_clock`: nanoseconds on a CPU, in
///   user and kernel mode alike.
///
/// # References
/// perf_event_open(2); `docs/counters.md` for the table by processor.
pub const EVENTS: [Event; 14] = [
    hardware("cycles", Family::Cycles, Hardware::CPU_CYCLES),
    hardware("instructions", Family::Cycles, Hardware::INSTRUCTIONS),
    hardware("stalled_cycles", Family::Cycles, Hardware::STALLED_CYCLES_BACKEND),
    cache("l1d_loads", Family::L1d, WhichCache::L1D, CacheResult::ACCESS),
    cache("l1d_load_misses", Family::L1d, WhichCache::L1D, CacheResult::MISS),
    cache("llc_loads", Family::LastLevel, WhichCache::LL, CacheResult::ACCESS),
    cache("llc_load_misses", Family::LastLevel, WhichCache::LL, CacheResult::MISS),
    hardware("cache_references", Family::CacheReferences, Hardware::CACHE_REFERENCES),
    hardware("cache_misses", Family::CacheReferences, Hardware::CACHE_MISSES),
    cache("dtlb_load_misses", Family::DataTlb, WhichCache::DTLB, CacheResult::MISS),
    software("context_switches", Software::CONTEXT_SWITCHES, true),
    software("cpu_migrations", Software::CPU_MIGRATIONS, true),
    // The kernel's own faults on the worker's behalf are left out, and the task clock runs in both modes whatever is
    // excluded: so neither needs leave to count the kernel.
    software("page_faults", Software::PAGE_FAULTS, false),
    software("task_clock", Software::TASK_CLOCK, false),
];

const fn hardware(name: &'static str, family: Family, kind: Hardware) -> Event {
    Event { name, family, with_kernel: false, kind: Kind::Hardware(kind) }
}

const fn cache(name: &'static str, family: Family, which: WhichCache, result: CacheResult) -> Event {
    Event { name, family, with_kernel: false, kind: Kind::Cache(which, result) }
}

const fn software(name: &'static str, kind: Software, with_kernel: bool) -> Event {
    Event { name, family: Family::Software, with_kernel, kind: Kind::Software(kind) }
}

#[cfg(test)]
mod tests {
    use super::EVENTS;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_families_stand_together() {
        assert_eq!(EVENTS.iter().map(|e| e.name).collect::<BTreeSet<_>>().len(), EVENTS.len());
        let mut families: Vec<_> = EVENTS.iter().map(|e| e.family).collect();
        families.dedup();
        assert_eq!(families.len(), 6, "{families:?}");
    }
}
