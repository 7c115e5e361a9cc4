//! Which events each worker counts: chosen once by the coordinator, handed to every worker.

use crate::choice::Choice;
use crate::log::LogOrder;
use crate::order::{Order, Orders};
use crate::user_events::{self, SelectError};
use crate::{lab_counters, memory};
use host::Root;
use plan::{CpuId, EventSpec};
use record::CountedEvent;

/// Every counter for every CPU in question.
#[derive(Clone, Debug, PartialEq)]
pub struct Selection {
    cores: Vec<(Vec<CpuId>, Vec<Choice>)>,
    log: Option<LogOrder>,
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
            let mut choices = lab_counters::choices(root, cpu);
            choices.extend(user_events::choices(root, cpu, extra)?);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, Family};
    use record::Reading;

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
