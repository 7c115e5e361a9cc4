//! A holder that acts by a script: another process takes the lock, says so, and gives it back at an instant that was told
//! before; a worker's own loop arrives at an instant that was told as well. How long it had to wait is arithmetic then,
//! and what its log says is held against it.
//!
//! Both read one clock (the invariant TSC). What may lie between arithmetic and log is what the machine takes to read it,
//! to enter the loop, and to bring a line from one CPU to the other; that is measured here too. Whatever else comes
//! between, an eviction say, can make a trial longer and never shorter: so what holds in every trial is asserted of every
//! trial, and the rest of most of those in which, as the two processes' own clocks tell, both kept to the script.
#![allow(unsafe_code)] // words and locks in a mapped segment

use crate::compile::CompiledLoop;
use crate::context::Context;
use crate::pin;
use crate::probe::Reading;
use crate::rehearsal::{ENCODED, each, lock, own_lock, program, segment, unlock};
use nix::sched::{CpuSet, sched_getaffinity};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use plan::{CpuId, LockKind, Program, WorkerProgram};
use record::Wait;
use shm_layout::lock::Effort;
use shm_layout::{Segment, ticks};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

/// What the holder's process is told: `KIND CPU SEGMENT`.
const HOLDER: &str = "LAB_SCRIPTED_HOLDER";

/// How long the lock is held, and when in it the worker arrives: microseconds after it was taken.
const SCRIPT: [(u64, u64); 6] = [(10, 3), (40, 3), (40, 30), (120, 10), (120, 90), (300, 50)];
/// Times that it is played in one performance.
const ROUNDS: usize = 10;
/// Of each line of the script so many trials are judged at least; a machine that is busy needs several performances.
const LEAST_JUDGED: usize = 8;
/// Performances, at most.
const PERFORMANCES: usize = 20;
/// How late either may be for a trial that is judged, microseconds: a process that was off its CPU is later.
const PUNCTUAL_US: u64 = 5;
/// The same for waking one that sleeps, and for coming onto its CPU then.
const AWAKE_US: u64 = 100;
/// Window of the worker, which it never leaves: nobody reads the clock for it.
const WINDOW_MS: u64 = 5;

/// Words in the area by which the two talk.
const TURN: u64 = 512;
const HOLD: u64 = 640;
const TAKEN: u64 = 768;
const TAKEN_AT: u64 = 776;
const GIVEN: u64 = 896;
const GIVING_AT: u64 = 904;
const GIVEN_AT: u64 = 912;
const PING: u64 = 1024;
const PONG: u64 = 1152;
/// Times that a word goes to the holder and back before the script begins.
const PINGS: u64 = 500;
/// The turn that ends the holder.
const END: u64 = u64::MAX;

fn word(segment: &Segment, at: u64) -> &AtomicU64 {
    // SAFETY: in the area of 4096 bytes, aligned, and touched as a word by both.
    unsafe { &*segment.area().add(at as usize).cast::<AtomicU64>() }
}

fn await_turn(segment: &Segment, at: u64, turn: u64) -> u64 {
    loop {
        let now = word(segment, at).load(Ordering::Acquire);
        if now == turn || now == END {
            return now;
        }
        std::hint::spin_loop();
    }
}

fn spin_until(instant: u64) {
    while ticks() < instant {
        std::hint::spin_loop();
    }
}

fn scripted(kind: LockKind) -> Program {
    program(kind, WINDOW_MS, [each([lock(false, None), unlock(false)])])
}

/// The holder: takes the lock, says when, gives it back when it is time, and says when.
fn hold(kind: LockKind, cpu: u32, name: &str) {
    set_pdeathsig(Signal::SIGKILL).unwrap();
    pin::pin(CpuId(cpu)).unwrap();
    let program = scripted(kind);
    let segment = Segment::attach(name, &program, ENCODED, 2).unwrap();
    let mut lock = own_lock(&segment, &program);
    for ping in 1..=PINGS {
        await_turn(&segment, PING, ping);
        word(&segment, PONG).store(ping, Ordering::Release);
    }
    for turn in 1.. {
        if await_turn(&segment, TURN, turn) == END {
            return;
        }
        lock.acquire(false, &mut Effort::default(), &|| false).unwrap();
        let taken_at = ticks();
        word(&segment, TAKEN_AT).store(taken_at, Ordering::Relaxed);
        word(&segment, TAKEN).store(turn, Ordering::Release);
        spin_until(taken_at + word(&segment, HOLD).load(Ordering::Relaxed));
        let giving_at = ticks();
        lock.release(false, &|| false).unwrap();
        word(&segment, GIVEN_AT).store(ticks(), Ordering::Relaxed);
        word(&segment, GIVING_AT).store(giving_at, Ordering::Relaxed);
        word(&segment, GIVEN).store(turn, Ordering::Release);
    }
}

/// One arrival of the worker at the held lock, ticks.
#[derive(Copy, Clone, Debug)]
struct Trial {
    /// Read just before its step, and just behind it.
    arrival: u64,
    owned: u64,
    /// Read by the holder just before the release, and just behind.
    giving: u64,
    given: u64,
    /// Line of the script, and when by it the lock was given back.
    line: usize,
    due: u64,
}

/// The worker as a run has it, in its window, and the holder at its side.
struct Stage<'s> {
    segment: &'s Segment,
    takes: CompiledLoop,
    gives: CompiledLoop,
    context: Context<'s>,
    turn: u64,
}

impl<'s> Stage<'s> {
    fn new(segment: &'s Segment, program: &Program) -> Stage<'s> {
        let me = &program.workers[0];
        let compiled = |nth: usize| {
            let part = WorkerProgram { ops: vec![me.ops[nth].clone()], ..me.clone() };
            CompiledLoop::compile(&part, 1, 1.0, &crate::hooks()).unwrap()
        };
        let (takes, gives) = (compiled(0), compiled(1));
        let mut context = Context::new(segment, program, me, &[], Vec::new());
        segment.control().release();
        while !context.recorder.inside() {
            context.read(ticks());
        }
        Stage { segment, takes, gives, context, turn: 0 }
    }

    /// One pass; the clock before it, and when it had the lock. Loops of a step each, so that the clock can be read
    /// between: to give back a lock that was waited for may take a call of the kernel.
    fn pass(&mut self) -> (u64, u64) {
        let context: *mut Context<'_> = &mut self.context;
        let arrival = ticks();
        // SAFETY: the area holds every offset of the Program (`Segment::attach` checked); only hooks touch the context
        // until this returns.
        unsafe { self.takes.run(self.segment.area(), context.cast(), 1) };
        let owned = ticks();
        // SAFETY: as above.
        unsafe { self.gives.run(self.segment.area(), context.cast(), 1) };
        assert_eq!(self.context.failure, None);
        (arrival, owned)
    }

    /// What it takes to take the lock while nobody else wants it: half of the times no longer.
    fn free_pass_ticks(&mut self) -> u64 {
        median((0..200).map(|_| self.pass()).map(|(from, to)| to - from).collect())
    }

    /// What a word takes to the holder and back.
    fn round_trip_ticks(&self) -> u64 {
        let trip = |ping| {
            let start = ticks();
            word(self.segment, PING).store(ping, Ordering::Release);
            await_turn(self.segment, PONG, ping);
            ticks() - start
        };
        median((1..=PINGS).map(trip).collect())
    }

    fn trial(&mut self, line: usize, hold_ticks: u64, arrive_ticks: u64) -> Trial {
        self.turn += 1;
        word(self.segment, HOLD).store(hold_ticks, Ordering::Relaxed);
        word(self.segment, TURN).store(self.turn, Ordering::Release);
        await_turn(self.segment, TAKEN, self.turn);
        let taken_at = word(self.segment, TAKEN_AT).load(Ordering::Relaxed);
        spin_until(taken_at + arrive_ticks);
        let (arrival, owned) = self.pass();
        await_turn(self.segment, GIVEN, self.turn);
        let read = |at| word(self.segment, at).load(Ordering::Relaxed);
        Trial { arrival, owned, giving: read(GIVING_AT), given: read(GIVEN_AT), line, due: taken_at + hold_ticks }
    }

    fn waits(self) -> Vec<Wait> {
        word(self.segment, TURN).store(END, Ordering::Release);
        let nothing = || Reading { transfer_ticks: None, contended_ticks: None, core_loop_ticks: 0 };
        self.context.into_trace(0, nothing(), nothing()).locks[0].waits.clone()
    }
}

fn median(mut all: Vec<u64>) -> u64 {
    all.sort_unstable();
    all[all.len() / 2]
}

/// Ends the holder whatever becomes of the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start_holder(kind: LockKind, cpu: u32, segment: &Segment) -> Ended {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "scripted::a_logged_wait_is_what_arithmetic_says", "--nocapture", "--test-threads=1"])
        .env(HOLDER, format!("{} {cpu} {}", kind.name(), segment.name()))
        .stdout(Stdio::null())
        .spawn();
    Ended(child.unwrap())
}

/// Two CPUs that this process may use.
fn two_cpus() -> Option<(u32, u32)> {
    let allowed = sched_getaffinity(Pid::from_raw(0)).unwrap();
    let mut cpus = (0..CpuSet::count()).filter(|cpu| allowed.is_set(*cpu).unwrap_or(false)).map(|cpu| cpu as u32);
    Some((cpus.next()?, cpus.next()?))
}

/// One performance of the script with one kind.
struct Played {
    /// Each trial, with the wait that the worker logged in it; `None` where it found the lock free.
    trials: Vec<(Trial, Option<Wait>)>,
    /// How far a log may be from arithmetic: what two clock reads and the taking of a free lock cost, before the wait and
    /// behind it, and a word's way there and back.
    tolerance: u64,
    us: f64,
}

fn play(kind: LockKind, (mine, holders): (u32, u32)) -> Played {
    let program = scripted(kind);
    let segment = segment(&program);
    let us = segment.header().tick_rate().ticks_per_ns * 1000.0;
    pin::pin(CpuId(mine)).unwrap();
    let mut stage = Stage::new(&segment, &program);
    let free = stage.free_pass_ticks();
    let holder = start_holder(kind, holders, &segment);
    let tolerance = 2 * free + stage.round_trip_ticks();
    let ticks_of = |length_us: u64| (length_us as f64 * us) as u64;
    let script = SCRIPT.into_iter().enumerate().cycle().take(SCRIPT.len() * ROUNDS);
    let trials = script.map(|(line, (hold, arrive))| stage.trial(line, ticks_of(hold), ticks_of(arrive)));
    let trials: Vec<Trial> = trials.collect();
    let waits = stage.waits();
    drop(holder);
    let logged = |trial: &Trial| {
        let mut own = waits.iter().filter(|w| (trial.arrival..=trial.owned).contains(&w.start_ticks));
        let first = own.next().copied();
        assert!(own.next().is_none(), "{kind:?}: two waits in one pass");
        first
    };
    let trials: Vec<_> = trials.iter().map(|trial| (*trial, logged(trial))).collect();
    let found = trials.iter().filter(|(_, wait)| wait.is_some()).count();
    assert_eq!(found, waits.len(), "{kind:?}: each wait belongs to a trial");
    Played { trials, tolerance, us }
}

/// What holds however busy the machine is: no wait ends before the lock was given back, or after it was owned.
fn assert_is_possible(kind: LockKind, trial: &Trial, wait: Option<Wait>) {
    let Some(Wait { start_ticks, ticks }) = wait else {
        return assert!(trial.owned >= trial.giving, "{kind:?}: owned while it was held: {trial:?}");
    };
    let end = start_ticks + ticks;
    assert!(end >= trial.giving, "{kind:?}: owned while it was held: {trial:?}, {wait:?}");
    assert!(end <= trial.owned, "{kind:?}: waited when it was through: {trial:?}, {wait:?}");
}

impl Played {
    /// Whether both kept to the script, as their own clocks say.
    fn is_punctual(&self, kind: LockKind, trial: &Trial) -> bool {
        let late = |from: u64, to: u64, most_us: u64| to.saturating_sub(from) as f64 > most_us as f64 * self.us;
        let waking = if kind.spins() { PUNCTUAL_US } else { AWAKE_US };
        let gave_late = late(trial.due, trial.giving, PUNCTUAL_US) || late(trial.giving, trial.given, waking);
        trial.arrival < trial.due && !gave_late && !late(trial.giving, trial.owned, waking)
    }

    /// How far the log is from arithmetic, ticks: from the arrival to the release. One that sleeps comes onto its CPU some
    /// time after it was given the lock; its wait lasts from the arrival until then.
    fn off(&self, kind: LockKind, trial: &Trial, wait: Wait) -> u64 {
        if kind.spins() {
            return wait.ticks.abs_diff(trial.given.saturating_sub(trial.arrival));
        }
        let (before, behind) = (wait.start_ticks - trial.arrival, trial.owned - wait.start_ticks - wait.ticks);
        before.max(behind)
    }
}

/// Whether of the punctual trials of one kind most are exact; `None` where there were too few.
fn is_exact(kind: LockKind, cpus: (u32, u32)) -> Option<bool> {
    let (mut judged, mut exact, mut all) = ([0; SCRIPT.len()], 0, 0);
    for _ in 0..PERFORMANCES {
        let played = play(kind, cpus);
        for (trial, wait) in &played.trials {
            assert_is_possible(kind, trial, *wait);
            if played.is_punctual(kind, trial) {
                let off = wait.map(|wait| played.off(kind, trial, wait));
                judged[trial.line] += 1;
                all += 1;
                exact += usize::from(off.is_some_and(|off| off <= played.tolerance));
            }
        }
        if judged.iter().all(|n| *n >= LEAST_JUDGED) {
            println!("{kind:?}: {exact} of {all} punctual trials are exact to {} ticks", played.tolerance);
            return Some(2 * exact > all);
        }
    }
    None
}

#[test]
fn a_logged_wait_is_what_arithmetic_says() {
    if let Ok(told) = std::env::var(HOLDER) {
        let [kind, cpu, name] = told.split(' ').collect::<Vec<_>>()[..] else { panic!("{told}") };
        let kind = LockKind::ALL.into_iter().find(|k| k.name() == kind).unwrap();
        return hold(kind, cpu.parse().unwrap(), name);
    }
    let Some(cpus) = two_cpus() else {
        assert!(std::env::var_os("LAB_NO_SKIPS").is_none(), "may not skip here: this test needs two CPUs");
        return eprintln!("skipped: a holder and a waiter that run at once need two CPUs");
    };
    for kind in LockKind::ALL {
        match is_exact(kind, cpus) {
            Some(exact) => assert!(exact, "{kind:?}: most logged waits are not what the script says"),
            None => println!("{kind:?}: not told: the two were off their CPUs all the time"),
        }
    }
}
