//! `kill -9` of a worker at random instants, with every kind of lock: the run ends soon, says who was killed, what it
//! held, who waits for that and what became of it, and leaves neither a process nor a segment. A test knows by itself what
//! its victim was doing: each section counts its begin and its end in fields of its worker, which are read while all
//! workers are stopped.

mod common;

use common::draw::{faults_asked_for, in_lanes, seeded};
use common::glimpse::Glimpse;
use common::{Bench, Worker, alone, has_name, stderr, workers_of};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plan::LockKind;
use rand::Rng;
use rand::rngs::SmallRng;
use shm_layout::{SegmentMap, WorkerState};
use std::process::{Child, Output, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use testing::{A_LONG_TIME, within};

/// Kills for each kind of lock: a twenty-fifth of `LAB_FAULTS`, and at least seven, among which is each aim, and a kill
/// among three.
fn draws() -> u32 {
    faults_asked_for().unwrap_or(0).div_ceil(25).max(7)
}

/// The run must end so soon after a kill.
const SOON: Duration = Duration::from_secs(2);
/// A run that has not ended by then hangs: its own bound is 35 s.
const HANG: Duration = Duration::from_secs(60);
/// Kills fall so long at most after the last worker has begun to run passes: into the warm-up and the window.
const LATEST: Duration = Duration::from_millis(40);
const WARM_UP_MS: u64 = 8;
/// Long enough that the latest kill falls into it on most machines; where it does not, it is made again in one that is
/// twice as long, and so on.
const WINDOW_MS: u64 = 250;
const ATTEMPTS: u32 = 7;

/// The lock and the fields of [`scenario`], bytes of the area.
const BEGUN: u64 = 128;
const ENDED: u64 = 256;
const AREA_BYTES: u64 = 4096;

/// Sections of `section`, one after the other, so that there is nearly always a holder and, with it, somebody waiting.
fn scenario(kind: LockKind, workers: u32, section: &str, window_ms: u64) -> String {
    format!(
        r#"
title = "Killed"
question = "What is left of a lock whose owner is killed?"
placement = "declared"
oversubscribe = true
[measure]
window = "{window_ms}ms"
warm_up = "{WARM_UP_MS}ms"
repetitions = 1
baselines = []
[lock.m]
kind = "{}"
at = 0
[field.begun]
type = "u64"
each = "worker"
at = {BEGUN}
[field.ended]
type = "u64"
each = "worker"
at = {ENDED}
[[role]]
name = "worker"
workers = {workers}
loop = ["lock m", "bump begun[me]", {section}"bump ended[me]", "unlock m"]
"#,
        kind.name()
    )
}

/// Whom a kill is meant for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Aim {
    /// One that is in its section.
    Holder,
    /// One that waits for the lock.
    Waiter,
    /// Any, and none is stopped before: so the kill falls into anything, a call of the kernel included.
    Any,
    /// Any, from its start on, whether it runs passes or not.
    Starting,
}

/// One kill, decided beforehand.
#[derive(Copy, Clone, Debug)]
struct Kill {
    kind: LockKind,
    workers: u32,
    section: &'static str,
    aim: Aim,
    /// After the last worker has begun to run passes, or has been started.
    after: Duration,
    /// Where several would do: the index modulo their number.
    pick: usize,
}

/// What a worker was doing when all were stopped.
#[derive(Copy, Clone, Debug, Default)]
struct Doing {
    running: bool,
    inside: bool,
    waits: bool,
}

/// What one kill came to.
struct Seen {
    kill: Kill,
    victim: u32,
    /// Each worker by index, as it was stopped; empty where none was.
    doing: Vec<Doing>,
    output: Output,
    took: Duration,
}

/// What all workers are doing; `None` where the one that is looked through is gone.
fn all_doing(glimpse: &Glimpse) -> Option<Vec<Doing>> {
    let doing = |worker: u32| {
        let count = |field: u64| glimpse.field(field + 8 * u64::from(worker));
        Some(Doing {
            running: glimpse.has_come_to(worker, WorkerState::Running)?,
            inside: count(BEGUN)? != count(ENDED)?,
            waits: glimpse.waits_for_the_first_lock(worker)?,
        })
    };
    (0..glimpse.map.workers).map(doing).collect()
}

fn signal(worker: &Worker, signal: Signal) {
    // It may have ended meanwhile; its number is not given away before its parent, the coordinator, has waited for it.
    let _ = kill(Pid::from_raw(worker.pid), signal);
}

/// Stops every worker, and waits until all are.
fn stop(workers: &[Worker]) {
    workers.iter().for_each(|w| signal(w, Signal::SIGSTOP));
    let is_stopped = |w: &Worker| {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", w.pid)).unwrap_or_default();
        stat.rsplit(')').next().is_none_or(|rest| !matches!(rest.trim_start().chars().next(), Some('R' | 'S' | 'D')))
    };
    within(A_LONG_TIME, "workers stopped", || workers.iter().all(is_stopped).then_some(()));
}

/// Stops all until there is one that the kill is meant for; gives its position, and what all were doing. `None` where the
/// window was over first.
fn find(kill: &Kill, workers: &[Worker], glimpse: &Glimpse) -> Option<(usize, Vec<Doing>)> {
    loop {
        stop(workers);
        let doing = all_doing(glimpse).filter(|all| all.iter().any(|doing| doing.running))?;
        // Behind the window passes are given up in their middle, and what they held is given back.
        let holds = |doing: &Doing| doing.inside && doing.running;
        let wanted = |w: &Worker| {
            let own = doing[w.index as usize];
            if kill.aim == Aim::Holder { holds(&own) } else { own.waits && !own.inside && doing.iter().any(holds) }
        };
        let candidates: Vec<usize> = (0..workers.len()).filter(|&nth| wanted(&workers[nth])).collect();
        if !candidates.is_empty() {
            return Some((candidates[kill.pick % candidates.len()], doing));
        }
        workers.iter().for_each(|w| signal(w, Signal::SIGCONT));
        std::thread::sleep(Duration::from_micros(300));
    }
}

/// Waits until all run passes and until it is time; gives the position of the one to kill, and what all are doing where
/// they are stopped for it. `None` where the run is over.
fn choose(kill: &Kill, workers: &[Worker], child: &mut Child) -> Option<(usize, Vec<Doing>)> {
    let glimpse = within(A_LONG_TIME, "workers that run passes", || {
        let glimpse = Glimpse::of(&workers[0], SegmentMap::new(kill.workers, 1, AREA_BYTES).unwrap());
        let all_run = glimpse.as_ref().and_then(all_doing).is_some_and(|all| all.iter().all(|d| d.running));
        let over = child.try_wait().unwrap().is_some();
        (over || all_run).then_some(glimpse.filter(|_| all_run))
    })?;
    std::thread::sleep(kill.after);
    match kill.aim {
        Aim::Any | Aim::Starting => Some((kill.pick % workers.len(), Vec::new())),
        Aim::Holder | Aim::Waiter => find(kill, workers, &glimpse),
    }
}

/// Waits for the end of a run; ends it where it hangs, and says so.
fn end_of(mut child: Child, since: Instant, what: &Kill) -> (Output, Duration) {
    let took = loop {
        if child.try_wait().unwrap().is_some() {
            break since.elapsed();
        }
        if since.elapsed() > HANG {
            let _ = child.kill();
            panic!("{what:?} hangs: {}", stderr(&child.wait_with_output().unwrap()));
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    (child.wait_with_output().unwrap(), took)
}

/// Does it. `None` where there was nobody to kill: a machine so busy that the run was over, or no such moment came.
fn attempt(what: Kill, window_ms: u64) -> Option<Seen> {
    let bench = Bench::new(&scenario(what.kind, what.workers, what.section, window_ms));
    let mut command = bench.run();
    let mut child = command.arg("--quiet").stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let workers = within(A_LONG_TIME, "workers", || {
        let mut workers = workers_of(child.id());
        workers.sort_by_key(|w| w.index);
        (workers.len() == what.workers as usize).then_some(workers)
    });
    let found = match what.aim {
        Aim::Starting => {
            std::thread::sleep(what.after);
            Some((what.pick % workers.len(), Vec::new()))
        }
        _ => choose(&what, &workers, &mut child),
    };
    let killed = Instant::now();
    if let Some((nth, _)) = found {
        signal(&workers[nth], Signal::SIGKILL);
    }
    workers.iter().for_each(|w| signal(w, Signal::SIGCONT));
    let (output, took) = end_of(child, killed, &what);
    assert_nothing_is_left(&workers, &bench, &what);
    let (nth, doing) = found?;
    // A run that was over before says nothing of a death.
    let too_late = !stderr(&output).contains("was killed") && !matches!(output.status.code(), Some(1));
    (!too_late).then(|| Seen { kill: what, victim: workers[nth].index, doing, output, took })
}

fn assert_nothing_is_left(workers: &[Worker], bench: &Bench, what: &Kill) {
    let lives = |w: &Worker| {
        let line = std::fs::read_to_string(format!("/proc/{}/cmdline", w.pid)).unwrap_or_default();
        line.contains(&w.segment)
    };
    assert!(!workers.iter().any(lives), "{what:?} left a process");
    assert!(!workers.iter().any(|w| has_name(&w.segment)), "{what:?} left a segment");
    let ours = |e: std::io::Result<std::fs::DirEntry>| e.unwrap().file_name().to_string_lossy().contains(".partial");
    assert!(!bench.results().exists() || !std::fs::read_dir(bench.results()).unwrap().any(ours), "{what:?}");
}

/// The same; again where the machine was too busy for it. What is wrong is wrong each time.
fn done(what: Kill) -> Seen {
    for nth in 0..ATTEMPTS {
        match attempt(what, WINDOW_MS << nth) {
            Some(seen) if seen.took <= SOON => return seen,
            Some(seen) => eprintln!("{what:?}: ended after {:?}", seen.took),
            None => eprintln!("{what:?}: came too late"),
        }
    }
    panic!("{what:?}: not ended within {SOON:?} of the kill, {ATTEMPTS} times");
}

/// Does them all, and looks at each.
fn do_all(kills: Vec<Kill>, check: impl Fn(&Seen) + Sync) {
    in_lanes(kills, || (), |(), what| check(&done(what)));
}

fn assert_says(seen: &Seen, parts: &[&str]) {
    let text = stderr(&seen.output);
    for part in parts {
        assert!(text.contains(part), "{:?}, doing {:?}: no {part:?} in: {text}", seen.kill, seen.doing);
    }
}

/// What holds for each kill: who was killed is named, whatever it did.
fn assert_is_named(seen: &Seen) {
    let (text, kind) = (stderr(&seen.output), seen.kill.kind);
    assert_eq!(seen.output.status.code(), Some(1), "{:?}: {text}", seen.kill);
    assert!(!text.contains("panicked"), "{:?}: {text}", seen.kill);
    assert_says(seen, &[&format!("worker {} (role `worker`", seen.victim), "was killed by SIGKILL while"]);
    // glibc aborts who waits for a priority-inheriting mutex whose owner died, with words of its own.
    assert!(kind == LockKind::PthreadPi || text.trim().lines().count() == 1, "{:?}: {text}", seen.kill);
}

/// What was seen to hold the lock is said to have held it, with all who were seen to wait for it.
fn assert_holder_is_explained(seen: &Seen) {
    let kind = seen.kill.kind;
    assert_says(seen, &[&format!("holding lock `m` of kind {}", kind.name())]);
    if kind.is_robust() {
        return assert_says(seen, &["take"]); // has taken over, or can
    }
    assert_says(seen, &["which nobody can take over"]);
    let text = stderr(&seen.output);
    let waiting = text.split("waiting for it: ").nth(1).unwrap_or_default();
    for (index, _) in seen.doing.iter().enumerate().filter(|(_, doing)| doing.waits && !doing.inside) {
        let name = format!("worker {index} (role `worker`");
        assert!(waiting.contains(&name), "{:?}, doing {:?}: {name} not in: {text}", seen.kill, seen.doing);
    }
}

fn drawn(random: &mut SmallRng, kind: LockKind, aim: Aim, workers: u32, section: &'static str) -> Kill {
    let after = random.random_range(Duration::ZERO..LATEST);
    Kill { kind, workers, section, aim, after, pick: random.random_range(0..6) }
}

#[test]
fn whoever_is_killed_at_any_moment_is_named_with_what_it_held_and_who_waits() {
    let _alone = alone();
    let mut random = seeded();
    let mut kills = Vec::new();
    for kind in LockKind::ALL {
        for nth in 0..draws() {
            let aim = [Aim::Holder, Aim::Any, Aim::Holder, Aim::Holder, Aim::Waiter][nth as usize % 5];
            let workers = if nth % 7 == 6 { 3 } else { 2 };
            kills.push(drawn(&mut random, kind, aim, workers, r#""work 40us", "#));
        }
    }
    let recovered = Mutex::new(0);
    do_all(kills, |seen| {
        assert_is_named(seen);
        match seen.kill.aim {
            Aim::Holder => assert_holder_is_explained(seen),
            Aim::Waiter => assert_says(seen, &["waiting for lock `m`"]),
            Aim::Any | Aim::Starting => {}
        }
        *recovered.lock().unwrap() += u32::from(stderr(&seen.output).contains("has taken over"));
    });
    assert!(recovered.into_inner().unwrap() > 0, "no robust lock was seen to be taken over");
}

#[test]
fn whoever_is_killed_before_it_runs_passes_is_named_too() {
    let _alone = alone();
    let mut random = seeded();
    let kinds = [LockKind::Pthread, LockKind::Mcs].into_iter().cycle().take(draws() as usize);
    let kills = kinds.map(|kind| drawn(&mut random, kind, Aim::Starting, 2, r#""work 40us", "#));
    do_all(kills.collect(), assert_is_named);
}

/// Sections of a few nanoseconds: nearly every instant lies in a handoff. In a queue a dead waiter is as bad as a dead
/// owner, for who stands behind it.
#[test]
fn a_queue_that_a_death_broke_in_the_middle_of_a_handoff_ends_the_run_too() {
    let _alone = alone();
    let mut random = seeded();
    let mut kills = Vec::new();
    for kind in [LockKind::Mcs, LockKind::Clh, LockKind::Ticket] {
        for nth in 0..draws() {
            let aim = if nth % 4 == 3 { Aim::Waiter } else { Aim::Any };
            let section = if aim == Aim::Waiter { r#""work 40us", "# } else { "" };
            kills.push(drawn(&mut random, kind, aim, 2, section));
        }
    }
    let (stuck, all) = (Mutex::new(0), kills.len());
    do_all(kills, |seen| {
        assert_is_named(seen);
        let text = stderr(&seen.output);
        *stuck.lock().unwrap() += u32::from(text.contains("which nobody has got since; waiting for it: worker"));
    });
    let stuck = stuck.into_inner().unwrap();
    assert!(stuck > 0, "a quarter of the dead stood in the queue, and of {all} none was said to block it");
}
