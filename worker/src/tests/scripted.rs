//! A holder that acts by a script: another process takes the lock, says so, and gives it back at an instant that was told
//! before; a worker's own loop arrives at an instant that was told as well. How long it had to wait is arithmetic then,
//! and what its log says is held against it.
//!
//! Both read one clock (the invariant TSC). What may lie between arithmetic and log is what the machine takes to read it,
//! to enter the loop, and to bring a line from one CPU to the other; that is measured here too. Whatever else comes
//! between, an eviction say, can make a trial longer and never shorter: so what holds in every trial is asserted of every
//! trial, and the rest of those in which, as the two processes' own clocks tell, both kept to the script.
#![allow(unsafe_code)] // words and locks in a mapped segment

use super::named;
use super::rehearsal::{ENCODED, each, lock, own_lock, program, segment, unlock};
use crate::compile::{CompiledLoop, Hooks, LockSites};
use crate::context::Context;
use crate::pin;
use crate::probe::Reading;
use nix::sched::{CpuSet, sched_getaffinity};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use plan::{CpuId, LockKind, OpKind, Program};
use record::TickSpan;
use shm_layout::lock::Effort;
use shm_layout::{Segment, ticks};
use std::ffi::c_void;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

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

/// Looks between two looks at the time, which take longer.
const LOOKS: u32 = 100_000;

fn await_turn(segment: &Segment, at: u64, turn: u64) -> u64 {
    let mut begin = None;
    loop {
        for _ in 0..LOOKS {
            let now = word(segment, at).load(Ordering::Acquire);
            if now == turn || now == END {
                return now;
            }
            std::hint::spin_loop();
        }
        let waited = begin.get_or_insert_with(Instant::now).elapsed();
        assert!(waited < testing::A_LONG_TIME, "turn {turn} has not come at {at}: is the other still there?");
    }
}

fn spin_until(instant: u64) {
    while ticks() < instant {
        std::hint::spin_loop();
    }
}

/// The worker's loop. What its section calls reads the clock.
fn scripted(kind: LockKind) -> Program {
    program(kind, WINDOW_MS, [each([lock(false, None), OpKind::Yield, unlock(false)])])
}

/// When the worker last had the lock, ticks.
static OWNED_AT: AtomicU64 = AtomicU64::new(0);

/// The section's call.
unsafe extern "C" fn note_owned(_: *mut c_void) {
    OWNED_AT.store(ticks(), Ordering::Relaxed);
}

/// Tells the worker that the holder is no more, should it fail: who waits for a word of it would wait for ever.
struct SaysEnd<'s>(&'s Segment);

impl Drop for SaysEnd<'_> {
    fn drop(&mut self) {
        [PONG, TAKEN, GIVEN].into_iter().for_each(|at| word(self.0, at).store(END, Ordering::Release));
    }
}

/// The holder: takes the lock, says when, gives it back when it is time, and says when.
fn hold(kind: LockKind, cpu: u32, name: &str) {
    set_pdeathsig(Signal::SIGKILL).unwrap();
    let program = scripted(kind);
    let segment = Segment::attach(name, &program, ENCODED, 2).unwrap();
    let _end = SaysEnd(&segment);
    pin::pin(CpuId(cpu)).unwrap();
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
    /// Read just before its pass, and in its section.
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
    compiled: CompiledLoop,
    context: Context<'s>,
    turn: u64,
}

impl<'s> Stage<'s> {
    fn new(segment: &'s Segment, program: &Program) -> Stage<'s> {
        let me = &program.workers[0];
        let sites = LockSites::of(program, segment.map(), me.index);
        let hooks = Hooks { yield_now: note_owned, ..crate::hooks() };
        let compiled = CompiledLoop::compile(me, &sites, 1, 1.0, &hooks).unwrap();
        let mut context = Context::new(segment, program, me, &[], Default::default());
        segment.control().release();
        while !context.recorder.inside() {
            context.read(ticks());
        }
        Stage { segment, compiled, context, turn: 0 }
    }

    /// One pass; the clock before it, and when it had the lock.
    fn pass(&mut self) -> (u64, u64) {
        let handle = self.context.handle();
        let arrival = ticks();
        // SAFETY: the area holds every offset of the Program (`Segment::attach` checked); only hooks touch the context
        // until this returns.
        let progress = unsafe { self.compiled.run(self.segment.area(), handle, 1) };
        assert_eq!((progress.passes, &self.context.failure), (1, &None));
        (arrival, OWNED_AT.load(Ordering::Relaxed))
    }

    /// What it takes to take the lock while nobody else wants it: half of the times no longer.
    fn free_pass_ticks(&mut self) -> u64 {
        median((0..200).map(|_| self.pass()).map(|(from, to)| to - from).collect())
    }

    /// Waits for a word of the holder's.
    fn await_holder(&self, at: u64, turn: u64) {
        assert_eq!(await_turn(self.segment, at, turn), turn, "the holder has failed, and said why");
    }

    /// What a word takes to the holder and back.
    fn round_trip_ticks(&self) -> u64 {
        let trip = |ping| {
            let start = ticks();
            word(self.segment, PING).store(ping, Ordering::Release);
            self.await_holder(PONG, ping);
            ticks() - start
        };
        median((1..=PINGS).map(trip).collect())
    }

    fn trial(&mut self, line: usize, hold_ticks: u64, arrive_ticks: u64) -> Trial {
        self.turn += 1;
        word(self.segment, HOLD).store(hold_ticks, Ordering::Relaxed);
        word(self.segment, TURN).store(self.turn, Ordering::Release);
        self.await_holder(TAKEN, self.turn);
        let taken_at = word(self.segment, TAKEN_AT).load(Ordering::Relaxed);
        spin_until(taken_at + arrive_ticks);
        let (arrival, owned) = self.pass();
        self.await_holder(GIVEN, self.turn);
        let read = |at| word(self.segment, at).load(Ordering::Relaxed);
        Trial { arrival, owned, giving: read(GIVING_AT), given: read(GIVEN_AT), line, due: taken_at + hold_ticks }
    }

    fn waits(self) -> Vec<TickSpan> {
        word(self.segment, TURN).store(END, Ordering::Release);
        let nothing = Reading::default;
        self.context.into_trace(0, nothing(), nothing()).locks[0].waits.clone()
    }
}

/// The middle one; 0 of none.
fn median(mut all: Vec<u64>) -> u64 {
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or(0)
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
        .args(["--exact", &named("a_logged_wait_is_what_arithmetic_says", module_path!())])
        .args(["--nocapture", "--test-threads=1"])
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
    trials: Vec<(Trial, Option<TickSpan>)>,
    /// How far a log may be from arithmetic: what two clock reads and the taking of a free lock cost, before the wait and
    /// behind it, and a word's way there and back.
    tolerance: u64,
    us: f64,
}

fn play(kind: LockKind, (mine, holders): (u32, u32)) -> Played {
    let program = scripted(kind);
    let segment = segment(&program);
    let us = segment.tick_rate().ticks_per_ns * 1000.0;
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
fn assert_is_possible(kind: LockKind, trial: &Trial, wait: Option<TickSpan>) {
    let Some(TickSpan { start_ticks, ticks }) = wait else {
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
    fn off(&self, kind: LockKind, trial: &Trial, wait: TickSpan) -> u64 {
        match kind.spins() {
            true => wait.ticks.abs_diff(trial.given.saturating_sub(trial.arrival)),
            false => (wait.start_ticks - trial.arrival).max(behind(trial, wait)),
        }
    }
}

/// From the end of a wait to the clock read in the section, ticks: what the worker does to write the wait down, mostly.
fn behind(trial: &Trial, wait: TickSpan) -> u64 {
    trial.owned - wait.start_ticks - wait.ticks
}

/// What the punctual trials of one kind came to.
struct Judged {
    /// By line of the script: how many were exact, of how many.
    by_line: [(usize, usize); SCRIPT.len()],
    /// Half of the time passed no more ticks from the end of the wait to the clock read in the section.
    behind: u64,
}

impl Judged {
    /// Whether the log says what arithmetic says. Of one that spins, in most trials. One that slept comes back to caches that
    /// whoever ran meanwhile has filled, and takes long to write its wait down: on a busy machine in most trials, and by more
    /// than can be told beforehand. But it takes longer only; a wait that were logged wrongly would be so in every trial: so
    /// in each line of the script one has to be exact.
    fn is_right(&self, kind: LockKind) -> bool {
        let sum = |of: fn(&(usize, usize)) -> usize| self.by_line.iter().map(of).sum::<usize>();
        match kind.spins() {
            true => 2 * sum(|line| line.0) > sum(|line| line.1),
            false => self.by_line.iter().all(|(exact, _)| *exact > 0),
        }
    }
}

/// Plays until there are enough punctual trials; `None` where there never were. `writing_down` is what it takes to write a
/// wait down, ticks: nobody knows from outside where before that the wait of one that sleeps ended.
fn judge(kind: LockKind, cpus: (u32, u32), writing_down: u64) -> Option<Judged> {
    let (mut by_line, mut behinds) = ([(0, 0); SCRIPT.len()], Vec::new());
    for _ in 0..PERFORMANCES {
        let played = play(kind, cpus);
        let tolerance = played.tolerance + if kind.spins() { 0 } else { 2 * writing_down };
        for (trial, wait) in &played.trials {
            assert_is_possible(kind, trial, *wait);
            if played.is_punctual(kind, trial) {
                let (exact, all) = &mut by_line[trial.line];
                *all += 1;
                *exact += usize::from(wait.is_some_and(|wait| played.off(kind, trial, wait) <= tolerance));
                behinds.extend(wait.map(|wait| behind(trial, wait)));
            }
        }
        if by_line.iter().all(|(_, all)| *all >= LEAST_JUDGED) {
            println!("{kind:?}: exact to {tolerance} ticks, of punctual trials, by line of the script: {by_line:?}");
            return Some(Judged { by_line, behind: median(behinds) });
        }
    }
    testing::not_here(&format!("quiet for {kind:?}: its two were off their CPUs all the time"));
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
        return testing::skip("a holder and a waiter that run at once need two CPUs");
    };
    let is_exact = |kind: LockKind, writing_down| {
        // Again where the machine was busy: a wait that is logged wrongly is so however often it is asked.
        let told = (0..5).any(|_| judge(kind, cpus, writing_down).is_none_or(|judged| judged.is_right(kind)));
        assert!(told, "{kind:?}: logged waits are not what the script says, five times");
    };
    // Of one that spins, arithmetic knows where its wait ended; so it tells what comes behind.
    let Some(spinning) = judge(LockKind::Tas, cpus, 0) else { return };
    LockKind::ALL.into_iter().for_each(|kind| is_exact(kind, spinning.behind));
}
