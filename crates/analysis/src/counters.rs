//! Counters summed over workers and repetitions, with missing never taken for zero.

use record::{CounterSummary, Measured, Observation, Reading};
use std::collections::{BTreeMap, BTreeSet};

/// Sums readings. The worst state wins: a sum that lacks one part is no sum. A scaled part makes the sum scaled, with
/// the smallest ratio of all. `None` among the readings is a worker that gave none.
pub(crate) fn total<'a>(readings: impl IntoIterator<Item = Option<&'a Reading>>) -> Reading {
    let missing = |who: &str| Reading::Unsupported { why: format!("{who} gave no reading") };
    let readings = readings.into_iter().map(|r| r.cloned().unwrap_or_else(|| missing("a worker")));
    readings.reduce(add).unwrap_or_else(|| missing("no repetition that counts"))
}

fn add(a: Reading, b: Reading) -> Reading {
    let (Some(x), Some(y)) = (a.value(), b.value()) else {
        return if badness(&b) > badness(&a) { b } else { a };
    };
    let ratio = |r: &Reading| match r {
        Reading::Scaled { ratio, .. } => Some(*ratio),
        _ => None,
    };
    let value = x.saturating_add(y);
    match ratio(&a).into_iter().chain(ratio(&b)).reduce(f64::min) {
        Some(ratio) => Reading::Scaled { value, ratio },
        None => Reading::Counted { value },
    }
}

/// How far a reading is from a count; what no setting can change is worst.
fn badness(reading: &Reading) -> u8 {
    match reading {
        Reading::Counted { .. } => 0,
        Reading::Scaled { .. } => 1,
        Reading::NotScheduled => 2,
        Reading::Denied { .. } => 3,
        Reading::Unsupported { .. } => 4,
    }
}

/// One counter over some workers' windows.
pub(crate) fn measured(workers: &[&Observation], counter: &str) -> Measured {
    let reading = total(workers.iter().map(|o| o.counters.get(counter)));
    let passes: u64 = workers.iter().map(|o| o.passes).sum();
    // Workers of one repetition run side by side, so their windows count once.
    let repetitions: BTreeSet<u32> = workers.iter().map(|o| o.block).collect();
    let mean_window_ns = workers.iter().map(|o| o.window_ns).sum::<f64>() / workers.len().max(1) as f64;
    let window_ns = mean_window_ns * repetitions.len() as f64;
    let value = reading.value().map(|v| v as f64);
    Measured {
        per_op: value.filter(|_| passes > 0).map(|v| v / passes as f64),
        per_second: value.filter(|_| window_ns > 0.0).map(|v| v * 1e9 / window_ns),
        reading,
    }
}

/// Time that the hypervisor took from the workers' CPUs, as a share of their windows; `None` where it was not counted.
/// Observations without a count are left out on both sides.
pub(crate) fn stolen_share<'a>(workers: impl IntoIterator<Item = &'a Observation>) -> Option<f64> {
    let counted = workers.into_iter().filter_map(|o| Some((o.counters.get("stolen_ns")?.value()? as f64, o.window_ns)));
    let (stolen, windows) = counted.fold((0.0, 0.0), |sum, (ns, window)| (sum.0 + ns, sum.1 + window));
    (windows > 0.0).then(|| stolen / windows)
}

/// Time that a CPU quota stopped the workers, as a share of their windows; `None` where it was not counted. The kernel
/// counts it for the whole cgroup, added up over CPUs, so that all workers of a repetition read the same: it counts
/// once, against the windows of all of them.
pub(crate) fn throttled_share<'a>(workers: impl IntoIterator<Item = &'a Observation>) -> Option<f64> {
    let mut repetitions: BTreeMap<(&str, u32), (u64, f64)> = BTreeMap::new();
    for o in workers {
        if let Some(ns) = o.counters.get("throttled_ns").and_then(Reading::value) {
            let (most, windows) = repetitions.entry((&o.arm, o.block)).or_default();
            (*most, *windows) = ((*most).max(ns), *windows + o.window_ns);
        }
    }
    let (throttled, windows) = repetitions.values().fold((0.0, 0.0), |sum, (ns, w)| (sum.0 + *ns as f64, sum.1 + w));
    // The readings stand a little outside the window, so that they may hold more than it is long.
    (windows > 0.0).then(|| (throttled / windows).min(1.0))
}

/// Every counter that some of the workers of a role in one arm asked for.
pub(crate) fn summaries(workers: &[&Observation]) -> BTreeMap<String, CounterSummary> {
    let names: BTreeSet<&String> = workers.iter().flat_map(|o| o.counters.keys()).collect();
    let one = |name: &String| (name.clone(), CounterSummary { measured: measured(workers, name), modelled: None });
    names.into_iter().map(one).collect()
}

/// Why a reading holds no count, in plain words; `None` where it holds one.
pub(crate) fn why_not(reading: &Reading) -> Option<String> {
    match reading {
        Reading::Counted { .. } | Reading::Scaled { .. } => None,
        Reading::NotScheduled => Some("the kernel never put it on a counter".to_owned()),
        Reading::Unsupported { why } => Some(why.clone()),
        Reading::Denied { why, cure } => Some(format!("{why}; {cure}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::observation;

    const COUNTED: Reading = Reading::Counted { value: 10 };
    const SCALED: Reading = Reading::Scaled { value: 6, ratio: 0.5 };

    fn unsupported() -> Reading {
        Reading::Unsupported { why: "no PMU".into() }
    }

    fn denied() -> Reading {
        Reading::Denied { why: "paranoid".into(), cure: "sysctl".into() }
    }

    #[test]
    fn counts_add_up_and_scaling_shows() {
        assert_eq!(total([Some(&COUNTED), Some(&COUNTED)]), Reading::Counted { value: 20 });
        assert_eq!(total([Some(&COUNTED), Some(&SCALED)]), Reading::Scaled { value: 16, ratio: 0.5 });
    }

    #[test]
    fn what_is_missing_is_never_zero() {
        for bad in [Reading::NotScheduled, denied(), unsupported()] {
            assert_eq!(total([Some(&COUNTED), Some(&bad), Some(&SCALED)]), bad);
            assert_eq!(total([Some(&bad), Some(&COUNTED)]).value(), None);
        }
        assert_eq!(total([Some(&denied()), Some(&unsupported())]), unsupported());
        assert_eq!(total([Some(&COUNTED), None]).value(), None);
        assert_eq!(total([]).value(), None);
    }

    #[test]
    fn a_counter_divides_by_all_passes_and_by_time_side_by_side() {
        let mut workers = [observation("a", 0, 0, 10.0), observation("a", 0, 1, 10.0), observation("a", 1, 0, 10.0)];
        for worker in &mut workers {
            (worker.passes, worker.kept_passes, worker.window_ns) = (1000, 10, 1e9);
            worker.counters.insert("cycles".into(), Reading::Counted { value: 5000 });
        }
        let seen = measured(&workers.each_ref(), "cycles");
        assert_eq!(seen.reading, Reading::Counted { value: 15_000 });
        assert_eq!(seen.per_op, Some(5.0));
        assert_eq!(seen.per_second, Some(7500.0), "15000 events in two windows of a second");
        let none = measured(&workers.each_ref(), "llc_loads");
        assert_eq!((none.per_op, none.per_second), (None, None));
    }

    #[test]
    fn stolen_time_adds_up_over_workers_and_a_quota_s_counts_once_a_repetition() {
        let mut workers = [observation("a", 0, 0, 10.0), observation("a", 0, 1, 10.0), observation("a", 1, 0, 10.0)];
        assert_eq!((stolen_share(&workers), throttled_share(&workers)), (None, None), "not counted is not zero");
        for worker in &mut workers[..2] {
            worker.window_ns = 100.0;
            worker.counters.insert("stolen_ns".into(), Reading::Counted { value: 20 });
            worker.counters.insert("throttled_ns".into(), Reading::Counted { value: 50 });
        }
        workers[1].counters.insert("stolen_ns".into(), Reading::Counted { value: 0 });
        assert_eq!((stolen_share(&workers), throttled_share(&workers)), (Some(0.1), Some(0.25)));
        workers[2].window_ns = 100.0;
        workers[2].counters.insert("throttled_ns".into(), Reading::Counted { value: 1000 });
        assert_eq!(throttled_share(&workers), Some(1.0), "no more than all of it");
    }
}
