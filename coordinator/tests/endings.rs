//! Ways a run can end before its time that are not by chance: it leaves no process and no segment, and says what happened.
//! `killed.rs` and `faults.rs` have those by chance.

mod common;

use common::{Bench, alone, assert_gone, cpu_time, in_a_window, stderr, workers_of};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use testing::{A_LONG_TIME, within};

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
fn an_interrupt_ends_the_run_with_130() {
    let _alone = alone();
    let bench = Bench::new(LONG);
    let (child, workers) = in_a_window(bench.run());
    // A terminal sends it to the whole group: workers must leave it to their coordinator.
    workers.iter().for_each(|w| signal(w.pid, Signal::SIGINT));
    let before: Vec<Duration> = workers.iter().map(|w| cpu_time(w.pid)).collect();
    within(A_LONG_TIME, "workers ignore the interrupt and work on", || {
        workers.iter().zip(&before).all(|(w, before)| cpu_time(w.pid) > *before).then_some(())
    });
    signal(child.id() as i32, Signal::SIGINT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("interrupted"));
    assert_gone(&workers, A_LONG_TIME);
    assert!(!bench.results().exists(), "nothing was complete, so nothing is on disk");
}

/// As nohup(1) begins what is to outlive its terminal.
#[test]
fn a_hangup_that_is_ignored_ends_nothing() {
    let _alone = alone();
    let bench = Bench::new(&LONG.replace("60s", "1s"));
    let run = bench.run();
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]).arg(run.get_program()).args(run.get_args());
    let (child, workers) = in_a_window(command);
    signal(child.id() as i32, Signal::SIGHUP);
    let output = child.wait_with_output().unwrap();
    let said = stderr(&output);
    // 3 where the one repetition was spoiled.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{:?}: {said}", output.status);
    assert!(bench.only_result().join("run.json").exists() && !said.contains("interrupted"), "{said}");
    assert_gone(&workers, A_LONG_TIME);
}

#[test]
fn what_was_complete_is_on_disk_after_an_interrupt() {
    let _alone = alone();
    let bench = Bench::new(&common::QUICK.replace("repetitions = 3", "repetitions = 10000"));
    let child = bench.run().stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let first = within(A_LONG_TIME, "a repetition", || workers_of(child.id()).pop());
    within(A_LONG_TIME, "the next one, so that the first is complete", || {
        workers_of(child.id()).pop().filter(|w| w.segment != first.segment)
    });
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
    let _alone = alone();
    // A post in a million passes of at least a millisecond each: none falls into a window of 20 ms. The one of the first
    // pass is seen in the warm-up, which is long enough for a machine on which the waiting worker gets its CPU late.
    let scenario = r#"
title = "Starved"
question = "Who waits in vain?"
[measure]
window = "20ms"
warm_up = "300ms"
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
    let output = bench.run().arg("--json").output().unwrap();
    let text = stderr(&output);
    if output.status.code() != Some(1) {
        // Whoever was off its CPU for a tenth of every window has an excuse; then each repetition says so itself.
        let run: record::Run = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{text}"));
        let starved = run.observations.iter().filter(|o| o.role == "taker" && o.passes == 0);
        assert!(starved.clone().count() > 0, "{text}");
        let excused = |o: &record::Observation| {
            run.observations.iter().any(|p| (&p.arm, p.block) == (&o.arm, o.block) && p.lost_ns > 0.1 * p.window_ns)
        };
        assert!(starved.clone().all(excused), "{text}");
        return testing::not_here("quiet: in every repetition some worker was evicted for over a tenth of the window");
    }
    assert!(text.contains("role `taker`") && text.contains("`wait word`"), "{text}");
    assert!(!text.contains("did not end in its time"), "the worker left by itself: {text}");
}

/// One repetition in which a worker was stopped for a sixth of the window: how long it stood at least, what the two
/// workers left, and the pid of the stopped one.
fn stopped_in_a_window_of(seconds: u32) -> (Duration, Vec<record::Observation>, i32) {
    let scenario = common::QUICK
        .replace("window = \"20ms\"", &format!("window = \"{seconds}s\""))
        .replace("repetitions = 3", "repetitions = 1\nbaselines = []");
    let bench = Bench::new(&scenario);
    let mut command = bench.run();
    command.args(["--only", "padded"]);
    let (child, workers) = in_a_window(command);
    signal(workers[0].pid, Signal::SIGSTOP);
    let stopped = Instant::now();
    std::thread::sleep(Duration::from_secs(1) * seconds / 6);
    let stood = stopped.elapsed();
    signal(workers[0].pid, Signal::SIGCONT);
    child.wait_with_output().unwrap();
    let text = std::fs::read(bench.only_result().join("run.json")).unwrap();
    let run: record::Run = serde_json::from_slice(&text).unwrap();
    let hit = run.observations.iter().find(|o| o.pid == Some(workers[0].pid)).unwrap();
    let same = run.observations.iter().filter(|o| (&o.arm, o.block) == (&hit.arm, hit.block));
    (stood, same.cloned().collect(), workers[0].pid)
}

#[test]
fn a_stopped_worker_is_masked_and_the_figure_stays() {
    let _alone = alone();
    // The stop stands for a stretch in which the host or another process had the CPU. A machine so busy that the stop
    // fell beside the window gets a longer one.
    let masked = |&seconds: &u32| {
        let (stood, observations, victim) = stopped_in_a_window_of(seconds);
        assert_eq!(observations.len(), 2);
        observations.iter().all(|observation| {
            let kept = observation.kept_ns / observation.kept_passes as f64;
            let whole = observation.window_ns / observation.passes as f64;
            println!("{seconds} s, stopped {stood:?}: lost {} ns, {kept} ns against {whole}", observation.lost_ns);
            // The stop is left out of both workers' time, and of the stopped one's figure.
            let figure_stays = observation.pid != Some(victim) || kept < 0.95 * whole;
            observation.lost_ns >= 0.99 * stood.as_nanos() as f64 && figure_stays
        })
    };
    assert!([2, 6, 20].iter().any(masked), "the stop was not masked");
}

#[test]
fn a_table_that_nobody_reads_can_be_interrupted() {
    let _alone = alone();
    let bench = Bench::new(common::QUICK);
    // Not inherited: a reader of its own would keep a run from ending that this test has given up.
    let (read_end, write_end) = nix::unistd::pipe2(OFlag::O_CLOEXEC).unwrap();
    // A page: less than the JSON, so that writing it blocks.
    fcntl(&write_end, FcntlArg::F_SETPIPE_SZ(4096)).unwrap();
    let mut child = bench.run().args(["--json", "--quiet"]).stdout(write_end).spawn().unwrap();
    within(A_LONG_TIME, "output", || {
        let mut fds = [PollFd::new(read_end.as_fd(), PollFlags::POLLIN)];
        matches!(poll(&mut fds, PollTimeout::ZERO), Ok(1)).then_some(())
    });
    assert!(child.try_wait().unwrap().is_none(), "it waits for the reader");
    signal(child.id() as i32, Signal::SIGINT);
    let ended = within(A_LONG_TIME, "the end", || child.try_wait().unwrap());
    assert_eq!(ended.signal(), Some(Signal::SIGINT as i32), "{ended:?}");
    assert!(bench.only_result().join("run.json").exists(), "what was measured is on disk before it is shown");
}
