//! What an accepted scenario becomes: arms and their names, overrides, sweeps, defaults, steps, placements, claims.

use plan::expect::{Against, HostFact, Metric, Quantile, Relation};
use plan::{
    Action, ArmKind, Baseline, Count, CpuChoice, CpuId, Element, MemoryStep, MemoryVerb, Nanos, Pages, Plan,
    Repetitions, Strategy, Target, Width,
};

fn parse(text: &str) -> Plan {
    parse_with(text, &[])
}

fn parse_with(text: &str, flags: &[(&str, &str)]) -> Plan {
    let flags: Vec<(String, String)> =
        flags.iter().map(|(path, value)| (path.to_string(), value.to_string())).collect();
    let loaded = scenario::parse_with("dir/some lab.toml", text, &flags);
    loaded.unwrap_or_else(|refusal| panic!("{}", refusal.render(false))).plan
}

fn arm_names(plan: &Plan) -> Vec<&str> {
    plan.arms.iter().map(|arm| arm.name.as_str()).collect()
}

const SMALLEST: &str = "[field.f]\ntype = 'u16'\n[[role]]\nname = 'a'\nloop = ['load f']\n";

#[test]
fn defaults_are_those_of_the_readme() {
    let plan = parse(SMALLEST);
    assert_eq!((plan.name.as_str(), plan.title.as_str(), plan.question.as_str()), ("some_lab", "some_lab", ""));
    assert_eq!(plan.measure.repetitions, Repetitions::Fixed(10));
    assert_eq!(plan.measure.precision, 0.05);
    assert_eq!(plan.measure.budget, Nanos(20_000_000_000));
    assert_eq!(plan.measure.baselines, None);
    assert_eq!(plan.measure.headline_role, 0);
    let [arm] = plan.arms.as_slice() else { panic!("{:?}", arm_names(&plan)) };
    assert_eq!((arm.name.as_str(), arm.variant.as_str(), &arm.kind), ("base", "base", &ArmKind::Variant));
    assert_eq!((arm.window, arm.warm_up), (Nanos(100_000_000), Nanos(20_000_000)));
    assert!(arm.sweep.is_empty() && !arm.case.oversubscribe);
    assert_eq!((&arm.case.placement.strategy, arm.case.placement.shift), (&Strategy::Packed, 0));
    let role = &arm.case.roles[0];
    assert_eq!((role.workers, role.threads, &role.cpus), (1, 1, &CpuChoice::Spread));
    assert_eq!((role.period, role.latency), (None, false));
    let field = &arm.case.fields[0];
    assert_eq!((field.width, field.count, field.at), (Width::U16, Count::One, None));
}

#[test]
fn measure_keys_are_read() {
    let plan = parse(&format!(
        "oversubscribe = true\nplacement = 'hot-cold'\n[measure]\nwindow = '1.5s'\nwarm_up = '0ms'\n\
         repetitions = 'auto'\n\
         precision = '2.5%'\nbudget = '1min'\nbaselines = ['unshared']\nheadline = 'b'\n{SMALLEST}\
         [[role]]\nname = 'b'\ncpus = [3, 1]\nworkers = 2\nloop = ['pause']\n"
    ));
    assert_eq!(plan.measure.repetitions, Repetitions::Auto);
    assert_eq!(plan.measure.precision, 0.025);
    assert_eq!(plan.measure.budget, Nanos(60_000_000_000));
    assert_eq!(plan.measure.baselines, Some(vec![Baseline::Unshared]));
    assert_eq!(plan.measure.headline_role, 1);
    let arm = &plan.arms[0];
    assert_eq!((arm.window, arm.warm_up), (Nanos(1_500_000_000), Nanos(0)));
    assert!(arm.case.oversubscribe);
    assert_eq!(arm.case.placement.strategy, Strategy::HotCold);
    assert_eq!(arm.case.roles[1].cpus, CpuChoice::List(vec![CpuId(3), CpuId(1)]));
}

#[test]
fn events_are_read_one_by_one_and_claims_name_those_that_have_names() {
    let with = |events: &str, claim: &str| {
        format!("[measure]\nevents = {events}\n{SMALLEST}[[expect]]\nclaim = '{claim} <= 1'\n")
    };
    let plan = parse(&with(
        "['cache-misses, cpu/event=0xd1,umask=1,name=l1_hits/u', 'sched:sched_switch']",
        "l1_hits_per_op(base)",
    ));
    let keys: Vec<&str> = plan.measure.events.iter().map(|event| event.key()).collect();
    assert_eq!(keys, ["cache-misses", "l1_hits", "sched:sched_switch"]);
    assert_eq!(plan.expects[0].left.metric, plan::expect::Metric::CounterPerOp("l1_hits".to_owned()));
    assert_eq!(parse(&with("'faults'", "faults_per_second(base)")).measure.events.len(), 1, "one string will do");
    assert_eq!(parse(SMALLEST).measure.events, []);
    let flagged = parse_with(&with("'faults'", "faults_per_op(base)"), &[("measure.events", "[\"r1,r2\", \"r3\"]")]);
    assert_eq!(flagged.measure.events.len(), 3, "the flag's, though the claim is on one of the file's");
}

#[test]
fn every_step_is_read() {
    let plan = parse(
        "[region.heap]\nsize = '4KiB'\n[region.seg]\nsize = '1MiB'\nshared = true\n[lock.m]\n[field.s]\ntype = 'u8'\n[field.a]\ntype = 'u32'\ncount = 4\n\
         [field.w]\ntype = 'u64'\neach = 'worker'\n\
         [[role]]\nname = 'r'\nloop = ['load s', 'store a[3]', 'bump w[me]', 'add a[next]', 'swap a[any]',\n\
         'cas a[all]',\n\
         'post s', 'wait s', 'flush  w[ me ]', 'every 64 lock m', 'every 64 unlock m',\n\
         'work 1.5us', 'sleep 1ms', 'pause',\n\
         'fence', 'yield', 'touch heap', 'punch seg 64KiB  chunk 4KiB pause 10us', 'remove seg 8KiB', 'dontneed seg',\n\
         'protect heap pause 1us', 'map heap 4KiB', 'unmap heap 4KiB', 'free heap chunk 512B', 'reuse heap',\n\
         'rlock m  timeout 1ms', 'runlock m', 'die']\n",
    );
    let (s, a, w) = (0, 1, 2);
    let at = |field, element| Target { field, element };
    let steps = &plan.arms[0].case.roles[0].steps;
    let actions: Vec<&Action> = steps.iter().map(|step| &step.action).collect();
    let expected = [
        Action::Load(at(s, Element::Only)),
        Action::Store(at(a, Element::At(3))),
        Action::Bump(at(w, Element::Me)),
        Action::Add(at(a, Element::Next)),
        Action::Swap(at(a, Element::Any)),
        Action::Cas(at(a, Element::All)),
        Action::Post(at(s, Element::Only)),
        Action::Wait(at(s, Element::Only)),
        Action::Flush(at(w, Element::Me)),
        Action::Lock { lock: 0, shared: false, timeout: None },
        Action::Unlock { lock: 0, shared: false },
        Action::Work(Nanos(1_500)),
        Action::Sleep(Nanos(1_000_000)),
        Action::Pause,
        Action::Fence,
        Action::Yield,
        memory(MemoryVerb::Touch, 0, 4 << 10, 4 << 10, 0),
        memory(MemoryVerb::Punch, 1, 64 << 10, 4 << 10, 10_000),
        memory(MemoryVerb::Remove, 1, 8 << 10, 8 << 10, 0),
        memory(MemoryVerb::DontNeed, 1, 1 << 20, 1 << 20, 0),
        memory(MemoryVerb::Protect, 0, 4 << 10, 4 << 10, 1_000),
        memory(MemoryVerb::Map, 0, 4 << 10, 4 << 10, 0),
        memory(MemoryVerb::Unmap, 0, 4 << 10, 4 << 10, 0),
        memory(MemoryVerb::Free, 0, 4 << 10, 512, 0),
        memory(MemoryVerb::Reuse, 0, 4 << 10, 4 << 10, 0),
        Action::Lock { lock: 0, shared: true, timeout: Some(Nanos(1_000_000)) },
        Action::Unlock { lock: 0, shared: true },
        Action::Die,
    ];
    assert_eq!(actions, expected.iter().collect::<Vec<_>>());
    assert_eq!(expected.len(), scenario::schema::VERBS.len(), "a verb is not read here");
    assert_eq!(steps.iter().map(|step| step.every).filter(|every| *every == 64).count(), 2);
    assert_eq!(steps[8].text, "flush w[me]");
    assert_eq!(steps[9].text, "every 64 lock m");
    assert_eq!(steps[17].text, "punch seg 64KiB chunk 4KiB pause 10us");
    assert_eq!(steps[25].text, "rlock m timeout 1ms");
}

fn memory(verb: MemoryVerb, region: u32, bytes: u64, chunk: u64, pause_ns: u64) -> Action {
    Action::Memory(MemoryStep { verb, region, bytes, chunk, pause: Nanos(pause_ns) })
}

#[test]
fn regions_and_late_roles_are_read_and_set_like_any_other_key() {
    let plan = parse(
        "[measure]\nwindow = '10ms'\n[region.heap]\nsize = '4000KiB'\n[region.tiny]\nsize = '4096B'\n\
         [[variant]]\nname = 'small'\n[variant.set]\n'region.heap.size' = '1GiB'\n'role.r.after' = '9000us'\n\
         [[role]]\nname = 'r'\nafter = '5ms'\nloop = ['every 2 touch tiny', 'touch heap']\n\
         [sweep]\n'region.tiny.size' = ['4KiB', '8KiB']\n",
    );
    assert_eq!(arm_names(&plan), ["small@region.tiny.size=4KiB", "small@region.tiny.size=8KiB"]);
    let case = &plan.arms[1].case;
    let regions: Vec<_> = case.regions.iter().map(|region| (region.name.as_str(), region.pages())).collect();
    assert_eq!(regions, [("heap", 1 << 18), ("tiny", 2)]);
    assert_eq!(case.roles[0].after, Nanos(9_000_000));
    assert_eq!(case.roles[0].steps[0].action, memory(MemoryVerb::Touch, 1, 8 << 10, 8 << 10, 0));
    assert_eq!(parse(SMALLEST).arms[0].case.roles[0].after, Nanos(0));
}

#[test]
fn regions_are_of_one_process_or_of_all_and_of_three_kinds_of_page() {
    let plan = parse(
        "[region.a]\nsize = '4MiB'\nshared = true\npages = '2MiB'\n[region.b]\nsize = '12KiB'\npages = 'transparent'\n\
         [region.c]\nsize = '4KiB'\n\
         [[role]]\nname = 'r'\npopulate = ['c', 'a']\nloop = ['touch $r']\n\
         [sweep]\nr = ['b']\n'region.b.pages' = ['4KiB', 'transparent']\n",
    );
    let kinds = |arm: usize| -> Vec<(bool, Pages)> {
        plan.arms[arm].case.regions.iter().map(|region| (region.shared, region.pages)).collect()
    };
    assert_eq!(kinds(0), [(true, Pages::Huge), (false, Pages::Small), (false, Pages::Small)]);
    assert_eq!(kinds(1), [(true, Pages::Huge), (false, Pages::Transparent), (false, Pages::Small)]);
    assert_eq!(plan.arms[0].case.roles[0].populate, [2, 0]);
}

#[test]
fn rates_latencies_and_threads_are_read_and_set_like_any_other_key() {
    let with = |keys: &str| parse(&format!("[[role]]\nname = 'a'\nworkers = 6\n{keys}\nloop = ['pause']\n"));
    let role = |keys: &str| with(keys).arms[0].case.roles[0].clone();
    for (rate, ns) in [
        ("50k/s", 20_000),
        ("11/s", 90_909_091),
        ("7M/s", 143),
        ("1.5M/s", 667),
        ("10M/s", 100),
        ("12.5k/s", 80_000),
        ("1000/s", 1_000_000),
    ] {
        let role = role(&format!("rate = '{rate}'"));
        assert_eq!((role.period, role.latency), (Some(Nanos(ns)), true), "{rate}");
    }
    let (timed, threaded) = (role("latency = true"), role("threads = 3"));
    assert_eq!((timed.period, timed.latency, threaded.threads, threaded.workers), (None, true, 3, 6));
}

#[test]
fn a_variant_opens_a_loop_and_a_sweep_runs_over_threads() {
    let plan = parse(
        "[[variant]]\nname = 'closed'\n[[variant]]\nname = 'open'\n[variant.set]\n'role.a.rate' = '1k/s'\n\
         [[role]]\nname = 'a'\nworkers = 4\nlatency = true\nloop = ['pause']\n[sweep]\n'role.a.threads' = [1, 4]\n",
    );
    let seen: Vec<_> =
        plan.arms.iter().map(|arm| &arm.case.roles[0]).map(|r| (r.period, r.latency, r.threads)).collect();
    let period = Some(Nanos(1_000_000));
    assert_eq!(seen, [(None, true, 1), (None, true, 4), (period, true, 1), (period, true, 4)]);
}

#[test]
fn a_sweep_runs_over_every_kind_of_lock_and_a_variant_sets_one() {
    let kinds: Vec<String> = plan::LockKind::ALL.iter().map(|kind| format!("'{}'", kind.name())).collect();
    let text = "[lock.m]\n[lock.n]\n[[variant]]\nname = 'v'\n[variant.set]\n'lock.n.kind' = 'pthread-robust'\n\
         [[role]]\nname = 'a'\nloop = ['lock m', 'unlock m', 'rlock n', 'runlock n']\n[sweep]\n";
    let plan = parse(&format!("{text}'lock.m.kind' = [{}]\n", kinds.join(", ")));
    let swept: Vec<plan::LockKind> = plan.arms.iter().map(|arm| arm.case.locks[0].kind).collect();
    assert_eq!(swept, plan::LockKind::ALL);
    assert!(plan.arms.iter().all(|arm| arm.case.locks[1].kind == plan::LockKind::PthreadRobust));
    assert_eq!(parse("[lock.m]\n[[role]]\nname = 'a'\nloop = ['pause']\n").arms[0].case.locks[0].kind, swept[0]);
}

#[test]
fn claims_name_the_plain_arm() {
    let text = |kind: &str| {
        format!(
            "[lock.m]\nkind = '{kind}'\n[[role]]\nname = 'a'\nworkers = 2\nloop = ['lock m', 'unlock m']\n\
             [[expect]]\nclaim = 'ns_per_op(base) <= 1.2 * ns_per_op(plain)'\n"
        )
    };
    assert_eq!(parse(&text("semaphore")).expects.len(), 1);
    let refused = scenario::parse("x.toml", &text("futex")).expect_err("nothing is tried first").render(false);
    assert!(refused.contains("there will be no arm `plain`") && refused.contains("nothing to price"), "{refused}");
}

#[test]
fn every_placement_is_read() {
    let placed = |value: &str| {
        let text = format!("placement = {value}\n[lock.m]\n[field.g]\ntype = 'u64'\ncount = 2\n{SMALLEST}");
        let placement = parse(&text).arms[0].case.placement.clone();
        (placement.strategy, placement.shift)
    };
    assert_eq!(placed("'packed'"), (Strategy::Packed, 0));
    assert_eq!(placed("'declared'"), (Strategy::Declared, 0));
    assert_eq!(placed("'by-writer'"), (Strategy::ByWriter, 0));
    assert_eq!(placed("'hot-cold'"), (Strategy::HotCold, 0));
    assert_eq!(placed("{ pad = 128 }"), (Strategy::Pad(128), 0));
    assert_eq!(placed("{ pad = 128, shift = 60 }"), (Strategy::Pad(128), 60));
    assert_eq!(placed("{ shift = 56 }"), (Strategy::Packed, 56));
    assert_eq!(placed("{ strategy = 'by-writer', shift = 8 }"), (Strategy::ByWriter, 8));
    let offsets = [("f", vec![192]), ("g", vec![0, 64]), ("m", vec![256])];
    let offsets = offsets.into_iter().map(|(name, list)| (name.to_owned(), list)).collect();
    assert_eq!(placed("{ offsets = { f = 192, g = [0, 64], m = 256 } }"), (Strategy::Explicit(offsets), 0));
}

#[test]
fn offsets_of_fields_count_under_declared_alone() {
    let text = "[field.f]\ntype = 'u64'\nat = 24\n[lock.m]\nat = 64\n[[role]]\nname = 'a'\nloop = ['load f']\n\
                [[variant]]\nname = 'c'\nplacement = 'declared'\n[[variant]]\nname = 'p'\n";
    let plan = parse(text);
    let at = |arm: usize| (plan.arms[arm].case.fields[0].at, plan.arms[arm].case.locks[0].at);
    assert_eq!((at(0), at(1)), ((Some(24), Some(64)), (None, None)));
}

const TWO_VARIANTS: &str = "[lock.m]\n[field.f]\ntype = 'u64'\neach = 'worker'\n\
     [[variant]]\nname = 'x'\n[[variant]]\nname = 'y'\nplacement = { pad = 64 }\n\
     [variant.set]\nmeasure.window = '5ms'\n'role.a.loop' = ['add f[me]', 'work $think']\n'field.f.count' = 8\n\
     [[role]]\nname = 'a'\nloop = ['add f[me]']\n[[role]]\nname = 'b'\nloop = ['lock m', 'unlock m']\n";

#[test]
fn keys_of_a_sweep_multiply_and_name_the_arms() {
    let sweep = "[sweep]\nworkers = [1, 2]\nthink = ['10ns', '1us']\n";
    let plan = parse(&format!("{TWO_VARIANTS}{sweep}"));
    assert_eq!(
        arm_names(&plan),
        [
            "x@workers=1,think=10ns",
            "x@workers=1,think=1us",
            "x@workers=2,think=10ns",
            "x@workers=2,think=1us",
            "y@workers=1,think=10ns",
            "y@workers=1,think=1us",
            "y@workers=2,think=10ns",
            "y@workers=2,think=1us",
        ]
    );
    let last = &plan.arms[7];
    assert_eq!(last.sweep, [("workers".to_owned(), "2".to_owned()), ("think".to_owned(), "1us".to_owned())]);
    assert_eq!(last.window, Nanos(5_000_000));
    assert_eq!(last.case.roles[0].workers, 2);
    assert_eq!(last.case.roles[0].steps[1].action, Action::Work(Nanos(1_000)));
    assert_eq!(last.case.roles[0].steps[1].text, "work 1us");
    assert_eq!(last.case.fields[0].count, Count::Fixed(8), "a variant's count replaces the field's each");
    assert_eq!(plan.arms[0].window, Nanos(100_000_000));
    assert_eq!(plan.arms[0].case.fields[0].count, Count::PerWorker);
}

#[test]
fn shift_and_kind_and_placement_can_be_swept() {
    let plan = parse(&format!(
        "{}[sweep]\nshift = [0, 56]\nkind = ['pthread']\n",
        TWO_VARIANTS.replace(", 'work $think'", "")
    ));
    let y = &plan.arms[3];
    assert_eq!(y.name, "y@shift=56,kind=pthread");
    assert_eq!((&y.case.placement.strategy, y.case.placement.shift), (&Strategy::Pad(64), 56));
    let plan = parse(&format!(
        "{SMALLEST}[sweep]\nplacement = ['packed', {{ pad = 64 }}]\n'role.a.cpus' = [[0], 'same-llc']\n"
    ));
    assert_eq!(
        arm_names(&plan),
        [
            "base@placement=packed,role.a.cpus=[0]",
            "base@placement=packed,role.a.cpus=same-llc",
            "base@placement={ pad = 64 },role.a.cpus=[0]",
            "base@placement={ pad = 64 },role.a.cpus=same-llc",
        ]
    );
}

#[test]
fn placeholders_stand_for_any_word_of_a_step() {
    let text = "[field.a]\ntype = 'u64'\ncount = 4\n[[role]]\nname = 'r'\nloop = ['every $n $verb a[$i]']\n\
                [sweep]\nn = [2]\nverb = ['cas']\ni = [3]\n";
    let steps = parse(text).arms[0].case.roles[0].steps.clone();
    assert_eq!(steps[0].text, "every 2 cas a[3]");
    assert_eq!((steps[0].every, &steps[0].action), (2, &Action::Cas(Target { field: 0, element: Element::At(3) })));
}

#[test]
fn flags_hold_in_every_arm_and_end_a_sweep_of_their_path() {
    let sweep =
        "[sweep]\nthink = ['10ns']\nworkers = [1, 2]\n[[expect]]\nclaim = 'ns_per_op(x@think=10ns,workers=1) > 1'\n";
    let text = format!("{TWO_VARIANTS}{sweep}");
    let plan = parse_with(&text, &[("workers", "4"), ("cpus", "[0, 1, 2, 3]"), ("role.b.cpus", "'same-core'")]);
    assert_eq!(arm_names(&plan), ["x@think=10ns,workers=4", "y@think=10ns,workers=4"]);
    for arm in &plan.arms {
        assert_eq!(arm.case.roles[0].workers, 4);
        assert_eq!(arm.case.roles[0].cpus, CpuChoice::List((0..4).map(CpuId).collect()));
        assert_eq!(arm.case.roles[1].cpus, CpuChoice::SameCore);
    }
    assert_eq!(plan.expects.len(), 1, "a claim may name an arm that the flag took away");
}

#[test]
fn claims_are_read() {
    let claims = [
        "ns_per_op(x) >= 3 * ns_per_op(y@workers=2,shift=8)",
        "wait_p999_ns(x@workers=2,shift=8, m) < 1e6",
        "llc_load_misses_per_op(y@ workers=2, shift=8, b) > 0.5*cache_misses_per_second(control)",
        "contention_solo(x@workers=2,shift=8) <= ns_per_op(unshared:x, a)",
        "bytes(solo:a)<=128",
        "hold_p50_ns(control, m) < latency_max_ns(control, a)",
    ];
    let sweep = "[sweep]\nworkers = [2]\nshift = [8]\n";
    let list: String =
        claims.iter().map(|claim| format!("[[expect]]\nclaim = '{claim}'\nwhen = 'llc_groups>=2'\n")).collect();
    let text = format!("{}{sweep}{list}", TWO_VARIANTS.replace(", 'work $think'", ""));
    // Without a sweep an arm has its variant's bare name.
    let text = text.replacen("ns_per_op(x) >=", "ns_per_op(x@workers=2,shift=8) >=", 1);
    let expects = parse(&text).expects;
    assert_eq!(expects[0].op, Relation::AtLeast);
    let Against::Scaled { factor, term } = &expects[0].right else { panic!("{:?}", expects[0]) };
    assert_eq!((*factor, term.arm.as_str(), &term.of), (3.0, "y@workers=2,shift=8", &None));
    assert_eq!(expects[1].left.metric, Metric::Wait(Quantile::P999));
    assert_eq!((expects[1].left.of.as_deref(), &expects[1].right), (Some("m"), &Against::Number(1e6)));
    assert_eq!(expects[2].left.metric, Metric::CounterPerOp("llc_load_misses".to_owned()));
    assert_eq!((expects[2].left.arm.as_str(), expects[2].left.of.as_deref()), ("y@workers=2,shift=8", Some("b")));
    let Against::Scaled { factor, term } = &expects[2].right else { panic!("{:?}", expects[2]) };
    assert_eq!((*factor, &term.metric), (0.5, &Metric::CounterPerSecond("cache_misses".to_owned())));
    let Against::Scaled { factor, term } = &expects[3].right else { panic!("{:?}", expects[3]) };
    assert_eq!((*factor, term.arm.as_str(), term.of.as_deref()), (1.0, "unshared:x", Some("a")));
    assert_eq!((&expects[4].left.metric, &expects[4].right), (&Metric::Bytes, &Against::Number(128.0)));
    assert_eq!(expects[5].left.metric, Metric::Hold(Quantile::P50));
    let Against::Scaled { term, .. } = &expects[5].right else { panic!("{:?}", expects[5]) };
    assert_eq!(term.metric, Metric::Latency(Quantile::Max));
    let when = expects[4].when.as_ref().expect("a condition");
    assert_eq!((when.fact, when.op, when.number), (HostFact::LlcGroups, Relation::AtLeast, 2));
}

/// Flags speak for the whole run, so they may set what no arm can have its own of. Refused until they were tried.
#[test]
fn a_flag_sets_what_holds_for_the_whole_run() {
    let text = "[measure]\nrepetitions = 4\n[[role]]\nname = 'a'\nloop = ['pause']\n";
    let plan = parse_with(text, &[("measure.repetitions", "7"), ("measure.window", "'30ms'")]);
    assert_eq!(plan.measure.repetitions, Repetitions::Fixed(7));
    assert!(plan.arms.iter().all(|arm| arm.window == Nanos(30_000_000)));
    assert_eq!(parse_with(text, &[("measure.repetitions", "'auto'")]).measure.repetitions, Repetitions::Auto);
    assert_eq!(parse_with(text, &[]).measure.repetitions, Repetitions::Fixed(4));
}

/// The file was judged on its own window before the flag was looked at.
#[test]
fn a_flag_makes_room_for_a_pass_that_is_longer_than_the_files_window() {
    let text = "[[role]]\nname = 'a'\nloop = ['sleep 1s']\n";
    assert!(scenario::parse("x.toml", text).is_err());
    let plan = parse_with(text, &[("measure.window", "'3s'")]);
    assert_eq!(plan.arms[0].window, Nanos(3_000_000_000));
}
