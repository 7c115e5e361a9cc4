//! From a list of events to open groups: as few as the hardware allows.

use crate::event::Event;
use crate::pmu::{Group, Pmu, Totals};
use nix::errno::Errno;
use std::collections::BTreeMap;

/// Spin-loop hints for which a group is tried out, 5 to 150 µs: a group that the hardware can hold runs from the
/// moment it is enabled, unless another profiler's groups take turns with it. Then it is split, which costs only
/// precision.
const TRIAL_TURNS: u32 = 2_000;

/// What became of a list of events.
#[derive(Default)]
pub(crate) struct Opened {
    pub(crate) groups: Vec<CountedGroup>,
    pub(crate) refused: Vec<(Event, Errno)>,
}

/// An open group, its events, and what it had counted before it was handed over.
pub(crate) struct CountedGroup {
    pub(crate) events: Vec<Event>,
    pub(crate) group: Box<dyn Group>,
    pub(crate) before: Totals,
    /// The last call on it that failed, if one did: then it has no figures.
    pub(crate) failed: Option<Errno>,
}

/// Opens events that the kernel counts: one group, without those that are refused.
pub(crate) fn software(pmu: &mut dyn Pmu, mut events: Vec<Event>) -> Opened {
    let mut opened = Opened::default();
    while !events.is_empty() {
        match pmu.open_group(&events) {
            Ok(group) => {
                opened.groups.push(CountedGroup { events, group, before: Totals::default(), failed: None });
                break;
            }
            Err(refused) => opened.refused.push((events.remove(refused.at), refused.errno)),
        }
    }
    opened
}

/// Opens events that the processor counts: for each unit one group if it has counters enough, else as few as will do,
/// families kept together where they fit. The cores' events come first.
///
/// A group belongs to one unit: the kernel refuses most mixtures, and times a mixed group by its leader alone.
///
/// The kernel refuses with EINVAL a group that the processor could never hold, but accepts one for which it merely
/// lacks a counter at the moment (its NMI watchdog takes one) and then never runs it. So each group is tried out, and
/// one that did not run is split.
pub(crate) fn hardware(pmu: &mut dyn Pmu, events: Vec<Event>) -> Opened {
    let mut opened = Opened::default();
    let mut waiting = by_unit(events);
    while let Some(events) = waiting.pop() {
        if events.is_empty() {
            continue;
        }
        match open_one(pmu, events) {
            Attempt::Holds(group) => opened.groups.push(group),
            Attempt::TooBig { events, fits } => {
                let (first, rest) = split(events, fits);
                waiting.push(rest);
                waiting.push(first);
            }
            Attempt::Without { events, refused } => {
                opened.refused.push(refused);
                waiting.push(events);
            }
        }
    }
    opened
}

/// Events of one unit together, the cores' last: it is a stack.
fn by_unit(events: Vec<Event>) -> Vec<Vec<Event>> {
    let (units, cores): (Vec<Event>, Vec<Event>) = events.into_iter().partition(Event::is_beside_the_cores);
    let mut each: BTreeMap<u32, Vec<Event>> = BTreeMap::new();
    units.into_iter().for_each(|event| each.entry(event.attr.kind).or_default().push(event));
    each.into_values().rev().chain([cores]).collect()
}

enum Attempt {
    Holds(CountedGroup),
    /// Two events or more; at most the first `fits` of them go together.
    TooBig {
        events: Vec<Event>,
        fits: usize,
    },
    /// One event cannot be counted at all; these are the others.
    Without {
        events: Vec<Event>,
        refused: (Event, Errno),
    },
}

fn open_one(pmu: &mut dyn Pmu, mut events: Vec<Event>) -> Attempt {
    let mut group = match pmu.open_group(&events) {
        Ok(group) => group,
        // EINVAL may mean the group or the event: alone, the event tells which.
        Err(refused) if refused.errno == Errno::EINVAL && refused.at > 0 => {
            return match pmu.open_group(&events[refused.at..=refused.at]) {
                Ok(_) => Attempt::TooBig { events, fits: refused.at },
                Err(alone) => Attempt::Without { refused: (events.remove(refused.at), alone.errno), events },
            };
        }
        Err(refused) => return Attempt::Without { refused: (events.remove(refused.at), refused.errno), events },
    };
    match trial(group.as_mut()) {
        Ok(before) if before.time_running_ns == 0 && events.len() > 1 => {
            Attempt::TooBig { fits: events.len().div_ceil(2), events }
        }
        Ok(before) => Attempt::Holds(CountedGroup { events, group, before, failed: None }),
        Err(errno) => Attempt::Holds(CountedGroup { events, group, before: Totals::default(), failed: Some(errno) }),
    }
}

/// Counts a short loop, to see whether the group gets onto the hardware, and says where its totals then stand.
fn trial(group: &mut dyn Group) -> Result<Totals, Errno> {
    group.enable()?;
    for _ in 0..TRIAL_TURNS {
        std::hint::spin_loop();
    }
    group.disable()?;
    group.read()
}

/// Cuts off at most `fits` events, at the end of a family where one ends before.
fn split(mut events: Vec<Event>, fits: usize) -> (Vec<Event>, Vec<Event>) {
    let ends_family = |at: &usize| events[*at - 1].family != events[*at].family;
    let at = (1..=fits).rev().find(ends_family).unwrap_or(fits);
    let rest = events.split_off(at);
    (events, rest)
}

#[cfg(test)]
mod tests {
    use super::{Opened, hardware, software};
    use crate::event::{Attr, Event, Family};
    use crate::fake::{FakePmu, World, events};
    use nix::errno::Errno;

    fn of_hardware() -> Vec<Event> {
        events().into_iter().filter(Event::is_hardware).collect()
    }

    fn names(opened: &Opened) -> Vec<Vec<&str>> {
        opened.groups.iter().map(|g| g.events.iter().map(|e| e.name.as_str()).collect()).collect()
    }

    fn refused(opened: &Opened) -> Vec<(&str, Errno)> {
        opened.refused.iter().map(|(event, errno)| (event.name.as_str(), *errno)).collect()
    }

    #[test]
    fn hardware_with_counters_enough_takes_one_group() {
        let opened = hardware(&mut FakePmu::new(World::default()), of_hardware());
        assert_eq!(opened.groups.len(), 1);
        assert_eq!(opened.groups[0].events.len(), 10);
        assert!(opened.refused.is_empty());
    }

    #[test]
    fn a_group_that_is_too_big_is_cut_between_families() {
        let opened = hardware(&mut FakePmu::new(World { accepts: 6, schedules: 6, ..World::default() }), of_hardware());
        let wanted: [&[&str]; 2] = [
            &["cycles", "instructions", "stalled_cycles", "l1d_loads", "l1d_load_misses"],
            &["llc_loads", "llc_load_misses", "cache_references", "cache_misses", "dtlb_load_misses"],
        ];
        assert_eq!(names(&opened), wanted);
    }

    #[test]
    fn units_beside_the_cores_have_groups_of_their_own() {
        let unit = |name: &str, kind| Event {
            name: name.to_owned(),
            family: Family::Unit,
            attr: Attr { kind, ..of_hardware()[0].attr },
            filter: None,
        };
        let core = |at: usize| of_hardware()[at].clone();
        let mixed = vec![unit("tsc", 9), core(0), unit("power", 12), core(1), unit("aperf", 9)];
        let opened = hardware(&mut FakePmu::new(World::default()), mixed);
        let wanted: [&[&str]; 3] = [&["cycles", "instructions"], &["tsc", "aperf"], &["power"]];
        assert_eq!(names(&opened), wanted);
        let alone = hardware(&mut FakePmu::new(World::default()), vec![unit("tsc", 9)]);
        assert_eq!(names(&alone), [["tsc"]]);
    }

    #[test]
    fn a_family_larger_than_the_hardware_is_cut_within() {
        let opened = hardware(&mut FakePmu::new(World { accepts: 2, schedules: 2, ..World::default() }), of_hardware());
        let wanted: [&[&str]; 6] = [
            &["cycles", "instructions"],
            &["stalled_cycles"],
            &["l1d_loads", "l1d_load_misses"],
            &["llc_loads", "llc_load_misses"],
            &["cache_references", "cache_misses"],
            &["dtlb_load_misses"],
        ];
        assert_eq!(names(&opened), wanted);
        assert!(opened.refused.is_empty());
    }

    #[test]
    fn a_group_that_never_runs_is_split_until_it_does() {
        // The kernel's check knows of six counters, but the NMI watchdog has taken one of them.
        let opened = hardware(&mut FakePmu::new(World { accepts: 6, schedules: 3, ..World::default() }), of_hardware());
        assert!(opened.groups.iter().all(|g| g.before.time_running_ns > 0), "{:?}", names(&opened));
        assert_eq!(opened.groups.iter().map(|g| g.events.len()).sum::<usize>(), 10);
        assert!(opened.groups.iter().all(|g| g.events.len() <= 3));
    }

    #[test]
    fn single_events_stay_open_though_nothing_runs() {
        let opened = hardware(&mut FakePmu::new(World { schedules: 0, ..World::default() }), of_hardware());
        assert_eq!(opened.groups.len(), 10);
        assert!(opened.refused.is_empty());
    }

    #[test]
    fn events_that_are_missing_do_not_take_others_with_them() {
        let world = World::default().refusing("llc_loads", Errno::ENOENT).refusing("llc_load_misses", Errno::EINVAL);
        let opened = hardware(&mut FakePmu::new(world), of_hardware());
        assert_eq!(refused(&opened), [("llc_loads", Errno::ENOENT), ("llc_load_misses", Errno::EINVAL)]);
        assert_eq!(opened.groups.len(), 1);
        assert_eq!(opened.groups[0].events.len(), 8);
    }

    #[test]
    fn a_machine_without_hardware_events_refuses_each_once() {
        let mut pmu = FakePmu::new(World::default().without_pmu());
        let opened = hardware(&mut pmu, of_hardware());
        assert_eq!((opened.groups.len(), opened.refused.len()), (0, 10));
    }

    #[test]
    fn software_events_share_a_group_without_those_that_are_denied() {
        let events: Vec<Event> = events().into_iter().filter(|e| !e.is_hardware()).collect();
        let world = World::default().refusing("context_switches", Errno::EACCES);
        let opened = software(&mut FakePmu::new(world.refusing("cpu_migrations", Errno::EACCES)), events);
        assert_eq!(names(&opened), [["page_faults", "task_clock", "futex_calls", "tlb_flushes"]]);
        assert_eq!(opened.refused.len(), 2);
    }
}
