//! Compiled loops in processes: this executable again, running the same test, told by its environment which worker it
//! is. Each maps the segment by its name, at an address of its own. Sections hold an unprotected read-modify-write, and
//! the totals are exact.

use super::*;
use crate::tests::named;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use shm_layout::lock::Released;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// What a child is told: `KIND WORKER SEGMENT`.
const PART: &str = "LAB_LOOP_TEST";

/// No pass by anyone for so long is no slowness of a machine, but a lock that forgot somebody.
const STUCK: Duration = Duration::from_secs(60);

/// Where a worker counts the sections that it made: a word on a line of its own.
fn tally(worker: usize) -> u64 {
    1024 + worker as u64 * 128
}

/// Two words that writers keep equal.
const FIRST: u64 = 512;
const SECOND: u64 = 640;

/// Where workers say that they have come.
const ARRIVED: u64 = 768;

/// Waits until all are here: one that is alone meets nobody.
fn meet(segment: &Segment, workers: usize) {
    // SAFETY: in the area of 4096 bytes, aligned, and touched as an atomic by all.
    let arrived = unsafe { &*segment.area().add(ARRIVED as usize).cast::<AtomicU64>() };
    arrived.fetch_add(1, Ordering::AcqRel);
    while arrived.load(Ordering::Acquire) < workers as u64 {
        std::thread::yield_now();
    }
}

/// What a test plays.
struct Piece {
    test: &'static str,
    program: fn(LockKind) -> Program,
    passes: fn(LockKind) -> u64,
}

/// Passes of each of `workers`. First come, first served among more workers than CPUs (there may be one) waits at each
/// handoff until the scheduler brings the next one on, some milliseconds.
fn passes(kind: LockKind, workers: u32) -> u64 {
    match kind {
        LockKind::Ticket | LockKind::Mcs | LockKind::Clh if workers > 2 => 40,
        LockKind::Ticket | LockKind::Mcs | LockKind::Clh => 400,
        _ => 20_000,
    }
}

impl Piece {
    /// In a child, plays its worker's part and says so. In the test itself: plays the piece for these kinds, and lets
    /// `check` look at each one's segment.
    fn play(&self, kinds: impl IntoIterator<Item = LockKind>, check: impl Fn(LockKind, &Program, &Segment)) {
        if let Ok(told) = std::env::var(PART) {
            return self.take_part(&told);
        }
        for kind in kinds {
            let program = (self.program)(kind);
            let segment = segment(&program);
            self.await_children(&program, &segment, self.start_children(kind, &program, &segment));
            check(kind, &program, &segment);
        }
    }

    fn take_part(&self, told: &str) {
        set_pdeathsig(Signal::SIGKILL).unwrap();
        let mut words = told.split(' ');
        let mut next = || words.next().unwrap();
        let name = next();
        let kind = LockKind::ALL.into_iter().find(|kind| kind.name() == name).unwrap();
        let worker: usize = next().parse().unwrap();
        let program = (self.program)(kind);
        let segment = Segment::attach(next(), &program, ENCODED, program.workers.len() as u32 + 1).unwrap();
        let me = &program.workers[worker];
        meet(&segment, program.workers.len());
        if me.ops.is_empty() {
            return read_pairs(kind, worker, &segment, &program);
        }
        let mut compiled = super::compile(&segment, &program, me);
        let mut context = Context::new(&segment, &program, me, &[], Default::default());
        // Holds are sampled, and all is counted, as in a window.
        context.locks.open(program.timed_locks);
        let left = (self.passes)(kind);
        for batch in (0..left).step_by(100) {
            let mut made = 0;
            let wanted = (left - batch).min(100);
            while made < wanted {
                let handle = context.handle();
                // SAFETY: as in `measure::passes`.
                let progress = unsafe { compiled.run(segment.area(), handle, wanted - made) };
                assert_eq!(progress.gave_up_in, None);
                made += progress.passes;
            }
        }
        assert_eq!(context.failure, None);
        let attempts = left * me.ops.iter().filter(|op| matches!(op.kind, OpKind::Lock { .. })).count() as u64;
        let seen = context.locks.into_traces(&(0..1)).remove(0);
        assert_eq!(seen.acquisitions + seen.timeouts, attempts, "{kind:?}");
        assert!(seen.contended <= seen.acquisitions && seen.handoffs <= seen.acquisitions, "{kind:?}");
        let sampled = if program.timed_locks { seen.acquisitions / HOLD_SAMPLING } else { 0 };
        let holds = seen.holds.len() as u64;
        assert!(seen.longest_run <= seen.acquisitions && holds.abs_diff(sampled) <= 2, "{kind:?}: {holds} holds");
    }

    fn start_children(&self, kind: LockKind, program: &Program, segment: &Segment) -> Vec<Child> {
        let start = |worker: usize| {
            Command::new(std::env::current_exe().unwrap())
                .args(["--exact", &named(self.test, module_path!()), "--nocapture", "--test-threads=1"])
                .env(PART, format!("{} {worker} {}", kind.name(), segment.name()))
                .stdout(Stdio::null())
                .spawn()
                .unwrap()
        };
        (0..program.workers.len()).map(start).collect()
    }

    /// Waits until all have ended well, as long as sections are made.
    fn await_children(&self, program: &Program, segment: &Segment, mut children: Vec<Child>) {
        let (mut made, mut since) = (0, Instant::now());
        let kind = program.locks[0].kind;
        while let Some(child) = children.last_mut() {
            match child.try_wait().unwrap() {
                Some(status) => {
                    assert!(status.success(), "{kind:?}: a child failed; see above");
                    children.pop();
                }
                None if since.elapsed() > STUCK => {
                    children.iter_mut().for_each(|child| child.kill().unwrap());
                    panic!("{kind:?}: nobody got on after {made} sections");
                }
                None => std::thread::sleep(Duration::from_millis(2)),
            }
            let now = made_by_all(program, segment);
            if now != made {
                (made, since) = (now, Instant::now());
            }
        }
    }
}

/// Reads both words as a reader until all writers are done, or often enough.
fn read_pairs(kind: LockKind, worker: usize, segment: &Segment, program: &Program) {
    // SAFETY: made by `Segment::create`; this process is that worker, and makes one.
    let mut lock = unsafe { SharedLock::new(segment.lock_place(0), kind, worker as u32) };
    let mut readings = 0;
    let writers = (0..program.workers.len()).filter(|&other| !program.workers[other].ops.is_empty());
    let written: u64 = writers.map(|_| passes(kind, 4)).sum();
    while readings < 10_000 || word(segment, FIRST) < written {
        lock.acquire_plain(true, &mut Effort::default(), &|| false).unwrap();
        let seen = [FIRST, SECOND].map(|at| word(segment, at));
        if lock.release(true, &|| false) == Ok(Released::Done) {
            assert_eq!(seen[0], seen[1], "{kind:?}: torn");
            readings += 1;
        }
    }
}

fn made_by_all(program: &Program, segment: &Segment) -> u64 {
    (0..program.workers.len()).map(|worker| word(segment, tally(worker))).sum()
}

/// The section bumps `X` and counts itself; behind it comes a reader's.
fn excluding<const N: usize>(kind: LockKind, timed: bool) -> Program {
    let pass = |worker: usize| {
        let section = [lock(false, None), access(AccessKind::Bump, X), access(AccessKind::Add, tally(worker))];
        each(section.into_iter().chain([unlock(false), lock(true, None), access(AccessKind::Load, X), unlock(true)]))
    };
    Program { timed_locks: timed, ..program(kind, 1_000, std::array::from_fn::<_, N, _>(pass)) }
}

fn lose_no_update(kind: LockKind, program: &Program, segment: &Segment) {
    let workers = program.workers.len() as u32;
    let total = u64::from(workers) * passes(kind, workers);
    assert_eq!((word(segment, X), made_by_all(program, segment)), (total, total), "{kind:?}");
}

#[test]
fn two_loops_lose_no_update_under_any_kind() {
    let test = "two_loops_lose_no_update_under_any_kind";
    let piece = Piece { test, program: |kind| excluding::<2>(kind, true), passes: |kind| passes(kind, 2) };
    piece.play(LockKind::ALL, lose_no_update);
}

#[test]
fn two_plain_loops_lose_no_update_under_any_kind() {
    let test = "two_plain_loops_lose_no_update_under_any_kind";
    let piece = Piece { test, program: |kind| excluding::<2>(kind, false), passes: |kind| passes(kind, 2) };
    piece.play(LockKind::ALL, lose_no_update);
}

#[test]
fn four_loops_lose_no_update_under_any_kind() {
    let test = "four_loops_lose_no_update_under_any_kind";
    let piece = Piece { test, program: |kind| excluding::<4>(kind, true), passes: |kind| passes(kind, 4) };
    piece.play(LockKind::ALL, lose_no_update);
}

/// Behind a section, whether it was made or not, nothing is held: the next pass acquires again.
#[test]
fn loops_whose_waits_time_out_lose_no_update() {
    let with_timeouts = |kind| {
        let pass = |worker: usize| {
            let section = [lock(false, Some(Nanos(2_000))), access(AccessKind::Bump, X), OpKind::Work(Nanos(500))];
            each(section.into_iter().chain([access(AccessKind::Add, tally(worker)), unlock(false)]))
        };
        program(kind, 1_000, std::array::from_fn::<_, 4, _>(pass))
    };
    let test = "loops_whose_waits_time_out_lose_no_update";
    let piece = Piece { test, program: with_timeouts, passes: |_| 20_000 };
    piece.play(LockKind::ALL.into_iter().filter(|kind| kind.times_out()), |kind, program, segment| {
        let made = made_by_all(program, segment);
        assert!(made > 0 && made <= 80_000, "{kind:?}: {made}");
        assert_eq!(word(segment, X), made, "{kind:?}");
    });
}

#[test]
fn readers_beside_writing_loops_see_what_belongs_together() {
    let writing = |kind| {
        let pass = |worker: usize| {
            let section = [lock(false, None), access(AccessKind::Bump, FIRST), access(AccessKind::Bump, SECOND)];
            each(section.into_iter().chain([access(AccessKind::Add, tally(worker)), unlock(false)]))
        };
        // The last two read, which is no loop's.
        program(kind, 1_000, [pass(0), pass(1), Vec::new(), Vec::new()])
    };
    let test = "readers_beside_writing_loops_see_what_belongs_together";
    let piece = Piece { test, program: writing, passes: |kind| passes(kind, 4) };
    piece.play([LockKind::PthreadRwlock, LockKind::Seqlock, LockKind::Futex], |kind, _, segment| {
        assert_eq!([word(segment, FIRST), word(segment, SECOND)], [2 * passes(kind, 4); 2], "{kind:?}");
    });
}
