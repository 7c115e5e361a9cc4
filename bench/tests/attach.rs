//! `bench -- attach` as a user runs it, for a few seconds. What it finds is the machine's; that watches see the targets
//! and say nothing that is not so, that the targets' counts stay exact, and that the status says what the figures say, is
//! the program's.

use serde_json::Value;
use std::process::Command;

/// The report; `None`, having said why, where this machine watches nobody.
fn report(arguments: &[&str]) -> Option<(Value, Option<i32>)> {
    let output =
        Command::new(env!("CARGO_BIN_EXE_bench")).arg("attach").args(arguments).arg("--json").output().unwrap();
    let (said, status) = (String::from_utf8_lossy(&output.stderr), output.status.code());
    if status == Some(4) || said.contains("it needs root, and x86-64") && !(is_root() && cfg!(target_arch = "x86_64")) {
        assert!(std::env::var_os("LAB_NO_SKIPS").is_none(), "{said}");
        eprintln!("skipped: {said}");
        return None;
    }
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{status:?}: {said}"));
    Some((report, status))
}

fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

#[test]
fn each_kind_of_target_has_a_price_for_each_step() {
    let Some((report, status)) = report(&["--quads", "1", "--for", "2"]) else { return };
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
        let steps = kind["steps"].as_array().unwrap();
        let named: Vec<&str> = steps.iter().map(|step| text(step, "step")).collect();
        // A machine without tracefs sees no futex calls; that phase is over at once then.
        assert_eq!(named[..4], ["watch", "counting", "sampling", "proof"], "{kind}");
        for step in steps {
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
    let Some((report, status)) = report(&["--alarms", "3", "--for", "2"]) else { return };
    assert_eq!((report["watches"].as_u64(), report["alarms"].as_array().map(Vec::len)), (Some(3), Some(0)), "{report}");
    assert!(report["saw_both"].as_u64() >= Some(1), "{report}");
    assert_eq!(status, Some(0));
}

fn text<'v>(of: &'v Value, key: &str) -> &'v str {
    of[key].as_str().unwrap_or_else(|| panic!("no `{key}` in {of}"))
}
