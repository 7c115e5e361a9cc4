//! Roles with `threads`: workers that are threads of one process, run, counted, held, killed and dying.

mod common;

use common::{Bench, Conversation, Worker, alone, assert_gone, cpu_time, stderr, workers_of};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plan::LockKind;
use record::{Observation, Reading, Run};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use testing::{A_LONG_TIME, within};

/// A scenario of one role, on whatever CPUs there are: processes of two threads each.
fn scenario(kind: &str, workers: u32, keys: &str, steps: &str) -> String {
    format!(
        r#"
title = "Threads"
question = "What do threads do?"
oversubscribe = true
[measure]
window = "40ms"
warm_up = "5ms"
repetitions = 2
baselines = []
[lock.m]
kind = "{kind}"
[field.balance]
type = "u64"
[field.sections]
type = "u64"
[[role]]
name = "teller"
workers = {workers}
threads = 2
{keys}
loop = [{steps}]
"#
    )
}

/// Two threads that touch a region of that size, which is their process's, once the window is open.
fn touching(size: &str) -> String {
    let region = format!("[region.heap]\nsize = \"{size}\"\n[[role]]");
    scenario("pthread", 2, "after = '5ms'", "'touch heap', 'lock m', 'bump balance', 'unlock m'")
        .replace("[[role]]", &region)
}

/// What a run left that ended with an answer, or with an honest doubt: the machine was noisy.
fn measured(text: &str) -> Run {
    let output = Bench::new(text).run().args(["--json", "--quiet"]).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 3)), "{:?}: {}", output.status, stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The observations of each repetition, by worker.
fn repetitions(run: &Run) -> Vec<Vec<&Observation>> {
    let mut found: BTreeMap<(&str, u32), Vec<&Observation>> = BTreeMap::new();
    run.observations.iter().for_each(|one| found.entry((&one.arm, one.block)).or_default().push(one));
    found.into_values().collect()
}

#[test]
fn two_processes_of_two_threads_are_four_workers() {
    let _alone = alone();
    let run = measured(&scenario("pthread", 4, "", "'lock m', 'bump balance', 'unlock m', 'work 1us'"));
    let repetitions = repetitions(&run);
    assert_eq!(repetitions.len(), 4, "two blocks of a variant and its control");
    for workers in repetitions {
        assert_eq!(workers.iter().map(|one| one.worker).collect::<Vec<_>>(), [0, 1, 2, 3]);
        let pids: Vec<i32> = workers.iter().map(|one| one.pid.unwrap()).collect();
        assert!(pids[0] == pids[1] && pids[1] != pids[2] && pids[2] == pids[3], "{pids:?}");
        assert_eq!([workers[0].tid, workers[2].tid], [None, None], "a first thread has its process's number");
        let tids = [workers[1].tid.unwrap(), workers[3].tid.unwrap()];
        let distinct: BTreeSet<i32> = pids.iter().copied().chain(tids).collect();
        assert_eq!(distinct.len(), 4, "{pids:?} {tids:?}");
    }
}

/// What an unprotected read-modify-write adds up inside the lock, against what an atomic one does there. `--hold` stops
/// all workers where they have left the loop, and their memory can be read.
#[test]
fn a_lock_keeps_out_threads_and_processes_alike() {
    let _alone = alone();
    let sleeping = [LockKind::Pthread, LockKind::PthreadRobust, LockKind::Futex].map(|kind| (kind, 4));
    for (kind, workers) in LockKind::ALL.map(|kind| (kind, 2)).into_iter().chain(sleeping) {
        let text = scenario(kind.name(), workers, "", "'lock m', 'bump balance', 'add sections', 'unlock m'");
        let bench = Bench::new(&text.replace("repetitions = 2", "repetitions = 1"));
        let mut command = bench.run();
        command.args(["--hold", "--json"]);
        let mut run = Conversation::with(command);
        let mut memories = Vec::new();
        for _ in 0..2 {
            run.gate();
            run.go_on();
            let after = run.gate();
            assert_eq!(after.pids.len(), workers as usize);
            memories.push(area_of(after.pids[0], workers));
            run.go_on();
        }
        let (status, said, out) = run.finish();
        if status.code() == Some(1) && said.contains("completed no pass in the window") {
            continue; // a machine too slow to tell anything
        }
        let run: Run = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{kind:?}: {said}"));
        let offset =
            |field: &str| run.arms[0].layout.iter().find(|placed| placed.field == field).unwrap().offset as usize;
        for area in memories {
            let word = |field| u64::from_ne_bytes(area[offset(field)..][..8].try_into().unwrap());
            assert!(word("sections") > 0, "{kind:?}");
            assert_eq!(word("balance"), word("sections"), "{kind:?} between {workers} workers");
        }
    }
}

/// The fields area of a segment with one lock, as a process that stands still has it.
fn area_of(pid: i32, workers: u32) -> Vec<u8> {
    const BYTES: u64 = 4096;
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let line = maps.lines().find(|line| line.contains("contention-lab-")).expect("the segment is mapped");
    let start = u64::from_str_radix(line.split('-').next().unwrap(), 16).unwrap();
    let map = shm_layout::SegmentMap::new(workers, 1, BYTES).unwrap();
    let mut area = vec![0; BYTES as usize];
    let memory = File::open(format!("/proc/{pid}/mem")).unwrap();
    memory.read_exact_at(&mut area, start + map.area_offset).unwrap();
    area
}

fn count(observation: &Observation, name: &str) -> Option<u64> {
    match &observation.counters[name] {
        Reading::Counted { value } => Some(*value),
        other => {
            eprintln!("{name} is not counted here: {other:?}");
            None
        }
    }
}

/// Each thread sleeps once a pass: both of a process together do so twice as often.
#[test]
fn a_thread_s_counts_are_its_own() {
    let _alone = alone();
    for one in &measured(&scenario("pthread", 2, "", "'sleep 1ms'")).observations {
        let switches = count(one, "context_switches_voluntary").expect("everybody may count these");
        let passes = one.passes;
        assert!(switches + 2 >= passes && switches <= passes + passes / 2 + 4, "{switches} in {passes} passes");
    }
}

/// A region is its process's, and its first touch, of 64 pages, is all that faults in the window: of either thread, and of
/// both where they come to a page at once.
#[test]
fn threads_share_a_region_and_touch_it_for_the_first_time() {
    let _alone = alone();
    for threads in repetitions(&measured(&touching("256KiB"))) {
        let Some(faults) = threads.iter().map(|one| count(one, "page_faults")).sum::<Option<u64>>() else { continue };
        let made_none = threads.iter().any(|one| one.passes == 0);
        assert!(made_none || (64..192).contains(&faults), "{faults} faults");
    }
}

#[test]
fn threads_are_held_by_name_number_and_cpu() {
    let _alone = alone();
    let bench = Bench::new(&scenario("pthread", 4, "", "'bump balance'").replace("repetitions = 2", "repetitions = 1"));
    let mut command = bench.run();
    command.arg("--hold");
    let mut run = Conversation::with(command);
    let gate = run.gate();
    let lines: Vec<&str> = gate.text.lines().filter(|line| line.starts_with("  worker ")).collect();
    assert_eq!(lines.len(), 4, "{}", gate.text);
    for (index, line) in lines.iter().enumerate() {
        let (name, numbers) = line.trim().rsplit_once(": pid ").unwrap();
        let (pid, tid) = numbers.split_once(", tid ").unwrap();
        let (process, thread) = (index / 2, index % 2);
        let expected = format!("worker {index} (role `teller`, thread {thread} of process {process}, CPU ");
        let cpu = name.strip_prefix(&expected).unwrap_or_else(|| panic!("{name}")).trim_end_matches(')');
        assert_eq!(pid == tid, thread == 0);
        let status = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).unwrap();
        assert!(status.contains(&format!("Cpus_allowed_list:\t{cpu}\n")), "{line}: {status}");
        assert!(thread == 0 || status.starts_with(&format!("Name:\tworker {index}\n")), "{status}");
    }
    run.end_input();
    let (status, said, _) = run.finish();
    assert_eq!(status.code(), Some(130), "{said}");
}

/// A started run of one process of two threads, and that process, once it has used half a second of CPU time in its
/// window of a minute.
fn in_a_window(kind: &str) -> (Bench, Child, Vec<Worker>) {
    let text = scenario(kind, 2, "", "'lock m', 'bump balance', 'unlock m'").replace("\"40ms\"", "\"60s\"");
    let bench = Bench::new(&text);
    let mut child = bench.run().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let process = within(A_LONG_TIME, "a process in its window", || {
        assert_eq!(child.try_wait().unwrap(), None, "the run ended before its window");
        let processes = workers_of(child.id());
        let busy = processes.iter().all(|one| cpu_time(one.pid) >= Duration::from_millis(500));
        (processes.len() == 1 && busy).then_some(processes)
    });
    assert_eq!(std::fs::read_dir(format!("/proc/{}/task", process[0].pid)).unwrap().count(), 2);
    (bench, child, process)
}

#[test]
fn a_killed_process_ends_the_run_with_all_its_workers_names() {
    let _alone = alone();
    let (_bench, child, process) = in_a_window("futex");
    let killed = Instant::now();
    kill(Pid::from_raw(process[0].pid), Signal::SIGKILL).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(killed.elapsed() < Duration::from_secs(2), "{:?}", killed.elapsed());
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    for part in ["process 0 (role `teller`, workers 0 to 1) was killed by SIGKILL", "worker 0 was ", "; worker 1 was "]
    {
        assert!(text.contains(part), "no {part} in {text}");
    }
    assert_gone(&process, A_LONG_TIME);
}

#[test]
fn threads_end_with_their_coordinator() {
    let _alone = alone();
    let (_bench, mut child, process) = in_a_window("ttas");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_gone(&process, A_LONG_TIME);
}

#[test]
fn an_interrupt_ends_threads_too() {
    let _alone = alone();
    let (_bench, child, process) = in_a_window("pthread");
    kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert_gone(&process, A_LONG_TIME);
}

/// Address space for the process and not for its region of 1 GiB: it ends at once, with its own words.
#[test]
fn a_process_that_cannot_map_its_region_is_named() {
    let _alone = alone();
    let bench = Bench::new(&touching("1GiB"));
    let begun = Instant::now();
    let limited = format!("ulimit -v {}; exec \"$@\"", 900 * 1024);
    let output = through_a_shell(&limited, &bench);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("process 0 (role `teller`, workers 0 to 1)"), "{text}");
    assert!(text.contains("region `heap`: mmap of 1073741824 bytes failed"), "{text}");
    // Whoever waited for a worker that does not come would be found stuck after fifteen seconds.
    assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
}

/// Address space for one mapping of 1 GiB and no second one: the thread that gets it fills it, the other fails. Its process
/// ends all the same, at once, with that one's words.
#[test]
fn a_thread_that_fails_ends_its_process_and_is_named() {
    let _alone = alone();
    let bench = Bench::new(&touching("1GiB").replace("'touch heap'", "'map heap', 'unmap heap'"));
    let begun = Instant::now();
    let limited = format!("ulimit -v {}; exec \"$@\"", 1_800 * 1024);
    let output = through_a_shell(&limited, &bench);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("(role `teller`, thread ") && text.contains(" of process 0, CPU "), "{text}");
    assert!(text.contains("region `heap`: mmap of 1073741824 bytes failed"), "{text}");
    // A process that waited for its other thread would be found stuck after fifteen seconds.
    assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
}

fn through_a_shell(script: &str, bench: &Bench) -> Output {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_coordinator"), "run"]).arg(bench.scenario());
    command.arg("--out").arg(bench.results()).stdin(Stdio::null()).output().unwrap()
}

/// A role of two threads, of which the first to come dies with the lock; another role waits for it.
fn dying(kind: &str) -> String {
    let mortal = scenario(kind, 2, "after = '10ms'", "'lock m', 'die'").replace("teller", "mortal");
    let heir = "[[role]]\nname = \"heir\"\nloop = ['lock m', 'bump balance', 'unlock m', 'work 200ns']\n[[role]]";
    mortal.replacen("[[role]]", heir, 1)
}

/// On a busy machine the two may come to the lock when the window is over; in none of four it is not that.
#[test]
fn a_thread_that_dies_takes_its_process_along_and_a_robust_lock_goes_on() {
    let _alone = alone();
    let run = measured(&dying("pthread-robust").replace("\"40ms\"", "\"500ms\""));
    assert!(run.observations.iter().all(|one| one.role == "heir"), "both threads are dead, and leave no trace");
    assert_eq!(run.observations.len(), 4, "two blocks of two arms");
    let taken_over: Vec<u64> = run.observations.iter().map(|one| one.locks[0].owner_died).collect();
    assert!(taken_over.iter().all(|times| *times <= 1), "one of the two held it: {taken_over:?}");
    assert!(taken_over.contains(&1));
}

/// Nobody waits for the dead at a gate, nor names them there.
#[test]
fn who_has_died_is_not_held() {
    let _alone = alone();
    let text = dying("pthread-robust").replace("repetitions = 2", "repetitions = 1").replace("\"40ms\"", "\"500ms\"");
    let bench = Bench::new(&text);
    let mut command = bench.run();
    command.arg("--hold");
    let mut run = Conversation::with(command);
    assert_eq!(run.gate().pids.len(), 3);
    run.go_on();
    let after = run.gate();
    // Three where the machine was so busy that the two had not come to die before the window closed.
    assert!(matches!(after.pids.len(), 1 | 3) && after.text.contains("worker 0 (role `heir`, CPU "), "{}", after.text);
    run.end_input();
    assert_eq!(run.finish().0.code(), Some(130));
}

#[test]
fn a_thread_that_dies_with_any_other_lock_is_named_with_it() {
    let _alone = alone();
    for kind in ["futex", "pthread", "mcs"] {
        let output = Bench::new(&dying(kind)).run().arg("--quiet").output().unwrap();
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{kind}: {text}");
        for part in
            ["role `mortal`, thread ", " of process 1, CPU ", "died holding lock `m`", "waiting for it: worker 0"]
        {
            assert!(text.contains(part), "{kind}: no {part} in {text}");
        }
    }
}
