//! `latency.hlog`: the distributions behind the percentiles of `run.json`, as an HdrHistogram log for tools that read
//! such logs.
//!
//! # References
//! The HdrHistogram log format 1.3: the comment of `HistogramLogWriter` in HdrHistogram (Java).

use analysis::{DIGITS, Distribution};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, IntervalLogWriterError, Tag};
use record::{NsCount, Run};
use std::fmt::Display;
use std::io::{self, Write};
use std::time::{Duration, SystemTime};

/// What the maxima in the log are divided by, as HdrHistogram's own writers do: nanoseconds become milliseconds.
const MAX_VALUE_DIVISOR: f64 = 1e6;

/// Writes an interval each distribution: as long as the run, tagged `ARM/wait:LOCK`, `ARM/hold:LOCK`,
/// `ARM/response:ROLE` or `ARM/service:ROLE`, with `/worker:INDEX` behind it where it is one worker's, its values
/// nanoseconds, V2 with compression.
///
/// # Errors
/// What `out` answers.
pub(super) fn write(run: &Run, distributions: &[Distribution], out: &mut impl Write) -> io::Result<()> {
    let started = humantime::parse_rfc3339(&run.started_utc).unwrap_or(SystemTime::UNIX_EPOCH);
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("[Histogram log format version 1.3]")
        .add_comment("Values are nanoseconds. Tags are ARM/WHAT:WHOSE; see results/README.md.")
        .with_start_time(started)
        .with_base_time(started)
        .with_max_value_divisor(MAX_VALUE_DIVISOR)
        .begin_log_with(out, &mut serializer)?;
    let length = Duration::try_from_secs_f64(run.duration_s).unwrap_or_default();
    for one in distributions {
        let tag = tag(&one.arm, &one.what);
        let histogram = histogram(&one.times).map_err(invalid)?;
        log.write_histogram(&histogram, Duration::ZERO, length, Tag::new(&tag)).map_err(|error| match error {
            IntervalLogWriterError::IoError(error) => error,
            IntervalLogWriterError::SerializeError(error) => invalid(error),
        })?;
    }
    Ok(())
}

fn invalid(error: impl Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

fn histogram(times: &[NsCount]) -> Result<Histogram<u64>, String> {
    let mut histogram = Histogram::new(DIGITS).map_err(|error| error.to_string())?;
    for time in times {
        histogram.record_n(time.ns, time.count).map_err(|error| error.to_string())?;
    }
    Ok(histogram)
}

/// A distribution's name ([`Distribution::what`]) as a tag, which ends at a comma and holds no blank: an arm at a point
/// of several swept keys has commas.
pub(crate) fn tag(arm: &str, what: &str) -> String {
    let allowed = |c: char| match c {
        ',' => ';',
        c if c.is_whitespace() || c.is_control() => '_',
        c => c,
    };
    format!("{arm}/{what}").chars().map(allowed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing;
    use analysis::{distributions, percentiles};
    use base64::Engine;
    use base64::prelude::BASE64_STANDARD as BASE64;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    use std::collections::{BTreeMap, BTreeSet};
    use std::process::Command;

    /// Reads a log as a user of the package would. A rank that is no whole number is rounded by the package and taken
    /// from above by this program, so each percentile is asked for by the rank that it stands for.
    const PYTHON: &str = r#"
import json, math, sys
from hdrh.log import HistogramLogReader
from hdrh.histogram import HdrHistogram

log = HistogramLogReader(sys.argv[1], HdrHistogram(1, 3600 * 10**9, 3))
found = {}
while True:
    histogram = log.get_next_interval_histogram()
    if histogram is None:
        break
    count = histogram.get_total_count()
    at = lambda thousandths: histogram.get_value_at_percentile(100 * (-(-thousandths * count // 1000)) / count)
    plain = [histogram.get_value_at_percentile(p) for p in (50, 90, 99, 99.9)]
    found[histogram.get_tag()] = [count, at(500), at(900), at(990), at(999), histogram.get_max_value()] + plain
print(json.dumps(found))
"#;

    /// The fixture's run with times of every kind, and an arm of several swept keys.
    fn run() -> Run {
        let mut run = testing::mutex();
        run.arms[1].name = "packed@workers=2,rest=0 ns".to_owned();
        let arms: Vec<String> = run.arms.iter().map(|arm| arm.name.clone()).collect();
        for (index, seen) in run.observations.iter_mut().enumerate() {
            if seen.arm == "padded-64" {
                seen.arm.clone_from(&arms[1]);
            }
            testing::give_times(seen, index as u64);
        }
        run
    }

    fn written(run: &Run) -> (Vec<Distribution>, Vec<u8>) {
        let found = distributions(&run.arms, &run.observations);
        let mut log = Vec::new();
        write(run, &found, &mut log).unwrap();
        (found, log)
    }

    /// What `run.json` says of a distribution.
    fn figures(of: &Distribution) -> Vec<u64> {
        let seen = percentiles(&of.times).unwrap();
        vec![seen.count, seen.p50, seen.p90, seen.p99, seen.p999, seen.max]
    }

    #[test]
    fn the_log_comes_back_as_it_was_kept() {
        let run = run();
        let (found, log) = written(&run);
        assert!(found.len() > 8, "{}", found.len());
        let mut read = BTreeMap::new();
        for entry in IntervalLogIterator::new(&log) {
            match entry.unwrap() {
                LogEntry::Interval(interval) => {
                    let bytes = BASE64.decode(interval.encoded_histogram()).unwrap();
                    let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
                    assert!((interval.duration().as_secs_f64() - run.duration_s).abs() < 1e-3);
                    read.insert(interval.tag().unwrap().as_str().to_owned(), histogram);
                }
                LogEntry::StartTime(start) | LogEntry::BaseTime(start) => {
                    assert_eq!(SystemTime::UNIX_EPOCH + start, humantime::parse_rfc3339(&run.started_utc).unwrap());
                }
            }
        }
        assert_eq!(read.len(), found.len());
        for one in &found {
            let histogram = &read[&tag(&one.arm, &one.what)];
            assert_eq!(*histogram, super::histogram(&one.times).unwrap());
            let at = |q| histogram.value_at_quantile(q);
            let seen = vec![histogram.len(), at(0.5), at(0.9), at(0.99), at(0.999), histogram.max()];
            assert_eq!(seen, figures(one), "{}", tag(&one.arm, &one.what));
        }
        assert!(read.contains_key("packed@workers=2;rest=0_ns/wait:m"), "{:?}", read.keys());
    }

    #[test]
    fn pythons_package_reads_the_same_percentiles() {
        let python = std::env::var("LAB_PYTHON").unwrap_or_else(|_| "python3".to_owned());
        let has_package = Command::new(&python).args(["-c", "import hdrh"]).output().is_ok_and(|o| o.status.success());
        if !has_package {
            let what = "has no package hdrhistogram (pip install hdrhistogram; LAB_PYTHON names another)";
            return ::testing::skip(&format!("`{python}` {what}"));
        }
        let (found, log) = written(&run());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("latency.hlog");
        std::fs::write(&path, log).unwrap();
        let output = Command::new(python).arg("-c").arg(PYTHON).arg(&path).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let read: BTreeMap<String, Vec<u64>> = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(read.len(), found.len());
        for part in ["/wait:m", "/hold:m", "/response:counter", "/service:counter"] {
            let of = |tag: &&String| tag.split_once(part).map(|(_, worker)| worker.to_owned());
            let whose: BTreeSet<String> = read.keys().filter_map(|tag| of(&tag)).collect();
            assert_eq!(whose, ["", "/worker:0", "/worker:1"].map(str::to_owned).into(), "{part} of all and of each");
        }
        let mut whole_ranks = 0;
        for one in &found {
            let (python, ours) = (&read[&tag(&one.arm, &one.what)], figures(one));
            assert_eq!(python[..6], ours, "{}", tag(&one.arm, &one.what));
            if ours[0] % 1000 == 0 {
                assert_eq!(python[6..], ours[1..5], "{}: asked for plainly", tag(&one.arm, &one.what));
                whole_ranks += 1;
            }
        }
        assert!(whole_ranks > 0 && whole_ranks < found.len(), "both kinds of rank are looked at");
    }
}
