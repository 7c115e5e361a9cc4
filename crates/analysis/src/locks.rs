//! Locks of an arm: who acquired, who waited, and how long.

use hdrhistogram::Histogram;
use plan::Program;
use record::{LockObservation, LockSummary, LockWorker, Observation, Percentiles, WaitCount};
use std::collections::BTreeMap;

/// Digits that the histograms keep.
const DIGITS: u8 = 3;

/// Times in nanoseconds as a histogram of three digits counts them, ascending.
pub(crate) fn tally(times_ns: impl Iterator<Item = u64>) -> Vec<WaitCount> {
    let Some(histogram) = histogram(times_ns.map(|ns| WaitCount { ns, count: 1 })) else { return Vec::new() };
    let bucket = |value: hdrhistogram::iterators::IterationValue<u64>| WaitCount {
        ns: value.value_iterated_to(),
        count: value.count_at_value(),
    };
    histogram.iter_recorded().map(bucket).collect()
}

fn histogram(times: impl Iterator<Item = WaitCount>) -> Option<Histogram<u64>> {
    // Fails only for more than five digits.
    let mut histogram = Histogram::<u64>::new(DIGITS).ok()?;
    for WaitCount { ns, count } in times {
        // `record_n` grows the histogram as needed (`saturating_record` would cut at its present size); it fails only
        // for values that no histogram can hold.
        histogram.record_n(ns, count).ok()?;
    }
    Some(histogram)
}

fn count(times: &[WaitCount]) -> u64 {
    times.iter().map(|t| t.count).sum()
}

/// Percentiles of times in nanoseconds, to three digits; `None` of nothing.
pub(crate) fn percentiles<'a>(times: impl IntoIterator<Item = &'a WaitCount>) -> Option<Percentiles> {
    let histogram = histogram(times.into_iter().copied())?;
    let at = |q| histogram.value_at_quantile(q);
    (!histogram.is_empty()).then(|| Percentiles {
        count: histogram.len(),
        min: histogram.min(),
        mean: histogram.mean(),
        p50: at(0.5),
        p90: at(0.9),
        p99: at(0.99),
        p999: at(0.999),
        max: histogram.max(),
    })
}

/// Every lock that the given (kept) observations of one arm used, in the Program's order.
pub(crate) fn summaries(program: &Program, observations: &[&Observation]) -> Vec<LockSummary> {
    let mut names: Vec<(&str, &str)> = Vec::new();
    for lock in &program.locks {
        if !names.iter().any(|(name, _)| *name == lock.name) {
            names.push((&lock.name, lock.kind.name()));
        }
    }
    names.into_iter().filter_map(|(name, kind)| summary(name, kind, observations)).collect()
}

fn summary(name: &str, kind: &str, observations: &[&Observation]) -> Option<LockSummary> {
    let mut by_worker: BTreeMap<(u32, &str), Vec<&LockObservation>> = BTreeMap::new();
    for observation in observations {
        for lock in observation.locks.iter().filter(|l| l.lock == name) {
            by_worker.entry((observation.worker, &observation.role)).or_default().push(lock);
        }
    }
    let all: Vec<&LockObservation> = by_worker.values().flatten().copied().collect();
    let sum = |of: fn(&LockObservation) -> u64| all.iter().map(|l| of(l)).sum::<u64>();
    (!all.is_empty()).then(|| LockSummary {
        lock: name.to_owned(),
        kind: kind.to_owned(),
        acquisitions: sum(|l| l.acquisitions),
        contended: sum(|l| l.contended),
        wait_ns: percentiles(all.iter().flat_map(|l| &l.kept_waits)),
        wait_ns_all: percentiles(all.iter().flat_map(|l| &l.all_waits)),
        masked: sum(|l| count(&l.all_waits) - count(&l.kept_waits)),
        waits_lost: sum(|l| l.waits_lost),
        hold_ns: None,
        handoffs: sum(|l| l.handoffs),
        longest_run: all.iter().map(|l| l.longest_run).max().unwrap_or(0),
        owner_died: sum(|l| l.owner_died),
        by_worker: by_worker.iter().map(|((worker, role), locks)| lock_worker(*worker, role, locks)).collect(),
        ..Default::default()
    })
}

fn lock_worker(worker: u32, role: &str, locks: &[&LockObservation]) -> LockWorker {
    LockWorker {
        worker,
        role: role.to_owned(),
        acquisitions: locks.iter().map(|l| l.acquisitions).sum(),
        contended: locks.iter().map(|l| l.contended).sum(),
        wait_ns: percentiles(locks.iter().flat_map(|l| &l.kept_waits)),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::{lock_observation, observation, twin_lock_program};

    #[test]
    fn percentiles_are_within_a_thousandth() {
        let times = tally(1..=10_000);
        let seen = percentiles(&times).unwrap();
        assert_eq!((seen.count, seen.min), (10_000, 1));
        for (seen, truth) in
            [(seen.p50, 5000), (seen.p90, 9000), (seen.p99, 9900), (seen.p999, 9990), (seen.max, 10_000)]
        {
            assert!(seen.abs_diff(truth) * 1000 <= truth, "{seen} for {truth}");
        }
        assert_eq!(percentiles(&[]), None);
    }

    #[test]
    fn a_lock_adds_up_its_workers_and_says_who_waited() {
        let (mut a, mut b) = (observation("m", 0, 0, 60.0), observation("m", 0, 1, 60.0));
        a.locks.push(lock_observation("m", 100, &[50, 70], &[50, 70, 9_000_000]));
        b.locks.push(lock_observation("m", 300, &[], &[]));
        let seen = summaries(&twin_lock_program(), &[&a, &b]);
        assert_eq!(seen.len(), 1, "copies of one lock are one lock");
        let lock = &seen[0];
        assert_eq!((lock.acquisitions, lock.contended, lock.masked), (400, 3, 1));
        assert_eq!(lock.wait_ns.unwrap().max, 70);
        assert!(lock.wait_ns_all.unwrap().max > 8_000_000);
        assert_eq!(lock.by_worker[1].wait_ns, None);
        assert_eq!(lock.by_worker.iter().map(|w| w.acquisitions).collect::<Vec<_>>(), [100, 300]);
    }
}
