//! Every kind of lock between real processes: this executable again, running the same test, told by its environment
//! which part it plays. Each maps the segment by its name, at an address of its own.

use super::super::*;
use super::{never, passes};
use crate::Segment;
use crate::testing::{program, spec};
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, raise};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What a child is told: `KIND WORKER PART SEGMENT`.
const PART: &str = "LAB_LOCK_TEST";
const SLOTS: u32 = 4;
const ENCODED: &[u8] = b"locks between processes";

/// No pass by anyone for so long is no slowness of a machine, but a lock that forgot somebody.
const STUCK: Duration = Duration::from_secs(60);

fn programmed(kind: LockKind) -> plan::Program {
    let mut program = program(4096);
    program.locks[0].kind = kind;
    program
}

/// The segment of one test, in the test or in a child, and what the test keeps in its area.
struct Stage {
    segment: Segment,
    kind: LockKind,
}

/// Where the test's own words lie in the area, apart from the lock at 64: bytes.
const ARRIVED: usize = 256;
const FIRST: usize = 512;
const SECOND: usize = 1024;
const TALLIES: usize = 2048;

impl Stage {
    fn create(kind: LockKind) -> Stage {
        let program = programmed(kind);
        let segment = Segment::create(&crate::SegmentSpec { slots: SLOTS, ..spec(&program, ENCODED) }).unwrap();
        Stage { segment, kind }
    }

    fn attach(name: &str, kind: LockKind) -> Stage {
        Stage { segment: Segment::attach(name, &programmed(kind), ENCODED, SLOTS).unwrap(), kind }
    }

    fn lock(&self, worker: u32) -> SharedLock<'_> {
        // SAFETY: made by `Segment::create`; mapped while the stage lives; each process is one worker, and makes one.
        unsafe { SharedLock::new(self.segment.lock_place(0), self.kind, worker) }
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset + 8 <= 4096 && offset.is_multiple_of(8));
        // SAFETY: in the area and aligned; every process touches it as an atomic.
        unsafe { &*self.segment.area().add(offset).cast() }
    }

    fn tally(&self, worker: u32, column: usize) -> &AtomicU64 {
        self.word(TALLIES + worker as usize * 64 + column * 8)
    }

    fn add(&self, worker: u32, column: usize, value: u64) {
        self.tally(worker, column).fetch_add(value, Ordering::Relaxed);
    }

    fn sum(&self, column: usize) -> u64 {
        (0..SLOTS).map(|worker| self.tally(worker, column).load(Ordering::Relaxed)).sum()
    }

    /// Waits until so many processes are here: one that is alone meets nobody.
    fn meet(&self, processes: u32) {
        self.word(ARRIVED).fetch_add(1, Ordering::AcqRel);
        while self.word(ARRIVED).load(Ordering::Acquire) < processes.into() {
            std::thread::yield_now();
        }
    }
}

/// Adds one, so that two who do it at once lose one.
fn bump(word: &AtomicU64) {
    let value = word.load(Ordering::Relaxed);
    for _ in 0..20 {
        std::hint::spin_loop();
    }
    word.store(value + 1, Ordering::Relaxed);
}

/// In a child: its part. In the test itself: `None`.
struct Part {
    kind: LockKind,
    worker: u32,
    what: String,
    segment: String,
}

fn part() -> Option<Part> {
    let told = std::env::var(PART).ok()?;
    set_pdeathsig(Signal::SIGKILL).unwrap();
    let mut words = told.split(' ').map(str::to_owned);
    let mut next = || words.next().unwrap();
    let name = next();
    let kind = LockKind::ALL.into_iter().find(|kind| kind.name() == name).unwrap();
    Some(Part { kind, worker: next().parse().unwrap(), what: next(), segment: next() })
}

/// Children, which end with the test.
struct Children(Vec<Child>);

impl Children {
    /// Starts `test` again, once for each of `parts`, as the workers from 0 on.
    fn start(test: &str, stage: &Stage, parts: &[&str]) -> Children {
        let start = |(worker, part): (u32, &&str)| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", &format!("lock::tests::processes::{test}"), "--nocapture", "--test-threads=1"])
                .env(PART, format!("{} {worker} {part} {}", stage.kind.name(), stage.segment.name()))
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        };
        Children((0..).zip(parts).map(start).collect())
    }

    /// Waits until all have ended, as long as passes are made.
    fn ends(&mut self, stage: &Stage) -> Vec<ExitStatus> {
        let (mut passes, mut since) = (0, Instant::now());
        loop {
            let ends: Option<Vec<_>> = self.0.iter_mut().map(|child| child.try_wait().unwrap()).collect();
            if let Some(ends) = ends {
                return ends;
            }
            let now = stage.sum(0);
            if now != passes {
                (passes, since) = (now, Instant::now());
            }
            assert!(since.elapsed() < STUCK, "{:?}: nobody got on after {passes} passes", stage.kind);
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn succeed(&mut self, stage: &Stage) {
        assert!(self.ends(stage).iter().all(ExitStatus::success), "{:?}: a child failed; see above", stage.kind);
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // One that has ended cannot be killed, which is as well.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A worker's part in `exclusion`: one that waits as the lab does, one that acquires plainly.
fn exclude(part: &Part, processes: u32) {
    let stage = Stage::attach(&part.segment, part.kind);
    let mut lock = stage.lock(part.worker);
    let mut effort = Effort::default();
    stage.meet(processes);
    for _ in 0..passes(part.kind, processes) {
        let acquired = if part.what == "plain" {
            lock.acquire_plain(false, &mut effort, &never).unwrap()
        } else {
            match lock.try_acquire(false).unwrap() {
                Attempt::Acquired(acquired) => acquired,
                Attempt::Contended => lock.acquire(false, &mut effort, &never).unwrap(),
            }
        };
        bump(stage.word(FIRST));
        // Relaxed: it is the lock that orders the owners.
        let (before, me) = (stage.word(SECOND).load(Ordering::Relaxed), u64::from(part.worker) + 1);
        stage.word(SECOND).store(me, Ordering::Relaxed);
        assert_eq!(lock.release(false, &never), Ok(Released::Done));
        assert_eq!(acquired.handoff, before != me && before != 0, "{:?}", part.kind);
        stage.add(part.worker, 0, 1);
        stage.add(part.worker, 1, acquired.handoff.into());
    }
}

fn exclusion(test: &str, parts: &[&str]) {
    let processes = parts.len() as u32;
    if let Some(part) = part() {
        return exclude(&part, processes);
    }
    for kind in LockKind::ALL {
        let stage = Stage::create(kind);
        let mut children = Children::start(test, &stage, parts);
        children.succeed(&stage);
        let total = u64::from(processes) * passes(kind, processes);
        assert_eq!(stage.word(FIRST).load(Ordering::Relaxed), total, "{kind:?}");
        assert_eq!(stage.sum(0), total, "{kind:?}");
        assert!(stage.sum(1) >= u64::from(processes) - 1, "{kind:?}: each owned it");
    }
}

#[test]
fn two_processes_lose_no_update_under_any_kind() {
    exclusion("two_processes_lose_no_update_under_any_kind", &["tries", "plain"]);
}

#[test]
fn four_processes_lose_no_update_under_any_kind() {
    exclusion("four_processes_lose_no_update_under_any_kind", &["tries", "plain", "tries", "plain"]);
}

#[test]
fn readers_see_what_belongs_together_under_every_kind() {
    const NAME: &str = "readers_see_what_belongs_together_under_every_kind";
    if let Some(part) = part() {
        return read_or_write(&part);
    }
    for kind in [LockKind::PthreadRwlock, LockKind::Seqlock, LockKind::Futex] {
        let stage = Stage::create(kind);
        let mut children = Children::start(NAME, &stage, &["writes", "reads", "writes", "reads"]);
        children.succeed(&stage);
        let words = [FIRST, SECOND].map(|offset| stage.word(offset).load(Ordering::Relaxed));
        assert_eq!(words, [2 * PAIRS; 2], "{kind:?}");
        assert!(stage.sum(1) == 0 || kind == LockKind::Seqlock, "{kind:?}: only its readers read again");
    }
}

/// Writings of each writer, and undisturbed readings of each reader.
const PAIRS: u64 = 10_000;

fn read_or_write(part: &Part) {
    let stage = Stage::attach(&part.segment, part.kind);
    let mut lock = stage.lock(part.worker);
    let mut effort = Effort::default();
    stage.meet(4);
    let reads = part.what == "reads";
    let mut done = 0;
    while done < PAIRS {
        lock.acquire_plain(reads, &mut effort, &never).unwrap();
        let seen = [FIRST, SECOND].map(|offset| {
            let word = stage.word(offset);
            if reads {
                // Relaxed: it is the lock that keeps them together.
                word.load(Ordering::Relaxed)
            } else {
                bump(word);
                0
            }
        });
        match lock.release(reads, &never).unwrap() {
            Released::Done => {
                assert_eq!(seen[0], seen[1], "{:?}: torn", part.kind);
                done += 1;
                stage.add(part.worker, 0, 1);
            }
            Released::ReadAgain => stage.add(part.worker, 1, 1),
        }
    }
}

#[test]
fn an_owner_killed_is_taken_over_from_or_waited_for_no_longer_than_told() {
    const NAME: &str = "an_owner_killed_is_taken_over_from_or_waited_for_no_longer_than_told";
    if let Some(part) = part() {
        let stage = Stage::attach(&part.segment, part.kind);
        let mut lock = stage.lock(part.worker);
        assert!(matches!(lock.try_acquire(false), Ok(Attempt::Acquired(_))));
        raise(Signal::SIGKILL).unwrap();
    }
    for kind in LockKind::ALL {
        let stage = Stage::create(kind);
        let ends = Children::start(NAME, &stage, &["dies"]).ends(&stage);
        assert_eq!(ends[0].signal(), Some(Signal::SIGKILL as i32), "{kind:?}");
        let mut lock = stage.lock(1);
        let mut effort = Effort::default();
        if kind.is_robust() {
            let acquired = lock.acquire(false, &mut effort, &never).unwrap();
            assert!(acquired.owner_died && acquired.handoff, "{kind:?}: {acquired:?}");
            assert_eq!(lock.release(false, &never), Ok(Released::Done));
            assert!(matches!(lock.try_acquire(false), Ok(Attempt::Acquired(next)) if !next.owner_died));
            continue;
        }
        if kind.times_out() {
            let outcome = lock.acquire_until(false, Duration::from_millis(5), &mut effort, &never);
            assert_eq!(outcome, Ok(None), "{kind:?}");
        }
        if super::waits_by_itself(kind) {
            assert_eq!(lock.acquire(false, &mut effort, &|| true), Err(LockError::Abandoned), "{kind:?}");
        } else {
            assert_eq!(lock.try_acquire(false), Ok(Attempt::Contended), "{kind:?}");
        }
    }
}
