//! The published cases on real processes: the command finds each sound, and those whose steps wait, lock or look before
//! they write come through a run.

mod common;

use common::{Bench, alone, coordinator, stderr, stdout};
use record::{ArmState, Run};
use std::path::{Path, PathBuf};
use testing::skip;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/cases")
}

#[test]
fn the_command_finds_every_case_sound() {
    let files = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let output = coordinator().arg("check").args(files).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let out = stdout(&output);
    assert_eq!(out.lines().filter(|line| line.contains(": ok, ")).count(), 14, "{out}");
}

/// A short run, whose figures nobody believes: whether expectations hold (0), fail (1) or are open (3) is the machine's
/// business. That every arm ran, and every worker of it came round, is ours. On a busy machine a worker that waits for
/// another may not come round in a short window: hence longer ones. `None` where there is one CPU.
fn comes_through(case: &str, arms: &[&str]) -> Option<Run> {
    if std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() < 2) {
        skip("two CPUs");
        return None;
    }
    let bench = Bench::new(&std::fs::read_to_string(folder().join(case).with_extension("toml")).unwrap());
    let mut said = String::new();
    let mut runs = ["10ms", "100ms", "500ms", "2s"].into_iter().filter_map(|window| {
        let mut run = bench.run();
        run.args(["--window", window, "--repetitions", "2", "--json", "--quiet"]);
        let output = run.output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{case}: {:?} {}", output.status, stderr(&output));
        said = stderr(&output);
        serde_json::from_slice::<Run>(&output.stdout).ok()
    });
    let first = runs.next();
    drop(runs);
    let run = first.unwrap_or_else(|| panic!("{case}: {said}"));
    let variants: Vec<&str> = run.arms.iter().take(arms.len()).map(|arm| arm.name.as_str()).collect();
    assert_eq!(variants, arms, "{case}");
    for observation in &run.observations {
        assert!(observation.passes > 0 || !observation.spoiled.is_empty(), "{case}: {observation:?}");
    }
    Some(run)
}

#[test]
fn a_queue_of_one_entry_and_one_of_sixteen_never_stand_still() {
    let _alone = alone();
    let Some(run) = comes_through("iceoryx2_index_queue", &["before", "after", "before-16", "after-16"]) else {
        return;
    };
    // Whoever waits for another has no reference alone.
    assert!(run.arms.iter().all(|arm| !arm.name.starts_with("solo:")), "{:?}", run.arms);
}

#[test]
fn the_lock_taken_for_a_group_is_taken_less_often() {
    let _alone = alone();
    let Some(run) = comes_through("pg_procarray_group_clear", &["before", "after"]) else { return };
    // Four snapshots and four commits before; four snapshots and one commit after. A pass may be cut at either end.
    for (arm, each_pass) in [("before", 8), ("after", 5)] {
        for worker in run.observations.iter().filter(|o| o.arm == arm) {
            let (took, expected) = (worker.locks[0].acquisitions, each_pass * worker.passes);
            assert!(took.abs_diff(expected) <= 2 * each_pass, "{arm}: {took} in {} passes", worker.passes);
        }
    }
}

#[test]
fn the_sentry_and_the_stub_both_come_round() {
    let _alone = alone();
    let Some(run) = comes_through("gvisor_contextqueue", &["before", "after", "after-layout"]) else { return };
    let bytes: Vec<u64> = run.arms.iter().take(3).map(|arm| arm.bytes).collect();
    assert_eq!(bytes, [48, 392, 392]);
    assert!(run.arms.iter().take(3).all(|arm| arm.state != ArmState::NotApplicable), "{:?}", run.arms);
}
