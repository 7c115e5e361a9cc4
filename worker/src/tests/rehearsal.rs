//! Whole loops in this process: real code through real hooks on a real segment, a thread a worker. What they do to
//! memory is exact; what their traces say is held against it.
#![allow(unsafe_code)] // words and locks in a mapped segment

mod processes;

use crate::compile::{CompiledLoop, LockSites};
use crate::context::Context;
use crate::locks::holds_logged;
use crate::measure;
use crate::probe::Reading;
use plan::{
    AccessKind, Address, Layout, LockKind, Nanos, OpKind, PlacedLock, Program, Width, WorkerIndex, WorkerProgram,
};
use record::{HOLD_SAMPLING, LockTrace, TickCount, Trace};
use shm_layout::lock::{Attempt, Effort, SharedLock};
use shm_layout::{Segment, SegmentSpec, calibrate, ticks};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

pub(crate) const ENCODED: &[u8] = b"rehearsal";
const MS: u64 = 1_000_000;

/// Where the tests' words lie, beside the lock at 0.
const X: u64 = 128;
const Y: u64 = 256;
const Z: u64 = 384;

fn access(kind: AccessKind, at: u64) -> OpKind {
    OpKind::Access { kind, width: Width::U64, at: Address::Fixed(at) }
}

pub(crate) fn lock(shared: bool, timeout: Option<Nanos>) -> OpKind {
    OpKind::Lock { lock: 0, shared, timeout }
}

pub(crate) fn unlock(shared: bool) -> OpKind {
    OpKind::Unlock { lock: 0, shared }
}

fn post(at: u64) -> OpKind {
    OpKind::Post { width: Width::U64, at }
}

fn wait(at: u64) -> OpKind {
    OpKind::Wait { width: Width::U64, at }
}

/// A program of one lock of that kind, and a worker for each of these loops.
pub(crate) fn program<const N: usize>(kind: LockKind, window_ms: u64, loops: [Vec<(u32, OpKind)>; N]) -> Program {
    let worker = |(index, ops): (usize, Vec<(u32, OpKind)>)| {
        let (every, kinds): (Vec<u32>, Vec<OpKind>) = ops.into_iter().unzip();
        let mut worker = WorkerProgram::of(kinds);
        (worker.index, worker.process) = (WorkerIndex(index as u32), index as u32);
        worker.ops.iter_mut().zip(every).for_each(|(op, every)| op.every = every);
        worker
    };
    Program {
        window: Nanos(window_ms * MS),
        warm_up: Nanos(MS),
        layout: Layout { placed: vec![], bytes: 4096 },
        area_bytes: 4096,
        locks: vec![PlacedLock { name: "m".into(), kind, offset: 0 }],
        shares_cpu: true,
        seed: 1,
        ..Program::of(loops.into_iter().enumerate().map(worker))
    }
}

pub(crate) fn each(ops: impl IntoIterator<Item = OpKind>) -> Vec<(u32, OpKind)> {
    ops.into_iter().map(|kind| (1, kind)).collect()
}

/// A segment with one slot more than workers: the test's own.
pub(crate) fn segment(program: &Program) -> Segment {
    let slots = program.workers.len() as u32 + 1;
    let rate = calibrate(Duration::from_millis(5));
    let spec = SegmentSpec { program, encoded_program: ENCODED, slots, rate, node: None };
    Segment::create(&spec).unwrap()
}

fn word(segment: &Segment, at: u64) -> u64 {
    // SAFETY: in the area of 4096 bytes, aligned, and touched as a word by every worker.
    unsafe { &*segment.area().add(at as usize).cast::<AtomicU64>() }.load(Ordering::Relaxed)
}

/// The lock as the test itself uses it.
pub(crate) fn own_lock<'s>(segment: &'s Segment, program: &Program) -> SharedLock<'s> {
    // SAFETY: made by `Segment::create`; each test asks once, and no worker has this index.
    unsafe { SharedLock::new(segment.lock_place(0), program.locks[0].kind, program.workers.len() as u32) }
}

/// A worker's loop on a segment of its Program's.
fn compile(segment: &Segment, program: &Program, me: &WorkerProgram) -> CompiledLoop {
    CompiledLoop::compile(me, &LockSites::of(program, segment.map(), me.index), 1, 1.0, &crate::hooks()).unwrap()
}

/// Runs every worker through its window. Their traces, by index.
fn play(segment: &Segment, program: &Program) -> Vec<Trace> {
    segment.control().release();
    let name = segment.name();
    let perform = |me: &WorkerProgram| {
        let slots = program.workers.len() as u32 + 1;
        let segment = &Segment::attach(name, program, ENCODED, slots).unwrap();
        let mut compiled = compile(segment, program, me);
        let mut context = Context::new(segment, program, me, &[], Default::default());
        measure::work(&mut compiled, &mut context);
        assert_eq!(context.failure, None);
        let nothing = Reading::default;
        context.into_trace(0, nothing(), nothing())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = program.workers.iter().map(|me| scope.spawn(move || perform(me))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn assert_is_consistent(program: &Program, trace: &Trace) -> LockTrace {
    let (kind, timed) = (program.locks[0].kind, program.timed_locks);
    let lock = trace.locks[0].clone();
    let says = format!("{kind:?}: {} acquired, {} waits", lock.acquisitions, lock.waits.len());
    assert_eq!(lock.contended, lock.waits.len() as u64 + lock.waits_lost, "{says}");
    assert!(lock.contended <= lock.acquisitions && lock.handoffs <= lock.acquisitions, "{says}");
    assert!(lock.longest_gap_ticks <= trace.close_ticks - trace.open_ticks, "{says}");
    assert_eq!((lock.timeouts, lock.owner_died), (0, 0), "{says}");
    assert!(kind.shares_readers() || lock.shared == 0, "{says}");
    assert!(timed || lock.waits.is_empty() && lock.holds.is_empty(), "{says}");
    let sampled = if timed { lock.acquisitions / HOLD_SAMPLING } else { 0 };
    let sampled = sampled.min(holds_logged(program) as u64);
    // Owners and readers are sampled each by themselves.
    assert!((lock.holds.len() as u64).abs_diff(sampled) <= 2, "{says}, {} holds", lock.holds.len());
    lock
}

#[test]
fn every_kind_excludes_and_is_counted_timed_and_plain() {
    for kind in LockKind::ALL {
        for timed in [true, false] {
            let pass = || {
                let section = [lock(false, None), access(AccessKind::Bump, X), unlock(false)];
                let reading = [lock(true, None), access(AccessKind::Load, X), unlock(true)];
                each(section.into_iter().chain([access(AccessKind::Add, Y)]).chain(reading))
            };
            let program = Program { timed_locks: timed, ..program(kind, 20, [pass(), pass()]) };
            let segment = segment(&program);
            let traces = play(&segment, &program);
            assert!(word(&segment, Y) > 0 && word(&segment, X) == word(&segment, Y), "{kind:?} lost updates");
            let locks: Vec<LockTrace> = traces.iter().map(|t| assert_is_consistent(&program, t)).collect();
            for (trace, lock) in traces.iter().zip(&locks) {
                assert!(lock.acquisitions >= 2 * trace.passes, "{kind:?}: {} passes", trace.passes);
                assert!(!kind.shares_readers() || lock.shared >= trace.passes, "{kind:?}: {} shared", lock.shared);
                assert!(lock.longest_run > 0 || trace.passes == 0, "{kind:?}");
            }
        }
    }
}

#[test]
fn a_timeout_skips_the_section_and_is_no_acquisition() {
    for kind in LockKind::ALL.into_iter().filter(|kind| kind.times_out()) {
        for timed in [true, false] {
            let pass = [
                lock(false, Some(Nanos(10_000))),
                access(AccessKind::Add, X),
                unlock(false),
                access(AccessKind::Add, Y),
            ];
            let program = Program { timed_locks: timed, ..program(kind, 100, [each(pass)]) };
            let segment = segment(&program);
            let mut held = own_lock(&segment, &program);
            assert!(matches!(held.try_acquire(false), Ok(Attempt::Acquired(_))));
            let trace = &play(&segment, &program)[0];
            held.release(false, &|| false).unwrap();
            assert!(word(&segment, X) == 0 && word(&segment, Y) > 0, "{kind:?}");
            let lock = &trace.locks[0];
            assert!(lock.timeouts >= trace.passes, "{kind:?}: {} of {}", lock.timeouts, trace.passes);
            assert_eq!((lock.acquisitions, lock.contended, lock.waits.len()), (0, 0, 0), "{kind:?}");
            assert_eq!(lock.longest_gap_ticks, trace.close_ticks - trace.open_ticks, "{kind:?}");
        }
    }
}

/// The reader lets a writer in at every second reading, so that each reading but the first is torn and then made again.
#[test]
fn a_reader_of_a_sequence_lock_reads_again_after_a_writer() {
    let reader =
        vec![(1, lock(true, None)), (2, post(X)), (2, wait(Y)), (1, access(AccessKind::Add, Z)), (1, unlock(true))];
    let writer = each([wait(X), lock(false, None), unlock(false), post(Y)]);
    let program = program(LockKind::Seqlock, 100, [reader, writer]);
    let segment = segment(&program);
    let traces = play(&segment, &program);
    let (reader, writer) = (&traces[0].locks[0], &traces[1].locks[0]);
    assert!(reader.retries + 1 >= traces[0].passes && writer.acquisitions >= traces[1].passes);
    assert_eq!((writer.retries, writer.shared, reader.shared), (0, 0, reader.acquisitions));
    assert!(reader.retries.abs_diff(reader.acquisitions) <= 1, "{} of {}", reader.retries, reader.acquisitions);
    let reads = word(&segment, Z);
    assert!(reads + 1 >= 2 * traces[0].passes, "{reads} readings in {} passes", traces[0].passes);
}

#[test]
fn what_a_pass_holds_that_is_given_up_is_given_back() {
    for kind in LockKind::ALL {
        for shared in [false, true] {
            let program = program(kind, 2, [each([lock(shared, None), wait(X), unlock(shared)])]);
            let segment = segment(&program);
            let trace = &play(&segment, &program)[0];
            assert_eq!(trace.stuck_in_step, Some(1), "{kind:?}");
            let mut lock = own_lock(&segment, &program);
            assert!(matches!(lock.try_acquire(false), Ok(Attempt::Acquired(_))), "{kind:?}");
            // Else this thread's list of robust mutexes goes on to name one whose memory is gone.
            lock.release(false, &|| false).unwrap();
        }
    }
}

/// A thread takes the lock within the window and ends without giving it back: what the kernel does for it, it does for
/// a process. Again where a machine let it come too late.
#[test]
fn the_next_owner_of_a_robust_lock_takes_over_and_counts_it() {
    let program = program(LockKind::PthreadRobust, 50, [each([lock(false, None), unlock(false), OpKind::Yield])]);
    let dies_holding = |name: &str| {
        let segment = Segment::attach(name, &program, ENCODED, 2).unwrap();
        let is_open = || segment.control().window().is_some_and(|window| ticks() >= window.open);
        testing::within(testing::A_LONG_TIME, "an open window", || is_open().then_some(()));
        let mut lock = own_lock(&segment, &program);
        lock.acquire(false, &mut Effort::default(), &|| false).unwrap();
        // The kernel looks for what a dead thread held in the mapping that this thread used.
        std::mem::forget(lock);
        std::mem::forget(segment);
    };
    let seen = (0..20).any(|_| {
        let segment = segment(&program);
        let name = segment.name();
        let trace = std::thread::scope(|scope| {
            scope.spawn(|| dies_holding(name));
            play(&segment, &program).remove(0)
        });
        let lock = &trace.locks[0];
        assert!(lock.owner_died <= 1 && lock.timeouts == 0);
        lock.owner_died == 1
    });
    assert!(seen, "nobody was told in 20 windows");
}

/// The passes of one worker with a latency, as ticks of response and of service, and its trace with the ticks of 1 ms.
/// Once more where a machine had no time for a single pass in the window.
fn timed(period: Option<Nanos>, window_ms: u64, step: OpKind) -> (Vec<TickCount>, Vec<TickCount>, Trace, f64) {
    let mut program = program(LockKind::Tas, window_ms, [each([step])]);
    (program.workers[0].period, program.workers[0].latency) = (period, true);
    loop {
        let segment = segment(&program);
        let ms = segment.tick_rate().ticks_per_ns * MS as f64;
        let trace = play(&segment, &program).remove(0);
        let latency = trace.latency.clone().unwrap();
        let count = |counts: &[TickCount]| counts.iter().map(|c| c.count).sum::<u64>();
        assert_eq!(count(&latency.response), count(&latency.service));
        assert!(count(&latency.response).abs_diff(trace.passes) <= 1, "{} passes", trace.passes);
        if count(&latency.response) > 0 {
            return (latency.response, latency.service, trace, ms);
        }
    }
}

#[test]
fn an_open_loop_keeps_its_period_and_idles_as_if_blocked() {
    let (response, service, trace, ms) = timed(Some(Nanos(MS)), 50, OpKind::Work(Nanos(10_000)));
    assert!(trace.passes <= 51, "{} passes of 1 ms in 50", trace.passes);
    let longest = response.last().unwrap().ticks as f64;
    assert!(longest >= 0.998 * service.last().unwrap().ticks as f64);
    assert!(trace.blocked_ticks > 0 || longest > ms, "no pass was late, and none had to wait");
}

/// Each pass takes twice its period: the k-th one's response is at least k periods more than it would be alone.
#[test]
fn overload_shows_in_the_response_and_not_in_the_service() {
    let (response, service, trace, ms) = timed(Some(Nanos(MS)), 60, OpKind::Sleep(Nanos(2 * MS)));
    assert!(service[0].ticks as f64 >= 1.998 * ms, "{} ticks", service[0].ticks);
    let passes = response.iter().map(|c| c.count).sum::<u64>();
    let longest = response.last().unwrap().ticks as f64 / ms;
    assert!(longest >= 0.998 * (passes as f64 + 1.0), "{longest} ms after {passes} passes");
    assert!(trace.passes <= 31);
}

#[test]
fn in_a_closed_loop_response_is_service() {
    let (response, service, ..) = timed(None, 20, OpKind::Work(Nanos(1_000)));
    assert_eq!(response, service);
}
