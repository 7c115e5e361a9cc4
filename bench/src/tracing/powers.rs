//! Counts of times by powers of two, as bpftrace's `hist` has them.

use serde::Serialize;
use std::collections::BTreeMap;
use std::iter::Sum;

/// How many times lay in each bucket: `n` stands for 2^n up to 2^(n+1) - 1 nanoseconds; 0 holds zero too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Powers(BTreeMap<u32, u64>);

impl Powers {
    /// Counts so many times of that length.
    pub(crate) fn add(&mut self, ns: u64, count: u64) {
        *self.0.entry(ns.max(1).ilog2()).or_default() += count;
    }

    pub(crate) fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Buckets that hold any, ascending.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = u32> {
        self.0.keys().copied()
    }

    /// That bucket's share of all; `None` where there are none.
    pub(crate) fn share(&self, bucket: u32) -> Option<f64> {
        let total = self.total();
        (total > 0).then(|| self.0.get(&bucket).copied().unwrap_or(0) as f64 / total as f64)
    }
}

impl<'p> Sum<&'p Powers> for Powers {
    fn sum<I: Iterator<Item = &'p Powers>>(all: I) -> Powers {
        let mut sum = Powers::default();
        for (bucket, count) in all.flat_map(|one| &one.0) {
            *sum.0.entry(*bucket).or_default() += count;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_in_the_bucket_of_its_highest_bit() {
        let mut powers = Powers::default();
        for (ns, count) in [(0, 1), (1, 2), (2, 3), (3, 4), (1023, 5), (1024, 6)] {
            powers.add(ns, count);
        }
        assert_eq!(powers.0, BTreeMap::from([(0, 3), (1, 7), (9, 5), (10, 6)]));
        let twice: Powers = [&powers, &powers].into_iter().sum();
        assert_eq!((twice.total(), twice.share(1), Powers::default().share(1)), (42, Some(14.0 / 42.0), None));
    }
}
