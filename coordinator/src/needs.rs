//! What a bound scenario needs of the machine, for the doctor to judge by.

use crate::provision::LOWEST_FD;
use counters::{Event, Order, Orders, Selection};
use doctor::Needs;
use host::Root;
use plan::expect::{Against, Metric};
use plan::{ArmKind, Bound, CpuId, Pages, Plan, Program};
use record::Events;
use shm_layout::SegmentMap;
use std::collections::BTreeSet;

/// The arms that this host can place.
pub(crate) fn programs(bound: &Bound) -> impl Iterator<Item = &Program> {
    bound.arms.iter().filter_map(|arm| arm.program.as_ref().ok())
}

/// The CPUs that some arm pins a worker to, ascending.
pub(crate) fn cpus(bound: &Bound) -> Vec<CpuId> {
    let cpus: BTreeSet<CpuId> = programs(bound).flat_map(cpus_of).collect();
    cpus.into_iter().collect()
}

/// The needs of all arms together; `selection` says which of the events that are named the processor counts.
pub(crate) fn of(plan: &Plan, bound: &Bound, selection: &Selection) -> Needs {
    // Workers that share a CPU use no more than that CPU's time.
    let at_once = programs(bound).map(|program| cpus_of(program).collect::<BTreeSet<_>>().len() as u32);
    let (counted, orders, root) = (selection.events(), selection.orders(), Root::system());
    Needs {
        cpus: cpus(bound),
        workers: at_once.max().unwrap_or(0),
        segment_bytes: programs(bound).filter_map(segment_bytes).max().unwrap_or(0),
        hardware_counts: named_counters(plan).into_iter().any(|name| Events(&counted).by_processor(name)),
        open_files: programs(bound).map(|p| open_files(&root, Crowd::of(p), &orders)).max().unwrap_or(0),
        threads: programs(bound).map(|program| program.workers.len() as u64).max().unwrap_or(0),
        unplaced: unplaced(bound),
    }
}

/// Why this host runs nothing of the scenario, in the first arm's words; `None` where it can place some variant.
pub(crate) fn unplaced(bound: &Bound) -> Option<String> {
    let runs = bound.arms.iter().any(|arm| arm.arm.kind == ArmKind::Variant && arm.program.is_ok());
    let reasons = || bound.arms.iter().find_map(|arm| Some(arm.program.as_ref().err()?.why.clone()));
    if runs { None } else { reasons().or_else(|| Some("the scenario has no variant".to_owned())) }
}

/// Who runs at once in one arm.
#[derive(Copy, Clone, Debug)]
struct Crowd {
    processes: u64,
    /// Threads of the process that has most.
    threads: u64,
}

impl Crowd {
    fn of(program: &Program) -> Crowd {
        let threads = program.processes().map(|process| process.len() as u64).max();
        Crowd { processes: program.processes().count() as u64, threads: threads.unwrap_or(0) }
    }
}

/// Open files of the process that has most of them: those that this one was started with and hands down, and what a
/// repetition adds. An event that the kernel then refuses takes none, so there may be fewer.
fn open_files(root: &Root, Crowd { processes, threads }: Crowd, orders: &[Orders]) -> u64 {
    // Requests to end, the segment and its name, the program, two pipes, shared regions of either kind of page; a
    // process's report and pidfd.
    const COORDINATOR: u64 = 10;
    const OF_EACH_PROCESS: u64 = 2;
    // Handed over: the program, the pipes, the regions. They begin at a number of their own, and numbers are limited,
    // not files.
    const HIGH: u64 = 7;
    // Report, both pipes, the regions, the lifeline's own end, the segment; each thread's run times, and a file that it
    // reads.
    const PROCESS: u64 = 7;
    const OF_EACH_THREAD: u64 = 2;
    let begun_with = host::open_files(root);
    let of_kernel = |events: &mut dyn Iterator<Item = &Event>| {
        let mut distinct: Vec<_> = Vec::new();
        events.for_each(|event| {
            if !distinct.contains(&&event.attr) {
                distinct.push(&event.attr)
            }
        });
        group(distinct.len())
    };
    let software = |orders: &Orders| group(counted(orders).filter(|event| !event.is_hardware()).count());
    let held = of_kernel(&mut orders.iter().flat_map(counted).filter(|event| !event.is_hardware()));
    let has_pmu = !host::core_pmus(root).is_empty();
    // At worst each event is a group.
    let noted = |orders: &Orders| -> u64 {
        let of = |order: &Order| match order {
            Order::Count(_) | Order::Refused { .. } => 0,
            Order::Shootdowns => 1,
            Order::Log(log) => log.tracepoints.len() as u64,
        };
        orders.orders.iter().map(of).sum()
    };
    let hardware = |orders: &Orders| {
        let opens = |event: &&Event| event.is_hardware() && (has_pmu || event.is_beside_the_cores());
        2 * counted(orders).filter(opens).count() as u64
    };
    let coordinator = begun_with + COORDINATOR + held + OF_EACH_PROCESS * processes;
    let of_thread =
        orders.iter().map(|orders| OF_EACH_THREAD + software(orders) + hardware(orders) + noted(orders)).max();
    let process = begun_with + PROCESS + threads * of_thread.unwrap_or(OF_EACH_THREAD);
    coordinator.max(LOWEST_FD as u64 + HIGH + processes).max(process)
}

fn counted(orders: &Orders) -> impl Iterator<Item = &Event> {
    orders.orders.iter().filter_map(|order| match order {
        Order::Count(event) => Some(event),
        Order::Refused { .. } | Order::Shootdowns | Order::Log(_) => None,
    })
}

/// Descriptors of a group of so many events: one more, of its leader.
fn group(events: usize) -> u64 {
    if events == 0 { 0 } else { events as u64 + 1 }
}

fn cpus_of(program: &Program) -> impl Iterator<Item = CpuId> {
    program.workers.iter().map(|worker| worker.cpu)
}

/// Of the segment, and of the shared regions beside it.
fn segment_bytes(program: &Program) -> Option<u64> {
    let slots = program.workers.iter().map(|worker| worker.index.0 + 1).max().unwrap_or(0);
    let regions = program.shared_file(Pages::Small).1;
    let map = SegmentMap::new(slots, program.locks.len() as u32, program.area_bytes)?;
    Some(map.segment_bytes.saturating_add(regions))
}

/// The counters that a claim or the user names.
fn named_counters(plan: &Plan) -> BTreeSet<&str> {
    let own = plan.measure.events.iter().map(|event| event.key());
    let claimed = plan.expects.iter().flat_map(|expect| {
        let right = match &expect.right {
            Against::Scaled { term, .. } => Some(&term.metric),
            Against::Number(_) => None,
        };
        Some(&expect.left.metric).into_iter().chain(right).filter_map(counter)
    });
    own.chain(claimed).collect()
}

fn counter(metric: &Metric) -> Option<&str> {
    match metric {
        Metric::CounterPerOp(name) | Metric::CounterPerSecond(name) => Some(name),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::{Cpu, Topology};

    const SCENARIO: &str = r#"
title = "t"
question = "q?"
[field.hits]
type = "u64"
each = "worker"
[[variant]]
name = "packed"
placement = "packed"
[[variant]]
name = "apart"
placement = { pad = 4096 }
[[role]]
name = "counter"
workers = 2
cpus = [1, 3]
loop = ["bump hits[me]"]
"#;

    fn needs(scenario: &str) -> Needs {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("case.toml");
        std::fs::write(&file, scenario).unwrap();
        let plan = scenario::load(&file).unwrap().plan;
        let cpu = |id| Cpu { id: CpuId(id), core: id, llc: 0, node: 0, socket: 0, usable: true };
        let bound = plan::bind(&plan, &Topology { cpus: (0..4).map(cpu).collect() }, 0).unwrap();
        let selection = Selection::choose(&Root::at(folder.path()), &cpus(&bound), &plan.measure.events).unwrap();
        of(&plan, &bound, &selection)
    }

    #[test]
    fn the_largest_of_all_arms_counts() {
        let needs = needs(SCENARIO);
        assert_eq!((needs.cpus, needs.workers, needs.threads), (vec![CpuId(1), CpuId(3)], 2, 2));
        assert_eq!(needs.segment_bytes, 3 * 4096, "control block and slots, and two pages of fields");
        assert!(!needs.hardware_counts);
        let region = "[region.seg]\nsize = \"1MiB\"\nshared = true\n[[variant]]\nname = \"packed\"";
        let shared = SCENARIO.replacen("[[variant]]\nname = \"packed\"", region, 1);
        let shared = self::needs(&shared.replace("[\"bump hits[me]\"]", "[\"bump hits[me]\", \"touch seg\"]"));
        // In `unshared` each of the two has one.
        assert_eq!(shared.segment_bytes, 3 * 4096 + (2 << 20));
    }

    #[test]
    fn workers_on_one_cpu_need_one_cpu_s_time() {
        let shared = SCENARIO
            .replace("cpus = [1, 3]", "cpus = [1, 1]\n")
            .replace("title = \"t\"", "title = \"t\"\noversubscribe = true");
        assert_eq!((needs(&shared).workers, needs(&shared).threads), (1, 2));
    }

    #[test]
    fn a_claim_about_what_the_processor_counts_needs_it_and_one_about_the_kernel_s_does_not() {
        let with = |claim: &str| needs(&format!("{SCENARIO}[[expect]]\nclaim = \"{claim}\"\n")).hardware_counts;
        assert!(with("ns_per_op(packed) < 1") == with("page_faults_per_op(packed) < 1"));
        assert!(!with("page_faults_per_op(packed) < 1"));
        assert!(with("l1d_load_misses_per_op(packed) > 1"));
        assert!(with("ns_per_op(packed) > 2 * cycles_per_second(apart)"));
    }

    #[test]
    fn each_process_thread_and_event_takes_its_descriptors() {
        let folder = tempfile::tempdir().unwrap();
        let orders = |events: &str| {
            let events = plan::EventSpec::list(events).unwrap();
            Selection::choose(&Root::at(folder.path()), &[CpuId(0)], &events).unwrap().orders()
        };
        let crowd = |processes, threads| Crowd { processes, threads };
        let of = |crowd, events| open_files(&Root::at(folder.path()), crowd, &orders(events));
        let files = |processes, events| of(crowd(processes, 1), events);
        let (few, more) = ("cs", "cs,faults,task-clock,cpu-clock,major-faults,minor-faults,emulation-faults");
        assert_eq!(files(12, few) - files(11, few), 2, "a report and a pidfd");
        assert!(files(40, more) > files(40, few), "events are held by the coordinator");
        assert!(files(1, few) >= 22, "handed over from number 16 on");
        let each_thread = |events| of(crowd(1, 12), events) - of(crowd(1, 11), events);
        assert!(each_thread(few) > 2, "its run times, a file that it reads, and its events");
        assert!(each_thread(more) > each_thread(few), "each thread counts for itself");
    }

    #[test]
    fn a_scenario_without_a_place_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("case.toml");
        std::fs::write(&file, SCENARIO.replace("cpus = [1, 3]", "cpus = \"spread\"")).unwrap();
        let plan = scenario::load(&file).unwrap().plan;
        let on = |cpus: u32| {
            let cpu = |id| Cpu { id: CpuId(id), core: id, llc: 0, node: 0, socket: 0, usable: true };
            unplaced(&plan::bind(&plan, &Topology { cpus: (0..cpus).map(cpu).collect() }, 0).unwrap())
        };
        assert_eq!(on(2), None);
        assert!(on(1).is_some_and(|why| why.contains('2') && why.contains("CPU")), "{:?}", on(1));
    }
}
