//! Compiled loops do what their steps say: exact totals on real memory.
#![allow(unsafe_code, missing_docs)]
// SAFETY of this file: every test gives a loop an area that holds all offsets of its program.

mod support;

use plan::{AccessKind, Address, MemoryVerb, Nanos, OpKind, Width};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use support::{Called, Context, access, compile, program, program_every, run};
use worker::compile::{CompileError, CompiledLoop, LockSites, Progress, work_turn_ns};

/// Runs `passes` passes of these operations on 32 words of zeros.
fn area_after(ops: Vec<(u32, OpKind)>, passes: u64) -> Vec<u64> {
    let mut area = vec![0; 32];
    let done = run(&mut compile(&program_every(ops)), &mut area, &mut Context::default(), passes);
    assert_eq!(done, Progress { passes, gave_up_in: None });
    area
}

#[test]
fn counting_steps_leave_the_number_of_passes() {
    for kind in [AccessKind::Add, AccessKind::Bump, AccessKind::Cas, AccessKind::Store, AccessKind::Swap] {
        let area = area_after(vec![(1, access(kind, 64))], 800);
        assert_eq!(area[8], 800, "{kind:?}");
        assert!(area.iter().enumerate().all(|(i, &word)| i == 8 || word == 0), "{kind:?} wrote elsewhere");
    }
    assert_eq!(area_after(vec![(1, access(AccessKind::Load, 64))], 800), vec![0; 32]);
}

#[test]
fn narrow_elements_wrap_and_leave_their_neighbours_alone() {
    for (width, wrapped) in [(Width::U8, 1000 % 256), (Width::U16, 1000), (Width::U32, 1000)] {
        for kind in [AccessKind::Add, AccessKind::Bump, AccessKind::Cas, AccessKind::Store, AccessKind::Swap] {
            let op = OpKind::Access { kind, width, at: Address::Fixed(8) };
            let area = area_after(vec![(1, op)], 1000);
            assert_eq!(area[..3], [0, wrapped, 0], "{kind:?} {width:?}");
        }
    }
}

#[test]
fn every_counts_passes_over_several_runs() {
    let mut area = [0; 8];
    let ops = [(3, access(AccessKind::Add, 0)), (1, access(AccessKind::Add, 8)), (64, access(AccessKind::Add, 16))];
    let mut compiled = compile(&program_every(ops));
    for _ in 0..10 {
        run(&mut compiled, &mut area, &mut Context::default(), 20);
    }
    assert_eq!(area[..3], [200 / 3, 200, 200 / 64]);
}

#[test]
fn any_reaches_every_element_about_equally_and_nothing_else() {
    let offsets: Vec<u64> = [0, 1, 2, 5, 9].map(|word| word * 8).into();
    let add = OpKind::Access { kind: AccessKind::Add, width: Width::U64, at: Address::Any(offsets.clone()) };
    let area = area_after(vec![(1, add)], 50_000);
    assert_eq!(area.iter().sum::<u64>(), 50_000);
    for (word, &count) in area.iter().enumerate() {
        let expected = if offsets.contains(&(word as u64 * 8)) { 9_500..10_500 } else { 0..1 };
        assert!(expected.contains(&count), "word {word}: {count}");
    }
}

#[test]
fn any_differs_between_workers_and_not_between_runs_of_one_seed() {
    let offsets: Vec<u64> = (0..32).map(|word| word * 8).collect();
    let add = OpKind::Access { kind: AccessKind::Add, width: Width::U64, at: Address::Any(offsets) };
    let drawn = |index| {
        let mut program = program([add.clone()]);
        program.index = plan::WorkerIndex(index);
        let mut area = vec![0; 32];
        run(&mut compile(&program), &mut area, &mut Context::default(), 64);
        area
    };
    assert_eq!(drawn(0), drawn(0));
    assert_ne!(drawn(0), drawn(1));
}

#[test]
fn cas_fails_once_when_the_word_is_not_what_it_saw() {
    let mut area = [100, 0];
    let mut compiled = compile(&program([access(AccessKind::Cas, 0)]));
    run(&mut compiled, &mut area, &mut Context::default(), 8);
    assert_eq!(area[0], 107);
    area[0] = 500;
    run(&mut compiled, &mut area, &mut Context::default(), 8);
    assert_eq!(area[0], 507);
}

#[test]
fn bumps_of_one_word_in_one_pass_are_all_made() {
    let area = area_after(vec![(1, access(AccessKind::Bump, 0)); 3], 100);
    assert_eq!(area[0], 300);
}

#[test]
fn hooks_are_called_in_order_with_their_arguments() {
    let ops = [
        access(AccessKind::Add, 0),
        OpKind::Sleep(Nanos(5_000_000_000)),
        OpKind::Yield,
        support::memory_step(MemoryVerb::Punch),
        OpKind::Pause,
        OpKind::Flush { at: Address::Fixed(8) },
        OpKind::Flush { at: Address::Any(vec![8, 0]) },
        OpKind::Fence,
        OpKind::Work(Nanos(50)),
    ];
    let (mut area, mut context) = ([0; 2], Context::default());
    let done = run(&mut compile(&program(ops)), &mut area, &mut context, 2);
    assert_eq!(done.passes, 2);
    assert_eq!(area, [2, 0]);
    let pass = [Called::Sleep(5_000_000_000), Called::Yield, Called::Memory(3)];
    assert_eq!(context.log, [pass, pass].concat());
}

#[test]
fn a_hook_ends_a_blocking_loop_after_its_pass() {
    let ops = [OpKind::Yield, access(AccessKind::Add, 0)];
    let (mut area, mut context) = ([0], Context { break_after_yields: 5, ..Context::default() });
    let done = run(&mut compile(&program(ops)), &mut area, &mut context, 1000);
    assert_eq!(done, Progress { passes: 5, gave_up_in: None });
    assert_eq!(area, [5]);
}

#[test]
fn a_wait_is_given_up_when_the_hook_says_so() {
    let ops = [access(AccessKind::Add, 8), OpKind::Wait { width: Width::U32, at: 0 }];
    let (mut area, mut context) = ([0, 0], Context { patience: 10, ..Context::default() });
    let mut compiled = compile(&program(ops));
    let done = run(&mut compiled, &mut area, &mut context, 4);
    assert_eq!(done, Progress { passes: 0, gave_up_in: Some(1) });
    assert_eq!((area, context.patience), ([0, 1], 0));
    area[0] = 9;
    let done = run(&mut compiled, &mut area, &mut context, 4);
    assert_eq!(done, Progress { passes: 1, gave_up_in: Some(1) });
}

#[test]
fn a_worker_does_not_wait_for_its_own_post() {
    let ops = [OpKind::Post { width: Width::U64, at: 0 }, OpKind::Wait { width: Width::U64, at: 0 }];
    let (mut area, mut context) = ([0], Context { patience: 3, ..Context::default() });
    let done = run(&mut compile(&program(ops)), &mut area, &mut context, 1);
    assert_eq!(done, Progress { passes: 0, gave_up_in: Some(1) });
    assert_eq!(area, [1]);
}

/// Two workers hand a turn to and fro, each waiting for what the other posts.
#[test]
fn post_and_wait_hand_over_between_two_threads() {
    const ROUNDS: u64 = 2_000;
    for width in [Width::U8, Width::U32, Width::U64] {
        let words: [AtomicU64; 32] = std::array::from_fn(|_| AtomicU64::new(0));
        let play = |ops: [OpKind; 3]| {
            let mut context = Context { patience: u64::MAX, ..Context::default() };
            let mut compiled = compile(&program(ops));
            // SAFETY: the program's offsets lie in the 32 words, which both threads access atomically alone.
            unsafe { compiled.run(words.as_ptr().cast_mut().cast(), context.handle(), ROUNDS) }
        };
        let (post, wait) = (|at| OpKind::Post { width, at }, |at| OpKind::Wait { width, at });
        let add = || access(AccessKind::Add, 248);
        let (serve, answer) = std::thread::scope(|scope| {
            let other = scope.spawn(|| play([wait(0), add(), post(128)]));
            (play([post(0), wait(128), add()]), other.join().expect("the second thread runs through"))
        });
        assert_eq!((serve.passes, answer.passes), (ROUNDS, ROUNDS));
        assert_eq!(words[31].load(Ordering::Relaxed), 2 * ROUNDS);
    }
}

/// One word both ways: whoever posts waits for the other's post on the same word.
#[test]
fn two_threads_alternate_on_one_word() {
    const ROUNDS: u64 = 2_000;
    let word = AtomicU32::new(0);
    let (post, wait) = (OpKind::Post { width: Width::U32, at: 0 }, OpKind::Wait { width: Width::U32, at: 0 });
    let play = |ops: [OpKind; 2]| {
        let mut context = Context { patience: u64::MAX, ..Context::default() };
        let mut compiled = compile(&program(ops));
        // SAFETY: the program's one offset is the word.
        unsafe { compiled.run(word.as_ptr().cast(), context.handle(), ROUNDS) }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| play([wait.clone(), post.clone()]));
        play([post.clone(), wait.clone()]);
    });
    assert_eq!(u64::from(word.load(Ordering::Relaxed)), 2 * ROUNDS);
}

#[test]
fn a_turn_of_work_takes_a_plausible_time() {
    let ns = work_turn_ns().expect("calibrates");
    assert!(ns > 0.05, "{ns} ns for a multiplication and an addition that depend on each other");
}

#[test]
fn what_no_program_holds_is_refused_with_its_step() {
    let far = access(AccessKind::Load, 1 << 31);
    let none = OpKind::Flush { at: Address::Any(Vec::new()) };
    for (ops, says) in
        [(vec![(1, far)], "2 GiB"), (vec![(1, none)], "no elements"), (vec![(0, OpKind::Fence)], "never")]
    {
        let Err(error) = CompiledLoop::compile(&program_every(ops), &LockSites::NONE, 0, 1.0, &support::HOOKS) else {
            panic!("compiled what should be refused for {says}")
        };
        assert!(matches!(error, CompileError::InvalidOp { step: 0, .. }));
        assert!(error.to_string().contains(says), "{error}");
    }
    let uncalibrated = CompiledLoop::compile(&program([OpKind::Fence]), &LockSites::NONE, 0, 0.0, &support::HOOKS);
    assert!(matches!(uncalibrated, Err(CompileError::Calibration { .. })));
}

#[test]
#[should_panic(expected = "no multiple of 8")]
fn passes_must_fit_the_unrolling() {
    run(&mut compile(&program([access(AccessKind::Load, 0)])), &mut [0], &mut Context::default(), 12);
}

#[test]
fn a_listing_names_steps_passes_and_calls() {
    let text = compile(&program([access(AccessKind::Add, 64), OpKind::Pause])).listing().to_string();
    for part in ["one pass an iteration", "Access { kind: Add", "lock add", "Pause\n", "# pause", "(loop control)"] {
        assert!(text.contains(part), "no `{part}` in\n{text}");
    }
}

/// A pass of seconds had no clock read and no look at the stop word in it.
#[test]
fn a_long_work_ticks_each_20_us_and_can_be_given_up() {
    let ticks = |ns| {
        let mut context = Context::default();
        let done = run(&mut compile(&program([OpKind::Work(Nanos(ns))])), &mut [0; 1], &mut context, 1);
        assert!(context.log.iter().all(|called| *called == Called::Tick));
        (context.log.len(), done.passes, done.gave_up_in)
    };
    assert_eq!(ticks(20_000).0, 0, "short enough; the loop makes several passes at once of shorter ones");
    assert_eq!(ticks(1_010_000), (50, 1, None));
    assert_eq!(ticks(60_000_000), (support::TICKS_BEFORE_GIVING_UP, 0, Some(0)));
}
