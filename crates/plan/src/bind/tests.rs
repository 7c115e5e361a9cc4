//! Whole plans bound to machines on paper.

use super::{Bound, bind};
use crate::fixtures::{Scene, plan_of, two_cpus, two_sockets};
use crate::placement::Strategy;
use crate::program::{AccessKind, Address, OpKind, Program};
use crate::region::{MemoryStep, MemoryVerb, Pages};
use crate::scenario::{Count, CpuChoice, Width};
use crate::units::{PAGE_BYTES, WorkerIndex};
use std::collections::BTreeMap;

fn counters(workers: u32) -> Scene {
    Scene::new().any_field("hits", Width::U64, Count::PerWorker, None).role("counter", workers, &["add hits[me]"])
}

fn bound(scene: &Scene) -> Bound {
    bind(&plan_of(vec![scene.arm("packed")]), &two_cpus(), 7).unwrap()
}

fn program<'a>(bound: &'a Bound, arm: &str) -> &'a Program {
    bound.arms.iter().find(|b| b.arm.name == arm).expect("an arm of that name").program.as_ref().unwrap()
}

fn refused(scene: &Scene) -> super::BindError {
    let error = bind(&plan_of(vec![scene.arm("v")]), &two_cpus(), 0).unwrap_err();
    assert!(!error.cure.is_empty(), "{error}");
    error
}

/// Offsets of the fixed accesses of a worker's pass.
fn offsets(program: &Program, worker: usize) -> Vec<u64> {
    let fixed = program.workers[worker].ops.iter().filter_map(|op| match &op.kind {
        OpKind::Access { at: Address::Fixed(at), .. } => Some(*at),
        _ => None,
    });
    fixed.collect()
}

#[test]
fn a_packed_scenario_becomes_operations_on_neighbouring_offsets() {
    let bound = bound(&counters(2));
    let names: Vec<&str> = bound.arms.iter().map(|b| b.arm.name.as_str()).collect();
    assert_eq!(names, ["packed", "solo:counter", "unshared:packed", "control"]);
    let packed = program(&bound, "packed");
    assert_eq!((offsets(packed, 0), offsets(packed, 1)), (vec![0], vec![8]));
    assert_eq!((packed.layout.bytes, packed.area_bytes, packed.seed, packed.shares_cpu), (16, 16, 7, false));
    assert_eq!(packed.workers.iter().map(|w| w.cpu.0).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(packed.workers[1].steps, ["add hits[me]"]);
    let control = program(&bound, "control");
    assert_eq!(Program { arm: "packed".to_owned(), ..control.clone() }, *packed);
}

#[test]
fn a_solo_arm_keeps_index_cpu_and_layout_of_its_worker() {
    let scene = counters(1).role("reader", 1, &["load hits[all]"]);
    let bound = bound(&scene);
    let (full, solo) = (program(&bound, "packed"), program(&bound, "solo:reader"));
    let in_full = &full.workers[1];
    assert_eq!((in_full.process, solo.workers.len()), (1, 1));
    assert_eq!(solo.workers[0], crate::WorkerProgram { process: 0, ..in_full.clone() });
    assert_eq!((solo.workers[0].index, solo.workers[0].role), (WorkerIndex(1), 1));
    let places = |p: &Program| p.layout.placed.iter().map(|p| (p.field.clone(), p.offset)).collect::<Vec<_>>();
    assert_eq!(places(solo), places(full));
    assert!(solo.layout.placed.iter().all(|p| p.writers.is_empty() && p.readers == [WorkerIndex(1)]));
}

#[test]
fn an_unshared_arm_copies_fields_and_locks_at_the_same_place_in_a_page() {
    let scene = Scene::new()
        .field("x")
        .lock("m", None)
        .role("counter", 2, &["lock m", "bump x", "unlock m"])
        .placed(Strategy::Packed, 40);
    let bound = bound(&scene);
    let unshared = program(&bound, "unshared:packed");
    assert_eq!((offsets(unshared, 0), offsets(unshared, 1)), (vec![40], vec![40 + 4096]));
    assert_eq!(unshared.locks.iter().map(|lock| lock.offset).collect::<Vec<_>>(), [48, 48 + 4096]);
    let locks = |worker: usize| unshared.workers[worker].ops.iter().map(|op| op.kind.clone()).collect::<Vec<_>>();
    assert_eq!(locks(1)[0], OpKind::Lock { lock: 1, shared: false, timeout: None });
    assert_eq!(locks(0)[2], OpKind::Unlock { lock: 0, shared: false });
    assert_eq!(unshared.area_bytes, 4096 + 48 + crate::LockKind::BYTES);
    assert_eq!(unshared.layout, program(&bound, "packed").layout);
}

#[test]
fn all_expands_and_any_lists_its_addresses() {
    let scene = Scene::new().array("x", 3).role("r", 1, &["every 4 load x[all]", "store x[any]", "fence"]);
    let bound = bound(&scene);
    let ops = &program(&bound, "packed").workers[0].ops;
    assert_eq!(offsets(program(&bound, "packed"), 0), [0, 8, 16]);
    assert_eq!(ops.iter().map(|op| (op.every, op.step)).collect::<Vec<_>>(), [(4, 0), (4, 0), (4, 0), (1, 1), (1, 2)]);
    let at = Address::Any(vec![0, 8, 16]);
    assert_eq!(ops[3].kind, OpKind::Access { kind: AccessKind::Store, width: Width::U64, at });
    assert_eq!(ops[4].kind, OpKind::Fence);
}

#[test]
fn a_lock_that_no_role_takes_is_not_placed() {
    let scene = Scene::new().field("x").lock("idle", None).lock("m", None).role("r", 1, &["lock m", "unlock m"]);
    let bound = bound(&scene);
    let packed = program(&bound, "packed");
    assert_eq!(packed.locks.iter().map(|lock| lock.name.as_str()).collect::<Vec<_>>(), ["m"]);
    assert_eq!(packed.workers[0].ops[0].kind, OpKind::Lock { lock: 0, shared: false, timeout: None });
    assert_eq!(packed.layout.placed.len(), 1);
}

#[test]
fn a_region_is_placed_nowhere_and_copied_for_each_worker_of_an_unshared_arm() {
    let scene = Scene::new().field("x").region("a", 1).region("b", 1000).role("r", 2, &["add x", "every 3 touch b"]);
    let bound = bound(&scene);
    let packed = program(&bound, "packed");
    let pages: Vec<_> = packed.regions.iter().map(|region| (region.name.as_str(), region.pages())).collect();
    assert_eq!(pages, [("a", 1), ("b", 1000)]);
    for worker in &packed.workers {
        let touch = &worker.ops[1];
        assert_eq!((touch.every, touch.step, &touch.kind), (3, 1, &OpKind::Memory(touched(1, 1000))));
        assert!(worker.can_block(), "the stop word is looked at after each pass");
    }
    assert_eq!((packed.layout.placed.len(), packed.area_bytes), (1, 8));
    assert!(packed.longest_pass().0 >= 1_000 * 1_000, "a fault a page is waited for");
    let unshared = program(&bound, "unshared:packed");
    assert_eq!(unshared.regions, [packed.regions.as_slice(), &packed.regions].concat());
    assert_eq!(unshared.workers[1].ops[1].kind, OpKind::Memory(touched(3, 1000)));
}

fn touched(region: u32, pages: u64) -> MemoryStep {
    let bytes = pages * PAGE_BYTES;
    MemoryStep { verb: MemoryVerb::Touch, region, bytes, chunk: bytes, pause: crate::Nanos(0) }
}

#[test]
fn shared_regions_that_somebody_maps_lie_in_one_file_for_each_kind_of_page() {
    let mut scene =
        Scene::new().shared_region("a", 2).region("own", 1).shared_region("idle", 4).shared_region("b", 512);
    scene.0.regions[3].pages = Pages::Huge;
    scene = scene.shared_region("c", 8).role("victim", 1, &["touch own"]).role("culprit", 1, &["punch b"]);
    scene.0.roles[0].populate = vec![0, 4];
    let bound = bound(&scene);
    let (packed, unshared) = (program(&bound, "packed"), program(&bound, "unshared:packed"));
    assert_eq!(packed.workers[0].populate, [0, 4]);
    assert_eq!(packed.shared_file(Pages::Small), (vec![Some(0), None, None, None, Some(2 * 4096)], 10 * 4096));
    assert_eq!(packed.shared_file(Pages::Huge), (vec![None, None, None, Some(0), None], 512 * 4096));
    assert_eq!(packed.longest_populate().0, 10 * 50_000);
    // Each on its own copy: nobody punches what another maps.
    assert_eq!(unshared.shared_file(Pages::Huge).0[8], Some(0));
    assert!(unshared.maps(&unshared.workers[1], 8) && !unshared.maps(&unshared.workers[1], 3));
    assert!(packed.maps(&packed.workers[0], 1) && !packed.maps(&packed.workers[1], 1));
}

#[test]
fn a_role_that_begins_later_does_so_in_its_baselines_too() {
    let mut scene = counters(1).role("late", 1, &["add hits[me]"]);
    scene.0.roles[1].after = crate::units::Nanos(5_000_000);
    let bound = bound(&scene);
    let after = |arm: &str| program(&bound, arm).workers.iter().map(|worker| worker.after.0).collect::<Vec<_>>();
    assert_eq!((after("packed"), after("unshared:packed")), (vec![0, 5_000_000], vec![0, 5_000_000]));
    assert_eq!((after("solo:counter"), after("solo:late")), (vec![0], vec![5_000_000]));
}

#[test]
fn a_role_that_joins_the_one_before_it_is_of_its_process() {
    let mut scene = counters(1).role("culprit", 2, &["pause"]).role("other", 1, &["pause"]).oversubscribed();
    scene.0.roles[1].joins = true;
    let bound = bound(&scene);
    let processes = |arm: &str| program(&bound, arm).workers.iter().map(|worker| worker.process).collect::<Vec<_>>();
    assert_eq!(processes("packed"), [0, 0, 0, 1]);
    assert_eq!(processes("solo:culprit"), [0], "alone in a process of its own");
}

#[test]
fn threads_fill_processes_role_by_role() {
    let mut scene = counters(1).role("threaded", 6, &["pause"]).role("last", 2, &["pause"]).oversubscribed();
    scene.0.roles[1].threads = 3;
    let bound = bound(&scene);
    let of = |arm: &str| program(&bound, arm).workers.iter().map(|worker| worker.process).collect::<Vec<_>>();
    assert_eq!(of("packed"), [0, 1, 1, 1, 2, 2, 2, 3, 4]);
    let lengths: Vec<usize> = program(&bound, "packed").processes().map(<[_]>::len).collect();
    assert_eq!(lengths, [1, 3, 3, 1, 1]);
    assert_eq!(of("unshared:packed"), of("packed"));
    assert_eq!((of("solo:threaded"), of("solo:last")), (vec![0], vec![0]));
}

#[test]
fn an_open_loop_records_latencies() {
    let mut scene = counters(1).role("open", 1, &["pause"]).role("timed", 1, &["pause"]).oversubscribed();
    scene.0.roles[1].period = Some(crate::Nanos(20_000));
    scene.0.roles[2].latency = true;
    let bound = bound(&scene);
    let of = |arm: &str| program(&bound, arm).workers.iter().map(|w| (w.period, w.latency)).collect::<Vec<_>>();
    let open = (Some(crate::Nanos(20_000)), true);
    assert_eq!(of("packed"), [(None, false), open, (None, true)]);
    assert_eq!(of("solo:open"), [open]);
}

#[test]
fn a_plain_arm_is_the_variant_with_its_locks_untimed() {
    let bound = bound(&Scene::new().lock("m", None).role("r", 2, &["lock m timeout 700", "unlock m"]));
    let (packed, plain) = (program(&bound, "packed"), program(&bound, "plain"));
    assert!(packed.timed_locks && !plain.timed_locks);
    assert_eq!(Program { arm: "packed".to_owned(), timed_locks: true, ..plain.clone() }, *packed);
    assert_eq!(packed.longest_pass(), crate::Nanos(700));
}

/// Comparing kinds compares algorithms: were a lock's place to follow its kind, layouts would be compared as well.
#[test]
fn the_layout_is_the_same_with_every_kind_of_lock() {
    use crate::lock::LockKind;
    let of = |kind, strategy: &Strategy| {
        let scene = Scene::new()
            .any_field("x", Width::U64, Count::PerWorker, None)
            .lock_of("m", kind)
            .role("writer", 1, &["lock m", "bump x[me]", "unlock m"])
            .role("reader", 1, &["rlock m", "load x[0]", "runlock m"])
            .placed(strategy.clone(), 0);
        let bound = bound(&scene);
        program(&bound, "packed").layout.clone()
    };
    for strategy in [Strategy::Packed, Strategy::Declared, Strategy::Pad(64), Strategy::ByWriter, Strategy::HotCold] {
        for kind in LockKind::ALL {
            let (first, layout) = (of(LockKind::Pthread, &strategy), of(kind, &strategy));
            let places = |layout: &crate::Layout| {
                let placed = layout.placed.iter().map(|p| (p.field.clone(), p.element, p.offset, p.bytes));
                (placed.collect::<Vec<_>>(), layout.bytes)
            };
            assert_eq!(places(&layout), places(&first), "{} under {strategy:?}", kind.name());
            let lock = layout.placed.iter().find(|placed| placed.lock).expect("the lock is taken");
            let (writers, readers) = (lock.writers.as_slice(), lock.readers.as_slice());
            let expected: (&[_], &[_]) = match kind {
                LockKind::Seqlock => (&[WorkerIndex(0)], &[WorkerIndex(1)]),
                _ => (&[WorkerIndex(0), WorkerIndex(1)], &[]),
            };
            assert_eq!((writers, readers), expected, "{}", kind.name());
        }
    }
}

#[test]
fn a_loop_without_memory_needs_none() {
    let bound = bound(&Scene::new().role("r", 2, &["work 100", "pause"]));
    assert_eq!((program(&bound, "packed").area_bytes, program(&bound, "unshared:packed").area_bytes), (0, 0));
}

#[test]
fn an_arm_that_does_not_fit_leaves_the_others_and_their_references() {
    let plan = plan_of(vec![counters(1).arm("packed"), counters(2).arm("packed"), counters(4).arm("packed")]);
    let bound = bind(&plan, &two_cpus(), 0).unwrap();
    let states: Vec<bool> = bound.arms.iter().map(|b| b.program.is_ok()).collect();
    assert_eq!(states, [true, true, false, true, true, true]);
    assert_eq!(program(&bound, "control").workers.len(), 2);
    let on_large = bind(&plan, &two_sockets(), 0).unwrap();
    assert_eq!(program(&on_large, "control").workers.len(), 4);
}

#[test]
fn with_no_arm_that_fits_every_arm_says_why() {
    let bound = bind(&plan_of(vec![counters(3).arm("packed")]), &two_cpus(), 0).unwrap();
    assert_eq!(bound.arms.len(), 4);
    assert!(bound.arms.iter().all(|b| b.program.as_ref().is_err_and(|n| n.why.contains("needs 3 CPUs"))));
}

#[test]
fn sharing_a_cpu_shows() {
    let bound = bound(&counters(3).oversubscribed());
    assert!(program(&bound, "packed").shares_cpu);
    assert!(!program(&bound, "solo:counter").shares_cpu);
}

#[test]
fn text_errors_come_before_what_the_machine_lacks() {
    let scene = Scene::new().array("x", 1).role("counter", 64, &["add x[me]"]);
    assert_eq!(refused(&scene).path, "role.counter.loop.0");
}

#[test]
fn placement_errors_name_the_scenarios_key() {
    let declared = |a: Option<u64>, b: Option<u64>| {
        Scene::new()
            .any_field("a", Width::U64, Count::One, a)
            .any_field("b", Width::U64, Count::One, b)
            .role("r", 1, &["add a", "add b"])
            .placed(Strategy::Declared, 0)
    };
    assert_eq!(refused(&declared(Some(0), Some(4))).path, "field.b.at");
    assert_eq!(refused(&declared(Some(4), None)).path, "field.a.at");
    let lock = Scene::new().lock("m", Some(4)).role("r", 1, &["lock m", "unlock m"]).placed(Strategy::Declared, 0);
    assert_eq!(refused(&lock).path, "lock.m.at");
    let offsets = BTreeMap::from([("hits".to_owned(), vec![0, 4])]);
    let explicit = counters(2).placed(Strategy::Explicit(offsets), 0);
    assert_eq!(refused(&explicit).path, "variant.v.placement");
    let shifted = counters(2).placed(Strategy::Packed, 4);
    assert_eq!(refused(&shifted).path, "variant.v.placement");
    let mut arm = shifted.arm("v");
    arm.sweep = vec![("shift".to_owned(), "4".to_owned())];
    assert_eq!(bind(&plan_of(vec![arm]), &two_cpus(), 0).unwrap_err().path, "sweep.shift");
    let mut arm = explicit.arm("v");
    arm.sweep = vec![("placement".to_owned(), "…".to_owned())];
    assert_eq!(bind(&plan_of(vec![arm]), &two_cpus(), 0).unwrap_err().path, "sweep.placement");
}

#[test]
fn impossible_numbers_are_refused() {
    let huge = Scene::new().array("x", u32::MAX).role("r", 1, &["load x[any]"]);
    assert_eq!(refused(&huge).path, "field.x.count");
    let crowd = counters(u32::MAX).oversubscribed();
    assert_eq!(refused(&crowd).path, "role.counter.workers");
    let long = Scene::new().array("x", 40_000).role("r", 1, &["load x[all]", "store x[all]"]);
    assert!(refused(&long).message.contains("step `store x[all]` makes the pass longer than 65536"));
}

#[test]
fn posts_and_waits_need_a_definite_element() {
    for step in ["post x[any]", "wait x[all]"] {
        let error = refused(&Scene::new().array("x", 2).role("r", 1, &["pause", step]));
        assert_eq!(error.path, "role.r.loop.1");
        assert!(error.message.contains(&format!("step `{step}` stands for several elements")), "{error}");
    }
}

#[test]
fn cpus_that_no_machine_of_this_shape_has_are_not_applicable() {
    let bound = bound(&counters(2).on(CpuChoice::CrossSocket));
    let why = &bound.arms[0].program.as_ref().unwrap_err().why;
    assert!(why.contains("needs usable CPUs on 2 sockets"), "{why}");
}
