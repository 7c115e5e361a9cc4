//! Two pinned processes run slices of both sides in lockstep, each on its own word; the parent collects.
#![allow(unsafe_code)]
// SAFETY of this module: the parent has one thread, so a child of `fork` may do anything that it could have done.

use crate::arena::Arena;
use crate::schedule::{Comparison, Quad, batch};
use crate::sides::{Contest, Contestants, Placement, Side, Step};
use counters::{Orders, Selection, orders_for};
use host::Root;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::{ForkResult, Pid, fork};
use plan::TickRate;
use shm_layout::ticks;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Length of a slice. Short, so that neighbours see the same machine and few are hit by an eviction; long beside the
/// 20 µs between two clock reads.
const SLICE_NS: u64 = 500_000;
/// Time between the last arrival and a slice's beginning: both see the number of the slice by then.
const LEAD_NS: u64 = 3_000;
/// Aimed distance of two clock reads.
const CHUNK_NS: f64 = 20_000.0;
/// Two reads further apart than this and three times their usual distance are an eviction (the lab's rule).
const EVICTION_NS: u64 = 50_000;
/// Quads of each comparison in one batch, which has fresh processes: 0.5 s on a quiet machine.
const BATCH_QUADS: usize = 120;
/// Time after which a step is left as it stands, however few pairs were kept.
const BUDGET: Duration = Duration::from_secs(15);
/// Round trips of a transfer probe; the first third only warms up.
const RALLY: u64 = 150;

/// Four neighbouring slices, as kept: every figure is nanoseconds a pass, the mean of both processes.
#[derive(Copy, Clone, Debug)]
pub(crate) struct KeptQuad {
    /// What it compares.
    pub(crate) comparison: Comparison,
    /// Its batch: quads of one batch are neighbours in time.
    pub(crate) batch: u64,
    /// Contestant and reference in the first and in the second pair; `None` where an eviction fell in the pair.
    pub(crate) pairs: [Option<(f64, f64)>; 2],
    /// One-way transfer time before and after it, nanoseconds.
    pub(crate) transfer_ns: [f64; 2],
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DuelError {
    /// Two processes need two CPUs.
    #[error("two processes are to run at once, and this one may use {0} CPU: widen its affinity (taskset, cpuset)")]
    TooFewCpus(usize),
    /// A system call failed.
    #[error("{0}: {1}")]
    System(&'static str, #[source] std::io::Error),
    /// A process ended without its records.
    #[error("a measuring process ended early ({0}): its message stands above")]
    Ended(String),
}

fn system(call: &'static str) -> impl FnOnce(nix::Error) -> DuelError {
    move |errno| DuelError::System(call, errno.into())
}

/// The first two CPUs that this process may use.
pub(crate) fn two_cpus() -> Result<[usize; 2], DuelError> {
    let set = sched_getaffinity(Pid::from_raw(0)).map_err(system("sched_getaffinity"))?;
    let mut usable = (0..CpuSet::count()).filter(|&cpu| set.is_set(cpu) == Ok(true));
    match (usable.next(), usable.next()) {
        (Some(first), Some(second)) => Ok([first, second]),
        (first, _) => Err(DuelError::TooFewCpus(first.into_iter().count())),
    }
}

/// One contest over one step.
pub(crate) struct Duel<'a> {
    pub(crate) contest: Contest,
    pub(crate) step: &'a Step,
    pub(crate) placement: Placement,
    pub(crate) cpus: [usize; 2],
}

/// What a duel brought.
pub(crate) struct Fought {
    pub(crate) quads: Vec<KeptQuad>,
    /// In a contest of counting, how many of a worker's counters counted; else 0.
    pub(crate) counted: u64,
}

/// Runs batches of one step until they are `enough`, or [`BUDGET`] is spent.
pub(crate) fn measure(duel: &Duel, seed: u64, enough: impl Fn(&[KeptQuad]) -> bool) -> Result<Fought, DuelError> {
    let cpus = duel.cpus.map(|cpu| plan::CpuId(cpu as u32));
    let orders = Selection::choose(&Root::system(), &cpus, &[]).expect("no event of a user's to refuse").orders();
    let rate = shm_layout::calibrate(Duration::from_millis(20));
    let mut fought = Fought { quads: Vec::new(), counted: 0 };
    let start = Instant::now();
    for number in 0.. {
        let quads = batch(BATCH_QUADS, seed.wrapping_mul(1_000).wrapping_add(number));
        let arena = Arena::new(quads.len()).map_err(|error| DuelError::System("mmap", error))?;
        run_batch(duel, &orders, &quads, &arena, rate)?;
        fought.counted = arena.control().counted.load(Ordering::Acquire);
        fought.quads.extend(collect(&quads, &arena, rate, number));
        if enough(&fought.quads) || start.elapsed() > BUDGET {
            break;
        }
    }
    Ok(fought)
}

/// Forks the two processes and waits for both; the first failure ends the other.
fn run_batch(duel: &Duel, orders: &[Orders], quads: &[Quad], arena: &Arena, rate: TickRate) -> Result<(), DuelError> {
    let parent = Pid::this();
    let mut children = Vec::new();
    for process in 0..duel.cpus.len() {
        // SAFETY: this process has one thread.
        match unsafe { fork() }.map_err(system("fork"))? {
            ForkResult::Parent { child } => children.push(child),
            ForkResult::Child => {
                let outcome = process_main(duel, orders, process, quads, arena, rate, parent);
                if let Err(message) = &outcome {
                    eprintln!("bench: process {process}: {message}");
                }
                std::process::exit(i32::from(outcome.is_err()));
            }
        }
    }
    let mut outcome = Ok(());
    for _ in 0..children.len() {
        let status = waitid(Id::All, WaitPidFlag::WEXITED).map_err(system("waitid"))?;
        if !matches!(status, WaitStatus::Exited(_, 0)) && outcome.is_ok() {
            outcome = Err(DuelError::Ended(format!("{status:?}")));
            for &child in children.iter().filter(|&&child| Some(child) != status.pid()) {
                // A child that has ended already is a zombie until it is waited for: its id is not used again.
                let _ = kill(child, Signal::SIGKILL);
            }
        }
    }
    outcome
}

/// The life of one measuring process.
fn process_main(
    duel: &Duel,
    orders: &[Orders],
    process: usize,
    quads: &[Quad],
    arena: &Arena,
    rate: TickRate,
    parent: Pid,
) -> Result<(), String> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(|errno| format!("prctl: {errno}"))?;
    if nix::unistd::getppid() != parent {
        return Err("the parent is gone".to_owned());
    }
    let cpu = duel.cpus[process];
    let mut set = CpuSet::new();
    set.set(cpu).map_err(|errno| format!("CPU {cpu}: {errno}"))?;
    sched_setaffinity(Pid::from_raw(0), &set).map_err(|errno| format!("sched_setaffinity: {errno}"))?;
    let word = arena.word(duel.placement.offset(process));
    let orders = orders_for(orders, plan::CpuId(cpu as u32));
    // SAFETY: the arena outlives the process; the other one never touches this word.
    let contestants = unsafe { Contestants::new(duel.contest, duel.step, word, orders) };
    let contestants = contestants.map_err(|error| error.to_string())?;
    Runner { arena, rate, process, contestants, met: 0 }.whole(quads);
    Ok(())
}

struct Runner<'a> {
    arena: &'a Arena,
    rate: TickRate,
    process: usize,
    contestants: Contestants,
    /// Slices and rallies that both processes have begun together.
    met: u64,
}

/// What one slice was.
struct Slice {
    passes: u64,
    ticks: u64,
    longest: u64,
    chunks: u64,
}

impl Runner<'_> {
    fn whole(mut self, quads: &[Quad]) {
        self.choose_chunk();
        for (number, quad) in quads.iter().enumerate() {
            let transfer = self.rally();
            if self.process == 0 {
                self.arena.transfer(number).store((transfer * 1e3) as u64, Ordering::Relaxed);
            }
            for (place, side) in quad.sides().into_iter().enumerate() {
                let slice = self.slice(side);
                let record = self.arena.record(self.process, number * 4 + place);
                record.set(slice.passes, slice.ticks, slice.longest, slice.chunks);
            }
        }
        if let Some(counted) = self.contestants.counted().filter(|_| self.process == 0) {
            self.arena.control().counted.store(counted, Ordering::Release);
        }
    }

    /// Both processes warm up on both sides; then process 0 sets the passes between two clock reads for all.
    fn choose_chunk(&mut self) {
        let chunk = &self.arena.control().chunk;
        if self.process == 0 {
            chunk.store(1_024, Ordering::Release);
        }
        for _ in 0..5 {
            self.slice(Side::Contestant);
            let slice = self.slice(Side::Reference);
            let pass_ns = slice.ticks as f64 / self.rate.ticks_per_ns / slice.passes.max(1) as f64;
            if self.process == 0 && slice.passes > 0 {
                let passes = (CHUNK_NS / pass_ns) as u64 / 8 * 8;
                chunk.store(passes.clamp(8, 1 << 20), Ordering::Release);
            }
        }
    }

    /// Waits until both are here; returns the common beginning in ticks.
    fn meet(&mut self) -> u64 {
        self.met += 1;
        let control = self.arena.control();
        // AcqRel: the last to arrive sees what the other wrote before; its `slice` store pairs with the load below.
        if control.arrived.fetch_add(1, Ordering::AcqRel) + 1 == 2 * self.met {
            control.begin.store(ticks() + self.rate.ticks(LEAD_NS), Ordering::Relaxed);
            control.slice.store(self.met, Ordering::Release);
        }
        while control.slice.load(Ordering::Acquire) < self.met {
            std::hint::spin_loop();
        }
        control.begin.load(Ordering::Relaxed)
    }

    /// One slice: both processes run the same side from `begin` on, and only chunks that end before the common end
    /// count, so that whatever counts was made while both were running.
    fn slice(&mut self, side: Side) -> Slice {
        self.contestants.begin(side);
        let slice = self.passes(side);
        self.contestants.end(side);
        slice
    }

    fn passes(&mut self, side: Side) -> Slice {
        let begin = self.meet();
        let end = begin + self.rate.ticks(SLICE_NS);
        let chunk = self.arena.control().chunk.load(Ordering::Acquire);
        while ticks() < begin {}
        self.contestants.run(side, chunk);
        let first = ticks();
        let mut slice = Slice { passes: 0, ticks: 0, longest: first - begin, chunks: 0 };
        let mut last = first;
        loop {
            self.contestants.run(side, chunk);
            let now = ticks();
            slice.longest = slice.longest.max(now - last);
            if now >= end {
                return slice;
            }
            last = now;
            slice.passes += chunk;
            slice.chunks += 1;
            slice.ticks = now - first;
        }
    }

    /// The one-way time of a line between the two processes, ticks; meaningful in process 0.
    fn rally(&mut self) -> f64 {
        let base = (self.met + 1) << 32;
        self.meet();
        let ball: &AtomicU64 = self.arena.ball();
        let mut start = 0;
        for round in 0..RALLY {
            if round == RALLY / 3 {
                start = ticks();
            }
            // Release pairs with the Acquire in `wait_for`, as a lock's handover would.
            let thrown = base + 2 * round + 1;
            if self.process == 0 {
                ball.store(thrown, Ordering::Release);
                wait_for(ball, thrown + 1);
            } else {
                wait_for(ball, thrown);
                ball.store(thrown + 1, Ordering::Release);
            }
        }
        (ticks() - start) as f64 / (RALLY - RALLY / 3) as f64 / 2.0
    }
}

fn wait_for(ball: &AtomicU64, value: u64) {
    while ball.load(Ordering::Acquire) < value {
        std::hint::spin_loop();
    }
}

/// Reads the records of a batch, leaving out pairs in which one process was evicted.
fn collect(quads: &[Quad], arena: &Arena, rate: TickRate, batch: u64) -> Vec<KeptQuad> {
    let transfer_ns = |quad: usize| {
        let nearest = arena.transfer(quad.min(quads.len() - 1)).load(Ordering::Relaxed);
        nearest as f64 / 1e3 / rate.ticks_per_ns
    };
    let ns_per_pass = |slice| {
        let both = [0, 1].map(|process| slice_ns_per_pass(arena, process, slice, rate));
        both[0].zip(both[1]).map(|(first, second)| (first + second) / 2.0)
    };
    let quad = |(number, quad): (usize, &Quad)| {
        let figures: [Option<f64>; 4] = std::array::from_fn(|place| ns_per_pass(number * 4 + place));
        let pair = |first: usize| {
            let (one, other) = (figures[first]?, figures[first + 1]?);
            Some(if quad.order()[first] { (one, other) } else { (other, one) })
        };
        KeptQuad {
            comparison: quad.comparison,
            batch,
            pairs: [pair(0), pair(2)],
            transfer_ns: [transfer_ns(number), transfer_ns(number + 1)],
        }
    };
    quads.iter().enumerate().map(quad).collect()
}

/// `None` where the process was evicted in the slice, or made no pass.
fn slice_ns_per_pass(arena: &Arena, process: usize, slice: usize, rate: TickRate) -> Option<f64> {
    let record = arena.record(process, slice);
    let [passes, ticks, longest, chunks] =
        [&record.passes, &record.ticks, &record.longest, &record.chunks].map(|word| word.load(Ordering::Relaxed));
    let usual = ticks.checked_div(chunks)?;
    let evicted = longest > rate.ticks(EVICTION_NS) + 3 * usual;
    (!evicted && passes > 0).then(|| ticks as f64 / rate.ticks_per_ns / passes as f64)
}
