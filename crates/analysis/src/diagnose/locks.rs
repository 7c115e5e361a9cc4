//! What the rules about locks have in common: the locks of the variants, what they cost, and how a finding is told.

use super::{cost, severity};
use crate::view::View;
use plan::{ArmKind, BoundArm, LockKind, Program};
use record::{ArmState, ArmSummary, Diagnosis, Evidence, Gain, LockObservation, LockSummary, Observation, WaitCount};

/// The largest part of the workers' time that an estimate may call lost: nobody who finished a pass only waited, and a
/// cost beyond 20 × would be told to more digits than it has.
const MOST_LOST: f64 = 0.95;

/// A lock of a variant that has figures.
#[derive(Copy, Clone)]
pub(super) struct Site<'a> {
    pub(super) arm: &'a BoundArm,
    pub(super) program: &'a Program,
    pub(super) lock: &'a LockSummary,
}

/// Every lock of every variant that has figures.
pub(super) fn sites<'a>(view: &View<'a>, arms: &'a [ArmSummary]) -> Vec<Site<'a>> {
    let variants = view
        .bound
        .arms
        .iter()
        .zip(arms)
        .filter(|(bound, summary)| bound.arm.kind == ArmKind::Variant && summary.state == ArmState::Measured);
    let mut found = Vec::new();
    for (arm, summary) in variants {
        let Ok(program) = &arm.program else { continue };
        found.extend(summary.locks.iter().map(|lock| Site { arm, program, lock }));
    }
    found
}

impl<'a> Site<'a> {
    /// The arm's name.
    pub(super) fn name(&self) -> &'a str {
        &self.arm.arm.name
    }

    /// The lock's algorithm; `None` where the Program does not know the lock.
    pub(super) fn kind(&self) -> Option<LockKind> {
        self.program.locks.iter().find(|l| l.name == self.lock.lock).map(|l| l.kind)
    }

    /// Kept observations of the lock's workers, each with its dealings with it.
    pub(super) fn seen(&self, view: &View<'a>) -> Vec<(&'a Observation, &'a LockObservation)> {
        let workers = view.workers(self.name(), None).into_iter();
        workers.flat_map(|o| o.locks.iter().filter(|l| l.lock == self.lock.lock).map(move |l| (o, l))).collect()
    }

    /// The roles at the lock, in the order of the workers.
    pub(super) fn roles(&self) -> Vec<&'a str> {
        let mut roles: Vec<&str> = Vec::new();
        for worker in &self.lock.by_worker {
            if !roles.contains(&worker.role.as_str()) {
                roles.push(&worker.role);
            }
        }
        roles
    }

    /// Sampled holds of one role.
    pub(super) fn holds(&self, view: &View<'a>, role: &str) -> Vec<WaitCount> {
        let of_role = self.seen(view).into_iter().filter(|(o, _)| o.role == role);
        of_role.flat_map(|(_, lock)| lock.holds.iter().copied()).collect()
    }

    /// All workers' windows in the kept repetitions together.
    pub(super) fn window_ns(&self, view: &View<'a>) -> f64 {
        self.seen(view).iter().map(|(o, _)| o.window_ns).sum()
    }

    /// The workers that share it out, at least 1.
    pub(super) fn workers(&self) -> f64 {
        self.lock.by_worker.len().max(1) as f64
    }

    /// All contended waits together, as far as their mean tells it of those that were masked or not logged.
    pub(super) fn waited_ns(&self) -> f64 {
        waited_ns(self.lock, |_| true)
    }
}

/// The contended waits of some workers together.
pub(super) fn waited_ns(lock: &LockSummary, whose: impl Fn(&str) -> bool) -> f64 {
    let workers = lock.by_worker.iter().filter(|w| whose(&w.role));
    workers.map(|w| w.wait_ns.map_or(0.0, |wait| wait.mean * w.contended as f64)).sum()
}

/// How many times as long passes take as they would without what is lost.
pub(super) fn times_as_long(lost_ns: f64, of_ns: f64) -> f64 {
    let lost = if of_ns > 0.0 { (lost_ns / of_ns).clamp(0.0, MOST_LOST) } else { 0.0 };
    1.0 / (1.0 - lost)
}

/// Where a rule about locks fires, in its own words.
pub(super) struct Finding<'a> {
    pub(super) site: Site<'a>,
    /// How many times as long a pass takes: measured against a cure, or estimated.
    pub(super) cost: f64,
    pub(super) text: String,
    /// Beside the lock.
    pub(super) fields: Vec<String>,
    pub(super) roles: Vec<String>,
    pub(super) evidence: Vec<Evidence>,
    pub(super) cure: String,
    pub(super) gain: Option<Gain>,
}

/// A rule's findings as one diagnosis of the worst of them: the other variants it was seen in are named.
pub(super) fn report(kind: &str, mut found: Vec<Finding>) -> Option<(f64, Diagnosis)> {
    found.sort_by(|a, b| b.cost.total_cmp(&a.cost));
    let mut arms: Vec<String> = Vec::new();
    for finding in &found {
        if !arms.iter().any(|arm| arm == finding.site.name()) {
            arms.push(finding.site.name().to_owned());
        }
    }
    let worst = found.into_iter().next()?;
    let mut fields = vec![worst.site.lock.lock.clone()];
    fields.extend(worst.fields);
    let diagnosis = Diagnosis {
        kind: kind.to_owned(),
        severity: severity(worst.cost),
        text: worst.text,
        arms,
        fields,
        roles: worst.roles,
        evidence: worst.evidence,
        cure: worst.cure,
        expected_gain: worst.gain,
    };
    Some((worst.cost, diagnosis))
}

/// What the variants that hold a cure give the role that gains most by it.
pub(super) fn gain(view: &View, site: &Site, roles: &[&str], cured: &[(&BoundArm, &Program)]) -> Option<Gain> {
    cost::worst(roles.iter().map(|role| cost::against_cured(view, site.arm, role, cured)))?.gain
}

/// The same of the role's slowest worker.
pub(super) fn slowest_gain(view: &View, site: &Site, roles: &[&str], cured: &[Site]) -> Option<Gain> {
    let pairs = cured.iter().flat_map(|other| roles.iter().map(move |role| (other.name(), *role)));
    let gains = pairs.filter_map(|(arm, role)| {
        let ratio = view.slowest_ratio(site.name(), arm, role)?;
        (ratio.low > cost::threshold(view)).then(|| Gain { arm: arm.to_owned(), ratio })
    });
    gains.max_by(|a, b| a.ratio.median.total_cmp(&b.ratio.median))
}

/// As a cure's parenthesis: `` (`other` does)``; nothing where no arm holds it.
pub(super) fn shown(gain: Option<&Gain>) -> String {
    gain.map_or_else(String::new, |gain| format!(" (`{}` does)", gain.arm))
}

/// Evidence that was measured.
pub(super) fn measured(name: String, value: f64, unit: &str) -> Evidence {
    Evidence::new(name, Some(value), unit, "measured")
}

/// Evidence that was computed from measured waits and sampled holds, on assumptions: never called measured.
pub(super) fn estimated(name: String, value: f64, unit: &str) -> Evidence {
    Evidence::new(name, Some(value), unit, "modelled, from measured waits and sampled holds")
}

/// Evidence from a measured figure that may be missing.
pub(super) fn figure(name: String, value: Option<f64>, unit: &str, missing: &str) -> Evidence {
    match value {
        Some(value) => measured(name, value, unit),
        None => Evidence::new(name, None, unit, &format!("missing: {missing}")),
    }
}
