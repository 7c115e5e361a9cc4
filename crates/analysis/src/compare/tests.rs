//! Runs by hand, held against each other.

use super::*;
use crate::testkit::{Bench, Spot};
use record::{CompareRow, ConditionState, Host, Interval, ScenarioText, Tool, Verdict};

/// So much noise that no two blocks read the same, and as much in every arm.
fn noise(arm: &str, block: u32) -> f64 {
    1.0 + 0.004 * f64::from((block * 7 + arm.len() as u32 * 3) % 11)
}

/// Ten blocks of `packed` (two workers on one line) and `padded-64`, at so many nanoseconds.
fn bench(packed: f64, padded: f64) -> Bench {
    let mut bench = Bench::new(&["packed", "padded-64"]);
    bench.run(10, |arm, block| noise(arm, block) * if arm == "padded-64" { padded } else { packed });
    bench
}

fn run_of(mut bench: Bench, seed: u64) -> Run {
    let findings = bench.analyse();
    let text = || "test".to_owned();
    Run {
        schema_version: SCHEMA_VERSION,
        tool: Tool { version: text(), commit: None },
        command: text(),
        // That of the bench's own analysis is 7.
        seed,
        started_utc: format!("2026-11-30T00:00:{seed:02}Z"),
        duration_s: 1.0,
        host: Host {
            hostname: "here".into(),
            kernel: text(),
            cpu_model: text(),
            hypervisor: None,
            cpus: 2,
            llc_groups: 1,
            nodes: 1,
            sockets: 1,
            line_bytes: 64,
            ticks_per_second: 1e9,
            perf_event_paranoid: None,
            stolen_share: None,
        },
        scenario: ScenarioText { title: text(), question: text(), path: text(), sha256: "a1".into(), text: text() },
        method: findings.method,
        events: Vec::new(),
        arms: findings.arms,
        observations: bench.observations,
        expect: findings.expect,
        predictions: findings.predictions,
        diagnosis: findings.diagnosis,
        warnings: findings.warnings,
        code: None,
    }
}

fn at(host: &str, run: Run) -> Run {
    Run { host: Host { hostname: host.into(), ..run.host.clone() }, ..run }
}

fn of_scenario(sha256: &str, mut run: Run) -> Run {
    run.scenario.sha256 = sha256.into();
    run
}

fn compared(runs: &[Run], base: Option<&str>) -> Result<Comparison, CompareError> {
    let paths: Vec<String> = (0..runs.len()).map(|index| format!("run {index}")).collect();
    let named: Vec<NamedRun> = runs.iter().zip(&paths).map(|(run, path)| NamedRun { path, run }).collect();
    compare(&named, base)
}

fn row<'a>(comparison: &'a Comparison, variant: &str) -> &'a CompareRow {
    comparison.rows.iter().find(|row| row.variant == variant).unwrap()
}

fn holds_one(ratio: Option<Interval>) -> bool {
    ratio.is_some_and(|ratio| ratio.low <= 1.0 && 1.0 <= ratio.high)
}

#[test]
fn two_runs_of_one_scenario_do_not_differ() {
    let seen = compared(&[run_of(bench(20.0, 2.0), 1), run_of(bench(20.1, 2.0), 2)], None).unwrap();
    assert_eq!(seen.pairs[0].asks, Asks::Change);
    assert_eq!(seen.rows.len(), 2);
    for row in &seen.rows {
        assert_eq!((row.verdict, &row.why), (Verdict::NoDifference, &None), "{row:?}");
        let (ratio, told) = (row.ratio.unwrap(), row.smallest_effect.unwrap());
        assert!(holds_one(row.ratio) && told >= ratio.high / ratio.median - 1.0 && told < 0.2, "{row:?}");
        assert_eq!((row.run, row.base, row.host.as_str()), (1, 0, "here"));
    }
    let (shared, apart) = (row(&seen, "packed"), row(&seen, "padded-64"));
    let room = |row: &CompareRow| row.ratio.unwrap().high / row.measured_ratio.unwrap().high;
    assert!(room(shared) > room(apart) && room(apart) > 1.0, "room for what no probe saw, and for what a line may do");
    assert!(seen.pairs[0].differences.iter().all(|one| one.what == "seed"), "{:?}", seen.pairs);
}

#[test]
fn a_change_shows_in_the_variant_that_it_is_in() {
    let seen = compared(&[run_of(bench(20.0, 2.0), 1), run_of(bench(30.0, 1.0), 2)], None).unwrap();
    let (slower, faster) = (row(&seen, "packed"), row(&seen, "padded-64"));
    assert_eq!((slower.verdict, faster.verdict), (Verdict::Slower, Verdict::Faster));
    assert!((slower.ratio.unwrap().median - 1.5).abs() < 1e-9 && (faster.ratio.unwrap().median - 0.5).abs() < 1e-9);
    assert!(slower.slowest_worker_ratio.unwrap().low > 1.0);
    assert_eq!((slower.ns_per_op.base.is_some(), slower.bytes.base), (true, 16));
}

#[test]
fn what_the_cores_did_between_the_runs_is_no_change() {
    let mut slow = bench(20.0, 2.2);
    slow.observations.iter_mut().for_each(|o| o.core_loop_ns *= 1.12);
    let seen = compared(&[run_of(bench(20.0, 2.0), 1), run_of(slow, 2)], None).unwrap();
    let padded = row(&seen, "padded-64");
    assert!(!holds_one(padded.measured_ratio) && holds_one(padded.ratio), "{padded:?}");
    assert_eq!(padded.verdict, Verdict::NoDifference);
    let told = seen.pairs[0].differences.iter().find(|one| one.what.contains("times the cores")).unwrap();
    assert_eq!(told.matters.as_deref(), Some("the intervals have room for it"));
}

#[test]
fn shared_lines_of_unlike_machines_are_not_compared_and_others_are() {
    let mut unlike = bench(40.0, 1.0);
    for o in &mut unlike.observations {
        (o.contended_before_ns, o.contended_after_ns) = (Some(2.4), Some(2.4));
    }
    let base = run_of(bench(20.0, 2.0), 1);
    let seen = compared(&[base.clone(), run_of(unlike, 2)], None).unwrap();
    let packed = row(&seen, "packed");
    assert_eq!(packed.verdict, Verdict::Unresolved);
    assert!(packed.why.as_ref().unwrap().contains("not alike: a contended pass takes 2.00 ns"), "{packed:?}");
    assert_eq!(row(&seen, "padded-64").verdict, Verdict::Faster);
    let told: Vec<&str> = seen.pairs[0].differences.iter().map(|one| one.what.as_str()).collect();
    assert!(told.starts_with(&["a contended pass"]), "{told:?}");
    // The same where `packed` lies apart now: its figure is good whatever a line does.
    let spots = vec![Spot::data("hits", 0, &[0], &[]), Spot::data("hits", 64, &[1], &[]).nth(1)];
    let mut apart = bench(2.0, 2.0).with_layout("packed", spots);
    for o in &mut apart.observations {
        (o.transfer_before_ns, o.transfer_after_ns) = (Some(200.0), Some(200.0));
    }
    let seen = compared(&[base, run_of(apart, 3)], None).unwrap();
    assert_eq!(row(&seen, "packed").verdict, Verdict::Faster);
    let told = &seen.pairs[0].differences;
    assert!(told.iter().any(|one| one.what == "one way of a line" && one.run.as_deref() == Some("200 ns")), "{told:?}");
    assert!(told.iter().any(|one| one.what == "layout of packed"), "{told:?}");
}

#[test]
fn one_scenario_on_two_hosts_asks_how_the_hosts_differ() {
    let mut far = bench(20.0, 2.2);
    for o in &mut far.observations {
        (o.transfer_before_ns, o.transfer_after_ns) = (Some(200.0), Some(200.0));
        o.core_loop_ns *= 1.12;
    }
    let runs = [run_of(bench(30.0, 2.0), 1), at("there", run_of(far, 2))];
    let seen = compared(&runs, None).unwrap();
    assert_eq!(seen.pairs[0].asks, Asks::Hosts);
    assert_eq!(row(&seen, "padded-64").verdict, Verdict::Slower, "the slower cores are the answer");
    assert_eq!(row(&seen, "packed").verdict, Verdict::Faster, "and so is the longer way");
    assert!(seen.rows.iter().all(|row| row.ratio == row.measured_ratio && row.host == "there"));
    let changed = of_scenario("b2", runs[1].clone());
    let seen = compared(&[runs[0].clone(), changed], None).unwrap();
    assert_eq!(seen.pairs[0].asks, Asks::Change);
    let host = seen.pairs[0].differences.iter().find(|one| one.what == "host").unwrap();
    assert!(host.matters.as_ref().unwrap().contains("do not tell which"), "{host:?}");
}

#[test]
fn each_run_is_held_against_the_first_of_its_host() {
    let run = |host, seed| at(host, run_of(bench(20.0, 2.0), seed));
    let seen = compared(&[run("a", 1), run("b", 2), run("a", 3), run("b", 4)], None).unwrap();
    let pairs: Vec<(usize, usize, Asks)> = seen.pairs.iter().map(|pair| (pair.run, pair.base, pair.asks)).collect();
    assert_eq!(pairs, [(1, 0, Asks::Hosts), (2, 0, Asks::Change), (3, 1, Asks::Change)]);
}

#[test]
fn variants_of_one_run_have_the_runs_own_ratios() {
    let run = run_of(bench(20.0, 2.0), 7);
    let best = |arm: &str| run.arms.iter().find(|a| a.name == arm).unwrap();
    let (ratio, slowest) = (best("packed").ratio_to_best, best("packed").roles[0].slowest_worker_ratio_to_best);
    let seen = compared(std::slice::from_ref(&run), Some("padded-64")).unwrap();
    assert_eq!((seen.pairs[0].asks, seen.rows.len()), (Asks::Variants, 1));
    assert_eq!((seen.rows[0].ratio, seen.rows[0].slowest_worker_ratio), (ratio, slowest));
    assert_eq!((seen.rows[0].verdict, seen.rows[0].base_variant.as_str()), (Verdict::Slower, "padded-64"));
    let control = compared(&[run], Some("control")).unwrap();
    assert_eq!(row(&control, "packed").verdict, Verdict::NoDifference);
}

#[test]
fn the_control_arm_speaks_for_its_own_variant() {
    let coarse = |seed| {
        let mut run = run_of(bench(if seed == 1 { 20.0 } else { 26.0 }, if seed == 1 { 2.0 } else { 2.6 }), seed);
        run.method.resolution = Some(0.4);
        run
    };
    let seen = compared(&[coarse(1), coarse(2)], None).unwrap();
    let packed = row(&seen, "packed");
    assert!(packed.ratio.unwrap().low > 1.0 && packed.smallest_effect == Some(0.4), "{packed:?}");
    assert_eq!(packed.verdict, Verdict::Unresolved);
    assert!(packed.why.as_ref().unwrap().contains("less than the 40 %"), "{packed:?}");
    assert_eq!(row(&seen, "padded-64").verdict, Verdict::Slower);
    let mut none = coarse(2);
    none.method.resolution = None;
    let seen = compared(&[coarse(1), none], None).unwrap();
    assert!(row(&seen, "packed").why.as_ref().unwrap().contains("resolved nothing"));
    assert_eq!(row(&seen, "padded-64").verdict, Verdict::Slower);
}

#[test]
fn an_interval_that_would_hide_a_doubling_is_no_verdict() {
    let mut wild = bench(20.0, 2.0);
    for o in wild.observations.iter_mut().filter(|o| o.arm == "padded-64") {
        o.ns_per_op = o.ns_per_op.map(|ns| ns * if o.block % 2 == 0 { 0.5 } else { 2.5 });
    }
    let seen = compared(&[run_of(bench(20.0, 2.0), 1), run_of(wild, 2)], None).unwrap();
    assert!(row(&seen, "padded-64").why.as_ref().unwrap().contains("hide a doubling"), "{:?}", seen.rows);
}

#[test]
fn what_has_no_figure_says_why() {
    let mut few = bench(20.0, 2.0);
    few.observations.retain(|o| o.arm != "padded-64" || o.block < 2);
    let seen = compared(&[run_of(bench(20.0, 2.0), 1), run_of(few, 2)], None).unwrap();
    let padded = row(&seen, "padded-64");
    assert_eq!((padded.verdict, padded.ratio, padded.smallest_effect), (Verdict::Unresolved, None, None));
    assert!(padded.why.as_ref().unwrap().contains("`padded-64` of the run has no figure: 2 repetitions"), "{padded:?}");
    let mut placed = run_of(bench(20.0, 2.0), 2);
    let arm = placed.arms.iter_mut().find(|arm| arm.name == "padded-64").unwrap();
    (arm.state, arm.why) = (record::ArmState::NotApplicable, Some("needs 4 CPUs".into()));
    (arm.roles, arm.workers) = (Vec::new(), Vec::new());
    let seen = compared(&[placed, run_of(bench(20.0, 2.0), 1)], None).unwrap();
    let padded = row(&seen, "padded-64");
    assert_eq!(padded.why.as_deref(), Some("`padded-64` of the base cannot run there: needs 4 CPUs"));
}

#[test]
fn lone_variants_are_compared_whatever_they_are_called() {
    let lone = |name: &str, ns: f64, seed| {
        let mut bench = Bench::new(&[name]);
        bench.run(8, |arm, block| noise(arm, block) * ns);
        of_scenario(name, run_of(bench, seed))
    };
    let seen = compared(&[lone("before", 20.0, 1), lone("after", 5.0, 2)], None).unwrap();
    let only = &seen.rows[0];
    assert_eq!((only.variant.as_str(), only.base_variant.as_str()), ("after", "before"));
    assert_eq!((only.verdict, seen.pairs[0].unmatched.len()), (Verdict::Faster, 0));
}

#[test]
fn what_one_side_lacks_is_told_and_nothing_in_common_is_refused() {
    let with = |names: &[&str], seed| {
        let mut bench = Bench::new(names);
        bench.run(6, |arm, block| noise(arm, block) * 2.0);
        run_of(bench, seed)
    };
    let seen = compared(&[with(&["a", "b"], 1), with(&["b", "c"], 2)], None).unwrap();
    let told: Vec<(&str, Side)> = seen.pairs[0].unmatched.iter().map(|one| (one.what.as_str(), one.only_in)).collect();
    assert_eq!(told, [("a", Side::Base), ("c", Side::Run)]);
    let said = compared(&[with(&["a", "b"], 1), with(&["c", "d"], 2)], None).unwrap_err().to_string();
    assert!(said.contains("`run 1` (c, d) and `run 0` (a, b) have no variant in common"), "{said}");
}

#[test]
fn what_cannot_be_compared_says_what_to_name() {
    let run = run_of(bench(20.0, 2.0), 1);
    let said = |runs: &[Run], base| compared(runs, base).unwrap_err().to_string();
    assert!(said(&[run.clone(), run.clone()], None).contains("`run 0` and `run 1` are the same run"));
    let alone = said(std::slice::from_ref(&run), None);
    assert!(alone.contains("name a second one") && alone.contains("--base ARM (packed, padded-64)"), "{alone}");
    let typo = said(std::slice::from_ref(&run), Some("paded-64"));
    assert!(typo.contains("no such arm") && typo.contains("did you mean `padded-64`?"), "{typo}");
}

fn judged(runs: &[Run], condition: &str) -> Result<ConditionState, ConditionError> {
    let mut seen = compared(runs, None).unwrap();
    judge(&mut seen, &[Condition::parse(condition).unwrap()])?;
    let worst = seen.conditions[0].rows.iter().map(|row| row.state).max();
    assert_eq!(worst, Some(seen.conditions[0].state));
    Ok(seen.conditions[0].state)
}

#[test]
fn a_condition_fails_passes_or_is_undecided_by_the_interval() {
    let runs = [run_of(bench(20.0, 2.0), 1), run_of(bench(20.0, 2.5), 2)];
    let state = |condition: &str| judged(&runs, condition).unwrap();
    let ends = row(&compared(&runs, None).unwrap(), "padded-64").ratio.unwrap();
    assert!(1.15 < ends.low && ends.high < 1.4, "{ends:?}");
    assert_eq!(state("padded-64 slower 5%"), ConditionState::Fails);
    assert_eq!(state("padded-64 counter slower 5%"), ConditionState::Fails);
    assert_eq!(state("padded-64 slower 25%"), ConditionState::Undecided);
    assert_eq!(state("padded-64 slower 50%"), ConditionState::Passes);
    assert_eq!(state("padded-64 faster 0%"), ConditionState::Passes);
    assert_eq!(state("packed slower 0.1%"), ConditionState::Undecided);
    let back = [runs[1].clone(), runs[0].clone()];
    assert_eq!(judged(&back, "padded-64 faster 5%"), Ok(ConditionState::Fails));
}

#[test]
fn a_condition_on_what_has_no_interval_is_undecided() {
    let mut few = bench(20.0, 2.0);
    few.observations.retain(|o| o.arm != "padded-64" || o.block < 2);
    let runs = [run_of(bench(20.0, 2.0), 1), run_of(few, 2)];
    assert_eq!(judged(&runs, "padded-64 slower 5%"), Ok(ConditionState::Undecided));
}

#[test]
fn a_condition_on_what_was_not_compared_is_refused() {
    let runs = [run_of(bench(20.0, 2.0), 1), run_of(bench(20.0, 2.0), 2)];
    let said = |condition: &str| judged(&runs, condition).unwrap_err().to_string();
    assert!(said("paded-64 slower 5%").contains("did you mean `padded-64`?"), "{}", said("paded-64 slower 5%"));
    let role = said("packed conter slower 5%");
    assert!(role.contains("`conter` is not among") && role.contains("did you mean `counter`?"), "{role}");
}

#[test]
fn conditions_look_at_hosts_only_where_nothing_else_was_compared() {
    let (before, after) = (run_of(bench(20.0, 2.0), 1), of_scenario("b2", run_of(bench(20.0, 2.0), 2)));
    let there = at("there", run_of(bench(20.0, 4.0), 3));
    assert_eq!(judged(&[before.clone(), there.clone()], "padded-64 slower 5%"), Ok(ConditionState::Fails));
    let all = [before, there, after];
    assert_eq!(judged(&all, "padded-64 slower 50%"), Ok(ConditionState::Passes), "the host that is slower is left out");
}

#[test]
fn counts_and_times_stand_beside_where_both_sides_have_them() {
    let times = |count| record::Percentiles { count, min: 1, mean: 2.0, p50: 2, p90: 3, p99: 4, p999: 5, max: 6 };
    let counted = |value| record::CounterSummary {
        measured: record::Measured {
            reading: record::Reading::Counted { value },
            per_op: Some(value as f64 / 100.0),
            per_second: None,
        },
        modelled: None,
    };
    let with = |seed, value: u64, named: &str| {
        let mut run = run_of(bench(20.0, 2.0), seed);
        let arm = &mut run.arms[0];
        arm.roles[0].counters.insert("llc_load_misses".into(), counted(value));
        arm.roles[0].counters.insert(named.into(), counted(value));
        arm.roles[0].latency_ns = Some(times(value));
        arm.roles[0].service_ns = (seed == 1).then(|| times(value));
        let lock = |wait_ns| record::LockSummary { lock: "m".into(), wait_ns, ..Default::default() };
        arm.locks = vec![lock(Some(times(value))), record::LockSummary { lock: named.into(), ..lock(Some(times(1))) }];
        run
    };
    let seen = compared(&[with(1, 10, "here only"), with(2, 30, "there only")], None).unwrap();
    let packed = row(&seen, "packed");
    assert_eq!(
        Vec::from_iter(&packed.counters),
        [(&"llc_load_misses".to_owned(), &record::Both { base: 0.1, run: 0.3 })]
    );
    assert_eq!(packed.percentiles.keys().collect::<Vec<_>>(), ["latency_ns"]);
    assert_eq!((seen.locks.len(), seen.locks[0].wait_ns.run.count), (1, 30));
}
