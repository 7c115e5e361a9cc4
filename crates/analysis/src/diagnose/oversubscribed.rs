//! Oversubscribed: workers that share CPUs spin for a lock, and so keep its owner from running.

use super::cost;
use super::locks::{self, Finding, Site, figure, measured};
use crate::view::{View, same_work};
use crate::words;
use plan::{BoundArm, Program};
use record::{ArmSummary, Diagnosis, Evidence};
use std::collections::BTreeSet;

pub(super) fn find(view: &View, arms: &[ArmSummary]) -> Option<(f64, Diagnosis)> {
    let sites = locks::sites(view, arms);
    let spinning = |site: &&Site| {
        site.program.shares_cpu && site.lock.contended > 0 && site.kind().is_some_and(|kind| kind.spins())
    };
    let found = sites.iter().filter(spinning).filter_map(|site| finding(view, &sites, site));
    locks::report("oversubscribed", found.collect())
}

/// What spinning costs: as against the variants in which the same work sleeps; by the time spent waiting only where none of
/// them could be compared. A lock that sleeps and is no faster is an answer.
fn finding<'a>(view: &View<'a>, sites: &[Site<'a>], site: &Site<'a>) -> Option<Finding<'a>> {
    let sleeping = |other: &&Site| {
        other.lock.lock == site.lock.lock
            && same_work(other.arm, site.arm)
            && other.arm.arm.case.placement == site.arm.arm.case.placement
            && other.kind().is_some_and(|kind| !kind.spins())
    };
    let cured: Vec<(&BoundArm, &Program)> = sites.iter().filter(sleeping).map(|o| (o.arm, o.program)).collect();
    let roles = site.roles();
    let compared = cured.iter().any(|(o, _)| roles.iter().any(|r| view.ratio(site.name(), &o.arm.name, r).is_some()));
    let gain = locks::gain(view, site, &roles, &cured);
    let waited = site.waited_ns() / site.window_ns(view);
    let cost = match (&gain, compared) {
        (Some(gain), _) => gain.ratio.median,
        (None, true) => return None,
        (None, false) => locks::times_as_long(waited, 1.0),
    };
    if cost <= cost::threshold(view) {
        return None;
    }
    let (name, lock, kind) = (site.name(), &site.lock.lock, &site.lock.kind);
    let cpus: BTreeSet<u32> = site.program.workers.iter().map(|w| w.cpu.0).collect();
    let workers = site.program.workers.len();
    Some(Finding {
        site: *site,
        cost,
        text: format!(
            "In `{name}`, {workers} workers share {} and spin for `{lock}` ({kind}): one that waits uses up the time in \
             which the owner could have released it, so the scheduler's time slices are what waits are made of.",
            words::count(cpus.len(), "CPU")
        ),
        fields: Vec::new(),
        roles: roles.iter().map(|role| (*role).to_owned()).collect(),
        evidence: vec![
            Evidence::new(format!("workers of `{name}`"), Some(workers as f64), "", "layout"),
            Evidence::new(format!("CPUs of `{name}`"), Some(cpus.len() as f64), "", "layout"),
            measured(format!("workers' time spent waiting for `{lock}` in `{name}`"), waited * 100.0, "%"),
            figure(
                format!("wait for `{lock}` in `{name}`, p99"),
                site.lock.wait_ns.map(|w| w.p99 as f64),
                "ns",
                "every wait found the log full",
            ),
            figure(
                format!("turns spun for each contended acquisition of `{lock}` in `{name}`"),
                site.lock.spins_per_wait,
                "",
                "the C library does not tell",
            ),
        ],
        cure: format!(
            "With more workers than CPUs wait asleep{}: `pthread`, `pthread-adaptive` or `futex`; or run no more workers \
             than CPUs.",
            locks::shown(gain.as_ref())
        ),
        gain,
    })
}
