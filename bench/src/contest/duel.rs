//! Two pinned processes run slices of both sides in lockstep; the parent forks them and collects.
#![allow(unsafe_code)]
// SAFETY of this module: the parent has one thread, so a child of `fork` may do anything that it could have done.

use crate::contest::arena::{Arena, Tally};
use crate::contest::collect::{KeptQuad, collect};
use crate::contest::evictions::Rule;
use crate::contest::locks::Ground;
use crate::contest::run_queue::RunQueue;
use crate::contest::runner::Runner;
use crate::contest::steps::{self, Step};
use crate::contest::{Contest, Setting, Sides};
use crate::schedule::{Quad, batch};
use counters::{Orders, Selection, orders_for};
use host::Root;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::{ForkResult, Pid, fork};
use plan::{LockKind, TickRate};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

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
    /// A lock could not be made in C.
    #[error("making the lock `{name}` in C failed: its call returned {code}; does this C library know the kind?")]
    MakingInC {
        /// The lock.
        name: &'static str,
        /// What the call returned: an errno for pthread locks.
        code: i32,
    },
    /// The segment with the lab's locks could not be made.
    #[error(transparent)]
    Segment(#[from] shm_layout::CreateError),
    /// A lock let both in at once.
    #[error(
        "`{name}` of {side} lost updates: its sections bumped a word to {found} in {made} passes, so no figure of it \
         means anything; run again, and report it if it stays"
    )]
    Lost {
        /// The lock.
        name: &'static str,
        /// Whose it is.
        side: &'static str,
        /// What the word says.
        found: u64,
        /// What it should say.
        made: u64,
    },
    /// A lock that one process alone takes was found taken.
    #[error(
        "`{name}` was each process's own, and {contended} first attempts found it taken: its figures are none of a \
         free lock; run again, and report it if it stays"
    )]
    NotFree {
        /// The lock.
        name: &'static str,
        /// How often.
        contended: u64,
    },
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

/// What is fought over.
#[derive(Copy, Clone)]
pub(crate) enum Subject {
    /// One step of a loop.
    Step(&'static Step),
    /// One kind of lock.
    Lock(LockKind),
}

impl Subject {
    /// As results spell it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Subject::Step(step) => step.name,
            Subject::Lock(kind) => kind.name(),
        }
    }
}

/// One contest over one subject in one setting.
#[derive(Copy, Clone)]
pub(crate) struct Duel {
    pub(crate) contest: Contest,
    pub(crate) setting: Setting,
    pub(crate) subject: Subject,
    pub(crate) cpus: [usize; 2],
    /// Time after which it is left as it stands.
    pub(crate) budget: Duration,
}

impl Duel {
    /// Whether a process may sleep until the other has released.
    fn sleeps(&self) -> bool {
        matches!(self.subject, Subject::Lock(kind) if self.setting.shares_lock() && !kind.spins())
    }

    /// What tells that a process was evicted.
    fn rule(&self) -> Rule {
        if self.sleeps() { Rule::UnlikeFellows } else { Rule::AnyGap }
    }

    /// Length of a slice. Short, so that neighbours see the same machine and few are hit by an eviction; long beside
    /// the 20 µs between two clock reads, and beside the 5 to 50 µs of a sleep and a waking.
    fn slice_ns(&self) -> u64 {
        if self.sleeps() { 2_000_000 } else { 500_000 }
    }

    /// Quads of each comparison in one batch, which has fresh processes: 0.5 to 1 s on a quiet machine, and no more
    /// than twice what brings the pairs that are wanted.
    fn batch_quads(&self, wanted: u32) -> usize {
        (if self.sleeps() { 60 } else { 120 }).min(wanted as usize)
    }
}

/// What a duel brought.
#[derive(Default)]
pub(crate) struct Fought {
    pub(crate) quads: Vec<KeptQuad>,
    /// In a contest of counting, how many of a worker's counters counted; else 0.
    pub(crate) counted: u64,
    /// Acquisitions that the lab recorded.
    pub(crate) acquisitions: u64,
    /// Those of them whose first attempt failed.
    pub(crate) contended: u64,
}

impl Fought {
    /// Adds a batch.
    fn take(&mut self, quads: Vec<KeptQuad>, arena: &Arena) {
        let tallies = &arena.control().tallies;
        let sum = |of: fn(&Tally) -> &AtomicU64| tallies.iter().map(|t| of(t).load(Ordering::Relaxed)).sum::<u64>();
        self.quads.extend(quads);
        self.counted = tallies[0].counted.load(Ordering::Relaxed);
        self.acquisitions += sum(|t| &t.acquisitions);
        self.contended += sum(|t| &t.contended);
    }

    /// Share of the lab's acquisitions that had to wait; `None` where it made none.
    pub(crate) fn contended_share(&self) -> Option<f64> {
        (self.acquisitions > 0).then(|| self.contended as f64 / self.acquisitions as f64)
    }
}

/// Runs batches of one subject, which is to bring `wanted` pairs of each comparison, until they are `enough` or its
/// budget is spent.
///
/// # Errors
/// [`DuelError`]: nothing was measured, or what was measured means nothing.
pub(crate) fn measure(
    duel: &Duel,
    wanted: u32,
    seed: u64,
    enough: impl Fn(&[KeptQuad]) -> bool,
) -> Result<Fought, DuelError> {
    let cpus = duel.cpus.map(|cpu| plan::CpuId(cpu as u32));
    let orders = Selection::choose(&Root::system(), &cpus, &[]).expect("no event of a user's to refuse").orders();
    let rate = shm_layout::calibrate(Duration::from_millis(20));
    let mut fought = Fought::default();
    let start = Instant::now();
    for number in 0.. {
        let quads = batch(duel.batch_quads(wanted), seed.wrapping_mul(1_000).wrapping_add(number));
        let arena = Arena::new(quads.len()).map_err(|error| DuelError::System("mmap", error))?;
        run_batch(&Batch { duel, orders: &orders, quads: &quads, arena: &arena, rate })?;
        fought.take(collect(duel.setting, duel.rule(), &quads, &arena, rate, number), &arena);
        if enough(&fought.quads) || start.elapsed() > duel.budget {
            break;
        }
    }
    Ok(fought)
}

/// What the two processes of a batch are given.
struct Batch<'a> {
    duel: &'a Duel,
    orders: &'a [Orders],
    quads: &'a [Quad],
    arena: &'a Arena,
    rate: TickRate,
}

/// Forks the two processes and waits for both; the first failure ends the other.
fn run_batch(batch: &Batch<'_>) -> Result<(), DuelError> {
    let Duel { setting, subject, cpus, .. } = *batch.duel;
    let ground = match subject {
        Subject::Step(_) => None,
        Subject::Lock(kind) => Some(Ground::prepare(kind, setting, batch.arena, cpus, batch.rate)?),
    };
    let parent = Pid::this();
    let mut children = Vec::new();
    for process in 0..cpus.len() {
        // SAFETY: this process has one thread.
        match unsafe { fork() }.map_err(system("fork"))? {
            ForkResult::Parent { child } => children.push(child),
            ForkResult::Child => {
                let outcome = process_main(batch, ground.as_ref(), process, parent);
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
    outcome.and_then(|()| ground.map_or(Ok(()), |ground| ground.check()))
}

/// The life of one measuring process.
fn process_main(batch: &Batch<'_>, ground: Option<&Ground<'_>>, process: usize, parent: Pid) -> Result<(), String> {
    nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).map_err(|errno| format!("prctl: {errno}"))?;
    if nix::unistd::getppid() != parent {
        return Err("the parent is gone".to_owned());
    }
    let cpu = batch.duel.cpus[process];
    let mut set = CpuSet::new();
    set.set(cpu).map_err(|errno| format!("CPU {cpu}: {errno}"))?;
    sched_setaffinity(Pid::from_raw(0), &set).map_err(|errno| format!("sched_setaffinity: {errno}"))?;
    match (batch.duel.subject, ground) {
        (Subject::Step(step), _) => fight_over_step(batch, step, process, cpu),
        (Subject::Lock(_), Some(ground)) => ground.enter(process, |sides| run(batch, process, sides)),
        (Subject::Lock(_), None) => Err("no locks were made".to_owned()),
    }
}

fn fight_over_step(batch: &Batch<'_>, step: &Step, process: usize, cpu: usize) -> Result<(), String> {
    let Duel { contest, setting, .. } = *batch.duel;
    let word = batch.arena.word(steps::word_offset(setting, process));
    let orders = orders_for(batch.orders, plan::CpuId(cpu as u32));
    // SAFETY: the arena outlives the process; the other one never touches this word.
    let contestants = unsafe { steps::Contestants::new(contest, step, word, orders) };
    let mut contestants = contestants.map_err(|error| error.to_string())?;
    run(batch, process, &mut contestants)?;
    batch.arena.control().tallies[process].counted.store(contestants.counted(), Ordering::Relaxed);
    Ok(())
}

fn run(batch: &Batch<'_>, process: usize, sides: &mut dyn Sides) -> Result<(), String> {
    let &Batch { duel, arena, rate, .. } = batch;
    let run_queue = RunQueue::open(duel.rule() == Rule::UnlikeFellows);
    let runner = Runner { arena, rate, process, slice_ns: duel.slice_ns(), sides, run_queue, met: 0 };
    runner.whole(batch.quads)
}
