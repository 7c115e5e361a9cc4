//! On machines made up of files: the right events are chosen for each kind of core, asked of the kernel by the right
//! numbers, and named for what they count. The numbers are those that `perf stat -vv -e EVENT` prints.

use counters::{Attr, Order, Selection};
use host::Root;
use plan::event::COUNTERS;
use plan::{CountedBy, CpuId};
use record::{CountedEvent, Reading};

const HARDWARE: u32 = 0;
const CACHE: u32 = 3;

/// What was chosen for one CPU of a machine below `tests/fixtures`.
struct Chosen {
    orders: Vec<Order>,
    events: Vec<CountedEvent>,
}

impl Chosen {
    fn on(machine: &str, cpu: u32) -> Chosen {
        let root = Root::at(format!("{}/tests/fixtures/{machine}", env!("CARGO_MANIFEST_DIR")));
        let selection = Selection::choose(&root, &[CpuId(cpu)], &[]).expect("no event of a user's to refuse");
        Chosen { orders: selection.orders().remove(0).orders, events: selection.events() }
    }

    fn attr(&self, name: &str) -> Attr {
        match self.order(name) {
            Order::Count(event) => event.attr,
            other => panic!("{name} is not counted: {other:?}"),
        }
    }

    /// `type`, `config`, `config1`.
    fn numbers(&self, name: &str) -> (u32, u64, u64) {
        let attr = self.attr(name);
        assert!(attr.exclude_kernel && !attr.exclude_user && attr.config2 == 0, "{name}: {attr:?}");
        (attr.kind, attr.config, attr.config1)
    }

    fn why_not(&self, name: &str) -> &str {
        match self.order(name) {
            Order::Refused { reading: Reading::Unsupported { why }, .. } => why,
            other => panic!("{name}: {other:?}"),
        }
    }

    fn order(&self, name: &str) -> &Order {
        self.orders.iter().find(|order| order.name() == name).unwrap_or_else(|| panic!("no order for {name}"))
    }

    fn meaning(&self, name: &str) -> &CountedEvent {
        self.events.iter().find(|event| event.name == name).unwrap_or_else(|| panic!("{name} is not told"))
    }
}

const MACHINES: [(&str, u32); 7] = [
    ("alder_lake", 0),
    ("alder_lake", 16),
    ("skylake_sp", 0),
    ("zen4", 0),
    ("neoverse_n2", 0),
    ("zen5_vm", 0),
    ("unknown", 0),
];

#[test]
fn every_counter_of_the_processor_has_exactly_one_choice_in_order() {
    let wanted: Vec<&str> =
        COUNTERS.iter().filter(|(_, by)| *by == CountedBy::Processor).map(|(name, _)| *name).collect();
    for (machine, cpu) in MACHINES {
        let chosen = Chosen::on(machine, cpu);
        let by_processor = |name: &&str| COUNTERS.contains(&(name, CountedBy::Processor));
        let orders: Vec<&str> = chosen.orders.iter().map(Order::name).filter(by_processor).collect();
        assert_eq!(orders, wanted, "{machine}, CPU {cpu}");
        let told: Vec<&str> = chosen.events.iter().map(|event| event.name.as_str()).filter(by_processor).collect();
        assert_eq!(told, wanted, "{machine}, CPU {cpu}");
        for event in chosen.events.iter().filter(|event| event.counted_by == CountedBy::Processor) {
            assert!(!event.shown.is_empty() && !event.counts.is_empty() && !event.source.is_empty(), "{event:?}");
        }
    }
}

#[test]
fn a_p_core_is_asked_for_its_own_events() {
    let chosen = Chosen::on("alder_lake", 0);
    assert_eq!(chosen.numbers("cycles"), (HARDWARE, 4 << 32, 0));
    assert_eq!(chosen.numbers("l1d_load_misses"), (CACHE, 4 << 32 | 0x10000, 0));
    assert_eq!(chosen.numbers("transfers_local"), (4, 0x4d2, 0));
    assert_eq!(chosen.numbers("transfers_write"), (4, 0x12a, 0x10_003C_0002));
    let local = chosen.meaning("transfers_local");
    assert_eq!(local.event.as_deref(), Some("cpu_core/event=0xd2,umask=0x04/"));
    assert!(local.counts.starts_with("MEM_LOAD_L3_HIT_RETIRED.XSNP_FWD: "), "{local:?}");
    assert_eq!(chosen.meaning("l1d_load_misses").shown, "load requests to L2");
    assert!(chosen.why_not("transfers_remote").contains("one socket"));
    assert!(
        chosen.why_not("upgrades").contains("cpu_core/event=0x24,umask=0xe2/"),
        "what to look at, as perf takes it"
    );
}

#[test]
fn an_e_core_is_asked_for_its_own_events() {
    let chosen = Chosen::on("alder_lake", 16);
    assert_eq!(chosen.numbers("cycles"), (HARDWARE, 10 << 32, 0));
    assert_eq!(chosen.numbers("dtlb_load_misses"), (CACHE, 10 << 32 | 0x10003, 0));
    assert_eq!(chosen.numbers("transfers_local"), (10, 0x20d1, 0));
    assert_eq!(chosen.numbers("transfers_write"), (10, 0x1b7, 0x10_003C_0002));
    assert_eq!(chosen.meaning("transfers_write").event.as_deref().map(|text| &text[..9]), Some("cpu_atom/"));
    let why = chosen.why_not("l1d_load_misses");
    assert!(why.contains("Alder Lake, Raptor Lake E core") && why.contains("cpu_atom/event=0xd1,umask=0x08/"), "{why}");
    assert_eq!(chosen.meaning("l1d_load_misses").event, None);
}

#[test]
fn the_kinds_of_a_hybrid_s_cores_are_told_apart_in_the_record() {
    let root = Root::at(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/alder_lake"));
    let selection = Selection::choose(&root, &[CpuId(0), CpuId(16)], &[]).expect("no event of a user's to refuse");
    assert_eq!(selection.orders().len(), 2);
    let local: Vec<(String, String)> = (selection.events().into_iter())
        .filter(|event| event.name == "transfers_local")
        .map(|event| (event.cpus, event.shown))
        .collect();
    let wanted = [("0", "loads: from other core"), ("16", "loads: other core, M")];
    assert_eq!(local, wanted.map(|(cpus, shown)| (cpus.to_owned(), shown.to_owned())));
}

#[test]
fn skylake_sp_tells_loads_writes_and_the_other_socket_apart() {
    let chosen = Chosen::on("skylake_sp", 0);
    assert_eq!(chosen.numbers("l1d_load_misses"), (CACHE, 0x10000, 0));
    assert_eq!(chosen.numbers("transfers_local"), (4, 0x4d2, 0));
    assert_eq!(chosen.numbers("transfers_remote"), (4, 0x4d3, 0));
    assert_eq!(chosen.numbers("transfers_write"), (4, 0x1b7, 0x10_003C_0002));
    assert_eq!(chosen.numbers("transfers_write_remote"), (4, 0x1b7, 0x10_3FC0_0002));
    assert!(chosen.meaning("transfers_write_remote").counts.contains("two writers on two sockets show here"));
    assert_eq!(chosen.meaning("l1d_load_misses").shown, "lines into L1D");
    assert!(chosen.meaning("transfers_write").counts.contains("two writers of one line show here"));
    assert!(chosen.meaning("llc_load_misses").counts.contains("an L3 hit and not in it"));
    assert!(chosen.why_not("stalled_cycles").contains("Skylake-SP"));
}

#[test]
fn zen_4_has_fills_by_source_and_no_last_level() {
    let chosen = Chosen::on("zen4", 0);
    assert_eq!(chosen.numbers("l1d_load_misses"), (CACHE, 0x10000, 0));
    assert_eq!(chosen.numbers("transfers_cluster"), (4, 0x244, 0));
    assert_eq!(chosen.numbers("transfers_local"), (4, 0x444, 0));
    assert_eq!(chosen.numbers("transfers_remote"), (4, 0x1044, 0));
    assert_eq!(chosen.numbers("upgrades"), (4, 0x860, 0));
    assert_eq!(chosen.meaning("l1d_load_misses").shown, "L2 requests from L1D");
    assert_eq!(chosen.meaning("cache_misses").shown, "L2 misses");
    let cluster = chosen.meaning("transfers_cluster");
    assert!(
        cluster.counts.contains("L3 or from another L2") && cluster.counts.contains("dirty or clean"),
        "{cluster:?}"
    );
    for name in ["llc_loads", "llc_load_misses"] {
        let why = chosen.why_not(name);
        assert!(why.contains("no event of this processor (Zen 4)") && why.contains("transfers_cluster"), "{why}");
    }
}

#[test]
fn neoverse_n2_tells_inner_and_outer_refills_and_lines_taken_away() {
    let chosen = Chosen::on("neoverse_n2", 0);
    assert_eq!(chosen.numbers("stalled_cycles"), (HARDWARE, 8, 0));
    assert_eq!(chosen.numbers("llc_load_misses"), (CACHE, 0x10002, 0));
    assert_eq!(chosen.numbers("transfers_cluster"), (10, 0x44, 0));
    assert_eq!(chosen.numbers("transfers_local"), (10, 0x45, 0));
    assert_eq!(chosen.numbers("transfers_remote"), (10, 0x31, 0));
    assert_eq!(chosen.numbers("l1d_invalidations"), (10, 0x48, 0));
    let local = chosen.meaning("transfers_local");
    assert_eq!(local.event.as_deref(), Some("armv8_pmuv3_0/event=0x45/"));
    assert!(local.counts.contains("memory, which the event does not tell apart"), "{local:?}");
    assert_eq!(chosen.meaning("l1d_load_misses").shown, "L1D refills");
}

#[test]
fn without_a_pmu_the_kernel_is_asked_for_what_it_names_and_the_rest_is_refused_for_the_same_reason() {
    let chosen = Chosen::on("zen5_vm", 0);
    assert_eq!(chosen.numbers("cycles"), (HARDWARE, 0, 0));
    assert_eq!(chosen.numbers("llc_load_misses"), (CACHE, 0x10002, 0), "though no Zen has it: the kernel is to say so");
    for name in ["transfers_cluster", "transfers_local", "transfers_remote", "transfers_write", "upgrades"] {
        let why = chosen.why_not(name);
        assert!(why.starts_with("this machine exposes no hardware PMU"), "{name}: {why}");
    }
    assert_eq!(chosen.meaning("transfers_cluster").shown, "fills from L3 or CCX", "what the processor would count");
}

#[test]
fn an_unknown_processor_has_the_kernel_s_events_and_the_reader_is_told() {
    let chosen = Chosen::on("unknown", 0);
    assert_eq!(chosen.numbers("l1d_load_misses"), (CACHE, 0x10000, 0));
    let misses = chosen.meaning("l1d_load_misses");
    assert_eq!(misses.shown, "l1d load misses");
    assert!(misses.counts.contains("CentaurHauls family 7 model 0x3b) is not in the lab's table"), "{misses:?}");
    let why = chosen.why_not("transfers_local");
    assert!(why.contains("CentaurHauls family 7 model 0x3b") && why.contains("--events"), "{why}");
}

#[test]
fn a_group_of_four_counters_keeps_each_family_together() {
    for (machine, cpu) in MACHINES {
        let counted = |order: &Order| match order {
            Order::Count(event) if event.is_hardware() => Some(event.family),
            _ => None,
        };
        let families: Vec<_> = Chosen::on(machine, cpu).orders.iter().filter_map(counted).collect();
        let mut runs: Vec<_> = families.chunk_by(|a, b| a == b).collect();
        assert!(runs.iter().all(|run| run.len() <= 4), "{machine}, CPU {cpu}: {families:?}");
        let count = runs.len();
        runs.sort();
        runs.dedup_by_key(|run| run[0]);
        assert_eq!(runs.len(), count, "{machine}, CPU {cpu}: a family in two places: {families:?}");
    }
}
