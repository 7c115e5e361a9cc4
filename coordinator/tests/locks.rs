//! Locks in a whole run: every kind between real processes, swept over, with what the result says of each.

mod common;

use common::{Bench, alone, stderr, stdout};
use plan::LockKind;
use record::{LockSummary, Run};

/// Two workers at one lock, over all kinds: writers, readers where the kind has any, and a counter it protects.
fn scenario() -> String {
    let kinds: Vec<String> = LockKind::ALL.iter().map(|kind| format!("{:?}", kind.name())).collect();
    format!(
        r#"
title = "Every kind"
question = "Does every kind of lock work between processes?"
[measure]
window = "5ms"
warm_up = "1ms"
repetitions = 3
baselines = ["plain"]
[lock.m]
[field.balance]
type = "u64"
[[variant]]
name = "together"
placement = "packed"
[[role]]
name = "teller"
workers = 2
loop = ["lock m", "bump balance", "unlock m", "work 100ns", "rlock m", "load balance", "runlock m"]
[sweep]
"lock.m.kind" = [{}]
"#,
        kinds.join(", ")
    )
}

/// What the arm says of its lock; nothing, as of all else, where the machine spoiled each of its repetitions.
fn lock_of<'r>(run: &'r Run, arm: &str) -> Option<&'r LockSummary> {
    let arm = run.arms.iter().find(|a| a.name == arm).unwrap_or_else(|| panic!("no arm {arm}"));
    match &arm.locks[..] {
        [lock] => Some(lock),
        [] => {
            assert!(arm.roles.iter().all(|role| role.ns_per_op.is_none()), "{} has figures, and no lock", arm.name);
            testing::not_here(&format!("quiet: {} is spoiled, so nothing is said of its lock", arm.name));
            None
        }
        more => panic!("{} has {} locks", arm.name, more.len()),
    }
}

#[test]
fn a_sweep_runs_over_every_kind_and_a_plain_arm_beside_it() {
    let _alone = alone();
    let bench = Bench::new(&scenario());
    let output = bench.run().args(["--json", "--quiet"]).output().unwrap();
    // 3: the machine was noisy, which no test may mind.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{:?}: {}", output.status, stderr(&output));
    let run: Run = serde_json::from_str(&stdout(&output)).unwrap();
    for kind in LockKind::ALL {
        let name = kind.name();
        let arm = format!("together@lock.m.kind={name}");
        for observation in run.observations.iter().filter(|o| o.arm == arm) {
            assert!(observation.passes > 0 || !observation.spoiled.is_empty(), "{name}: {observation:?}");
            let [lock] = &observation.locks[..] else { panic!("{name}: {:?}", observation.locks) };
            assert!(lock.lock == "m" && lock.acquisitions >= 2 * observation.passes, "{name}: {observation:?}");
            assert!(lock.contended <= lock.acquisitions, "{name}: {lock:?}");
        }
        if let Some(lock) = lock_of(&run, &arm) {
            assert_eq!((lock.lock.as_str(), lock.kind.as_str()), ("m", name));
            assert!(lock.acquisitions > 0 && lock.contended <= lock.acquisitions, "{name}: {lock:?}");
        }
    }
    if let Some(plain) = lock_of(&run, "plain") {
        assert_eq!((plain.kind.as_str(), plain.contended, plain.wait_ns_all.is_none()), ("pthread", 0, true));
    }
    let plain: Vec<_> = run.observations.iter().filter(|o| o.arm == "plain").collect();
    assert!(
        !plain.is_empty() && plain.iter().all(|o| o.locks[0].contended == 0 && o.locks[0].acquisitions >= o.passes)
    );
}
