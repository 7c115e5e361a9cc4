//! A real cpuset takes a CPU away: before the run, and in its middle.

mod common;

use common::{A_LONG_TIME, Bench, QUICK, is_root, skip, stderr, within, workers_of};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A cpuset cgroup of a test's own, removed at its end.
struct Cpuset(PathBuf);

impl Cpuset {
    /// Makes one with these CPUs, under version 1 or 2; `None` where neither is to be had.
    fn new(name: &str, cpus: &str) -> Option<Cpuset> {
        let v1 = Path::new("/sys/fs/cgroup/cpuset");
        let v2 = Path::new("/sys/fs/cgroup");
        if v2.join("cgroup.subtree_control").exists() {
            // It may be on already, or not be ours to turn on: the child shows which.
            let _ = std::fs::write(v2.join("cgroup.subtree_control"), "+cpuset");
        }
        let parent = if v1.join("cpuset.cpus").exists() { v1 } else { v2 };
        let cpuset = Cpuset(parent.join(format!("contention-lab-test-{name}-{}", std::process::id())));
        std::fs::create_dir(&cpuset.0).ok()?;
        cpuset.allow(cpus).ok()?;
        if parent == v1 {
            // Version 1 takes no process in before it has memory nodes.
            let nodes = std::fs::read_to_string(v1.join("cpuset.effective_mems")).ok()?;
            std::fs::write(cpuset.0.join("cpuset.mems"), nodes.trim()).ok()?;
        }
        Some(cpuset)
    }

    fn allow(&self, cpus: &str) -> std::io::Result<()> {
        std::fs::write(self.0.join("cpuset.cpus"), cpus)
    }

    /// A run on the scenario that is in the cpuset from its first moment.
    fn run(&self, bench: &Bench) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ >\"$0/cgroup.procs\" && exec \"$@\""]).arg(&self.0);
        command.arg(env!("CARGO_BIN_EXE_coordinator")).arg("run").arg(bench.scenario());
        command.arg("--out").arg(bench.results()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

impl Drop for Cpuset {
    fn drop(&mut self) {
        // Busy until the kernel has let go of the last process.
        for _ in 0..1_000 {
            match std::fs::remove_dir(&self.0) {
                Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                _ => return,
            }
        }
    }
}

fn on_two_cpus(repetitions: u32) -> Bench {
    let scenario = QUICK.replace("workers = 2", "workers = 2\ncpus = [0, 1]");
    Bench::new(&scenario.replace("repetitions = 3", &format!("repetitions = {repetitions}\nbaselines = []")))
}

#[test]
fn a_cpu_outside_the_cpuset_is_refused_by_name() {
    let cpuset = if is_root() { Cpuset::new("before", "0") } else { None };
    let Some(cpuset) = cpuset else { return skip("making a cpuset needs root and a writable cgroup tree") };
    let bench = on_two_cpus(3);
    let output = cpuset.run(&bench).output().unwrap();
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("CPU 1 is online, but the cpuset or the affinity mask takes it away"), "{text}");
    let name = cpuset.0.file_name().unwrap().to_str().unwrap();
    assert!(text.contains(&format!("its cpuset /{name} allows 0")), "{text}");
    assert!(!bench.results().exists());
}

#[test]
fn a_cpu_taken_away_in_the_middle_ends_the_run_with_the_worker_and_the_cure() {
    let cpuset = if is_root() { Cpuset::new("midway", "0-1") } else { None };
    let Some(cpuset) = cpuset else { return skip("making a cpuset needs root, two CPUs and a writable cgroup tree") };
    let bench = on_two_cpus(10_000);
    let mut child = cpuset.run(&bench).spawn().unwrap();
    let first = within(A_LONG_TIME, "a repetition", || workers_of(child.id()).pop());
    within(A_LONG_TIME, "the next one", || workers_of(child.id()).pop().filter(|w| w.segment != first.segment));
    cpuset.allow("0").unwrap();
    // Whether worker 1 finds no CPU to pin itself to, or has to share another in the middle of a probe.
    within(A_LONG_TIME, "the end of the run", || child.try_wait().unwrap());
    let output = child.wait_with_output().unwrap();
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("the CPU of worker 1 (role `counter`, CPU 1) was taken away during the run"), "{text}");
    let name = cpuset.0.file_name().unwrap().to_str().unwrap();
    assert!(text.contains(&format!("its cpuset /{name} allows 0")) && text.contains("--cpus"), "the cure: {text}");
    assert!(bench.only_result().join("run.json").exists(), "complete repetitions are on disk");
}
