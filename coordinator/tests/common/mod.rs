//! Running the real program on real files, and looking for what it may have left.
#![allow(dead_code)] // each test binary uses a part

pub(crate) mod cgroup;
pub(crate) mod draw;
pub(crate) mod glimpse;
pub(crate) mod left;
pub(crate) mod room;

use record::{Observation, Reading, Run};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, Command, ExitStatus, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use testing::{A_LONG_TIME, within};

/// A scenario that is quick: two workers, two layouts.
pub(crate) const QUICK: &str = r#"
title = "Quick"
question = "Does it run?"
[measure]
window = "20ms"
warm_up = "2ms"
repetitions = 3
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
loop = ["bump hits[me]"]
"#;

/// A folder of its own for one test: a scenario file and a place for results.
pub(crate) struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    pub(crate) fn new(scenario: &str) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("case.toml"), scenario).unwrap();
        Bench { folder }
    }

    pub(crate) fn scenario(&self) -> PathBuf {
        self.folder.path().join("case.toml")
    }

    pub(crate) fn results(&self) -> PathBuf {
        self.folder.path().join("results")
    }

    /// `coordinator run` on the scenario, results in the folder.
    pub(crate) fn run(&self) -> Command {
        let mut command = coordinator();
        command.arg("run").arg(self.scenario()).arg("--out").arg(self.results());
        command
    }

    /// The one folder that a run left.
    pub(crate) fn only_result(&self) -> PathBuf {
        let scenario = self.results().join("case");
        let folders: Vec<PathBuf> = std::fs::read_dir(&scenario).unwrap().map(|e| e.unwrap().path()).collect();
        assert_eq!(folders.len(), 1, "{folders:?}");
        folders[0].clone()
    }
}

/// User and group that own nothing (`nobody`).
pub(crate) const NOBODY: u32 = 65_534;

/// A bench of that user's own, and its run: scenario, results and the program, for its own folder may be closed to others.
/// Root only.
pub(crate) fn bench_of(user: u32, scenario: &str) -> (Bench, Command) {
    let bench = Bench::new(scenario);
    let folder = bench.folder.path();
    let (built, program) = (Path::new(env!("CARGO_BIN_EXE_coordinator")), folder.join("coordinator"));
    // A second name does, where both lie in one file system.
    std::fs::hard_link(built, &program).or_else(|_| std::fs::copy(built, &program).map(drop)).unwrap();
    for path in [folder, &program] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    chown(folder, Some(user), Some(user)).unwrap();
    let mut command = Command::new(program);
    command.arg("run").arg(bench.scenario()).arg("--out").arg(bench.results()).current_dir(folder);
    command.uid(user).gid(user).stdin(Stdio::null());
    (bench, command)
}

/// Has this process, and so what it begins, heed the signals that ask it to end: a shell without job control begins what it
/// runs in the background with SIGINT ignored, nohup(1) with SIGHUP.
fn heed_requests_to_end() {
    use nix::sys::signal::{SigHandler, Signal, signal};
    for request in [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGHUP, Signal::SIGTERM] {
        #[allow(unsafe_code)]
        // SAFETY: SIG_DFL runs no code of ours.
        unsafe { signal(request, SigHandler::SigDfl) }.unwrap();
    }
}

pub(crate) fn coordinator() -> Command {
    heed_requests_to_end();
    let mut command = Command::new(env!("CARGO_BIN_EXE_coordinator"));
    command.env_remove("NO_COLOR").env("COLUMNS", "80").stdin(Stdio::null());
    command
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

pub(crate) fn is_root() -> bool {
    nix::unistd::geteuid().is_root()
}

/// Held by a test that measures: two runs at once take each other's CPUs, and both would be spoiled.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static MEASURING: Mutex<()> = Mutex::new(());
    // A test that failed leaves nothing behind that the next one could trip over.
    MEASURING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A process of workers of one coordinator, found in procfs.
#[derive(Clone, Debug)]
pub(crate) struct Worker {
    pub(crate) pid: i32,
    pub(crate) segment: String,
    /// The process's number: its worker's index, where every process before it has one thread, too.
    pub(crate) index: u32,
    /// When the kernel started it, in ticks since the machine's start: with the pid, nobody else's.
    started: u64,
}

impl Worker {
    /// Whether it lives; a zombie, which nobody may ever reap, does not.
    pub(crate) fn lives(&self) -> bool {
        started(self.pid) == Some(self.started)
    }
}

/// When a living process started; `None` where it has ended.
fn started(pid: i32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // proc_pid_stat(5): the state is the third field, behind the name, which may hold spaces; the start is the 22nd.
    let after_name: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let has_ended = matches!(after_name[0], "Z" | "X");
    (!has_ended).then(|| after_name[19].parse().unwrap())
}

/// The workers of the coordinator with that pid.
pub(crate) fn workers_of(coordinator: u32) -> Vec<Worker> {
    children_of(coordinator)
        .into_iter()
        .filter_map(|pid| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let words: Vec<&str> = std::str::from_utf8(&line).ok()?.split('\0').collect();
            let [_, "__worker", segment, index, _, parent, ..] = words[..] else { return None };
            if parent != coordinator.to_string() {
                return None;
            }
            let (segment, index) = (segment.to_owned(), index.parse().unwrap());
            Some(Worker { pid, segment, index, started: started(pid)? })
        })
        .collect()
}

/// The children of a process; every process where the kernel does not tell (CONFIG_PROC_CHILDREN).
fn children_of(pid: u32) -> Vec<i32> {
    match std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")) {
        Ok(children) => children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect(),
        Err(_) => {
            let all = std::fs::read_dir("/proc").unwrap();
            all.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok()).collect()
        }
    }
}

/// A started run, and its workers once they are in a window of many seconds.
pub(crate) fn in_a_window(command: Command) -> (Child, Vec<Worker>) {
    in_a_window_for(command, Duration::from_millis(200))
}

/// The same, once each worker has used so much CPU time. Their segment has no name any more by then, and the probes and
/// the short warm-up of the scenarios that use this take less, unless the machine is very busy.
pub(crate) fn in_a_window_for(mut command: Command, used: Duration) -> (Child, Vec<Worker>) {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let workers = within(A_LONG_TIME, "two workers in a window", || {
        let workers = workers_of(child.id());
        let busy = workers.iter().all(|w| w.lives() && cpu_time(w.pid) >= used);
        (workers.len() == 2 && !has_name(&workers[0].segment) && busy).then_some(workers)
    });
    (child, workers)
}

/// CPU time that a process has used, to a tick; none where it is gone.
pub(crate) fn cpu_time(pid: i32) -> Duration {
    let ticks_per_second = nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).unwrap().unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // proc_pid_stat(5): utime and stime are the 14th and 15th field; the second, the name, may hold spaces.
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks: u64 = after_name.split_whitespace().skip(11).take(2).filter_map(|n| n.parse::<u64>().ok()).sum();
    Duration::from_secs_f64(ticks as f64 / ticks_per_second as f64)
}

pub(crate) fn has_name(segment: &str) -> bool {
    Path::new("/dev/shm").join(segment).exists()
}

/// Asserts that none of these processes lives and their segment has no name.
pub(crate) fn assert_gone(workers: &[Worker], limit: Duration) {
    within(limit, "workers gone", || (!workers.iter().any(Worker::lives)).then_some(()));
    assert!(workers.iter().all(|w| !has_name(&w.segment)));
}

/// A run with `--hold`, and what it is told.
pub(crate) struct Conversation {
    pub(crate) child: Child,
    input: Option<ChildStdin>,
    errors: BufReader<ChildStderr>,
    said: String,
}

/// What a run says at a gate.
pub(crate) struct AtGate {
    pub(crate) text: String,
    /// Of each worker, in order.
    pub(crate) pids: Vec<i32>,
}

impl Conversation {
    pub(crate) fn with(mut command: Command) -> Conversation {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, errors) = (child.stdin.take(), BufReader::new(child.stderr.take().unwrap()));
        Conversation { child, input, errors, said: String::new() }
    }

    /// Reads until the workers stand at the next gate.
    pub(crate) fn gate(&mut self) -> AtGate {
        let (mut text, mut held) = (String::new(), false);
        loop {
            let mut line = String::new();
            let length = self.errors.read_line(&mut line).unwrap();
            assert!(length > 0, "ended before a gate: {}", self.said);
            self.said.push_str(&line);
            held |= line.starts_with("held ");
            if held {
                text.push_str(&line);
            }
            if held && line.starts_with("Enter") {
                let pid = |line: &str| {
                    line.rsplit_once(": pid ").map(|(_, pid)| pid.split(',').next().unwrap().parse().unwrap())
                };
                return AtGate { pids: text.lines().filter_map(pid).collect(), text };
            }
        }
    }

    pub(crate) fn input(&mut self) -> &mut ChildStdin {
        self.input.as_mut().expect("the input was not ended")
    }

    /// Presses Enter.
    pub(crate) fn go_on(&mut self) {
        self.input().write_all(b"\n").unwrap();
    }

    pub(crate) fn end_input(&mut self) {
        self.input = None;
    }

    /// Waits for the end: the status, everything on standard error, and standard output. Input stays open until then.
    pub(crate) fn finish(mut self) -> (ExitStatus, String, String) {
        // The JSON may fill its pipe, and standard error is short: so in this order.
        let mut out = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        self.errors.read_to_string(&mut self.said).unwrap();
        (self.child.wait().unwrap(), self.said, out)
    }
}

/// The observations of a role, every arm's.
pub(crate) fn of_role<'r>(run: &'r Run, role: &str) -> Vec<&'r Observation> {
    run.observations.iter().filter(|one| one.role == role).collect()
}

/// What was counted; where it was not, the test asked for what it may not rely on.
pub(crate) fn counted(one: &Observation, name: &str) -> u64 {
    match &one.counters[name] {
        Reading::Counted { value } => *value,
        other => panic!("{name}: {other:?}"),
    }
}
