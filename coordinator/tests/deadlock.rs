//! Two roles that take two locks in opposite order come to wait for each other: the run ends soon after its window, and
//! says who holds what and waits for what.

mod common;

use common::{Bench, alone, assert_gone, stderr, workers_of};
use plan::LockKind;
use std::process::Stdio;
use std::time::{Duration, Instant};
use testing::within;

fn scenario(kind: LockKind) -> String {
    format!(
        r#"
title = "Opposite"
question = "What becomes of two that take two locks in opposite order?"
[measure]
window = "20ms"
warm_up = "5ms"
repetitions = 3
baselines = []
[lock.a]
kind = "{kind}"
[lock.b]
kind = "{kind}"
[[role]]
name = "forth"
loop = ["lock a", "work 5us", "lock b", "unlock b", "unlock a"]
[[role]]
name = "back"
loop = ["lock b", "work 5us", "lock a", "unlock a", "unlock b"]
"#,
        kind = kind.name()
    )
}

/// What the run said, and how long it took from its last repetition's first moment on; `None` where none met.
fn ended(kind: LockKind) -> Option<(String, Duration)> {
    let bench = Bench::new(&scenario(kind));
    let mut child = bench.run().arg("--quiet").stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut last, mut since) = (Vec::new(), Instant::now());
    let status = within(Duration::from_secs(120), "the run's end", || {
        let workers = workers_of(child.id());
        if workers.len() == 2 && last.first().is_none_or(|w: &common::Worker| w.pid != workers[0].pid) {
            (last, since) = (workers, Instant::now());
        }
        child.try_wait().unwrap()
    });
    let (text, took) = (stderr(&child.wait_with_output().unwrap()), since.elapsed());
    assert_gone(&last, Duration::from_secs(10));
    (status.code() == Some(1)).then_some((text, took))
}

#[test]
fn workers_that_wait_for_each_other_are_named_with_what_each_holds() {
    let _alone = alone();
    for kind in [LockKind::Pthread, LockKind::PthreadPi, LockKind::PthreadRwlock, LockKind::Tas, LockKind::Mcs] {
        // A machine may keep one of the two off its CPU all the time, so that they never meet.
        let (text, took) = (0..5).find_map(|_| ended(kind)).unwrap_or_else(|| panic!("{kind:?}: never met"));
        for part in [
            "worker 0 (role `forth`, CPU ",
            ") holds lock `a` and waits for lock `b`",
            "worker 1 (role `back`, CPU ",
            ") holds lock `b` and waits for lock `a`",
            "in a circle",
            "in the same order",
        ] {
            assert!(text.contains(part), "{kind:?}: no {part:?} in {text}");
        }
        // It is looked for a second after the window; ten and more is what a repetition gets that nobody explains.
        assert!(took < Duration::from_secs(8), "{kind:?} took {took:?}");
        println!("{kind:?}: {took:?}: {}", text.trim());
    }
}
