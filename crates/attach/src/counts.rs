//! What the kernel and the processor count for other processes: the lab's portable events, on all threads, those begun
//! later too.

use crate::target::Target;
use counters::{Event, Order, Refusals, Selection, ThreadCounter};
use host::Root;
use nix::errno::Errno;
use plan::CpuId;
use record::{CounterReadings, Reading};
use std::collections::BTreeMap;

/// What is asked of each process, chosen once.
pub(crate) struct Chosen {
    /// On a machine with several kinds of core one event may stand here once for each, under one name.
    events: Vec<Event>,
    /// What this machine has no event for.
    refused: CounterReadings,
    refusals: Refusals,
}

impl Chosen {
    /// The lab's own events, for every kind of core that the machine has.
    pub(crate) fn here(root: &Root) -> Chosen {
        let cpus: Vec<CpuId> = host::topology(root).map_or_else(
            |_| vec![CpuId(0)], // no folder of CPUs, as in sandboxes: the kernel's own events are the same on all
            |topology| topology.cpus.iter().map(|cpu| cpu.id).collect(),
        );
        // Only a user's own events can be refused as a whole, and there are none.
        let orders = Selection::choose(root, &cpus, &[]).map(|selection| selection.orders()).unwrap_or_default();
        let mut chosen = Chosen { events: Vec::new(), refused: CounterReadings::new(), refusals: Refusals::here() };
        for order in orders.into_iter().flat_map(|of| of.orders) {
            match order {
                Order::Count(event) if !chosen.events.contains(&event) => chosen.events.push(event),
                Order::Refused { name, reading } => _ = chosen.refused.insert(name, reading),
                _ => {}
            }
        }
        let Chosen { events, refused, .. } = &mut chosen;
        refused.retain(|name, _| events.iter().all(|event| event.name != *name));
        chosen
    }
}

/// One event's total over the threads of a process.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Total {
    value: u64,
    time_enabled_ns: u64,
    time_running_ns: u64,
}

impl Total {
    fn of((value, time_enabled_ns, time_running_ns): (u64, u64, u64)) -> Total {
        Total { value, time_enabled_ns, time_running_ns }
    }

    fn and(self, other: Result<Total, Errno>) -> Result<Total, Errno> {
        other.map(|other| self.plus(other))
    }

    fn plus(self, other: Total) -> Total {
        Total {
            value: self.value.saturating_add(other.value),
            time_enabled_ns: self.time_enabled_ns.saturating_add(other.time_enabled_ns),
            time_running_ns: self.time_running_ns.saturating_add(other.time_running_ns),
        }
    }

    /// What was counted after `earlier`, a total of the same event in the same process.
    pub(crate) fn since(self, earlier: Total) -> Reading {
        counters::counted(
            self.value.saturating_sub(earlier.value),
            self.time_enabled_ns.saturating_sub(earlier.time_enabled_ns),
            self.time_running_ns.saturating_sub(earlier.time_running_ns),
        )
    }
}

/// The counts of one process at one moment, by name.
pub(crate) type Totals = BTreeMap<String, Total>;

/// A process's open counters. They count from their opening on, and until the process ends or executes another program.
pub(crate) struct ProcessCounts {
    /// One entry an event of [`Chosen`]: a counter for each thread, or why there are none. Threads that these begin are
    /// counted with them.
    open: Vec<Result<Vec<ThreadCounter>, Errno>>,
    /// Threads that were begun while they were being opened, of which nobody can tell whether they are counted.
    pub(crate) unclear: usize,
}

impl ProcessCounts {
    /// Opens what can be opened. Threads that end meanwhile are left out.
    pub(crate) fn open(root: &Root, chosen: &Chosen, target: &Target) -> ProcessCounts {
        let mut counts = ProcessCounts { open: chosen.events.iter().map(|_| Ok(Vec::new())).collect(), unclear: 0 };
        target.threads.iter().for_each(|tid| counts.open_thread(root, chosen, target.pid, *tid));
        let now = host::thread_numbers(root, target.pid);
        counts.unclear = now.iter().filter(|tid| target.threads.binary_search(tid).is_err()).count();
        counts
    }

    /// Opens every event on one thread, unless it ends meanwhile.
    fn open_thread(&mut self, root: &Root, chosen: &Chosen, pid: u32, tid: u32) {
        let mut opened: Vec<Option<ThreadCounter>> = Vec::with_capacity(chosen.events.len());
        for (event, open) in chosen.events.iter().zip(&mut self.open) {
            opened.push(match open {
                Err(_) => None,
                Ok(_) => match ThreadCounter::open(event, tid) {
                    Ok(counter) => Some(counter),
                    Err(Errno::ESRCH) => return,
                    Err(errno) => {
                        // A part of the threads is no count of the process.
                        *open = Err(errno);
                        None
                    }
                },
            });
        }
        // Its number may have gone to a thread of another process before the first was opened.
        if !host::is_thread_of(root, pid, tid) {
            return;
        }
        for (open, counter) in self.open.iter_mut().zip(opened) {
            if let (Ok(counters), Some(counter)) = (open, counter) {
                counters.push(counter);
            }
        }
    }

    /// What has been counted by now.
    pub(crate) fn totals(&mut self, chosen: &Chosen) -> Totals {
        let mut totals = Totals::new();
        for (event, open) in chosen.events.iter().zip(&mut self.open) {
            let Ok(counters) = open else { continue };
            let all = counters.iter_mut().map(ThreadCounter::read);
            let Ok(total) = all.map(|one| one.map(Total::of)).try_fold(Total::default(), Total::and) else { continue };
            let known = totals.entry(event.name.clone()).or_default();
            *known = match (known.time_running_ns, total.time_running_ns) {
                (0, 0) => known.plus(total),
                // Kinds of core take turns: the thread was enabled on all of them all the time.
                _ => Total { time_enabled_ns: known.time_enabled_ns.max(total.time_enabled_ns), ..known.plus(total) },
            };
        }
        totals
    }

    /// A reading for every event: of what was counted between two moments, or why it was not.
    pub(crate) fn readings(&self, chosen: &Chosen, from: &Totals, to: &Totals) -> CounterReadings {
        let mut readings = chosen.refused.clone();
        let refused = |open: &Result<_, Errno>| open.as_ref().err().copied();
        let has_pmu =
            chosen.events.iter().zip(&self.open).any(|(event, open)| {
                event.is_hardware() && refused(open).is_none_or(|errno| !counters::is_missing(errno))
            });
        for (event, open) in chosen.events.iter().zip(&self.open) {
            let reading = match (refused(open), to.get(&event.name)) {
                (Some(errno), None) => chosen.refusals.reading(event, errno, has_pmu),
                (_, Some(now)) => now.since(from.get(&event.name).copied().unwrap_or_default()),
                (None, None) => Reading::Unsupported { why: "reading the open counter failed; watch again".to_owned() },
            };
            readings.insert(event.name.clone(), reading);
        }
        readings
    }

    /// Why nothing at all could be counted; `None` where something was.
    pub(crate) fn refused(&self, chosen: &Chosen) -> Option<Reading> {
        let mut software = chosen.events.iter().zip(&self.open).filter(|(event, _)| !event.is_hardware());
        if software.clone().any(|(_, open)| open.is_ok()) {
            return None;
        }
        software.find_map(|(event, open)| Some(chosen.refusals.reading(event, *open.as_ref().err()?, false)))
    }
}
