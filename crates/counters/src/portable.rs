//! The lab's own counters on one kind of core.

use crate::event::{Attr, Event, Family};
use crate::selection::{Choice, Meaning, Order};
use crate::software;
use host::Root;
use plan::{CountedBy, CpuId};

/// `type` of an event (perf_event_open(2), `linux/perf_event.h`).
const HARDWARE: u32 = 0;
const CACHE: u32 = 3;

/// Position of the PMU's type in a generic event's `config` (PERF_PMU_TYPE_SHIFT in `linux/perf_event.h`). If it were
/// wrong, a hybrid machine would refuse the events or count other ones.
const PMU_TYPE_SHIFT: u32 = 32;

/// A generic event: name, perf's spelling, `type`, `config`, family.
type Generic = (&'static str, &'static str, u32, u64, Family);

/// `config` of a read of a generic cache: cache | operation << 8 | result << 16, with operation 0 for reads.
const fn read(cache: u64, miss: bool) -> u64 {
    cache | (miss as u64) << 16
}

/// `PERF_COUNT_HW_*` and `PERF_COUNT_HW_CACHE_*`: L1D is 0, LL 2, DTLB 3.
const GENERIC: [Generic; 10] = [
    ("cycles", "cycles", HARDWARE, 0, Family::Cycles),
    ("instructions", "instructions", HARDWARE, 1, Family::Cycles),
    ("stalled_cycles", "stalled-cycles-backend", HARDWARE, 8, Family::Cycles),
    ("l1d_loads", "L1-dcache-loads", CACHE, read(0, false), Family::L1d),
    ("l1d_load_misses", "L1-dcache-load-misses", CACHE, read(0, true), Family::L1d),
    ("llc_loads", "LLC-loads", CACHE, read(2, false), Family::LastLevel),
    ("llc_load_misses", "LLC-load-misses", CACHE, read(2, true), Family::LastLevel),
    ("cache_references", "cache-references", HARDWARE, 2, Family::CacheReferences),
    ("cache_misses", "cache-misses", HARDWARE, 3, Family::CacheReferences),
    ("dtlb_load_misses", "dTLB-load-misses", CACHE, read(3, true), Family::DataTlb),
];

/// Every counter of the lab's on `cpu`, families together.
pub(crate) fn choices(root: &Root, cpu: CpuId) -> Vec<Choice> {
    let pmu = host::core_pmu_type(root, cpu).map_or(0, |number| u64::from(number) << PMU_TYPE_SHIFT);
    let generic = GENERIC.iter().map(|(name, perf, kind, config, family)| {
        let event = Event { name: (*name).into(), family: *family, attr: Attr::user(*kind, config | pmu) };
        choice(perf, event)
    });
    generic.chain(software::choices(root)).collect()
}

fn choice(perf: &str, event: Event) -> Choice {
    Choice {
        meaning: Meaning {
            name: event.name.clone(),
            shown: event.name.replace('_', " "),
            event: Some(perf.to_owned()),
            counts: format!("the kernel's generic event {perf}"),
            source: "perf_event_open(2)".to_owned(),
            counted_by: CountedBy::Processor,
        },
        order: Some(Order::Count(event)),
    }
}
