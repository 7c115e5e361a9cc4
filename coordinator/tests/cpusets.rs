//! A real cpuset takes a CPU away: before the run, and in its middle.

mod common;

use common::cgroup::Cgroup;
use common::{Bench, QUICK, stderr, workers_of};
use testing::{A_LONG_TIME, skip, within};

const CPUS: [&str; 2] = ["cpuset.cpus"; 2];

/// A cpuset with these CPUs; `None` where none is to be had.
fn cpuset(name: &str, cpus: &str) -> Option<Cgroup> {
    let cpuset = Cgroup::new("cpuset", name, CPUS)?;
    cpuset.set(CPUS, cpus).ok()?;
    if cpuset.is_first_version() {
        // Version 1 takes no process in before it has memory nodes.
        let nodes = std::fs::read_to_string("/sys/fs/cgroup/cpuset/cpuset.effective_mems").ok()?;
        cpuset.set(["cpuset.mems"; 2], nodes.trim()).ok()?;
    }
    Some(cpuset)
}

fn on_two_cpus(repetitions: u32) -> Bench {
    let scenario = QUICK.replace("workers = 2", "workers = 2\ncpus = [0, 1]");
    Bench::new(&scenario.replace("repetitions = 3", &format!("repetitions = {repetitions}\nbaselines = []")))
}

#[test]
fn a_cpu_outside_the_cpuset_is_refused_by_name() {
    let Some(cpuset) = cpuset("before", "0") else {
        return skip("making a cpuset needs root and a writable cgroup tree");
    };
    let bench = on_two_cpus(3);
    let output = cpuset.run(&bench).output().unwrap();
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("CPU 1 is online, but the cpuset or the affinity mask takes it away"), "{text}");
    let name = cpuset.name();
    assert!(text.contains(&format!("its cpuset /{name} allows 0")), "{text}");
    assert!(!bench.results().exists());
}

#[test]
fn a_cpu_taken_away_in_the_middle_ends_the_run_with_the_worker_and_the_cure() {
    let Some(cpuset) = cpuset("midway", "0-1") else {
        return skip("making a cpuset needs root, two CPUs and a writable cgroup tree");
    };
    let bench = on_two_cpus(10_000);
    let mut child = cpuset.run(&bench).spawn().unwrap();
    let first = within(A_LONG_TIME, "a repetition", || workers_of(child.id()).pop());
    within(A_LONG_TIME, "the next one", || workers_of(child.id()).pop().filter(|w| w.segment != first.segment));
    cpuset.set(CPUS, "0").unwrap();
    // Whether worker 1 finds no CPU to pin itself to, or has to share another in the middle of a probe.
    within(A_LONG_TIME, "the end of the run", || child.try_wait().unwrap());
    let output = child.wait_with_output().unwrap();
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("the CPU of worker 1 (role `counter`, CPU 1) was taken away during the run"), "{text}");
    let name = cpuset.name();
    assert!(text.contains(&format!("its cpuset /{name} allows 0")) && text.contains("--cpus"), "the cure: {text}");
    assert!(bench.only_result().join("run.json").exists(), "complete repetitions are on disk");
}
