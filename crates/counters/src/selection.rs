//! Which events each worker counts: chosen once by the coordinator, handed to every worker.

use crate::event::Event;
use crate::log::LogOrder;
use crate::{memory, own, portable};
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
    /// Note the shootdown interrupts of the worker's CPU at the window's edges.
    Shootdowns,
    /// Log what the kernel does to the worker's translations.
    Log(LogOrder),
}

impl Order {
    /// The counter's name; of the log, which is none, `kernel_log`.
    pub fn name(&self) -> &str {
        match self {
            Order::Shootdowns => memory::SHOOTDOWNS,
            Order::Log(_) => "kernel_log",
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
    log: Option<LogOrder>,
}

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

impl Selection {
    /// Chooses the lab's own counters and the `extra` ones for each of `cpus`.
    ///
    /// # Errors
    /// [`SelectError`] where an extra event names something that this machine's PMUs do not know, or two events would
    /// have one name. What the machine merely cannot count (no such PMU, no permission) is no error but a reading.
    pub fn choose(root: &Root, cpus: &[CpuId], extra: &[EventSpec]) -> Result<Selection, SelectError> {
        if let Err((index, error)) = plan::event::check_list(extra) {
            return Err(SelectError { index, what: error.what, cure: error.cure });
        }
        let units = host::core_pmus(root);
        let unit = |cpu: CpuId| units.iter().position(|pmu| pmu.serves(cpu));
        let mut cores: Vec<(Vec<CpuId>, Vec<Choice>)> = Vec::new();
        for &cpu in cpus {
            // A kind of core has a PMU of its own, so what is chosen for one CPU holds for all that it serves. Choosing
            // reads some tens of files, which a machine with hundreds of CPUs would feel.
            if let Some((cpus, _)) = cores.iter_mut().find(|(known, _)| unit(known[0]) == unit(cpu)) {
                cpus.push(cpu);
                continue;
            }
            let mut choices = portable::choices(root, cpu);
            choices.extend(own::choices(root, cpu, extra)?);
            cores.push((vec![cpu], choices));
        }
        Ok(Selection { cores, log: None })
    }

    /// The same with what a run with memory steps asks for besides ([`MEMORY_COUNTERS`](plan::event::MEMORY_COUNTERS)),
    /// and with a log of the kernel's doings; where `stacks`, with its stack at each.
    pub fn with_memory(mut self, root: &Root, stacks: bool) -> Selection {
        let (choices, log) = memory::choices(root, stacks);
        self.cores.iter_mut().for_each(|(_, chosen)| chosen.extend(choices.iter().cloned()));
        Selection { log: Some(log), ..self }
    }

    /// What workers are told, by kind of core.
    pub fn orders(&self) -> Vec<Orders> {
        let of = |(cpus, choices): &(Vec<CpuId>, Vec<Choice>)| Orders {
            cpus: cpus.clone(),
            orders: choices
                .iter()
                .filter_map(|choice| choice.order.clone())
                .chain(self.log.clone().map(Order::Log))
                .collect(),
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
            counted_by: self.counted_by,
            cpus: cpus.to_owned(),
        }
    }
}

/// What a worker on `cpu` is told; nothing where the CPU was not among those chosen for.
pub fn orders_for(orders: &[Orders], cpu: CpuId) -> &[Order] {
    orders.iter().find(|of| of.cpus.contains(&cpu)).map_or(&[], |of| &of.orders)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Family;

    /// Two kinds of core, of which one names an event of its own.
    fn hybrid() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (file, text) in [
            ("cpu_core/type", "4"),
            ("cpu_core/cpus", "0-1"),
            ("cpu_core/format/event", "config:0-7"),
            ("cpu_atom/type", "10"),
            ("cpu_atom/cpus", "2-3"),
            ("cpu_atom/format/event", "config:0-7"),
        ] {
            let path = folder.path().join("sys/bus/event_source/devices").join(file);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        }
        folder
    }

    fn chosen(list: &str) -> Result<Selection, SelectError> {
        let folder = hybrid();
        let extra = EventSpec::list(list).expect("events");
        Selection::choose(&Root::at(folder.path()), &[0, 1, 2, 3].map(CpuId), &extra)
    }

    fn order<'a>(of: &'a Orders, name: &str) -> &'a Order {
        of.orders.iter().find(|order| order.name() == name).unwrap_or_else(|| panic!("no {name}"))
    }

    #[test]
    fn a_user_s_events_stand_behind_the_lab_s_on_each_kind_of_core() {
        let selection = chosen("cpu/event=0xd1,name=hits/,faults,cpu_atom/event=1/").expect("nothing to refuse");
        let orders = selection.orders();
        assert_eq!(
            orders.iter().map(|of| of.cpus.clone()).collect::<Vec<_>>(),
            [vec![CpuId(0), CpuId(1)], vec![CpuId(2), CpuId(3)]]
        );
        let kinds = orders.iter().map(|of| match order(of, "hits") {
            Order::Count(Event { family: Family::Own, attr, .. }) => attr.kind,
            other => panic!("{other:?}"),
        });
        assert_eq!(kinds.collect::<Vec<_>>(), [4, 10]);
        assert!(matches!(order(&orders[0], "faults"), Order::Count(Event { family: Family::Software, .. })));
        assert!(matches!(
            order(&orders[0], "cpu_atom/event=1/"),
            Order::Refused { reading: Reading::Unsupported { .. }, .. }
        ));
        assert!(matches!(order(&orders[1], "cpu_atom/event=1/"), Order::Count(_)));
        let last: Vec<&str> = orders[0].orders.iter().rev().take(3).map(Order::name).collect();
        assert_eq!(last, ["cpu_atom/event=1/", "faults", "hits"]);
    }

    #[test]
    fn what_stands_behind_a_user_s_name_is_recorded() {
        let events = chosen("cpu/event=0xd1,name=hits/u,faults").expect("nothing to refuse").events();
        let of = |name: &str| events.iter().filter(|event| event.name == name).collect::<Vec<_>>();
        assert_eq!(of("hits").iter().map(|event| event.cpus.as_str()).collect::<Vec<_>>(), ["0-1", "2-3"]);
        let hits = of("hits")[0];
        assert_eq!((hits.shown.as_str(), hits.event.as_deref()), ("hits", Some("cpu/event=0xd1,name=hits/u")));
        assert_eq!(hits.counts, "what the PMU cpu counts under event=0xd1, in user mode alone");
        assert_eq!(
            (hits.counted_by, of("faults")[0].counted_by),
            (plan::CountedBy::Processor, plan::CountedBy::Kernel)
        );
    }

    #[test]
    fn the_first_mistake_is_told_with_its_position() {
        for (list, index) in
            [("r1,cache-mises", 1), ("r1,r2,r1", 2), ("instructions", 0), ("cpu/evnt=1/,cache-mises", 0)]
        {
            let error = chosen(list).expect_err(list);
            assert_eq!(error.index, index, "{list}: {error}");
            assert!(error.to_string().starts_with(&format!("event {index} of the list: ")), "{error}");
        }
    }
}
