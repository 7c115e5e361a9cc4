//! The published cases in `scenarios/cases/`: each names its source, and its layouts differ as the publication says.

use plan::{Cpu, CpuId, Layout, Placed, Topology, WorkerIndex, bind};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A line of the caches, bytes.
const LINE: u64 = 64;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/cases")
}

fn files() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder()).expect("the folder of cases");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

/// A case's layout in one of its variants, on two CPUs.
fn layout(case: &str, variant: &str) -> Layout {
    let cpu = |id| Cpu { id: CpuId(id), core: id, llc: 0, node: 0, socket: 0, usable: true };
    let topology = Topology { cpus: vec![cpu(0), cpu(1)] };
    let file = folder().join(case).with_extension("toml");
    let plan = scenario::load(&file).unwrap_or_else(|refusal| panic!("{}", refusal.render(false))).plan;
    let arms = bind(&plan, &topology, 1).expect("a sound case").arms;
    let arm = arms.into_iter().find(|arm| arm.arm.name == variant);
    arm.unwrap_or_else(|| panic!("{case} has no variant {variant}")).program.expect("two CPUs are enough").layout
}

fn users(placed: &Placed) -> BTreeSet<WorkerIndex> {
    placed.writers.iter().chain(&placed.readers).copied().collect()
}

/// Pairs of words in one line of which one worker writes the first while another uses the second: what the writer takes
/// away with the line although nobody asked it to.
fn false_sharing(layout: &Layout) -> usize {
    let disturbs = |a: &Placed, b: &Placed| {
        let same_line = a.offset / LINE == b.offset / LINE && a.offset != b.offset;
        same_line && a.writers.iter().any(|writer| users(b).iter().any(|user| user != writer))
    };
    layout.placed.iter().map(|a| layout.placed.iter().filter(|b| disturbs(a, b)).count()).sum()
}

/// Lines on which `worker` uses something.
fn lines_of(layout: &Layout, worker: WorkerIndex) -> usize {
    let used = layout.placed.iter().filter(|placed| users(placed).contains(&worker));
    used.map(|placed| placed.offset / LINE).collect::<BTreeSet<u64>>().len()
}

#[test]
fn every_case_names_its_source_and_has_a_before_and_an_after() {
    let files = files();
    assert_eq!(files.len(), 14, "{files:?}");
    for path in files {
        let text = std::fs::read_to_string(&path).expect("a case");
        for said in ["\n# Source: ", "\n# Published"] {
            assert!(text.contains(said), "{}: the comment lacks {said:?}", path.display());
        }
        let plan = scenario::load(&path).unwrap_or_else(|refusal| panic!("{}", refusal.render(false))).plan;
        let names: Vec<&str> = plan.arms.iter().map(|arm| arm.name.as_str()).collect();
        assert_eq!(names[0], "before", "{}", path.display());
        // nginx's counters are a layout to refer to: nobody changed it.
        let changed = names.contains(&"after") || names.contains(&"sharded");
        assert!(changed, "{}: {names:?}", path.display());
    }
}

#[test]
fn where_the_cure_was_room_less_is_shared_falsely() {
    for case in [
        "aeron_mpsc_queue",
        "disruptor_reader_writer",
        "gvisor_contextqueue",
        "iceoryx2_index_queue",
        "innodb_ib_counter",
        "linux_file_fref",
        "nginx_upstream_peer",
        "redis_io_threads",
    ] {
        let (before, after) = (false_sharing(&layout(case, "before")), false_sharing(&layout(case, "after")));
        assert!(after < before, "{case}: {before} before, {after} after");
    }
    assert_eq!(false_sharing(&layout("aeron_mpsc_queue", "after")), 0);
    assert_eq!(false_sharing(&layout("disruptor_reader_writer", "after-64")), 0);
}

#[test]
fn an_empty_line_changes_nothing_within_the_lines() {
    let (before, after) = (layout("dpdk_rte_ring", "before"), layout("dpdk_rte_ring", "after"));
    assert_eq!(false_sharing(&before), false_sharing(&after));
    let apart = |layout: &Layout| {
        let offset = |name: &str| layout.placed.iter().find(|placed| placed.field == name).expect("the word").offset;
        offset("cons_head") - offset("prod_head")
    };
    assert_eq!((apart(&before), apart(&after)), (LINE, 2 * LINE));
    assert!(false_sharing(&layout("dpdk_rte_ring", "compact")) > false_sharing(&before));
}

#[test]
fn where_the_cure_was_company_fewer_lines_are_used() {
    let backend = WorkerIndex(0);
    let lines = |variant| lines_of(&layout("pg_lwlock_bufferdesc", variant), backend);
    assert_eq!((lines("before"), lines("after")), (2, 1));
}

#[test]
fn where_the_program_changed_the_shared_words_stayed_where_they_were() {
    for (case, word) in [
        ("pg_clock_sweep", "next_victim_buffer"),
        ("pg_procarray_group_clear", "proc_array"),
        ("linux_mm_cpumask", "cpumask"),
    ] {
        let offset = |variant| {
            let layout = layout(case, variant);
            layout.placed.iter().find(|placed| placed.field == word).map(|placed| placed.offset)
        };
        assert!(offset("before").is_some(), "{case} has no {word}");
        assert_eq!(offset("before"), offset("after"), "{case}");
    }
}
