//! Side-by-side measurements of the lab's own parts. `cargo run --release -p bench -- loops` compares the compiled loop
//! with C at -O2, `-- counting` prices the counters, `-- locks` compares the locks with C: `bench/README.md` says how.

mod advice;
mod arena;
mod attach;
mod c_locks;
mod collect;
mod contest;
mod duel;
mod evictions;
mod grading;
mod locks;
mod marks;
mod model;
mod predictions;
mod report;
mod run_queue;
mod runner;
mod schedule;
mod statistics;
mod steps;
mod tracing;

use clap::{Parser, Subcommand};
use contest::{Contest, Setting};
use duel::{Duel, DuelError, Subject};
use plan::LockKind;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use steps::STEPS;

/// Side-by-side measurements of the lab's own parts.
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The compiled loop against C at -O2, step by step. Exit status: 0 all padded steps within the bar, 1 one over it,
    /// 3 one unresolved, 4 this host has fewer than two CPUs.
    Loops(LoopsArguments),
    /// The compiled loop with a worker's counters counting against the same with them standing still. Exit status as of
    /// `loops`.
    Counting(CountingArguments),
    /// The locks as a worker uses them against the same kinds in C at -O2, free and contended. Exit status as of `loops`,
    /// over all rows but those of `tries-first`.
    Locks(LocksArguments),
    /// How long a worker takes to compile a loop of one step: the first in this process, and the median of 20 more.
    Compile,
    /// What tracing a mutex from outside costs and shows: untraced, at the lab's markers, at `pthread_mutex_lock`. Needs
    /// root, bpftrace and a built `coordinator`. Exit status: 0 measured, 1 something was missing or failed.
    Tracing(TracingArguments),
    /// What the model predicts against what is measured: every scenario of the library, each arm's ratio to the fastest.
    /// Needs a built `coordinator`. Exit status: 0 nine in ten predictions are within a factor of 2, 1 fewer are, or
    /// something failed.
    Predictions(PredictionsArguments),
    /// How often a right answer fails: each exercise's reference graded again and again. Needs a built `coordinator`. Exit
    /// status: 0 none was told "not yet", 1 one was, or something failed.
    Grading(GradingArguments),
    /// What `coordinator advise` says of the published cases against what was done there. Needs a built `coordinator`. Exit
    /// status: 0 no advice is worse than the published change or slower than what was there, 1 some is, or something failed.
    Advice(AdviceArguments),
    /// What `coordinator attach` costs those that it watches: pairs of C programs watched and left alone in turn. Needs
    /// root. Exit status: 0 padded targets lose less than one part in twenty, 1 they lose more, or something failed, 3
    /// noise hid it, 4 this host has fewer than two CPUs. With --alarms: 0 there was none, 1 there was one, or something
    /// failed. With --answers: 0 each was right and in time, 1 one was not, or something failed.
    Attach(AttachArguments),
    /// How fast the model is, and whether its memory grows with what is simulated, against its bars. Exit status: 0 all
    /// kept, 1 one missed, or something failed.
    Model(ModelArguments),
}

/// What `attach` can be told.
#[derive(clap::Args)]
struct AttachArguments {
    /// Print one JSON object in place of the table.
    #[arg(long)]
    json: bool,
    /// Only these targets.
    #[arg(long, value_delimiter = ',')]
    only: Vec<attach::Kind>,
    /// How long a watch takes, and a slice without one: 2, and with --answers 4, as the command's own.
    #[arg(long = "for", value_name = "SECONDS", value_parser = watching_seconds)]
    seconds: Option<f64>,
    /// Quads of each comparison: two watches and two times left alone, and four times left alone beside them. Fewer than
    /// six have no interval.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    quads: u32,
    /// Seed of their order.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Watch a padded pair so often instead, and count what is said to be shared.
    #[arg(long, value_name = "WATCHES", value_parser = clap::value_parser!(u32).range(1..=10_000),
          conflicts_with_all = ["only", "quads", "seed"])]
    alarms: Option<u32>,
    /// Watch each kind of pair so often instead, and hold what is told, and when, against what there is to tell.
    #[arg(long, value_name = "WATCHES", value_parser = clap::value_parser!(u32).range(1..=1_000),
          conflicts_with_all = ["only", "quads", "seed", "alarms"])]
    answers: Option<u32>,
    /// Put the table between the marks of this file.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

/// As `coordinator attach --for` bounds it.
fn watching_seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (1.0..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "expected seconds, from 1 to 3600".to_owned())
}

/// What `model` can be told.
#[derive(clap::Args)]
struct ModelArguments {
    /// Print one JSON object in place of the tables.
    #[arg(long)]
    json: bool,
    /// How often each Program is simulated.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,
    /// Simulate this alone, and print the most that was resident, KiB.
    #[arg(long, hide = true)]
    peak: Option<String>,
}

/// What `advice` can be told.
#[derive(clap::Args)]
struct AdviceArguments {
    /// Print one JSON object in place of the table.
    #[arg(long)]
    json: bool,
    /// Folder of the cases.
    #[arg(long, value_name = "FOLDER", default_value = "scenarios/cases")]
    cases: PathBuf,
    /// Only these, by name.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// What is done to each case before it is asked about.
    #[arg(long, value_delimiter = ',', default_values = ["as-is", "shuffled", "permuted"])]
    twists: Vec<advice::Twist>,
    /// What `advise` may take for each.
    #[arg(long, value_name = "TIME", default_value = "20s")]
    budget: String,
    /// Blocks of the run that holds what was advised against what was published.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(3..=1_000))]
    repetitions: u32,
    /// Put the table between the marks of this file.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

/// What `predictions` can be told.
#[derive(clap::Args)]
struct PredictionsArguments {
    /// Print one JSON object in place of the tables.
    #[arg(long)]
    json: bool,
    /// Folder of the scenarios.
    #[arg(long, value_name = "FOLDER", default_value = "scenarios")]
    scenarios: PathBuf,
    /// Only this half of them.
    #[arg(long)]
    half: Option<predictions::Half>,
    /// Only these, by name.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Put the tables between the marks of this file.
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
}

/// What `grading` can be told.
#[derive(clap::Args)]
struct GradingArguments {
    /// Print one JSON object in place of the table.
    #[arg(long)]
    json: bool,
    /// Folder of the exercises.
    #[arg(long, value_name = "FOLDER", default_value = "scenarios/exercises")]
    exercises: PathBuf,
    /// Only these, by folder.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Which file of each is graded.
    #[arg(long, value_name = "FILE", default_value = "reference.toml")]
    file: String,
    /// How often each is graded.
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    runs: u32,
    /// Blocks of each grading; those of the starter unless given.
    #[arg(long, value_parser = clap::value_parser!(u32).range(3..=10_000))]
    repetitions: Option<u32>,
}

/// What `tracing` can be told.
#[derive(clap::Args)]
struct TracingArguments {
    /// Print one JSON object in place of the tables.
    #[arg(long)]
    json: bool,
    /// How often each way of watching has its turn.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    rounds: u32,
}

/// What every contest can be told.
#[derive(clap::Args)]
struct ContestArguments {
    /// Print one JSON object in place of the table.
    #[arg(long)]
    json: bool,
    /// Pairs of slices to keep for each row, at least.
    #[arg(long, default_value_t = 400, value_parser = clap::value_parser!(u32).range(8..=100_000))]
    pairs: u32,
    /// Seconds after which a row is left as it stands; 15, or 30 where both processes take one lock, unless given. A batch
    /// that was begun is ended.
    #[arg(long, value_name = "SECONDS")]
    budget: Option<u64>,
    /// Seed of the slices' order and of the intervals.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// What `loops` can be told.
#[derive(clap::Args)]
struct LoopsArguments {
    /// Only these steps: load, store, bump, add, cas.
    #[arg(long, value_delimiter = ',', value_parser = clap::builder::PossibleValuesParser::new(STEPS.map(|s| s.name)))]
    only: Vec<String>,
    /// Leave out the packed ones, which are shown for information and judged by nothing.
    #[arg(long)]
    padded_only: bool,
    #[command(flatten)]
    contest: ContestArguments,
}

/// What `counting` can be told.
#[derive(clap::Args)]
struct CountingArguments {
    /// Only these steps: load, store, bump, add, cas.
    #[arg(long, value_delimiter = ',', default_values = ["bump", "add"],
          value_parser = clap::builder::PossibleValuesParser::new(STEPS.map(|s| s.name)))]
    only: Vec<String>,
    /// Leave out the packed ones, which are shown for information and judged by nothing.
    #[arg(long)]
    padded_only: bool,
    #[command(flatten)]
    contest: ContestArguments,
}

/// What `locks` can be told.
#[derive(clap::Args)]
struct LocksArguments {
    /// Only these kinds.
    #[arg(long, value_delimiter = ',',
          value_parser = clap::builder::PossibleValuesParser::new(LockKind::ALL.map(LockKind::name)))]
    only: Vec<String>,
    /// Only these settings: free, free-readers, contended, and tries-first, which is for information.
    #[arg(long, value_delimiter = ',',
          value_parser = clap::builder::PossibleValuesParser::new(LOCK_SETTINGS.map(Setting::name)))]
    settings: Vec<String>,
    #[command(flatten)]
    contest: ContestArguments,
}

/// The settings of `locks`, as its table shows them.
const LOCK_SETTINGS: [Setting; 4] = [Setting::Free, Setting::FreeReaders, Setting::Contended, Setting::TriesFirst];

fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|first| first == ::attach::symbols::ARGUMENT) {
        return ::attach::symbols::serve(); // a watch of `bench -- attach` started this process
    }
    let outcome = match Arguments::parse().command {
        Command::Loops(told) => fight(Contest::Loops, &steps(&told.only, told.padded_only), &told.contest),
        Command::Counting(told) => fight(Contest::Counting, &steps(&told.only, told.padded_only), &told.contest),
        Command::Locks(told) => fight(Contest::Locks, &locks(&told), &told.contest),
        Command::Compile => Ok(compile()),
        Command::Tracing(told) => return trace(&told),
        Command::Predictions(told) => return predict(&told),
        Command::Grading(told) => return grade(&told),
        Command::Advice(told) => return ask(&told),
        Command::Attach(told) => return watch(&told),
        Command::Model(told) => return time_model(&told),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("bench: {error}");
        ExitCode::from(if matches!(error, DuelError::TooFewCpus(_)) { 4 } else { 1 })
    })
}

/// Whether it is among those asked for; nothing asked for is all.
fn is_asked(asked: &[String], name: &str) -> bool {
    asked.is_empty() || asked.iter().any(|a| a == name)
}

fn steps(only: &[String], padded_only: bool) -> Vec<(Setting, Subject)> {
    let settings = [Setting::Padded, Setting::Packed].into_iter().filter(|&s| s == Setting::Padded || !padded_only);
    let of = |setting| STEPS.iter().filter(|s| is_asked(only, s.name)).map(move |step| (setting, Subject::Step(step)));
    settings.flat_map(of).collect()
}

fn locks(told: &LocksArguments) -> Vec<(Setting, Subject)> {
    let settings = LOCK_SETTINGS.into_iter().filter(|setting| is_asked(&told.settings, setting.name()));
    let of = |setting| {
        let kinds = locks::kinds(setting).into_iter().filter(|kind| is_asked(&told.only, kind.name()));
        kinds.map(move |kind| (setting, Subject::Lock(kind)))
    };
    settings.flat_map(of).collect()
}

/// Prints what was told and ends with its status; or says why there is none.
fn end<E: std::fmt::Display>(told: Result<(String, u8), E>) -> ExitCode {
    match told {
        Ok((text, status)) => {
            println!("{text}");
            ExitCode::from(status)
        }
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn trace(told: &TracingArguments) -> ExitCode {
    end(tracing::measure(told.rounds).map(|report| (if told.json { report.json() } else { report.text() }, 0)))
}

fn predict(told: &PredictionsArguments) -> ExitCode {
    let request = predictions::Request { scenarios: &told.scenarios, half: told.half, only: &told.only };
    end(predictions::measure(&request).and_then(|report| {
        told.write.iter().try_for_each(|file| predictions::MARKS.replace(file, &report.markdown()))?;
        Ok((if told.json { report.json() } else { report.markdown() }, report.exit_status()))
    }))
}

fn grade(told: &GradingArguments) -> ExitCode {
    let request = grading::Request {
        exercises: &told.exercises,
        only: &told.only,
        file: &told.file,
        runs: told.runs,
        repetitions: told.repetitions,
    };
    match grading::measure(&request) {
        Ok(report) => {
            println!("{}", if told.json { report.json() } else { report.markdown() });
            ExitCode::from(report.exit_status())
        }
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn ask(told: &AdviceArguments) -> ExitCode {
    let request = advice::Request {
        cases: &told.cases,
        only: &told.only,
        twists: &told.twists,
        budget: &told.budget,
        repetitions: told.repetitions,
    };
    end(advice::measure(&request).and_then(|report| {
        told.write.iter().try_for_each(|file| advice::MARKS.replace(file, &report.markdown()))?;
        Ok((if told.json { report.json() } else { report.markdown() }, report.exit_status()))
    }))
}

fn watch(told: &AttachArguments) -> ExitCode {
    let outcome = watched(told);
    if let Err(attach::AttachError::Cpus(error @ DuelError::TooFewCpus(_))) = &outcome {
        eprintln!("bench: {error}");
        return ExitCode::from(4);
    }
    end(outcome)
}

fn watched(told: &AttachArguments) -> Result<(String, u8), attach::AttachError> {
    let seconds = told.seconds.unwrap_or(if told.answers.is_some() { 4.0 } else { 2.0 });
    let time = Duration::from_secs_f64(seconds);
    if let Some(watches) = told.answers {
        let report = attach::answers(watches, time)?;
        told.write.iter().try_for_each(|file| attach::ANSWER_MARKS.replace(file, &report.markdown()))?;
        return Ok((if told.json { report.json() } else { report.markdown() }, report.exit_status()));
    }
    if let Some(watches) = told.alarms {
        let report = attach::alarms(watches, time)?;
        told.write.iter().try_for_each(|file| attach::ALARM_MARKS.replace(file, &report.markdown()))?;
        return Ok((if told.json { report.json() } else { report.markdown() }, report.exit_status()));
    }
    let report = attach::measure(&attach::Request { only: &told.only, time, quads: told.quads, seed: told.seed })?;
    told.write.iter().try_for_each(|file| attach::MARKS.replace(file, &report.markdown()))?;
    Ok((if told.json { report.json() } else { report.markdown() }, report.exit_status()))
}

fn time_model(told: &ModelArguments) -> ExitCode {
    end(match &told.peak {
        Some(order) => model::peak(order).map(|kib| (kib.to_string(), 0)),
        None => model::measure(told.rounds)
            .map(|report| (if told.json { report.json() } else { report.text() }, report.exit_status())),
    })
}

fn compile() -> ExitCode {
    let took_ms = || {
        let start = std::time::Instant::now();
        drop(steps::compile(&STEPS[0]));
        start.elapsed().as_secs_f64() * 1e3
    };
    let first = took_ms();
    let mut later: Vec<f64> = (0..20).map(|_| took_ms()).collect();
    later.sort_by(f64::total_cmp);
    println!("compiling a loop of one step: first {first:.2} ms, then {:.2} ms", later[10]);
    ExitCode::SUCCESS
}

fn fight(contest: Contest, over: &[(Setting, Subject)], arguments: &ContestArguments) -> Result<ExitCode, DuelError> {
    let cpus = duel::two_cpus()?;
    let (mut rows, mut counted) = (Vec::new(), 0);
    for &(setting, subject) in over {
        eprintln!("{} {}: {}", setting.name(), subject.name(), contest.doing());
        let budget = arguments.budget.map_or_else(|| setting.budget(), Duration::from_secs);
        let duel = Duel { contest, setting, subject, cpus, budget };
        let enough = |quads: &[_]| statistics::is_enough(&duel, quads, arguments.pairs, arguments.seed);
        let fought = duel::measure(&duel, arguments.pairs, arguments.seed, enough)?;
        counted = fought.counted;
        rows.push(statistics::row(&duel, &fought, arguments.pairs, arguments.seed));
    }
    let report = report::Report::new(contest, arguments.seed, cpus, counted, rows);
    let text = if arguments.json { report.json() } else { report.table() };
    println!("{text}");
    Ok(ExitCode::from(report.exit_status()))
}
