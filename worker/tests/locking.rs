//! Locks in line: what compiled loops do by themselves and when they call which hook, on real locks.
#![allow(missing_docs)]

mod support;

use plan::{AccessKind, LockKind, Nanos, OpKind, Width};
use std::sync::atomic::Ordering;
use support::{Called, Context, LOCKS, Stage, access, program};
use worker::compile::{CompileError, CompiledLoop, Progress};

fn lock(lock: u32, shared: bool, timeout: Option<u64>) -> OpKind {
    OpKind::Lock { lock, shared, timeout: timeout.map(Nanos) }
}

fn unlock(lock: u32, shared: bool) -> OpKind {
    OpKind::Unlock { lock, shared }
}

fn add(at: u64) -> OpKind {
    access(AccessKind::Add, at)
}

/// Runs some passes of these operations on a stage.
fn play(stage: &mut Stage, context: &mut Context, ops: impl IntoIterator<Item = OpKind>, passes: u64) -> Progress {
    let mut compiled = stage.compile(&program(ops), true);
    stage.run(&mut compiled, context, passes)
}

/// The words of the area that the tests count in.
fn counted(stage: &mut Stage) -> [u64; 3] {
    [0, 8, 16].map(|at| stage.word(at))
}

/// Makes the owner record say that worker 0 owned the lock last: a hook of the test's own does nothing.
fn own(stage: &mut Stage, lock: u32) {
    stage.lock_word(lock, 56).store(1, Ordering::Relaxed);
}

#[test]
fn a_free_lock_is_taken_and_given_back_without_a_hook_and_counted() {
    for kind in LockKind::ALL {
        for shared in [false, true] {
            for timed in [true, false] {
                let (mut stage, mut context) = (Stage::new(kind), Context::default());
                own(&mut stage, 2);
                let mut compiled =
                    stage.compile(&program([lock(2, shared, None), add(0), unlock(2, shared), add(8)]), timed);
                for _ in 0..2 {
                    let done = stage.run(&mut compiled, &mut context, 50);
                    assert_eq!(done, Progress { passes: 50, gave_up_in: None });
                }
                assert_eq!(counted(&mut stage), [100, 100, 0]);
                assert_eq!(context.log, [], "{kind:?}");
                let cell = &context.cells[2];
                let reads = shared && kind.shares_readers();
                assert_eq!(cell.tally(reads).acquired.get(), 100, "{kind:?}");
                assert_eq!(cell.acquired(), 100, "{kind:?}");
                assert!(!stage.slot().reads(2) && stage.slot().waits_for().is_none(), "{kind:?}");
            }
        }
    }
}

#[test]
fn an_owner_that_the_record_does_not_name_says_so_and_a_reader_does_not() {
    for kind in LockKind::ALL {
        for last in [0, 2] {
            let (mut stage, mut context) = (Stage::new(kind), Context::default());
            stage.lock_word(1, 56).store(last, Ordering::Relaxed);
            play(&mut stage, &mut context, [lock(1, false, None), unlock(1, false)], 2);
            assert_eq!(context.log, [Called::Handoff(1); 2], "{kind:?}");
            context.log.clear();
            play(&mut stage, &mut context, [lock(1, true, None), unlock(1, true)], 1);
            assert_eq!(context.log.is_empty(), kind.shares_readers(), "{kind:?}");
        }
    }
}

#[test]
fn a_sampled_acquisition_is_counted_first_and_released_by_the_hook() {
    for kind in [LockKind::Tas, LockKind::Clh, LockKind::Pthread, LockKind::Seqlock] {
        let (mut stage, mut context) = (Stage::new(kind), Context::default());
        own(&mut stage, 0);
        context.cells[0].exclusive.sample_at.set(3);
        // The test's hook releases nothing, so the sampled pass is the last that could acquire.
        play(&mut stage, &mut context, [lock(0, false, None), add(0), unlock(0, false)], 3);
        let told = if kind == LockKind::Clh { context.log[1] } else { Called::Unlock(0, false, 0) };
        assert_eq!(context.log, [Called::Sample(0, false), told], "{kind:?}");
        assert!(matches!(told, Called::Unlock(0, false, _)));
        assert_eq!((context.cells[0].acquired(), stage.word(0)), (3, 3), "{kind:?}");
    }
}

/// Each kind as if another held it, and what its hook is told.
fn held_by_another(stage: &mut Stage, kind: LockKind) -> i64 {
    let word = |stage: &mut Stage, offset, value| stage.lock_word(1, offset).store(value, Ordering::Relaxed);
    match kind {
        LockKind::Tas | LockKind::Ttas => word(stage, 0, 1),
        LockKind::Futex => word(stage, 0, 2),
        LockKind::Ticket => word(stage, 0, 7),
        LockKind::Seqlock => word(stage, 0, 5),
        kind => panic!("{kind:?} has calls or nodes"),
    }
    match kind {
        LockKind::Tas | LockKind::Ttas => 1,
        LockKind::Futex => 2,
        LockKind::Ticket => 7,
        _ => 0,
    }
}

#[test]
fn a_lock_that_another_holds_is_the_hook_s_with_what_was_found() {
    for kind in [LockKind::Tas, LockKind::Ttas, LockKind::Futex, LockKind::Ticket, LockKind::Seqlock] {
        let (mut stage, mut context) = (Stage::new(kind), Context::default());
        own(&mut stage, 1);
        let told = held_by_another(&mut stage, kind);
        let done = play(&mut stage, &mut context, [lock(1, false, Some(5_000)), add(0), unlock(1, false)], 1);
        assert_eq!(done, Progress { passes: 1, gave_up_in: None });
        assert_eq!(context.log, [Called::Lock(1, false, 5_000, told), Called::Unlock(1, false, 0)], "{kind:?}");
        assert_eq!((context.cells[1].acquired(), stage.word(0)), (1, 1), "{kind:?}");
    }
}

#[test]
fn what_a_release_leaves_to_do_is_the_hook_s() {
    let (mut stage, mut context) = (Stage::new(LockKind::Futex), Context::default());
    own(&mut stage, 1);
    // Inside the section somebody comes and sleeps: the word is the 2 that another's exchange would leave.
    let sleeper =
        OpKind::Access { kind: AccessKind::Store, width: Width::U32, at: plan::Address::Fixed(Stage::at(1) as u64) };
    let done = play(&mut stage, &mut context, [add(0), lock(1, false, None), sleeper, unlock(1, false)], 2);
    assert_eq!(done.passes, 2);
    // The store writes the number of the pass: 1, held, and 2, with sleepers.
    assert_eq!(context.log, [Called::Released(1, 2)]);
}

/// `lock 1`, an add, `rlock 2` with a timeout, an add, `runlock 2`, an add, `unlock 1`.
fn nested() -> [OpKind; 7] {
    [lock(1, false, None), add(0), lock(2, true, Some(1_000)), add(8), unlock(2, true), add(16), unlock(1, false)]
}

#[test]
fn a_timeout_skips_what_the_lock_was_for_and_no_more() {
    for kind in [LockKind::Tas, LockKind::Seqlock] {
        let (mut stage, mut context) = (Stage::new(kind), Context { times_out: true, ..Context::default() });
        own(&mut stage, 1);
        stage.lock_word(2, 0).store(1, Ordering::Relaxed);
        let done = play(&mut stage, &mut context, nested(), 2);
        assert_eq!(done, Progress { passes: 2, gave_up_in: None });
        assert_eq!(counted(&mut stage), [2, 0, 2]);
        assert!(matches!(context.log[..], [Called::Lock(2, true, 1_000, _), Called::Lock(2, true, 1_000, _)]));
        assert_eq!((context.cells[1].acquired(), context.cells[2].acquired()), (2, 0), "{kind:?}");
    }
}

#[test]
fn a_pass_whose_lock_fails_is_given_up_with_what_it_holds() {
    let (mut stage, mut context) = (Stage::new(LockKind::Tas), Context { times_out: true, ..Context::default() });
    [0, 1, 2].into_iter().for_each(|lock| own(&mut stage, lock));
    stage.lock_word(2, 0).store(1, Ordering::Relaxed);
    let ops = [lock(0, false, None), lock(1, false, None), add(0), lock(2, false, None), add(8), unlock(2, false)];
    let done = play(&mut stage, &mut context, ops.into_iter().chain([unlock(1, false), unlock(0, false)]), 9);
    assert_eq!(done, Progress { passes: 0, gave_up_in: Some(3) });
    assert_eq!(counted(&mut stage), [1, 0, 0]);
    let given_back = [Called::Unlock(1, false, 0), Called::Unlock(0, false, 0)];
    assert_eq!(context.log, [&[Called::Lock(2, false, 0, 1)][..], &given_back].concat());
}

#[test]
fn a_wait_that_is_given_up_gives_back_all_but_what_a_sequence_lock_s_reader_has() {
    for (kind, given_back) in [(LockKind::PthreadRwlock, vec![Called::Unlock(1, true, 0)]), (LockKind::Seqlock, vec![])]
    {
        let (mut stage, mut context) = (Stage::new(kind), Context::default());
        let ops = [lock(1, true, None), OpKind::Wait { width: Width::U64, at: 0 }, unlock(1, true)];
        let done = play(&mut stage, &mut context, ops, 3);
        assert_eq!(done, Progress { passes: 0, gave_up_in: Some(1) });
        assert_eq!(context.log, given_back, "{kind:?}");
        assert!(!stage.slot().reads(1));
    }
}

#[test]
fn a_reader_that_is_sent_back_reads_again_from_behind_its_acquisition() {
    let (mut stage, mut context) = (Stage::new(LockKind::Seqlock), Context { retries: 2, ..Context::default() });
    own(&mut stage, 1);
    // A writer comes in between each time: the reader's own section counts lock 2 up.
    let writing =
        OpKind::Access { kind: AccessKind::Bump, width: Width::U32, at: plan::Address::Fixed(Stage::at(2) as u64) };
    let ops = [lock(1, false, None), lock(2, true, None), add(8), writing, unlock(2, true), add(16), unlock(1, false)];
    let done = play(&mut stage, &mut context, ops, 1);
    assert_eq!(done, Progress { passes: 1, gave_up_in: None });
    assert_eq!(counted(&mut stage), [0, 3, 1]);
    // Told the count at which it began; from then on an odd one, since the hook has acquired.
    let told = [0, 1, 1].map(|count| Called::Unlock(2, true, count));
    assert_eq!(context.log, told);
    assert_eq!(context.cells[2].shared.acquired.get(), 1, "read again, acquired once");
}

#[test]
fn readers_are_noted_in_the_slot_while_they_have_it() {
    let (mut stage, mut context) = (Stage::new(LockKind::PthreadRwlock), Context::default());
    own(&mut stage, 0);
    // The wait is given up with both held, and the test's hook gives nothing back; the slot says none all the same.
    let mut dying =
        stage.compile(&program([lock(3, true, None), lock(0, false, None), lock(1, true, None), OpKind::Die]), true);
    let done = stage.run(&mut dying, &mut context, 1);
    assert_eq!((done.passes, &context.log[..]), (1, &[Called::Die][..]));
    let reads: Vec<bool> = (0..LOCKS as u32).map(|lock| stage.slot().reads(lock)).collect();
    assert_eq!(reads, [false, true, false, true], "not the one that it owns");
}

#[test]
fn steps_of_locks_that_no_program_holds_are_refused() {
    let cases: [(&[(u32, OpKind)], &str); 6] = [
        (&[(1, lock(9, false, None)), (1, unlock(9, false))], "no such lock"),
        (&[(2, lock(0, false, None)), (1, unlock(0, false))], "every pass"),
        (&[(1, lock(0, false, None)), (1, lock(0, true, None))], "holds that lock already"),
        (&[(1, unlock(0, false))], "does not hold"),
        (&[(1, lock(0, true, None)), (1, unlock(0, false))], "the other part"),
        (&[(1, lock(0, false, None)), (1, unlock(0, false)), (1, unlock(0, false))], "does not hold"),
    ];
    let stage = Stage::new(LockKind::Tas);
    for (ops, says) in cases {
        let program = support::program_every(ops.iter().cloned());
        let refused = CompiledLoop::compile(&program, &stage.sites(true), 0, 1.0, &support::HOOKS);
        let Err(CompileError::InvalidOp { why, .. }) = refused else {
            panic!("compiled what should be refused: {says}")
        };
        assert!(why.contains(says), "{why}");
    }
}

#[test]
fn a_listing_names_the_hooks_and_the_library_s_calls() {
    let stage = Stage::new(LockKind::PthreadRobust);
    let text = stage.compile(&program([lock(0, false, None), unlock(0, false)]), true).listing().to_string();
    let called = ["pthread_mutex_trylock", "pthread_mutex_unlock", "lock", "unlock", "released", "handoff", "sample"];
    for name in called {
        assert!(text.contains(&format!("# {name}\n")), "no `{name}` in\n{text}");
    }
}
