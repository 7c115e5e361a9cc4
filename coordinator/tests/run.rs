//! The main job on real processes: what it prints, what it leaves, what its JSON says.

mod common;

use common::{Bench, QUICK, alone, coordinator, stderr, stdout};
use record::Run;
use serde_json::Value;

/// The contract's keys, in order.
const TOP: [&str; 16] = [
    "schema_version",
    "tool",
    "command",
    "seed",
    "started_utc",
    "duration_s",
    "host",
    "scenario",
    "method",
    "events",
    "arms",
    "observations",
    "expect",
    "diagnosis",
    "warnings",
    "code",
];

fn is_done(code: Option<i32>) -> bool {
    matches!(code, Some(0 | 3)) // 3: the machine was noisy, which no test may mind
}

#[test]
fn a_run_leaves_the_contracts_files_and_prints_the_same_json() {
    let _alone = alone();
    let bench = Bench::new(QUICK);
    let output = bench.run().args(["--json", "--seed", "7", "--quiet"]).output().unwrap();
    assert!(is_done(output.status.code()), "{:?}: {}", output.status, stderr(&output));
    let file = std::fs::read_to_string(bench.only_result().join("run.json")).unwrap();
    assert_eq!(stdout(&output).trim_end(), file.trim_end());
    let value: Value = serde_json::from_str(&file).unwrap();
    let at = |key: &str| file.find(&format!("\n  \"{key}\":")).unwrap_or_else(|| panic!("no top-level key {key}"));
    assert!(TOP.windows(2).all(|pair| at(pair[0]) < at(pair[1])), "keys stand in the contract's order");
    assert_eq!(value.as_object().unwrap().len(), TOP.len());

    let run: Run = serde_json::from_str(&file).unwrap();
    assert_eq!((run.schema_version, run.seed), (1, 7));
    let names: Vec<&str> = run.arms.iter().map(|a| a.name.as_str()).collect();
    assert_eq!(names, ["packed", "padded", "solo:counter", "unshared:packed", "control"]);
    let bytes: Vec<u64> = run.arms.iter().take(2).map(|a| a.bytes).collect();
    assert_eq!(bytes, [16, 256]);
    // Three blocks, baselines in every other one: the first and the third. An extension adds one, without baselines.
    let full = |arm: &str| run.observations.iter().filter(|o| o.arm == arm).count() as u32;
    assert_eq!(full("packed"), 2 * run.method.blocks);
    assert_eq!((full("solo:counter"), full("unshared:packed")), (2, 4));
    for observation in &run.observations {
        assert!(observation.passes > 0 || !observation.spoiled.is_empty(), "{observation:?}");
        assert!(observation.kept_ns <= observation.window_ns * 1.001, "{observation:?}");
        assert!(observation.noted_ns.is_some_and(|noted| noted > observation.window_ns), "{observation:?}");
        assert!(observation.kept_passes <= observation.passes, "{observation:?}");
        assert!(
            observation.kept_ns + observation.lost_ns <= observation.window_ns.max(20e6) * 1.001,
            "{observation:?}"
        );
        assert!(observation.counters.contains_key("l1d_load_misses"));
        assert!(observation.counters.values().all(|r| r.value() != Some(0) || r.state() == "counted"));
    }
    let rows = std::fs::read_to_string(bench.only_result().join("samples.csv")).unwrap().lines().count();
    assert_eq!(rows, run.observations.len() + 1);
}

#[test]
fn workers_are_pinned_apart_and_layouts_are_where_they_say() {
    let _alone = alone();
    let bench = Bench::new(QUICK);
    let output = bench.run().args(["--json", "--quiet"]).output().unwrap();
    let run: Run = serde_json::from_slice(&output.stdout).unwrap();
    let packed = &run.arms[0];
    let first: Vec<_> = run.observations.iter().filter(|o| o.arm == "packed" && o.block == 0).collect();
    assert_eq!(first.len(), 2);
    assert_ne!(first[0].cpu, first[1].cpu);
    let offsets: Vec<(u64, u64)> = packed.layout.iter().map(|row| (row.offset, row.line)).collect();
    assert_eq!(offsets, [(0, 0), (8, 0)]);
    let apart: Vec<(u64, u64)> = run.arms[1].layout.iter().map(|row| (row.offset, row.line)).collect();
    assert_eq!(apart, [(0, 0), (128, 2)]);
}

#[test]
fn the_table_is_readable_and_ends_with_how_to_repeat_it() {
    let _alone = alone();
    let bench = Bench::new(QUICK);
    let output = bench.run().args(["--seed", "7"]).output().unwrap();
    assert!(is_done(output.status.code()), "{}", stderr(&output));
    let text = stdout(&output);
    for part in ["packed", "padded", "ns/op", "results", "--seed 7"] {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
    assert!(!text.contains('\u{1b}'), "no colour into a pipe");
    assert!(stderr(&output).contains("measuring"), "a line a phase on standard error");
}

#[test]
fn a_dry_run_creates_nothing() {
    let bench = Bench::new(QUICK);
    let output = bench.run().arg("--dry-run").output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(
        stdout(&output).contains("3 blocks") && stdout(&output).contains("packed: 16 bytes"),
        "{}",
        stdout(&output)
    );
    assert!(!bench.results().exists());
}

#[test]
fn show_code_prints_the_loop_with_its_steps() {
    let bench = Bench::new(QUICK);
    let output = bench.run().args(["--show-code", "--only", "packed"]).output().unwrap();
    let text = stdout(&output);
    assert!(text.contains("bump hits[me]") && text.contains("mov"), "{text}");
}

#[test]
fn a_lock_excludes_and_its_waits_are_told() {
    let _alone = alone();
    let scenario = QUICK
        .replace("[[role]]", "[field.total]\ntype = \"u64\"\n[lock.m]\n[[role]]")
        .replace("loop = [\"bump hits[me]\"]", "loop = [\"lock m\", \"bump total\", \"unlock m\"]");
    // In a short window on a busy machine the two may never meet, and every repetition may be spoiled: then a longer one
    // is asked for, and what stands in observations counts.
    let met = |window: &&str| {
        let bench = Bench::new(&scenario);
        let output = bench.run().args(["--json", "--quiet", "--only", "packed", "--window", window]).output().unwrap();
        assert!(is_done(output.status.code()), "{}", stderr(&output));
        let run: Run = serde_json::from_slice(&output.stdout).unwrap();
        run.arms[0].locks.iter().for_each(assert_lock_is_told);
        let shared = run.observations.iter().filter(|o| o.arm == "packed").flat_map(|o| &o.locks);
        let (contended, handoffs) = shared.fold((0, 0), |sum, lock| (sum.0 + lock.contended, sum.1 + lock.handoffs));
        contended > 0 && handoffs > 0
    };
    assert!(["20ms", "200ms", "1s"].iter().any(met), "nobody ever waited");
}

fn assert_lock_is_told(lock: &record::LockSummary) {
    assert_eq!((lock.lock.as_str(), lock.kind.as_str()), ("m", "pthread"));
    assert!(lock.acquisitions > 0 && lock.contended <= lock.acquisitions, "{lock:?}");
    assert!(lock.handoffs < lock.acquisitions && lock.longest_run >= 1 && lock.owner_died == 0, "{lock:?}");
    let waits = lock.wait_ns_all.as_ref();
    assert_eq!(waits.map_or(0, |all| all.count) + lock.waits_lost, lock.contended, "{lock:?}");
    assert!(waits.is_none_or(|all| all.min > 0 && all.p50 <= all.p99 && all.p99 <= all.max), "{lock:?}");
    assert_eq!(lock.by_worker.iter().map(|w| w.acquisitions).sum::<u64>(), lock.acquisitions);
}

#[test]
fn a_hand_over_makes_equal_passes_on_both_sides() {
    let _alone = alone();
    let scenario = r#"
title = "Ping"
question = "How long is a round trip?"
[measure]
window = "20ms"
warm_up = "2ms"
repetitions = 3
[field.ping]
type = "u32"
[field.pong]
type = "u32"
[[role]]
name = "ping"
loop = ["post ping", "wait pong"]
[[role]]
name = "pong"
loop = ["wait ping", "post pong"]
"#;
    let bench = Bench::new(scenario);
    // Where one side has no CPU for a whole window, the other waits in vain: a busy machine gets a longer window.
    let measured = ["20ms", "200ms", "2s"].iter().find_map(|window| {
        let output = bench.run().args(["--json", "--quiet", "--window", window]).output().unwrap();
        let in_vain = stderr(&output).contains("completed no pass");
        assert!(is_done(output.status.code()) || in_vain, "{}", stderr(&output));
        (!in_vain).then(|| serde_json::from_slice::<Run>(&output.stdout).unwrap())
    });
    let run = measured.expect("a repetition in which the ball was passed");
    assert!(run.arms.iter().all(|arm| !arm.name.starts_with("solo") && !arm.name.starts_with("unshared")));
    for pair in run.observations.chunks(2) {
        let (ping, pong) = (pair[0].passes as f64, pair[1].passes as f64);
        // The two open and close their windows one clock read apart.
        assert!((ping - pong).abs() <= 0.1 * ping.max(pong) + 1_000.0, "{ping} against {pong}");
    }
}

#[test]
fn workers_that_share_a_cpu_have_no_mask() {
    let _alone = alone();
    let bench = Bench::new(
        &QUICK
            .replace("[measure]", "oversubscribe = true\n[measure]")
            .replace("workers = 2", "workers = 2\ncpus = [0, 0]"),
    );
    let output = bench.run().args(["--json", "--quiet", "--only", "packed"]).output().unwrap();
    assert!(is_done(output.status.code()), "{:?} {}", output.status, stderr(&output));
    let run: Run = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(run.arms[0].mask, "none");
    let packed: Vec<_> = run.observations.iter().filter(|o| o.arm == "packed").collect();
    assert!(!packed.is_empty(), "{:?}", run.observations);
    assert!(packed.iter().all(|o| o.kept_passes == o.passes && o.cpu == 0), "the whole window counts");
    assert!(packed.iter().all(|o| o.transfer_before_ns.is_none()), "one CPU transfers nothing to itself");
}

/// Probes between workers that take turns on a CPU waited for the scheduler at each throw, and the deadline came first.
#[test]
fn many_workers_on_one_cpu_get_through() {
    let _alone = common::alone();
    let scenario = QUICK.replace("[measure]", "oversubscribe = true\n[measure]").replace("workers = 2", "workers = 24");
    let bench = Bench::new(&scenario);
    let output = bench.run().args(["--json", "--quiet", "--only", "padded", "--repetitions", "1"]).output().unwrap();
    assert!(is_done(output.status.code()), "{:?} {}", output.status, stderr(&output));
    let run: Run = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(run.arms[0].mask, "none");
    assert_eq!(run.observations.iter().filter(|o| o.arm == "padded" && o.block == 0).count(), 24);
}

#[test]
fn clean_removes_what_nobody_holds() {
    let name = format!("contention-lab-{:016x}", 0xdead_0000_0000_0000u64 | u64::from(std::process::id()));
    let path = std::path::Path::new("/dev/shm").join(&name);
    std::fs::write(&path, [0; 64]).unwrap();
    let other = std::path::Path::new("/dev/shm/contention-lab-not-ours");
    std::fs::write(other, b"x").unwrap();
    let output = coordinator().arg("clean").output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(!path.exists());
    assert!(other.exists(), "a name of another form is not the lab's");
    std::fs::remove_file(other).unwrap();
}

#[test]
fn check_and_list_read_the_library() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios");
    let list = coordinator().args(["list", folder]).output().unwrap();
    assert_eq!(list.status.code(), Some(0), "{}", stderr(&list));
    assert!(stdout(&list).contains("false_sharing.toml"));
    // Those of its folders stand behind its own.
    let (own, case) = (stdout(&list).find("true_sharing.toml"), stdout(&list).find("cases/aeron_mpsc_queue.toml"));
    assert!(own.is_some() && own < case, "{}", stdout(&list));
    let bench = Bench::new(QUICK);
    let good = coordinator().arg("check").arg(bench.scenario()).output().unwrap();
    assert_eq!(good.status.code(), Some(0));
    assert!(stdout(&good).contains("ok, 5 arms"), "{}", stdout(&good));
    let bad = Bench::new("title = 3");
    let both = coordinator().arg("check").arg(bad.scenario()).arg(bench.scenario()).output().unwrap();
    assert_eq!(both.status.code(), Some(2));
    assert!(stdout(&both).contains("ok, 5 arms"), "one bad file does not hide a good one");
}

#[test]
fn a_closed_pipe_is_quiet() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios");
    let mut child = coordinator()
        .args(["list", folder])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.stderr.is_empty(), "{}", stderr(&output));
}

#[test]
fn names_that_are_no_utf_8_are_no_panic() {
    let _alone = alone();
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let bench = Bench::new(QUICK);
    let odd = bench.scenario().with_file_name(OsStr::from_bytes(b"odd\xff.toml"));
    std::fs::copy(bench.scenario(), &odd).unwrap();
    let mut run = coordinator();
    run.arg("run").arg(&odd).arg("--out").arg(bench.results()).args(["--json", "--quiet", "--only", "packed"]);
    let output = run.output().unwrap();
    assert!(is_done(output.status.code()), "{:?} {}", output.status, stderr(&output));
    let run: Run = serde_json::from_slice(&output.stdout).unwrap();
    assert!(run.command.contains("odd\u{fffd}.toml"), "{}", run.command);
    let flag = coordinator().arg(OsStr::from_bytes(b"--\xff")).output().unwrap();
    assert_eq!(flag.status.code(), Some(2), "{}", stderr(&flag));
}

#[test]
fn a_budget_that_ends_the_run_is_told() {
    let _alone = common::alone();
    let scenario = QUICK.replace("repetitions = 3", "repetitions = \"auto\"\nprecision = \"0.0001%\"\nbudget = \"1s\"");
    let bench = Bench::new(&scenario);
    let output = bench.run().args(["--json", "--quiet", "--only", "padded"]).output().unwrap();
    assert!(is_done(output.status.code()), "{:?} {}", output.status, stderr(&output));
    let run: Run = serde_json::from_slice(&output.stdout).unwrap();
    // A busy machine may leave no intervals to be precise about.
    let told = |text: &str| text.contains("0.00 %") || text.contains("before there were intervals");
    assert!(run.warnings.iter().any(|w| w.id == "budget_spent" && told(&w.text)), "{:?}", run.warnings);
}
