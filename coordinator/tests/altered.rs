//! A segment that another process of the same user writes into while workers run: the run ends within its deadlines, with
//! a message where it fails, and leaves nothing. What is altered before a worker attaches it refuses (`shm-layout`).
//!
//! The deadlines themselves are awaited where `LAB_ALTERED` is set, as in `.ci/long inputs`: it says how many more runs
//! have bytes changed at random.

mod common;

use common::{Bench, in_a_window, stderr, workers_of};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::process::{Child, Output, Stdio};
use std::time::Duration;
use testing::{A_LONG_TIME, skip, within};

/// Two workers at a lock, in one arm and its control.
const SCENARIO: &str = r#"
title = "Altered"
[measure]
window = "300ms"
warm_up = "2ms"
repetitions = 1
baselines = []
[field.hits]
type = "u64"
each = "worker"
[lock.m]
kind = "KIND"
[[role]]
name = "counter"
workers = 2
loop = ["lock m", "bump hits[me]", "unlock m"]
"#;

// Where what lies: shm-layout/src/map.rs.
const PHASE: u64 = 128;
const CLOSED_FROM: u64 = 132;
const OPEN_TICKS: u64 = 136;
const READY: u64 = 256;
const LEFT: u64 = 384;
const SLOTS: u64 = 512;
const SLOT_BYTES: usize = 256;
const STATUS_BYTES: usize = 32;
/// Behind two slots and the nodes of one lock.
const AREA: u64 = 4096;

/// The lock there, behind the two counters.
const LOCK: u64 = AREA + 16;

/// What is written, and at which offset.
type Change = (u64, Vec<u8>);

/// Where a process has the segment; `None` where it has ended.
fn mapped(pid: i32) -> Option<(u64, u64)> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let line = maps.lines().find(|line| line.contains("/dev/shm/contention-lab-"))?;
    let (from, to) = line.split(' ').next()?.split_once('-')?;
    let hex = |text| u64::from_str_radix(text, 16).ok();
    Some((hex(from)?, hex(to)?))
}

/// Writes into the segment through a worker's memory. False where that worker has ended, or may not be written to.
fn alter(pid: i32, offset: u64, bytes: &[u8]) -> bool {
    let Some((base, end)) = mapped(pid) else { return false };
    let bytes = &bytes[..bytes.len().min((end - base).saturating_sub(offset) as usize)];
    let memory = OpenOptions::new().write(true).open(format!("/proc/{pid}/mem"));
    memory.is_ok_and(|memory| memory.write_all_at(bytes, base + offset).is_ok())
}

/// Waits for the end of a run that may not take long, and looks at how it ended.
fn ended(mut child: Child, what: &str) -> Output {
    within(A_LONG_TIME, &format!("the end of a run whose {what} was altered"), || child.try_wait().unwrap());
    let output = child.wait_with_output().unwrap();
    let said = stderr(&output);
    // A figure may be nonsense after this, and an interrupt or a crash of the coordinator is never the answer.
    assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{what}: {:?}\n{said}", output.status);
    assert!(!said.contains("panicked"), "{what}: {said}");
    assert!(output.status.code() != Some(1) || said.contains("error: "), "{what}: failed without a word\n{said}");
    output
}

/// Alters a segment whose workers stand at the gate before the warm-up, and lets them go.
fn altered_at_the_gate(kind: &str, what: &str, changes: &[Change]) -> Option<Output> {
    let bench = Bench::new(&SCENARIO.replace("KIND", kind));
    let mut command = bench.run();
    command.args(["--hold", "--quiet"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let workers = within(A_LONG_TIME, "two workers at a gate", || {
        let workers = workers_of(child.id());
        let held = |pid: i32| {
            std::fs::read_to_string(format!("/proc/{pid}/maps")).is_ok_and(|maps| maps.contains("(deleted)"))
        };
        (workers.len() == 2 && workers.iter().all(|one| held(one.pid))).then_some(workers)
    });
    // They come to the gate after their probes, of which nothing tells.
    let mut input = child.stdin.take().unwrap();
    std::thread::sleep(Duration::from_millis(100));
    if !changes.iter().all(|(offset, bytes)| alter(workers[0].pid, *offset, bytes)) {
        child.kill().unwrap();
        child.wait().unwrap();
        skip("/proc/PID/mem of a worker cannot be written");
        return None;
    }
    // As many lines as any run has gates; it may have ended before it takes them.
    let _ = input.write_all(&[b'\n'; 64]);
    let output = ended(child, what);
    drop(input);
    common::assert_gone(&workers, A_LONG_TIME);
    Some(output)
}

fn word(value: u32) -> Vec<u8> {
    value.to_le_bytes().to_vec()
}

#[test]
fn what_nobody_reads_again_changes_nothing() {
    let _alone = common::alone();
    // All was compared when the workers attached, and the clock's rate was taken over then.
    let Some(output) = altered_at_the_gate("pthread", "header", &[(0, vec![0xff; 128])]) else { return };
    assert_ne!(output.status.code(), Some(1), "{}", stderr(&output));
}

#[test]
fn words_that_steer_a_run_end_it_within_its_deadlines() {
    let _alone = common::alone();
    let ticks = |open: u64, close: u64| [open.to_le_bytes(), close.to_le_bytes()].concat();
    let mut cases: Vec<(&str, Vec<Change>)> = vec![
        ("phase, to none,", vec![(PHASE, word(77))]),
        ("phase, to the end,", vec![(PHASE, word(2))]),
        ("gate", vec![(CLOSED_FROM, word(u32::MAX))]),
        ("window, to one that is over,", vec![(OPEN_TICKS, ticks(1, 2))]),
        ("window, to one that ends before it begins,", vec![(OPEN_TICKS, ticks(u64::MAX, 1))]),
        ("slots", vec![(SLOTS, vec![0xff; STATUS_BYTES]), (SLOTS + SLOT_BYTES as u64, vec![0xff; STATUS_BYTES])]),
    ];
    if std::env::var_os("LAB_ALTERED").is_some() {
        let slots = (SLOTS, vec![0xee; 2 * SLOT_BYTES]);
        cases.push(("count of those who are ready", vec![(READY, word(9)), slots]));
        cases.push(("count of those who have left", vec![(LEFT, word(u32::MAX))]));
        cases.push(("phase, back to the first,", vec![(PHASE, word(0))]));
    }
    for (what, changes) in cases {
        altered_at_the_gate("pthread", what, &changes);
    }
}

/// A tail decides where the next worker's compiled code looks, so that one which leads out of the segment may not be followed.
#[test]
fn a_queue_that_names_no_node_is_told_and_not_followed() {
    let _alone = common::alone();
    for name in [0, 4, 127, 4 * 128, 1 << 31, u32::MAX] {
        let Some(output) = altered_at_the_gate("clh", "tail", &[(LOCK, word(name))]) else { return };
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{name:#x}: {said}");
        assert!(said.contains("tail"), "{name:#x}: {said}");
    }
}

#[test]
fn locks_full_of_nonsense_end_a_run_within_its_deadlines() {
    let _alone = common::alone();
    // Of these an alteration is a lock that somebody holds, or a value that a call refuses: the first wait shows it.
    let few = ["semaphore"];
    let all =
        ["pthread", "pthread-robust", "pthread-pi", "pthread-rwlock", "semaphore", "ticket", "mcs", "clh", "seqlock"];
    let kinds = if std::env::var_os("LAB_ALTERED").is_some() { &all[..] } else { &few[..] };
    for kind in kinds {
        altered_at_the_gate(kind, &format!("{kind} lock"), &[(AREA, vec![0xff; 64]), (AREA + 64, vec![0x55; 192])]);
    }
}

/// Numbers by a generator of Marsaglia's: the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

#[test]
fn bytes_changed_at_random_in_a_window_end_a_run_within_its_deadlines() {
    let _alone = common::alone();
    let runs: u64 =
        std::env::var("LAB_ALTERED").map_or(1, |runs| runs.parse().expect("LAB_ALTERED is a number of runs"));
    for run in 0..runs {
        let mut numbers = Numbers(88_172_645_463_325_252 ^ run << 17);
        let kind = ["pthread", "ticket", "mcs", "clh", "semaphore"][numbers.below(5) as usize];
        let scenario = SCENARIO.replace("KIND", kind).replace("300ms", "1s");
        let bench = Bench::new(&scenario);
        let mut command = bench.run();
        command.arg("--quiet");
        let (child, workers) = in_a_window(command);
        let mut changed = Vec::new();
        for _ in 0..8 {
            // Not the locks' area alone: header, control block, slots and nodes as well.
            let end = if numbers.below(2) == 0 { 1024 } else { AREA + 512 };
            let offset = numbers.below(end);
            let byte = [0, 1, 0x7f, 0x80, 0xff][numbers.below(5) as usize];
            if alter(workers[0].pid, offset, &[byte]) {
                changed.push((offset, byte));
            }
        }
        ended(child, &format!("run {run}, {kind}, with bytes {changed:?}"));
        common::assert_gone(&workers, A_LONG_TIME);
    }
}
