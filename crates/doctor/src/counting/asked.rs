//! Counting for a moment on each kind of core: what counts can only be found out by trying.

use crate::Patient;
use counters::{Counters, Order, Orders, Selection};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use plan::CpuId;
use record::{CountedEvent, CounterReadings};
use std::time::{Duration, Instant};

/// How long one group is counted for. Groups that take turns change places at each tick of the kernel's, which is 1, 4
/// or 10 ms apart (`CONFIG_HZ`): with less, a group that would get its turn looks as if it never did.
const TURN: Duration = Duration::from_millis(10);

/// How long a single group is counted for.
const GLANCE: Duration = Duration::from_millis(1);

/// One kind of core among the CPUs in question, and what counted there.
#[derive(Clone, Debug)]
pub(super) struct Kind {
    /// Its CPUs, in the kernel's notation.
    pub(super) cpus: String,
    /// What stands behind the name of each counter that workers open. What they only note, from files that every
    /// process can read, is left out.
    pub(super) events: Vec<CountedEvent>,
    /// What counted, or why nothing was tried.
    pub(super) answers: Result<Answers, String>,
}

/// What a moment of counting gave.
#[derive(Clone, Debug)]
pub(super) struct Answers {
    /// A reading for each counter that workers open.
    pub(super) readings: CounterReadings,
    /// Groups of the processor's events, which take turns where they are several.
    pub(super) hardware_groups: usize,
}

/// Counts on each kind of core. A described machine has no kernel to ask.
pub(super) fn asked(patient: &Patient<'_>) -> Vec<Kind> {
    // Only a user's events can be in error, and there are none.
    let Ok(selection) = Selection::choose(patient.root, patient.cpus, &[]) else { return Vec::new() };
    let events = selection.events();
    let of = |Orders { cpus, orders }: Orders| {
        let named = host::format_cpu_list(&cpus.iter().map(|cpu| cpu.0).collect());
        let opened = |event: &&CountedEvent| orders.iter().any(|order| order.name() == event.name);
        let events = events.iter().filter(|event| event.cpus == named).filter(opened).cloned().collect();
        let answers = match one_of(patient, &cpus) {
            _ if !patient.root.is_system() => Err("this machine is only described".to_owned()),
            None => Err(format!("this process may not run on CPUs {named}")),
            Some(cpu) => count_on(cpu, orders),
        };
        Kind { cpus: named, events, answers }
    };
    selection.orders().into_iter().map(of).collect()
}

fn one_of(patient: &Patient<'_>, cpus: &[CpuId]) -> Option<CpuId> {
    let usable = |cpu: &CpuId| patient.topology.cpu(*cpu).is_some_and(|cpu| cpu.usable);
    cpus.iter().copied().find(usable)
}

/// Counts on a thread of its own, whose affinity ends with it: the caller's stays as it is.
fn count_on(cpu: CpuId, orders: Vec<Order>) -> Result<Answers, String> {
    let pinned = move || {
        let mut only = CpuSet::new();
        let set = only.set(cpu.0 as usize).and_then(|()| sched_setaffinity(Pid::from_raw(0), &only));
        set.map_err(|errno| format!("no thread could be put on CPU {} (sched_setaffinity: {errno:?})", cpu.0))?;
        Ok(count(&orders))
    };
    let thread = std::thread::Builder::new().name("doctor".to_owned()).spawn(pinned);
    let thread = thread.map_err(|error| format!("no thread could be started ({error})"))?;
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn count(orders: &[Order]) -> Answers {
    let mut counters = Counters::open(orders);
    let hardware_groups = counters.hardware_groups();
    let window = if hardware_groups > 1 { TURN * hardware_groups as u32 } else { GLANCE };
    counters.enable();
    let begun = Instant::now();
    while begun.elapsed() < window {
        std::hint::spin_loop();
    }
    counters.disable();
    Answers { readings: counters.read(), hardware_groups }
}

#[cfg(test)]
mod tests {
    use super::asked;
    use crate::Patient;
    use crate::fixture::Fixture;
    use host::Root;
    use plan::CpuId;

    #[test]
    fn a_described_machine_is_not_asked() {
        let kinds = asked(&Fixture::new().patient());
        assert_eq!((kinds.len(), kinds[0].cpus.as_str()), (1, "0-1"));
        assert!(kinds[0].answers.as_ref().unwrap_err().contains("described"));
        assert!(kinds[0].events.iter().any(|event| event.name == "cycles"));
    }

    #[test]
    fn this_machine_is_asked_and_the_caller_stays_where_it_is() {
        let root = Root::system();
        let topology = host::topology(&root).expect("this machine's CPUs");
        let cpus: Vec<CpuId> = topology.cpus.iter().filter(|cpu| cpu.usable).map(|cpu| cpu.id).collect();
        let affinity = || nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0)).expect("an affinity");
        let before = affinity();
        let kinds = asked(&Patient { root: &root, topology: &topology, cpus: &cpus });
        assert_eq!(affinity(), before);
        for kind in kinds {
            let answers = kind.answers.expect("a usable CPU can be asked");
            assert!(answers.readings.contains_key("cycles") && answers.readings.contains_key("page_faults"));
        }
    }

    #[test]
    fn a_cpu_that_is_closed_to_this_process_is_not_asked() {
        let root = Root::system();
        let mut topology = host::topology(&root).expect("this machine's CPUs");
        topology.cpus.iter_mut().for_each(|cpu| cpu.usable = false);
        let cpus = [topology.cpus[0].id];
        let kinds = asked(&Patient { root: &root, topology: &topology, cpus: &cpus });
        assert!(kinds[0].answers.as_ref().unwrap_err().contains("may not run on CPUs"), "{kinds:?}");
    }
}
