//! `run --hold`: who stands at the gates, what opens them, and what is left when it ends there.

mod common;

use common::{Bench, Conversation, QUICK, alone, assert_gone, cpu_time, workers_of};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::Write;
use std::time::Duration;
use testing::{A_LONG_TIME, within};

/// One repetition of two workers; the control arm is a second one.
fn two_repetitions() -> Bench {
    Bench::new(&QUICK.replace("repetitions = 3", "repetitions = 1\nbaselines = []"))
}

fn hold(bench: &Bench) -> Conversation {
    let mut command = bench.run();
    command.args(["--hold", "--json", "--only", "padded"]);
    Conversation::with(command)
}

#[test]
fn every_repetition_stops_twice_with_the_pids_of_its_workers_and_a_line_opens_each_gate() {
    let _alone = alone();
    let bench = two_repetitions();
    let mut run = hold(&bench);
    let mut seen = Vec::new();
    for _ in 0..2 {
        let before = run.gate();
        let mut pids: Vec<i32> = workers_of(run.child.id()).iter().map(|worker| worker.pid).collect();
        pids.sort_unstable();
        let mut said = before.pids.clone();
        said.sort_unstable();
        assert_eq!(said, pids, "{}", before.text);
        assert!(before.text.contains("worker 0 (role `counter`, CPU ") && before.text.contains("worker 1 (role"));
        assert!(before.text.starts_with("held before the warm-up: arm `"), "{}", before.text);
        asleep(&before.pids);
        run.go_on();
        let after = run.gate();
        assert!(after.text.starts_with("held after the window: arm `") && after.pids == before.pids, "{}", after.text);
        asleep(&after.pids);
        run.go_on();
        seen.push(before.text.split('`').nth(1).unwrap_or_default().to_owned());
    }
    let (status, _, out) = run.finish();
    assert!(matches!(status.code(), Some(0 | 3)), "{status}"); // 3: the machine was noisy
    seen.sort();
    assert_eq!(seen, ["control", "padded"]);
    let run: record::Run = serde_json::from_str(&out).unwrap();
    assert_eq!(run.observations.len(), 4);
    assert!(run.observations.iter().all(|o| o.passes > 0 || !o.spoiled.is_empty()), "{:?}", run.observations);
}

/// Held workers use next to no CPU: they look at the gate a hundred times a second and sleep in between.
fn asleep(pids: &[i32]) {
    std::thread::sleep(Duration::from_millis(20)); // it may still be on its way to sleep
    let used = || pids.iter().map(|pid| cpu_time(*pid)).sum::<Duration>();
    let before = used();
    std::thread::sleep(Duration::from_millis(300));
    assert!(used() - before <= Duration::from_millis(100), "{pids:?} run while they are held");
}

#[test]
fn lines_that_came_early_open_the_gates_one_by_one() {
    let _alone = alone();
    let bench = two_repetitions();
    let mut run = hold(&bench);
    run.input().write_all(b"\n\nand\nso on\n").unwrap();
    let (status, said, _) = run.finish();
    assert!(matches!(status.code(), Some(0 | 3)), "{status}");
    assert_eq!(said.matches("held before the warm-up").count(), 2, "{said}");
    assert_eq!(said.matches("held after the window").count(), 2, "{said}");
}

#[test]
fn the_end_of_input_ends_the_run_like_an_interrupt_at_either_gate() {
    let _alone = alone();
    for gates in [1, 2] {
        let bench = two_repetitions();
        let mut run = hold(&bench);
        let mut workers = Vec::new();
        for gate in 1..=gates {
            run.gate();
            workers = workers_of(run.child.id());
            assert_eq!(workers.len(), 2);
            if gate < gates {
                run.go_on();
            }
        }
        run.end_input();
        let (status, said, out) = run.finish();
        assert_eq!((status.code(), out.as_str()), (Some(130), ""), "{said}");
        assert!(said.contains("interrupted: workers ended, segment removed"), "{said}");
        assert_gone(&workers, A_LONG_TIME);
        assert!(!bench.results().exists());
    }
}

#[test]
fn an_interrupt_at_a_gate_ends_the_run() {
    let _alone = alone();
    let bench = two_repetitions();
    let mut run = hold(&bench);
    run.gate();
    let workers = workers_of(run.child.id());
    kill(Pid::from_raw(run.child.id() as i32), Signal::SIGINT).unwrap();
    let (status, said, _) = run.finish();
    assert_eq!(status.code(), Some(130), "{said}");
    assert_gone(&workers, A_LONG_TIME);
}

#[test]
fn a_worker_that_dies_at_a_gate_ends_the_run_with_its_name() {
    let _alone = alone();
    let bench = two_repetitions();
    let mut run = hold(&bench);
    run.gate();
    let workers = workers_of(run.child.id());
    let victim = workers.iter().find(|worker| worker.index == 1).unwrap();
    kill(Pid::from_raw(victim.pid), Signal::SIGKILL).unwrap();
    let (status, said, _) = run.finish();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("worker 1 (role `counter`, CPU ") && said.contains("while held at a gate"), "{said}");
    assert_gone(&workers, A_LONG_TIME);
}

#[test]
fn held_workers_end_with_their_coordinator() {
    let _alone = alone();
    let bench = two_repetitions();
    let mut run = hold(&bench);
    run.gate();
    let workers = workers_of(run.child.id());
    run.child.kill().unwrap();
    run.child.wait().unwrap();
    assert_gone(&workers, A_LONG_TIME);
    within(A_LONG_TIME, "no worker", || workers_of(run.child.id()).is_empty().then_some(()));
}

#[test]
fn nothing_runs_in_a_dry_run_so_nothing_can_be_held() {
    let output = two_repetitions().run().args(["--hold", "--dry-run"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
}
