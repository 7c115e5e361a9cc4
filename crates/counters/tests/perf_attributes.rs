//! What is asked of the kernel is what perf asks for the same words: perf prints its attributes even where the machine
//! has no such event.

use counters::{Attr, Order, Selection};
use host::Root;
use plan::{CpuId, EventSpec};
use std::process::Command;
use testing::skip;

/// Names beside the lab's own: aliases, and every cache event that perf knows.
const NAMES: &str = "cpu-cycles idle-cycles-frontend stalled-cycles-frontend idle-cycles-backend bus-cycles ref-cycles \
                     branches branch-instructions branch-misses faults minor-faults major-faults cs migrations \
                     cpu-clock alignment-faults emulation-faults cgroup-switches \
                     L1-dcache-loads L1-dcache-load-misses L1-dcache-stores L1-dcache-store-misses \
                     L1-dcache-prefetches L1-dcache-prefetch-misses L1-icache-loads L1-icache-load-misses \
                     L1-icache-prefetches L1-icache-prefetch-misses LLC-loads LLC-load-misses LLC-stores \
                     LLC-store-misses LLC-prefetches LLC-prefetch-misses dTLB-loads dTLB-load-misses dTLB-stores \
                     dTLB-store-misses dTLB-prefetches dTLB-prefetch-misses iTLB-loads iTLB-load-misses \
                     branch-loads branch-load-misses node-loads node-load-misses node-stores node-store-misses \
                     node-prefetches node-prefetch-misses l1d-read-miss L1-data-write bpu-read r1d1 r0";

/// `type` and `config` of one attempt of perf's.
type Asked = (u32, u64);

/// Every attempt that perf makes for `event`: several on a machine with several kinds of core, and a second one where
/// the first was refused. `None` where there is no perf to ask.
fn perf_asks(event: &str) -> Option<Vec<Asked>> {
    let output = Command::new("perf").args(["stat", "-vv", "-e", event, "--", "true"]).output().ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let blocks: Vec<&str> = text.split("perf_event_attr:").skip(1).collect();
    Some(blocks.into_iter().map(asked).collect())
}

/// A field that is 0 is not printed by perf before 6.6. The later ones print a number with its meaning behind it:
/// `type  3 (PERF_TYPE_HW_CACHE)`, `config  0x100000000 (…)`; some put the meaning alone.
fn asked(block: &str) -> Asked {
    let field = |name: &str| {
        let mut rows = block.lines().take_while(|line| !line.starts_with("----")).map(str::split_whitespace);
        rows.find_map(|mut words| (words.next() == Some(name)).then(|| words.next().unwrap_or("0").to_owned()))
    };
    let number =
        |text: Option<String>| text.map_or(0, |text| number(&text).unwrap_or_else(|| panic!("{text}: {block}")));
    (number(field("type")) as u32, number(field("config")))
}

fn number(text: &str) -> Option<u64> {
    let named =
        ["PERF_TYPE_HARDWARE", "PERF_TYPE_SOFTWARE", "PERF_TYPE_TRACEPOINT", "PERF_TYPE_HW_CACHE", "PERF_TYPE_RAW"];
    let position = named.iter().position(|name| *name == text.trim_matches(['(', ')'])).map(|at| at as u64);
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    };
    parsed.or(position)
}

/// What the lab asks for the user's `event` on the first CPU, where it asks at all.
fn lab_asks(event: &str) -> Option<Asked> {
    let spec: EventSpec = event.parse().unwrap_or_else(|error| panic!("{event}: {error}"));
    let key = spec.key().to_owned();
    let selection = Selection::choose(&Root::system(), &[CpuId(0)], &[spec]).ok()?;
    let orders = selection.orders().remove(0).orders;
    let order = orders.iter().find(|order| order.name() == key).expect("an order for each event");
    numbers(order)
}

fn numbers(order: &Order) -> Option<Asked> {
    match order {
        Order::Count(event) => {
            let Attr { kind, config, .. } = event.attr;
            Some((kind, config))
        }
        Order::Refused { .. } | Order::Shootdowns | Order::Log(_) => None,
    }
}

/// Whether perf can be asked; where it cannot, that is said.
fn has_perf() -> bool {
    let has = Command::new("perf").arg("--version").output().is_ok_and(|output| output.status.success());
    if !has {
        skip("perf is not installed or does not run (Debian: linux-perf; Ubuntu: linux-tools-generic)");
    }
    has
}

/// perf 6.7 and later takes the core PMU's own event of a name before the kernel's generic one: it then asks what the
/// lab asks for the name between slashes.
#[track_caller]
fn assert_same(name: &str, event: &str, ours: Asked) {
    let asked = perf_asks(event).expect("perf is there");
    assert!(!asked.is_empty(), "perf printed no attribute for {event}");
    let is_name = !event.contains(['/', ':']);
    let of_pmu = || is_name.then(|| lab_asks(&format!("cpu/{event}/"))).flatten();
    let same = asked.contains(&ours) || of_pmu().is_some_and(|own| asked.contains(&own));
    assert!(same, "{name} ({event}): perf asks {asked:x?}, the lab {ours:x?}");
}

#[test]
fn each_of_the_lab_s_events_is_what_perf_means_by_its_spelling() {
    if !has_perf() {
        return;
    }
    let selection = Selection::choose(&Root::system(), &[CpuId(0)], &[]).expect("nothing of a user's to refuse");
    let orders = selection.orders().remove(0).orders;
    let mut compared = 0;
    for event in selection.events() {
        let (Some(spelling), Some(order)) = (&event.event, orders.iter().find(|order| order.name() == event.name))
        else {
            continue;
        };
        // What is refused (a tracepoint without tracefs, an event that this core lacks) has no numbers to compare.
        let Some(ours) = numbers(order) else { continue };
        assert_same(&event.name, spelling, ours);
        compared += 1;
    }
    assert!(compared >= 10, "only {compared} events were compared");
}

#[test]
fn every_name_of_perf_s_that_a_user_may_write_is_the_event_that_perf_means() {
    if !has_perf() {
        return;
    }
    for name in NAMES.split_whitespace() {
        let ours = lab_asks(name).unwrap_or_else(|| panic!("{name}: unknown to the lab"));
        assert_same(name, name, ours);
    }
}

#[test]
fn names_that_perf_refuses_are_refused() {
    if !has_perf() {
        return;
    }
    for name in ["L1-icache-stores", "iTLB-stores", "branch-prefetches", "LLC-load-lots"] {
        assert_eq!(perf_asks(name).expect("perf is there"), [], "perf knows {name}");
        let spec: EventSpec = name.parse().expect("a name");
        assert!(Selection::choose(&Root::system(), &[CpuId(0)], &[spec]).is_err(), "{name}");
    }
}

#[test]
fn a_tracepoint_s_number_is_perf_s() {
    if !has_perf() {
        return;
    }
    let Some(ours) = lab_asks("sched:sched_switch") else {
        return skip("tracefs is not mounted, or not readable for this user");
    };
    assert_same("sched:sched_switch", "sched:sched_switch", ours);
}

#[test]
fn attributes_are_read_as_each_perf_prints_them() {
    let old = "\n  size   128\n  config   0x1\n----\n";
    let new = "\n  type                             3 (PERF_TYPE_HW_CACHE)\n  size   136\n  config   0x10002\n";
    let hybrid = "\n  type  4 (cpu_core)\n  config  0x1 (x)\n----\n  type 9\n";
    let named = "\n  type  PERF_TYPE_HW_CACHE\n  config  5\n";
    let zero = "\n  type  0 (PERF_TYPE_HARDWARE)\n  config  0x400000000 (cpu_core/PERF_COUNT_HW_CPU_CYCLES/)\n";
    let all = [old, new, hybrid, named, zero].map(asked);
    assert_eq!(all, [(0, 1), (3, 0x10002), (4, 1), (3, 5), (0, 4 << 32)]);
}
