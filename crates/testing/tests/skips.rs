//! Whether a skip is seen, and fails where it has to: this program again, as `cargo test` runs it.

use std::process::{Command, Output};

/// In the test that is run again: what it is to do.
const DOES: &str = "LAB_TEST_DOES";

/// No test of its own.
#[test]
fn the_one_that_skips() {
    match std::env::var(DOES).as_deref() {
        Ok("skip") => testing::skip("a program"),
        Ok("not here") => testing::not_here("a PMU"),
        Ok("print") => eprintln!("captured"),
        _ => {}
    }
}

fn again(does: &str, may_skip: bool) -> (Output, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "the_one_that_skips", "--test-threads=2"]).env(DOES, does).env_remove("LAB_NO_SKIPS");
    command.env_remove("RUST_TEST_NOCAPTURE");
    if !may_skip {
        command.env("LAB_NO_SKIPS", "1");
    }
    let output = command.output().unwrap();
    let said = [&output.stdout[..], &output.stderr[..]].concat();
    (output, String::from_utf8(said).unwrap())
}

#[test]
fn a_skip_is_seen_with_its_test_and_fails_where_nothing_may_skip() {
    let (output, said) = again("skip", true);
    assert!(output.status.success() && said.contains("skipped: the_one_that_skips: a program\n"), "{said}");
    let (output, said) = again("skip", false);
    assert!(!output.status.success() && said.contains("may not skip here: a program"), "{said}");
}

#[test]
fn what_no_machine_of_ci_has_is_seen_and_never_fails() {
    for may_skip in [true, false] {
        let (output, said) = again("not here", may_skip);
        assert!(output.status.success() && said.contains("skipped: the_one_that_skips: a PMU\n"), "{said}");
    }
}

#[test]
fn what_is_merely_printed_is_not_seen() {
    let (output, said) = again("print", true);
    assert!(output.status.success() && !said.contains("captured"), "{said}");
}
