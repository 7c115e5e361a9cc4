//! Kills, stops and interrupts of the coordinator, of a worker and of all at once, in each phase of a run and at any instant
//! of it: each run ends, what survived says what happened, no process and no segment is left, and what is on disk is whole.
//!
//! `LAB_FAULTS=N` makes N of them, `LAB_SEED` draws the same again. Each fault has a seed of its own, which a failure says:
//! with it and `LAB_FAULTS=1` that fault alone is made again.

mod common;

use common::draw::{faults_asked_for, in_lanes, seed, up_to};
use common::glimpse::Glimpse;
use common::left::{Mark, Results};
use common::room::Room;
use common::{Bench, Worker, alone, coordinator, has_name, stdout, workers_of};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use plan::LockKind;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use shm_layout::{SegmentMap, WorkerState};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use testing::{A_LONG_TIME, within};

/// Faults in the short form: of each kind one at least.
const FEW: u32 = 20;
/// From here on a run must have made faults of every kind, in every phase.
const MANY: u32 = 200;
/// A run that has not ended so long after its fault hangs. Its own bound is 35 s for each of the few repetitions that can
/// still begin.
const HANG: Duration = Duration::from_secs(600);
/// A stop that is not for good lasts so long at most.
const LONGEST_STOP: Duration = Duration::from_millis(400);
/// Where a fault's moment has come, it waits for so long at most.
const LATEST: Duration = Duration::from_millis(6);
/// Repetitions that each run makes at least: two blocks of an arm and its control.
const REPETITIONS: usize = 4;

fn scenario(kind: LockKind) -> String {
    format!(
        r#"
title = "Faults"
question = "What is left?"
placement = "declared"
[measure]
window = "30ms"
warm_up = "4ms"
repetitions = 2
baselines = []
[lock.m]
kind = "{}"
at = 0
[field.count]
type = "u64"
each = "worker"
at = 128
[[role]]
name = "worker"
workers = 2
loop = ["lock m", "bump count[me]", "unlock m"]
"#,
        kind.name()
    )
}

/// When a fault is made.
#[derive(Copy, Clone, Debug)]
enum Moment {
    /// At this share of what a run takes that nobody disturbs.
    Share(f64),
    /// In that repetition, counted from 1, once its segment has a name.
    Named(usize),
    /// In that repetition, once a worker has come so far.
    State(WorkerState, usize),
    /// While the results are being written.
    Writing,
    /// Once they are there.
    Written,
}

impl Moment {
    fn drawn(random: &mut SmallRng, victim: Victim) -> Moment {
        use WorkerState::{Attached, Done, Left, Probing, Running};
        let nth = random.random_range(1..=REPETITIONS);
        // While results are written there is no worker.
        let kinds = if victim == Victim::Coordinator { 12 } else { 9 };
        match random.random_range(0..kinds) {
            0 | 1 => Moment::Share(random.random_range(0.0..1.0)),
            2 => Moment::Named(nth),
            3 => Moment::State(Attached, nth),
            4 => Moment::State(Probing, nth),
            5 | 6 => Moment::State(Running, nth),
            7 => Moment::State(Left, nth),
            8 => Moment::State(Done, nth),
            9 | 10 => Moment::Writing,
            _ => Moment::Written,
        }
    }

    /// As the statistics of a test have it.
    fn phase(self) -> String {
        match self {
            Moment::Share(_) => "at any instant".into(),
            Moment::Named(_) => "segment with a name".into(),
            Moment::State(state, _) => format!("worker {}", state.words()),
            Moment::Writing => "writing results".into(),
            Moment::Written => "results written".into(),
        }
    }
}

/// Whom a fault meets.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Victim {
    Coordinator,
    /// Of those alive this one, modulo their number.
    Worker(usize),
    /// All, as a terminal's keys and a service manager do it.
    All,
}

/// What is done to it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Act {
    /// A signal.
    Send(Signal),
    /// SIGSTOP, and after a while another signal: SIGCONT or SIGKILL.
    Stop(Duration, Signal),
}

impl Act {
    /// The signal that decides what becomes of the victim.
    fn last(self) -> Signal {
        match self {
            Act::Send(signal) | Act::Stop(_, signal) => signal,
        }
    }
}

/// One fault, decided beforehand.
#[derive(Copy, Clone, Debug)]
struct Fault {
    seed: u64,
    kind: LockKind,
    moment: Moment,
    /// After the moment has come.
    after: Duration,
    victim: Victim,
    act: Act,
}

/// How many kinds of fault there are: so many seeds in a row make one of each.
const KINDS: u64 = 16;

/// Who is met by a fault of that kind, and how; how long a stop is, and which worker is met, is drawn.
fn kind_of_fault(nth: u64, random: &mut SmallRng) -> (Victim, Act) {
    use Signal::{SIGCONT, SIGHUP, SIGINT, SIGKILL, SIGTERM};
    let worker = Victim::Worker(random.random_range(0..6));
    let length = up_to(random, LONGEST_STOP);
    match nth {
        0 | 1 => (worker, Act::Send(SIGKILL)),
        2 => (Victim::Coordinator, Act::Send(SIGKILL)),
        3 => (Victim::Coordinator, Act::Send(SIGINT)),
        4 => (Victim::Coordinator, Act::Send(SIGTERM)),
        5 => (Victim::Coordinator, Act::Send(SIGHUP)),
        6 => (worker, Act::Send(SIGTERM)),
        7 => (worker, Act::Send(SIGINT)),
        8 => (Victim::All, Act::Send(SIGINT)),
        9 => (Victim::All, Act::Send(SIGTERM)),
        10 => (Victim::All, Act::Send(SIGKILL)),
        11 => (worker, Act::Stop(length, SIGCONT)),
        12 => (Victim::Coordinator, Act::Stop(length, SIGCONT)),
        13 => (Victim::All, Act::Stop(length, SIGCONT)),
        14 => (worker, Act::Stop(length, SIGKILL)),
        _ => (Victim::Coordinator, Act::Stop(length, SIGKILL)),
    }
}

impl Fault {
    fn drawn(seed: u64) -> Fault {
        let random = &mut SmallRng::seed_from_u64(seed);
        let (victim, act) = kind_of_fault(seed % KINDS, random);
        let kind = LockKind::ALL[random.random_range(0..LockKind::ALL.len())];
        let moment = Moment::drawn(random, victim);
        Fault { seed, kind, moment, after: up_to(random, LATEST), victim, act }
    }

    /// Whether it kills the coordinator, so that nobody is left to clean up.
    fn silences(&self) -> bool {
        self.act.last() == Signal::SIGKILL && !matches!(self.victim, Victim::Worker(_))
    }
}

/// A run that was started, in a group of its own.
struct Running {
    bench: Bench,
    child: Child,
    errors: File,
    mark: Mark,
    /// Segments of repetitions that have been seen to begin, in order.
    segments: Vec<String>,
    started: Instant,
}

/// What a run came to.
struct Ended {
    status: ExitStatus,
    errors: String,
    took: Duration,
}

impl Running {
    fn start(kind: LockKind) -> Running {
        let bench = Bench::new(&scenario(kind));
        let errors = tempfile::tempfile().unwrap();
        let mut command = bench.run();
        command.args(["--quiet", "--lock-log"]).stdout(Stdio::null()).process_group(0);
        // A file, since a pipe would be held open by whoever is left.
        command.stderr(errors.try_clone().unwrap());
        let mark = Mark::on(&mut command);
        let child = command.spawn().unwrap();
        Running { bench, child, errors, mark, segments: Vec::new(), started: Instant::now() }
    }

    fn is_over(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Living workers of the repetition that runs, by index; notes which repetition that is.
    fn workers(&mut self) -> Vec<Worker> {
        let mut workers = workers_of(self.child.id());
        workers.sort_by_key(|worker| worker.index);
        for worker in &workers {
            if !self.segments.contains(&worker.segment) {
                self.segments.push(worker.segment.clone());
            }
        }
        workers
    }

    /// Waits for a moment; whether it came before the run was over.
    fn wait_for(&mut self, moment: Moment, undisturbed: Duration) -> bool {
        if let Moment::Share(share) = moment {
            std::thread::sleep(undisturbed.mul_f64(share).saturating_sub(self.started.elapsed()));
            return !self.is_over();
        }
        within(A_LONG_TIME, "a moment, or the end", || {
            let has_come = self.has_come(moment);
            (has_come || self.is_over()).then_some(has_come)
        })
    }

    fn has_come(&mut self, moment: Moment) -> bool {
        let map = SegmentMap::new(2, 1, 4096).unwrap();
        match moment {
            Moment::Share(_) => true,
            Moment::Named(nth) => {
                let named = self.workers().first().is_some_and(|worker| has_name(&worker.segment));
                named && self.segments.len() >= nth
            }
            Moment::State(state, nth) => self.workers().iter().any(|worker| {
                let glimpse = (self.segments.len() >= nth).then(|| Glimpse::of(worker, map)).flatten();
                glimpse.and_then(|glimpse| glimpse.has_come_to(worker.index, state)) == Some(true)
            }),
            Moment::Writing => self.entries().iter().any(|name| name.ends_with(".partial")),
            Moment::Written => self.entries().iter().any(|name| !name.starts_with('.')),
        }
    }

    fn entries(&self) -> Vec<String> {
        let folder = std::fs::read_dir(self.bench.results().join("case")).into_iter().flatten();
        folder.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect()
    }

    /// Does to the victim what is to be done; the index of the worker that was met. `None` where there was nobody.
    fn suffer(&mut self, victim: Victim, act: Act) -> Option<Option<u32>> {
        let workers = self.workers();
        let coordinator = Pid::from_raw(self.child.id() as i32);
        // None of these numbers is given away meanwhile: the coordinator is ours to reap, and workers are reaped by it, which
        // takes their end.
        let (pid, worker) = match victim {
            Victim::Worker(nth) => {
                let worker = workers.get(nth % workers.len().max(1))?;
                (Pid::from_raw(worker.pid), Some(worker.index))
            }
            Victim::Coordinator | Victim::All => (coordinator, None),
        };
        let send = |signal: Signal| match victim {
            Victim::All => _ = killpg(coordinator, signal),
            _ => _ = kill(pid, signal),
        };
        match act {
            Act::Send(signal) => send(signal),
            Act::Stop(length, then) => {
                send(Signal::SIGSTOP);
                std::thread::sleep(length);
                send(then);
            }
        }
        Some(worker)
    }

    fn end(&mut self, since: Instant) -> Result<Ended, String> {
        let deadline = since + HANG;
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None if Instant::now() >= deadline => {
                    let _ = killpg(Pid::from_raw(self.child.id() as i32), Signal::SIGKILL);
                    let _ = self.child.wait();
                    return Err(format!("hangs, {HANG:?} after its fault: {}", self.said()));
                }
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        Ok(Ended { status, errors: self.said(), took: since.elapsed() })
    }

    fn said(&mut self) -> String {
        let mut text = String::new();
        self.errors.rewind().unwrap();
        self.errors.read_to_string(&mut text).unwrap();
        text
    }

    /// The segments of this run that have a name: all that are there where nobody else is, else those that were seen.
    fn named(&self, room: Option<&Room>) -> Vec<PathBuf> {
        match room {
            Some(room) => room.shared_memory(),
            None => self.segments.iter().filter(|name| has_name(name)).map(PathBuf::from).collect(),
        }
    }

    /// Looks for what is left.
    fn leftovers(&mut self, ended: &Ended, room: Option<&Room>, silenced: bool) -> Result<Results, String> {
        if silenced {
            self.mark.await_none();
            clean(self.named(room))?;
        }
        let (processes, segments) = (self.mark.bearers(), self.named(room));
        if !processes.is_empty() || !segments.is_empty() {
            return Err(format!("processes {processes:?} and segments {segments:?} are left: {}", ended.errors));
        }
        let results = Results::below(&self.bench.results())?;
        match results.partial.is_empty() || silenced {
            true => Ok(results),
            false => Err(format!("{:?} is left: {}", results.partial, ended.errors)),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = killpg(Pid::from_raw(self.child.id() as i32), Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

/// `clean` names and removes what a killed coordinator had not come to remove.
fn clean(left: Vec<PathBuf>) -> Result<(), String> {
    let said = stdout(&coordinator().arg("clean").output().unwrap());
    // Elsewhere on the machine another run may have swept first.
    let unsaid = |path: &&PathBuf| !said.contains(&path.display().to_string()) && path.exists();
    match left.iter().find(unsaid) {
        Some(path) => Err(format!("clean leaves {}: {said}", path.display())),
        None => Ok(()),
    }
}

/// Whether the run's own words and its status are what is promised for such a fault. Gives in a word how it ended.
fn judged(fault: &Fault, met: Option<u32>, ended: &Ended, results: &Results) -> Result<&'static str, String> {
    let signal = fault.act.last();
    let code = ended.status.code();
    let killed_by = ended.status.signal();
    let says = |part: &str| ended.errors.contains(part);
    let whole = results.whole.len();
    let cut_short = results.whole.iter().any(|run| run.warnings.iter().any(|warning| warning.id == "ended_early"));
    let wrong = |why: &str| Err(format!("{why}: {}, {whole} results, {}", ended.status, ended.errors));
    if says("panicked") || whole > 1 {
        return wrong("not as it should be");
    }
    match (fault.victim, met) {
        // Workers pay no heed to an interrupt of the keyboard, once they are themselves.
        (Victim::Worker(_), Some(index)) => match code {
            Some(0 | 3) if whole == 1 && !cut_short => Ok("went on to its end"),
            Some(1) if signal != Signal::SIGCONT => {
                let named =
                    says(&format!("worker {index} (role `worker`, CPU ")) && says(&format!("by {signal} while"));
                let saved = whole == 0 || cut_short && says("what was measured until then is in ");
                match named && saved && says("was it killed by hand, by a limit, or for lack of memory (`dmesg`)?") {
                    true => Ok("named the worker"),
                    false => wrong("the worker is not named, or what was measured is not said to be there"),
                }
            }
            _ => wrong("neither its end nor the worker's name"),
        },
        _ if signal == Signal::SIGCONT => match code {
            Some(0 | 3) if whole == 1 && !cut_short => Ok("went on to its end"),
            _ => wrong("a stop is no end"),
        },
        _ if signal == Signal::SIGKILL => match (killed_by, code) {
            (Some(9), _) => Ok("was silenced"),
            (_, Some(0 | 3)) => Ok("went on to its end"),
            _ => wrong("neither killed nor at its end"),
        },
        _ => match (killed_by, code) {
            (_, Some(130)) if says("interrupted: workers ended, segment removed") => Ok("was interrupted"),
            (_, Some(0 | 3)) if whole == 1 => Ok("went on to its end"),
            // With nothing to clean up, before the first segment and behind the last: as any program.
            (Some(number), _) if number == signal as i32 && self_cleaning(fault, whole) => Ok("ended as any program"),
            _ => wrong("neither interrupted nor at its end"),
        },
    }
}

/// Whether a run may end by a signal's own action: where it holds nothing yet, or nothing any more.
fn self_cleaning(fault: &Fault, whole: usize) -> bool {
    whole == 1 || matches!(fault.moment, Moment::Share(_))
}

/// What a fault came to, for the statistics.
struct Made {
    phase: String,
    how: &'static str,
    took: Duration,
}

/// Makes one fault. `None` where its moment never came: the run was over before.
fn make(fault: &Fault, undisturbed: Duration, room: Option<&Room>) -> Result<Option<Made>, String> {
    let mut run = Running::start(fault.kind);
    let came = run.wait_for(fault.moment, undisturbed);
    std::thread::sleep(fault.after);
    let met = if came { run.suffer(fault.victim, fault.act) } else { None };
    let ended = run.end(Instant::now())?;
    let results = run.leftovers(&ended, room, met.is_some() && fault.silences())?;
    let Some(worker) = met else { return Ok(None) };
    let how = judged(fault, worker, &ended, &results)?;
    Ok(Some(Made { phase: fault.moment.phase(), how, took: ended.took }))
}

/// What a run takes that nobody disturbs; it must end well, too.
fn undisturbed(room: Option<&Room>) -> Duration {
    let mut run = Running::start(LockKind::Pthread);
    let ended = run.end(Instant::now()).unwrap();
    let results = run.leftovers(&ended, room, false).unwrap();
    assert!(matches!(ended.status.code(), Some(0 | 3)) && results.whole.len() == 1, "{}", ended.errors);
    run.started.elapsed()
}

/// Faults by what they met and came to: how many, and the longest time until the run had ended.
#[derive(Default)]
struct Tally {
    rows: BTreeMap<(String, &'static str), (u32, Duration)>,
    missed: u32,
}

impl Tally {
    fn add(&mut self, made: Option<Made>) {
        let Some(Made { phase, how, took }) = made else { return self.missed += 1 };
        let row = self.rows.entry((phase, how)).or_default();
        *row = (row.0 + 1, row.1.max(took));
    }

    fn print(&self) {
        println!("{:<38} {:<22} {:>6} {:>10}", "phase", "the run", "faults", "longest");
        for ((phase, how), (count, longest)) in &self.rows {
            println!("{phase:<38} {how:<22} {count:>6} {:>8.2} s", longest.as_secs_f64());
        }
        println!("{} came too late: the run was over, or had no worker then", self.missed);
    }

    fn phases(&self) -> BTreeSet<&str> {
        self.rows.keys().map(|(phase, _)| phase.as_str()).collect()
    }

    fn ways(&self) -> BTreeSet<&str> {
        self.rows.keys().map(|(_, how)| *how).collect()
    }
}

#[test]
fn whatever_happens_a_run_ends_and_leaves_nothing_but_whole_results() {
    let _alone = alone();
    let (seed, number) = (seed(), faults_asked_for().unwrap_or(FEW));
    let tally = Mutex::new(Tally::default());
    let enter = || {
        let room = Room::enter();
        let undisturbed = undisturbed(room.as_ref());
        (room, undisturbed)
    };
    in_lanes((0..u64::from(number)).collect(), enter, |(room, undisturbed), nth| {
        let fault = Fault::drawn(seed.wrapping_add(nth));
        let repeat = format!("LAB_SEED={} LAB_FAULTS=1 makes it again", fault.seed);
        match make(&fault, *undisturbed, room.as_ref()) {
            Ok(made) => tally.lock().unwrap().add(made),
            Err(why) => panic!("{fault:?}: {why}\n{repeat}"),
        }
    });
    let tally = tally.into_inner().unwrap();
    tally.print();
    assert!(number < 10 || tally.missed < number / 2, "most faults met nothing");
    if number >= MANY {
        assert_eq!(tally.phases().len(), 9, "{:?}", tally.phases());
        assert_eq!(tally.ways().len(), 5, "{:?}", tally.ways());
    }
}

/// Longer than a repetition may take, and than a worker's own timer allows it: 35 and 40 s beyond the window.
const FOR_GOOD: Duration = Duration::from_secs(50);
/// Longer than all may take to leave the window, and shorter than the timer.
const FOR_LONG: Duration = Duration::from_secs(28);

/// What a long stop comes to: the status, and what is said.
struct LongStop {
    state: WorkerState,
    victim: Victim,
    act: Act,
    status: &'static [i32],
    says: &'static [&'static str],
}

const LONG_STOPS: [LongStop; 5] = [
    LongStop {
        state: WorkerState::Attached,
        victim: Victim::Worker(1),
        act: Act::Send(Signal::SIGSTOP),
        status: &[1],
        says: &[
            "did not end in its time and was stopped",
            "worker 1 (role `worker`",
            "is a worker stopped (`ps`, state T)",
        ],
    },
    LongStop {
        state: WorkerState::Running,
        victim: Victim::Worker(0),
        act: Act::Send(Signal::SIGSTOP),
        status: &[1],
        says: &[
            "did not end in its time and was stopped",
            "worker 0 (role `worker`",
            "is a worker stopped (`ps`, state T)",
        ],
    },
    LongStop {
        state: WorkerState::Running,
        victim: Victim::Coordinator,
        act: Act::Stop(FOR_LONG, Signal::SIGCONT),
        status: &[0, 3],
        says: &[],
    },
    LongStop {
        state: WorkerState::Attached,
        victim: Victim::Coordinator,
        act: Act::Stop(FOR_LONG, Signal::SIGCONT),
        status: &[0, 3],
        says: &[],
    },
    LongStop {
        state: WorkerState::Attached,
        victim: Victim::Coordinator,
        act: Act::Stop(FOR_GOOD, Signal::SIGCONT),
        status: &[1],
        says: &["worker 0 (role `worker`", "was ended by its own timer (SIGALRM)", "was the run stopped"],
    },
];

/// Nobody continues what was stopped, or long after: bounds that are there for it end the run. Long form alone, since they
/// are half a minute each.
#[test]
fn who_stands_still_for_long_is_named_or_goes_on() {
    if faults_asked_for().is_none_or(|number| number < MANY) {
        return println!("takes minutes: `.ci/long faults` does it");
    }
    let _alone = alone();
    in_lanes(LONG_STOPS.into(), Room::enter, |room, stop| {
        let LongStop { state, victim, act, status, says } = stop;
        let mut run = Running::start(LockKind::Mcs);
        assert!(run.wait_for(Moment::State(state, 1), Duration::ZERO), "it is over before {state:?}");
        assert!(run.suffer(victim, act).is_some());
        let what = format!("{victim:?} {act:?} while {state:?}");
        let ended = run.end(Instant::now()).unwrap_or_else(|why| panic!("{what}: {why}"));
        run.leftovers(&ended, room.as_ref(), false).unwrap_or_else(|why| panic!("{what}: {why}"));
        let told = says.iter().all(|part| ended.errors.contains(part));
        let code = ended.status.code().unwrap_or(-1);
        assert!(told && status.contains(&code), "{what}: {}: {}", ended.status, ended.errors);
        println!("{what}: {} after {:.1} s", ended.status, ended.took.as_secs_f64());
    });
}
