//! Long hold: the waits at a lock are far longer than most hold it, because one role sometimes, or always, holds it
//! long.

use super::cost;
use super::locks::{self, Finding, Site, estimated, figure, measured};
use crate::times::{count, percentiles};
use crate::view::View;
use crate::words;
use plan::{BoundArm, Program};
use record::{ArmSummary, Diagnosis, NsCount, Percentiles};

/// A hold is long from so many times the typical one, the median of the role that holds shortest: one hold varies by
/// two or three with what the critical section finds in its caches, which is no reason to look for a culprit.
const LONG: f64 = 10.0;

/// No shorter hold is long: the lines of what a lock protects may have to come from another core each time, which takes
/// up to some hundred nanoseconds each. Against a median of 10 ns, which is the clock's own step on some machines, that
/// would be ten times as long.
const LEAST_LONG_NS: f64 = 1000.0;

/// So much of all waiting must fall to a role's long holds before they are its cause: below, something else is.
const LEAST_EXPLAINED: f64 = 0.5;

/// A variant holds the cure where the role's mean hold is at most this part of it.
const SHORTENED: f64 = 0.5;

pub(super) fn find(view: &View, arms: &[ArmSummary]) -> Option<(f64, Diagnosis)> {
    let sites = locks::sites(view, arms);
    let found = sites.iter().filter_map(|site| {
        let holders = site.roles().into_iter().filter_map(|role| Holder::of(view, site, role));
        let worst = holders.max_by(|a, b| a.explained.total_cmp(&b.explained))?;
        finding(view, &sites, site, &worst)
    });
    locks::report("long_hold", found.collect())
}

/// A role that holds a lock long.
struct Holder<'a> {
    role: &'a str,
    hold: Percentiles,
    /// Median hold of the role that holds shortest.
    typical_ns: f64,
    /// Share of all waiting at the lock that its long holds explain, an estimate.
    explained: f64,
}

impl<'a> Holder<'a> {
    fn of(view: &View<'a>, site: &Site<'a>, role: &'a str) -> Option<Holder<'a>> {
        let wait = site.lock.wait_ns?;
        let medians = site.roles().into_iter().filter_map(|r| percentiles(&site.holds(view, r)));
        let typical_ns = medians.map(|hold| hold.p50.max(1) as f64).reduce(f64::min)?;
        let holds = site.holds(view, role);
        let hold = percentiles(&holds)?;
        let long = |h: &&NsCount| is_long(h.ns, typical_ns);
        let waited_ns = site.waited_ns();
        if !is_long(wait.p99, typical_ns) || waited_ns <= 0.0 || !holds.iter().any(|h| long(&h)) {
            return None;
        }
        let own_ns = time_between(view, site, role);
        let behind = |h: &NsCount| h.count as f64 * waiting_behind(h.ns as f64, own_ns);
        let sampled: f64 = holds.iter().filter(long).map(behind).sum();
        let acquisitions: u64 = site.lock.by_worker.iter().filter(|w| w.role == role).map(|w| w.acquisitions).sum();
        let of_all = acquisitions as f64 / count(&holds) as f64;
        let explained = (sampled * of_all * (site.workers() - 1.0) / waited_ns).min(1.0);
        (explained >= LEAST_EXPLAINED).then_some(Holder { role, hold, typical_ns, explained })
    }

    /// Its percentile that says it, and which one that is.
    fn long_hold(&self) -> (u64, &'static str) {
        let long = |ns: u64| is_long(ns, self.typical_ns);
        match self.hold {
            hold if long(hold.p50) => (hold.p50, "p50"),
            hold if long(hold.p90) => (hold.p90, "p90"),
            hold if long(hold.p99) => (hold.p99, "p99"),
            hold => (hold.max, "max"),
        }
    }
}

/// Whether a hold, or a wait behind one, is long where a hold typically takes so long.
fn is_long(ns: u64, typical_ns: f64) -> bool {
    ns as f64 >= (LONG * typical_ns).max(LEAST_LONG_NS)
}

/// From one release to the next call of those who wait, without waiting: the other roles', or where there is none the
/// workers' of the same.
fn time_between(view: &View, site: &Site, role: &str) -> f64 {
    let alone = site.roles().len() == 1;
    let other = |name: &str| alone || name != role;
    let window_ns: f64 = site.seen(view).iter().filter(|(o, _)| other(&o.role)).map(|(o, _)| o.window_ns).sum();
    let acquisitions: u64 = site.lock.by_worker.iter().filter(|w| other(&w.role)).map(|w| w.acquisitions).sum();
    let own_ns = window_ns - locks::waited_ns(site.lock, other);
    if acquisitions > 0 { own_ns.max(0.0) / acquisitions as f64 } else { window_ns }
}

/// How long a worker that comes by each `own_ns` waits behind a hold, on average over when it comes: it arrives evenly
/// spread over its own time, and waits for the rest of the hold.
fn waiting_behind(hold_ns: f64, own_ns: f64) -> f64 {
    if hold_ns >= own_ns { hold_ns - own_ns / 2.0 } else { hold_ns * hold_ns / (2.0 * own_ns) }
}

fn finding<'a>(view: &View<'a>, sites: &[Site<'a>], site: &Site<'a>, holder: &Holder<'a>) -> Option<Finding<'a>> {
    let roles = site.roles();
    let alone = roles.len() == 1;
    let victims: Vec<&str> = roles.iter().copied().filter(|role| alone || *role != holder.role).collect();
    let victim = |role: &str| victims.contains(&role);
    let window_ns: f64 = site.seen(view).iter().filter(|(o, _)| victim(&o.role)).map(|(o, _)| o.window_ns).sum();
    let cost = locks::times_as_long(holder.explained * locks::waited_ns(site.lock, victim), window_ns);
    if cost <= cost::threshold(view) {
        return None;
    }
    let cures = sites.iter().filter(|other| cures(view, site, other, holder));
    let cured: Vec<(&BoundArm, &Program)> = cures.map(|other| (other.arm, other.program)).collect();
    let gain = locks::gain(view, site, &victims, &cured);
    let (name, lock, role) = (site.name(), &site.lock.lock, holder.role);
    let (long_ns, which) = holder.long_hold();
    let share = words::percent(holder.explained);
    Some(Finding {
        site: *site,
        cost,
        text: format!(
            "In `{name}`, `{role}` holds `{lock}` for {} ns ({which} of its holds) where {} ns are usual: an estimated \
             {share} of all waiting for the lock falls to its long holds.",
            words::figure(long_ns as f64),
            words::figure(holder.typical_ns)
        ),
        fields: Vec::new(),
        roles: vec![role.to_owned()],
        evidence: vec![
            measured(format!("hold of `{lock}` by `{role}` in `{name}`, {which}"), long_ns as f64, "ns"),
            measured(format!("hold of `{lock}` by `{role}` in `{name}`, mean"), holder.hold.mean, "ns"),
            measured(format!("usual hold of `{lock}` in `{name}`, p50"), holder.typical_ns, "ns"),
            figure(
                format!("wait for `{lock}` in `{name}`, p50"),
                site.lock.wait_ns.map(|w| w.p50 as f64),
                "ns",
                "none",
            ),
            figure(
                format!("wait for `{lock}` in `{name}`, p99"),
                site.lock.wait_ns.map(|w| w.p99 as f64),
                "ns",
                "none",
            ),
            estimated("share of all waiting that its long holds explain".to_owned(), holder.explained * 100.0, "%"),
            estimated("pass over a pass without that waiting".to_owned(), cost, "times"),
        ],
        cure: format!(
            "Let `{role}` hold the lock for less{}: compute and copy outside the critical section, take the lock for \
             each small part, or give what it works on a lock of its own.",
            locks::shown(gain.as_ref())
        ),
        gain,
    })
}

/// Whether the other roles do the same there, and this one holds the same lock for much less.
fn cures<'a>(view: &View<'a>, site: &Site<'a>, other: &Site<'a>, holder: &Holder) -> bool {
    let (a, b) = (&site.arm.arm.case.roles, &other.arm.arm.case.roles);
    let alike = a.len() == b.len()
        && a.iter()
            .zip(b)
            .all(|(x, y)| x.name == y.name && x.workers == y.workers && (x.name == holder.role || x.steps == y.steps));
    let shorter = || {
        let hold = percentiles(&other.holds(view, holder.role));
        hold.is_some_and(|hold| hold.mean <= SHORTENED * holder.hold.mean)
    };
    other.name() != site.name() && other.lock.lock == site.lock.lock && alike && shorter()
}
