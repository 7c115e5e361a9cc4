//! What a run takes beside its windows: from its start to the first, from each to the next, and from the last to its end,
//! when all results are on disk. The windows' instants are read from the segments that the workers ran on, by ticks; the
//! warm-up, which a scenario asks for, is left out.

mod segments;

use crate::all::{Effort, Unmeasured};
use crate::compile;
use crate::coordinator::Coordinator;
use crate::order;
use crate::table::{Row, digits};
use plan::{Nanos, TickRate};
use segments::Segments;
use shm_layout::{WindowTicks, ticks};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// What somebody runs first.
const SHORT: &str = include_str!("../../scenarios/false_sharing.toml");

/// Two workers that wait at nearly each acquisition: up to two million records a window.
const LONG: &str = r#"
title = "A long log"
question = "How long does it take to keep each wait?"
[measure]
window = "150ms"
warm_up = "5ms"
repetitions = 4
baselines = []
[lock.m]
kind = "ticket"
[field.balance]
type = "u64"
[[role]]
name = "teller"
workers = 2
loop = ["lock m", "bump balance", "unlock m"]
"#;

/// One run.
#[derive(Clone, Debug)]
struct Timed {
    to_first_ms: f64,
    between_ms: Vec<f64>,
    to_end_ms: f64,
    /// Rows of `locks.csv`, where there is one.
    records: Option<u64>,
}

/// The rows of the table.
///
/// # Errors
/// [`Unmeasured`].
pub(crate) fn rows(effort: Effort) -> Result<Vec<Row>, Unmeasured> {
    let coordinator = Coordinator::find()?;
    let rounds = effort.of(9, 1);
    let times = |name: &str, text: &str, more: &[&str]| -> Result<Vec<Timed>, Unmeasured> {
        let run = |round| {
            eprintln!("{name}: round {round} of {rounds}");
            time(&coordinator, name, text, more)
        };
        (1..=rounds).map(run).collect()
    };
    let short = times("false_sharing", SHORT, effort.of(&[], &["--repetitions", "3"]))?;
    let long = times("long_log", LONG, effort.of(&["--lock-log"], &["--lock-log", "--repetitions", "3"]))?;
    let mut rows = told("`false_sharing`", &short);
    rows.extend(told("a lock log", &long));
    rows.push(compiling());
    Ok(rows)
}

fn told(name: &str, times: &[Timed]) -> Vec<Row> {
    let of = |figure: fn(&Timed) -> Option<f64>| estimate(times.iter().filter_map(figure).collect());
    let records = order::median(times.iter().filter_map(|timed| Some(timed.records? as f64)).collect());
    let windows = times.first().map_or(0, |timed| timed.between_ms.len() + 1);
    let note = match records {
        Some(records) => format!("{} million records over {windows} windows", digits(records / 1e6)),
        None => format!("{windows} windows"),
    };
    let row = |what: &str, of| Row::amount(format!("{name}: {what}"), of, "ms", None).noting(&*note);
    vec![
        row("from its start to the first warm-up", of(|timed| Some(timed.to_first_ms))),
        row("from a window to the next warm-up", of(|timed| order::median(timed.between_ms.clone()))),
        row("from the last window to its end, results written", of(|timed| Some(timed.to_end_ms))),
    ]
}

/// The median, and its interval where there are enough.
fn estimate(values: Vec<f64>) -> (f64, Option<record::Interval>) {
    (order::median(values.clone()).unwrap_or(f64::NAN), order::interval(values))
}

fn compiling() -> Row {
    let (first, later) = compile::times_ms();
    Row::amount("compiling a loop of one step", estimate(later), "ms", None)
        .noting(format!("the first in a process {} ms", digits(first)))
}

/// Runs a scenario as a user does.
fn time(coordinator: &Coordinator, name: &str, text: &str, more: &[&str]) -> Result<Timed, Unmeasured> {
    let loaded = scenario::parse_with(name, text, &[]);
    let warm_up = loaded.map_err(|refusal| Unmeasured::Failed(refusal.to_string()))?.plan.arms[0].warm_up;
    let folder = tempfile::tempdir()?;
    let (scenario, out) = (folder.path().join(format!("{name}.toml")), folder.path().join("results"));
    std::fs::write(&scenario, text)?;
    let rate = shm_layout::calibrate(Duration::from_millis(20));
    let mut command = coordinator.command("run");
    command.arg(&scenario).args(["--quiet", "--out"]).arg(&out).args(more);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut segments = Segments::watch()?;
    let began = ticks();
    let mut child = command.spawn()?;
    let seen = segments.windows_until_end(&child);
    let status = child.wait()?;
    // Noise that hid an answer, or a claim that fails here, is nothing to this.
    match status.code() {
        Some(0 | 1 | 3) => {
            let (windows, ended) = seen?;
            timed([began, ended], &windows, warm_up, rate, records(&out)?)
        }
        _ => Err(Unmeasured::Failed(format!("`coordinator run {name}.toml` ended with {status}"))),
    }
}

fn timed(
    [began, ended]: [u64; 2],
    windows: &[WindowTicks],
    warm_up: Nanos,
    rate: TickRate,
    records: Option<u64>,
) -> Result<Timed, Unmeasured> {
    let ms = |from: u64, to: u64| rate.ns(to.saturating_sub(from)) / 1e6;
    let warm_up_ms = warm_up.0 as f64 / 1e6;
    let (Some(first), Some(last)) = (windows.first(), windows.last()) else {
        return Err(Unmeasured::Failed("no window of the run was seen".to_owned()));
    };
    Ok(Timed {
        to_first_ms: ms(began, first.open) - warm_up_ms,
        between_ms: windows.windows(2).map(|two| ms(two[0].close, two[1].open) - warm_up_ms).collect(),
        to_end_ms: ms(last.close, ended),
        records,
    })
}

/// Rows of the one run's `locks.csv` below its head; `None` where it has no such file.
fn records(out: &Path) -> Result<Option<u64>, Unmeasured> {
    let mut found = None;
    for scenario in std::fs::read_dir(out)? {
        for run in std::fs::read_dir(scenario?.path())? {
            let log: PathBuf = run?.path().join("locks.csv");
            if log.exists() {
                let mut lines = BufReader::with_capacity(1 << 20, std::fs::File::open(log)?);
                found = Some(count_lines(&mut lines)?.saturating_sub(1));
            }
        }
    }
    Ok(found)
}

fn count_lines(text: &mut impl BufRead) -> std::io::Result<u64> {
    let mut lines = 0;
    loop {
        let part = text.fill_buf()?;
        if part.is_empty() {
            return Ok(lines);
        }
        lines += part.iter().filter(|byte| **byte == b'\n').count() as u64;
        let length = part.len();
        text.consume(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_its_windows_and_what_lies_around_them() {
        let window = |open, close| WindowTicks { open, close };
        let rate = TickRate { ticks_per_ns: 0.001 };
        let windows = [window(150, 250), window(300, 400), window(460, 560)];
        let timed = timed([100, 590], &windows, Nanos(20_000), rate, Some(3)).unwrap();
        let us = |ms: f64| (ms * 1e3).round();
        assert_eq!((us(timed.to_first_ms), us(timed.to_end_ms)), (30.0, 30.0));
        assert_eq!(timed.between_ms.iter().map(|ms| us(*ms)).collect::<Vec<_>>(), [30.0, 40.0]);
        let rows = told("it", &vec![timed; 6]);
        assert!(rows[1].markdown("startup").contains("0.035 ms; 0.000 million records over 3 windows"));
    }

    #[test]
    fn a_run_without_a_window_is_no_figure() {
        let rate = TickRate { ticks_per_ns: 1.0 };
        assert!(timed([1, 2], &[], Nanos(0), rate, None).is_err());
    }

    #[test]
    fn the_long_log_is_a_scenario() {
        scenario::parse_with("long_log", LONG, &[]).unwrap();
    }

    #[test]
    fn lines_are_counted_over_the_ends_of_buffers() {
        let text = "head\n".to_owned() + &"row\n".repeat(1000);
        let mut small = BufReader::with_capacity(7, text.as_bytes());
        assert_eq!(count_lines(&mut small).unwrap(), 1001);
    }
}
