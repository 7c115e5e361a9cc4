//! A worker whose loop ends it while it holds a lock: a robust lock goes on and says so, with any other the run ends
//! soon and says who died holding what, and who waits.

mod common;

use common::{Bench, alone, stderr};
use record::Run;
use std::time::{Duration, Instant};

fn scenario(kind: &str, window_ms: u32, after_ms: u32) -> String {
    format!(
        r#"
title = "Dying"
question = "What becomes of a dead owner's lock?"
[measure]
window = "{window_ms}ms"
warm_up = "5ms"
repetitions = 4
baselines = []
[lock.m]
kind = "{kind}"
[field.balance]
type = "u64"
[[role]]
name = "worker"
loop = ["lock m", "bump balance", "unlock m", "work 200ns"]
[[role]]
name = "mortal"
after = "{after_ms}ms"
loop = ["lock m", "die"]
"#
    )
}

/// A whole run of a robust lock whose owner dies in each repetition; whether each counted it.
fn is_told_in_each_repetition() -> bool {
    let bench = Bench::new(&scenario("pthread-robust", 200, 80));
    let output = bench.run().args(["--json", "--quiet"]).output().unwrap();
    // 3: a noisy machine hid a figure, which is not what is asked here.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
    let run: Run = serde_json::from_slice(&output.stdout).unwrap();
    assert!(run.observations.iter().all(|o| o.role == "worker"), "the dead leave no trace");
    assert!(run.observations.len() >= 8, "two arms, four blocks: {}", run.observations.len());
    for observation in &run.observations {
        assert!(observation.locks[0].owner_died <= 1, "{} {}", observation.arm, observation.block);
        assert!(observation.locks[0].acquisitions > 0);
    }
    let told = run.observations.iter().all(|o| o.locks[0].owner_died == 1);
    let measured = run.arms.iter().any(|arm| arm.name == "base" && arm.state == record::ArmState::Measured);
    assert!(!told || !measured || run.diagnosis.iter().any(|d| d.kind == "owner_died"), "{:?}", run.diagnosis);
    told
}

#[test]
fn a_robust_lock_is_taken_over_once_in_each_repetition() {
    let _alone = alone();
    // On a busy machine the mortal may come to its lock when the window is over, or the other not have come into it yet;
    // what is told then is not counted.
    assert!((0..5).any(|_| is_told_in_each_repetition()), "in five runs there were repetitions that did not count it");
}

#[test]
fn with_every_other_kind_the_run_ends_soon_and_names_lock_owner_and_waiter() {
    let _alone = alone();
    for kind in plan::LockKind::ALL.into_iter().filter(|kind| !kind.is_robust()) {
        let bench = Bench::new(&scenario(kind.name(), 40, 10));
        let start = Instant::now();
        let output = bench.run().arg("--quiet").output().unwrap();
        let took = start.elapsed();
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{kind:?}: {text}");
        for part in
            ["role `mortal`", "died holding lock `m`", kind.name(), "waiting for it: worker 0", "pthread-robust"]
        {
            assert!(text.contains(part), "{kind:?}: no {part} in {text}");
        }
        // Half a second is for the waiters to show; the rest is a slow machine's. A hang would take ten and more.
        assert!(took < Duration::from_secs(8), "{kind:?} took {took:?}");
    }
}
