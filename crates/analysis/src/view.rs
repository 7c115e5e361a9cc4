//! The run as every later stage looks at it: the kept repetitions of each arm in its headline regime, by block.

use crate::figures::{Figure, Series, ns_per_op, pairs, slowest_ns_per_op};
use crate::interval;
use crate::kept::Kept;
use crate::regime::Regimes;
use plan::{ArmKind, Bound, BoundArm, Plan, Program, Role, Topology};
use record::{CountedEvent, Events, Interval, Observation};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// What was asked and what was kept.
pub(crate) struct View<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) bound: &'a Bound,
    pub(crate) topology: &'a Topology,
    /// What the counters' names stand for here.
    pub(crate) events: Events<'a>,
    pub(crate) observations: &'a [Observation],
    pub(crate) regimes: &'a Regimes,
    /// The control arm's ratio to its twin.
    pub(crate) control: Option<Interval>,
    /// The smallest effect the run could have seen, as a ratio minus 1.
    pub(crate) resolution: Option<f64>,
    seed: u64,
    kept: Kept<'a>,
    /// Ratios made so far, by name.
    ratios: RefCell<BTreeMap<String, Option<Interval>>>,
}

impl<'a> View<'a> {
    pub(crate) fn new(
        plan: &'a Plan,
        bound: &'a Bound,
        topology: &'a Topology,
        events: &'a [CountedEvent],
        observations: &'a [Observation],
        regimes: &'a Regimes,
        seed: u64,
    ) -> View<'a> {
        let kept = Kept::of(observations, |arm| regimes.by_arm.get(arm).copied(), seed);
        let (control, resolution) = (None, None);
        let mut view = View {
            plan,
            bound,
            topology,
            events: Events(events),
            observations,
            regimes,
            control,
            resolution,
            seed,
            kept,
            ratios: RefCell::default(),
        };
        view.control = view.control_ratio();
        view.resolution = view.control.map(|i| i.high.max(1.0 / i.low) - 1.0);
        view
    }

    fn control_ratio(&self) -> Option<Interval> {
        let (control, twin) = self.twins(ArmKind::Control)?;
        self.ratio(&control.arm.name, &twin.arm.name, &self.headline_role(twin).name)
    }

    /// The first variant's ratio to its twin whose locks are neither tried first nor timed.
    pub(crate) fn lock_timing(&self) -> Option<Interval> {
        let (plain, twin) = self.twins(ArmKind::Plain)?;
        self.ratio(&twin.arm.name, &plain.arm.name, &self.headline_role(twin).name)
    }

    /// The reference of that kind, and the variant at the same point of the sweep that it repeats.
    fn twins(&self, kind: ArmKind) -> Option<(&'a BoundArm, &'a BoundArm)> {
        let reference = self.bound.arms.iter().find(|a| a.arm.kind == kind)?;
        let twin = |a: &&BoundArm| {
            let same_point = a.arm.variant == reference.arm.variant && a.arm.sweep == reference.arm.sweep;
            a.arm.kind == ArmKind::Variant && same_point
        };
        Some((reference, self.bound.arms.iter().find(twin)?))
    }

    /// The arm of that name.
    pub(crate) fn arm(&self, name: &str) -> Option<&'a BoundArm> {
        self.bound.arms.iter().find(|a| a.arm.name == name)
    }

    /// The variants that this machine can place, each with its Program.
    pub(crate) fn variants(&self) -> impl Iterator<Item = (&'a BoundArm, &'a Program)> + use<'a> {
        let variants = self.bound.arms.iter().filter(|a| a.arm.kind == ArmKind::Variant);
        variants.filter_map(|a| a.program.as_ref().ok().map(|program| (a, program)))
    }

    /// The role whose figures head an arm; a solo arm's is the one that runs.
    pub(crate) fn headline_role(&self, arm: &'a BoundArm) -> &'a Role {
        let index = match arm.arm.kind {
            ArmKind::Solo { role } => role,
            _ => self.plan.measure.headline_role,
        };
        &arm.arm.case.roles[index]
    }

    /// Repetitions of an arm that were run, whatever became of them.
    pub(crate) fn runs(&self, arm: &str) -> usize {
        let blocks = self.observations.iter().filter(|o| o.arm == arm).map(|o| o.block);
        blocks.collect::<std::collections::BTreeSet<_>>().len()
    }

    /// Kept repetitions of an arm, by block.
    pub(crate) fn kept(&self, arm: &str) -> impl Iterator<Item = (u32, &[&'a Observation])> {
        self.kept.repetitions(arm)
    }

    /// Kept observations of the workers of one role (all roles with `None`) of an arm.
    pub(crate) fn workers(&self, arm: &str, role: Option<&str>) -> Vec<&'a Observation> {
        let all = self.kept(arm).flat_map(|(_, workers)| workers.iter().copied());
        all.filter(|o| role.is_none_or(|role| o.role == role)).collect()
    }

    /// A figure of one role by block.
    pub(crate) fn series(&self, arm: &str, role: &str, figure: impl Fn(&[&'a Observation]) -> Option<f64>) -> Series {
        self.kept.series(arm, role, figure)
    }

    /// The median of a series, and its interval; `name` names the figure for the generator of the resamples.
    pub(crate) fn single(&self, series: &Series, name: &str) -> Option<Interval> {
        let values: Vec<f64> = series.values().copied().collect();
        interval::single(&values, &mut interval::dice(self.seed, name))
    }

    /// The ratio of two series, paired by block, and its interval.
    pub(crate) fn ratio_of(&self, left: &Series, right: &Series, name: &str) -> Option<Interval> {
        interval::ratio(&pairs(left, right), &mut interval::dice(self.seed, name))
    }

    /// The ratio of one role's ns per pass in two arms. Many rules ask for the same one.
    pub(crate) fn ratio(&self, left: &str, right: &str, role: &str) -> Option<Interval> {
        self.cached(format!("{left}/{right}/{role}"), left, right, role, ns_per_op)
    }

    /// The same of the role's slowest worker.
    pub(crate) fn slowest_ratio(&self, left: &str, right: &str, role: &str) -> Option<Interval> {
        self.cached(format!("{left}/{right}/{role}/slowest"), left, right, role, slowest_ns_per_op)
    }

    fn cached(&self, name: String, left: &str, right: &str, role: &str, figure: Figure) -> Option<Interval> {
        if let Some(known) = self.ratios.borrow().get(&name) {
            return *known;
        }
        let (l, r) = (self.series(left, role, figure), self.series(right, role, figure));
        let ratio = self.ratio_of(&l, &r, &name);
        self.ratios.borrow_mut().insert(name, ratio);
        ratio
    }

    /// The baseline against which `role` of `arm` can be held: the one of that kind in which the role's steps, and the
    /// locks, are the same; for `unshared` also all other roles and the numbers of workers.
    pub(crate) fn baseline(&self, arm: &BoundArm, role: &str, solo: bool) -> Option<&'a BoundArm> {
        let fits = |b: &&BoundArm| match b.arm.kind {
            ArmKind::Solo { role: index } => {
                solo && b.arm.case.roles[index].name == role && same_steps(&b.arm.case.roles[index], arm)
            }
            ArmKind::Unshared => !solo && same_work(b, arm),
            _ => false,
        };
        let same_locks = |b: &&BoundArm| {
            let kinds = |a: &BoundArm| a.arm.case.locks.iter().map(|l| l.kind).collect::<Vec<_>>();
            kinds(b) == kinds(arm)
        };
        self.bound.arms.iter().filter(|b| b.program.is_ok() && same_locks(b)).find(fits)
    }
}

fn same_steps(role: &Role, arm: &BoundArm) -> bool {
    arm.arm.case.roles.iter().any(|r| r.name == role.name && r.steps == role.steps)
}

/// Whether two arms run the same roles, steps and numbers of workers, so that only where things lie, or what is shared,
/// tells them apart.
pub(crate) fn same_work(a: &BoundArm, b: &BoundArm) -> bool {
    let alike = |(x, y): (&Role, &Role)| x.name == y.name && x.workers == y.workers && x.steps == y.steps;
    let (a, b) = (&a.arm.case.roles, &b.arm.case.roles);
    a.len() == b.len() && a.iter().zip(b).all(alike)
}
