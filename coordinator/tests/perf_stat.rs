//! The software counts against an independent witness: `perf stat -p` attached to the same worker, from the gate before
//! its warm-up to the gate after its window. Between the gates and the window the worker touches no new page, so page
//! faults agree exactly; and it runs for microseconds, so the task clocks agree closely.

mod common;

use common::{A_LONG_TIME, Bench, Conversation, alone, skip};
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, SysconfVar, mkfifo, sysconf};
use record::{Observation, Reading, Run};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

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

/// What perf counted on one worker.
struct Witness {
    task_clock_ns: f64,
    /// User and kernel mode, and user mode alone, as the lab counts.
    page_faults: f64,
    user_page_faults: f64,
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
        let mut perf = match Perf::attach(pid) {
            Ok(perf) => perf,
            Err(why) => return skip(&format!("perf stat cannot be attached to a worker here: {why}")),
        };
        run.go_on();
        run.gate();
        witnesses.push((pid, perf.detach()));
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

/// A running `perf stat`, told by one named pipe and answering by another.
struct Perf {
    child: Child,
    folder: tempfile::TempDir,
    commands: File,
    answers: File,
}

impl Perf {
    /// Attaches it to a process and lets it count from now on; or why that is impossible.
    fn attach(pid: i32) -> Result<Perf, String> {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for pipe in ["commands", "answers"] {
            mkfifo(&at(pipe), Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
        }
        let child = Command::new("perf")
            .args(["stat", "--delay=-1", "-x", ",", "-e", "task-clock,page-faults,page-faults:u"])
            .arg("-p")
            .arg(pid.to_string())
            .arg("--control")
            .arg(format!("fifo:{},{}", at("commands").display(), at("answers").display()))
            .arg("-o")
            .arg(at("counts"))
            .env("LC_ALL", "C")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("perf does not start: {error} (Debian has it in linux-perf)"))?;
        let (commands, answers) = (both_ways(&at("commands")), both_ways(&at("answers")));
        let mut perf = Perf { child, folder, commands, answers };
        perf.tell("enable").map(|()| perf)
    }

    /// Gives a command and waits until it has been obeyed.
    fn tell(&mut self, command: &str) -> Result<(), String> {
        self.commands.write_all(format!("{command}\n").as_bytes()).unwrap();
        let deadline = Instant::now() + A_LONG_TIME;
        let mut answer = String::new();
        while !answer.contains("ack\n") {
            if self.child.try_wait().unwrap().is_some() {
                let mut why = String::new();
                self.child.stderr.take().unwrap().read_to_string(&mut why).unwrap();
                return Err(format!("it ended: {}", why.trim()));
            }
            assert!(Instant::now() < deadline, "no answer to `{command}`");
            let mut ready = [PollFd::new(self.answers.as_fd(), PollFlags::POLLIN)];
            if poll(&mut ready, PollTimeout::from(100u8)) == Ok(1) {
                let mut bytes = [0; 16];
                let length = self.answers.read(&mut bytes).unwrap();
                answer.push_str(std::str::from_utf8(&bytes[..length]).unwrap().trim_matches('\0'));
            }
        }
        Ok(())
    }

    /// Ends the counting, and perf; what it counted.
    fn detach(&mut self) -> Witness {
        self.tell("disable").unwrap_or_else(|why| panic!("{why}"));
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGINT).unwrap();
        self.child.wait().unwrap();
        let text = std::fs::read_to_string(self.folder.path().join("counts")).unwrap();
        let value = |event: &str| -> f64 {
            let fields = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
            let of_event = fields.into_iter().find(|fields| fields.get(2) == Some(&event));
            of_event.and_then(|fields| fields[0].parse().ok()).unwrap_or_else(|| panic!("no count of {event}:\n{text}"))
        };
        Witness {
            task_clock_ns: value("task-clock") * 1e6, // perf prints milliseconds
            page_faults: value("page-faults"),
            user_page_faults: value("page-faults:u"),
        }
    }
}

impl Drop for Perf {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Opens a named pipe so that neither opening nor reading ever waits for the other side.
fn both_ways(pipe: &Path) -> File {
    OpenOptions::new().read(true).write(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(pipe).unwrap()
}
