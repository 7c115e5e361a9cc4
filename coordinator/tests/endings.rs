//! Every way a run can end before its time leaves no process and no segment, and says what happened.

mod common;

use common::{Bench, Worker, assert_gone, in_a_window, stderr, workers_of};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::time::{Duration, Instant};

/// One window that is long enough to be hit in its middle.
const LONG: &str = r#"
title = "Long"
question = "What is left when it is cut short?"
[measure]
window = "60s"
warm_up = "1ms"
repetitions = 1
baselines = []
[field.hits]
type = "u64"
each = "worker"
[lock.m]
[[role]]
name = "counter"
workers = 2
loop = ["lock m", "bump hits[me]", "unlock m"]
"#;

fn signal(pid: i32, signal: Signal) {
    kill(Pid::from_raw(pid), signal).unwrap();
}

#[test]
fn a_killed_worker_ends_the_run_with_its_name_within_two_seconds() {
    let bench = Bench::new(LONG);
    let (child, workers) = in_a_window(bench.run());
    let victim: &Worker = workers.iter().find(|w| w.index == 1).unwrap();
    let killed = Instant::now();
    signal(victim.pid, Signal::SIGKILL);
    let output = child.wait_with_output().unwrap();
    assert!(killed.elapsed() < Duration::from_secs(2), "{:?}", killed.elapsed());
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(text.contains("worker 1 (role `counter`, CPU ") && text.contains("was killed by SIGKILL"), "{text}");
    assert!(text.contains("running passes"), "{text}");
    assert_gone(&workers, Duration::from_secs(1));
}

#[test]
fn a_killed_coordinator_takes_its_workers_with_it() {
    let bench = Bench::new(LONG);
    let (mut child, workers) = in_a_window(bench.run());
    signal(child.id() as i32, Signal::SIGKILL);
    child.wait().unwrap();
    assert_gone(&workers, Duration::from_secs(2));
}

#[test]
fn an_interrupt_ends_the_run_with_130() {
    let bench = Bench::new(LONG);
    let (child, workers) = in_a_window(bench.run());
    // A terminal sends it to the whole group: workers must leave it to their coordinator.
    workers.iter().for_each(|w| signal(w.pid, Signal::SIGINT));
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(workers_of(child.id()).len(), 2, "workers ignore the interrupt");
    signal(child.id() as i32, Signal::SIGINT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("interrupted"));
    assert_gone(&workers, Duration::from_secs(1));
    assert!(!bench.results().exists(), "nothing was complete, so nothing is on disk");
}

#[test]
fn what_was_complete_is_on_disk_after_an_interrupt() {
    let bench = Bench::new(&common::QUICK.replace("repetitions = 3", "repetitions = 10000"));
    let child = bench.run().stderr(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    signal(child.id() as i32, Signal::SIGTERM);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let text = std::fs::read(bench.only_result().join("run.json")).unwrap();
    let run: record::Run = serde_json::from_slice(&text).unwrap();
    assert!(!run.observations.is_empty());
    assert_eq!(run.warnings[0].id, "ended_early");
}

#[test]
fn a_wait_that_is_not_ended_in_the_window_is_an_error_naming_role_and_step() {
    // A post in a million passes of at least a millisecond each: none falls into a window of 20 ms.
    let scenario = r#"
title = "Starved"
question = "Who waits in vain?"
[measure]
window = "20ms"
warm_up = "1ms"
repetitions = 2
[field.word]
type = "u32"
[[role]]
name = "giver"
loop = ["every 1000000 post word", "sleep 1ms"]
[[role]]
name = "taker"
loop = ["wait word"]
"#;
    let bench = Bench::new(scenario);
    let started = Instant::now();
    let output = bench.run().output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let text = stderr(&output);
    assert!(text.contains("role `taker`") && text.contains("`wait word`"), "{text}");
    assert!(started.elapsed() < Duration::from_secs(15));
}

#[test]
fn a_stopped_worker_is_masked_and_the_figure_stays() {
    // The stop stands for a stretch in which the host or another process had the CPU.
    let scenario = common::QUICK
        .replace("window = \"20ms\"", "window = \"2s\"")
        .replace("repetitions = 3", "repetitions = 1\nbaselines = []");
    let bench = Bench::new(&scenario);
    let mut command = bench.run();
    command.args(["--only", "padded"]);
    let (child, workers) = in_a_window(command);
    signal(workers[0].pid, Signal::SIGSTOP);
    std::thread::sleep(Duration::from_millis(300));
    signal(workers[0].pid, Signal::SIGCONT);
    let output = child.wait_with_output().unwrap();
    let text = std::fs::read(bench.only_result().join("run.json")).unwrap();
    let run: record::Run = serde_json::from_slice(&text).unwrap();
    let hit: Vec<_> = run.observations.iter().filter(|o| o.pid == Some(workers[0].pid)).collect();
    assert_eq!(hit.len(), 1, "{}", stderr(&output));
    let same_repetition = run.observations.iter().filter(|o| (&o.arm, o.block) == (&hit[0].arm, hit[0].block));
    for observation in same_repetition {
        assert!(observation.lost_ns >= 299e6, "worker {} lost {} ns", observation.worker, observation.lost_ns);
        let kept = observation.kept_ns / observation.kept_passes as f64;
        let whole = observation.window_ns / observation.passes as f64;
        if observation.pid == Some(workers[0].pid) {
            assert!(kept < 0.95 * whole, "the stopped worker's own figure leaves the stop out: {kept} against {whole}");
        }
    }
}
