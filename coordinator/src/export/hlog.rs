//! A saved run's `latency.hlog`, passed on only if it is whole and this run's.

use crate::foreign_file;
use crate::report::hlog::tag;
use crate::report::names::LATENCIES;
use crate::report::text::{escaped, shown};
use crate::saved::Saved;
use analysis::DIGITS;
use base64::Engine;
use base64::prelude::BASE64_STANDARD as BASE64;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use record::{ArmSummary, Percentiles};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read};
use std::path::PathBuf;
use std::time::{Duration, UNIX_EPOCH};

/// How a packed histogram of version 2 begins.
const PACKED: [u8; 4] = 0x1c84_9314_u32.to_be_bytes();

/// Bytes of its head, unpacked: cookie, length of the rest, offset, digits, lowest, highest, ratio.
const HEAD: usize = 40;

/// Most bytes of one of the lab's, unpacked: up to nine for each of the cells that three digits of 64 bits take.
const UNPACKED_MAX: u64 = HEAD as u64 + 9 * 56 * 1024;

/// Why there is no log to pass on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LogError {
    /// None beside the run.
    #[error(
        "there is no `{}`: a run leaves it where waits for locks, holds, latencies or batches were timed (a lock \
         in the scenario, a role with `latency = true`, or one with `touch` steps); of a run.json that was copied it stays behind, copy it too",
        shown(path)
    )]
    Missing { path: PathBuf },
    /// It cannot be read.
    #[error("cannot read `{}`: {source}", shown(path))]
    Unreadable { path: PathBuf, source: io::Error },
    /// It is damaged, or another run's.
    #[error("`{}` is not passed on: {why}; copy it again from where the run left it", shown(path))]
    Unsound { path: PathBuf, why: String },
}

/// The bytes of the log beside a run. Every histogram in it can be decoded, it begins when the run did, and each
/// distribution of `run.json` that it should hold is in it with as many values and the same maximum.
///
/// # Errors
/// [`LogError`]: there is none, or what is wrong with it.
pub(crate) fn checked(saved: &Saved) -> Result<Vec<u8>, LogError> {
    let path = saved.path.with_file_name(LATENCIES);
    let bytes = foreign_file::read(&path).map_err(|source| match source.kind() {
        ErrorKind::NotFound => LogError::Missing { path: path.clone() },
        _ => LogError::Unreadable { path: path.clone(), source },
    })?;
    match check(&bytes, saved) {
        Ok(()) => Ok(bytes),
        Err(why) => Err(LogError::Unsound { path, why: escaped(&why) }),
    }
}

fn check(log: &[u8], saved: &Saved) -> Result<(), String> {
    if log.last() != Some(&b'\n') {
        return Err("it ends in the middle of a line".to_owned());
    }
    let found = histograms(log, &saved.run.started_utc)?;
    for (tag, expected) in saved.run.arms.iter().flat_map(distributions) {
        let (count, max) = *found.get(&tag).ok_or_else(|| format!("it lacks `{tag}`, which run.json has"))?;
        if (count, max) != (expected.count, expected.max) {
            return Err(format!(
                "its `{tag}` has {count} values up to {max} ns, and run.json says {} up to {} ns",
                expected.count, expected.max
            ));
        }
    }
    Ok(())
}

/// How many values each histogram has, and the largest, by its tag. They are not kept: a short text can be a large one.
fn histograms(log: &[u8], started_utc: &str) -> Result<BTreeMap<String, (u64, u64)>, String> {
    let mut found = BTreeMap::new();
    let mut started = None;
    for entry in IntervalLogIterator::new(log) {
        match entry.map_err(|error| format!("it is no log of HdrHistogram ({error:?})"))? {
            LogEntry::StartTime(since_epoch) => started = Some(since_epoch),
            LogEntry::BaseTime(_) => {}
            LogEntry::Interval(interval) => {
                let tag = interval.tag().map_or("", |tag| tag.as_str());
                let histogram = decoded(interval.encoded_histogram())
                    .map_err(|error| format!("the histogram `{tag}` cannot be decoded ({error})"))?;
                found.insert(tag.to_owned(), (histogram.len(), histogram.max()));
            }
        }
    }
    let expected = humantime::parse_rfc3339(started_utc).ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    match started.map(|started| started.abs_diff(expected.unwrap_or_default())) {
        Some(apart) if apart < Duration::from_secs(1) => Ok(found),
        _ => Err(format!("it does not begin at {started_utc}, when this run did: it is another run's")),
    }
}

/// Unpacked here and not by the package's reader, which believes a histogram of any length that it is told.
fn decoded(text: &str) -> Result<Histogram<u64>, String> {
    let packed = BASE64.decode(text).map_err(|error| error.to_string())?;
    let (head, packed) = packed.split_at_checked(8).ok_or("it is too short")?;
    if !head.starts_with(&PACKED) {
        return Err("it is not packed as the lab packs them".to_owned());
    }
    let mut bytes = Vec::new();
    let unpacked = ZlibDecoder::new(packed).take(UNPACKED_MAX + 1).read_to_end(&mut bytes);
    unpacked.map_err(|error| error.to_string())?;
    if bytes.len() as u64 > UNPACKED_MAX {
        return Err("it is longer than any of the lab's".to_owned());
    }
    let number = |at: usize| bytes.get(at..at + 4).map(|four| u32::from_be_bytes([four[0], four[1], four[2], four[3]]));
    let told = number(4).ok_or("it is too short")?;
    if told as usize > bytes.len().saturating_sub(HEAD) {
        return Err("it ends early".to_owned());
    }
    if number(12) != Some(u32::from(DIGITS)) {
        return Err(format!("it is not of {DIGITS} digits"));
    }
    Deserializer::new().deserialize(&mut bytes.as_slice()).map_err(|error| error.to_string())
}

/// What the log holds of an arm by what `run.json` says, each distribution of all workers by its tag.
fn distributions(arm: &ArmSummary) -> Vec<(String, Percentiles)> {
    let mut found = Vec::new();
    let mut push = |what: &str, whose: &str, times: Option<Percentiles>| {
        found.extend(times.map(|times| (tag(&arm.name, &format!("{what}:{whose}")), times)));
    };
    for lock in &arm.locks {
        push("wait", &lock.lock, lock.wait_ns);
        push("hold", &lock.lock, lock.hold_ns);
    }
    for role in &arm.roles {
        push("response", &role.role, role.latency_ns);
        push("service", &role.role, role.service_ns);
        push("batch", &role.role, role.batch_ns);
        push("batch_corrected", &role.role, role.batch_corrected_ns);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::logs::Logs;
    use crate::report::{files, testing};
    use record::Run;
    use std::fs;

    /// A run with times in its observations, and in its arms what these come to.
    fn run() -> Run {
        let mut run = testing::mutex();
        for (nth, seen) in run.observations.iter_mut().enumerate() {
            testing::give_times(seen, nth as u64);
        }
        let all = analysis::distributions(&run.arms, &run.observations);
        for arm in &mut run.arms {
            let of = |what: &str| {
                let own = all.iter().find(|d| d.arm == arm.name && d.what == what);
                own.and_then(|d| analysis::percentiles(&d.times))
            };
            (arm.locks[0].wait_ns, arm.locks[0].hold_ns) = (of("wait:m"), of("hold:m"));
            (arm.roles[0].latency_ns, arm.roles[0].service_ns) = (of("response:counter"), of("service:counter"));
        }
        run
    }

    #[test]
    fn a_sound_log_is_passed_on_as_it_is_and_a_damaged_one_is_not() {
        let root = tempfile::tempdir().unwrap();
        let folder = files::write(&run(), Logs::default(), root.path(), "s").unwrap();
        let saved = Saved::read(&folder).unwrap();
        let path = folder.join(LATENCIES);
        let sound = fs::read(&path).unwrap();
        assert_eq!(checked(&saved).unwrap(), sound);
        let text = String::from_utf8(sound).unwrap();
        let last_line = text.trim_end().rfind('\n').unwrap() + 1;
        let hold = text.lines().find(|line| line.starts_with("Tag=packed/hold:m,")).unwrap();
        let wait = text.lines().find(|line| line.starts_with("Tag=packed/wait:m,")).unwrap();
        let swapped = wait.replace("wait:m", "hold:m");
        for (changed, why) in [
            (text[..text.len() - 40].to_owned(), "ends in the middle of a line"),
            (format!("{}\n", &text[..text.len() - 40]), "cannot be decoded"),
            (text[..last_line].replace("Tag=control/", "Tag=other/"), "it lacks `control/wait:m`"),
            (text.replace(hold, &swapped), "its `packed/hold:m` has"),
            (format!("{text}what is this?\n"), "no log of HdrHistogram"),
            (text.replace("#[StartTime: 1", "#[StartTime: 2"), "it is another run's"),
        ] {
            assert_ne!(changed, text, "{why}");
            fs::write(&path, changed).unwrap();
            let said = checked(&saved).unwrap_err().to_string();
            assert!(said.contains(why), "{why}: {said}");
        }
        fs::remove_file(&path).unwrap();
        assert!(checked(&saved).unwrap_err().to_string().contains("copy it too"));
    }
}
