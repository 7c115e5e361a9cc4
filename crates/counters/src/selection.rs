//! Which events each worker counts: chosen once by the coordinator, handed to every worker.

use crate::event::Event;
use crate::portable;
use host::Root;
use plan::{CpuId, EventSpec};
use record::{CountedEvent, Reading};
use serde::{Deserialize, Serialize};

/// What a worker is told of one counter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Order {
    /// Open this.
    Count(Event),
    /// There is nothing to open on this kind of core, and this is its reading.
    Refused {
        /// The counter's name.
        name: String,
        /// Why, as a reading.
        reading: Reading,
    },
}

impl Order {
    /// The counter's name.
    pub fn name(&self) -> &str {
        match self {
            Order::Count(event) => &event.name,
            Order::Refused { name, .. } => name,
        }
    }
}

/// What the workers on some CPUs are told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Orders {
    /// CPUs of one kind of core.
    pub cpus: Vec<CpuId>,
    /// One entry a counter that is opened or refused; families together, the ones that matter most first.
    pub orders: Vec<Order>,
}

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
    pub(crate) counted_by: plan::CountedBy,
}

/// Every counter for every CPU in question.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    cores: Vec<(Vec<CpuId>, Vec<Choice>)>,
}

/// An event of the user's that means nothing on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectError {
    /// Its position in the list.
    pub index: usize,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub cure: String,
}

impl Selection {
    /// Chooses the lab's own counters and the `extra` ones for each of `cpus`.
    ///
    /// # Errors
    /// [`SelectError`] where an extra event names something that this machine's PMUs do not know. What the machine merely
    /// cannot count (no such PMU, no permission) is no error but a reading.
    pub fn choose(root: &Root, cpus: &[CpuId], extra: &[EventSpec]) -> Result<Selection, SelectError> {
        let _ = extra;
        let mut cores: Vec<(Vec<CpuId>, Vec<Choice>)> = Vec::new();
        for &cpu in cpus {
            let choices = portable::choices(root, cpu);
            match cores.iter_mut().find(|(_, known)| *known == choices) {
                Some((cpus, _)) => cpus.push(cpu),
                None => cores.push((vec![cpu], choices)),
            }
        }
        Ok(Selection { cores })
    }

    /// What workers are told, by kind of core.
    pub fn orders(&self) -> Vec<Orders> {
        let of = |(cpus, choices): &(Vec<CpuId>, Vec<Choice>)| Orders {
            cpus: cpus.clone(),
            orders: choices.iter().filter_map(|choice| choice.order.clone()).collect(),
        };
        self.cores.iter().map(of).collect()
    }

    /// What stands behind the counters' names, for the record: kind of core by kind of core.
    pub fn events(&self) -> Vec<CountedEvent> {
        let of = |(cpus, choices): &(Vec<CpuId>, Vec<Choice>)| {
            let cpus = host::format_cpu_list(&cpus.iter().map(|cpu| cpu.0).collect());
            choices.iter().map(move |choice| choice.meaning.on(&cpus)).collect::<Vec<_>>()
        };
        self.cores.iter().flat_map(of).collect()
    }
}

impl Meaning {
    fn on(&self, cpus: &str) -> CountedEvent {
        CountedEvent {
            name: self.name.clone(),
            shown: self.shown.clone(),
            event: self.event.clone(),
            counts: self.counts.clone(),
            source: self.source.clone(),
            counted_by: match self.counted_by {
                plan::CountedBy::Processor => "processor".to_owned(),
                plan::CountedBy::Kernel => "kernel".to_owned(),
            },
            cpus: cpus.to_owned(),
        }
    }
}

/// What a worker on `cpu` is told; nothing where the CPU was not among those chosen for.
pub fn orders_for(orders: &[Orders], cpu: CpuId) -> &[Order] {
    orders.iter().find(|of| of.cpus.contains(&cpu)).map_or(&[], |of| &of.orders)
}
