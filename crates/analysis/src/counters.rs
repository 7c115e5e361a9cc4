//! Counters summed over workers and repetitions, with missing never taken for zero.
//!
//! What adds up goes by the counter's [scope]: a thread's counts are its own, but workers that share a CPU read the
//! same stolen time, and all workers of a repetition the same throttled time.

use plan::event::{MEMORY_COUNTERS, Scope, scope, spans_warm_up};
use record::{CounterSummary, Measured, Observation, Reading};
use std::collections::{BTreeMap, BTreeSet};

/// Sums readings. The worst state wins: a sum that lacks one part is no sum. A scaled part makes the sum scaled, with
/// the smallest ratio of all. `None` among the readings is a worker that gave none.
fn total<'a>(readings: impl IntoIterator<Item = Option<&'a Reading>>) -> Reading {
    let missing = |who: &str| Reading::Unsupported { why: format!("{who} gave no reading") };
    let readings = readings.into_iter().map(|r| r.cloned().unwrap_or_else(|| missing("a worker")));
    readings.reduce(add).unwrap_or_else(|| missing("no repetition that counts"))
}

/// The readings that add up: one for each thread, CPU or cgroup in each repetition.
fn apart<'a>(workers: &[&'a Observation], counter: &str) -> Vec<Option<&'a Reading>> {
    let scope = scope(counter);
    let mut found: BTreeMap<(&str, u32, Option<u32>), Option<&Reading>> = BTreeMap::new();
    for o in workers {
        let whose = match scope {
            Scope::Thread => Some(o.worker),
            Scope::Cpu => Some(o.cpu),
            Scope::Cgroup => None,
        };
        let reading = o.counters.get(counter);
        let known = found.entry((&o.arm, o.block, whose)).or_insert(reading);
        *known = fuller(*known, reading);
    }
    found.into_values().collect()
}

/// Of two readings of one thing the one that says most: workers note it moments apart, and what one of them could read
/// is known.
fn fuller<'a>(a: Option<&'a Reading>, b: Option<&'a Reading>) -> Option<&'a Reading> {
    let rank = |reading: &Reading| (reading.value(), std::cmp::Reverse(badness(reading)));
    if b.map(rank) > a.map(rank) { b } else { a }
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

/// Whether it was asked for: the counters of memory steps are in some runs alone.
fn is_asked(workers: &[&Observation], counter: &str) -> bool {
    !MEMORY_COUNTERS.contains(&counter) || workers.iter().any(|o| o.counters.contains_key(counter))
}

/// One counter over some workers' windows; per pass, of what [spans the warm-up](spans_warm_up), the windows'
/// part by time.
pub(crate) fn measured(workers: &[&Observation], counter: &str) -> Measured {
    let reading = match is_asked(workers, counter) {
        true => total(apart(workers, counter)),
        false => Reading::Unsupported { why: "only a run whose scenario has regions counts it".to_owned() },
    };
    let passes: u64 = workers.iter().map(|o| o.passes).sum();
    let value = reading.value().map(|v| v as f64);
    let window_ns = side_by_side(workers, |o| Some(o.window_ns));
    let (stretch_ns, in_window) = match spans_warm_up(counter) {
        false => (window_ns, value),
        true => {
            let noted_ns = side_by_side(workers, |o| o.noted_ns);
            let share = window_ns.zip(noted_ns).map(|(window, noted)| window / noted);
            (noted_ns, value.zip(share).map(|(v, share)| v * share))
        }
    };
    Measured {
        per_op: in_window.filter(|_| passes > 0).map(|v| v / passes as f64),
        per_second: value.zip(stretch_ns).map(|(v, ns)| v * 1e9 / ns),
        reading,
    }
}

/// Some stretch's length over all repetitions: workers of one repetition run side by side, so it counts once for all of
/// them. `None` where some worker does not tell it, or it is none.
fn side_by_side(workers: &[&Observation], stretch_ns: fn(&Observation) -> Option<f64>) -> Option<f64> {
    let repetitions: BTreeSet<(&str, u32)> = workers.iter().map(|o| (o.arm.as_str(), o.block)).collect();
    let all: Option<f64> = workers.iter().map(|o| stretch_ns(o)).sum();
    all.map(|sum| sum / workers.len().max(1) as f64 * repetitions.len() as f64).filter(|ns| *ns > 0.0)
}

/// Time that `counter` says was taken, as a share of the CPU time of the stretches in which it was noted; `None` where
/// it was not counted. Observations without a count or a stretch are left out on both sides. The cgroup's own can be
/// above 1: it adds up CPUs on which other processes of the cgroup were stopped.
pub(crate) fn share_taken<'a>(workers: impl IntoIterator<Item = &'a Observation>, counter: &str) -> Option<f64> {
    let counts = |o: &&Observation| o.noted_ns.is_some() && o.counters.get(counter).and_then(Reading::value).is_some();
    let counted: Vec<&Observation> = workers.into_iter().filter(counts).collect();
    let mut cpus: BTreeMap<(&str, u32, u32), f64> = BTreeMap::new();
    for o in &counted {
        let longest = cpus.entry((&o.arm, o.block, o.cpu)).or_default();
        *longest = longest.max(o.noted_ns?);
    }
    let cpu_ns: f64 = cpus.into_values().sum();
    let taken = total(apart(&counted, counter)).value()?;
    (cpu_ns > 0.0).then(|| taken as f64 / cpu_ns)
}

/// Every counter that some of the workers of a role in one arm asked for.
pub(crate) fn summaries(workers: &[&Observation]) -> BTreeMap<String, CounterSummary> {
    let names: BTreeSet<&String> = workers.iter().flat_map(|o| o.counters.keys()).collect();
    let one = |name: &String| (name.clone(), CounterSummary { measured: measured(workers, name), modelled: None });
    names.into_iter().map(one).collect()
}

/// Why a reading holds no count and what would change that, in plain words; `None` where it holds one.
pub(crate) fn why_not(reading: &Reading) -> Option<String> {
    let why = reading.why()?;
    Some(reading.cure().map_or(why.to_owned(), |cure| format!("{why}; {cure}")))
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
        let not_asked = measured(&workers.each_ref(), "tlb_shootdowns").reading;
        assert!(not_asked.why().expect("no count").contains("regions"), "{not_asked:?}");
    }

    /// Two blocks of one arm, two workers each, which read so much of both, in windows of 100 of 125 ns noted.
    fn taken(cpus: [u32; 2], stolen: [u64; 2], throttled: [u64; 2]) -> Vec<Observation> {
        let mut workers = Vec::new();
        for (block, worker) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let mut seen = observation("a", block, worker, 10.0);
            (seen.passes, seen.window_ns, seen.noted_ns) = (10, 100.0, Some(125.0));
            seen.cpu = cpus[worker as usize];
            for (name, value) in [("stolen_ns", stolen), ("throttled_ns", throttled)] {
                seen.counters.insert(name.into(), Reading::Counted { value: value[worker as usize] });
            }
            workers.push(seen);
        }
        workers
    }

    fn sum(workers: &[Observation], counter: &str) -> Measured {
        measured(&workers.iter().collect::<Vec<_>>(), counter)
    }

    #[test]
    fn what_several_workers_read_of_one_thing_counts_once() {
        let apart = taken([0, 1], [20, 30], [50, 48]);
        assert_eq!(sum(&apart, "stolen_ns").reading, Reading::Counted { value: 100 });
        assert_eq!(sum(&apart, "throttled_ns").reading, Reading::Counted { value: 100 }, "the cgroup's, a repetition");
        assert_eq!(share_taken(&apart, "stolen_ns"), Some(0.2), "100 of 4 times 125");
        assert_eq!(share_taken(&apart, "throttled_ns"), Some(0.2));
        let on_one_cpu = taken([1, 1], [20, 20], [50, 50]);
        assert_eq!(sum(&on_one_cpu, "stolen_ns").reading, Reading::Counted { value: 40 });
        assert_eq!(share_taken(&on_one_cpu, "stolen_ns"), Some(0.16), "40 of 2 times 125");
        assert_eq!(share_taken(&on_one_cpu, "throttled_ns"), Some(0.4));
        let mut half_read = apart.clone();
        half_read[0].counters.insert("throttled_ns".into(), unsupported());
        assert_eq!(sum(&half_read, "throttled_ns").reading, Reading::Counted { value: 98 }, "the fellow read it");
        half_read[0].counters.insert("stolen_ns".into(), unsupported());
        assert_eq!(sum(&half_read, "stolen_ns").reading, unsupported(), "nobody else is on that CPU");
    }

    #[test]
    fn what_spans_the_warm_up_divides_by_it() {
        let stolen = sum(&taken([0, 1], [20, 30], [0, 0]), "stolen_ns");
        assert_eq!(stolen.per_second, Some(100.0 * 1e9 / 250.0));
        assert_eq!(stolen.per_op, Some(2.0), "of 100 ns a part of 100 in 125 fell into the windows of 40 passes");
        let mut long = taken([0, 1], [100, 100], [900, 900]);
        assert_eq!(share_taken(&long, "stolen_ns"), Some(0.8));
        assert_eq!(share_taken(&long, "throttled_ns"), Some(3.6), "other processes of the cgroup stand still too");
        long[3].noted_ns = None;
        let seen = sum(&long, "stolen_ns");
        assert_eq!((seen.reading.value(), seen.per_op, seen.per_second), (Some(400), None, None));
        assert_eq!(share_taken(&long, "stolen_ns"), Some(0.8), "without what has no stretch, on both sides");
        long.iter_mut().for_each(|o| o.counters.clear());
        assert_eq!((share_taken(&long, "stolen_ns"), share_taken(&[], "throttled_ns")), (None, None), "not zero");
    }
}
