//! A counter as it was chosen for one kind of core: what stands behind its name, and what workers are told of it.

use crate::order::Order;
use plan::CountedBy;
use record::CountedEvent;

/// A counter, and what stands behind its name on one kind of core.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Choice {
    pub(crate) meaning: Meaning,
    /// `None` for what every worker notes without being told.
    pub(crate) order: Option<Order>,
}

/// [`CountedEvent`] before it is known on which CPUs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Meaning {
    pub(crate) name: String,
    pub(crate) shown: String,
    pub(crate) event: Option<String>,
    pub(crate) counts: String,
    pub(crate) source: String,
    pub(crate) counted_by: CountedBy,
}

impl Meaning {
    /// Of what the kernel counts under that name.
    pub(crate) fn by_kernel(name: &str, event: Option<String>, counts: &str, source: &str) -> Meaning {
        Meaning {
            name: name.to_owned(),
            shown: name.replace('_', " "),
            event,
            counts: counts.to_owned(),
            source: source.to_owned(),
            counted_by: CountedBy::Kernel,
        }
    }

    /// Once it is known on which CPUs, as the kernel writes lists.
    pub(crate) fn on(&self, cpus: &str) -> CountedEvent {
        CountedEvent {
            name: self.name.clone(),
            shown: self.shown.clone(),
            event: self.event.clone(),
            counts: self.counts.clone(),
            source: self.source.clone(),
            counted_by: self.counted_by,
            cpus: cpus.to_owned(),
        }
    }
}
