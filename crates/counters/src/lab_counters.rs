//! The lab's own counters on one kind of core: one choice for each name, the processor's first.

use crate::choice::{Choice, Meaning};
use crate::encode::{Unencoded, encode};
use crate::event::{Event, Family};
use crate::order::Order;
use crate::software;
use crate::table::{Kind, Row, TABLE};
use host::{Pmu, Root};
use plan::event::{COUNTERS, Modes};
use plan::{CountedBy, CpuId, EventForm, EventSpec};
use record::Reading;

/// The kernel's own event for a name, in perf's spelling: for processors that the table does not know, and where there
/// is no PMU.
const GENERIC: [(&str, &str); 10] = [
    ("cycles", "cycles"),
    ("instructions", "instructions"),
    ("stalled_cycles", "stalled-cycles-backend"),
    ("l1d_loads", "L1-dcache-loads"),
    ("l1d_load_misses", "L1-dcache-load-misses"),
    ("llc_loads", "LLC-loads"),
    ("llc_load_misses", "LLC-load-misses"),
    ("cache_references", "cache-references"),
    ("cache_misses", "cache-misses"),
    ("dtlb_load_misses", "dTLB-load-misses"),
];

const NOT_IN_TABLE: &str = "not in the lab's table of processors";

/// Every counter of the lab's on `cpu`, families together.
pub(crate) fn choices(root: &Root, cpu: CpuId) -> Vec<Choice> {
    let here = Here::of(root, cpu);
    let by_processor = COUNTERS.iter().filter(|(_, by)| *by == CountedBy::Processor).map(|(name, _)| here.choice(name));
    by_processor.chain(software::choices(root)).collect()
}

/// Which events a counter is compared with, and so counted beside where the hardware allows. [`COUNTERS`] lists
/// families together and no family has more than four events on any processor of the table: the least that current
/// processors have counters for.
pub(crate) fn family(name: &str) -> Family {
    match name {
        "cycles" | "instructions" | "stalled_cycles" => Family::Cycles,
        "l1d_loads" | "l1d_load_misses" => Family::L1d,
        "llc_loads" | "llc_load_misses" => Family::LastLevel,
        "cache_references" | "cache_misses" => Family::CacheReferences,
        "dtlb_load_misses" => Family::DataTlb,
        _ => Family::Transfers,
    }
}

/// One CPU and what is known of it.
struct Here<'a> {
    root: &'a Root,
    cpu: CpuId,
    pmu: Option<Pmu>,
    /// Its kind; or, where the table has none, what it is called instead.
    kind: Result<&'static Kind, String>,
}

impl<'a> Here<'a> {
    fn of(root: &'a Root, cpu: CpuId) -> Here<'a> {
        let pmu = host::core_pmu(root, cpu);
        let kind = match host::cpu_identity(root, cpu) {
            None => Err("of which /proc/cpuinfo does not say what it is".to_owned()),
            Some(identity) => TABLE.kind(&identity, pmu.as_ref()).ok_or_else(|| identity.to_string()),
        };
        Here { root, cpu, pmu, kind }
    }

    /// By the table's row, else by the kernel's own event, else there is none. Without a PMU the kernel's own events
    /// are asked for even where the processor has none such, so that the reading carries the kernel's answer.
    fn choice(&self, name: &str) -> Choice {
        let row = self.kind.as_ref().ok().and_then(|kind| kind.row(name));
        let spec = match row.map(|row| &row.event) {
            Some(Ok(spec)) => Some(spec.clone()),
            Some(Err(_)) if self.pmu.is_some() => None,
            Some(Err(_)) | None => generic(name),
        };
        let order = match &spec {
            Some(spec) => self.order(name, spec),
            None => Order::Refused { name: name.to_owned(), reading: self.no_event(row) },
        };
        let event = spec.map(|spec| on_pmu(&spec.text, self.pmu_name()));
        Choice { meaning: self.meaning(name, row, event), order: Some(order) }
    }

    /// A processor's manual may list an event for which this machine's PMU has no place (a hypervisor's, say): then
    /// there is no such event here.
    fn order(&self, name: &str, spec: &EventSpec) -> Order {
        let name = name.to_owned();
        match encode(self.root, self.cpu, spec) {
            Ok(attr) => Order::Count(Event { family: family(&name), name, attr, filter: None }),
            Err(Unencoded::Uncounted(reading)) => Order::Refused { name, reading },
            Err(Unencoded::Mistake { what, cure }) => {
                Order::Refused { name, reading: Reading::Unsupported { why: format!("{what}; {cure}") } }
            }
        }
    }

    fn no_event(&self, row: Option<&Row>) -> Reading {
        if self.pmu.is_none() {
            return self.no_pmu();
        }
        let (kind, why) = match (&self.kind, row.and_then(|row| row.event.as_ref().err())) {
            (Ok(kind), Some(why)) => (&kind.name, on_pmu(why, self.pmu_name())),
            (Ok(kind), None) => (&kind.name, "the lab's table does not say".to_owned()),
            (Err(unknown), _) => {
                (unknown, format!("its own events are {NOT_IN_TABLE}; --events takes the ones of its manual by number"))
            }
        };
        Reading::Unsupported { why: format!("no event of this processor ({kind}): {why}") }
    }

    /// What the encoder says of any event by number where there is no PMU: one wording for it.
    fn no_pmu(&self) -> Reading {
        let any: EventSpec = "cpu/config=0/".parse().expect("an event by number");
        match encode(self.root, self.cpu, &any) {
            Err(Unencoded::Uncounted(reading)) => reading,
            other => unreachable!("an event of a PMU that is not there: {other:?}"),
        }
    }

    fn meaning(&self, name: &str, row: Option<&Row>, event: Option<String>) -> Meaning {
        let unknown = || match (&self.kind, &event) {
            (Err(kind), Some(perf)) => {
                format!(
                    "the kernel's generic event {perf}; what that counts on this processor ({kind}) is {NOT_IN_TABLE}"
                )
            }
            _ => format!("nothing here: {NOT_IN_TABLE}"),
        };
        Meaning {
            name: name.to_owned(),
            shown: row.map_or_else(|| name.replace('_', " "), |row| row.shown.clone()),
            counts: row.map_or_else(unknown, |row| on_pmu(&row.counts, self.pmu_name())),
            source: row.map_or_else(|| "perf_event_open(2)".to_owned(), |row| row.source.clone()),
            event,
            counted_by: CountedBy::Processor,
        }
    }

    /// By which perf knows this CPU's PMU: what a user has to write.
    fn pmu_name(&self) -> &str {
        let of_kind = || self.kind.as_ref().map_or("cpu", |kind| kind.pmu.as_str());
        self.pmu.as_ref().map_or_else(of_kind, |pmu| pmu.name.as_str())
    }
}

fn generic(name: &str) -> Option<EventSpec> {
    let (_, perf) = GENERIC.iter().find(|(of, _)| *of == name)?;
    let form = EventForm::Named((*perf).to_owned());
    Some(EventSpec { text: (*perf).to_owned(), form, name: None, modes: Modes { user: true, kernel: false } })
}

/// A text of the table in which events are written for the PMU of that name.
fn on_pmu(text: &str, pmu: &str) -> String {
    text.replace("cpu/", &format!("{pmu}/"))
}
