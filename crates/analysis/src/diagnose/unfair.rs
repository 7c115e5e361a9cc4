//! Unfair: workers that do the same get the lock unequally often.

use super::locks::{self, Finding, Site, figure, measured};
use crate::locks::kept_acquisitions;
use crate::stats::median_of;
use crate::view::{View, same_work};
use crate::words;
use record::{ArmSummary, Diagnosis};
use std::collections::BTreeMap;

/// Jain's index below which sharing is no longer called fair: of two workers one has then more than three times as much
/// as the other.
const LEAST_JAIN: f64 = 0.8;

/// From so much on a variant is called fair, and holds the cure.
const FAIR: f64 = 0.9;

/// The most that a cost says: a worker that got nothing would make it infinite.
const MOST: f64 = 100.0;

pub(super) fn find(view: &View, arms: &[ArmSummary]) -> Option<(f64, Diagnosis)> {
    let sites = locks::sites(view, arms);
    let found = sites.iter().filter(|site| is_unfair(site)).filter_map(|site| finding(view, &sites, site));
    locks::report("unfair", found.collect())
}

fn is_unfair(site: &Site) -> bool {
    let jain = site.lock.fairness_jain;
    site.lock.contended > 0 && jain.is_some_and(|jain| jain < LEAST_JAIN) && equal_loops(site)
}

/// Whether all who take the lock run the same loop: else their shares differ by the scenario's wish.
fn equal_loops(site: &Site) -> bool {
    let takes = |index: u32| site.lock.by_worker.iter().any(|w| w.worker == index);
    let mut loops = site.program.workers.iter().filter(|w| takes(w.index.0)).map(|w| (&w.steps, w.after, w.period));
    let first = loops.next();
    first.is_some_and(|first| loops.all(|other| other == first))
}

fn finding<'a>(view: &View<'a>, sites: &[Site<'a>], site: &Site<'a>) -> Option<Finding<'a>> {
    let mut blocks: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for (observation, lock) in site.seen(view) {
        blocks.entry(observation.block).or_default().push(kept_acquisitions(observation, lock));
    }
    let extremes = blocks.values().filter_map(|workers| {
        let each = || workers.iter().copied();
        let mean = each().sum::<f64>() / workers.len() as f64;
        Some((each().reduce(f64::max)?, each().reduce(f64::min)?, mean))
    });
    let extremes: Vec<(f64, f64, f64)> = extremes.collect();
    let (most, least) = (median_of(extremes.iter().map(|e| e.0))?, median_of(extremes.iter().map(|e| e.1))?);
    let cost = median_of(extremes.iter().map(|(_, least, mean)| (mean / least.max(1.0)).min(MOST)))?;
    let fair = |other: &&Site| {
        other.name() != site.name()
            && other.lock.lock == site.lock.lock
            && same_work(other.arm, site.arm)
            && other.lock.fairness_jain.is_some_and(|jain| jain >= FAIR)
    };
    let cured: Vec<Site> = sites.iter().filter(fair).copied().collect();
    let gain = locks::slowest_gain(view, site, &site.roles(), &cured);
    let (name, lock, kind, jain) = (site.name(), &site.lock.lock, &site.lock.kind, site.lock.fairness_jain);
    Some(Finding {
        site: *site,
        cost,
        text: format!(
            "In `{name}`, workers with the same loop get `{lock}` ({kind}) unequally often: {} acquisitions for the one \
             with most, {} for the one with least in a repetition's co-running time, up to {} in a row (Jain's index {}).",
            words::figure(most),
            words::figure(least),
            site.lock.longest_run,
            words::figure(jain.unwrap_or_default())
        ),
        fields: Vec::new(),
        roles: site.roles().into_iter().map(str::to_owned).collect(),
        evidence: vec![
            figure(format!("Jain's index of the acquisitions of `{lock}` in `{name}`"), jain, "", "one worker"),
            measured(format!("acquisitions of `{lock}` in `{name}`, worker with most"), most, ""),
            measured(format!("acquisitions of `{lock}` in `{name}`, worker with least"), least, ""),
            measured(format!("longest run of one owner of `{lock}` in `{name}`"), site.lock.longest_run as f64, ""),
            figure(
                format!("handoffs for each acquisition of `{lock}` in `{name}`"),
                site.lock.handoffs_per_op,
                "",
                "nobody acquired it",
            ),
        ],
        cure: format!(
            "Take a lock that serves in order of arrival{}: `ticket`, `mcs` or `clh` where each worker has a CPU; or let \
             whoever released it do other work before it asks again.",
            locks::shown(gain.as_ref())
        ),
        gain,
    })
}
