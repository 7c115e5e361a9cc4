//! How fast the model is, and whether its memory grows with time: fixed Programs simulated on one CPU, against the bars that
//! the lab sets itself. `bench/README.md` has the method.

mod page;

use crate::table;
use ::model::{Limits, Machine, Shape};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use plan::Program;
use record::Interval;
use serde::Serialize;
use std::process::Command;
use std::time::Instant;

/// Accesses simulated a second, at least.
const BAR_PER_SECOND: f64 = 20e6;
/// Seconds that 128 workers may take.
const BAR_SECONDS: f64 = 10.0;
/// Peak memory of ten times the accesses over that of one, at most: what is left are pages of the allocator.
const BAR_GROWTH: f64 = 1.05;

const FALSE_SHARING: &str = include_str!("../../scenarios/false_sharing.toml");

/// 128 workers: `one` has a word for all of them, `apart` a line for each.
const CROWD: &str = r#"
title = "A crowd"
question = "How long does the model take for 128 workers?"
[field.one]
type = "u64"
[field.apart]
type = "u64"
each = "worker"
[[variant]]
name = "one-line"
placement = { pad = 64 }
[[variant]]
name = "one-line-add"
placement = { pad = 64 }
[variant.set]
"role.counter.loop" = ["add one"]
[[variant]]
name = "a-line-each"
placement = { pad = 64 }
[variant.set]
"role.counter.loop" = ["bump apart[me]"]
[[role]]
name = "counter"
workers = 128
loop = ["bump one"]
"#;

/// Simulated on this machine, whose file comes with the lab; a crowd has a core for each worker.
const MACHINE: &str = "epyc-7r13";
const CROWDED: Shape = Shape { sockets: 2, clusters: 8, cores: 8, threads: 1 };

/// The least that the lab's probes gave for a tenure, on a virtual machine of AMD EPYC, family 26: a pass, or two. The shorter
/// a tenure, the more of the accesses move the line, which costs the model most.
const SHORTEST_TENURE_FETCHES: f64 = 0.02;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ModelError {
    #[error("{0}: {1}")]
    System(&'static str, #[source] std::io::Error),
    #[error("{case} cannot be simulated: {why}")]
    Refused { case: &'static str, why: String },
    #[error("`bench model --peak {0}` said `{1}`: no number of KiB")]
    NoPeak(String, String),
}

/// What a row is judged by.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Bar {
    /// Accesses a second, at least.
    PerSecond(f64),
    /// Seconds, at most.
    Seconds(f64),
}

/// Something to simulate.
#[derive(Copy, Clone, Debug)]
struct Case {
    name: &'static str,
    /// The scenario that has the variant, and the variant.
    scenario: &'static str,
    variant: &'static str,
    workers: u64,
    /// In one last-level group, with the shortest tenure that is known; else spread over the machine.
    is_near: bool,
    /// In the window, each worker's; a fifth as many come before it.
    accesses_each: u64,
    bar: Bar,
}

const CASES: [Case; 6] = [
    Case { name: "packed, far", scenario: FALSE_SHARING, variant: "packed", ..PAIR },
    Case { name: "packed, near", scenario: FALSE_SHARING, variant: "packed", is_near: true, ..PAIR },
    Case { name: "padded", scenario: FALSE_SHARING, variant: "padded-64", ..PAIR },
    Case { name: "one line", scenario: CROWD, variant: "one-line", ..MANY },
    Case { name: "one line, add", scenario: CROWD, variant: "one-line-add", ..MANY },
    Case { name: "128 lines", scenario: CROWD, variant: "a-line-each", ..MANY },
];

const PAIR: Case = Case {
    name: "",
    scenario: "",
    variant: "",
    workers: 2,
    is_near: false,
    accesses_each: 10_000_000,
    bar: Bar::PerSecond(BAR_PER_SECOND),
};

const MANY: Case = Case { workers: 128, accesses_each: 100_000, bar: Bar::Seconds(BAR_SECONDS), ..PAIR };

/// A figure over the rounds.
#[derive(Copy, Clone, Debug, Serialize)]
struct Spread {
    median: f64,
    least: f64,
    most: f64,
}

impl Spread {
    fn of(mut figures: Vec<f64>) -> Spread {
        figures.sort_by(f64::total_cmp);
        Spread { median: figures[figures.len() / 2], least: figures[0], most: figures[figures.len() - 1] }
    }

    /// In another unit. Of six rounds and a few more, lowest and highest hold the median at 95 % at least.
    fn over(self, unit: f64) -> Interval {
        Interval { median: self.median / unit, low: self.least / unit, high: self.most / unit }
    }
}

/// How fast one case is.
#[derive(Debug, Serialize)]
struct Speed {
    case: &'static str,
    workers: u64,
    /// Simulated, warm-up included.
    accesses: u64,
    seconds: Spread,
    accesses_per_second: Spread,
    bar: Bar,
    /// The median over the bar, or the bar over the median: 1 or more is within.
    of_bar: f64,
}

impl Speed {
    fn of(case: &Case, accesses: u64, seconds: &[f64]) -> Speed {
        let per_second = Spread::of(seconds.iter().map(|seconds| accesses as f64 / seconds).collect());
        let seconds = Spread::of(seconds.to_vec());
        let of_bar = match case.bar {
            Bar::PerSecond(bar) => per_second.median / bar,
            Bar::Seconds(bar) => bar / seconds.median,
        };
        let (workers, bar) = (case.workers, case.bar);
        Speed { case: case.name, workers, accesses, seconds, accesses_per_second: per_second, bar, of_bar }
    }
}

/// What one case needs, in a process of its own.
#[derive(Debug, Serialize)]
struct Memory {
    case: &'static str,
    /// Accesses in the shorter simulation's window; the longer one's has ten times as many.
    accesses: u64,
    /// Most that was resident.
    peak_kib: u64,
    peak_of_ten_times_kib: u64,
    /// The second over the first.
    growth: f64,
    /// At most.
    bar: f64,
}

/// All of it.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    schema_version: u32,
    benchmark: &'static str,
    cpu_model: String,
    kernel: String,
    /// The CPU that simulated.
    cpu: usize,
    rounds: u32,
    machine: &'static str,
    speed: Vec<Speed>,
    memory: Vec<Memory>,
}

impl Report {
    /// 0 where all bars are kept, else 1.
    pub(crate) fn exit_status(&self) -> u8 {
        let fast = self.speed.iter().all(|row| row.of_bar >= 1.0);
        u8::from(!(fast && self.memory.iter().all(|row| row.growth <= row.bar)))
    }

    /// For the table of everything: each case's speed, and the worst growth of memory.
    pub(crate) fn rows(&self) -> Vec<table::Row> {
        let speed = |row: &Speed| {
            let (figure, unit, bar) = match row.bar {
                Bar::PerSecond(bar) => (row.accesses_per_second.over(1e6), "M/s", table::Bar::AtLeast(bar / 1e6)),
                Bar::Seconds(bar) => (row.seconds.over(1.0), "s", table::Bar::AtMost(bar)),
            };
            // Fewer than six rounds have no interval.
            let figure = (figure.median, (self.rounds >= 6).then_some(figure));
            let what = format!("{}, {} workers: accesses simulated", row.case, row.workers);
            table::Row::amount(what, figure, unit, Some(bar))
                .noting(format!("{:.1} M accesses", row.accesses as f64 / 1e6))
        };
        let worst = self.memory.iter().max_by(|a, b| a.growth.total_cmp(&b.growth));
        let memory = |memory: &Memory| {
            let growth = Interval { median: memory.growth, low: memory.growth, high: memory.growth };
            let what = "memory for ten times the accesses over that for one, the worst case";
            let bar = table::Bar::AtMost(memory.bar);
            table::Row::amount(what, (memory.growth, Some(growth)), "×", Some(bar))
                .noting(format!("{}, once each", memory.case))
        };
        self.speed.iter().map(speed).chain(worst.map(memory)).collect()
    }

    pub(crate) fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report is plain data")
    }
}

/// Simulates each case once a round, on one CPU.
pub(crate) fn measure(rounds: u32) -> Result<Report, ModelError> {
    let cpu = pin()?;
    let mut took: Vec<(u64, Vec<f64>)> = vec![(0, Vec::new()); CASES.len()];
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}");
        for (case, (accesses, seconds)) in CASES.iter().zip(&mut took) {
            let start = Instant::now();
            *accesses = simulate(case, case.accesses_each)?;
            seconds.push(start.elapsed().as_secs_f64());
        }
    }
    let speed =
        CASES.iter().zip(&took).map(|(case, (accesses, seconds))| Speed::of(case, *accesses, seconds)).collect();
    eprintln!("memory");
    let memory = CASES.iter().map(memory).collect::<Result<_, _>>()?;
    let facts = host::facts(&host::Root::system());
    Ok(Report {
        schema_version: 1,
        benchmark: "model",
        cpu_model: facts.cpu_model,
        kernel: facts.kernel,
        cpu,
        rounds,
        machine: MACHINE,
        speed,
        memory,
    })
}

/// Pins this process, and those that it starts, to the last CPU that it may use: interrupts mostly go to the first.
fn pin() -> Result<usize, ModelError> {
    let failed = |what| move |errno: nix::Error| ModelError::System(what, errno.into());
    let mask = sched_getaffinity(Pid::from_raw(0)).map_err(failed("sched_getaffinity"))?;
    let may = |cpu: &usize| mask.is_set(*cpu).unwrap_or(false);
    let cpu = (0..CpuSet::count()).rev().find(may).unwrap_or_default();
    let mut only = CpuSet::new();
    only.set(cpu).and_then(|()| sched_setaffinity(Pid::from_raw(0), &only)).map_err(failed("sched_setaffinity"))?;
    Ok(cpu)
}

/// How many accesses were simulated.
fn simulate(case: &Case, accesses_each: u64) -> Result<u64, ModelError> {
    let refused = |why: String| ModelError::Refused { case: case.name, why };
    let mut machine = Machine::find(MACHINE).map_err(|refusal| refused(refusal.to_string()))?;
    if case.workers > 2 {
        machine.shape = CROWDED;
    }
    let mut told = Vec::new();
    if case.is_near {
        let near = &mut machine.distances.cluster;
        near.tenure_ns = SHORTEST_TENURE_FETCHES * near.fetch_ns;
        told.push(("cpus".to_owned(), "\"same-llc\"".to_owned()));
    }
    let topology = machine.shape.topology();
    let loaded =
        scenario::parse_with(case.name, case.scenario, &told).map_err(|refusal| refused(refusal.to_string()))?;
    let bound = plan::bind(&loaded.plan, &topology, 1).map_err(|error| refused(error.to_string()))?;
    let arm = bound.arms.into_iter().find(|arm| arm.arm.name == case.variant);
    let arm = arm.ok_or_else(|| refused(format!("no variant `{}`", case.variant)))?;
    let program: Program = arm.program.map_err(|not| refused(not.why))?;
    // The accesses end the window, not its length.
    let limits = Limits { accesses: case.workers * accesses_each, window_ns: 1e15 };
    let modelled = ::model::simulate(&program, &machine, &topology, limits, 1);
    modelled.map(|modelled| modelled.accesses).map_err(|refusal| refused(refusal.to_string()))
}

fn memory(case: &Case) -> Result<Memory, ModelError> {
    let accesses = case.accesses_each / 10;
    let [peak_kib, peak_of_ten_times_kib] = [peak_of(case, accesses)?, peak_of(case, 10 * accesses)?];
    Ok(Memory {
        case: case.name,
        accesses: case.workers * accesses,
        peak_kib,
        peak_of_ten_times_kib,
        growth: peak_of_ten_times_kib as f64 / peak_kib as f64,
        bar: BAR_GROWTH,
    })
}

/// What a fresh process that simulates it, and does nothing else, comes to need, KiB.
fn peak_of(case: &Case, accesses_each: u64) -> Result<u64, ModelError> {
    let failed = |error| ModelError::System("starting this program again", error);
    let order = format!("{}:{accesses_each}", case.name);
    let program = std::env::current_exe().map_err(failed)?;
    let output = Command::new(program).args(["model", "--peak", &order]).output().map_err(failed)?;
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    said.parse().map_err(|_| ModelError::NoPeak(order, said))
}

/// Simulates what [`peak_of`] ordered. The most that was resident in this process, KiB; 0 for an order that is none.
pub(crate) fn peak(order: &str) -> Result<u64, ModelError> {
    let failed = |error| ModelError::System("reading /proc/self/status", error);
    let ordered = order
        .split_once(':')
        .and_then(|(name, accesses)| Some((CASES.iter().find(|case| case.name == name)?, accesses.parse().ok()?)));
    let Some((case, accesses_each)) = ordered else { return Ok(0) };
    simulate(case, accesses_each)?;
    let status = std::fs::read_to_string("/proc/self/status").map_err(failed)?;
    // proc_pid_status(5): the peak of what was resident.
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    Ok(line.trim().trim_end_matches(" kB").parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_can_be_simulated_and_counts_its_warm_up() {
        for case in &CASES {
            let (wanted, simulated) = (case.workers * 1_000, simulate(case, 1_000).unwrap());
            assert!(simulated >= wanted * 6 / 5 && simulated < wanted * 3 / 2, "{}: {simulated}", case.name);
        }
        assert!(peak("packed, near:1000").unwrap() > 0);
        assert_eq!(peak("nothing:1").unwrap(), 0);
    }

    #[test]
    fn a_bar_is_kept_from_either_side() {
        let [pair, crowd] = [&CASES[0], &CASES[3]].map(|case| Speed::of(case, 24_000_000, &[2.0, 1.0, 0.5]));
        assert_eq!((pair.accesses_per_second.median, pair.of_bar), (24e6, 1.2));
        assert_eq!((crowd.seconds.least, crowd.seconds.median, crowd.of_bar), (0.5, 1.0, 10.0));
        let memory = |growth| Memory {
            case: "packed",
            accesses: 1,
            peak_kib: 1,
            peak_of_ten_times_kib: 1,
            growth,
            bar: BAR_GROWTH,
        };
        let report = |speed, growth| Report {
            schema_version: 1,
            benchmark: "model",
            cpu_model: String::new(),
            kernel: String::new(),
            cpu: 0,
            rounds: 3,
            machine: MACHINE,
            speed: vec![speed],
            memory: vec![memory(growth)],
        };
        let slow = || Speed::of(&CASES[0], 24_000_000, &[2.0]);
        assert_eq!(report(crowd, 1.0).exit_status(), 0);
        assert_eq!((report(slow(), 1.0).exit_status(), report(pair, 1.2).exit_status()), (1, 1));
        assert!(report(slow(), 1.0).text().contains("over"), "{}", report(slow(), 1.0).text());
    }
}
