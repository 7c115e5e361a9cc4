//! Two labs side by side: they share CPUs and nothing else, each says what the other cost it, and neither removes what the
//! other has, in whichever container it runs.

mod common;
#[path = "common/segment.rs"]
mod segment;

use common::{Bench, Conversation, QUICK, alone, coordinator, has_name, is_root, stderr};
use nix::sched::sched_getaffinity;
use nix::unistd::Pid;
use record::{Observation, Run};
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::time::Duration;
use testing::{A_LONG_TIME, skip, within};

/// Two arms of one repetition, the second being the control.
fn bench(window: &str) -> Bench {
    let scenario = QUICK.replace("window = \"20ms\"", &format!("window = \"{window}\""));
    Bench::new(&scenario.replace("repetitions = 3", "repetitions = 1\nbaselines = []"))
}

/// A worker that is held, as the kernel knows it.
struct Held {
    pid: i32,
    /// The one CPU that it may use.
    cpu: usize,
    /// File system and number of the segment that it maps.
    segment: (String, String),
    /// Time that it was runnable and did not run, since its start.
    waited_ns: u64,
}

impl Held {
    fn of(pid: i32) -> Held {
        let set = sched_getaffinity(Pid::from_raw(pid)).unwrap();
        let cpus: Vec<usize> = (0..nix::sched::CpuSet::count()).filter(|cpu| set.is_set(*cpu).unwrap()).collect();
        let [cpu] = cpus[..] else { panic!("worker {pid} may use {cpus:?}") };
        // proc_pid_maps(5): address, rights, offset, device, inode, path. The kernel says of the path that it is deleted.
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
        let line = maps.lines().find(|line| line.contains("/contention-lab-")).expect("the segment is mapped");
        let words: Vec<&str> = line.split_whitespace().collect();
        // Documentation/scheduler/sched-stats.rst: time on the CPU, time waiting for it, turns.
        let times = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
        Held {
            pid,
            cpu,
            segment: (words[3].to_owned(), words[4].to_owned()),
            waited_ns: times.split_whitespace().nth(1).unwrap().parse().unwrap(),
        }
    }
}

/// One lab of the two, and what was seen of its workers around each window.
struct Lab {
    run: Conversation,
    seen: Vec<(Held, Held)>,
}

impl Lab {
    fn started(bench: &Bench) -> Lab {
        let mut command = bench.run();
        command.args(["--hold", "--json", "--only", "padded"]);
        Lab { run: Conversation::with(command), seen: Vec::new() }
    }

    fn held(&mut self) -> Vec<Held> {
        self.run.gate().pids.into_iter().map(Held::of).collect()
    }

    fn finish(self) -> (Vec<(Held, Held)>, Run, String) {
        let (status, said, json) = self.run.finish();
        // 3: the other lab, or the machine, hid the answer.
        assert!(matches!(status.code(), Some(0 | 3)), "{status} {said}");
        (self.seen, serde_json::from_str(&json).unwrap(), json)
    }
}

/// One segment for all workers of a lab in each repetition; of both labs none is the other's.
fn assert_apart(of_one: &[Held], of_other: &[Held]) {
    let segments = |of: &[Held]| of.iter().map(|held| held.segment.clone()).collect::<BTreeSet<_>>();
    let (one, other) = (segments(of_one), segments(of_other));
    assert!(one.len() == 1 && other.len() == 1 && one != other, "{one:?} {other:?}");
}

/// Whether the other lab cost this one much, which it then says.
fn told(seen: &[(Held, Held)], observations: &[Observation]) -> bool {
    /// Rather than what any machine does now and then.
    const MUCH_NS: u64 = 200_000_000;
    let mut much = false;
    for (before, after) in seen {
        let one = observations.iter().find(|one| one.pid == Some(before.pid)).expect("its worker's observation");
        assert_eq!((before.pid, before.cpu, one.cpu as usize), (after.pid, after.cpu, before.cpu), "it stayed there");
        let waited_ns = after.waited_ns - before.waited_ns;
        println!("worker {} on CPU {}: waited {waited_ns} ns, lost {} ns", one.worker, one.cpu, one.lost_ns);
        if waited_ns > MUCH_NS {
            much = true;
            // All but what fell beside the window: the warm-up, and until all had left.
            assert!(one.lost_ns > waited_ns as f64 / 2.0, "{waited_ns} ns off its CPU, and says {} ns", one.lost_ns);
        }
    }
    much
}

/// Both windows at once, on the same CPUs. Whether they were indeed.
fn side_by_side(window: &str) -> bool {
    let bench = bench(window);
    let mut labs = [(); 2].map(|()| Lab::started(&bench));
    for _ in ["the arm", "its control"] {
        let before = labs.each_mut().map(Lab::held);
        assert_apart(&before[0], &before[1]);
        labs.iter_mut().for_each(|lab| lab.run.go_on());
        let after = labs.each_mut().map(Lab::held);
        labs.iter_mut().for_each(|lab| lab.run.go_on());
        for (lab, (before, after)) in labs.iter_mut().zip(before.into_iter().zip(after)) {
            lab.seen.extend(before.into_iter().zip(after));
        }
    }
    let runs = labs.map(Lab::finish);
    let pids = runs.each_ref().map(|(_, run, _)| run.observations.iter().filter_map(|one| one.pid).collect());
    let [one, other]: [BTreeSet<i32>; 2] = pids;
    assert!(one.len() == 4 && other.len() == 4 && one.is_disjoint(&other), "{one:?} {other:?}");
    let folders = fs::read_dir(bench.results().join("case")).unwrap().map(|entry| entry.unwrap().path());
    let left: BTreeSet<String> = folders.map(|it| fs::read_to_string(it.join("run.json")).unwrap()).collect();
    assert_eq!(left, runs.iter().map(|(.., json)| json.clone()).collect(), "a folder for each, whole");
    let told = runs.each_ref().map(|(seen, run, _)| told(seen, &run.observations));
    told == [true; 2]
}

#[test]
fn two_labs_share_cpus_and_nothing_else_and_each_says_what_that_cost() {
    let _alone = alone();
    // On a machine so busy that one came late, in longer windows.
    assert!(["1s", "4s", "16s"].into_iter().any(side_by_side), "the windows never met");
}

/// Says to the test that it is the process that has a segment.
const HOLDER: &str = "LAB_HOLDER";

/// Has a segment until its input ends.
fn hold() {
    let segment = segment::created();
    println!("\nholds {}", segment.name());
    io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

fn clean() {
    let output = coordinator().arg("clean").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

/// While its owner lives a segment stays, and when it has been killed `clean` removes it.
fn lives_as_long_as_its_owner(mut owner: Command) {
    owner.arg(std::env::current_exe().unwrap()).args(["--exact", NAME, "--nocapture"]).env(HOLDER, "");
    let mut owner = owner.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(owner.stdout.take().unwrap()).lines();
    let name = lines.find_map(|line| Some(line.unwrap().strip_prefix("holds ")?.to_owned())).unwrap();
    for _ in 0..3 {
        clean();
        assert!(has_name(&name), "the owner lives");
    }
    owner.kill().unwrap();
    owner.wait().unwrap();
    within(A_LONG_TIME, "what the dead owner left is removed", || {
        clean();
        (!has_name(&name)).then_some(())
    });
}

const NAME: &str = "clean_leaves_what_a_living_lab_has_and_removes_what_a_dead_one_left_in_any_container";

#[test]
fn clean_leaves_what_a_living_lab_has_and_removes_what_a_dead_one_left_in_any_container() {
    if std::env::var_os(HOLDER).is_some() {
        return hold();
    }
    lives_as_long_as_its_owner(Command::new("env"));
    // Process 1 in there: it is not found out here by that number, under which another lives, before and after.
    let contained = || {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--kill-child"]);
        command
    };
    match contained().arg("true").status() {
        Ok(status) if status.success() => lives_as_long_as_its_owner(contained()),
        _ => skip("unshare of util-linux makes no namespace of pids here"),
    }
}

#[test]
fn a_contained_lab_runs_while_another_cleans() {
    let _alone = alone();
    if !is_root() {
        return skip("a namespace of pids with its own /proc needs root");
    }
    let bench = Bench::new(&QUICK.replace("repetitions = 3", "repetitions = 4"));
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child", "--mount-proc", env!("CARGO_BIN_EXE_coordinator"), "run"]);
    command.arg(bench.scenario()).arg("--out").arg(bench.results()).args(["--quiet", "--only", "padded"]);
    let mut run = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut cleaned = 0;
    let status = within(Duration::from_secs(600), "the run's end", || {
        clean();
        cleaned += 1;
        run.try_wait().unwrap()
    });
    let mut said = String::new();
    run.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    if said.contains("unshare failed") {
        return skip(&format!("a namespace of pids is not allowed here: {said}"));
    }
    assert!(matches!(status.code(), Some(0 | 3)), "{status}: {said}");
    assert!(cleaned > 1, "while it ran");
    assert!(bench.only_result().join("run.json").exists());
}
