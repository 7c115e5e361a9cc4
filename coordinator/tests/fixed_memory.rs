//! A run that logs every wait and hold (`run --lock-log`) needs no more memory for many than for few: `LAB_LOCK_RECORDS`
//! of them, for `LAB_LOCK_MINUTES`, from `LAB_LOCK_WORKERS`, against a quarter or less. Nor more descriptors or mappings.

mod common;

use common::{Bench, alone, stderr, workers_of};
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use record::Run;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::process::Stdio;
use std::time::{Duration, Instant};
use testing::{A_LONG_TIME, not_here, within};

/// Acquisitions as fast as they go: one hold in 251 is logged, and with several workers each contended wait, which are so
/// many where the machine is quiet that a few seconds of them take minutes to write.
const SCENARIO: &str = r#"
title = "Logged"
question = "Does memory grow with what is logged?"
[measure]
window = "400ms"
warm_up = "2ms"
repetitions = 1
baselines = []
[lock.m]
kind = "ticket"
[field.balance]
type = "u64"
[[role]]
name = "teller"
workers = 1
loop = ["lock m", "bump balance", "unlock m"]
"#;

/// What one entry of a log takes in a worker's memory, and would take in the coordinator's (`record::TickSpan`).
const ENTRY_BYTES: u64 = 16;

/// What stays of each worker in a repetition until the run's end: the nanoseconds a pass of 800 slices, and of its waits
/// and holds how many were how long, in the buckets of a histogram of three digits. A few times as much as was seen.
const REPETITION_BYTES: u64 = 64 << 10;

/// What comes once: the page, the histograms.
const ONCE_BYTES: u64 = 2 << 20;

/// What a worker may have at most: the two logs of its lock, a million entries each, and its report, which is as long
/// again and is copied while it grows; beside it, its program and its compiled loop.
const WORKER_BYTES: u64 = 4 * 2 * 1_000_000 * ENTRY_BYTES + (64 << 20);

/// The most that a run was seen to have.
#[derive(Debug, Default)]
struct Peaks {
    records: u64,
    repetitions: u64,
    coordinator_bytes: u64,
    worker_bytes: u64,
    descriptors: usize,
    mappings: usize,
    took: Duration,
}

/// Most resident memory so far; none where the process is gone.
fn peak_bytes(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok()).map_or(0, |kib| kib * 1024)
}

impl Peaks {
    fn look(&mut self, coordinator: u32) {
        for worker in workers_of(coordinator) {
            self.worker_bytes = self.worker_bytes.max(peak_bytes(worker.pid));
        }
        let fds = fs::read_dir(format!("/proc/{coordinator}/fd")).map_or(0, |fds| fds.count());
        let maps = fs::read_to_string(format!("/proc/{coordinator}/maps")).unwrap_or_default().lines().count();
        self.descriptors = self.descriptors.max(fds);
        self.mappings = self.mappings.max(maps);
    }

    /// A run of so many repetitions of the arm and its control.
    fn of(repetitions: u64, workers: u64) -> Peaks {
        let bench = Bench::new(SCENARIO);
        // Not inherited: a reader of its own would keep a run from ending that this test has given up.
        let (read_end, write_end) = nix::unistd::pipe2(OFlag::O_CLOEXEC).unwrap();
        // A page: less than the JSON, so that the coordinator, which has written everything else by then, waits to be
        // looked at.
        fcntl(&write_end, FcntlArg::F_SETPIPE_SZ(4096)).unwrap();
        let mut command = bench.run();
        command.args(["--json", "--quiet", "--lock-log"]);
        command.args(["--repetitions", &repetitions.to_string(), "--workers", &workers.to_string()]);
        let began = Instant::now();
        let child = command.stdout(write_end).stderr(Stdio::piped()).spawn().unwrap();
        drop(command);
        let mut peaks = Peaks::default();
        let long = A_LONG_TIME + Duration::from_secs(20) * repetitions as u32;
        within(long, "the JSON", || {
            peaks.look(child.id());
            std::thread::sleep(Duration::from_millis(8));
            let mut fds = [PollFd::new(read_end.as_fd(), PollFlags::POLLIN)];
            matches!(poll(&mut fds, PollTimeout::ZERO), Ok(1)).then_some(())
        });
        peaks.coordinator_bytes = peak_bytes(child.id() as i32);
        let mut json = Vec::new();
        File::from(read_end).read_to_end(&mut json).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 3)), "{:?} {}", output.status, stderr(&output));
        let run: Run = serde_json::from_slice(&json).unwrap();
        let log = BufReader::new(File::open(bench.only_result().join("locks.csv")).unwrap());
        // Without the head.
        peaks.records = log.split(b'\n').count() as u64 - 1;
        peaks.repetitions = run.observations.len() as u64 / workers;
        peaks.took = began.elapsed();
        println!("{peaks:?}");
        peaks
    }
}

fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap_or_else(|_| panic!("{name}: a number")))
}

#[test]
fn memory_does_not_grow_with_the_records_of_a_lock_log() {
    let _alone = alone();
    let (wanted, minutes) = (from_environment("LAB_LOCK_RECORDS", 0), from_environment("LAB_LOCK_MINUTES", 0));
    let workers = from_environment("LAB_LOCK_WORKERS", 1);
    let few = Peaks::of(1, workers);
    // So many that, if they were kept, they would take twice what is granted, unless the machine is so busy that a window
    // has next to none.
    let granted = |repetitions: u64| ONCE_BYTES + REPETITION_BYTES * workers * repetitions;
    let enough = |times: u64| times * few.records * ENTRY_BYTES > 2 * granted(times * few.repetitions);
    let seconds = few.took.as_secs_f64();
    // Where the machine was so busy that the two hardly met, the next windows will have more.
    let least = wanted.div_ceil(few.records.max(20_000)).max((minutes as f64 * 60.0 / seconds) as u64).max(4);
    assert!(few.records > 0, "a window in which nothing was logged: {few:?}");
    let Some(times) = (least..least + 200).find(|times| enough(*times)) else {
        return not_here(&format!(
            "quiet enough a machine: {} records of a run tell nothing of its memory",
            few.records
        ));
    };
    let many = Peaks::of(times, workers);
    let growth = many.coordinator_bytes.saturating_sub(few.coordinator_bytes);
    println!("{growth} bytes more for {} records instead of {}", many.records, few.records);
    assert!(growth < granted(many.repetitions - few.repetitions), "{few:?}, but {many:?}");
    assert!(few.worker_bytes.max(many.worker_bytes) < WORKER_BYTES, "{few:?}, but {many:?}");
    assert!(many.descriptors <= few.descriptors + 2 && many.mappings <= few.mappings + 8, "{few:?}, but {many:?}");
}
