//! Convoy: everybody waits for a lock that is hardly held; what takes the time is passing it on.
//!
//! # References
//! M. Blasgen, J. Gray, M. Mitoma, T. Price, *The Convoy Phenomenon*, ACM SIGOPS Operating Systems Review 13(2), 1979.

use super::cost;
use super::locks::{self, Finding, Site, estimated, measured};
use crate::view::{View, same_work};
use crate::words::{figure, percent};
use plan::{BoundArm, Program};
use record::{ArmSummary, Diagnosis};

/// Most first tries fail: below, a worker more often finds the lock free than a queue before it.
const LEAST_CONTENDED: f64 = 0.5;

/// Held for less than half of the time: above, the lock is simply busy, and the cure is to hold it less.
const MOST_HELD: f64 = 0.5;

/// The lock goes to another worker nearly each time; a lock that its owner mostly takes again forms no queue.
const LEAST_HANDOFFS: f64 = 0.8;

/// So many times as long as the holds of all others, one after the other, is the median wait: a fair queue behind a busy
/// lock waits once for each of them, and the rest is the passing on.
const WAITS_OVER_HOLDS: f64 = 3.0;

/// A variant holds the cure where so much smaller a share of acquisitions waits, or is a handoff.
const LOOSENED: f64 = 0.5;

pub(super) fn find(view: &View, arms: &[ArmSummary]) -> Option<(f64, Diagnosis)> {
    let sites = locks::sites(view, arms);
    let found = sites.iter().filter_map(|site| Convoy::of(view, site)?.finding(view, &sites));
    locks::report("convoy", found.collect())
}

struct Convoy<'a> {
    site: Site<'a>,
    contended: f64,
    handoffs: f64,
    held: f64,
    wait_ns: f64,
    hold_ns: f64,
    cost: f64,
}

impl<'a> Convoy<'a> {
    fn of(view: &View<'a>, site: &Site<'a>) -> Option<Convoy<'a>> {
        let lock = site.lock;
        let (wait, hold) = (lock.wait_ns?, lock.hold_ns?);
        let window_ns = site.window_ns(view);
        let convoy = Convoy {
            site: *site,
            contended: lock.contended_share?,
            handoffs: lock.handoffs_per_op?,
            held: hold.mean * lock.acquisitions as f64 / (window_ns / site.workers()),
            wait_ns: wait.p50 as f64,
            hold_ns: hold.p50 as f64,
            cost: locks::times_as_long(site.waited_ns(), window_ns),
        };
        let queue_ns = convoy.hold_ns * (site.workers() - 1.0);
        let found = convoy.contended >= LEAST_CONTENDED
            && convoy.handoffs >= LEAST_HANDOFFS
            && convoy.held <= MOST_HELD
            && convoy.wait_ns >= WAITS_OVER_HOLDS * queue_ns
            && convoy.cost > cost::threshold(view);
        found.then_some(convoy)
    }

    fn finding(self, view: &View<'a>, sites: &[Site<'a>]) -> Option<Finding<'a>> {
        let site = self.site;
        let loosened = |other: &&Site| {
            let less = |share: Option<f64>, than: f64| share.is_some_and(|share| share <= LOOSENED * than);
            other.name() != site.name()
                && other.lock.lock == site.lock.lock
                && same_work(other.arm, site.arm)
                && (less(other.lock.contended_share, self.contended) || less(other.lock.handoffs_per_op, self.handoffs))
        };
        let cured: Vec<(&BoundArm, &Program)> = sites.iter().filter(loosened).map(|o| (o.arm, o.program)).collect();
        let gain = locks::gain(view, &site, &site.roles(), &cured);
        let (name, lock, kind) = (site.name(), &site.lock.lock, &site.lock.kind);
        Some(Finding {
            site,
            cost: self.cost,
            text: format!(
                "In `{name}`, {} of the acquisitions of `{lock}` ({kind}) wait although it is held only {} of the time: \
                 it passes from one worker to the next nearly each time, and a wait takes {} ns where a hold takes {}.",
                percent(self.contended),
                percent(self.held),
                figure(self.wait_ns),
                figure(self.hold_ns)
            ),
            fields: Vec::new(),
            roles: site.roles().into_iter().map(str::to_owned).collect(),
            evidence: vec![
                measured(format!("contended acquisitions of `{lock}` in `{name}`"), self.contended * 100.0, "%"),
                estimated(format!("time that `{lock}` is held in `{name}`"), self.held * 100.0, "%"),
                measured(format!("handoffs for each acquisition of `{lock}` in `{name}`"), self.handoffs, ""),
                measured(format!("wait for `{lock}` in `{name}`, p50"), self.wait_ns, "ns"),
                measured(format!("hold of `{lock}` in `{name}`, p50"), self.hold_ns, "ns"),
                estimated("pass over a pass without waiting".to_owned(), self.cost, "times"),
            ],
            cure: format!(
                "Let whoever runs take the lock{}: a lock that a running worker may take before one that has to be woken \
                 or to see its turn (`pthread`, `futex`, `ttas`) hands over less often; or do more in each critical \
                 section and enter it less often.",
                locks::shown(gain.as_ref())
            ),
            gain,
        })
    }
}
