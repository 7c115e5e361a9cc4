//! `topology` on this machine: its JSON, its screen, what it measures and writes, and what it refuses.

mod common;

use common::{alone, coordinator, stderr, stdout};
use record::Topology;
use std::path::Path;
use std::process::{Command, Output};
use testing::skip;

fn usable_cpus() -> usize {
    let mask = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0)).unwrap();
    (0..nix::sched::CpuSet::count()).filter(|cpu| mask.is_set(*cpu).unwrap_or(false)).count()
}

fn topology() -> Command {
    let mut command = coordinator();
    command.args(["topology", "--quiet"]);
    command
}

fn record(output: &Output) -> Topology {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    let text = stdout(output);
    assert!(text.starts_with("{\n  \"schema_version\": 1,\n"), "the contract's first key: {text}");
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_json_and_the_screen_say_which_cpus_there_are() {
    let seen = record(&topology().arg("--json").output().unwrap());
    assert!(!seen.cpus.is_empty() && seen.cpus.is_sorted_by_key(|cpu| cpu.id), "{seen:?}");
    assert_eq!(seen.cpus.iter().filter(|cpu| cpu.usable).count(), usable_cpus());
    assert!(
        seen.latency_ns.is_empty() && seen.costs.is_none() && seen.sample.is_none(),
        "nothing was measured: {seen:?}"
    );
    for width in [60, 80] {
        let text = stdout(&topology().env("COLUMNS", width.to_string()).output().unwrap());
        assert!(text.contains("socket ") && text.contains("NUMA node "), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
    }
}

#[test]
fn pairs_are_measured_and_the_machine_is_written() {
    if usable_cpus() < 2 {
        return skip("two CPUs");
    }
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("host.toml");
    let measure = || {
        let mut command = topology();
        command.args(["--measure", "--json", "--repetitions", "2", "--write"]).arg(&file);
        command.output().unwrap()
    };
    let seen = record(&measure());
    let sample = seen.sample.as_ref().unwrap();
    assert_eq!((seen.latency_ns.len() as u32, sample.repetitions), (sample.pairs, 2));
    assert!(sample.pairs >= 1 && sample.pairs <= sample.of, "{sample:?}");
    for pair in &seen.latency_ns {
        assert!(pair.from < pair.to && pair.readings >= 4, "{pair:?}");
        assert!(0.0 < pair.min && pair.min <= pair.median && pair.median <= pair.max, "{pair:?}");
    }
    let costs = seen.costs.unwrap();
    for figure in [costs.load_ns, costs.bump_ns, costs.atomic_ns, costs.syscall_ns, costs.l1_ns, costs.memory_ns] {
        assert!(figure.is_some_and(|ns| ns > 0.0), "{costs:?}");
    }
    the_file_is_this_machine(&file, &seen);

    let again = measure();
    assert_eq!(again.status.code(), Some(2), "{}", stdout(&again));
    assert!(stderr(&again).contains("it is there already; name another, or remove it"), "{}", stderr(&again));
}

fn the_file_is_this_machine(file: &Path, seen: &Topology) {
    let text = std::fs::read_to_string(file).unwrap();
    let machine = model::Machine::find(file.to_str().unwrap()).unwrap_or_else(|refusal| panic!("{refusal}\n{text}"));
    assert_eq!((machine.name.as_str(), machine.to_toml()), ("host", text), "read and written again, it is the same");
    assert!(machine.shape.topology().cpus.len() >= seen.cpus.len());
    let source = &machine.sources.iter().find(|source| source.of == "costs").unwrap().text;
    assert!(
        source.starts_with("measured by `coordinator topology --measure` on ") && source.contains(", 20"),
        "{source}"
    );
}

#[test]
fn one_cpu_has_no_distance() {
    let Ok(probe) = Command::new("taskset").args(["-c", "0", "true"]).status() else { return skip("taskset") };
    if !probe.success() {
        return skip("CPU 0");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("host.toml");
    let on_one = |arguments: &[&str], file: &Path, status: i32| {
        let mut command = Command::new("taskset");
        command.args(["-c", "0", env!("CARGO_BIN_EXE_coordinator")]).args(arguments).arg(file);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", stderr(&output));
        stderr(&output)
    };
    let said = on_one(&["topology", "--measure", "--write"], &file, 4);
    assert!(said.contains("a distance lies between two") && !file.exists(), "{said}");
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/false_sharing.toml");
    let said = on_one(&["model"], &scenario, 4);
    assert!(said.contains("no distance can be measured here; name a machine with `--machine`"), "{said}");
    // What is refused is refused before anything is measured.
    let said = on_one(&["model"], &folder.path().join("absent.toml"), 2);
    assert!(said.contains("absent.toml"), "{said}");
}

#[test]
fn flags_that_need_a_measurement_are_refused_without_one() {
    for flags in [&["--write", "host.toml"][..], &["--all-pairs"], &["--repetitions", "3"]] {
        let output = topology().args(flags).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{flags:?}");
        assert!(stderr(&output).contains("--measure"), "{}", stderr(&output));
    }
    let output = topology().args(["--measure", "--write", "/nowhere/at/all/host.toml"]).output().unwrap();
    let expected = if usable_cpus() < 2 { 4 } else { 1 };
    assert_eq!(output.status.code(), Some(expected), "{}", stderr(&output));
}
