//! What a machine file is refused for, and where.

use model::Machine;

/// A machine file that is taken; each case spoils one thing in it.
const SOUND: &str = r#"name = "toy"
title = "A toy"
protocol = "MOESI"
source = "none published; taken as a toy's, because it is one"

[shape]
sockets = 2
clusters = 2
cores = 4
threads = 2
source = "a toy"

[caches]
inclusive = false
pairs = true
memory_ns = 100
source = "a toy"

[caches.l1]
kib = 32
ways = 8
source = "a toy"

[caches.l2]
kib = 512
ways = 8
ns = 2.5
source = "a toy"

[caches.llc]
kib = 32768
ways = 16
ns = 10.5
source = "a toy"

[distance.cluster]
fetch_ns = 15.0
tenure_ns = 2.0
source = "a toy"

[distance.socket]
fetch_ns = 70.0
tenure_ns = 15.0
source = "a toy"

[distance.machine]
fetch_ns = 130.0
tenure_ns = 30.0
source = "a toy"

[costs]
load_ns = 0.1
store_ns = 0.25
bump_ns = 0.3
atomic_ns = 2.4
fence_ns = 8
pause_ns = 12
flush_ns = 50
instruction_ns = 0.08
clock_ns = 12
syscall_ns = 100
futex_ns = 250
wake_ns = 3_000.0
store_buffer = 64
window = 256
source = "a toy"
sources = { wake_ns = "another toy" }
"#;

/// The message for the sound file with `from`, which it holds once, replaced by `to`.
fn refusal(from: &str, to: &str) -> String {
    assert_eq!(SOUND.matches(from).count(), 1, "{from:?}");
    match Machine::parse("toy.toml", &SOUND.replace(from, to)) {
        Ok(machine) => panic!("{from:?} as {to:?} is taken: {machine:?}"),
        Err(refusal) => refusal.to_string(),
    }
}

/// Asserts the place, and that the message holds each part.
fn assert_refused(from: &str, to: &str, place: &str, parts: &[&str]) {
    let message = refusal(from, to);
    assert!(message.contains(&format!("--> toy.toml:{place}\n")), "not at {place}:\n{message}");
    for part in parts {
        assert!(message.contains(part), "no {part:?} in:\n{message}");
    }
}

#[test]
fn the_sound_file_is_taken_and_keeps_its_sources() {
    let machine = Machine::parse("toy.toml", SOUND).unwrap_or_else(|refusal| panic!("{refusal}"));
    assert_eq!((machine.shape.topology().cpus.len(), machine.caches.l1.ns, machine.costs.wake_ns), (32, 0.0, 3000.0));
    let source = |of: &str| machine.sources.iter().find(|source| source.of == of).map(|source| source.text.as_str());
    assert_eq!(source("costs.wake_ns"), Some("another toy"));
    assert_eq!((source("costs"), source("costs.load_ns")), (Some("a toy"), None), "the table's is that of the others");
    assert_eq!(source(""), Some("none published; taken as a toy's, because it is one"));
    assert_eq!(Machine::parse("again.toml", &machine.to_toml()).unwrap(), machine);
}

#[test]
fn a_negative_latency() {
    assert_refused(
        "fetch_ns = 70.0",
        "fetch_ns = -70.0",
        "42:12",
        &["`fetch_ns` of [distance.socket] cannot be -70.0", "negative", "write nanoseconds from 0.001 to 1000000000"],
    );
    assert_refused("ns = 2.5", "ns = -1", "27:6", &["`ns` of [caches.l2] cannot be -1", "negative"]);
}

#[test]
fn numbers_that_are_none() {
    assert_refused("atomic_ns = 2.4", "atomic_ns = nan", "55:13", &["cannot be nan", "not a finite number"]);
    assert_refused("atomic_ns = 2.4", "atomic_ns = inf", "55:13", &["cannot be inf", "not a finite number"]);
    assert_refused("fence_ns = 8", "fence_ns = 0", "56:12", &["nothing takes no time"]);
    assert_refused("memory_ns = 100", "memory_ns = 1e10", "16:13", &["cannot be 1e10", "out of bounds"]);
    assert_refused("load_ns = 0.1", "load_ns = \"0.1ns\"", "52:11", &["`load_ns` is a string", "expected nanoseconds"]);
}

#[test]
fn sets_that_are_no_power_of_two() {
    assert_refused(
        "kib = 32768",
        "kib = 55296",
        "31:7",
        &[
            "[caches.llc] has 55296 sets, which is no power of two",
            "55296 KiB in 16 ways of 64-byte lines",
            "write 32768 or 65536 KiB, and say in `source` how it was rounded",
        ],
    );
    // Not even a whole number of sets.
    assert_refused("ways = 16", "ways = 24", "31:7", &["[caches.llc] has 21845.333"]);
}

#[test]
fn a_second_level_that_cannot_hold_the_first() {
    assert_refused(
        "kib = 512",
        "kib = 16",
        "25:7",
        &["[caches.l2] is smaller than [caches.l1]", "check the two sizes"],
    );
}

#[test]
fn zero_ways() {
    assert_refused("ways = 16", "ways = 0", "32:8", &["`ways` cannot be 0", "not within 1 to 1024", "lines a set"]);
}

#[test]
fn a_missing_level() {
    let level = "[caches.l2]\nkib = 512\nways = 8\nns = 2.5\nsource = \"a toy\"\n";
    assert_refused(
        level,
        "",
        "13:2",
        &["[caches.l2] is missing", "add the table [caches.l2] with `kib`, `ways`, `ns`"],
    );
    let costs = &SOUND[SOUND.find("[costs]").unwrap()..];
    assert_refused(costs, "", "1:1", &["[costs] is missing", "`load_ns`"]);
}

#[test]
fn a_missing_figure() {
    assert_refused("window = 256\n", "", "51:2", &["`window` is missing from [costs]"]);
    let parts = ["`inclusive` is missing from [caches]", "write inclusive = false"];
    assert_refused("inclusive = false\n", "", "13:2", &parts);
}

#[test]
fn a_missing_or_empty_source() {
    assert_refused(
        "tenure_ns = 15.0\nsource = \"a toy\"",
        "tenure_ns = 15.0",
        "41:11",
        &["`source` is missing from [distance.socket]", "\"none published; taken as …, because …\""],
    );
    let empty = "tenure_ns = 2.0\nsource = \" \"";
    assert_refused("tenure_ns = 2.0\nsource = \"a toy\"", empty, "39:10", &["`source` is empty"]);
    assert_refused("\"another toy\"", "7", "67:23", &["`wake_ns` is an integer", "expected text in quotes"]);
}

#[test]
fn an_unknown_key() {
    let known = |key: &str| format!("did you mean `{key}`?");
    let parts = ["unknown key `puase_ns` in [costs]", &known("pause_ns")];
    assert_refused("pause_ns = 12", "puase_ns = 12", "57:1", &parts);
    let parts = ["unknown key `machin` in [distance]", &known("machine")];
    assert_refused("[distance.machine]", "[distance.machin]", "46:11", &parts);
    let parts = ["unknown key `woke_ns` in `sources` of [costs]", &known("wake_ns")];
    assert_refused("{ wake_ns =", "{ woke_ns =", "67:13", &parts);
    let first = "kib = 32\nways = 8\n";
    assert_refused(first, &format!("{first}ns = 1.0\n"), "22:1", &["unknown key `ns` in [caches.l1]"]);
}

#[test]
fn an_unknown_protocol() {
    let parts = ["`protocol` cannot be `MOSEI`", "did you mean `MOESI`?", "`MESI`, `MESIF` or `MOESI`"];
    assert_refused("\"MOESI\"", "\"MOSEI\"", "3:12", &parts);
}

#[test]
fn distances_that_the_shape_has_must_be_there_and_others_need_not() {
    let far = "[distance.machine]\nfetch_ns = 130.0\ntenure_ns = 30.0\nsource = \"a toy\"\n";
    assert_refused(far, "", "36:2", &["[distance.machine] is missing", "`fetch_ns`, `tenure_ns`"]);
    let single = SOUND.replace("sockets = 2", "sockets = 1");
    for text in [single.replace(far, ""), single] {
        let machine = Machine::parse("toy.toml", &text).unwrap_or_else(|refusal| panic!("{refusal}"));
        assert_eq!(machine.distances.machine, machine.distances.socket, "no request travels it");
        assert_eq!(Machine::parse("again.toml", &machine.to_toml()).unwrap(), machine);
    }
}

#[test]
fn shapes_that_are_no_machine() {
    assert_refused("cores = 4", "cores = 0", "9:9", &["`cores` cannot be 0", "not within 1 to 1024"]);
    let one = SOUND.replace("sockets = 2", "sockets = 1").replace("clusters = 2", "clusters = 1");
    let refusal = Machine::parse("toy.toml", &one.replace("cores = 4", "cores = 1")).unwrap_err().to_string();
    assert!(refusal.contains("--> toy.toml:6:2") && refusal.contains("describe at least two"), "{refusal}");
    assert_refused("sockets = 2", "sockets = 1024", "6:2", &["[shape] has 16384 CPUs", "at most 8192"]);
}

#[test]
fn names_that_no_flag_could_take() {
    assert_refused("\"toy\"", "\"My toy\"", "1:8", &["`My toy` cannot name a machine", "use a-z, 0-9 and `-`"]);
    assert_refused("\"A toy\"", "\"A \\u001b[2Jtoy\"", "2:9", &["`title` holds control characters"]);
}

#[test]
fn what_is_no_toml() {
    assert_refused("kib = 32\n", "kib = \n", "20:7", &["not valid TOML"]);
    assert_refused("sockets = 2", "sockets = 2\nsockets = 2", "8:1", &["duplicate key", "keep one of the two"]);
    let shape = "[shape]\nsockets = 2\nclusters = 2\ncores = 4\nthreads = 2\nsource = \"a toy\"\n";
    assert_refused(shape, "shape = 3\n", "6:9", &["`shape` is an integer", "expected a table"]);
}

#[test]
fn several_problems_come_together_in_file_order() {
    let spoilt =
        SOUND.replace("cores = 4", "cores = -4").replace("ns = 2.5", "ns = nan").replace("\"MOESI\"", "\"MSI\"");
    let refusal = Machine::parse("toy.toml", &spoilt).unwrap_err();
    assert_eq!(refusal.count(), 3, "{refusal}");
    let text = refusal.to_string();
    let places = ["toy.toml:3:12", "toy.toml:9:9", "toy.toml:27:6"].map(|place| text.find(place).expect(place));
    assert!(places.is_sorted(), "{text}");
}
