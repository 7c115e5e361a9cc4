//! Starved: a worker does not get the lock for a time that neither its own loop, nor the others', nor the scheduler
//! explains.

use super::locks::{self, Finding, Site, figure, measured};
use crate::stats::median_of;
use crate::view::{View, same_work};
use crate::words;
use plan::{OpKind, WorkerProgram};
use record::{ArmSummary, Diagnosis};
use std::collections::BTreeMap;

/// No shorter gap is starvation: it is three time slices of the kernel's scheduler (`base_slice_ns`, 3 ms on two CPUs),
/// and an eviction that the mask just did not see is no longer.
const LEAST_GAP_NS: f64 = 10e6;

/// So many median waits must fit in the gap: a lock whose waits are always long starves nobody.
const MEDIAN_WAITS: f64 = 100.0;

/// The gap must be so many times as long as the worker's own loop makes it, and as the others' gaps.
const TIMES_OTHERS: f64 = 10.0;

/// In so large a part of the kept repetitions it must be seen: a single one may be the host's doing, unseen by any
/// mask.
const LEAST_SHARE: f64 = 0.5;

pub(super) fn find(view: &View, arms: &[ArmSummary]) -> Option<(f64, Diagnosis)> {
    let sites = locks::sites(view, arms);
    let found = sites.iter().filter_map(|site| finding(view, &sites, site));
    locks::report("starved", found.collect())
}

/// A worker's longest gap at the lock in one repetition, less what evictions and a later begin explain.
#[derive(Clone)]
struct Gap {
    worker: u32,
    role: String,
    ns: f64,
    window_ns: f64,
    /// What its own loop makes of it, computing, sleeping and waiting for its period.
    own_ns: f64,
}

fn gaps(view: &View, site: &Site) -> Vec<Vec<Gap>> {
    let mut blocks: BTreeMap<u32, Vec<Gap>> = BTreeMap::new();
    for (observation, lock) in site.seen(view) {
        let Some(worker) = site.program.worker(observation.worker) else { continue };
        blocks.entry(observation.block).or_default().push(Gap {
            worker: observation.worker,
            role: observation.role.clone(),
            ns: (lock.longest_gap_ns - observation.lost_ns - worker.after.0 as f64).max(0.0),
            window_ns: observation.window_ns,
            own_ns: own_ns(worker),
        });
    }
    blocks.into_values().collect()
}

/// Longest time between two acquisitions that the steps themselves account for.
fn own_ns(worker: &WorkerProgram) -> f64 {
    let length = |kind: &OpKind| match kind {
        OpKind::Work(length) | OpKind::Sleep(length) => length.0,
        _ => 0,
    };
    let pass: u64 = worker.ops.iter().map(|op| length(&op.kind)).sum();
    let locks = worker.ops.iter().filter(|op| matches!(op.kind, OpKind::Lock { .. }));
    let every = locks.map(|op| op.every).max().unwrap_or(1);
    pass.max(worker.period.map_or(0, |period| period.0)) as f64 * f64::from(every)
}

/// The worker that starved in this repetition, if one did.
fn starved(gaps: &[Gap], median_wait_ns: f64) -> Option<&Gap> {
    let worst = gaps.iter().max_by(|a, b| a.ns.total_cmp(&b.ns))?;
    let others = median_of(gaps.iter().filter(|g| g.worker != worst.worker).map(|g| g.ns))?;
    let so = worst.ns > LEAST_GAP_NS
        && worst.ns > MEDIAN_WAITS * median_wait_ns
        && worst.ns > TIMES_OTHERS * others
        && worst.ns > TIMES_OTHERS * worst.own_ns;
    so.then_some(worst)
}

fn finding<'a>(view: &View<'a>, sites: &[Site<'a>], site: &Site<'a>) -> Option<Finding<'a>> {
    let wait = site.lock.wait_ns?;
    let repetitions = gaps(view, site);
    let hit: Vec<&Gap> = repetitions.iter().filter_map(|gaps| starved(gaps, wait.p50 as f64)).collect();
    if (hit.len() as f64) < LEAST_SHARE * repetitions.len() as f64 {
        return None;
    }
    let longest = hit.iter().copied().max_by(|a, b| a.ns.total_cmp(&b.ns))?;
    let gap_ns = median_of(hit.iter().map(|gap| gap.ns))?;
    let calmer = |other: &&Site| {
        let its = other.lock.longest_gap_ns;
        other.name() != site.name()
            && other.lock.lock == site.lock.lock
            && same_work(other.arm, site.arm)
            && its.is_some_and(|its| its * TIMES_OTHERS <= gap_ns)
    };
    let cured: Vec<Site> = sites.iter().filter(calmer).copied().collect();
    let gain = locks::slowest_gain(view, site, &site.roles(), &cured);
    let (name, lock, kind) = (site.name(), &site.lock.lock, &site.lock.kind);
    Some(Finding {
        site: *site,
        cost: locks::times_as_long(gap_ns, longest.window_ns),
        text: format!(
            "In `{name}`, a worker of `{}` went without `{lock}` ({kind}) for {} ms in one repetition (worker {}), {} ms in \
             the median one of {}, while half of all waits took under {} ns.",
            longest.role,
            words::figure(longest.ns / 1e6),
            longest.worker,
            words::figure(gap_ns / 1e6),
            words::count(hit.len(), "repetition"),
            words::figure(wait.p50 as f64)
        ),
        fields: Vec::new(),
        roles: vec![longest.role.clone()],
        evidence: vec![
            measured(format!("longest gap at `{lock}` in `{name}`, less evictions"), longest.ns / 1e6, "ms"),
            measured(format!("longest gap at `{lock}` in `{name}`, median repetition"), gap_ns / 1e6, "ms"),
            measured(format!("repetitions of `{name}` in which a worker starved"), hit.len() as f64, ""),
            measured(format!("wait for `{lock}` in `{name}`, p50"), wait.p50 as f64, "ns"),
            figure(
                format!("Jain's index of the acquisitions of `{lock}` in `{name}`"),
                site.lock.fairness_jain,
                "",
                "one worker",
            ),
        ],
        cure: format!(
            "Take a lock that serves in order of arrival{}: `ticket`, `mcs` or `clh`, none of which lets a newcomer pass; \
             or bound how often a worker takes it again while others wait.",
            locks::shown(gain.as_ref())
        ),
        gain,
    })
}
