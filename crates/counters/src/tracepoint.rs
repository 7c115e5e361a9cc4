//! A tracepoint of the kernel's that is counted under a name of the lab's.

use crate::choice::{Choice, Meaning};
use crate::event::{Attr, Event, Family};
use crate::names::TRACEPOINT;
use crate::order::Order;
use host::{Root, TracepointError};
use record::Reading;

/// It is passed in the kernel, in the task that causes it.
pub(crate) struct Tracepoint {
    /// The counter's name.
    pub(crate) name: &'static str,
    pub(crate) system: &'static str,
    pub(crate) event: &'static str,
    /// Which of its hits count, as `Documentation/trace/events.rst` spells filters; `None` for all.
    pub(crate) filter: Option<&'static str>,
    pub(crate) counts: &'static str,
}

impl Tracepoint {
    /// Counts it on this machine; `otherwise` says what its reading is where its number is not known.
    pub(crate) fn choice(&self, root: &Root, otherwise: impl Fn(&TracepointError) -> Reading) -> Choice {
        let Tracepoint { name, system, event, filter, counts } = *self;
        let order = match host::tracepoint_id(root, system, event) {
            Ok(id) => Order::Count(Event {
                name: name.to_owned(),
                family: Family::Software,
                attr: Attr::user(TRACEPOINT, id).with_kernel(),
                filter: filter.map(str::to_owned),
            }),
            Err(error) => Order::Refused { name: name.to_owned(), reading: otherwise(&error) },
        };
        let where_filtered = filter.map_or(String::new(), |filter| format!(" (--filter {filter})"));
        let spelled = format!("{system}:{event}{where_filtered}");
        let meaning = Meaning::by_kernel(name, Some(spelled), counts, "Documentation/trace/events.rst");
        Choice { meaning, order: Some(order) }
    }
}
