//! `model` on the command line, and what `run` shows of the model beside what it measured.

mod common;

use common::{Bench, QUICK, alone, coordinator, stderr, stdout};
use model::{Limits, Machine, Refusal, Tally, simulate};
use record::{ArmSummary, CounterSummary, Kind, ModelRun, ModelRunArm, ModelledRole, Run};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use testing::skip;

const MACHINE: &str = include_str!("../../crates/model/machines/epyc-7r13.toml");

fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios")
}

/// `coordinator model` on a scenario of the library and a machine.
fn model(scenario: &str, machine: &str) -> Command {
    let mut command = coordinator();
    command.arg("model").arg(scenarios().join(scenario)).args(["--machine", machine]);
    command
}

fn record(output: &Output) -> ModelRun {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    let text = stdout(output);
    assert!(text.starts_with("{\n  \"schema_version\": 1,\n"), "the contract's first key: {text}");
    serde_json::from_str(&text).unwrap()
}

fn arm<'a>(run: &'a ModelRun, name: &str) -> &'a ModelRunArm {
    run.arms.iter().find(|arm| arm.name == name).unwrap_or_else(|| panic!("no arm {name}"))
}

fn per_op(role: &ModelledRole, counter: &str) -> f64 {
    role.counters[counter].per_op
}

#[test]
fn the_page_says_that_it_is_modelled_and_fits() {
    for width in [40, 60, 80, 120] {
        let output = model("false_sharing.toml", "epyc-7r13").env("COLUMNS", width.to_string()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let text = stdout(&output);
        assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "Modelled on AMD EPYC 7R13",
            "computed from the program and that machine's figures, not measured.",
            "Variants, as modelled",
            "Lines, as modelled",
            "packed: line 0 [hits[0] hits[1]] written by 0, 1; moves ",
            "writing hits[1] takes it from hits[0] (",
            "padded-128: line 0 [hits[0]] written by 0; stays where it is line 2 [hits[1]] written by 1; stays",
        ] {
            assert!(flat.contains(part), "{part:?} is not in:\n{text}");
        }
    }
}

#[test]
fn packed_counters_miss_once_a_tenure_and_padded_ones_do_not() {
    for machine in model::names() {
        let run = record(&model("false_sharing.toml", machine).arg("--json").output().unwrap());
        assert_eq!((run.machine.name.as_str(), run.seed), (machine, 0));
        for name in ["padded-64", "padded-128", "solo:counter", "unshared:packed"] {
            let role = &arm(&run, name).modelled.roles[0];
            assert!(per_op(role, "coherence_misses") < 0.01, "{machine}, {name}: {role:?}");
        }
        let packed = &arm(&run, "packed").modelled;
        let (misses, line) = (per_op(&packed.roles[0], "coherence_misses"), &packed.lines[0]);
        let tenure_passes = line.tenure_passes.expect("two workers own it in turn");
        assert!(misses > 0.0 && tenure_passes >= 1.0, "{machine}: {packed:?}");
        // Every transfer is one miss and begins one tenure; the window's ends cut through some.
        for moves in [misses, line.transfers_per_op] {
            assert!((moves * tenure_passes - 1.0).abs() < 0.01, "{machine}: {moves} by {tenure_passes}");
        }
        let slower = |name| packed.roles[0].ns_per_op > arm(&run, name).modelled.roles[0].ns_per_op;
        assert!(slower("padded-64") && slower("padded-128"), "{machine}: {packed:?}");
    }
}

#[test]
fn what_stands_in_several_places_of_the_json_agrees() {
    for scenario in ["false_sharing.toml", "read_mostly.toml", "reader_writer.toml"] {
        let run = record(&model(scenario, "xeon-8375c-2s").arg("--json").output().unwrap());
        for ModelRunArm { name, modelled, .. } in &run.arms {
            assert!(modelled.why.is_none() && !modelled.roles.is_empty(), "{scenario}, {name}: {modelled:?}");
            for role in &modelled.roles {
                let workers = || modelled.workers.iter().filter(|worker| worker.role == role.role);
                for (counter, sum) in &role.counters {
                    let of_workers: f64 = workers().map(|worker| worker.counters[counter].value).sum();
                    assert_eq!(of_workers, sum.value, "{scenario}, {name}: {counter}");
                }
                let value = |counter: &str| role.counters[counter].value;
                let kinds = ["cold_misses", "capacity_misses", "conflict_misses", "coherence_misses", "upgrades"];
                assert_eq!(value("l1d_misses"), value("l1d_load_misses") + value("l1d_store_misses"));
                assert_eq!(value("l1d_misses"), kinds.map(value).iter().sum::<f64>(), "{scenario}, {name}: {role:?}");
                let rate: f64 = workers().filter_map(|worker| worker.ns_per_op).map(|ns| 1e9 / ns).sum();
                assert!((role.ops_per_second / rate - 1.0).abs() < 1e-9, "{scenario}, {name}: {role:?} against {rate}");
            }
            for line in modelled.lines.iter().filter(|line| !line.owners.is_empty()) {
                assert!((line.owners.values().sum::<f64>() - 1.0).abs() < 1e-9, "{scenario}, {name}: {line:?}");
                let touching: BTreeSet<u32> = line.writers.iter().chain(&line.readers).copied().collect();
                assert!(line.owners.keys().all(|owner| touching.contains(owner)), "{scenario}, {name}: {line:?}");
                assert!(line.pairs.iter().map(|pair| pair.share).sum::<f64>() < 1.0 + 1e-9, "{line:?}");
            }
        }
    }
}

#[test]
fn a_seed_gives_the_same_bytes_and_another_one_another_run() {
    let of = |seed: &str| model("false_sharing.toml", "epyc-7r13").args(["--json", "--seed", seed]).output().unwrap();
    let [first, again, other] = ["7", "7", "8"].map(of);
    assert_eq!(first.stdout, again.stdout);
    let (first, other) = (record(&first), record(&other));
    assert_eq!((first.seed, other.seed), (7, 8));
    assert_ne!(arm(&first, "packed").modelled, arm(&other, "packed").modelled, "when a line is given up is drawn");
}

#[test]
fn a_range_of_workers_gives_a_curve_in_bounded_memory() {
    // A limit on address space: what would grow with simulated time, or with workers times lines, ends there.
    let output = Command::new("sh")
        .args(["-c", "ulimit -v 262144 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_coordinator"), "model"])
        .arg(scenarios().join("false_sharing.toml"))
        .args(["--machine", "xeon-8375c-2s", "--workers", "1..128", "--json"])
        .output()
        .unwrap();
    let run = record(&output);
    for variant in ["packed", "padded-64", "padded-128"] {
        let points: Vec<_> = run.curve.iter().filter(|point| point.arm == variant).collect();
        let workers: Vec<u32> = points.iter().map(|point| point.workers).collect();
        assert_eq!(workers, [1, 2, 4, 8, 16, 32, 64, 128]);
        let rate: Vec<f64> = points.iter().map(|point| point.ops_per_second.expect("modelled")).collect();
        let scales = rate[7] / rate[0];
        match variant {
            "packed" => assert!(rate[1] < rate[0], "two share a line: {rate:?}"),
            _ => assert!(scales > 64.0 && scales <= 128.5, "nobody shares anything: {rate:?}"),
        }
    }
    let page = stdout(&model("false_sharing.toml", "graviton2").args(["--workers", "32..128"]).output().unwrap());
    assert!(page.contains("Throughput by workers, as modelled"), "{page}");
    assert!(page.contains("128 workers need a CPU each, and `graviton2` has 64"), "{page}");
}

#[test]
fn numbers_of_workers_that_are_none_are_refused() {
    for bad in ["0", "129", "1..129", "0..4", "4..4", "8..2", "1..", "..8", "-1", "two", "1..2..3", ""] {
        let output = model("false_sharing.toml", "epyc-7r13").arg(format!("--workers={bad}")).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{bad:?}: {}", stdout(&output));
        let text = stderr(&output);
        assert!(text.contains(bad) && text.contains("1..128") && stdout(&output).is_empty(), "{bad:?}: {text}");
    }
}

/// Asserts that the machine is refused with the place and each part.
#[track_caller]
fn assert_refused(machine: &Path, parts: &[&str]) {
    let output = model("false_sharing.toml", machine.to_str().unwrap()).output().unwrap();
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(stdout(&output).is_empty() && !text.contains("panicked"), "{text}");
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}

#[test]
fn machine_files_that_are_none_are_refused_with_file_line_and_cure() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    let start = MACHINE.find("[caches.l2]").unwrap();
    let second_level = &MACHINE[start..start + MACHINE[start..].find("\n\n").unwrap()];
    for (from, to, said) in [
        (
            "kib = 512\nways = 8\nns = 2.22",
            "kib = 512\nways = 8\nns = -2.22",
            ["`ns` of [caches.l2] cannot be -2.22", "write nanoseconds from"],
        ),
        ("fetch_ns = 71.3", "fetch_ns = -1", ["`fetch_ns` of [distance.socket] cannot be -1", "write nanoseconds"]),
        ("kib = 512", "kib = 384", ["[caches.l2] has 768 sets, which is no power of two", "256 or 512 KiB"]),
        ("title = ", "title ", ["not valid TOML", "expected"]),
        ("threads = 2", "threads = 2\nthread = 2", ["unknown key `thread` in [shape]", "did you mean `threads`?"]),
    ] {
        assert_eq!(MACHINE.matches(from).count(), 1, "{from:?}");
        std::fs::write(&file, MACHINE.replace(from, to)).unwrap();
        let line = MACHINE[..MACHINE.find(from).unwrap()].lines().count() + to.lines().count();
        assert_refused(&file, &[&format!("mine.toml:{line}:"), said[0], said[1]]);
    }
    std::fs::write(&file, MACHINE.replace(second_level, "")).unwrap();
    let line = MACHINE[..MACHINE.find("[caches]").unwrap()].lines().count() + 1;
    let said = ["[caches.l2] is missing", "add the table [caches.l2]"];
    assert_refused(&file, &[&format!("mine.toml:{line}:"), said[0], said[1]]);
    std::fs::write(&file, b"name = \"\xff\"").unwrap();
    assert_refused(&file, &["mine.toml", "UTF-8"]);
}

#[test]
fn machines_that_are_not_there_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert_refused(folder.path(), &[folder.path().to_str().unwrap(), "directory"]);
    assert_refused(&folder.path().join("none.toml"), &["none.toml", "No such file", "topology --measure"]);
    assert_refused(Path::new("epyc-7r31"), &["no machine is called `epyc-7r31`", "did you mean `epyc-7r13`?"]);
    assert_refused(Path::new(""), &["no machine is called"]);
}

/// Two cores, for scenarios that want more.
fn small_machine(folder: &Path) -> String {
    let file = folder.join("small.toml");
    let shape = "clusters = 6\ncores = 8\nthreads = 2";
    let named = MACHINE.replace("name = \"epyc-7r13\"", "name = \"small\"");
    std::fs::write(&file, named.replace(shape, "clusters = 1\ncores = 2\nthreads = 1")).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn what_the_model_does_not_know_is_said_and_the_other_arms_are_modelled() {
    let folder = tempfile::tempdir().unwrap();
    let small = small_machine(folder.path());
    for (scenario, machine, refused, known, why) in [
        ("robust_owner_dies.toml", "epyc-7r13", "robust", "solo:worker", "`die` ends a process"),
        (
            "spin_vs_sleep.toml",
            &small,
            "locks@kind=ttas,workers=4",
            "locks@kind=ttas,workers=2",
            "workers share a CPU, and the model has no scheduler",
        ),
    ] {
        let run = record(&model(scenario, machine).arg("--json").output().unwrap());
        let refused = &arm(&run, refused).modelled;
        assert!(refused.why.as_ref().is_some_and(|told| told.contains(why)), "{scenario}: {refused:?}");
        assert!(refused.roles.is_empty() && refused.lines.is_empty(), "{scenario}: {refused:?}");
        let known = &arm(&run, known).modelled;
        assert!(known.why.is_none() && known.roles[0].ns_per_op.is_some(), "{scenario}: {known:?}");
        let page = stdout(&model(scenario, machine).env("COLUMNS", "120").output().unwrap());
        assert!(page.contains("not modelled: ") && page.contains(why), "{page}");
    }
}

#[test]
fn where_no_arm_can_be_modelled_the_status_says_so() {
    let page = |output: &Output| {
        assert_eq!(output.status.code(), Some(4), "{}{}", stdout(output), stderr(output));
        stdout(output).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let touch = page(&model("first_touch.toml", "epyc-7r13").output().unwrap());
    assert!(touch.contains("first, again: not modelled: steps on regions are about page tables"), "{touch}");
    let crowd = page(&model("false_sharing.toml", "ryzen-5950x").args(["--workers", "64"]).output().unwrap());
    assert!(crowd.contains("not modelled: 64 workers need a CPU each, and `ryzen-5950x` has 32"), "{crowd}");
    let across = page(&model("false_sharing.toml", "ryzen-5950x").args(["--cpus", "cross-socket"]).output().unwrap());
    assert!(across.contains("2 sockets; the machine has them on 1"), "{across}");
}

#[test]
fn cpus_that_the_machine_lacks_are_refused_without_a_word_on_this_process() {
    let output = model("false_sharing.toml", "ryzen-5950x").args(["--cpus", "0,40"]).output().unwrap();
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("CPU 40") && text.contains("0-31") && !text.contains("this process"), "{text}");
}

/// What the headline role counted. An arm of which the machine spoiled every repetition has none.
fn headline_counter(arm: &ArmSummary) -> Option<&CounterSummary> {
    let role = arm.roles.iter().find(|role| role.role == arm.headline_role)?;
    role.counters.get("l1d_load_misses")
}

/// A run of the quick scenario, once a repetition of a variant was sound: then there is a machine to model, and a measured
/// count for it to stand beside.
fn run(arguments: &[&str]) -> (Run, String) {
    let _alone = alone();
    let mut attempts = ["20ms", "100ms", "500ms", "1s", "2s"].into_iter().map(|window| {
        let bench = Bench::new(QUICK);
        let output = bench.run().args(["--quiet", "--window", window]).args(arguments).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 3)), "{:?}: {}", output.status, stderr(&output));
        let json = std::fs::read_to_string(bench.only_result().join("run.json")).unwrap();
        (serde_json::from_str::<Run>(&json).unwrap(), stdout(&output))
    });
    let is_sound = |(run, _): &(Run, String)| {
        let is_probed = run.method.regimes.iter().any(|regime| regime.contended_ns.is_some());
        is_probed && run.arms.iter().any(|arm| arm.kind == Kind::Variant && headline_counter(arm).is_some())
    };
    attempts.find(is_sound).expect("a repetition that nothing spoiled")
}

const HEADING: &str = "Modelled: computed from the program and this run's probes, not measured";

fn has_two_cpus() -> bool {
    let mask = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0)).unwrap();
    (0..nix::sched::CpuSet::count()).filter(|cpu| mask.is_set(*cpu).unwrap_or(false)).count() >= 2
}

/// Every arm but the twins of others has a modelled part, whose counts stand beside the measured ones.
fn assert_modelled(run: &Run) {
    for arm in &run.arms {
        if matches!(arm.kind, Kind::Control | Kind::Plain) {
            assert!(arm.modelled.is_none(), "{}", arm.name);
            continue;
        }
        let modelled = arm.modelled.as_ref().unwrap_or_else(|| panic!("{} has none", arm.name));
        assert_eq!((modelled.machine.as_str(), &modelled.why), ("host", &None), "{}", arm.name);
        assert!(run.method.regimes.iter().any(|regime| Some(regime.number) == modelled.regime), "{modelled:?}");
        let computed = modelled.role(&arm.headline_role).unwrap().counters.get("l1d_load_misses");
        assert!(computed.is_some(), "{}", arm.name);
        if let Some(counter) = headline_counter(arm) {
            assert_eq!(counter.modelled.as_ref(), computed, "{}", arm.name);
        }
    }
    let misses = |name: &str| {
        let arm = run.arms.iter().find(|arm| arm.name == name).unwrap();
        let role = arm.modelled.as_ref().unwrap().role("counter").unwrap();
        role.counters["coherence_misses"].per_op
    };
    assert!(misses("packed") > 0.0 && misses("padded") < 0.01, "{} and {}", misses("packed"), misses("padded"));
}

#[test]
fn a_run_with_model_shows_both_under_their_own_headings() {
    if !has_two_cpus() {
        return skip("two CPUs");
    }
    let (run, page) = run(&["--model"]);
    assert_modelled(&run);
    assert_eq!(page.matches(HEADING).count(), 1, "{page}");
    assert!(page.contains("Variants, as measured") && page.contains("Lines, as modelled"), "{page}");
}

#[test]
fn a_run_without_model_shows_it_where_the_hardware_does_not_count() {
    if !has_two_cpus() {
        return skip("two CPUs");
    }
    let (run, page) = run(&[]);
    let counts = |arm| headline_counter(arm).is_none_or(|counter| counter.measured.reading.value().is_some());
    if run.arms.iter().all(counts) {
        assert!(run.arms.iter().all(|arm| arm.modelled.is_none()) && !page.contains("odelled"), "{page}");
    } else {
        assert_modelled(&run);
        assert_eq!(page.matches(HEADING).count(), 1, "{page}");
    }
}

#[test]
fn every_scenario_of_the_library_is_modelled_on_every_machine() {
    let mut modelled_arms = 0;
    for machine in model::names().map(|name| Machine::find(name).unwrap()) {
        let topology = machine.shape.topology();
        let entries = [scenarios(), scenarios().join("cases")].map(|folder| std::fs::read_dir(folder).unwrap());
        for scenario in entries.into_iter().flatten().map(|entry| entry.unwrap().path()) {
            if scenario.extension().is_none_or(|extension| extension != "toml") {
                continue;
            }
            let plan = scenario::load_with(&scenario, &[]).unwrap().plan;
            for arm in plan::bind(&plan, &topology, 1).unwrap().arms {
                let place = format!("{}, {} on {}", scenario.display(), arm.arm.name, machine.name);
                let program = arm.program.unwrap_or_else(|not| panic!("{place}: {}", not.why));
                let limits = Limits { accesses: 20_000, window_ns: 5e6 };
                match simulate(&program, &machine, &topology, limits, 1) {
                    Ok(modelled) => {
                        modelled_arms += 1;
                        assert!(modelled.stuck.is_empty(), "{place}: {:?} wait for ever", modelled.stuck);
                        assert!(modelled.workers.iter().any(|worker| worker.passes > 0), "{place}: {modelled:?}");
                        modelled.workers.iter().for_each(|worker| assert_adds_up(&worker.tally, &place));
                    }
                    Err(Refusal::Pages | Refusal::Deaths) => {}
                    Err(refusal) => panic!("{place}: {refusal}"),
                }
            }
        }
    }
    assert!(modelled_arms > 100, "{modelled_arms}");
}

fn assert_adds_up(tally: &Tally, place: &str) {
    let misses = tally.l1d_load_misses + tally.l1d_store_misses;
    let kinds = tally.cold_misses + tally.capacity_misses + tally.conflict_misses;
    assert_eq!(misses, kinds + tally.coherence_misses + tally.upgrades, "{place}: {tally:?}");
    assert!(tally.llc_load_misses <= tally.llc_loads, "{place}: {tally:?}");
}
