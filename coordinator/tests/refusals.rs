//! What the program will not do: it says where, why and what to do, with the right status, and creates nothing.

mod common;

use common::{Bench, QUICK, coordinator, is_root, stderr, stdout};
use std::process::{Command, Output};
use testing::skip;

fn refused(scenario: &str) -> (Bench, Output) {
    let bench = Bench::new(scenario);
    let output = bench.run().output().unwrap();
    (bench, output)
}

#[track_caller]
fn assert_refused(scenario: &str, expected: &[&str]) {
    let (bench, output) = refused(scenario);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    for part in expected {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
    assert!(text.contains("case.toml:"), "names the file and the line:\n{text}");
    assert!(stdout(&output).is_empty());
    assert!(!bench.results().exists(), "nothing is created");
}

#[test]
fn impossible_scenarios_are_refused_with_file_line_and_cure() {
    assert_refused(&QUICK.replace("window = ", "windw = "), &["windw", "window"]);
    assert_refused(&QUICK.replace("\"20ms\"", "\"0ms\""), &["0ms", "1ms"]);
    assert_refused(&QUICK.replace("pad = 128", "pad = 100"), &["100", "power of two"]);
    assert_refused(&QUICK.replace("bump hits[me]", "bump hots[me]"), &["hots", "hits"]);
    assert_refused(&QUICK.replace("repetitions = 3", "repetitions = true"), &["true"]);
    assert_refused(&QUICK.replace("workers = 2", "workers = 2\ncpus = [0, 4000]"), &["4000"]);
    assert_refused(&QUICK.replace("title = \"Quick\"", "title = "), &["title"]);
}

/// A kind of lock in line 7, steps in line 13 from column 9 on.
fn with_a_lock(kind: &str, steps: &str) -> String {
    format!(
        "title = 'Locks'\nquestion = 'What is wrong?'\n[measure]\nwindow = '20ms'\nrepetitions = 3\n\
         [lock.m]\nkind = '{kind}'\n[field.x]\ntype = 'u64'\n[[role]]\nname = 'r'\nworkers = 2\nloop = [{steps}]\n"
    )
}

#[test]
fn what_a_pass_does_wrong_with_a_lock_is_refused_with_its_line_and_column() {
    let sound = Bench::new(&with_a_lock("pthread", "'lock m', 'bump x', 'unlock m'"));
    let checked = coordinator().arg("check").arg(sound.scenario()).output().unwrap();
    assert_eq!(checked.status.code(), Some(0), "{}", stderr(&checked));
    for (kind, steps, place, said) in [
        ("pthread", "'bump x', 'unlock m'", "13:19", "releases `m`, which this pass does not hold"),
        ("pthread", "'lock m', 'unlock m', 'unlock m'", "13:31", "releases `m`, which this pass does not hold"),
        ("pthread", "'lock m', 'lock m', 'unlock m'", "13:19", "takes `m`, which this pass holds already"),
        ("pthread", "'lock m', 'bump x'", "13:9", "takes `m`, and the pass ends without releasing it"),
        ("pthread", "'lock m', 'every 2 lock m', 'unlock m'", "13:19", "would run in some passes only"),
        ("pthread-rwlock", "'rlock m', 'unlock m'", "13:20", "but `rlock m` took it as its reader"),
        ("pthread-rwlock", "'lock m', 'runlock m'", "13:19", "but `lock m` took it as its owner"),
        ("pthread-rwlock", "'rlock m', 'runlock mm'", "13:29", "no lock is named `mm`"),
        ("ptherad", "'lock m', 'unlock m'", "7:8", "`pthread`"),
        ("mcs", "'lock m timeout 1ms', 'unlock m'", "13:9", "whose waiters cannot leave"),
        ("pthread", "'lock m timeout 0ms', 'unlock m'", "13:25", "not within 1us to 1s"),
        ("pthread", "'lock m timeout -1ms', 'unlock m'", "13:25", "`-1ms` is no duration"),
        ("pthread", "'lock x', 'unlock x'", "13:15", "`x` is a field, not a lock"),
        ("pthread", "'bump m'", "13:15", "`m` is a lock, not a field"),
    ] {
        assert_refused(&with_a_lock(kind, steps), &[&format!("case.toml:{place}\n"), said]);
    }
}

#[test]
fn overlapping_offsets_are_refused() {
    let scenario = QUICK.replace("placement = \"packed\"", "placement = { offsets = { hits = [0, 4] } }");
    assert_refused(&scenario, &["hits", "overlap"]);
}

#[test]
fn a_missing_file_and_a_bad_flag_are_usage_errors() {
    let missing = coordinator().args(["run", "no-such-file.toml"]).output().unwrap();
    assert_eq!(missing.status.code(), Some(2));
    assert!(stderr(&missing).contains("no-such-file.toml"));
    let bench = Bench::new(QUICK);
    for (arguments, part) in [
        (["--only", "pakced"], "packed"),
        (["--window", "0ms"], "--window"),
        (["--workers", "0"], "--workers"),
        (["--cpus", "0,99999"], "99999"),
        (["--repetitions", "many"], "--repetitions"),
    ] {
        let output = bench.run().args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(part), "{arguments:?}: {}", stderr(&output));
    }
    assert!(!bench.results().exists());
}

#[test]
fn a_host_with_too_few_cpus_is_told_so_with_status_4() {
    let bench = Bench::new(QUICK);
    let mut run = Command::new("taskset");
    run.args(["-c", "0"]).arg(env!("CARGO_BIN_EXE_coordinator")).arg("run").arg(bench.scenario());
    run.arg("--out").arg(bench.results());
    let Ok(output) = run.output() else { return skip("taskset is not installed") };
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    let text = stderr(&output);
    assert!(text.contains("oversubscribe") && text.contains("its affinity mask allows CPUs 0,"), "{text}");
    assert!(!bench.results().exists());
}

#[test]
fn a_cpu_taken_away_is_named() {
    let bench = Bench::new(&QUICK.replace("workers = 2", "workers = 2\ncpus = [0, 1]"));
    let mut run = Command::new("taskset");
    run.args(["-c", "0"]).arg(env!("CARGO_BIN_EXE_coordinator")).arg("run").arg(bench.scenario());
    let Ok(output) = run.output() else { return skip("taskset is not installed") };
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let text = stderr(&output);
    assert!(text.contains("CPU 1 is online, but the cpuset or the affinity mask takes it away"), "{text}");
    assert!(text.contains("its affinity mask allows CPUs 0,"), "{text}");
}

#[test]
fn a_full_shared_memory_folder_is_an_error_and_no_signal() {
    if !is_root() {
        return skip("mounting a small /dev/shm needs root");
    }
    let bench = Bench::new(
        &QUICK
            .replace("each = \"worker\"", "each = \"worker\"\n[field.big]\ntype = \"u64\"\ncount = 65000")
            .replace("bump hits[me]\"", "bump hits[me]\", \"load big[any]\""),
    );
    let script = "mount -t tmpfs -o size=64k tmpfs /dev/shm && exec \"$0\" \"$@\"";
    let mut run = Command::new("unshare");
    run.args(["-m", "sh", "-c", script]).arg(env!("CARGO_BIN_EXE_coordinator")).arg("run").arg(bench.scenario());
    run.arg("--out").arg(bench.results());
    let output = run.output().unwrap();
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("/dev/shm has no room") && text.contains("ENOSPC"), "{text}");
}

/// What a run says in a mount namespace of its own that `change` has spoilt; it must fail.
fn spoilt(change: &str) -> String {
    let bench = Bench::new(QUICK);
    let mut run = Command::new("unshare");
    run.args(["-m", "sh", "-c", &format!("{change} && exec \"$0\" \"$@\"")]);
    let output = run.arg(env!("CARGO_BIN_EXE_coordinator")).arg("run").arg(bench.scenario()).output().unwrap();
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    text
}

/// Each was put down to limits that had nothing to do with it.
#[test]
fn a_hidden_proc_and_a_missing_or_read_only_shared_memory_folder_are_named() {
    if !is_root() {
        return skip("hiding /proc and /dev/shm needs root");
    }
    // The executable's own folder must stay in sight where /dev is replaced.
    let cases = [
        ("mount -t tmpfs tmpfs /proc", "mount -t proc proc /proc"),
        ("mount -t tmpfs tmpfs /dev && mknod -m 666 /dev/null c 1 3", "there is no /dev/shm"),
        ("mount -t tmpfs -o ro tmpfs /dev/shm", "mount -o remount,rw /dev/shm"),
    ];
    for (change, cure) in cases {
        let text = spoilt(change);
        assert!(text.contains(cure) && !text.contains("ulimit"), "{change}: {text}");
    }
}

#[test]
fn results_that_cannot_be_written_are_an_error_before_anything_is_measured() {
    let bench = Bench::new(QUICK);
    std::fs::write(bench.results(), b"in the way").unwrap();
    let output = bench.run().output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("results"), "{}", stderr(&output));
    assert!(stdout(&output).is_empty() && !stderr(&output).contains("measuring"), "{}", stderr(&output));
}

#[test]
fn the_hidden_subcommand_is_not_for_users() {
    let output = coordinator().arg("__worker").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let output = coordinator().args(["__worker", "contention-lab-0", "0", "1", "1"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "whose parent it is not");
}

/// The signal of a file that grows beyond `ulimit -f` ended the process without a word and left half a result.
#[test]
fn a_file_size_limit_is_an_error_and_leaves_nothing() {
    let bench = Bench::new(&QUICK.replace("repetitions = 3", "repetitions = 8"));
    let script = "ulimit -f 80; exec \"$0\" \"$@\""; // 80 blocks of 512 or 1024 bytes: enough for a segment, not for results
    let mut run = Command::new("sh");
    run.args(["-c", script]).arg(env!("CARGO_BIN_EXE_coordinator")).arg("run").arg(bench.scenario());
    let output = run.arg("--out").arg(bench.results()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("EFBIG"), "{}", stderr(&output));
    assert!(!bench.results().exists(), "what was begun is taken away again");
}
