//! The user's own events on one kind of core.

use crate::choice::{Choice, Meaning};
use crate::encode::{Unencoded, encode};
use crate::event::{Event, Family};
use crate::names::{self, CACHE, HARDWARE, RAW, SOFTWARE, TRACEPOINT};
use crate::order::Order;
use host::Root;
use plan::event::{Modes, Term};
use plan::{CountedBy, CpuId, EventForm, EventSpec};

/// An event of the user's that means nothing on this machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("event {index} of the list: {what}; {cure}")]
pub struct SelectError {
    /// Its position in the list, from 0.
    pub index: usize,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub cure: String,
}

/// One choice an event, in the order given.
///
/// # Errors
/// The first event that names something this machine does not know.
pub(crate) fn choices(root: &Root, cpu: CpuId, events: &[EventSpec]) -> Result<Vec<Choice>, SelectError> {
    let cores: Vec<u32> = host::core_pmus(root).iter().map(|pmu| pmu.kind).collect();
    let family = |kind: u32| match kind {
        SOFTWARE | TRACEPOINT => Family::Software,
        HARDWARE | CACHE | RAW => Family::Own,
        kind if cores.contains(&kind) => Family::Own,
        _ => Family::Unit,
    };
    let of = |(index, spec): (usize, &EventSpec)| match encode(root, cpu, spec) {
        Err(Unencoded::Mistake { what, cure }) => Err(SelectError { index, what, cure }),
        Err(Unencoded::Uncounted(reading)) => Ok(choice(spec, Order::Refused { name: spec.key().to_owned(), reading })),
        Ok(attr) => {
            let name = spec.key().to_owned();
            Ok(choice(spec, Order::Count(Event { name, family: family(attr.kind), attr, filter: None })))
        }
    };
    events.iter().enumerate().map(of).collect()
}

fn choice(spec: &EventSpec, order: Order) -> Choice {
    let (what, source) = what(&spec.form);
    let meaning = Meaning {
        name: spec.key().to_owned(),
        shown: spec.key().to_owned(),
        event: Some(spec.text.clone()),
        counts: format!("{what}{}", modes(spec)),
        source,
        counted_by: counted_by(&spec.form),
    };
    Choice { meaning, order: Some(order) }
}

/// What is counted, and where that is written down.
fn what(form: &EventForm) -> (String, String) {
    let devices = "/sys/bus/event_source/devices";
    match form {
        EventForm::Named(name) => match names::generic(name) {
            Some(generic) if generic.kind == SOFTWARE => (format!("the kernel's software event {name}"), man()),
            Some(_) => (format!("the kernel's generic event {name}"), man()),
            None => (format!("the event {name} of the core's PMU"), format!("{devices}/*/events/{name}")),
        },
        EventForm::Raw(code) => {
            (format!("what the core's PMU counts under the code {code:#x}"), "the processor's manual".to_owned())
        }
        EventForm::Terms { pmu, terms } => (
            format!("what the PMU {pmu} counts under {}", written(terms)),
            format!("{devices}/{pmu}/format, and the processor's manual"),
        ),
        EventForm::Tracepoint { system, event } => (
            format!("times the worker passed the kernel's tracepoint {system}:{event}"),
            "Documentation/trace/events.rst".to_owned(),
        ),
    }
}

fn man() -> String {
    "perf_event_open(2)".to_owned()
}

fn written(terms: &[Term]) -> String {
    let one = |term: &Term| match term.value {
        Some(value) => format!("{}={value:#x}", term.name),
        None => term.name.clone(),
    };
    terms.iter().map(one).collect::<Vec<_>>().join(",")
}

/// A tracepoint is passed in the kernel, whoever caused it.
fn modes(spec: &EventSpec) -> &'static str {
    match (&spec.form, spec.modes) {
        (EventForm::Tracepoint { .. }, _) => "",
        (_, Modes { user: true, kernel: false }) => ", in user mode alone",
        (_, Modes { user: false, kernel: true }) => ", in the kernel alone",
        _ => ", in user mode and in the kernel",
    }
}

fn counted_by(form: &EventForm) -> CountedBy {
    let by_kernel = match form {
        EventForm::Named(name) => names::generic(name).is_some_and(|generic| generic.kind == SOFTWARE),
        EventForm::Terms { pmu, .. } => ["software", "tracepoint"].contains(&pmu.as_str()),
        EventForm::Tracepoint { .. } => true,
        EventForm::Raw(_) => false,
    };
    if by_kernel { CountedBy::Kernel } else { CountedBy::Processor }
}
