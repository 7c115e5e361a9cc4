//! Arms in figures: the kept repetitions of each arm as medians with intervals.

use crate::figures::{Figure, Series, fairness_jain, ns_per_op, ops_per_second, slowest_ns_per_op};
use crate::stats::{median_of, quantile};
use crate::view::View;
use crate::words::count;
use crate::{FEWEST_BLOCKS, counters, interval, locks, memory, times};
use plan::{ArmKind, BoundArm, Program, WorkerProgram};
use record::{
    ArmState, ArmSummary, Contention, Interval, LayoutRow, Observation, OtherRegime, Percentiles, Quantiles,
    RepetitionCount, RoleSummary, WorkerSummary,
};
use std::collections::{BTreeMap, BTreeSet};

/// One summary an arm, in the order of the bound plan.
pub(crate) fn arms(view: &View) -> Vec<ArmSummary> {
    let mut arms: Vec<ArmSummary> = view.bound.arms.iter().map(|arm| summary(view, arm)).collect();
    let ratios: Vec<Vec<RoleRatios>> =
        arms.iter().zip(&view.bound.arms).map(|(s, b)| ratios(view, b, s, &arms)).collect();
    for (arm, ratios) in arms.iter_mut().zip(ratios) {
        for (role, (median_worker, slowest_worker)) in arm.roles.iter_mut().zip(ratios) {
            role.ratio_to_best = median_worker;
            role.slowest_worker_ratio_to_best = slowest_worker;
        }
        let head = arm.roles.iter().find(|role| role.role == arm.headline_role);
        arm.ratio_to_best = head.and_then(|role| role.ratio_to_best);
    }
    arms
}

fn summary(view: &View, bound: &BoundArm) -> ArmSummary {
    match &bound.program {
        Ok(program) => measured(view, bound, program),
        Err(refusal) => {
            let why = Some(refusal.why.clone());
            ArmSummary { state: ArmState::NotApplicable, why, ..blank(view, bound) }
        }
    }
}

fn measured(view: &View, bound: &BoundArm, program: &Program) -> ArmSummary {
    let name = &bound.arm.name;
    let headline = &view.headline_role(bound).name;
    let kept = view.workers(name, None);
    let repetitions = repetitions(view, name);
    let roles: Vec<RoleSummary> =
        running_roles(program).iter().map(|role| role_summary(view, bound, program, role)).collect();
    let head = roles.iter().find(|r| r.role == *headline);
    let ns_per_op = head.and_then(|r| r.ns_per_op);
    let regime = view.regimes.by_arm.get(name).map(|number| &view.regimes.list[*number as usize]);
    let multi = kept.iter().any(|o| o.transfer_before_ns.is_some());
    ArmSummary {
        state: if ns_per_op.is_some() { ArmState::Measured } else { ArmState::Unresolved },
        why: ns_per_op.is_none().then(|| why_unresolved(view, name, repetitions)),
        mask: if program.shares_cpu { "none" } else { "co-running" }.to_owned(),
        bytes: program.layout.bytes,
        layout: program.layout.placed.iter().map(LayoutRow::of).collect(),
        regime: view.regimes.by_arm.get(name).copied(),
        regime_transfer_ns: regime.filter(|_| multi).and_then(|r| r.transfer_ns),
        repetitions,
        lost_share: lost_share(view.observations.iter().filter(|o| o.arm == *name)),
        other_regimes: other_regimes(view, name, headline),
        ns_per_op,
        slice_ns_per_op: slices(&view.workers(name, Some(headline))),
        ops_per_second: head.and_then(|r| r.ops_per_second),
        workers: program.workers.iter().map(|w| worker_summary(view, name, w)).collect(),
        locks: locks::summaries(program, &kept),
        timeline: memory::timeline(view, name),
        roles,
        ..blank(view, bound)
    }
}

/// What an arm is, without figures.
fn blank(view: &View, bound: &BoundArm) -> ArmSummary {
    ArmSummary {
        name: bound.arm.name.clone(),
        kind: (&bound.arm.kind).into(),
        state: ArmState::Unresolved,
        why: None,
        mask: "co-running".to_owned(),
        variant: bound.arm.variant.clone(),
        sweep: bound.arm.sweep.iter().cloned().collect(),
        bytes: 0,
        layout: Vec::new(),
        regime: None,
        regime_transfer_ns: None,
        repetitions: RepetitionCount { kept: 0, spoiled: 0, other_regime: 0 },
        lost_share: 0.0,
        other_regimes: Vec::new(),
        headline_role: view.headline_role(bound).name.clone(),
        ns_per_op: None,
        slice_ns_per_op: None,
        ops_per_second: None,
        ratio_to_best: None,
        roles: Vec::new(),
        workers: Vec::new(),
        locks: Vec::new(),
        timeline: None,
        stacks: Vec::new(),
        modelled: None,
    }
}

fn why_unresolved(view: &View, arm: &str, repetitions: RepetitionCount) -> String {
    let RepetitionCount { kept, spoiled, other_regime } = repetitions;
    if kept + spoiled + other_regime == 0 {
        return "it was not run".to_owned();
    }
    let reasons: BTreeSet<&str> = (view.observations.iter().filter(|o| o.arm == arm))
        .flat_map(|o| o.spoiled.iter().map(String::as_str))
        .collect();
    let spoiled_by =
        if reasons.is_empty() { String::new() } else { format!(" ({})", Vec::from_iter(reasons).join(", ")) };
    format!(
        "{} counted in the headline regime, {FEWEST_BLOCKS} are needed; {spoiled} spoiled{spoiled_by}, {other_regime} \
         in other regimes",
        count(kept as usize, "repetition")
    )
}

/// The roles that have workers in this arm, in order.
fn running_roles(program: &Program) -> Vec<String> {
    let mut roles: Vec<String> = Vec::new();
    for worker in &program.workers {
        if !roles.contains(&worker.role_name) {
            roles.push(worker.role_name.clone());
        }
    }
    roles
}

fn repetitions(view: &View, arm: &str) -> RepetitionCount {
    let mut fates: BTreeMap<u32, &Observation> = BTreeMap::new();
    fates.extend(view.observations.iter().filter(|o| o.arm == arm).map(|o| (o.block, o)));
    let kept = view.kept(arm).count() as u32;
    let spoiled = fates.values().filter(|o| !o.spoiled.is_empty()).count() as u32;
    RepetitionCount { kept, spoiled, other_regime: fates.len() as u32 - kept - spoiled }
}

/// Lost co-running time as a share of all window time, the workers' windows added up.
pub(crate) fn lost_share<'a>(observations: impl Iterator<Item = &'a Observation>) -> f64 {
    // A worker that was away at an edge saw a window shorter than what it lost beside it.
    let add = |(lost, all): (f64, f64), o: &Observation| (lost + o.lost_ns, all + o.window_ns.max(o.lost_ns));
    let (lost, all) = observations.fold((0.0, 0.0), add);
    if all > 0.0 { lost / all } else { 0.0 }
}

fn other_regimes(view: &View, arm: &str, role: &str) -> Vec<OtherRegime> {
    let headline = view.regimes.by_arm.get(arm).copied();
    let mut by_regime: BTreeMap<u32, BTreeMap<u32, Vec<&Observation>>> = BTreeMap::new();
    let others = |o: &&Observation| o.arm == arm && o.spoiled.is_empty() && o.regime != headline;
    for observation in view.observations.iter().filter(others) {
        if let Some(regime) = observation.regime.filter(|_| observation.role == role) {
            by_regime.entry(regime).or_default().entry(observation.block).or_default().push(observation);
        }
    }
    let one = |(regime, blocks): (u32, BTreeMap<u32, Vec<&Observation>>)| {
        let series: Series = blocks.iter().filter_map(|(block, w)| Some((*block, ns_per_op(w)?))).collect();
        let alone = || median_of(series.values().copied()).map(interval::exact);
        Some(OtherRegime {
            transfer_ns: view.regimes.list[regime as usize].transfer_ns,
            contended_ns: view.regimes.list[regime as usize].contended_ns,
            ns_per_op: view.single(&series, &format!("{arm}/{role}/regime {regime}")).or_else(alone)?,
            repetitions: blocks.len() as u32,
        })
    };
    by_regime.into_iter().filter_map(one).collect()
}

fn slices(workers: &[&Observation]) -> Option<Quantiles> {
    let mut all: Vec<f64> = workers.iter().flat_map(|o| o.slice_ns_per_op.iter().copied()).collect();
    all.sort_unstable_by(f64::total_cmp);
    Some(Quantiles { p10: quantile(&all, 0.1)?, p50: quantile(&all, 0.5)?, p90: quantile(&all, 0.9)? })
}

fn role_summary(view: &View, bound: &BoundArm, program: &Program, role: &str) -> RoleSummary {
    let arm = &bound.arm.name;
    let workers = view.workers(arm, Some(role));
    let service = || workers.iter().flat_map(|o| &o.service);
    let memory = || workers.iter().filter_map(|o| o.memory.as_ref());
    let period = program.workers.iter().find(|w| w.role_name == role).and_then(|w| w.period);
    let interval =
        |figure: Figure, name: &str| view.single(&view.series(arm, role, figure), &format!("{arm}/{role}/{name}"));
    let against = |solo| {
        let baseline = view.baseline(bound, role, solo).filter(|b| b.arm.name != *arm)?;
        view.ratio(arm, &baseline.arm.name, role)
    };
    let shared = matches!(bound.arm.kind, ArmKind::Variant | ArmKind::Control);
    let batch_ns = times::percentiles(memory().flat_map(|memory| &memory.uncorrected));
    let batch_before_ns = times::percentiles(memory().flat_map(|memory| &memory.before));
    let rate = memory().map(|memory| memory.ticks_per_ns).next();
    let in_ticks = |times: Option<Percentiles>| Some(times::in_ticks(&times?, rate?));
    RoleSummary {
        role: role.to_owned(),
        ns_per_op: interval(ns_per_op, "ns_per_op"),
        slowest_worker_ns_per_op: interval(slowest_ns_per_op, "slowest"),
        ratio_to_best: None,
        slowest_worker_ratio_to_best: None,
        ops_per_second: interval(ops_per_second, "ops_per_second"),
        fairness_jain: median_of(view.series(arm, role, fairness_jain).into_values()),
        contention: match shared {
            true => Contention { solo: against(true), unshared: against(false) },
            false => Contention::default(),
        },
        latency_ns: times::percentiles(workers.iter().flat_map(|o| &o.response)),
        service_ns: times::percentiles(service()),
        service_corrected_ns: period.and_then(|period| times::corrected_percentiles(service(), period.0)),
        batch_ns,
        batch_corrected_ns: times::percentiles(memory().flat_map(|memory| &memory.corrected)),
        batch_before_ns,
        batch_ticks: in_ticks(batch_ns),
        batch_before_ticks: in_ticks(batch_before_ns),
        counters: counters::summaries(&workers),
    }
}

fn worker_summary(view: &View, arm: &str, worker: &WorkerProgram) -> WorkerSummary {
    let index = worker.index.0;
    let interval = |figure: Figure, name: &str| {
        let own = |workers: &[&Observation]| {
            figure(&workers.iter().copied().filter(|o| o.worker == index).collect::<Vec<_>>())
        };
        view.single(&view.series(arm, &worker.role_name, own), &format!("{arm}/worker {index}/{name}"))
    };
    WorkerSummary {
        index,
        role: worker.role_name.clone(),
        cpu: worker.cpu.0,
        ns_per_op: interval(ns_per_op, "ns_per_op"),
        ops_per_second: interval(ops_per_second, "ops_per_second"),
        latency_ns: {
            let workers = view.workers(arm, Some(&worker.role_name));
            times::percentiles(workers.iter().filter(|o| o.worker == index).flat_map(|o| &o.response))
        },
    }
}

/// A role's ratios to the best: of its median worker, and of its slowest.
type RoleRatios = (Option<Interval>, Option<Interval>);

fn ratios(view: &View, bound: &BoundArm, summary: &ArmSummary, arms: &[ArmSummary]) -> Vec<RoleRatios> {
    let of_role = |role: &RoleSummary| {
        let median_worker = best(view, bound, arms, &role.role, |r| r.ns_per_op);
        let slowest_worker = best(view, bound, arms, &role.role, |r| r.slowest_worker_ns_per_op);
        (
            median_worker.and_then(|best| to_best(view, bound, best, &role.role, View::ratio)),
            slowest_worker.and_then(|best| to_best(view, bound, best, &role.role, View::slowest_ratio)),
        )
    };
    summary.roles.iter().map(of_role).collect()
}

/// The variant in which a role's figure is the least, at the same point of the sweep; where there is one variant alone,
/// its fastest point. `None` for baselines, which are no candidates and are held against none.
fn best<'a>(
    view: &View,
    bound: &BoundArm,
    arms: &'a [ArmSummary],
    role: &str,
    figure: fn(&RoleSummary) -> Option<Interval>,
) -> Option<&'a str> {
    if !matches!(bound.arm.kind, ArmKind::Variant | ArmKind::Control) {
        return None;
    }
    let names: BTreeSet<&str> = view.variants().map(|(a, _)| a.arm.variant.as_str()).collect();
    let rival = |b: &BoundArm| b.arm.kind == ArmKind::Variant && (names.len() == 1 || b.arm.sweep == bound.arm.sweep);
    let rivals = view.bound.arms.iter().zip(arms).filter(|(b, _)| rival(b));
    let timed = rivals.filter_map(|(_, summary)| {
        let role = summary.roles.iter().find(|r| r.role == role)?;
        Some((figure(role)?.median, summary.name.as_str()))
    });
    timed.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}

fn to_best<'a>(
    view: &View<'a>,
    bound: &BoundArm,
    best: &str,
    role: &str,
    ratio: fn(&View<'a>, &str, &str, &str) -> Option<Interval>,
) -> Option<Interval> {
    if best == bound.arm.name {
        return Some(interval::exact(1.0));
    }
    ratio(view, &bound.arm.name, best, role)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::Bench;

    /// Packed at 20 ns in quiet, padded at 2; baselines at 2. Everything slows by the same factor from block to block.
    fn bench() -> Bench {
        let mut bench = Bench::new(&["packed", "padded-64"]).with_solo().with_unshared();
        bench.run(10, |arm, block| {
            let drift = 1.0 + 0.03 * f64::from(block);
            drift * if arm == "packed" || arm == "control" { 20.0 } else { 2.0 }
        });
        bench
    }

    fn arm(arms: &[ArmSummary], name: &str) -> ArmSummary {
        arms.iter().find(|a| a.name == name).unwrap().clone()
    }

    fn near(seen: Option<Interval>, median: f64) -> bool {
        seen.is_some_and(|i| (i.median - median).abs() < 1e-6 * median && i.low <= i.median && i.median <= i.high)
    }

    #[test]
    fn an_arm_has_its_medians_and_its_ratio_to_the_best() {
        let arms = bench().analyse().arms;
        let packed = arm(&arms, "packed");
        assert!(near(packed.ns_per_op, 20.0 * 1.135), "{:?}", packed.ns_per_op);
        assert!(near(packed.ratio_to_best, 10.0), "{:?}", packed.ratio_to_best);
        assert!(near(arm(&arms, "padded-64").ratio_to_best, 1.0));
        assert!(arm(&arms, "solo:counter").ratio_to_best.is_none());
        let rate = packed.ops_per_second.unwrap().median;
        assert!((rate / 2.0 - 1e9 / (20.0 * 1.135)).abs() / rate < 0.01, "two workers: {rate}");
        assert_eq!(packed.roles[0].fairness_jain, Some(1.0));
        assert_eq!((packed.workers.len(), packed.layout.len(), packed.bytes), (2, 2, 16));
        assert_eq!(packed.regime_transfer_ns, Some(54.0));
        let slices = packed.slice_ns_per_op.unwrap();
        assert!(slices.p10 < slices.p50 && slices.p50 < slices.p90);
    }

    #[test]
    fn each_role_and_its_slowest_worker_have_a_ratio_of_their_own() {
        let mut bench = bench();
        // In `packed` worker 1 takes three times as long as worker 0.
        for o in bench.observations.iter_mut().filter(|o| o.arm == "packed" && o.worker == 1) {
            o.ns_per_op = o.ns_per_op.map(|ns| 3.0 * ns);
        }
        let arms = bench.analyse().arms;
        let role = |name: &str| arm(&arms, name).roles[0].clone();
        assert!(near(role("packed").ratio_to_best, 20.0), "the median of 20 and 60 over 2");
        assert!(near(role("packed").slowest_worker_ratio_to_best, 30.0));
        assert!(near(role("padded-64").slowest_worker_ratio_to_best, 1.0));
        assert_eq!(arm(&arms, "packed").ratio_to_best, role("packed").ratio_to_best);
        assert_eq!(role("solo:counter").slowest_worker_ratio_to_best, None);
    }

    #[test]
    fn contention_pairs_with_the_blocks_in_which_the_baseline_ran() {
        let arms = bench().analyse().arms;
        let contention = |name: &str| arm(&arms, name).roles[0].contention.clone();
        assert!(near(contention("packed").solo, 10.0), "{:?}", contention("packed"));
        assert!(near(contention("packed").unshared, 10.0));
        assert!(near(contention("padded-64").unshared, 1.0));
        assert_eq!(contention("solo:counter"), Contention::default());
    }

    #[test]
    fn a_variant_that_does_something_else_is_not_held_against_the_baselines() {
        let mut bench = bench().with_steps("padded-64", "bump hits[me]");
        bench.bound.arms[1].arm.case.roles[0].steps[0].every = 2;
        assert_eq!(arm(&bench.analyse().arms, "padded-64").roles[0].contention, Contention::default());
    }

    #[test]
    fn other_regimes_stand_beside_the_headline_and_are_not_mixed_in() {
        let mut bench = Bench::new(&["packed", "padded-64"]);
        bench.run(10, |_, block| if block < 4 { 2.0 } else { 20.0 });
        for o in bench.observations.iter_mut().filter(|o| o.block < 4) {
            (o.transfer_before_ns, o.transfer_after_ns) = (Some(215.0), Some(215.0));
        }
        let packed = arm(&bench.analyse().arms, "packed");
        assert!(near(packed.ns_per_op, 20.0));
        assert_eq!(packed.repetitions, RepetitionCount { kept: 6, spoiled: 0, other_regime: 4 });
        let other = &packed.other_regimes[0];
        assert_eq!((other.transfer_ns, other.repetitions, other.ns_per_op.median), (Some(215.0), 4, 2.0));
    }

    #[test]
    fn spoiled_repetitions_count_for_nothing_but_their_number_and_lost_time() {
        let mut bench = bench();
        for o in bench.observations.iter_mut().filter(|o| o.arm == "packed" && o.block == 0) {
            (o.ns_per_op, o.lost_ns) = (Some(1e6), 0.95 * o.window_ns);
            o.spoiled.push("lost_time".into());
        }
        let packed = arm(&bench.analyse().arms, "packed");
        assert_eq!(packed.repetitions, RepetitionCount { kept: 9, spoiled: 1, other_regime: 0 });
        assert!(packed.ns_per_op.unwrap().high < 30.0);
        assert!((packed.lost_share - 0.095).abs() < 1e-9, "{}", packed.lost_share);
    }

    #[test]
    fn an_open_loop_has_its_latencies_and_a_closed_one_no_correction() {
        let mut bench = bench();
        for o in &mut bench.observations {
            o.response = times::tally([100, 5000, 4000].into_iter());
            o.service = times::tally([100, 5000, 100].into_iter());
        }
        let closed = arm(&bench.analyse().arms, "packed").roles[0].clone();
        assert_eq!(closed.latency_ns.map(|l| (l.p50, l.count)), Some((4001, 60)), "10 blocks of 2 workers, 3 digits");
        assert_eq!((closed.service_ns.map(|s| s.p50), closed.service_corrected_ns), (Some(100), None));
        for worker in bench.bound.arms.iter_mut().flat_map(|a| &mut a.program).flat_map(|p| &mut p.workers) {
            worker.period = Some(plan::Nanos(1000));
        }
        let open = arm(&bench.analyse().arms, "packed").roles[0].clone();
        assert_eq!(open.service_corrected_ns.map(|s| s.count), Some(20 * 7), "5000 stands also for 4000, …, 1000");
    }

    #[test]
    fn an_arm_that_cannot_be_placed_says_why() {
        let mut bench = bench();
        bench.bound.arms[1].program = Err(plan::NotApplicable { why: "needs 4 CPUs".into() });
        let seen = arm(&bench.analyse().arms, "padded-64");
        assert_eq!((seen.state, seen.why.as_deref()), (ArmState::NotApplicable, Some("needs 4 CPUs")));
    }
}
