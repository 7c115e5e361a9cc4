//! The distributions of waits and holds, made again from each wait and each hold that the workers logged (`run
//! --lock-log`), by code that shares nothing with the lab's: each bucket of `latency.hlog` and each percentile of
//! `run.json` comes out the same.

mod common;

use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use common::{Bench, alone, stderr};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use record::{ArmSummary, Percentiles, Run};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use testing::skip;

const SCENARIO: &str = r#"
title = "Logged"
question = "Are the distributions made of what was logged?"
[measure]
window = "20ms"
warm_up = "2ms"
repetitions = 4
baselines = []
[lock.m]
[field.balance]
type = "u64"
[[role]]
name = "teller"
loop = ["lock m", "work 2us", "bump balance", "unlock m", "work 500ns"]
[[role]]
name = "late"
after = "5ms"
loop = ["lock m", "bump balance", "unlock m", "work 3us"]
[sweep]
"lock.m.kind" = ["pthread", "ticket", "futex"]
"#;

/// A row of `locks.csv`.
#[derive(Debug, Deserialize)]
struct Row {
    arm: String,
    block: u32,
    worker: u32,
    role: String,
    lock: String,
    what: String,
    start_ns: f64,
    ticks: u64,
    ns: u64,
    masked: String,
}

fn rows(folder: &Path) -> Vec<Row> {
    let rows = csv::Reader::from_path(folder.join("locks.csv")).unwrap().into_deserialize();
    rows.collect::<Result<_, _>>().unwrap()
}

/// Times by bucket, as HdrHistogram of three digits has them, each by its lowest value: to 2047 every value has its own,
/// and from there on each doubling has 1024.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Buckets(BTreeMap<u64, u64>);

impl Buckets {
    fn of(times: impl Iterator<Item = u64>) -> Buckets {
        let mut buckets = Buckets::default();
        for ns in times {
            *buckets.0.entry(Self::lowest(ns)).or_default() += 1;
        }
        buckets
    }

    fn lowest(ns: u64) -> u64 {
        let dropped = (ns.max(1).ilog2() + 1).saturating_sub(11);
        ns >> dropped << dropped
    }

    /// The highest value of the bucket in which the time of this rank lies: of all times so large a share, in
    /// thousandths, is no longer.
    fn at(&self, thousandths: u64) -> u64 {
        let count: u64 = self.0.values().sum();
        let mut left = (thousandths * count).div_ceil(1000).max(1);
        for (lowest, in_it) in &self.0 {
            if left <= *in_it {
                let width = 1u64 << (lowest.max(&1).ilog2() + 1).saturating_sub(11);
                return lowest + width - 1;
            }
            left -= in_it;
        }
        0
    }

    fn assert_gives(&self, seen: Option<Percentiles>, what: &str) {
        let Some(seen) = seen else { return assert!(self.0.is_empty(), "{what}: nothing is said") };
        let count = self.0.values().sum::<u64>();
        assert_eq!((seen.count, seen.p50, seen.p90), (count, self.at(500), self.at(900)), "{what}");
        assert_eq!((seen.p99, seen.p999, seen.max), (self.at(990), self.at(999), self.at(1000)), "{what}");
    }
}

/// The buckets of every interval of `latency.hlog`, by tag.
fn logged(folder: &Path) -> BTreeMap<String, Buckets> {
    let log = std::fs::read(folder.join("latency.hlog")).unwrap();
    let mut found = BTreeMap::new();
    for entry in IntervalLogIterator::new(&log) {
        if let LogEntry::Interval(interval) = entry.unwrap() {
            let bytes = BASE64.decode(interval.encoded_histogram()).unwrap();
            let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
            let count = |v: hdrhistogram::iterators::IterationValue<u64>| (v.value_iterated_to(), v.count_at_value());
            let buckets = histogram.iter_recorded().map(count).map(|(ns, n)| (Buckets::lowest(ns), n)).collect();
            found.insert(interval.tag().unwrap().as_str().to_owned(), Buckets(buckets));
        }
    }
    found
}

/// A run, and the folder that it left.
fn run() -> (Bench, PathBuf, Run) {
    let bench = Bench::new(SCENARIO);
    let output = bench.run().args(["--quiet", "--lock-log"]).output().unwrap();
    // 3: a noisy machine hid a figure, which is not what is asked here.
    assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
    let folder = bench.only_result();
    let run = serde_json::from_slice(&std::fs::read(folder.join("run.json")).unwrap()).unwrap();
    (bench, folder, run)
}

/// The rows of the repetitions that an arm's figures are made of.
fn of_arm<'a>(run: &'a Run, arm: &'a ArmSummary, rows: &'a [Row]) -> impl Iterator<Item = &'a Row> + Clone {
    let counts = |block: u32| {
        run.observations.iter().any(|o| {
            o.arm == arm.name
                && o.block == block
                && o.spoiled.is_empty()
                && o.regime.is_some()
                && o.regime == arm.regime
        })
    };
    rows.iter().filter(move |row| row.arm == arm.name && counts(row.block))
}

/// Every wait is in the log, once, in every repetition, the spoiled ones too; what is derived in a row is right.
fn assert_rows_are_complete(run: &Run, rows: &[Row]) {
    let ticks_per_ns = run.host.ticks_per_second / 1e9;
    for row in rows {
        assert!(row.ns.abs_diff((row.ticks as f64 / ticks_per_ns).round() as u64) <= 1, "{row:?}");
        assert!(row.start_ns >= 0.0 && ["yes", "no"].contains(&row.masked.as_str()), "{row:?}");
        assert!(row.role == ["teller", "late"][row.worker as usize] && row.lock == "m", "{row:?}");
        assert!(row.worker == 1 || row.start_ns >= 5e6 - 10.0 || row.masked == "yes", "before all had begun: {row:?}");
    }
    for seen in &run.observations {
        let [lock] = &seen.locks[..] else { panic!("{seen:?}") };
        let own = |what: &'static str| {
            let key = (seen.arm.as_str(), seen.block, seen.worker, what);
            rows.iter().filter(move |r| (r.arm.as_str(), r.block, r.worker, r.what.as_str()) == key)
        };
        assert_eq!(own("wait").count() as u64, lock.contended - lock.waits_lost, "{} {}", seen.arm, seen.block);
        let holds = own("hold").count() as u64;
        assert!(holds.abs_diff(lock.acquisitions / record::HOLD_SAMPLING) <= 1, "{holds} of {}", lock.acquisitions);
        let ends: Vec<f64> = own("wait").map(|r| r.start_ns + r.ns as f64).collect();
        assert!(own("wait").skip(1).zip(&ends).all(|(next, end)| next.start_ns >= end - 2.0), "one after the other");
    }
}

/// Everything said of the arms' locks, from the rows; how many distributions that were.
fn compared(run: &Run, folder: &Path, rows: &[Row]) -> usize {
    let hlog = if folder.join("latency.hlog").exists() { logged(folder) } else { BTreeMap::new() };
    let mut expected = BTreeMap::new();
    for arm in &run.arms {
        let own = of_arm(run, arm, rows);
        let buckets = |what: &str, worker: Option<u32>, masked: &[&str]| {
            let wanted = |r: &&Row| {
                r.what == what && worker.is_none_or(|w| w == r.worker) && masked.contains(&r.masked.as_str())
            };
            Buckets::of(own.clone().filter(wanted).map(|row| row.ns))
        };
        for lock in &arm.locks {
            buckets("wait", None, &["no", "yes"]).assert_gives(lock.wait_ns_all, &format!("{} wait_ns_all", arm.name));
            let masked: u64 = buckets("wait", None, &["yes"]).0.values().sum();
            assert_eq!(masked, lock.masked, "{}", arm.name);
            for (what, of_all) in [("wait", lock.wait_ns), ("hold", lock.hold_ns)] {
                let tag = format!("{}/{what}:m", arm.name);
                let whole = buckets(what, None, &["no"]);
                whole.assert_gives(of_all, &tag);
                expected.insert(tag.clone(), whole);
                for by in &lock.by_worker {
                    let part = buckets(what, Some(by.worker), &["no"]);
                    part.assert_gives(if what == "wait" { by.wait_ns } else { by.hold_ns }, &tag);
                    expected.insert(format!("{tag}/worker:{}", by.worker), part);
                }
            }
        }
    }
    expected.retain(|_, buckets| !buckets.0.is_empty());
    assert_eq!(hlog, expected);
    expected.len()
}

/// The same with the package of Python that its users have: it fills histograms of its own from the rows that count.
const PYTHON: &str = r#"
import csv, json, sys
from hdrh.log import HistogramLogReader
from hdrh.histogram import HdrHistogram

folder = sys.argv[1]
run = json.load(open(folder + "/run.json"))
regimes = {arm["name"]: arm["regime"] for arm in run["arms"]}
kept = {(o["arm"], o["block"]) for o in run["observations"]
        if not o["spoiled"] and o["regime"] is not None and o["regime"] == regimes[o["arm"]]}
new = lambda: HdrHistogram(1, 3600 * 10**9, 3)
own = {}
for row in csv.DictReader(open(folder + "/locks.csv")):
    if (row["arm"], int(row["block"])) in kept and row["masked"] == "no":
        tag = "%s/%s:%s" % (row["arm"], row["what"], row["lock"])
        for tag in (tag, tag + "/worker:" + row["worker"]):
            own.setdefault(tag, new()).record_value(int(row["ns"]))
log = HistogramLogReader(folder + "/latency.hlog", new())
read = {}
while histogram := log.get_next_interval_histogram():
    read[histogram.get_tag()] = histogram
buckets = lambda h: [(i.value_iterated_to, i.count_added_in_this_iter_step) for i in h.get_recorded_iterator()]
assert sorted(own) == sorted(read), (sorted(own), sorted(read))
for tag in own:
    assert buckets(own[tag]) == buckets(read[tag]), tag
print(len(own))
"#;

fn compared_by_python(folder: &Path) -> Option<usize> {
    let python = std::env::var("LAB_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has_package = Command::new(&python).args(["-c", "import hdrh"]).output().is_ok_and(|o| o.status.success());
    if !has_package {
        skip(&format!("`{python}` has no package hdrhistogram (pip install hdrhistogram; LAB_PYTHON names another)"));
        return None;
    }
    let output = Command::new(python).arg("-c").arg(PYTHON).arg(folder).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    Some(common::stdout(&output).trim().parse().unwrap())
}

#[test]
fn every_bucket_and_percentile_is_what_the_logged_waits_and_holds_give() {
    let _alone = alone();
    // Of an arm whose repetitions a machine spoiled nothing is said; one that spoils all, six times, measures nothing.
    for _ in 0..6 {
        let (_bench, folder, run) = run();
        let rows = rows(&folder);
        assert_rows_are_complete(&run, &rows);
        let distributions = compared(&run, &folder, &rows);
        println!("{} rows, {distributions} distributions", rows.len());
        if distributions > 0 {
            if let Some(by_python) = compared_by_python(&folder) {
                assert_eq!(by_python, distributions);
            }
            return;
        }
    }
    panic!("each repetition of six runs was spoiled");
}

#[test]
fn without_being_asked_no_lock_times_are_left() {
    let bench = Bench::new(common::QUICK);
    bench.run().arg("--quiet").output().unwrap();
    assert!(bench.only_result().join("samples.csv").exists() && !bench.only_result().join("locks.csv").exists());
}
