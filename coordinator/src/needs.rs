//! What a bound scenario needs of the machine, for the doctor to judge by.

use counters::Selection;
use doctor::Needs;
use plan::expect::{Against, Metric};
use plan::{Bound, CpuId, Plan, Program};
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
    let counted = selection.events();
    Needs {
        cpus: cpus(bound),
        workers: at_once.max().unwrap_or(0),
        segment_bytes: programs(bound).filter_map(segment_bytes).max().unwrap_or(0),
        hardware_counts: named_counters(plan).into_iter().any(|name| Events(&counted).by_processor(name)),
    }
}

fn cpus_of(program: &Program) -> impl Iterator<Item = CpuId> {
    program.workers.iter().map(|worker| worker.cpu)
}

fn segment_bytes(program: &Program) -> Option<u64> {
    let slots = program.workers.iter().map(|worker| worker.index.0 + 1).max().unwrap_or(0);
    SegmentMap::new(slots, program.locks.len() as u32, program.area_bytes).map(|map| map.segment_bytes)
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
    use host::Root;
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
        assert_eq!((needs.cpus, needs.workers), (vec![CpuId(1), CpuId(3)], 2));
        assert_eq!(needs.segment_bytes, 3 * 4096, "control block and slots, and two pages of fields");
        assert!(!needs.hardware_counts);
    }

    #[test]
    fn workers_on_one_cpu_need_one_cpu_s_time() {
        let shared = SCENARIO
            .replace("cpus = [1, 3]", "cpus = [1, 1]\n")
            .replace("title = \"t\"", "title = \"t\"\noversubscribe = true");
        assert_eq!(needs(&shared).workers, 1);
    }

    #[test]
    fn a_claim_about_what_the_processor_counts_needs_it_and_one_about_the_kernel_s_does_not() {
        let with = |claim: &str| needs(&format!("{SCENARIO}[[expect]]\nclaim = \"{claim}\"\n")).hardware_counts;
        assert!(with("ns_per_op(packed) < 1") == with("page_faults_per_op(packed) < 1"));
        assert!(!with("page_faults_per_op(packed) < 1"));
        assert!(with("l1d_load_misses_per_op(packed) > 1"));
        assert!(with("ns_per_op(packed) > 2 * cycles_per_second(apart)"));
    }
}
