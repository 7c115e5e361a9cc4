//! Lock contention: workers wait in turns for a lock, and what it protects moves with it. What is left to say where no
//! rule on *how* they wait has found a reason.
//!
//! Data that every worker touches under one lock is no case of true sharing: its line goes to whoever is given the
//! lock, and a copy for each worker under the same lock would change nothing.

use super::cost;
use super::held::Guards;
use super::lines;
use super::locks::{self, Finding, Site, estimated, figure, measured};
use crate::view::{View, same_work};
use crate::words::{self, list, percent};
use plan::{BoundArm, Program};
use record::{ArmSummary, Diagnosis, Gain};
use std::collections::BTreeSet;

/// `explained`: what the other rules about locks have found.
pub(super) fn find(view: &View, arms: &[ArmSummary], explained: &[(f64, Diagnosis)]) -> Option<(f64, Diagnosis)> {
    let sites = locks::sites(view, arms);
    let told_already = |site: &Site| {
        explained.iter().any(|(_, d)| d.fields.contains(&site.lock.lock) && d.arms.iter().any(|a| a == site.name()))
    };
    let most_waited = |site: &Site| {
        let same_arm = sites.iter().filter(|other| other.name() == site.name());
        same_arm.map(Site::waited_ns).fold(0.0, f64::max) <= site.waited_ns()
    };
    let wanted = sites
        .iter()
        .filter(|site| site.lock.contended > 0 && site.lock.handoffs > 0 && !told_already(site) && most_waited(site));
    locks::report("lock_contention", wanted.filter_map(|site| finding(view, &sites, site)).collect())
}

/// The fields that are touched under the lock alone; `None` where workers share something else too, which may be what
/// costs.
fn protected<'p>(program: &'p Program, lock: &str) -> Option<BTreeSet<&'p str>> {
    let guards = Guards::of(program);
    let shared = || lines::data(program).filter(|e| lines::truly_shared(e));
    let all = shared().all(|e| guards.lock_of(e.offset).is_some()) && lines::falsely_shared(program).is_empty();
    let own = shared().filter(|e| guards.lock_of(e.offset) == Some(lock));
    all.then(|| own.map(|e| e.field.as_str()).collect())
}

/// What variants give in which the same work is done under a lock of another kind.
fn gain(view: &View, sites: &[Site], site: &Site) -> Option<Gain> {
    let other_kind = |other: &&Site| {
        other.lock.lock == site.lock.lock && other.kind() != site.kind() && same_work(other.arm, site.arm)
    };
    let cured: Vec<(&BoundArm, &Program)> = sites.iter().filter(other_kind).map(|o| (o.arm, o.program)).collect();
    locks::gain(view, site, &site.roles(), &cured)
}

/// The cost is that against a lock and data for each worker, and that alone: without it nothing is measured.
fn finding<'a>(view: &View<'a>, sites: &[Site<'a>], site: &Site<'a>) -> Option<Finding<'a>> {
    let (name, lock, kind) = (site.name(), &site.lock.lock, &site.lock.kind);
    let fields = protected(site.program, lock)?;
    let cost::Cost { role, against, ratio, .. } =
        cost::worst(site.roles().into_iter().map(|role| cost::against_unshared(view, site.arm, role)))?;
    let gain = gain(view, sites, site);
    let waited = site.waited_ns() / site.window_ns(view);
    let moves = match fields.len() {
        0 => String::new(),
        1 => format!(", and {}, touched under it alone, moves with it", list(&Vec::from_iter(&fields))),
        _ => format!(", and {}, touched under it alone, move with it", list(&Vec::from_iter(&fields))),
    };
    Some(Finding {
        site: *site,
        cost: ratio.median,
        text: format!(
            "In `{name}`, workers need `{lock}` ({kind}) in turns: {} of the acquisitions find it held, {} go to another \
             worker{moves}. A pass of `{role}` takes {} times as long as with a lock and data for each worker \
             (`{against}`).",
            percent(site.lock.contended_share.unwrap_or_default()),
            percent(site.lock.handoffs_per_op.unwrap_or_default()),
            words::figure(ratio.median)
        ),
        fields: fields.into_iter().map(str::to_owned).collect(),
        roles: site.roles().into_iter().map(str::to_owned).collect(),
        evidence: vec![
            measured(format!("`{role}` in `{name}` over `{against}`"), ratio.median, "times"),
            measured(format!("`{role}` in `{name}` over `{against}`, low end"), ratio.low, "times"),
            figure(
                format!("contended acquisitions of `{lock}` in `{name}`"),
                site.lock.contended_share.map(|share| share * 100.0),
                "%",
                "not looked at",
            ),
            figure(
                format!("handoffs for each acquisition of `{lock}` in `{name}`"),
                site.lock.handoffs_per_op,
                "",
                "nobody acquired it",
            ),
            figure(
                format!("hold of `{lock}` in `{name}`, p50"),
                site.lock.hold_ns.map(|hold| hold.p50 as f64),
                "ns",
                "no hold was sampled",
            ),
            super::evidence::transfer(view, name),
            estimated(format!("workers' time spent waiting for `{lock}` in `{name}`"), waited * 100.0, "%"),
        ],
        cure: format!(
            "Need the lock less: do several updates in one critical section, take out of it what can be done before or \
             after, or split what it protects among several locks, each with its own data{}. A copy for each worker under \
             the same lock gains nothing, and neither does another line for the data: the owner needs both lines.",
            match &gain {
                Some(gain) => format!("; or take a kind that suits these accesses better, as `{}` does", gain.arm),
                None => String::new(),
            }
        ),
        gain,
    })
}
