//! One variant against another, role by role and lock by lock.

use crate::compare::Sides;
use crate::compare::between::{Between, regime_of};
use crate::figures::{Figure, Series, ns_per_op, pairs, slowest_ns_per_op};
use crate::interval;
use crate::words::percent;
use record::{
    ArmState, ArmSummary, Asks, Both, CompareLock, CompareRow, Comparison, Interval, Kind, Observation, Percentiles,
    RoleSummary, Run, Verdict,
};
use std::collections::BTreeMap;

/// Adds a row for each role that both arms run, and for each lock that both waited for.
pub(super) fn add(comparison: &mut Comparison, sides: &Sides, base: &ArmSummary, arm: &ArmSummary) {
    for role in &arm.roles {
        if let Some(base_role) = role_of(base, arm, &role.role) {
            comparison.rows.push(row(sides, (base, base_role), (arm, role)));
        }
    }
    if arm.roles.is_empty() || base.roles.is_empty() {
        comparison.rows.push(without_figures(sides, base, arm));
    }
    for lock in &arm.locks {
        let other = base.locks.iter().find(|other| other.lock == lock.lock);
        let Some((other, (base_waits, waits))) = other.and_then(|o| Some((o, o.wait_ns.zip(lock.wait_ns)?))) else {
            continue;
        };
        comparison.locks.push(CompareLock {
            run: sides.places.1,
            base: sides.places.0,
            variant: arm.name.clone(),
            base_variant: base.name.clone(),
            lock: lock.lock.clone(),
            kind: Both { base: other.kind.clone(), run: lock.kind.clone() },
            wait_ns: Both { base: base_waits, run: waits },
            contended_share: Both { base: other.contended_share, run: lock.contended_share },
        });
    }
}

/// The role of that name; where each arm runs one role, that one.
pub(super) fn role_of<'a>(of: &'a ArmSummary, other: &ArmSummary, name: &str) -> Option<&'a RoleSummary> {
    let lone = of.roles.first().filter(|_| of.roles.len() == 1 && other.roles.len() == 1);
    of.roles.iter().find(|role| role.role == name).or(lone)
}

fn row(sides: &Sides, base: (&ArmSummary, &RoleSummary), run: (&ArmSummary, &RoleSummary)) -> CompareRow {
    let measured = ratio(sides, base, run, ns_per_op, "");
    let between = (sides.asks == Asks::Change).then(|| Between::of(sides, base.0, run.0));
    let widened = |ratio: Interval| between.as_ref().map_or(ratio, |between| between.widened(ratio));
    let ratio_of_slowest = ratio(sides, base, run, slowest_ns_per_op, "/slowest");
    let judged = measured.map(widened);
    let floor = floor(sides.base, base.0).zip(floor(sides.run, run.0)).map(|(base, run)| base.max(run));
    let alike = between.as_ref().map_or(Ok(()), |between| between.alike.clone());
    let (verdict, why) = match judged {
        Some(ratio) => verdict(ratio, floor, alike),
        None => (Verdict::Unresolved, Some(why_none(base.0, run.0))),
    };
    CompareRow {
        ns_per_op: Both { base: base.1.ns_per_op, run: run.1.ns_per_op },
        ratio: judged,
        measured_ratio: measured,
        slowest_worker_ratio: ratio_of_slowest.map(widened),
        verdict,
        why,
        smallest_effect: judged.zip(floor).map(|(ratio, floor)| width(ratio).max(floor)),
        counters: counters(base.1, run.1),
        percentiles: percentiles(base.1, run.1),
        ..named(sides, base.0, run.0, &run.1.role)
    }
}

/// The row of arms of which one cannot run here: nothing is known but that.
fn without_figures(sides: &Sides, base: &ArmSummary, run: &ArmSummary) -> CompareRow {
    CompareRow { why: Some(why_none(base, run)), ..named(sides, base, run, &run.headline_role) }
}

fn named(sides: &Sides, base: &ArmSummary, run: &ArmSummary, role: &str) -> CompareRow {
    CompareRow {
        run: sides.places.1,
        base: sides.places.0,
        host: sides.run.host.hostname.clone(),
        variant: run.name.clone(),
        base_variant: base.name.clone(),
        role: role.to_owned(),
        ns_per_op: Both { base: None, run: None },
        ratio: None,
        measured_ratio: None,
        slowest_worker_ratio: None,
        verdict: Verdict::Unresolved,
        why: None,
        smallest_effect: None,
        bytes: Both { base: base.bytes, run: run.bytes },
        counters: BTreeMap::new(),
        percentiles: BTreeMap::new(),
    }
}

/// What the control arm of a run could not tell from nothing: it repeats the run's first variant, and speaks for figures of
/// that. 0 for other variants, whose own interval is all there is; `None` where the control arm resolved nothing.
fn floor(run: &Run, arm: &ArmSummary) -> Option<f64> {
    let control = run.arms.iter().find(|other| other.kind == Kind::Control);
    if control.is_some_and(|control| control.variant == arm.variant) { run.method.resolution } else { Some(0.0) }
}

/// How far an interval reaches to its farther end, as a ratio minus 1.
fn width(ratio: Interval) -> f64 {
    (ratio.high / ratio.median).max(ratio.median / ratio.low) - 1.0
}

/// A wider interval does not say that there is no difference.
const WIDEST: f64 = 1.0;

fn verdict(ratio: Interval, floor: Option<f64>, alike: Result<(), String>) -> (Verdict, Option<String>) {
    let unresolved = |why: String| (Verdict::Unresolved, Some(why));
    let Some(floor) = floor else {
        return unresolved(
            "the control arm of a run resolved nothing, so nothing says what noise looks like".to_owned(),
        );
    };
    if let Err(why) = alike {
        return unresolved(why);
    }
    match (ratio.low > 1.0, ratio.high < 1.0) {
        (true, _) if ratio.low > 1.0 + floor => (Verdict::Slower, None),
        (_, true) if 1.0 / ratio.high > 1.0 + floor => (Verdict::Faster, None),
        (true, _) | (_, true) => unresolved(format!(
            "the interval leaves 1 out by less than the {} that a control arm could not tell from nothing",
            percent(floor)
        )),
        _ if width(ratio) > WIDEST => unresolved("the interval is so wide that it would hide a doubling".to_owned()),
        _ => (Verdict::NoDifference, None),
    }
}

fn why_none(base: &ArmSummary, run: &ArmSummary) -> String {
    let lacks = |side: &str, arm: &ArmSummary| {
        let why = arm.why.clone().unwrap_or_else(|| "too few repetitions of its role counted".to_owned());
        let state = if arm.state == ArmState::NotApplicable { "cannot run there" } else { "has no figure" };
        format!("`{}` of the {side} {state}: {why}", arm.name)
    };
    let sides = [("base", base), ("run", run)].into_iter().filter(|(_, arm)| arm.state != ArmState::Measured);
    let told: Vec<String> = sides.map(|(side, arm)| lacks(side, arm)).collect();
    if told.is_empty() { "too few repetitions of this role counted on a side".to_owned() } else { told.join("; ") }
}

type ArmRole<'a> = (&'a ArmSummary, &'a RoleSummary);

/// The ratio of a figure; `of` tells its name in the interval's generator from that of `ns_per_op`.
fn ratio(sides: &Sides, base: ArmRole, run: ArmRole, figure: Figure, of: &str) -> Option<Interval> {
    let (of_run, of_base) = (series(sides.run, run, figure), series(sides.base, base, figure));
    let name = format!("{}/{}/{}{of}", run.0.name, base.0.name, run.1.role);
    if sides.asks == Asks::Variants {
        // Named and seeded as the run's own ratios, so that the same two arms have one interval everywhere.
        return interval::ratio(&pairs(&of_run, &of_base), &mut interval::dice(sides.run.seed, &name));
    }
    let values = |series: Series| series.into_values().collect::<Vec<f64>>();
    let seed = sides.run.seed ^ sides.base.seed.rotate_left(32);
    interval::independent(&values(of_run), &values(of_base), &mut interval::dice(seed, &name))
}

/// A figure of one role by block, of the repetitions that count.
fn series(run: &Run, (arm, role): ArmRole, figure: Figure) -> Series {
    let regime = regime_of(run, arm);
    let mut blocks: BTreeMap<u32, Vec<&Observation>> = BTreeMap::new();
    let counts = |o: &&Observation| {
        o.arm == arm.name && o.role == role.role && o.spoiled.is_empty() && o.regime.is_some() && o.regime == regime
    };
    for observation in run.observations.iter().filter(counts) {
        blocks.entry(observation.block).or_default().push(observation);
    }
    blocks.iter().filter_map(|(block, workers)| Some((*block, figure(workers)?))).collect()
}

fn counters(base: &RoleSummary, run: &RoleSummary) -> BTreeMap<String, Both<f64>> {
    let counted = run.counters.iter().filter_map(|(name, counter)| {
        let base = base.counters.get(name)?.measured.per_op?;
        Some((name.clone(), Both { base, run: counter.measured.per_op? }))
    });
    counted.collect()
}

fn percentiles(base: &RoleSummary, run: &RoleSummary) -> BTreeMap<String, Both<Percentiles>> {
    let of =
        |pick: fn(&RoleSummary) -> Option<Percentiles>| pick(base).zip(pick(run)).map(|(base, run)| Both { base, run });
    let all = [
        ("latency_ns", of(|role| role.latency_ns)),
        ("service_ns", of(|role| role.service_ns)),
        ("batch_ns", of(|role| role.batch_ns)),
    ];
    all.into_iter().filter_map(|(name, both)| Some((name.to_owned(), both?))).collect()
}
