//! Tests that a machine or a user cannot run, and how they say so.

use std::io::Write;

/// Says that the calling test is left out, or a part of it, for want of `what`: a program, a permission, a setting of the
/// kernel's. The test returns then.
///
/// # Panics
/// Where `LAB_NO_SKIPS` is set, as `.ci/run` does as root: there is everything that a machine of CI can have.
#[track_caller]
pub fn skip(what: &str) {
    assert!(std::env::var_os("LAB_NO_SKIPS").is_none(), "may not skip here: {what}");
    say(what);
}

/// Says the same where this is never a failure: for hardware that the machines of CI do not have (a PMU, a model-specific
/// register), and for quiet, which a busy machine does not have.
pub fn not_here(what: &str) {
    say(what);
}

/// By the handle itself: what goes through `eprintln!` in a test that passes is captured, and nobody sees it.
fn say(what: &str) {
    // The thread of a test has its name, unless tests run one after the other on the main one.
    let thread = std::thread::current();
    let test = thread.name().filter(|name| *name != "main").map_or(String::new(), |name| format!("{name}: "));
    // A test does not fail because nobody reads what it says.
    let _ = std::io::stderr().write_all(format!("skipped: {test}{what}\n").as_bytes());
}
