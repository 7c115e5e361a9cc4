//! A queue at a lock that is hardly held: most who come have to wait, and what they wait for is not the holds of the
//! others but the passing on. Why that takes long is for the rules that use it to say.

use super::cost;
use super::locks::{self, Finding, Site, estimated, measured};
use crate::view::{View, same_work};
use plan::{BoundArm, Program};
use record::{Evidence, Gain, LockSummary, Percentiles, Reading};

/// Most first tries fail: below, a worker more often finds the lock free than a queue before it.
const LEAST_CONTENDED: f64 = 0.5;

/// Held for less than half of the time: above, the lock is simply busy, and the cure is to hold it less.
const MOST_HELD: f64 = 0.5;

/// The lock goes to another worker at more than every other acquisition: one that its owner mostly takes again passes
/// nothing on.
const LEAST_HANDOFFS: f64 = 0.5;

/// A variant holds the cure where so much smaller a share of acquisitions waits, or is a handoff.
const LOOSENED: f64 = 0.5;

/// Contended acquisitions that sleep, as a share, from which on waiting is a matter of the scheduler. Of the median
/// wait at such a lock the sleepers make little, of the mean nearly all: a waking takes a hundred times as long as a
/// line.
const LEAST_ASLEEP: f64 = 0.1;

/// What has been counted of the kernel's part in waiting.
const SWITCHES: &str = "context_switches_voluntary";

/// A queue, and its figures.
pub(super) struct Queue<'a> {
    pub(super) site: Site<'a>,
    /// Share of acquisitions that wait.
    pub(super) contended: f64,
    /// Changes of owner for each acquisition.
    pub(super) handoffs: f64,
    /// Share of the time in which somebody holds it, an estimate.
    pub(super) held: f64,
    pub(super) wait: Percentiles,
    pub(super) hold: Percentiles,
    /// Context switches that a contended acquisition asks for; `None` where they were not counted.
    pub(super) switches: Option<f64>,
    /// How many times as long a pass takes as it would if a wait lasted as long as the holds of the others, an
    /// estimate.
    pub(super) cost: f64,
}

impl<'a> Queue<'a> {
    /// The queue at a lock, if there is one and it costs more than the run could tell from nothing.
    pub(super) fn of(view: &View<'a>, site: &Site<'a>) -> Option<Queue<'a>> {
        let lock: &LockSummary = site.lock;
        let (wait, hold) = (lock.wait_ns?, lock.hold_ns?);
        let window_ns = site.window_ns(view);
        let others_hold_ns = hold.mean * (site.workers() - 1.0);
        let passing_on = (1.0 - others_hold_ns / wait.mean.max(1.0)).max(0.0);
        let queue = Queue {
            site: *site,
            contended: lock.contended_share?,
            handoffs: lock.handoffs_per_op?,
            held: hold.mean * lock.acquisitions as f64 / (window_ns / site.workers()),
            wait,
            hold,
            switches: switches(view, site),
            cost: locks::times_as_long(site.waited_ns() * passing_on, window_ns),
        };
        let persists = queue.contended >= LEAST_CONTENDED && queue.handoffs >= LEAST_HANDOFFS;
        (persists && queue.held <= MOST_HELD && queue.cost > cost::threshold(view)).then_some(queue)
    }

    /// Whether waiters sleep, so that a handoff takes a waking: what was counted decides, else the kind.
    pub(super) fn sleeps(&self) -> bool {
        let may = self.site.kind().is_some_and(|kind| !kind.spins());
        may && self.switches.is_none_or(|switches| switches >= LEAST_ASLEEP)
    }

    /// What variants that pass it on less give.
    fn gain(&self, view: &View<'a>, sites: &[Site<'a>]) -> Option<Gain> {
        let less = |share: Option<f64>, than: f64| share.is_some_and(|share| share <= LOOSENED * than);
        let loosened = |other: &&Site| {
            other.name() != self.site.name()
                && other.lock.lock == self.site.lock.lock
                && same_work(other.arm, self.site.arm)
                && (less(other.lock.contended_share, self.contended) || less(other.lock.handoffs_per_op, self.handoffs))
        };
        let cured: Vec<(&BoundArm, &Program)> = sites.iter().filter(loosened).map(|o| (o.arm, o.program)).collect();
        locks::gain(view, &self.site, &self.site.roles(), &cured)
    }

    /// The finding in a rule's words; `cure` is given what names the arm that holds it.
    pub(super) fn told(
        self,
        view: &View<'a>,
        sites: &[Site<'a>],
        text: String,
        cure: impl FnOnce(String) -> String,
    ) -> Finding<'a> {
        let gain = self.gain(view, sites);
        let (name, lock) = (self.site.name(), &self.site.lock.lock);
        let mut evidence = vec![
            measured(format!("contended acquisitions of `{lock}` in `{name}`"), self.contended * 100.0, "%"),
            measured(format!("handoffs for each acquisition of `{lock}` in `{name}`"), self.handoffs, ""),
            measured(format!("wait for `{lock}` in `{name}`, p50"), self.wait.p50 as f64, "ns"),
            measured(format!("wait for `{lock}` in `{name}`, mean"), self.wait.mean, "ns"),
            measured(format!("hold of `{lock}` in `{name}`, p50"), self.hold.p50 as f64, "ns"),
            measured(format!("hold of `{lock}` in `{name}`, mean"), self.hold.mean, "ns"),
            self.switches_evidence(),
            super::evidence::transfer(view, name),
        ];
        evidence.extend([
            estimated(format!("time that `{lock}` is held in `{name}`"), self.held * 100.0, "%"),
            estimated("pass over one that waits for the others' holds alone".to_owned(), self.cost, "times"),
        ]);
        Finding {
            site: self.site,
            cost: self.cost,
            text,
            fields: Vec::new(),
            roles: self.site.roles().into_iter().map(str::to_owned).collect(),
            evidence,
            cure: cure(locks::shown(gain.as_ref())),
            gain,
        }
    }

    fn switches_evidence(&self) -> Evidence {
        let what = format!("sleeps for each contended acquisition in `{}`", self.site.name());
        locks::figure(what, self.switches, "", "voluntary context switches were not counted")
    }
}

/// Voluntary context switches of the lock's workers for each contended acquisition. Their other sleeps count too, so it
/// is no more than a bound from above where a loop has steps that sleep.
fn switches(view: &View, site: &Site) -> Option<f64> {
    let (mut switches, mut contended) = (0, 0);
    for (observation, lock) in site.seen(view) {
        let Some(Reading::Counted { value }) = observation.counters.get(SWITCHES) else { return None };
        (switches, contended) = (switches + value, contended + lock.contended);
    }
    (contended > 0).then(|| switches as f64 / contended as f64)
}
