//! Figures of one role in one repetition, each from the workers' observations alone.

use crate::times;
use plan::expect::Quantile;
use record::{Observation, Percentiles};
use std::collections::BTreeMap;

/// A figure by block.
pub(crate) type Series = BTreeMap<u32, f64>;

/// A figure of the workers of one role in one repetition; `None` where some worker has none.
pub(crate) type Figure = fn(&[&Observation]) -> Option<f64>;

/// Nanoseconds a pass of the median worker.
pub(crate) fn ns_per_op(workers: &[&Observation]) -> Option<f64> {
    crate::stats::median(&mut each_ns_per_op(workers)?)
}

/// Nanoseconds a pass of the slowest worker.
pub(crate) fn slowest_ns_per_op(workers: &[&Observation]) -> Option<f64> {
    each_ns_per_op(workers)?.into_iter().reduce(f64::max)
}

/// Passes a second of all workers together, over what was kept of their windows.
pub(crate) fn ops_per_second(workers: &[&Observation]) -> Option<f64> {
    rates(workers).map(|rates| rates.iter().sum())
}

/// Jain's index of the workers' rates: 1 is even, 1/n is one worker taking all. `None` for a lone worker.
///
/// # References
/// R. Jain, D. Chiu, W. Hawe, *A Quantitative Measure of Fairness*, DEC-TR-301, 1984.
pub(crate) fn fairness_jain(workers: &[&Observation]) -> Option<f64> {
    jain(&rates(workers)?)
}

/// Jain's index of what each of several got; `None` of fewer than two, or where nobody got anything.
pub(crate) fn jain(each: &[f64]) -> Option<f64> {
    let (sum, squares) = each.iter().fold((0.0, 0.0), |(s, q), r| (s + r, q + r * r));
    (each.len() > 1 && squares > 0.0).then(|| sum * sum / (each.len() as f64 * squares))
}

/// Latency of a pass from its intended start, at a quantile of the role's passes; `None` where none was timed.
pub(crate) fn latency_ns(workers: &[&Observation], quantile: Quantile) -> Option<f64> {
    times::percentiles(workers.iter().flat_map(|o| &o.response)).map(|latency| at(&latency, quantile))
}

/// Time of a batch of touches, as it was, at a quantile of the role's batches; `None` where there was none.
pub(crate) fn batch_ns(workers: &[&Observation], quantile: Quantile) -> Option<f64> {
    let batches = workers.iter().filter_map(|o| o.memory.as_ref()).flat_map(|memory| &memory.uncorrected);
    times::percentiles(batches).map(|batch| at(&batch, quantile))
}

/// One of the quantiles that claims can name.
pub(crate) fn at(of: &Percentiles, quantile: Quantile) -> f64 {
    let ns = match quantile {
        Quantile::P50 => of.p50,
        Quantile::P99 => of.p99,
        Quantile::P999 => of.p999,
        Quantile::Max => of.max,
    };
    ns as f64
}

fn each_ns_per_op(workers: &[&Observation]) -> Option<Vec<f64>> {
    workers.iter().map(|o| o.ns_per_op).collect()
}

fn rates(workers: &[&Observation]) -> Option<Vec<f64>> {
    let rate = |o: &&Observation| (o.kept_ns > 0.0).then(|| o.kept_passes as f64 * 1e9 / o.kept_ns);
    let rates: Option<Vec<f64>> = workers.iter().map(rate).collect();
    rates.filter(|r| !r.is_empty())
}

/// The values of two figures in the blocks that have both.
pub(crate) fn pairs(left: &Series, right: &Series) -> Vec<(f64, f64)> {
    left.iter().filter_map(|(block, l)| right.get(block).map(|r| (*l, *r))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::observation;

    #[test]
    fn figures_of_an_uneven_pair() {
        let (slow, fast) = (observation("a", 0, 0, 30.0), observation("a", 0, 1, 10.0));
        let both = [&slow, &fast];
        assert_eq!(ns_per_op(&both), Some(20.0));
        assert_eq!(slowest_ns_per_op(&both), Some(30.0));
        let rate = ops_per_second(&both).unwrap();
        assert!((rate - (1e9 / 30.0 + 1e9 / 10.0)).abs() < 100.0, "{rate}");
        // Rates 1 : 3 give 16 / (2 * 10).
        assert!((fairness_jain(&both).unwrap() - 0.8).abs() < 1e-6);
        assert_eq!(fairness_jain(&both[..1]), None);
    }

    #[test]
    fn one_worker_without_a_figure_leaves_the_role_without_one() {
        let (mut silent, other) = (observation("a", 0, 0, 30.0), observation("a", 0, 1, 10.0));
        (silent.ns_per_op, silent.kept_ns) = (None, 0.0);
        assert_eq!(ns_per_op(&[&silent, &other]), None);
        assert_eq!(ops_per_second(&[&silent, &other]), None);
        assert_eq!(ns_per_op(&[]), None);
    }

    #[test]
    fn arms_pair_in_the_blocks_in_which_both_ran() {
        let every: Series = (0..4).map(|b| (b, f64::from(b))).collect();
        let half: Series = [(1, 10.0), (3, 30.0), (5, 50.0)].into();
        assert_eq!(pairs(&every, &half), [(1.0, 10.0), (3.0, 30.0)]);
    }
}
