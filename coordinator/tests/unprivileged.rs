//! A run that may not count, or may count little: it completes, and each missing count says why.

mod common;

use common::{Bench, NOBODY, QUICK, alone, bench_of, is_root, stderr};
use record::{CounterReadings, Reading, Run};
use std::fs;
use std::path::Path;
use std::process::Command;
use testing::skip;

const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

/// The machine's paranoid level, put back at the end, be it a panic's.
struct Level {
    before: String,
}

impl Level {
    /// `None` where the machine has no such level or does not let it be set.
    fn taken() -> Option<Level> {
        let before = fs::read_to_string(PARANOID).ok()?;
        fs::write(PARANOID, &before).ok()?;
        Some(Level { before })
    }

    fn set(&self, level: i32) {
        fs::write(PARANOID, level.to_string()).unwrap();
        assert_eq!(fs::read_to_string(PARANOID).unwrap().trim(), level.to_string());
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        if let Err(error) = fs::write(PARANOID, &self.before) {
            eprintln!("{PARANOID} could not be put back to {}: {error}", self.before.trim());
        }
    }
}

/// The run that a finished `command` left, which ended with an answer or with an honest doubt.
fn run_of(mut command: Command, bench: &Bench) -> Run {
    let output = command.output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 3)), "{:?}\n{}", output.status, stderr(&output));
    let run: Run = serde_json::from_slice(&fs::read(bench.only_result().join("run.json")).unwrap()).unwrap();
    assert!(!run.observations.is_empty());
    run
}

/// Every reading is a count, or says why there is none; a refusal also says what to do.
fn assert_explained(readings: &CounterReadings) {
    for (name, _) in plan::event::COUNTERS.iter().filter(|(_, by)| *by == plan::CountedBy::Kernel) {
        assert!(readings.contains_key(*name), "no reading of {name}");
    }
    for (name, reading) in readings {
        match reading {
            Reading::Counted { .. } | Reading::Scaled { .. } | Reading::NotScheduled => {}
            Reading::Unsupported { why } => assert!(!why.is_empty(), "{name}"),
            Reading::Denied { why, cure } => assert!(!why.is_empty() && !cure.is_empty(), "{name}: {why:?}, {cure:?}"),
        }
    }
}

fn denied<'a>(readings: &'a CounterReadings, name: &str) -> (&'a str, &'a str) {
    match &readings[name] {
        Reading::Denied { why, cure } => (why, cure),
        other => panic!("{name}: {other:?}"),
    }
}

/// What needs no permission: context switches by kind and major faults are counted for everybody.
fn assert_noted(readings: &CounterReadings) {
    for name in ["context_switches_voluntary", "context_switches_involuntary", "page_faults_major"] {
        assert!(matches!(readings[name], Reading::Counted { .. }), "{name}: {:?}", readings[name]);
    }
}

/// Memory that two processes map, and one gives back.
const PUNCHED: &str = r#"
title = "Punched"
question = "What is known without leave?"
[measure]
window = "30ms"
warm_up = "5ms"
repetitions = 1
baselines = []
[region.seg]
size = "1MiB"
shared = true
[[role]]
name = "victim"
loop = ["touch seg"]
[[role]]
name = "culprit"
loop = ["punch seg 4KiB pause 100us"]
"#;

#[test]
fn without_leave_a_run_with_memory_steps_completes_and_says_what_its_log_lacks() {
    if !is_root() {
        return skip("only root becomes somebody else");
    }
    let _alone = alone();
    let Some(level) = Level::taken() else { return skip("perf_event_paranoid cannot be set here") };
    level.set(2);
    let (bench, mut command) = bench_of(NOBODY, PUNCHED);
    command.arg("--stacks");
    let run = run_of(command, &bench);
    for observation in &run.observations {
        assert_explained(&observation.counters);
        let names = plan::event::MEMORY_COUNTERS;
        assert!(names.iter().all(|name| observation.counters.contains_key(*name)), "{:?}", observation.counters);
        let kernel = observation.kernel.as_ref().expect("it was asked for");
        let missing = kernel.missing.as_ref().and_then(Reading::why).expect("nobody may log tracepoints");
        assert!(kernel.events.is_empty() && !missing.is_empty(), "{kernel:?}");
        let Reading::Counted { .. } = observation.counters["tlb_shootdowns"] else {
            panic!("/proc/interrupts is for everybody: {:?}", observation.counters["tlb_shootdowns"]);
        };
    }
    let warned = run.warnings.iter().find(|warning| warning.id == "kernel_log").expect("a warning");
    assert!(!warned.advice.is_empty() && warned.text.contains("timeline.csv"), "{warned:?}");
    assert!(run.arms.iter().all(|arm| arm.stacks.is_empty()));
}

#[test]
fn at_every_paranoid_level_the_run_completes_and_says_what_it_may_not_count() {
    if !is_root() {
        return skip("only root changes the paranoid level and becomes somebody else");
    }
    let _alone = alone();
    let Some(level) = Level::taken() else { return skip("perf_event_paranoid cannot be set here") };
    for paranoid in [2, 3, 4] {
        level.set(paranoid);
        let (bench, command) = bench_of(NOBODY, QUICK);
        let run = run_of(command, &bench);
        for observation in &run.observations {
            let readings = &observation.counters;
            assert_explained(readings);
            assert_noted(readings);
            for name in ["context_switches", "cpu_migrations"] {
                let (why, cure) = denied(readings, name);
                assert!(why.contains(&format!("perf_event_paranoid is {paranoid}")), "{name}: {why}");
                assert!(cure.contains("perf_event_paranoid=1") && cure.contains("cap_perfmon"), "{name}: {cure}");
            }
            // Levels above 2 close user mode too, in kernels that know them; others take them for 2.
            for name in ["page_faults", "task_clock"] {
                match &readings[name] {
                    Reading::Counted { .. } => {}
                    Reading::Denied { why, cure } if paranoid > 2 => {
                        assert!(why.contains(&format!("perf_event_paranoid is {paranoid}")), "{name}: {why}");
                        assert!(cure.contains("perf_event_paranoid=2"), "{name}: {cure}");
                    }
                    other => panic!("{name} at level {paranoid}: {other:?}"),
                }
            }
            // Tracefs is closed to nobody, or not mounted, or open: then the level stands before the tracepoint.
            for name in ["futex_calls", "tlb_flushes"] {
                match &readings[name] {
                    Reading::Denied { why, .. } => {
                        assert!(why.contains("tracefs") || why.contains("perf_event_paranoid"), "{name}: {why}");
                    }
                    Reading::Unsupported { why } => assert!(why.contains("no tracepoint"), "{name}: {why}"),
                    other => panic!("{name} at level {paranoid}: {other:?}"),
                }
            }
        }
        let page_faults = run.observations[0].counters["page_faults"].state();
        eprintln!("level {paranoid}: page_faults in user mode are {page_faults}");
    }
}

#[test]
fn under_a_filter_the_run_completes_and_names_it() {
    let _alone = alone();
    let kernel_has_perf = Path::new(PARANOID).exists();
    for errno in [nix::libc::EPERM, nix::libc::ENOSYS] {
        let bench = Bench::new(QUICK);
        let mut command = bench.run();
        filter::no_perf_events(&mut command, errno);
        let run = run_of(command, &bench);
        for observation in &run.observations {
            let readings = &observation.counters;
            assert_explained(readings);
            assert_noted(readings);
            for name in ["context_switches", "cpu_migrations", "page_faults", "task_clock"] {
                // Where the kernel itself has no perf events, nothing tells its answer from the filter's.
                if errno == nix::libc::EPERM || kernel_has_perf {
                    let (why, cure) = denied(readings, name);
                    assert!(why.contains("seccomp filter"), "{name}: {why}");
                    assert!(cure.contains("--cap-add PERFMON"), "{name}: {cure}");
                }
            }
        }
    }
}

/// A container's seccomp filter in small.
mod filter {
    #![allow(unsafe_code)] // prctl(2) between fork and exec

    use nix::libc::{
        BPF_ABS, BPF_JEQ, BPF_JMP, BPF_JUMP, BPF_K, BPF_LD, BPF_RET, BPF_STMT, BPF_W, PR_SET_NO_NEW_PRIVS,
        PR_SET_SECCOMP, SECCOMP_MODE_FILTER, SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO, SYS_perf_event_open, prctl,
        sock_filter, sock_fprog,
    };
    use std::io;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    /// Offset of the call's number in `struct seccomp_data` (seccomp(2)).
    const NUMBER: u32 = 0;

    /// Has `command` run under a filter that answers perf_event_open with `errno` and lets everything else through.
    pub(super) fn no_perf_events(command: &mut Command, errno: i32) {
        // SAFETY: constructors of plain structs, unsafe in name only.
        let program: [sock_filter; 4] = unsafe {
            [
                BPF_STMT((BPF_LD | BPF_W | BPF_ABS) as u16, NUMBER),
                BPF_JUMP((BPF_JMP | BPF_JEQ | BPF_K) as u16, SYS_perf_event_open as u32, 0, 1),
                BPF_STMT((BPF_RET | BPF_K) as u16, SECCOMP_RET_ERRNO | errno as u32),
                BPF_STMT((BPF_RET | BPF_K) as u16, SECCOMP_RET_ALLOW),
            ]
        };
        let install = move || {
            let filter = sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut() };
            // SAFETY: `filter` and the program that it points to live across the calls; the kernel copies both and
            // writes to neither. Without new privileges anyone may filter itself.
            let done = unsafe {
                prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0
            };
            if done { Ok(()) } else { Err(io::Error::last_os_error()) }
        };
        // SAFETY: between fork and exec the closure makes two system calls and allocates nothing.
        unsafe { command.pre_exec(install) };
    }
}
