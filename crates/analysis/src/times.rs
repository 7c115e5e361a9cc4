//! Distributions of times: counted to three digits, and their percentiles.

use hdrhistogram::Histogram;
use record::{ArmSummary, LockObservation, MemoryObservation, NsCount, Observation, Percentiles};
use std::collections::BTreeMap;

/// Digits that histograms of times keep.
pub const DIGITS: u8 = 3;

/// All that was kept of one kind of time in one arm: what the percentiles of the same name in `run.json` are made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// The arm's name.
    pub arm: String,
    /// `wait:LOCK` and `hold:LOCK` (what overlaps an eviction left out), `response:ROLE` and `service:ROLE`: of all
    /// workers; `batch:ROLE` and `batch_corrected:ROLE` likewise. With `/worker:INDEX` behind it, of that one alone.
    pub what: String,
    /// Its times in nanoseconds, ascending, [`DIGITS`] digits.
    pub times: Vec<NsCount>,
}

/// The distributions of every arm, in the arms' order; those that are empty are left out. Observations hold their times
/// in memory only: of a run that was read from a file there are none.
pub fn distributions<'a>(arms: &[ArmSummary], observations: &'a [Observation]) -> Vec<Distribution> {
    let mut found = Vec::new();
    for arm in arms {
        let counts = |o: &&Observation| {
            o.arm == arm.name && o.spoiled.is_empty() && o.regime.is_some() && o.regime == arm.regime
        };
        let kept: Vec<&'a Observation> = observations.iter().filter(counts).collect();
        for lock in &arm.locks {
            let of_lock = |times: fn(&LockObservation) -> &Vec<NsCount>| {
                let tally = |o: &&'a Observation| {
                    let own = o.locks.iter().filter(|l| l.lock == lock.lock);
                    (o.worker, own.flat_map(times).collect())
                };
                kept.iter().map(tally).collect()
            };
            found.extend(whole_and_parts(arm, format!("wait:{}", lock.lock), of_lock(|l| &l.kept_waits)));
            found.extend(whole_and_parts(arm, format!("hold:{}", lock.lock), of_lock(|l| &l.holds)));
        }
        for role in &arm.roles {
            let of_role = |times: fn(&Observation) -> &Vec<NsCount>| {
                let own = kept.iter().copied().filter(|o| o.role == role.role);
                own.map(|o| (o.worker, times(o).iter().collect())).collect()
            };
            found.extend(whole_and_parts(arm, format!("response:{}", role.role), of_role(|o| &o.response)));
            found.extend(whole_and_parts(arm, format!("service:{}", role.role), of_role(|o| &o.service)));
            let of_batches = |times: fn(&MemoryObservation) -> &Vec<NsCount>| {
                let own = kept.iter().copied().filter(|o| o.role == role.role);
                own.map(|o| (o.worker, o.memory.iter().flat_map(times).collect())).collect()
            };
            found.extend(whole_and_parts(arm, format!("batch:{}", role.role), of_batches(|m| &m.uncorrected)));
            found.extend(whole_and_parts(arm, format!("batch_corrected:{}", role.role), of_batches(|m| &m.corrected)));
        }
    }
    found
}

/// The distribution of all workers' times, and each worker's own.
fn whole_and_parts(arm: &ArmSummary, what: String, times: Vec<(u32, Vec<&NsCount>)>) -> Vec<Distribution> {
    let mut by_worker: BTreeMap<u32, Vec<&NsCount>> = BTreeMap::new();
    for (worker, own) in times {
        by_worker.entry(worker).or_default().extend(own);
    }
    let whole = (what.clone(), merged(by_worker.values().flatten().copied()));
    let parts = by_worker.iter().map(|(worker, own)| (format!("{what}/worker:{worker}"), merged(own.iter().copied())));
    let named = std::iter::once(whole).chain(parts).filter(|(_, times)| !times.is_empty());
    named.map(|(what, times)| Distribution { arm: arm.name.clone(), what, times }).collect()
}

/// Percentiles of times in nanoseconds, to three digits, each the time of the nearest rank from above; `None` of
/// nothing.
pub fn percentiles<'a>(times: impl IntoIterator<Item = &'a NsCount>) -> Option<Percentiles> {
    of(&histogram(times.into_iter().copied())?)
}

/// The same with HdrHistogram's correction for coordinated omission: a time longer than the interval at which times
/// were due stands also for those that would have been taken meanwhile, each shorter by one interval.
pub(crate) fn corrected_percentiles<'a>(
    times: impl IntoIterator<Item = &'a NsCount>,
    expected_interval_ns: u64,
) -> Option<Percentiles> {
    of(&histogram(times.into_iter().copied())?.clone_correct(expected_interval_ns))
}

/// Nanoseconds as ticks of the clock that they were read by.
pub(crate) fn in_ticks(ns: &Percentiles, ticks_per_ns: f64) -> Percentiles {
    let ticks = |ns: u64| (ns as f64 * ticks_per_ns).round() as u64;
    Percentiles {
        count: ns.count,
        min: ticks(ns.min),
        mean: ns.mean * ticks_per_ns,
        p50: ticks(ns.p50),
        p90: ticks(ns.p90),
        p99: ticks(ns.p99),
        p999: ticks(ns.p999),
        max: ticks(ns.max),
    }
}

fn of(histogram: &Histogram<u64>) -> Option<Percentiles> {
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

/// Times in nanoseconds as a histogram of three digits counts them, ascending.
pub(crate) fn tally(times_ns: impl Iterator<Item = u64>) -> Vec<NsCount> {
    counts(times_ns.map(|ns| NsCount { ns, count: 1 }))
}

/// Several tallies as one.
pub(crate) fn merged<'a>(times: impl Iterator<Item = &'a NsCount>) -> Vec<NsCount> {
    counts(times.copied())
}

pub(crate) fn counts(times: impl Iterator<Item = NsCount>) -> Vec<NsCount> {
    let Some(histogram) = histogram(times) else { return Vec::new() };
    let bucket = |value: hdrhistogram::iterators::IterationValue<u64>| NsCount {
        ns: value.value_iterated_to(),
        count: value.count_at_value(),
    };
    histogram.iter_recorded().map(bucket).collect()
}

fn histogram(times: impl Iterator<Item = NsCount>) -> Option<Histogram<u64>> {
    // Fails only for more than five digits.
    let mut histogram = Histogram::<u64>::new(DIGITS).ok()?;
    for NsCount { ns, count } in times {
        // `record_n` grows the histogram as needed (`saturating_record` would cut at its present size); it fails only
        // for values that no histogram can hold.
        histogram.record_n(ns, count).ok()?;
    }
    Some(histogram)
}

/// How many times there are.
pub(crate) fn count(times: &[NsCount]) -> u64 {
    times.iter().map(|t| t.count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::{Bench, lock_observation};

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
    fn tallies_add_up_to_the_tally_of_all() {
        let (odd, even) = (tally((1..100_000).step_by(2)), tally((2..100_000).step_by(2)));
        assert_eq!(merged(odd.iter().chain(&even)), tally(1..100_000));
    }

    #[test]
    fn ticks_are_nanoseconds_by_the_rate_and_as_many() {
        let seen = in_ticks(&percentiles(&tally([10, 20, 30, 41].into_iter())).unwrap(), 2.6);
        assert_eq!((seen.count, seen.min, seen.p50, seen.max), (4, 26, 52, 107));
        assert!((seen.mean - 65.65).abs() < 1e-9, "{}", seen.mean);
    }

    /// One time of ten intervals stands for ten: 1000, 900, …, 100.
    #[test]
    fn the_correction_adds_what_was_not_taken_meanwhile() {
        let times = tally([1000, 40].into_iter());
        let seen = corrected_percentiles(&times, 100).unwrap();
        assert_eq!((seen.count, seen.min, seen.max), (11, 40, 1000));
        assert_eq!(seen.p50, 500);
        assert_eq!(corrected_percentiles(&tally([40].into_iter()), 100), percentiles(&tally([40].into_iter())));
    }

    #[test]
    fn the_distributions_are_what_the_summaries_percentiles_are_made_of() {
        let mut bench = Bench::new(&["a", "b"]).with_lock("m");
        bench.run(4, |_, _| 60.0);
        for o in bench.observations.iter_mut() {
            let mut lock = lock_observation("m", 100, &[50, 70 + u64::from(o.block)], &[50, 70, 9_000_000]);
            lock.holds = tally([20, 30].into_iter());
            (o.response, o.service) = (tally([7000].into_iter()), tally([600].into_iter()));
            o.locks.push(lock);
            if o.block == 0 && o.arm == "b" {
                o.spoiled.push("lost_time".into());
            }
        }
        let findings = bench.analyse();
        let found = distributions(&findings.arms, &bench.observations);
        assert_eq!(
            found.len(),
            3 * 4 * 3,
            "three arms, four distributions, each of both workers, of one and of the other"
        );
        let of = |arm: &str, what: &str| {
            percentiles(&found.iter().find(|d| d.arm == arm && d.what == what).unwrap().times).unwrap()
        };
        for arm in &findings.arms {
            assert_eq!(arm.locks[0].wait_ns, Some(of(&arm.name, "wait:m")));
            assert_eq!(arm.locks[0].hold_ns, Some(of(&arm.name, "hold:m")));
            assert_eq!(arm.roles[0].latency_ns, Some(of(&arm.name, "response:counter")));
            assert_eq!(arm.roles[0].service_ns, Some(of(&arm.name, "service:counter")));
            for worker in 0..2 {
                let own = |what: &str| Some(of(&arm.name, &format!("{what}/worker:{worker}")));
                assert_eq!(arm.locks[0].by_worker[worker].wait_ns, own("wait:m"));
                assert_eq!(arm.locks[0].by_worker[worker].hold_ns, own("hold:m"));
                assert_eq!(arm.workers[worker].latency_ns, own("response:counter"));
            }
        }
        assert_eq!(of("b", "wait:m").count, 2 * 2 * 3, "the spoiled repetition's are left out");
    }
}
