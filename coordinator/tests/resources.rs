//! What a run needs is short, or taken away in its middle: shared memory, descriptors, memory, the folder for results, a
//! CPU, the wall clock. It ends soon, says what was short and what to do, and leaves nothing; what it had measured is on disk
//! where there is room for it. `LAB_FAULTS` asks for the long form: every step of a limit, and a CPU that goes offline.

mod common;
mod foreign;

use common::cgroup::Cgroup;
use common::draw::{faults_asked_for, in_lanes};
use common::left::{Mark, Results};
use common::room::Room;
use common::{Bench, QUICK, alone, coordinator, is_root, stderr, stdout, workers_of};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use plan::LockKind;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use testing::{A_LONG_TIME, skip, within};

/// A run that has not ended so long after what happened hangs: its own bound is 35 s a repetition, and few begin still.
const HANG: Duration = Duration::from_secs(600);

/// The words of `cures::of` and of whoever else runs out of memory.
const MEMORY: &str = "`ulimit -v`";

/// A run of so many repetitions, and as many of its control.
fn bench(repetitions: u32) -> Bench {
    let one = QUICK.replace("[[variant]]\nname = \"packed\"\nplacement = \"packed\"\n", "");
    Bench::new(&one.replace("repetitions = 3", &format!("repetitions = {repetitions}\nbaselines = []")))
}

/// A run that only ends of what happens to it.
fn endless() -> Bench {
    bench(10_000)
}

/// Does it in a mount namespace of its own, where this user may have one.
fn in_a_room(what: impl FnOnce(&Room) + Send) {
    std::thread::scope(|scope| {
        let in_it = || match Room::enter() {
            Some(room) => what(&room),
            None => skip("mounting file systems of its own needs root"),
        };
        scope.spawn(in_it).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

/// Starts the run and waits until its second repetition runs, so that the first is complete.
fn in_the_middle(mut command: Command) -> (Child, Mark) {
    let mark = Mark::on(&mut command);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut of_repetition = |earlier: Option<String>| {
        within(A_LONG_TIME, "a repetition", || {
            assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
            workers_of(child.id()).pop().filter(|worker| Some(&worker.segment) != earlier.as_ref())
        })
    };
    let first = of_repetition(None);
    of_repetition(Some(first.segment));
    (child, mark)
}

/// Waits for the end, which must come by itself.
fn end_of(child: Child) -> Output {
    end_while(child, || ())
}

/// The same, doing something again and again meanwhile.
fn end_while(mut child: Child, again: impl Fn()) -> Output {
    let deadline = Instant::now() + HANG;
    while child.try_wait().unwrap().is_none() {
        again();
        if Instant::now() > deadline {
            let _ = child.kill();
            panic!("hangs: {}", stderr(&child.wait_with_output().unwrap()));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().unwrap()
}

/// What a run says that must fail, and leave neither a process nor, beside so many other files, a segment.
fn failed(output: &Output, mark: &Mark, room: &Room, others: usize) -> String {
    let text = stderr(output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(!text.contains("panicked"), "{text}");
    assert!(mark.bearers().is_empty(), "a process is left: {text}");
    assert_eq!(room.shared_memory().len(), others, "a segment is left: {text}");
    text
}

#[track_caller]
fn assert_says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in: {text}");
    }
}

/// Writes until there is no room.
fn fill(folder: &Path) {
    let mut file = std::fs::File::options().create(true).append(true).open(folder.join("filler")).unwrap();
    let block = [0u8; 65536];
    for length in [block.len(), 4096, 1] {
        while std::io::Write::write(&mut file, &block[..length]).is_ok_and(|written| written > 0) {}
    }
}

#[test]
fn shared_memory_that_fills_up_in_the_middle_ends_the_run_with_what_was_measured() {
    let _alone = alone();
    in_a_room(|room| {
        let bench = endless();
        let (child, mark) = in_the_middle(bench.run());
        // Again and again: what one segment leaves when it goes is room for the next.
        let output = end_while(child, || fill(Path::new("/dev/shm")));
        let text = failed(&output, &mark, room, 1);
        assert_says(&text, &["/dev/shm has no room for a segment", "ENOSPC", "df -h /dev/shm", "is in "]);
        assert_ended_early(&bench);
    });
}

/// What was complete is there, whole, and says that it is a part.
fn assert_ended_early(bench: &Bench) {
    let results = Results::below(&bench.results()).unwrap();
    assert!(results.partial.is_empty(), "{:?}", results.partial);
    let warned = |id| results.whole.iter().all(|run| run.warnings.iter().any(|warning| warning.id == id));
    assert!(results.whole.len() == 1 && warned("ended_early"));
}

/// What happens to a folder.
type Spoil<'s> = &'s dyn Fn(&Path);

/// A run whose results go to a small file system of their own, which is spoilt in its middle; what it printed, and what is
/// in the folder then.
fn spoilt_results(room: &Room, bench: &Bench, spoil: impl FnOnce(&Path), signal: Option<Signal>) -> (Output, Results) {
    let folder = tempfile::tempdir().unwrap();
    room.mount_small(folder.path(), "512k");
    let out = folder.path().join("results");
    let mut command = coordinator();
    command.arg("run").arg(bench.scenario()).arg("--out").arg(&out);
    let (child, mark) = in_the_middle(command);
    spoil(folder.path());
    if let Some(signal) = signal {
        kill(Pid::from_raw(child.id() as i32), signal).unwrap();
    }
    let output = end_of(child);
    assert!(mark.bearers().is_empty() && room.shared_memory().is_empty(), "left: {}", stderr(&output));
    let results = Results::below(&out).unwrap();
    room.unmount(folder.path());
    (output, results)
}

#[test]
fn results_that_cannot_be_written_any_more_are_named_whatever_ended_the_run() {
    let _alone = alone();
    in_a_room(|room| {
        let read_only = |at: &Path| room.remount(at, "ro");
        let in_the_way = |at: &Path| std::fs::write(at.join("results"), "").unwrap();
        let cases: [(Spoil<'_>, &[&str]); 3] = [
            (&fill, &["No space left on device (ENOSPC)", "make room there"]),
            (&read_only, &["(EROFS)", "name a folder that you may write to with --out DIR"]),
            (&in_the_way, &["a file stands where a folder is needed"]),
        ];
        for (spoil, says) in cases {
            let (output, results) = spoilt_results(room, &bench(3), spoil, None);
            let text = stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{text}");
            assert_says(&text, says);
            assert!(stdout(&output).contains("ns/op"), "what was measured is shown: {}", stdout(&output));
            assert!(results.whole.is_empty() && results.partial.is_empty(), "{results:?}");
        }
        // Both are said: that it was interrupted, and that nothing of it is on disk.
        let (output, results) = spoilt_results(room, &endless(), fill, Some(Signal::SIGINT));
        assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
        assert_says(&stderr(&output), &["interrupted", "could not be kept", "(ENOSPC)", "make room there"]);
        assert!(results.whole.is_empty() && results.partial.is_empty(), "{results:?}");
    });
}

#[test]
fn a_folder_for_results_that_vanishes_is_made_again_or_named() {
    let _alone = alone();
    in_a_room(|room| {
        // In the middle: it is made again at the end.
        let (output, results) =
            spoilt_results(room, &bench(3), |at| std::fs::remove_dir_all(at.join("results")).unwrap_or(()), None);
        assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
        assert_eq!(results.whole.len(), 1);
        // While they are written, as soon as they are seen to be: whole or named. The moment is short, so it may be missed.
        let met = (0..5).any(|_| {
            let bench = bench(1);
            let mut child = bench.run().stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
            while child.try_wait().unwrap().is_none() {
                let folders = std::fs::read_dir(bench.results().join("case")).into_iter().flatten().flatten();
                folders.for_each(|folder| _ = std::fs::remove_dir_all(folder.path()));
                std::thread::sleep(Duration::from_micros(200));
            }
            let output = end_of(child);
            let text = stderr(&output);
            assert!(Results::below(&bench.results()).unwrap().partial.is_empty());
            match output.status.code() {
                Some(1) => assert_says(&text, &["(ENOENT)", "something removed it meanwhile"]),
                Some(0 | 3) => {}
                _ => panic!("{}: {text}", output.status),
            }
            output.status.code() == Some(1)
        });
        println!("removed while they were being written: {met}");
    });
}

/// A log that grows in the run, and finds its file system full.
#[test]
fn a_log_without_room_ends_the_run_and_is_named() {
    let _alone = alone();
    in_a_room(|room| {
        let scenario = QUICK
            .replace("[[role]]", "[lock.m]\n[[role]]")
            .replace(r#"loop = ["bump hits[me]"]"#, r#"loop = ["lock m", "bump hits[me]", "unlock m"]"#);
        let bench = Bench::new(&scenario.replace("repetitions = 3", "repetitions = 10000\nbaselines = []"));
        let folder = tempfile::tempdir().unwrap();
        // Some hundred rows, which few repetitions write.
        room.mount_small(folder.path(), "16k");
        let mut command = coordinator();
        command.arg("run").arg(bench.scenario()).arg("--lock-log").arg("--out").arg(folder.path());
        let mark = Mark::on(&mut command);
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let text = failed(&end_of(child), &mark, room, 0);
        assert_says(&text, &["cannot write the lock times to a file in", "(ENOSPC)", "make room there"]);
        assert!(Results::below(folder.path()).unwrap().partial.is_empty());
        room.unmount(folder.path());
    });
}

/// Runs under a limit of the shell, `ulimit FLAG VALUE`.
fn limited(bench: &Bench, flag: &str, value: u64) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit {flag} {value}; exec \"$0\" \"$@\"")]).arg(env!("CARGO_BIN_EXE_coordinator"));
    command.arg("run").arg(bench.scenario()).arg("--out").arg(bench.results()).arg("--quiet");
    let mark = Mark::on(&mut command);
    // The limit would meet the backtrace, too.
    let output = command.env("RUST_BACKTRACE", "0").output().unwrap();
    mark.await_none();
    if output.status.signal().is_some() {
        assert!(coordinator().arg("clean").status().unwrap().success());
    }
    let results = Results::below(&bench.results()).unwrap_or_else(|why| panic!("{flag} {value}: {why}"));
    assert!(results.partial.is_empty(), "{flag} {value}: {results:?}");
    output
}

#[test]
fn too_few_descriptors_are_told_with_the_limit() {
    let _alone = alone();
    let limits: Vec<u64> = match faults_asked_for() {
        // From as many as the loader needs.
        Some(_) => (4..=30).collect(),
        None => vec![5, 10, 16, 22, 64],
    };
    let mut ended_well = 0;
    for limit in limits {
        let output = limited(&bench(1), "-n", limit);
        let text = stderr(&output);
        match output.status.code() {
            Some(0 | 3) => ended_well += 1,
            Some(1) => assert_says(&text, &["ulimit -n"]),
            _ => panic!("{limit} descriptors: {}: {text}", output.status),
        }
        println!("{limit} descriptors: {} {text}", output.status);
    }
    assert!(ended_well > 0, "the highest of these limits is enough");
}

/// The least address space in which the loader starts the program, KiB.
fn least_kib() -> u64 {
    let starts = |kib: u64| {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -v {kib}; exec \"$0\" --version")]).arg(env!("CARGO_BIN_EXE_coordinator"));
        command.output().unwrap().status.success()
    };
    let (mut low, mut high) = (1 << 10, 16 << 20);
    while high - low > 64 {
        let middle = u64::midpoint(low, high);
        *(if starts(middle) { &mut high } else { &mut low }) = middle;
    }
    high
}

#[test]
fn too_little_address_space_is_told_with_the_limit() {
    let _alone = alone();
    // From what the loader needs to what a run needs, and a little beyond.
    let (least, steps) = (least_kib(), if faults_asked_for().is_some() { 60 } else { 4 });
    let mut said = 0;
    for nth in 0..steps {
        let limit = least + 6 * 1024 * nth / steps;
        let output = limited(&bench(1), "-v", limit);
        let text = stderr(&output);
        let by_loader = text.contains("error while loading shared libraries");
        match (output.status.code(), output.status.signal()) {
            (Some(0 | 3), _) => {}
            (Some(127), _) if by_loader => {}
            (Some(1), _) => assert!(text.contains(MEMORY) || text.contains("lack of memory"), "{limit} KiB: {text}"),
            // The C library, or Rust's own, ends it where it needs memory for a thread.
            (_, Some(6)) if text.contains("Fatal glibc error") => assert_says(&text, &["out of memory"]),
            (_, Some(6)) if text.contains("an alternative stack") => assert_says(&text, &["Cannot allocate memory"]),
            // Rust ends a program that gets no memory; what to do stands before its own words.
            (_, Some(6)) => assert_says(&text, &[MEMORY, "memory allocation of"]),
            // The kernel could not map the program, or the loader itself.
            (_, Some(9 | 11)) if text.is_empty() => {}
            _ => panic!("{limit} KiB: {}: {text}", output.status),
        }
        said += u32::from(text.contains(MEMORY));
        println!("{limit} KiB, of which the loader needs {least}: {} {text}", output.status);
    }
    assert!(said > 0, "none of these limits was met by the run itself");
}

const MEMORY_LIMIT: [&str; 2] = ["memory.limit_in_bytes", "memory.max"];
const MEMORY_PEAK: [&str; 2] = ["memory.max_usage_in_bytes", "memory.peak"];

/// A scenario with some memory to reserve.
fn with_fields() -> Bench {
    let fields = "each = \"worker\"\n[field.big]\ntype = \"u64\"\ncount = 60000";
    let scenario =
        QUICK.replace("each = \"worker\"", fields).replace("bump hits[me]\"", "bump hits[me]\", \"load big[any]\"");
    Bench::new(&scenario.replace("repetitions = 3", "repetitions = 1\nbaselines = []"))
}

#[test]
fn a_memory_cgroup_that_is_too_small_ends_the_run_and_is_named() {
    let _alone = alone();
    let none = || skip("a memory cgroup of its own needs root and a writable cgroup tree that tells its peak");
    let peak = Cgroup::new("memory", "peak", MEMORY_LIMIT).and_then(|cgroup| {
        let output = cgroup.run(&with_fields()).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
        cgroup.number(MEMORY_PEAK)
    });
    let Some(peak) = peak else { return none() };
    in_a_room(|room| {
        // Near what it needs the kernel reads the program's own pages again and again: that takes minutes, and is no hang.
        let percents: &[u64] = if faults_asked_for().is_some() { &[80, 60, 50, 40, 30, 20, 10, 5] } else { &[10] };
        for percent in percents {
            let cgroup = Cgroup::new("memory", "small", MEMORY_LIMIT).unwrap();
            cgroup.set(MEMORY_LIMIT, &(peak * percent / 100).to_string()).unwrap();
            let bench = with_fields();
            let mut command = cgroup.run(&bench);
            let mark = Mark::on(&mut command);
            let output = end_of(command.spawn().unwrap());
            let text = stderr(&output);
            println!("{percent} % of {peak} bytes: {} {text}", output.status);
            mark.await_none();
            match (output.status.code(), output.status.signal()) {
                (Some(0 | 3), _) => {}
                (Some(1), _) => {
                    assert!(text.contains("memory.max") || text.contains("lack of memory (`dmesg`)"), "{text}")
                }
                // It met the coordinator, or the shell before it: what that left is for `clean`.
                (_, Some(9)) => assert!(coordinator().arg("clean").status().unwrap().success()),
                _ => panic!("{percent} % of {peak} bytes: {}: {text}", output.status),
            }
            assert!(room.shared_memory().is_empty(), "a segment is left: {text}");
            Results::below(&bench.results()).unwrap();
        }
    });
}

#[test]
fn a_cgroup_without_a_process_to_spare_is_named() {
    let _alone = alone();
    let limit = ["pids.max"; 2];
    let Some(cgroup) = Cgroup::new("pids", "few", limit) else {
        return skip("a cgroup of its own needs root and a writable cgroup tree");
    };
    cgroup.set(limit, "1").unwrap();
    let output = end_of(cgroup.run(&bench(1)).spawn().unwrap());
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert_says(&stderr(&output), &["starting worker 0 (role `counter`, CPU ", "EAGAIN", "the cgroup's `pids.max`"]);
    assert!(!stderr(&output).contains("panicked"), "{}", stderr(&output));
}

/// One worker holds the lock most of the time; the other gives up after a millisecond, again and again.
fn timing_out(kind: LockKind, window_ms: u32) -> Bench {
    Bench::new(&format!(
        r#"
title = "Clock"
question = "By which clock does a wait end?"
[measure]
window = "{window_ms}ms"
warm_up = "20ms"
repetitions = 1
baselines = []
[lock.m]
kind = "{}"
[[role]]
name = "waiter"
loop = ["lock m timeout 1ms", "unlock m"]
[[role]]
name = "holder"
loop = ["lock m", "sleep {hold_ms}ms", "unlock m"]
"#,
        kind.name(),
        hold_ms = window_ms * 2 / 3
    ))
}

/// The wall clock is set forward and back all the time, for the run alone: it measures by others, and waits by others.
#[test]
fn setting_the_wall_clock_moves_neither_a_timeout_nor_a_figure() {
    let _alone = alone();
    let clock = match foreign::built("stepping_clock", &["-shared", "-fPIC"]) {
        Ok(clock) => clock,
        Err(why) => return skip(&why),
    };
    let kinds = LockKind::ALL.into_iter().filter(|kind| kind.times_out());
    let kinds: Vec<LockKind> = match faults_asked_for() {
        Some(_) => kinds.collect(),
        None => vec![LockKind::Pthread, LockKind::PthreadPi, LockKind::PthreadRwlock, LockKind::Semaphore],
    };
    in_lanes(
        kinds,
        || (),
        |(), kind| {
            // A machine so busy that the waiter is hardly in the window gets a longer one.
            let times_out = |window_ms: u32| {
                let bench = timing_out(kind, window_ms);
                let output = bench.run().arg("--json").env("LD_PRELOAD", &clock).output().unwrap();
                let run: record::Run =
                    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
                assert!(run.duration_s > 0.0 && run.duration_s < 600.0, "{kind:?}: {} s", run.duration_s);
                let windows = run.observations.iter().map(|one| one.window_ns);
                assert!(windows.clone().all(|ns| ns < 60e9), "{kind:?}: {:?}", windows.collect::<Vec<_>>());
                let of_waiter = run.observations.iter().filter(|one| one.role == "waiter");
                let timeouts: Vec<u64> = of_waiter.map(|one| one.locks[0].timeouts).collect();
                println!("{kind:?}, {window_ms} ms: {timeouts:?} timeouts");
                timeouts.iter().any(|timeouts| *timeouts >= 10)
            };
            assert!([300, 900, 3_000].into_iter().any(times_out), "{kind:?}: waits of 1 ms do not end by their time");
        },
    );
}

/// A CPU that is taken offline, and comes back when this goes, or after a while if this process does not live to see to it.
struct Offline {
    switch: PathBuf,
    guardian: Child,
}

impl Offline {
    fn take(switch: &Path) -> Offline {
        let mut guardian = Command::new("sh");
        guardian.args(["-c", "sleep 30; echo 1 >\"$0\""]).arg(switch).process_group(0);
        let offline = Offline { switch: switch.to_owned(), guardian: guardian.spawn().unwrap() };
        std::fs::write(switch, "0").unwrap();
        offline
    }
}

impl Drop for Offline {
    fn drop(&mut self) {
        let back = std::fs::write(&self.switch, "1");
        if back.is_ok() {
            let _ = killpg(Pid::from_raw(self.guardian.id() as i32), Signal::SIGKILL);
        }
        let _ = self.guardian.wait();
        assert!(back.is_ok() || std::thread::panicking(), "the CPU stays offline: {back:?}");
    }
}

/// Whoever else has pinned himself to that CPU loses his pin, so this is for the long form.
#[test]
fn a_cpu_that_goes_offline_in_the_middle_ends_the_run_with_the_worker_and_the_cure() {
    let switch = Path::new("/sys/devices/system/cpu/cpu1/online");
    if faults_asked_for().is_none() {
        return println!("disturbs the whole machine: `.ci/long faults` does it");
    }
    if !is_root() || !switch.exists() {
        return skip("taking CPU 1 offline needs root and a kernel that can");
    }
    let _alone = alone();
    let scenario = QUICK.replace("workers = 2", "workers = 2\ncpus = [0, 1]");
    let bench = Bench::new(&scenario.replace("repetitions = 3", "repetitions = 10000\nbaselines = []"));
    let (child, mark) = in_the_middle(bench.run());
    let offline = Offline::take(switch);
    let output = end_of(child);
    drop(offline);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert_says(&text, &["the CPU of worker 1 (role `counter`, CPU 1) was taken away during the run", "--cpus"]);
    assert!(mark.bearers().is_empty(), "a process is left: {text}");
    assert_ended_early(&bench);
    assert_eq!(std::fs::read_to_string(switch).unwrap().trim(), "1");
}
