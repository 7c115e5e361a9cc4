//! A worker whose loop ends it while it holds a lock: a robust lock goes on and says so, with any other the run ends
//! soon and says who died holding what, and who waits.

mod common;

use common::{Bench, alone, stderr};
use record::Run;
use std::time::{Duration, Instant};

fn scenario(kind: &str) -> String {
    format!(
        r#"
title = "Dying"
question = "What becomes of a dead owner's lock?"
[measure]
window = "200ms"
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
after = "10ms"
loop = ["lock m", "die"]
"#
    )
}

#[test]
fn a_robust_lock_is_taken_over_once_in_a_repetition() {
    let _alone = alone();
    let bench = Bench::new(&scenario("pthread-robust"));
    let output = bench.run().args(["--json", "--quiet"]).output().unwrap();
    // 3: a noisy machine hid a figure, which is not what is asked here.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
    let run: Run = serde_json::from_slice(&output.stdout).unwrap();
    assert!(run.observations.iter().all(|o| o.role == "worker"), "the dead leave no trace");
    assert!(run.observations.len() >= 8, "two arms, four blocks: {}", run.observations.len());
    // On a busy machine the mortal may come to the lock when the window is over: then its death is not in the figures.
    let taken_over: Vec<u64> = run.observations.iter().map(|one| one.locks[0].owner_died).collect();
    assert!(taken_over.iter().all(|times| *times <= 1) && taken_over.contains(&1), "{taken_over:?}");
    assert!(run.observations.iter().all(|one| one.locks[0].acquisitions > 0));
    let base = run.observations.iter().filter(|one| one.arm == "base");
    let measured = run.arms.iter().any(|arm| arm.name == "base" && arm.state == record::ArmState::Measured)
        && base.filter(|one| one.spoiled.is_empty()).all(|one| one.locks[0].owner_died == 1);
    assert!(!measured || run.diagnosis.iter().any(|found| found.kind == "owner_died"), "{:?}", run.diagnosis);
}

#[test]
fn with_every_other_kind_the_run_ends_soon_and_names_lock_owner_and_waiter() {
    let _alone = alone();
    for kind in plan::LockKind::ALL.into_iter().filter(|kind| !kind.is_robust()) {
        let bench = Bench::new(&scenario(kind.name()));
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
