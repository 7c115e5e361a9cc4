//! How sure a median, or a ratio of medians, is: the one place that decides how intervals are made.
//!
//! A figure is taken per block; blocks are what is independent, slices within one are not. Each interval is the outer
//! hull of two simple ones, because either alone covers less than it claims where a machine's speed drifts:
//!
//! * the percentile interval of a block bootstrap (2,000 resamples), which sees how the *ratio of medians* moves but
//!   is too narrow with few blocks;
//! * the order-statistic (sign test) interval of the median block ratio, which assumes nothing about the distribution:
//!   with `n` blocks it runs from the k-th smallest to the k-th largest, `k` being the largest rank whose level is at
//!   least 95 %.
//!
//! Neither sees that blocks of one run are not independent: a machine's state lasts longer than a run. The hull is
//! therefore stretched about the estimate by `STRETCH`.
//!
//! Below six blocks no rank reaches 95 % and the range is taken: before the stretch its level is 93.75 % with five
//! blocks, 87.5 % with four, 75 % with three. Below three there is no interval.
//!
//! Two runs have no block in common. Their ratio ([`independent`]) is made in the same way of what each has: the
//! bootstrap draws the blocks of each by themselves, and the sign-test intervals of both medians are drawn together on
//! the logarithmic scale, distance by distance in squares, as those of independent estimates are.
//!
//! # References
//! G. Y. Zou, A. Donner, *Construction of confidence limits about effect measures: a general approach*, Statistics in
//! Medicine 27, 2008 (drawing two intervals together); B. Efron, R. Tibshirani, *An Introduction to the Bootstrap*, ch.
//! 13; W. J. Conover, *Practical Nonparametric Statistics*, 3.2 (confidence interval for a quantile).

use crate::FEWEST_BLOCKS;
use crate::stats::{median, median_of};
use rand::Rng;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use record::Interval;

/// Level of every interval.
pub(crate) const LEVEL: f64 = 0.95;

/// The method in a phrase, for `method.interval`.
pub(crate) const METHOD: &str = "outer hull of a block bootstrap of the ratio of medians (2000 resamples) and the sign-test \
                          interval of the median block ratio, stretched by 1.5 for blocks that are not independent";

/// By how much the hull is stretched: what 2.25 times fewer independent blocks would do. Chosen by measuring: over
/// sixty runs in three series the plain hull held a contended arm's pooled ratio in 14, 19 and 17 of 20, this one in
/// 17, 19 and 18 (docs/coverage.md).
const STRETCH: f64 = 1.5;

/// Resamples of the bootstrap: its 2.5 % tails then rest on 50 of them. Fewer make the ends jitter by seed.
const RESAMPLES: usize = 2000;

/// A generator for one figure: the run's seed and the figure's name, so that one more arm moves no other interval.
pub(crate) fn dice(seed: u64, figure: &str) -> SmallRng {
    // FNV-1a: fixed for all time, which the standard library's hasher is not.
    let name = figure.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    SmallRng::seed_from_u64(seed ^ name)
}

/// The ratio of the medians of two figures paired by block (`left / right`), and its 95 % interval.
///
/// `None` below three pairs, or where a value is not a positive number: then there is no ratio to speak of.
pub(crate) fn ratio(pairs: &[(f64, f64)], rng: &mut impl Rng) -> Option<Interval> {
    let positive = |v: f64| v.is_finite() && v > 0.0;
    if pairs.len() < FEWEST_BLOCKS || !pairs.iter().all(|&(l, r)| positive(l) && positive(r)) {
        return None;
    }
    let estimate = median_of(pairs.iter().map(|p| p.0))? / median_of(pairs.iter().map(|p| p.1))?;
    let (mut left, mut right) = (vec![0.0; pairs.len()], vec![0.0; pairs.len()]);
    let resampled = (0..RESAMPLES).map(|_| {
        for slot in 0..pairs.len() {
            (left[slot], right[slot]) = pairs[rng.random_range(0..pairs.len())];
        }
        // Neither is empty, so both medians exist.
        median(&mut left).unwrap_or(1.0) / median(&mut right).unwrap_or(1.0)
    });
    let bootstrap = percentile(resampled.collect());
    let logs = order_statistic(pairs.iter().map(|(l, r)| (l / r).ln()).collect());
    Some(stretched(hull(estimate, bootstrap, (logs.0.exp(), logs.1.exp()))))
}

/// The ratio of the medians of one figure in two runs (`left / right`), whose blocks have nothing to do with each
/// other, and its 95 % interval. What the machine did between the runs is not in it.
///
/// `None` with fewer than three values on a side, or where one is not a positive number.
pub(crate) fn independent(left: &[f64], right: &[f64], rng: &mut impl Rng) -> Option<Interval> {
    let usable = |values: &[f64]| values.len() >= FEWEST_BLOCKS && values.iter().all(|v| v.is_finite() && *v > 0.0);
    if !usable(left) || !usable(right) {
        return None;
    }
    let estimate = median_of(left.iter().copied())? / median_of(right.iter().copied())?;
    let mut drawn = vec![0.0; left.len().max(right.len())];
    let mut resampled = |values: &[f64], rng: &mut _| {
        let drawn = &mut drawn[..values.len()];
        drawn.fill_with(|| values[Rng::random_range(rng, 0..values.len())]);
        // It is not empty, so its median exists.
        median(drawn).unwrap_or(1.0)
    };
    let ratios = (0..RESAMPLES).map(|_| resampled(left, rng) / resampled(right, rng));
    let bootstrap = percentile(ratios.collect());
    let (left, right) = (log_sides(left)?, log_sides(right)?);
    let below = (left.0.powi(2) + right.1.powi(2)).sqrt();
    let above = (left.1.powi(2) + right.0.powi(2)).sqrt();
    Some(stretched(hull(estimate, bootstrap, (estimate * (-below).exp(), estimate * above.exp()))))
}

/// How far the sign-test interval of a median reaches below and above it, on the logarithmic scale.
fn log_sides(values: &[f64]) -> Option<(f64, f64)> {
    let median = median_of(values.iter().copied())?.ln();
    let (low, high) = order_statistic(values.iter().map(|v| v.ln()).collect());
    Some(((median - low).max(0.0), (high - median).max(0.0)))
}

/// The hull of a ratio's intervals, stretched about the estimate.
fn stretched(hull: Interval) -> Interval {
    let end = |end: f64| hull.median * (end / hull.median).powf(STRETCH);
    Interval { low: end(hull.low), high: end(hull.high), ..hull }
}

/// The share that `b` goes of the way from `a` to `c`, `(a − b) / (a − c)`, of three figures by block, and its 95 %
/// interval: 0 where `b` is as `a`, 1 where it is as `c`. Made as [`ratio`] is, but stretched on the plain scale, since
/// a share may be below 0.
///
/// `None` below three blocks, where a value is no number, or where `a` and `c` are too alike to divide by their
/// difference.
pub(crate) fn share(blocks: &[(f64, f64, f64)], rng: &mut impl Rng) -> Option<Interval> {
    let is_finite = |&(a, b, c): &(f64, f64, f64)| a.is_finite() && b.is_finite() && c.is_finite();
    if blocks.len() < FEWEST_BLOCKS || !blocks.iter().all(is_finite) {
        return None;
    }
    let of = |(a, b, c): (f64, f64, f64)| (a - b) / (a - c);
    let medians = |blocks: &[(f64, f64, f64)]| {
        let median = |pick: fn(&(f64, f64, f64)) -> f64| median_of(blocks.iter().map(pick));
        Some((median(|block| block.0)?, median(|block| block.1)?, median(|block| block.2)?))
    };
    let estimate = of(medians(blocks)?);
    let mut drawn = blocks.to_vec();
    let resampled = (0..RESAMPLES).map(|_| {
        drawn.fill_with(|| blocks[rng.random_range(0..blocks.len())]);
        // It is not empty, so its medians exist.
        medians(&drawn).map_or(estimate, of)
    });
    let bootstrap = percentile(resampled.collect());
    let hull = hull(estimate, bootstrap, order_statistic(blocks.iter().copied().map(of).collect()));
    let end = |end: f64| estimate + (end - estimate) * STRETCH;
    let stretched = Interval { median: estimate, low: end(hull.low), high: end(hull.high) };
    [stretched.median, stretched.low, stretched.high].iter().all(|end| end.is_finite()).then_some(stretched)
}

/// The median of one figure's values by block, and its 95 % interval. `None` below three values, or where one is no
/// number.
pub(crate) fn single(values: &[f64], rng: &mut impl Rng) -> Option<Interval> {
    if values.len() < FEWEST_BLOCKS || !values.iter().all(|v| v.is_finite()) {
        return None;
    }
    let estimate = median_of(values.iter().copied())?;
    let mut drawn = vec![0.0; values.len()];
    let resampled = (0..RESAMPLES).map(|_| {
        drawn.fill_with(|| values[rng.random_range(0..values.len())]);
        median(&mut drawn).unwrap_or(estimate)
    });
    let bootstrap = percentile(resampled.collect());
    let hull = hull(estimate, bootstrap, order_statistic(values.to_vec()));
    let stretched = |end: f64| estimate + STRETCH * (end - estimate);
    // A figure of positive values stays positive, however wide.
    let floor = values.iter().copied().fold(f64::INFINITY, f64::min).min(0.0);
    Some(Interval { low: stretched(hull.low).max(floor), high: stretched(hull.high), ..hull })
}

/// An exact figure as an interval of equal ends.
pub(crate) fn exact(value: f64) -> Interval {
    Interval { median: value, low: value, high: value }
}

fn hull(estimate: f64, a: (f64, f64), b: (f64, f64)) -> Interval {
    Interval { median: estimate, low: a.0.min(b.0).min(estimate), high: a.1.max(b.1).max(estimate) }
}

fn percentile(mut resampled: Vec<f64>) -> (f64, f64) {
    resampled.sort_unstable_by(f64::total_cmp);
    let tail = ((1.0 - LEVEL) / 2.0 * resampled.len() as f64) as usize;
    (resampled[tail], resampled[resampled.len() - 1 - tail])
}

fn order_statistic(mut values: Vec<f64>) -> (f64, f64) {
    values.sort_unstable_by(f64::total_cmp);
    let rank = sign_test_rank(values.len());
    (values[rank - 1], values[values.len() - rank])
}

/// The largest rank `k` (from 1) for which the k-th smallest to the k-th largest of `n` values holds the median at
/// 95 % or more; 1 where none does.
fn sign_test_rank(n: usize) -> usize {
    let count = n as f64;
    let (mut rank, mut below) = (0, 0.0);
    // Logarithm of the binomial probability of `rank` values on one side; its plain form underflows for many blocks.
    let mut log_probability = -count * std::f64::consts::LN_2;
    while rank < n / 2 {
        below += log_probability.exp();
        if 2.0 * below > 1.0 - LEVEL {
            break;
        }
        log_probability += ((count - rank as f64) / (rank as f64 + 1.0)).ln();
        rank += 1;
    }
    rank.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_the_tables() {
        // Conover, table A3: 95 % two-sided ranks of the sign test.
        let ranks = [3, 5, 6, 8, 9, 10, 12, 15, 20, 25].map(sign_test_rank);
        assert_eq!(ranks, [1, 1, 1, 1, 2, 2, 3, 4, 6, 8]);
        assert!(sign_test_rank(5000) > 2400);
    }

    #[test]
    fn one_seed_gives_one_interval_and_another_figure_another() {
        let pairs: Vec<(f64, f64)> = (1..=10).map(|i| (20.0 + f64::from(i * i % 7), 2.0 + f64::from(i % 3))).collect();
        let make = |seed, name| ratio(&pairs, &mut dice(seed, name)).unwrap();
        assert_eq!(make(7, "a/b"), make(7, "a/b"));
        assert_ne!(dice(7, "a/b").random::<u64>(), dice(7, "a/c").random::<u64>());
        assert_ne!(dice(7, "a/b").random::<u64>(), dice(8, "a/b").random::<u64>());
    }

    #[test]
    fn few_blocks_give_at_least_their_range_and_two_give_nothing() {
        let pairs = [(10.0, 5.0), (12.0, 4.0), (9.0, 6.0)];
        let seen = ratio(&pairs, &mut dice(1, "x")).unwrap();
        assert!(seen.low <= 1.5 && seen.high >= 3.0, "{seen:?}");
        assert_eq!(seen.median, 2.0);
        assert_eq!(ratio(&pairs[..2], &mut dice(1, "x")), None);
        assert_eq!(single(&[1.0, 2.0], &mut dice(1, "x")), None);
    }

    #[test]
    fn a_share_is_none_of_the_way_for_the_same_and_all_of_it_for_the_goal() {
        let noise = |i: u32| 1.0 + 0.02 * f64::from(i * 7 % 5);
        let blocks =
            |b: f64| -> Vec<_> { (0..10).map(|i| (20.0 * noise(i), b * noise(i + 3), 2.0 * noise(i + 1))).collect() };
        let of = |b: f64| share(&blocks(b), &mut dice(1, "x")).unwrap();
        let (same, half, goal) = (of(20.0), of(11.0), of(2.0));
        assert!(same.high < 0.2 && same.low > -0.2, "{same:?}");
        assert!(half.low < 0.5 && 0.5 < half.high && half.low > 0.3, "{half:?}");
        assert!(goal.low > 0.9 && goal.high < 1.1, "{goal:?}");
        assert!(of(40.0).high < -0.8, "worse than before");
        assert_eq!(share(&[(1.0, 1.0, 1.0); 5], &mut dice(1, "x")), None, "nothing to recover");
        assert_eq!(share(&blocks(2.0)[..2], &mut dice(1, "x")), None);
    }

    #[test]
    fn what_is_no_positive_number_has_no_ratio() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(ratio(&[(1.0, 1.0), (1.0, bad), (1.0, 1.0)], &mut dice(1, "x")), None);
        }
        assert_eq!(single(&[1.0, f64::NAN, 1.0], &mut dice(1, "x")), None);
        assert_eq!(single(&[0.0, 0.0, 0.0], &mut dice(1, "x")), Some(exact(0.0)));
    }

    #[test]
    fn drift_that_both_arms_share_does_not_widen_the_sign_test_part() {
        // The machine slows by 1.3 over the run; block by block the ratio is exactly 10.
        let pairs: Vec<(f64, f64)> = (0..10).map(|i| 1.0 + 0.03 * f64::from(i)).map(|d| (20.0 * d, 2.0 * d)).collect();
        let seen = ratio(&pairs, &mut dice(1, "x")).unwrap();
        assert!((seen.low - 10.0).abs() < 1e-9 && (seen.high - 10.0).abs() < 1e-9, "{seen:?}");
    }

    /// A standard normal deviate (Box and Muller).
    fn normal(rng: &mut SmallRng) -> f64 {
        let (u, v): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    #[test]
    fn intervals_cover_the_truth_on_independent_lognormal_blocks() {
        let (mut ratios, mut singles) = (0, 0);
        for simulation in 0..300 {
            let mut rng = dice(simulation, "simulated blocks");
            let pairs: Vec<(f64, f64)> = (0..10)
                .map(|_| (20.0 * (0.2 * normal(&mut rng)).exp(), 2.0 * (0.1 * normal(&mut rng)).exp()))
                .collect();
            let seen = ratio(&pairs, &mut dice(simulation, "ratio")).unwrap();
            ratios += usize::from(seen.low <= 10.0 && 10.0 <= seen.high);
            let left: Vec<f64> = pairs.iter().map(|p| p.0).collect();
            let seen = single(&left, &mut dice(simulation, "single")).unwrap();
            singles += usize::from(seen.low <= 20.0 && 20.0 <= seen.high);
        }
        assert!(ratios >= 270, "{ratios} of 300 ratios cover");
        assert!(singles >= 270, "{singles} of 300 medians cover");
    }

    #[test]
    fn the_ratio_of_two_runs_needs_three_blocks_of_each_and_no_pairs() {
        let (left, right) = ([10.0, 12.0, 11.0, 10.5], [5.0, 5.5, 6.0]);
        let seen = independent(&left, &right, &mut dice(1, "x")).unwrap();
        assert!((seen.median - 10.75 / 5.5).abs() < 1e-12 && seen.low < 1.8 && seen.high > 2.1, "{seen:?}");
        assert_eq!(independent(&left, &right, &mut dice(1, "x")), Some(seen));
        assert_eq!(independent(&left, &right[..2], &mut dice(1, "x")), None);
        assert_eq!(independent(&[1.0, 0.0, 1.0], &right, &mut dice(1, "x")), None);
        assert_eq!(independent(&[2.0; 5], &[1.0; 3], &mut dice(1, "x")), Some(exact(2.0)));
    }

    #[test]
    fn it_covers_the_truth_on_independent_lognormal_blocks() {
        let covered = (0..300).filter(|simulation| {
            let mut rng = dice(*simulation, "simulated runs");
            let mut blocks = |n, at: f64, sigma: f64| -> Vec<f64> {
                (0..n).map(|_| at * (sigma * normal(&mut rng)).exp()).collect()
            };
            let (left, right) = (blocks(10, 20.0, 0.2), blocks(6, 2.0, 0.1));
            let seen = independent(&left, &right, &mut dice(*simulation, "ratio")).unwrap();
            seen.low <= 10.0 && 10.0 <= seen.high
        });
        assert!(covered.count() >= 270);
    }
}
