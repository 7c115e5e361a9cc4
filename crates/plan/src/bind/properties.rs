//! What holds for every bound plan: operations stay inside the area, on the elements their steps name; copies share
//! nothing.

use super::{Bound, bind};
use crate::fixtures::{Scene, plan_of, two_cpus, two_sockets};
use crate::lock::LockKind;
use crate::placement::Strategy;
use crate::program::{Address, OpKind, Program, WorkerProgram};
use crate::scenario::{Arm, ArmKind, Case, Count, Width};
use crate::units::LINE_PAIR_BYTES;
use proptest::prelude::{Just, ProptestConfig, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::strategy::Strategy as Generator;
use proptest::test_runner::TestCaseError;
use std::collections::BTreeSet;

/// A step as numbers, made valid for the fields there are.
type Draw = (usize, prop::sample::Index, prop::sample::Index, u32, Section);

/// What stands around a step.
#[derive(Copy, Clone, Debug)]
enum Section {
    Bare,
    Locked { shared: bool, timeout: bool },
}

fn section() -> impl Generator<Value = Section> {
    let locked = (any::<bool>(), any::<bool>()).prop_map(|(shared, timeout)| Section::Locked { shared, timeout });
    prop_oneof![Just(Section::Bare), locked]
}

/// The step in its section: as the lock's kind allows, and its reader where it reads again.
fn within(section: Section, kind: LockKind, verb: &str, text: String) -> Vec<String> {
    let Section::Locked { shared, timeout } = section else { return vec![text] };
    let repeats = matches!(verb, "load" | "pause" | "work 50");
    let r = if shared && (kind != LockKind::Seqlock || repeats) { "r" } else { "" };
    let timeout = if timeout && kind.times_out() { " timeout 1000" } else { "" };
    vec![format!("{r}lock m{timeout}"), text, format!("{r}unlock m")]
}

fn field() -> impl Generator<Value = (Width, Count)> {
    let width = prop_oneof![Just(Width::U8), Just(Width::U16), Just(Width::U32), Just(Width::U64)];
    let count = prop_oneof![Just(Count::One), Just(Count::PerWorker), (1u32..20).prop_map(Count::Fixed)];
    (width, count)
}

fn step(draw: &Draw, fields: &[(Width, Count)], kind: LockKind) -> Vec<String> {
    let (verb, field, element, every, section) = draw;
    let verb = ["load", "store", "bump", "add", "swap", "cas", "flush", "post", "wait", "pause", "work 50"][*verb];
    let every = if *every > 1 { format!("every {every} ") } else { String::new() };
    if verb == "pause" || verb == "work 50" {
        return within(*section, kind, verb, format!("{every}{verb}"));
    }
    let field = field.index(fields.len());
    let definite = verb == "post" || verb == "wait";
    let brackets = match fields[field].1 {
        Count::One => String::new(),
        count => {
            let own = if let Count::Fixed(n) = count { format!("[{}]", n - 1) } else { "[me]".to_owned() };
            let choices = [own, "[next]".to_owned(), "[all]".to_owned(), "[any]".to_owned()];
            choices[element.index(if definite { 2 } else { 4 })].clone()
        }
    };
    within(*section, kind, verb, format!("{every}{verb} f{field}{brackets}"))
}

fn scene() -> impl Generator<Value = Scene> {
    let draw = (0usize..11, any::<prop::sample::Index>(), any::<prop::sample::Index>(), 1u32..4, section());
    let role = (1u32..4, 1u32..3, prop::collection::vec(draw, 1..6));
    let kind = prop::sample::select(LockKind::ALL.to_vec());
    let rule = prop_oneof![
        Just(Strategy::Packed),
        Just(Strategy::Declared),
        (0u32..9).prop_map(|power| Strategy::Pad(1 << power)),
        Just(Strategy::ByWriter),
        Just(Strategy::HotCold),
    ];
    let shift = (0u64..32).prop_map(|eights| eights * 8);
    (prop::collection::vec(field(), 1..5), prop::collection::vec(role, 1..4), rule, shift, kind).prop_map(
        |(fields, roles, rule, shift, kind)| {
            let mut scene = Scene::new().lock("idle", None).lock_of("m", kind).placed(rule, shift).oversubscribed();
            for (f, (width, count)) in fields.iter().enumerate() {
                scene = scene.any_field(&format!("f{f}"), *width, *count, None);
            }
            for (r, (processes, threads, draws)) in roles.iter().enumerate() {
                let steps: Vec<String> = draws.iter().flat_map(|draw| step(draw, &fields, kind)).collect();
                let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
                scene = scene.role(&format!("role{r}"), processes * threads, &steps);
                scene.0.roles[r].threads = *threads;
            }
            scene
        },
    )
}

/// Byte ranges that a worker's operation can touch.
fn ranges(program: &Program, kind: &OpKind) -> Vec<(u64, u64)> {
    let spread = |at: &Address, bytes: u64| match at {
        Address::Fixed(at) => vec![(*at, bytes)],
        Address::Any(list) => list.iter().map(|at| (*at, bytes)).collect(),
    };
    match kind {
        OpKind::Access { width, at, .. } => spread(at, width.bytes()),
        OpKind::Flush { at } => spread(at, 1),
        OpKind::Post { width, at } | OpKind::Wait { width, at } => vec![(*at, width.bytes())],
        OpKind::Lock { lock, .. } | OpKind::Unlock { lock, .. } => {
            let lock = &program.locks[*lock as usize];
            vec![(lock.offset, LockKind::BYTES)]
        }
        _ => Vec::new(),
    }
}

/// The name that a step's target or lock has.
fn object(case: &Case, worker: &WorkerProgram, step: u32) -> Option<(String, bool)> {
    use crate::step::Action;
    match &case.roles[worker.role as usize].steps[step as usize].action {
        Action::Lock { lock, .. } | Action::Unlock { lock, .. } => Some((case.locks[*lock].name.clone(), true)),
        action => action.target().map(|target| (case.fields[target.field].name.clone(), false)),
    }
}

/// Every operation lies inside the area, on a placed element of what its step names, in its worker's copy.
fn operations_hit_their_elements(arm: &Arm, program: &Program) -> Result<(), TestCaseError> {
    let unshared = arm.kind == ArmKind::Unshared;
    let stride = (arm.case.placement.shift + program.layout.bytes).next_multiple_of(4096);
    for (nth, worker) in program.workers.iter().enumerate() {
        let base = if unshared { nth as u64 * stride } else { 0 };
        for op in &worker.ops {
            for (at, bytes) in ranges(program, &op.kind) {
                prop_assert!(at + bytes <= program.area_bytes);
                let (name, lock) = object(&arm.case, worker, op.step).expect("an operation on memory has a target");
                let placed = program.layout.placed.iter();
                let hit = placed.filter(|p| p.offset + base == at).find(|p| p.field == name && p.lock == lock);
                prop_assert!(hit.is_some_and(|p| p.bytes >= bytes), "{} at {at} is no place of `{name}`", arm.name);
            }
        }
    }
    Ok(())
}

/// No two workers of an unshared arm touch one pair of lines.
fn copies_share_no_line_pair(program: &Program) -> Result<(), TestCaseError> {
    let mut taken: BTreeSet<u64> = BTreeSet::new();
    for worker in &program.workers {
        let touched = worker.ops.iter().flat_map(|op| ranges(program, &op.kind));
        let pairs: BTreeSet<u64> =
            touched.flat_map(|(at, bytes)| at / LINE_PAIR_BYTES..=(at + bytes - 1) / LINE_PAIR_BYTES).collect();
        prop_assert!(taken.is_disjoint(&pairs));
        taken.extend(pairs);
    }
    Ok(())
}

/// The layout says who touches what, as the operations do.
fn layout_names_who_touches(arm: &Arm, program: &Program) -> Result<(), TestCaseError> {
    if arm.kind == ArmKind::Unshared {
        return Ok(());
    }
    for placed in &program.layout.placed {
        let touches = |worker: &&WorkerProgram| {
            let mut touched = worker.ops.iter().flat_map(|op| ranges(program, &op.kind));
            touched.any(|(at, _)| at == placed.offset)
        };
        let by_ops: BTreeSet<_> = program.workers.iter().filter(touches).map(|worker| worker.index).collect();
        let by_layout: BTreeSet<_> = placed.writers.iter().chain(&placed.readers).copied().collect();
        prop_assert_eq!(by_ops, by_layout);
    }
    Ok(())
}

/// What a worker takes it releases in the same pass and the same way, and it waits with a timeout only where that
/// works.
fn locks_are_given_back(program: &Program) -> Result<(), TestCaseError> {
    for worker in &program.workers {
        let mut held = None;
        for op in &worker.ops {
            match op.kind {
                OpKind::Lock { lock, shared, timeout } => {
                    let kind = program.locks[lock as usize].kind;
                    prop_assert!(timeout.is_none() || kind.times_out(), "{}", kind.name());
                    prop_assert_eq!(held.replace((lock, shared)), None);
                }
                OpKind::Unlock { lock, shared } => prop_assert_eq!(held.take(), Some((lock, shared))),
                _ => {}
            }
        }
        prop_assert_eq!(held, None);
    }
    Ok(())
}

/// Processes are numbered from 0 without a gap, in the order of the workers, and hold threads of one role.
fn processes_hold_threads_of_one_role(arm: &Arm, program: &Program) -> Result<(), TestCaseError> {
    let mut next = 0;
    for pair in program.workers.windows(2) {
        prop_assert!(pair[1].process == pair[0].process || pair[1].process == pair[0].process + 1);
    }
    for threads in program.workers.chunk_by(|one, other| one.process == other.process) {
        prop_assert_eq!(threads[0].process, next);
        next += 1;
        prop_assert!(threads.iter().all(|worker| worker.role == threads[0].role));
        let solo = matches!(arm.kind, ArmKind::Solo { .. });
        let wanted = if solo { 1 } else { arm.case.roles[threads[0].role as usize].threads };
        prop_assert_eq!(threads.len() as u32, wanted);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_program_touches_what_its_steps_name(scene in scene(), large in any::<bool>(), seed in any::<u64>()) {
        let machine = if large { two_sockets() } else { two_cpus() };
        let plan = plan_of(vec![scene.arm("v")]);
        let bound: Bound = bind(&plan, &machine, seed).expect("a valid scenario");
        prop_assert_eq!(&bound, &bind(&plan, &machine, seed).expect("a valid scenario"));
        for arm in &bound.arms {
            let program = arm.program.as_ref().expect("oversubscribed workers always fit");
            operations_hit_their_elements(&arm.arm, program)?;
            layout_names_who_touches(&arm.arm, program)?;
            locks_are_given_back(program)?;
            processes_hold_threads_of_one_role(&arm.arm, program)?;
            if arm.arm.kind == ArmKind::Unshared {
                copies_share_no_line_pair(program)?;
            }
        }
    }
}
