//! Machines of several kinds, and what events come to on each.

use super::{Unencoded, encode};
use crate::event::Attr;
use host::Root;
use plan::{CpuId, EventSpec};
use record::Reading;

/// A machine as a folder.
struct Machine(tempfile::TempDir);

impl Machine {
    /// `NAME/FILE = TEXT` rows below the folder of PMUs.
    fn with(rows: &[(&str, &str)]) -> Machine {
        let machine = Machine(tempfile::tempdir().expect("a temporary folder"));
        rows.iter().for_each(|(file, text)| machine.write(&format!("sys/bus/event_source/devices/{file}"), text));
        machine
    }

    fn write(&self, file: &str, text: &str) {
        let path = self.0.path().join(file);
        std::fs::create_dir_all(path.parent().expect("a path below the folder")).expect("a folder");
        std::fs::write(path, format!("{text}\n")).expect("a file");
    }

    /// An Intel server, with a unit beside the cores.
    fn server() -> Machine {
        Machine::with(&[
            ("cpu/type", "4"),
            ("cpu/format/event", "config:0-7"),
            ("cpu/format/umask", "config:8-15"),
            ("cpu/format/edge", "config:18"),
            ("cpu/format/wide", "config:0-7,32-35"),
            ("cpu/format/ldlat", "config1:0-15"),
            ("cpu/format/hbm", "config3:0-63"),
            ("cpu/events/mem-loads", "event=0xcd,umask=0x1,ldlat=3"),
            ("cpu/events/mem-stores", "event=0xd0,umask=0x82"),
            ("cpu/events/wanting", "event=0xcd,umask=?"),
            ("cpu/events/instructions", "event=0xc0"),
            ("uncore_imc_0/type", "14"),
            ("uncore_imc_0/cpumask", "0,28"),
            ("uncore_imc_0/format/event", "config:0-7"),
            ("software/type", "1"),
            ("msr/type", "9"),
            ("msr/format/event", "config:0-63"),
            ("msr/events/tsc", "event=0x00"),
        ])
    }

    /// P-cores 0-3, E-cores 4-7.
    fn hybrid() -> Machine {
        Machine::with(&[
            ("cpu_core/type", "4"),
            ("cpu_core/cpus", "0-3"),
            ("cpu_core/format/event", "config:0-7"),
            ("cpu_atom/type", "10"),
            ("cpu_atom/cpus", "4-7"),
            ("cpu_atom/format/event", "config:0-7"),
            ("cpu_atom/events/mem-stores", "event=0xd0"),
        ])
    }

    fn root(&self) -> Root {
        Root::at(self.0.path())
    }

    fn try_on(&self, cpu: u32, text: &str) -> Result<Attr, Unencoded> {
        encode(&self.root(), CpuId(cpu), &text.parse().unwrap_or_else(|error| panic!("{text}: {error}")))
    }

    /// `type`, `config`, `config1`.
    #[track_caller]
    fn numbers(&self, cpu: u32, text: &str) -> (u32, u64, u64) {
        let attr = self.try_on(cpu, text).unwrap_or_else(|why| panic!("{text}: {why:?}"));
        (attr.kind, attr.config, attr.config1)
    }

    /// What is wrong, and the cure, in one line.
    #[track_caller]
    fn mistake(&self, text: &str) -> String {
        match self.try_on(0, text) {
            Err(Unencoded::Mistake { what, cure }) if !cure.is_empty() => format!("{what}; {cure}"),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[track_caller]
    fn unsupported(&self, cpu: u32, text: &str) -> String {
        match self.try_on(cpu, text) {
            Err(Unencoded::Uncounted(Reading::Unsupported { why })) => why,
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn terms_go_where_the_format_files_say() {
    let machine = Machine::server();
    for (text, wanted) in [
        ("cpu/event=0xd1,umask=0x1/", (4, 0x01d1, 0)),
        ("cpu/event=0xd1,umask=1,edge/", (4, 0x401d1, 0)),
        ("cpu/wide=0xabc/", (4, 0xa_0000_00bc, 0)),
        ("cpu/event=0xcd,ldlat=30/", (4, 0xcd, 30)),
        ("cpu/config=0x1d1,config1=7/", (4, 0x1d1, 7)),
        ("cpu/umask=2,config=0x1d1/", (4, 0x2d1, 0)),
        ("r1d1", (4, 0x1d1, 0)),
        ("software/config=2/", (1, 2, 0)),
        ("msr/tsc/", (9, 0, 0)),
    ] {
        assert_eq!(machine.numbers(0, text), wanted, "{text}");
    }
}

#[test]
fn names_are_perf_s_first_and_the_core_s_own_second() {
    let machine = Machine::server();
    assert_eq!(machine.numbers(0, "cache-misses"), (0, 3, 0));
    assert_eq!(machine.numbers(0, "instructions"), (0, 1, 0), "perf's name, though the PMU has it too");
    assert_eq!(machine.numbers(0, "cpu/instructions/"), (4, 0xc0, 0));
    assert_eq!(machine.numbers(0, "cpu/cycles/"), (0, 0, 0), "a generic name between slashes");
    assert_eq!(machine.numbers(0, "mem-loads"), (4, 0x1cd, 3));
    assert_eq!(machine.numbers(0, "cpu/mem-loads/"), (4, 0x1cd, 3));
    assert_eq!(machine.numbers(0, "cpu/mem-loads,ldlat=30/"), (4, 0x1cd, 30), "what is written wins");
}

#[test]
fn modes_are_perf_s() {
    let machine = Machine::server();
    let excluded = |text| machine.try_on(0, text).map(|attr| (attr.exclude_user, attr.exclude_kernel));
    assert_eq!(excluded("cycles"), Ok((false, false)));
    assert_eq!(excluded("cycles:u"), Ok((false, true)));
    assert_eq!(excluded("cpu/event=1/k"), Ok((true, false)));
    assert_eq!(excluded("page-faults:uk"), Ok((false, false)));
}

#[test]
fn what_is_advised_in_place_of_a_counter_of_the_lab_s_is_an_event() {
    let machine = Machine::server();
    for (name, _) in plan::event::COUNTERS {
        let events = EventSpec::list(name).expect("a name");
        let (_, error) = plan::event::check_list(&events).expect_err("it is counted anyway");
        assert!(error.cure.starts_with("leave it out"), "{name}: {error}");
        let advised = error.cure.split([' ', ',']).filter(|word| word.contains(':') && !word.ends_with(':'));
        advised.for_each(|event| assert!(machine.try_on(0, event).is_ok(), "{name}: {event} of {error}"));
    }
}

#[test]
fn what_would_always_read_0_is_refused() {
    let machine = Machine::server();
    machine.write("sys/kernel/tracing/events/sched/sched_switch/id", "372");
    for text in ["context-switches:u", "cs:u", "migrations:u", "cgroup-switches:u", "software/config=3/u"] {
        assert!(machine.mistake(text).contains("always be 0"), "{text}");
    }
    assert!(machine.mistake("sched:sched_switch:u").contains("without :u"));
    assert!(machine.try_on(0, "context-switches:k").is_ok() && machine.try_on(0, "page-faults:u").is_ok());
}

#[test]
fn mistakes_name_the_part_at_fault_and_what_there_is() {
    let machine = Machine::server();
    machine.write("sys/kernel/tracing/events/sched/sched_switch/id", "372");
    for (text, parts) in [
        ("cache-mises", &["`cache-mises`", "did you mean `cache-misses`?"][..]),
        ("mem-load", &["did you mean `mem-loads`?"]),
        ("frobnications", &["`perf list` shows the names that there are. An event can be written"]),
        ("L1-icache-stores", &["no event is called"]),
        ("cpu/evnt=0xd1/", &["no term `evnt`", "did you mean `event`?", "umask", "config1"]),
        ("cpu/event=0x1d1/", &["0x1d1 is too large for `event`", "8 bits", "0xff at most"]),
        ("cpu/edge=2/", &["one bit ", "0x1 at most"]),
        ("cpu/hbm=1/", &["config3:0-63"]),
        ("cpu/event=1,event=2/", &["`event` twice"]),
        ("cpu/mem-loads,mem-stores/", &["two events", "`mem-loads` and `mem-stores`"]),
        ("cpu/wanting/", &["umask=?", "question marks"]),
        ("uncore_imc_0/event=1/", &["whole CPUs", "perf stat -a -e uncore_imc_0/event=1/"]),
        ("sched:sched_swich", &["`sched:sched_swich`", "did you mean `sched:sched_switch`?", "perf list 'sched:*'"]),
        ("shed:sched_switch", &["did you mean `sched:sched_switch`?", "perf list tracepoint"]),
    ] {
        let seen = machine.mistake(text);
        parts.iter().for_each(|part| assert!(seen.contains(part), "{text}: {part:?} is not in {seen}"));
    }
}

#[test]
fn on_a_hybrid_every_hardware_event_goes_to_the_cpu_s_own_kind_of_core() {
    let machine = Machine::hybrid();
    let both = |text| (machine.numbers(1, text), machine.numbers(5, text));
    assert_eq!(both("cycles"), ((0, 4 << 32, 0), (0, 10 << 32, 0)));
    assert_eq!(both("L1-dcache-load-misses"), ((3, 4 << 32 | 0x10000, 0), (3, 10 << 32 | 0x10000, 0)));
    assert_eq!(both("r1d1"), ((4, 0x1d1, 0), (10, 0x1d1, 0)));
    assert_eq!(both("cpu/event=0xd1/"), ((4, 0xd1, 0), (10, 0xd1, 0)));
    assert_eq!(both("cpu/cycles/"), both("cycles"));
    assert_eq!(both("page-faults"), ((1, 2, 0), (1, 2, 0)), "the kernel counts on every core");
    assert_eq!(machine.numbers(5, "cpu_atom/event=0xd1/"), (10, 0xd1, 0));
    assert_eq!(machine.numbers(5, "mem-stores"), (10, 0xd0, 0));
    let why = machine.unsupported(1, "cpu_atom/event=0xd1/");
    assert!(why.contains("another kind of core") && why.contains("CPUs 4-7") && why.contains("CPU 1"), "{why}");
    let why = machine.unsupported(1, "armv8_pmuv3/event=1/");
    assert!(why.contains("`armv8_pmuv3`") && why.contains("cpu_atom, cpu_core"), "{why}");
    assert_eq!(machine.unsupported(9, "cpu/event=1/").matches("cpu_atom").count(), 1, "no PMU serves CPU 9");
}

#[test]
fn on_arm_cpu_is_the_core_s_pmu_by_whatever_name() {
    let machine = Machine::with(&[
        ("armv8_pmuv3_0/type", "8"),
        ("armv8_pmuv3_0/cpus", "0-63"),
        ("armv8_pmuv3_0/format/event", "config:0-15"),
        ("armv8_pmuv3_0/events/l1d_cache_refill", "event=0x0003"),
    ]);
    assert_eq!(machine.numbers(7, "cpu/event=0x48/"), (8, 0x48, 0));
    assert_eq!(machine.numbers(7, "l1d_cache_refill"), (8, 3, 0));
    assert_eq!(
        (machine.numbers(7, "cycles"), machine.numbers(7, "r48")),
        ((0, 0, 0), (4, 0x48, 0)),
        "one kind of core"
    );
}

#[test]
fn without_a_pmu_generic_events_are_still_asked_for_and_named_ones_say_what_is_missing() {
    let machine = Machine::with(&[("software/type", "1"), ("msr/type", "9"), ("msr/format/event", "config:0-63")]);
    assert_eq!((machine.numbers(0, "cycles"), machine.numbers(0, "r1d1")), ((0, 0, 0), (4, 0x1d1, 0)));
    let why = machine.unsupported(0, "cpu/event=0x1/");
    assert!(why.contains("no hardware PMU") && why.contains("devices/cpu"), "{why}");
    let why = machine.unsupported(0, "mrs/event=0/");
    assert!(why.contains("no PMU `mrs`") && why.contains("`msr`"), "{why}");
    let why = machine.unsupported(0, "software/event=2/");
    assert!(why.contains("format") && why.contains("software/config=0x…/"), "{why}");
    for text in ["mem-loads", "ld_blocks.store_forward:u", "frobnications"] {
        let why = machine.unsupported(0, text);
        assert!(why.starts_with(record::NO_PMU) && why.contains("none of perf's names"), "it may be a PMU's: {why}");
    }
    assert!(machine.mistake("cache-mises").contains("no core PMU with names of its own"), "a slip is one everywhere");
    assert!(machine.mistake("L1-icache-stores").contains("no event is called"));
    assert!(machine.mistake("L1-dcache-load-missses").contains("did you mean `L1-dcache-load-misses`?"));
}

#[test]
fn a_tracepoint_is_its_number_in_both_modes_or_says_who_hides_it() {
    let machine = Machine::with(&[]);
    let absent = machine.try_on(0, "sched:sched_switch");
    assert!(matches!(absent, Err(Unencoded::Uncounted(Reading::Unsupported { .. }))), "nothing to mount: {absent:?}");
    machine.write("sys/kernel/tracing/.keep", "");
    let unmounted = machine.try_on(0, "sched:sched_switch");
    let cured = |cure: &str| cure.contains("sudo mount -t tracefs tracefs /sys/kernel/tracing");
    assert!(
        matches!(&unmounted, Err(Unencoded::Uncounted(Reading::Denied { cure, .. })) if cured(cure)),
        "{unmounted:?}"
    );
    machine.write("sys/kernel/tracing/events/sched/sched_switch/id", "372");
    let wanted = Attr { kind: 2, config: 372, config1: 0, config2: 0, exclude_user: false, exclude_kernel: false };
    assert_eq!(machine.try_on(0, "sched:sched_switch"), Ok(wanted));
}
