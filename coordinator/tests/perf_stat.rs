//! The software counts against an independent witness: `perf stat -p` attached to the same worker, from the gate before
//! its warm-up to the gate after its window. Between the gates and the window the worker touches no new page, so page
//! faults agree exactly; and it runs for microseconds, so the task clocks agree closely.

mod common;

use common::{Bench, Conversation, alone};
use nix::unistd::{SysconfVar, sysconf};
use record::{Observation, Reading, Run};
use std::collections::BTreeMap;
use testing::{Perf, skip};

/// One worker that touches a thousand pages for the first time inside its window, and again until it closes.
const THOUSAND_PAGES: &str = r#"
title = "A thousand pages"
question = "Do the lab's counts agree with perf's?"
[measure]
window = "1s"
warm_up = "0ms"
repetitions = 1
baselines = []
[region.heap]
size = "4000KiB"
[[role]]
name = "toucher"
after = "5ms"
loop = ["touch heap"]
"#;

/// The region's pages: a thousand, unless the machine's are larger.
fn pages() -> f64 {
    let page_bytes = sysconf(SysconfVar::PAGE_SIZE).unwrap().unwrap();
    f64::ceil(4_096_000.0 / page_bytes as f64)
}

/// What the task clocks may differ by: perf's runs on from the window's closing until the worker sleeps at the gate.
const TASK_CLOCK_TOLERANCE: f64 = 0.05;

const EVENTS: &str = "task-clock,page-faults,page-faults:u";

/// What perf counted on one worker.
struct Witness {
    task_clock_ns: f64,
    /// User and kernel mode, and user mode alone, as the lab counts.
    page_faults: f64,
    user_page_faults: f64,
}

impl Witness {
    fn of(counts: &BTreeMap<String, f64>) -> Witness {
        Witness {
            task_clock_ns: counts["task-clock"] * 1e6, // perf prints milliseconds
            page_faults: counts["page-faults"],
            user_page_faults: counts["page-faults:u"],
        }
    }
}

#[test]
fn perf_attached_to_the_same_worker_counts_the_same() {
    let _alone = alone();
    let bench = Bench::new(THOUSAND_PAGES);
    let mut command = bench.run();
    command.args(["--hold", "--json"]);
    let mut run = Conversation::with(command);
    let mut witnesses = Vec::new();
    // The only variant, and the control arm.
    for _ in 0..2 {
        let [pid] = run.gate().pids[..] else { panic!("one worker") };
        let perf = match Perf::attach(pid, EVENTS) {
            Ok(perf) => perf,
            Err(why) => return skip(&format!("perf stat cannot be attached to a worker here: {why}")),
        };
        run.go_on();
        run.gate();
        witnesses.push((pid, Witness::of(&perf.detach())));
        run.go_on();
    }
    let (status, said, out) = run.finish();
    assert!(matches!(status.code(), Some(0 | 3)), "{status}: {said}"); // 3: the machine was noisy
    let run: Run = serde_json::from_str(&out).unwrap();
    for (pid, witness) in witnesses {
        let ours = run.observations.iter().find(|o| o.pid == Some(pid)).expect("the worker that perf was attached to");
        compare(ours, &witness);
    }
}

fn compare(ours: &Observation, witness: &Witness) {
    let (Some(page_faults), Some(task_clock_ns)) = (counted(ours, "page_faults"), counted(ours, "task_clock")) else {
        return skip("this machine or its settings let the lab count no software events");
    };
    let difference = task_clock_ns / witness.task_clock_ns - 1.0;
    println!(
        "{}: page faults: ours {page_faults}, perf's {} of which {} in user mode; task clock: ours {task_clock_ns} ns, \
         perf's {} ns: {:+.3} %",
        ours.arm,
        witness.page_faults,
        witness.user_page_faults,
        witness.task_clock_ns,
        difference * 100.0
    );
    assert_eq!((page_faults, witness.user_page_faults), (pages(), pages()), "the lab counts faults of user mode");
    assert_eq!(witness.page_faults, pages(), "the kernel touches no new page on the worker's behalf");
    assert!(difference.abs() <= TASK_CLOCK_TOLERANCE, "ours {task_clock_ns} ns, perf's {} ns", witness.task_clock_ns);
}

fn counted(ours: &Observation, counter: &str) -> Option<f64> {
    match ours.counters[counter] {
        Reading::Counted { value } => Some(value as f64),
        _ => None,
    }
}
