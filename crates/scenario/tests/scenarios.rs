//! The files in `scenarios/` and its `cases/`: each parses, binds to two CPUs, and says what it is about; and its
//! README knows the whole schema.

use plan::event::COUNTERS;
use plan::expect::{HostFact, Metric, Subject};
use plan::{ArmKind, Cpu, CpuId, Repetitions, Topology, bind};
use scenario::schema;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

fn files() -> Vec<PathBuf> {
    let entries = [folder(), folder().join("cases")].map(|folder| std::fs::read_dir(folder).expect("scenarios"));
    let mut files: Vec<PathBuf> = entries.into_iter().flatten().map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    files
}

fn two_cpus() -> Topology {
    let cpu = |id| Cpu { id: CpuId(id), core: id, llc: 0, node: 0, socket: 0, usable: true };
    Topology { cpus: vec![cpu(0), cpu(1)] }
}

#[test]
fn the_library_s_questions_are_there() {
    let stems: Vec<String> =
        files().iter().map(|path| path.file_stem().expect("a stem").to_string_lossy().into_owned()).collect();
    for name in [
        "adjacent_line",
        "fairness",
        "false_sharing",
        "first_touch",
        "hold_time",
        "lock_kinds",
        "lock_layout",
        "one_slow_holder",
        "open_loop",
        "reader_writer",
        "robust_owner_dies",
        "spin_vs_sleep",
        "mutex",
        "ping_pong",
        "plain_vs_atomic",
        "read_mostly",
        "sharded_counter",
        "true_sharing",
    ] {
        assert!(stems.iter().any(|stem| stem == name), "{name}.toml is missing from {stems:?}");
    }
}

#[test]
fn every_scenario_parses_and_binds_to_two_cpus() {
    for path in files() {
        let loaded = scenario::load(&path).unwrap_or_else(|refusal| panic!("{}", refusal.render(false)));
        let plan = &loaded.plan;
        assert!(plan.question.ends_with('?'), "{}: the question is {:?}", path.display(), plan.question);
        assert!(!plan.expects.is_empty(), "{}: claims nothing", path.display());
        let bound =
            bind(plan, &two_cpus(), 1).unwrap_or_else(|error| panic!("{}", loaded.source.refuse(&error).render(false)));
        for arm in &bound.arms {
            let why = arm.program.as_ref().err().map(|why| &why.why);
            assert_eq!(why, None, "{}: arm {}", path.display(), arm.arm.name);
        }
    }
}

/// A run should be done before a student looks away: windows and warm-ups together stay under 13 seconds, and with the
/// starting of processes under 15.
#[test]
fn no_scenario_takes_longer_than_fifteen_seconds() {
    for path in files() {
        let plan = scenario::load(&path).unwrap_or_else(|refusal| panic!("{}", refusal.render(false))).plan;
        let Repetitions::Fixed(blocks) = plan.measure.repetitions else { panic!("{}: not fixed", path.display()) };
        assert!(plan.arms.iter().all(|arm| arm.kind == ArmKind::Variant));
        let arm_ns = |arm: &plan::Arm| arm.window.0 + arm.warm_up.0;
        let longest = plan.arms.iter().map(arm_ns).max().expect("an arm");
        let roles = plan.arms[0].case.roles.len() as u64;
        let variants: u64 = plan.arms.iter().map(arm_ns).sum();
        // The control arm has as many blocks as a variant, the baselines half as many.
        let blocks = u64::from(blocks);
        let baselines = roles + 1 + u64::from(plan.arms[0].case.tries_first());
        let total = (variants + longest) * blocks + baselines * longest * blocks.div_ceil(2);
        assert!(total < 13_000_000_000, "{}: {} ms", path.display(), total / 1_000_000);
    }
}

/// The examples in the README: pieces are put behind the smallest scenario.
#[test]
fn the_readmes_examples_are_sound() {
    let readme = std::fs::read_to_string(folder().join("README.md")).expect("scenarios/README.md");
    let blocks: Vec<&str> = readme.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let [smallest, pieces @ ..] = blocks.as_slice() else { panic!("the README has no example") };
    assert!(pieces.len() >= 3);
    let thinking = smallest.replace("[\"add hits[me]\"]", "[\"add hits[me]\", \"work $think\"]");
    for piece in std::iter::once(&"").chain(pieces) {
        let base = if piece.contains("think") { &thinking } else { *smallest };
        let text = format!("{base}{piece}");
        scenario::parse("README.md", &text).unwrap_or_else(|refusal| panic!("{}", refusal.render(false)));
    }
}

#[test]
fn the_readme_explains_every_name_of_the_schema() {
    let readme = std::fs::read_to_string(folder().join("README.md")).expect("scenarios/README.md");
    let known = |name: &str| readme.contains(&format!("`{name}`")) || readme.contains(&format!("`{name} "));
    let keys = schema::SECTIONS.iter().flat_map(|(_, keys)| keys.iter());
    let words =
        [schema::BARE_PATHS, schema::STRATEGIES, schema::TYPES, schema::CPUS, schema::BASELINES, &["every", "timeout"]];
    let verbs = schema::VERBS.iter().map(|verb| verb.name);
    let kinds = plan::LockKind::ALL.into_iter().map(plan::LockKind::name);
    let metrics = [Subject::Role, Subject::Lock, Subject::Layout].into_iter().flat_map(Metric::names);
    let claims = metrics.chain(HostFact::ALL.map(|(fact, _)| fact));
    let counters = COUNTERS.map(|(name, _)| name);
    for name in
        keys.chain(counters.iter()).chain(words.into_iter().flatten()).copied().chain(verbs).chain(kinds).chain(claims)
    {
        assert!(known(name), "scenarios/README.md does not explain `{name}`");
    }
    for element in schema::ELEMENTS {
        assert!(known(&format!("[{element}]")), "scenarios/README.md does not explain `[{element}]`");
    }
    for path in files() {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        assert!(readme.contains(&name), "scenarios/README.md does not list {name}");
    }
}
