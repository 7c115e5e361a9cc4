//! The lab's own counters on one kind of core.

use crate::encode::{Unencoded, encode};
use crate::event::{Event, Family};
use crate::selection::{Choice, Meaning, Order};
use crate::software;
use host::Root;
use plan::event::Modes;
use plan::{CountedBy, CpuId, EventForm, EventSpec};

/// Name, perf's spelling, family. All leave out the kernel, so that they need no privilege and show the worker's loop
/// rather than the interrupts beside it.
const GENERIC: [(&str, &str, Family); 10] = [
    ("cycles", "cycles", Family::Cycles),
    ("instructions", "instructions", Family::Cycles),
    ("stalled_cycles", "stalled-cycles-backend", Family::Cycles),
    ("l1d_loads", "L1-dcache-loads", Family::L1d),
    ("l1d_load_misses", "L1-dcache-load-misses", Family::L1d),
    ("llc_loads", "LLC-loads", Family::LastLevel),
    ("llc_load_misses", "LLC-load-misses", Family::LastLevel),
    ("cache_references", "cache-references", Family::CacheReferences),
    ("cache_misses", "cache-misses", Family::CacheReferences),
    ("dtlb_load_misses", "dTLB-load-misses", Family::DataTlb),
];

/// Every counter of the lab's on `cpu`, families together.
pub(crate) fn choices(root: &Root, cpu: CpuId) -> Vec<Choice> {
    let generic = GENERIC.iter().map(|(name, perf, family)| {
        choice(perf, order(root, cpu, name, *family, &in_user_mode(perf)), CountedBy::Processor)
    });
    generic.chain(software::choices(root)).collect()
}

fn order(root: &Root, cpu: CpuId, name: &str, family: Family, spec: &EventSpec) -> Order {
    match encode(root, cpu, spec) {
        Ok(attr) => Order::Count(Event { name: name.to_owned(), family, attr }),
        Err(Unencoded::Uncounted(reading)) => Order::Refused { name: name.to_owned(), reading },
        Err(Unencoded::Mistake { what, .. }) => unreachable!("perf's own names are known: {what}"),
    }
}

fn in_user_mode(perf: &str) -> EventSpec {
    let form = EventForm::Named(perf.to_owned());
    EventSpec { text: perf.to_owned(), form, name: None, modes: Modes { user: true, kernel: false } }
}

fn choice(perf: &str, order: Order, counted_by: CountedBy) -> Choice {
    Choice {
        meaning: Meaning {
            name: order.name().to_owned(),
            shown: order.name().replace('_', " "),
            event: Some(perf.to_owned()),
            counts: format!("the kernel's generic event {perf}"),
            source: "perf_event_open(2)".to_owned(),
            counted_by,
        },
        order: Some(order),
    }
}
