//! `bench -- attach` as a user runs it, for a few seconds. What it finds is the machine's; that watches see the targets
//! and say nothing that is not so, that the targets' counts stay exact, and that the status says what the figures say, is
//! the program's.

use serde_json::Value;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// The report; `None`, having said why, where this machine watches nobody. On a machine that is so busy that the targets
/// hardly run, watches are longer, until `is_seen` says that there was something to see.
fn report(arguments: &[&str], is_seen: impl Fn(&Value) -> bool) -> Option<(Value, Option<i32>)> {
    // One pair of targets at a time: each has both CPUs.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for seconds in ["1", "8", "30"] {
        let (report, status) = reported(&[arguments, &["--for", seconds]].concat())?;
        if report.as_ref().is_some_and(&is_seen) {
            return Some((report?, status));
        }
    }
    panic!("no watch of 30 s saw the targets");
}

/// What one run reported, nothing where its watches were blind.
fn reported(arguments: &[&str]) -> Option<(Option<Value>, Option<i32>)> {
    let output =
        Command::new(env!("CARGO_BIN_EXE_bench")).arg("attach").args(arguments).arg("--json").output().unwrap();
    let (said, status) = (String::from_utf8_lossy(&output.stderr), output.status.code());
    let is_blind = said.contains("it needs root, and x86-64");
    if status == Some(4) || is_blind && !(is_root() && cfg!(target_arch = "x86_64")) {
        testing::skip(&said);
        return None;
    }
    let report = serde_json::from_slice(&output.stdout);
    assert!(is_blind || report.is_ok(), "{status:?}: {said}");
    Some((report.ok(), status))
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Whether the targets ran in each step of a watch, at every kind. A machine without tracefs sees no futex calls, and that
/// step may be over at once.
fn has_all_steps(report: &Value) -> bool {
    report["kinds"].as_array().unwrap().iter().all(|kind| {
        let named: Vec<&str> = kind["steps"].as_array().unwrap().iter().map(|step| text(step, "step")).collect();
        named.starts_with(&["watch", "counting", "sampling", "proof"])
    })
}

#[test]
fn each_kind_of_target_has_a_price_for_each_step() {
    let Some((report, status)) = report(&["--quads", "1"], has_all_steps) else { return };
    let kinds = report["kinds"].as_array().unwrap();
    assert_eq!(kinds.iter().map(|kind| text(kind, "kind")).collect::<Vec<_>>(), ["padded", "packed", "convoy"]);
    for kind in kinds {
        assert_eq!(kind["judged"].as_bool(), Some(text(kind, "kind") == "padded"));
        let seen = kind["saw_both"].as_u64().unwrap();
        assert!(
            (1..=2).contains(&seen) && kind["watches"] == 2 && kind["passes_per_second"].as_f64() > Some(0.0),
            "{kind}"
        );
        assert!(kind["traps"].as_f64() > Some(0.0) && kind["samples"].as_f64() > Some(0.0), "{kind}");
        for step in kind["steps"].as_array().unwrap() {
            assert!(
                step["seconds"].as_f64() > Some(0.0) && step["ratio"].is_null(),
                "one quad has no interval: {step}"
            );
        }
        assert_eq!(text(kind, "verdict"), "unresolved");
    }
    assert_eq!(status, Some(3));
}

/// The short form of `bench -- attach --alarms 50`.
#[test]
fn two_that_share_nothing_raise_no_alarm() {
    let Some((report, status)) = report(&["--alarms", "3"], |_| true) else { return };
    assert_eq!((report["watches"].as_u64(), report["alarms"].as_array().map(Vec::len)), (Some(3), Some(0)), "{report}");
    assert!(report["saw_both"].as_u64() >= Some(1), "{report}");
    assert_eq!(status, Some(0));
}

fn text<'v>(of: &'v Value, key: &str) -> &'v str {
    of[key].as_str().unwrap_or_else(|| panic!("no `{key}` in {of}"))
}
