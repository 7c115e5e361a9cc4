//! Locks in the model keep each other out, serve in their order, give up in time, and never forget a sleeper.

use super::kit::{FAR, NEAR, access, cluster, limits, lock, locked, model, unlock, witnessed, worker};
use crate::engine::{Engine, Limits};
use crate::script::{Do, Where};
use plan::{AccessKind, LockKind, Nanos, OpKind, WorkerProgram};

/// Where the word lies that a section counts up.
const COUNTED: u64 = 256;

fn sections(index: u32, timeout: Option<u64>, hold_ns: u64, think_ns: u64) -> WorkerProgram {
    let think = OpKind::Work(Nanos(think_ns + 13 * u64::from(index)));
    let bump = access(AccessKind::Bump, COUNTED);
    worker(index, vec![lock(timeout), bump, OpKind::Work(Nanos(hold_ns)), unlock(), think])
}

/// What a section has counted, those stores included that still wait for their line, and how often it tried to.
fn counted(engine: &Engine<'_>) -> (u64, u64) {
    let bumped = engine.scripts.workers[0].steps.iter().find_map(|step| match &step.what {
        Do::Bump(Where::Fixed(place)) => Some(place.word),
        _ => None,
    });
    let word = bumped.expect("a section counts");
    let committed = engine.values[word as usize];
    let buffered = engine.workers.iter().filter_map(|worker| worker.buffer.forwards(word));
    let values = buffered.map(|(value, is_unread)| if is_unread { committed + value } else { value });
    let bumps = engine.witness.as_ref().expect("witnessed").bumps(word);
    (values.max().unwrap_or(committed), bumps)
}

#[test]
fn every_kind_keeps_all_but_one_out_and_loses_no_count() {
    for kind in LockKind::ALL {
        for (distance, workers, hold_ns, think_ns) in
            [(NEAR, 2, 0, 0), (NEAR, 5, 30, 100), (FAR, 3, 0, 50), (FAR, 6, 200, 0)]
        {
            let program = locked(kind, (0..workers).map(|i| sections(i, None, hold_ns, think_ns)).collect());
            witnessed(&program, &cluster(workers, distance), (limits(6_000), 3), |engine, modelled| {
                let (value, bumps) = counted(engine);
                assert_eq!(value, bumps, "{}", kind.name());
                let acquired: u64 = modelled.workers.iter().map(|worker| worker.locks[0].acquisitions).sum();
                assert!(acquired > 0 && modelled.stuck.is_empty(), "{}: {:?}", kind.name(), modelled.stuck);
            });
        }
    }
}

#[test]
fn a_lock_that_queues_lets_all_have_the_same() {
    for kind in [LockKind::Ticket, LockKind::Mcs, LockKind::Clh, LockKind::PthreadPi] {
        let program = locked(kind, (0..6).map(|i| sections(i, None, 100, 0)).collect());
        let modelled = model(&program, &cluster(6, NEAR), 60_000);
        let acquired = || modelled.workers.iter().map(|worker| worker.locks[0].acquisitions);
        let (least, most) = (acquired().min().unwrap_or(0), acquired().max().unwrap_or(0));
        assert!(least > 50 && most - least <= 2, "{}: {least} to {most}", kind.name());
    }
}

#[test]
fn waiting_is_counted_where_there_is_somebody_to_wait_for() {
    for kind in LockKind::ALL {
        let alone = model(&locked(kind, vec![sections(0, None, 50, 50)]), &cluster(2, NEAR), 2_000);
        let tally = alone.workers[0].locks[0];
        assert_eq!((tally.contended, tally.waited_ps, tally.timeouts), (0, 0, 0), "{}", kind.name());
        let both = locked(kind, (0..2).map(|i| sections(i, None, 2_000, 2_000 + 500 * u64::from(i))).collect());
        let both = model(&both, &cluster(2, NEAR), 4_000);
        let sum =
            |of: fn(&crate::LockTally) -> u64| both.workers.iter().map(|worker| of(&worker.locks[0])).sum::<u64>();
        let (acquired, contended) = (sum(|tally| tally.acquisitions), sum(|tally| tally.contended));
        assert!(contended > 10 && contended < acquired, "{}: {contended} of {acquired}", kind.name());
        assert!(sum(|tally| tally.waited_ps) > contended * 10_000, "{}", kind.name());
    }
}

#[test]
fn who_gives_up_goes_on_behind_the_release_and_leaves_nobody_asleep() {
    for kind in LockKind::ALL.into_iter().filter(|kind| kind.times_out()) {
        // Long sections, short patience, and one that has all the time.
        let mut workers: Vec<WorkerProgram> = (0..3).map(|i| sections(i, Some(3_000), 7_000, 500)).collect();
        workers.push(sections(3, None, 7_000, 500));
        let program = locked(kind, workers);
        witnessed(&program, &cluster(4, NEAR), (limits(20_000), 5), |engine, modelled| {
            let timeouts: u64 = modelled.workers.iter().map(|worker| worker.locks[0].timeouts).sum();
            assert!(timeouts > 10, "{}: {timeouts}", kind.name());
            assert!(modelled.stuck.is_empty(), "{}: {:?} sleep for ever", kind.name(), modelled.stuck);
            assert!(modelled.workers[..3].iter().all(|worker| worker.passes > 0), "{}", kind.name());
            let (value, bumps) = counted(engine);
            assert_eq!(value, bumps, "{}", kind.name());
        });
    }
}

#[test]
fn readers_share_where_the_kind_lets_them_and_a_sequence_locks_readers_read_again() {
    let reader = |index: u32| {
        let (lock, unlock) =
            (OpKind::Lock { lock: 0, shared: true, timeout: None }, OpKind::Unlock { lock: 0, shared: true });
        worker(index, vec![lock, access(AccessKind::Load, COUNTED), OpKind::Work(Nanos(3_000)), unlock])
    };
    let limits = Limits { accesses: 20_000, window_ns: 3e6 };
    for (kind, shares) in [(LockKind::PthreadRwlock, true), (LockKind::Seqlock, true), (LockKind::Futex, false)] {
        let program = locked(kind, (0..4).map(reader).collect());
        let passes = witnessed(&program, &cluster(4, NEAR), (limits, 1), |_, modelled| {
            modelled.workers.iter().map(|worker| worker.passes).sum::<u64>()
        });
        // A pass takes 3 µs and a little: a thousand fit into the window of one, and four as many where they share.
        let expected = if shares { 3_000..4_001 } else { 500..1_001 };
        assert!(expected.contains(&passes), "{}: {passes}", kind.name());
    }
    let mut workers: Vec<WorkerProgram> = (0..2).map(reader).collect();
    workers.push(sections(2, None, 10, 9_000));
    let program = locked(LockKind::Seqlock, workers);
    witnessed(&program, &cluster(3, NEAR), (limits, 1), |engine, modelled| {
        let loads = engine.workers[0].tally.l1d_loads;
        let (passes, acquired) = (modelled.workers[0].passes, modelled.workers[0].locks[0].acquisitions);
        assert!(acquired.abs_diff(passes) <= 1, "one that reads again has acquired once: {acquired} and {passes}");
        assert!(loads > 3 * passes + passes / 5, "a third of the reads is overtaken: {loads} in {passes} passes");
    });
}
