//! Records the commit that the program is built from, where git knows it: results name it.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok().filter(|o| o.status.success())?;
        Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
    };
    if let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) {
        println!("cargo::rustc-env=LAB_COMMIT={commit}");
    }
    // HEAD's log grows with each commit and checkout; a source without git has none, and nothing to follow.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
}
