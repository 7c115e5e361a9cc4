//! `run --live` in a terminal: a view of the run that is drawn between windows, and nothing of it elsewhere.

mod common;

use common::{Bench, alone, stderr, stdout};
use nix::libc::winsize;
use nix::pty::openpty;
use std::fs::File;
use std::io::Read;
use std::process::{Output, Stdio};
use std::thread;

const SCENARIO: &str = r#"
title = "Watched"
question = "What can be seen on the way?"
[measure]
window = "20ms"
warm_up = "2ms"
repetitions = 4
baselines = []
[lock.m]
[field.hits]
type = "u64"
each = "worker"
[[variant]]
name = "packed"
placement = "packed"
[[variant]]
name = "padded"
placement = { pad = 128 }
[[role]]
name = "counter"
workers = 2
loop = ["lock m", "bump hits[me]", "unlock m"]
"#;

/// A run whose standard error is a terminal of that size; what it wrote there.
fn in_a_terminal(bench: &Bench, arguments: &[&str], term: &str) -> (Output, String) {
    let size = winsize { ws_row: 50, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
    let terminal = openpty(Some(&size), None).unwrap();
    let mut command = bench.run();
    command.args(arguments).env("TERM", term).stdout(Stdio::piped()).stderr(terminal.slave);
    let child = command.spawn().unwrap();
    // The other end of the terminal must be closed here, or its reader would wait for more.
    drop(command);
    let reader = thread::spawn(move || {
        let mut screen = File::from(terminal.master);
        let (mut seen, mut part) = (Vec::new(), [0; 4096]);
        // A terminal whose other end is closed answers EIO.
        while let Ok(length @ 1..) = screen.read(&mut part) {
            seen.extend_from_slice(&part[..length]);
        }
        String::from_utf8_lossy(&seen).into_owned()
    });
    let output = child.wait_with_output().unwrap();
    (output, reader.join().unwrap())
}

#[test]
fn a_terminal_sees_each_worker_the_waits_and_the_diagnosis_so_far() {
    let _alone = alone();
    let bench = Bench::new(SCENARIO);
    let (output, screen) = in_a_terminal(&bench, &["--live", "--color", "never"], "xterm");
    assert!(matches!(output.status.code(), Some(0 | 3)), "{screen}");
    for word in
        ["Watched", "Now: packed, block 1", "Now: padded, block 4", "longest", "Diagnosis so far, of ", "m (pthread)"]
    {
        assert!(screen.contains(word), "no {word:?} in {screen:?}");
    }
    assert!(stdout(&output).contains("Diagnosis") && !stdout(&output).contains("so far"), "{}", stdout(&output));
}

#[test]
fn a_bar_is_not_a_live_view_and_a_log_gets_lines() {
    let _alone = alone();
    let bench = Bench::new(SCENARIO);
    let (_, screen) = in_a_terminal(&bench, &[], "xterm");
    assert!(screen.contains("measuring") && !screen.contains("Now:"), "{screen:?}");
    let (_, screen) = in_a_terminal(&bench, &["--live"], "dumb");
    assert!(!screen.contains("Now:"), "a terminal that cannot move its cursor: {screen:?}");
    let output = bench.run().arg("--live").output().unwrap();
    let log = stderr(&output);
    assert!(log.contains("Watched: measuring, ") && !log.contains("Now:") && !log.contains('\u{1b}'), "{log:?}");
}

#[test]
fn live_does_not_go_with_silence_or_gates() {
    let bench = Bench::new(SCENARIO);
    for flag in ["--quiet", "--hold", "--dry-run"] {
        let output = bench.run().args(["--live", flag]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{flag}: {}", stderr(&output));
    }
}
