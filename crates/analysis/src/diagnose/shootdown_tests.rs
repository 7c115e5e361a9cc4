//! Runs by hand in which one role gives memory back and another stalls, or does not.

use crate::testkit::Bench;
use plan::{MemoryStep, MemoryVerb, Nanos, Op, OpKind, Pages, Program, Region};
use record::{Diagnosis, KernelObservation, MemoryObservation, NsCount, Observation, Reading, Severity};

/// What the culprit does in an arm, by the arm's name.
const VERBS: [(&str, MemoryVerb); 5] = [
    ("punch", MemoryVerb::Punch),
    ("frees", MemoryVerb::Free),
    ("own-view", MemoryVerb::DontNeed),
    ("reuse", MemoryVerb::Reuse),
    ("batched", MemoryVerb::Punch),
];

fn op(verb: MemoryVerb, region: u32, chunk: u64) -> Op {
    let step = MemoryStep { verb, region, bytes: 1 << 20, chunk, pause: Nanos(0) };
    Op { every: 1, step: 0, kind: OpKind::Memory(step) }
}

/// The victim touches its own region and has populated the shared one; in `frees` it is in the culprit's process.
fn dress(arm: &str, program: &mut Program) {
    let region = |name: &str, shared| Region { name: name.into(), bytes: 1 << 20, shared, pages: Pages::Small };
    program.regions = vec![region("own", false), region("seg", true)];
    let [victim, culprit] = &mut program.workers[..] else { panic!("two workers") };
    victim.ops = vec![op(MemoryVerb::Touch, 0, 1 << 20)];
    victim.populate = vec![1];
    culprit.process = u32::from(arm != "frees");
    culprit.ops.clear();
    if let Some((name, verb)) = VERBS.iter().find(|(name, _)| *name == arm) {
        culprit.ops = vec![op(*verb, 1, if *name == "batched" { 65_536 } else { 4_096 })];
        culprit.steps = vec![format!("{} seg 4KiB", verb.name())];
    }
}

/// A victim that is hit so often, and whose one batch in five hundred takes so long, by arm.
fn run(arms: &[&str], hits: impl Fn(&str) -> u64, tail_ns: impl Fn(&str) -> u64) -> Bench {
    let mut bench = Bench::with_roles(arms, &["victim", "culprit"]);
    bench.programs(dress);
    bench.run(10, |_, block| 30.0 + f64::from(block % 3));
    for seen in &mut bench.observations {
        let (arm, hit) = (seen.arm.clone(), if seen.worker == 0 { hits(&seen.arm) } else { 0 });
        seen.counters.insert("tlb_shootdowns".into(), Reading::Counted { value: hit });
        let count = |ns, count| NsCount { ns, count };
        seen.memory = Some(match seen.worker {
            0 => MemoryObservation {
                batches: 10_000,
                uncorrected: vec![count(100, 9_980), count(tail_ns(&arm), 20)],
                ..MemoryObservation::default()
            },
            _ => MemoryObservation { calls: 500, ..MemoryObservation::default() },
        });
        let stall_ns = (hit > 100).then_some(2_100.0);
        seen.kernel = Some(KernelObservation { stall_ns, ..KernelObservation::default() });
    }
    bench
}

fn found(bench: &mut Bench) -> Option<Diagnosis> {
    bench.analyse().diagnosis.into_iter().find(|diagnosis| diagnosis.kind == "tlb_shootdown")
}

fn is_shot(arm: &str) -> bool {
    matches!(arm, "punch" | "frees")
}

fn usual(arms: &[&str]) -> Bench {
    run(arms, |arm| if is_shot(arm) { 490 } else { 1 }, |arm| if is_shot(arm) { 2_000 } else { 100 })
}

fn value(diagnosis: &Diagnosis, name: &str) -> Option<f64> {
    let row = diagnosis.evidence.iter().find(|row| row.name.contains(name));
    row.unwrap_or_else(|| panic!("no {name} in {:#?}", diagnosis.evidence)).value
}

#[test]
fn a_punched_victim_is_told_with_interrupts_a_call_and_the_stall_of_one() {
    let seen = found(&mut usual(&["quiet", "punch"])).expect("a diagnosis");
    assert_eq!((seen.severity, seen.arms.as_slice()), (Severity::High, ["punch".to_owned()].as_slice()));
    assert_eq!(
        (seen.fields.as_slice(), seen.roles.join(" ")),
        (["seg".to_owned()].as_slice(), "victim culprit".into())
    );
    assert_eq!(value(&seen, "interrupts of the CPU of `victim` a call"), Some(0.98));
    assert_eq!(value(&seen, "stall of `victim`"), Some(2_100.0));
    assert_eq!(value(&seen, "shootdown interrupts a second of the CPUs of `victim` in `punch`"), Some(4_900.0));
    assert_eq!(value(&seen, "dtlb_load_misses"), None, "missing is not zero");
    assert!(seen.text.contains("`punch seg 4KiB`") && seen.text.contains("0.980 interrupts"), "{}", seen.text);
    assert_eq!(seen.expected_gain, None, "doing nothing is no cure: {}", seen.cure);
    assert!(seen.cure.contains("fewer processes map it"), "{}", seen.cure);
}

#[test]
fn a_thread_that_frees_is_cured_by_using_again_and_the_gain_is_this_run_s() {
    let seen = found(&mut usual(&["quiet", "frees", "reuse"])).expect("a diagnosis");
    let gain = seen.expected_gain.clone().expect("`reuse` holds the cure");
    assert_eq!(gain.arm, "reuse");
    assert!((gain.ratio.median - 20.0).abs() < 1e-6, "{gain:?}");
    assert!(seen.text.contains("share an address space") && seen.cure.contains("M_MMAP_THRESHOLD"), "{seen:#?}");
}

#[test]
fn processes_and_threads_are_told_apart_and_each_has_its_own_cure() {
    let all = usual(&["quiet", "punch", "own-view", "frees", "reuse"]).analyse().diagnosis;
    let of: Vec<_> = all.iter().filter(|seen| seen.kind == "tlb_shootdown").collect();
    let [first, second] = of[..] else { panic!("two: {all:#?}") };
    let gain = |arm: &str| [first, second].iter().find(|d| d.arms == [arm]).and_then(|d| d.expected_gain.clone());
    assert_eq!(gain("punch").map(|gain| gain.arm).as_deref(), Some("reuse"));
    assert_eq!(gain("frees").map(|gain| gain.arm).as_deref(), Some("reuse"));
}

#[test]
fn larger_pieces_and_the_own_view_are_cures_where_they_gain() {
    let gain = |bench: &mut Bench| found(bench).and_then(|seen| seen.expected_gain).map(|gain| gain.arm);
    assert_eq!(gain(&mut usual(&["punch", "own-view"])).as_deref(), Some("own-view"));
    assert_eq!(gain(&mut usual(&["punch", "batched", "own-view"])).as_deref(), Some("batched"));
    let useless = |arm: &str| if arm == "batched" || is_shot(arm) { 490 } else { 1 };
    let mut bench = run(&["punch", "batched"], useless, |_| 2_000);
    assert_eq!(found(&mut bench), None, "larger pieces that gain nothing are an answer, and nothing else was compared");
}

#[test]
fn the_pattern_without_its_cost_or_the_cost_without_interrupts_is_none() {
    let mut harmless = run(&["quiet", "punch"], |arm| if is_shot(arm) { 490 } else { 1 }, |_| 100);
    assert_eq!(found(&mut harmless), None);
    let mut uninterrupted = run(&["quiet", "punch"], |_| 40, |arm| if is_shot(arm) { 2_000 } else { 100 });
    assert_eq!(found(&mut uninterrupted), None, "as many interrupts in both");
    let own = |arm: &str| if arm == "own-view" { 2_000 } else { 100 };
    assert_eq!(found(&mut run(&["quiet", "own-view"], |_| 1, own)), None, "another process's view is its own");
}

#[test]
fn workers_on_one_cpu_and_victims_that_map_nothing_are_not_shot_at() {
    let with = |change: fn(&mut Program)| {
        let mut bench = usual(&["quiet", "punch"]);
        bench.programs(|_, program| change(program));
        found(&mut bench)
    };
    assert!(with(|_| ()).is_some());
    assert_eq!(with(|program| program.workers[1].cpu = program.workers[0].cpu), None);
    assert_eq!(with(|program| program.workers[0].populate.clear()), None);
}

#[test]
fn without_counts_of_interrupts_the_times_speak_and_the_evidence_says_what_is_missing() {
    let mut bench = usual(&["quiet", "punch"]);
    let denied = Reading::Denied { why: "tracefs is not mounted".into(), cure: "mount it".into() };
    let change = |seen: &mut Observation| {
        seen.counters.insert("tlb_shootdowns".into(), Reading::Unsupported { why: "no such row".into() });
        seen.kernel = Some(KernelObservation { missing: Some(denied.clone()), ..KernelObservation::default() });
    };
    bench.observations.iter_mut().for_each(change);
    let seen = found(&mut bench).expect("a diagnosis");
    let source = |name: &str| &seen.evidence.iter().find(|row| row.name.contains(name)).expect("a row").source;
    assert_eq!(source("shootdown interrupts a second"), "missing: no such row");
    assert_eq!(source("stall of `victim`"), "missing: tracefs is not mounted; mount it");
    assert!(!seen.text.contains("interrupts of the CPU"), "{}", seen.text);
}

#[test]
fn a_victim_without_batches_pays_by_its_passes() {
    let mut bench = usual(&["quiet", "punch"]);
    for seen in bench.observations.iter_mut().filter(|o| o.worker == 0) {
        seen.memory = None;
        seen.ns_per_op = seen.ns_per_op.map(|ns| if seen.arm == "punch" { ns * 1.4 } else { ns });
    }
    let seen = found(&mut bench).expect("a diagnosis");
    assert!(seen.text.contains("a pass takes 1.40 times"), "{}", seen.text);
    assert_eq!(seen.severity, Severity::Medium);
}
