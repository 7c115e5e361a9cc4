//! What tracing a mutex from outside costs and shows: the same scenario untraced, traced at the lab's markers, and
//! traced at the C library's `pthread_mutex_lock`. `bench/README.md` has the method.

mod bpftrace;
mod page;
mod powers;

use crate::coordinator::{Coordinator, NotBuilt, RunError};
use crate::rounds;
use base64::prelude::{BASE64_STANDARD, Engine};
use bpftrace::Tracer;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use powers::Powers;
use record::Run;
use serde::Serialize;
use std::io;
use std::path::Path;

/// Seed of the conditions' order.
const SEED: u64 = 1;
/// The scenario, and its arms in the order of the page.
const SCENARIO: &str = include_str!("../tracing.toml");
const ARMS: [&str; 3] = ["mutex@rest=0ns", "mutex@rest=10us", "plain"];

/// Who watches.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Condition {
    /// Nobody but the lab.
    Untraced,
    /// Nobody again: what a difference of nothing looks like.
    Again,
    /// bpftrace at `lock_contended` and `lock_acquired`.
    Markers,
    /// bpftrace at the entry of `pthread_mutex_lock` and its return.
    Uprobe,
}

impl Condition {
    const ALL: [Condition; 4] = [Condition::Untraced, Condition::Again, Condition::Markers, Condition::Uprobe];

    /// Whether somebody else looks.
    fn traces(self) -> bool {
        matches!(self, Condition::Markers | Condition::Uprobe)
    }

    fn name(self) -> &'static str {
        match self {
            Condition::Untraced => "untraced",
            Condition::Again => "again",
            Condition::Markers => "markers",
            Condition::Uprobe => "uprobe",
        }
    }
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TracingError {
    #[error(transparent)]
    NotBuilt(#[from] NotBuilt),
    #[error("this process uses no libc.so.6 (/proc/self/maps): there is no pthread_mutex_lock to attach to")]
    NoLibrary,
    #[error("bpftrace does not start: {0} (Debian has it in the package bpftrace)")]
    NoTracer(io::Error),
    #[error("bpftrace ended: {0}; it needs root, and a kernel with uprobes and BPF")]
    TracerEnded(String),
    #[error("bpftrace runs, but has seen no event of {0} within two minutes")]
    NotAttached(&'static str),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("what the run left cannot be read: {0}")]
    Unreadable(String),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// One arm in one run.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Seen {
    /// Of a worker; `None` where the machine spoiled each repetition.
    ns_per_pass: Option<f64>,
    /// Acquisitions of all repetitions, in the window.
    acquisitions: u64,
    /// Those whose first try failed; 0 in a plain arm, which does not look.
    contended: u64,
    /// The lab's waits, by powers of two nanoseconds.
    lab_ns: Powers,
    /// The tracer's, warm-up included.
    tracer_ns: Powers,
}

/// All rounds.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    schema_version: u32,
    benchmark: &'static str,
    kernel: String,
    /// By round, each condition once, in the order of `Condition::ALL`.
    rounds: Vec<Vec<Under>>,
}

/// One run under one condition.
#[derive(Debug, Serialize)]
struct Under {
    condition: Condition,
    /// In the order of `ARMS`.
    arms: Vec<Seen>,
}

/// Runs the scenario so many times under each condition, in turns.
pub(crate) fn measure(rounds: u32) -> Result<Report, TracingError> {
    let lab = Lab::find()?;
    let rounds = rounds::take_turns(&Condition::ALL, rounds, SEED, |condition, round| {
        eprintln!("round {round} of {rounds}: {}", condition.name());
        lab.under(condition)
    })?;
    let kernel = host::facts(&host::Root::system()).kernel;
    // 2: rounds are lists of conditions, among them the untraced one again.
    Ok(Report { schema_version: 2, benchmark: "tracing", kernel, rounds })
}

/// The program that is traced, and where it works.
struct Lab {
    coordinator: Coordinator,
    folder: tempfile::TempDir,
}

impl Lab {
    fn find() -> Result<Lab, TracingError> {
        let coordinator = Coordinator::find()?;
        let folder = tempfile::tempdir()?;
        std::fs::write(folder.path().join("tracing.toml"), SCENARIO)?;
        Ok(Lab { coordinator, folder })
    }

    fn under(&self, condition: Condition) -> Result<Under, TracingError> {
        let tracer = match condition {
            condition if !condition.traces() => None,
            watched => {
                Some(Tracer::attach(watched, self.coordinator.path(), || self.run(&["--window", "2ms"]).map(drop))?)
            }
        };
        let (run, waits) = self.run(&[])?;
        let traced = tracer.map(Tracer::detach).transpose()?.unwrap_or_default();
        let seen = |arm: &&str| {
            let pids = run.observations.iter().filter(|o| o.arm == **arm).filter_map(|o| o.pid);
            let locks = || run.observations.iter().filter(|o| o.arm == **arm).flat_map(|o| &o.locks);
            let summary = run.arms.iter().find(|a| a.name == **arm);
            Seen {
                ns_per_pass: summary.and_then(|a| a.ns_per_op.as_ref()).map(|interval| interval.median),
                acquisitions: locks().map(|lock| lock.acquisitions).sum(),
                contended: locks().map(|lock| lock.contended).sum(),
                lab_ns: waits.iter().filter(|(tag, _)| *tag == format!("{arm}/wait:m")).map(|(_, of)| of).sum(),
                tracer_ns: pids.filter_map(|pid| traced.get(&pid)).sum(),
            }
        };
        Ok(Under { condition, arms: ARMS.iter().map(seen).collect() })
    }

    /// One run of the scenario: what it says, and the waits behind it by their tags.
    fn run(&self, more: &[&str]) -> Result<(Run, Vec<(String, Powers)>), TracingError> {
        let results = tempfile::tempdir_in(&self.folder)?;
        let run = self.coordinator.run(&self.folder.path().join("tracing.toml"), results.path(), more)?;
        Ok((run, waits(results.path())?))
    }
}

fn unreadable(error: impl std::fmt::Display) -> TracingError {
    TracingError::Unreadable(error.to_string())
}

/// The distributions of the one run's `latency.hlog`; none where it has no such file.
fn waits(results: &Path) -> Result<Vec<(String, Powers)>, TracingError> {
    let mut found = Vec::new();
    for folder in std::fs::read_dir(results.join("tracing"))? {
        let Ok(log) = std::fs::read(folder?.path().join("latency.hlog")) else { continue };
        for entry in IntervalLogIterator::new(&log) {
            let LogEntry::Interval(interval) = entry.map_err(|error| unreadable(format!("{error:?}")))? else {
                continue;
            };
            let tag = interval.tag().map(|tag| tag.as_str().to_owned()).unwrap_or_default();
            found.push((tag, powers(interval.encoded_histogram())?));
        }
    }
    Ok(found)
}

/// The histogram of one entry, which is V2 with compression in base 64.
fn powers(encoded: &str) -> Result<Powers, TracingError> {
    let bytes = BASE64_STANDARD.decode(encoded).map_err(unreadable)?;
    let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut &bytes[..]).map_err(unreadable)?;
    let mut powers = Powers::default();
    for value in histogram.iter_recorded() {
        powers.add(value.value_iterated_to(), value.count_at_value());
    }
    Ok(powers)
}
