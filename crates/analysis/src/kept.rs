//! The repetitions of each arm that count, by block, and one arm held against another in them.

use crate::figures::{Figure, Series, ns_per_op, pairs, slowest_ns_per_op};
use crate::interval;
use record::{Interval, Observation};
use std::collections::BTreeMap;

/// Which figure of a role is compared.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Who {
    /// The median worker's nanoseconds a pass.
    Median,
    /// The slowest worker's.
    Slowest,
}

/// The kept repetitions of some arms, each within one regime, for comparisons by block.
pub struct Kept<'a> {
    seed: u64,
    /// By arm, by block.
    arms: BTreeMap<&'a str, BTreeMap<u32, Vec<&'a Observation>>>,
}

impl<'a> Kept<'a> {
    /// Those of `observations`, as [`analyse`](crate::analyse) has left them, that are not spoiled and lie in the
    /// regime that `regime_of` gives for their arm: [`ArmSummary::regime`](record::ArmSummary::regime). `seed` is that
    /// of the run.
    pub fn of(observations: &'a [Observation], regime_of: impl Fn(&str) -> Option<u32>, seed: u64) -> Kept<'a> {
        let mut arms: BTreeMap<&str, BTreeMap<u32, Vec<&Observation>>> = BTreeMap::new();
        let counts = |o: &&Observation| o.spoiled.is_empty() && o.regime.is_some() && o.regime == regime_of(&o.arm);
        for observation in observations.iter().filter(counts) {
            arms.entry(&observation.arm).or_default().entry(observation.block).or_default().push(observation);
        }
        Kept { seed, arms }
    }

    /// How much faster `arm` is than `base` in one role: the time of a pass in `base` over that in `arm`, paired by
    /// block; `None` below three blocks of both.
    pub fn gain(&self, base: &str, arm: &str, role: &str, who: Who) -> Option<Interval> {
        let figure: Figure = match who {
            Who::Median => ns_per_op,
            Who::Slowest => slowest_ns_per_op,
        };
        let pairs = pairs(&self.series(base, role, figure), &self.series(arm, role, figure));
        interval::ratio(&pairs, &mut interval::dice(self.seed, &format!("{base}/{arm}/{role}/{who:?}")))
    }

    /// The same over several roles: the geometric mean of their gains, block by block. Each role counts alike, however
    /// many workers it has.
    pub fn gain_over(&self, base: &str, arm: &str, roles: &[&str]) -> Option<Interval> {
        let pairs = pairs(&self.mean(base, roles), &self.mean(arm, roles));
        interval::ratio(&pairs, &mut interval::dice(self.seed, &format!("{base}/{arm}/{roles:?}")))
    }

    /// The repetitions of an arm, by block.
    pub(crate) fn repetitions(&self, arm: &str) -> impl Iterator<Item = (u32, &[&'a Observation])> {
        self.arms.get(arm).into_iter().flatten().map(|(block, workers)| (*block, workers.as_slice()))
    }

    /// A figure of one role by block.
    pub(crate) fn series(&self, arm: &str, role: &str, figure: impl Fn(&[&'a Observation]) -> Option<f64>) -> Series {
        let of_role = |workers: &[&'a Observation]| -> Vec<&'a Observation> {
            workers.iter().copied().filter(|o| o.role == role).collect()
        };
        self.repetitions(arm).filter_map(|(block, workers)| Some((block, figure(&of_role(workers))?))).collect()
    }

    /// Their geometric mean over roles, of the blocks that have all.
    fn mean(&self, arm: &str, roles: &[&str]) -> Series {
        let mut product: BTreeMap<u32, (f64, usize)> = BTreeMap::new();
        for role in roles {
            for (block, ns) in self.series(arm, role, ns_per_op) {
                let (sum, count) = product.entry(block).or_default();
                (*sum, *count) = (*sum + ns.ln(), *count + 1);
            }
        }
        let whole = product.into_iter().filter(|(_, (_, count))| *count == roles.len());
        whole.map(|(block, (sum, count))| (block, (sum / count as f64).exp())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::Bench;

    fn near(seen: Option<Interval>, median: f64) -> bool {
        seen.is_some_and(|i| (i.median / median - 1.0).abs() < 1e-6 && i.low <= i.median && i.median <= i.high)
    }

    #[test]
    fn a_gain_is_the_time_before_over_the_time_after_and_spoiled_repetitions_count_for_nothing() {
        let mut bench = Bench::new(&["packed", "padded-64"]);
        bench.run(10, |arm, block| (1.0 + 0.05 * f64::from(block)) * if arm == "padded-64" { 2.0 } else { 20.0 });
        let arms = bench.analyse().arms;
        for o in bench.observations.iter_mut().filter(|o| o.block == 0) {
            (o.ns_per_op, o.spoiled) = (Some(1e6), vec!["lost_time".into()]);
        }
        let regime = |name: &str| arms.iter().find(|arm| arm.name == name)?.regime;
        let kept = Kept::of(&bench.observations, regime, 1);
        assert!(near(kept.gain("packed", "padded-64", "counter", Who::Median), 10.0));
        assert!(near(kept.gain("padded-64", "packed", "counter", Who::Slowest), 0.1));
        assert!(near(kept.gain("packed", "control", "counter", Who::Median), 1.0));
        assert!(near(kept.gain_over("packed", "padded-64", &["counter"]), 10.0));
        assert_eq!(kept.gain("packed", "nowhere", "counter", Who::Median), None);
        assert_eq!(kept.gain_over("packed", "padded-64", &["counter", "nobody"]), None);
        let nowhere = Kept::of(&bench.observations, |_| None, 1);
        assert_eq!(nowhere.gain("packed", "padded-64", "counter", Who::Median), None);
    }
}
