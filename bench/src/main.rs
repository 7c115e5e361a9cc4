//! Side-by-side measurements of the lab's own parts. `cargo run --release -p bench -- loops` compares the compiled loop
//! with C at -O2, `-- counting` prices the counters: `bench/README.md` says how.

mod arena;
mod duel;
mod report;
mod schedule;
mod sides;
mod statistics;
mod tracing;

use clap::{Parser, Subcommand};
use sides::{Contest, Placement, STEPS};
use std::process::ExitCode;

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
    /// How long a worker takes to compile a loop of one step: the first in this process, and the median of 20 more.
    Compile,
    /// What tracing a mutex from outside costs and shows: untraced, at the lab's markers, at `pthread_mutex_lock`. Needs
    /// root, bpftrace and a built `coordinator`. Exit status: 0 measured, 1 something was missing or failed.
    Tracing(TracingArguments),
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
    /// Pairs of slices to keep for each step, at least.
    #[arg(long, default_value_t = 400, value_parser = clap::value_parser!(u32).range(40..=100_000))]
    pairs: u32,
    /// Leave out the packed ones, which are shown for information and judged by nothing.
    #[arg(long)]
    padded_only: bool,
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
    #[command(flatten)]
    contest: ContestArguments,
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().command {
        Command::Loops(told) => {
            duel::two_cpus().and_then(|cpus| fight(Contest::Loops, &told.only, &told.contest, cpus))
        }
        Command::Counting(told) => {
            duel::two_cpus().and_then(|cpus| fight(Contest::Counting, &told.only, &told.contest, cpus))
        }
        Command::Compile => Ok(compile()),
        Command::Tracing(told) => return trace(&told),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("bench: {error}");
        ExitCode::from(if matches!(error, duel::DuelError::TooFewCpus(_)) { 4 } else { 1 })
    })
}

fn trace(told: &TracingArguments) -> ExitCode {
    match tracing::measure(told.rounds) {
        Ok(report) => {
            println!("{}", if told.json { report.json() } else { report.text() });
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn compile() -> ExitCode {
    let took_ms = || {
        let start = std::time::Instant::now();
        drop(sides::compile(&STEPS[0]));
        start.elapsed().as_secs_f64() * 1e3
    };
    let first = took_ms();
    let mut later: Vec<f64> = (0..20).map(|_| took_ms()).collect();
    later.sort_by(f64::total_cmp);
    println!("compiling a loop of one step: first {first:.2} ms, then {:.2} ms", later[10]);
    ExitCode::SUCCESS
}

fn fight(
    contest: Contest,
    only: &[String],
    arguments: &ContestArguments,
    cpus: [usize; 2],
) -> Result<ExitCode, duel::DuelError> {
    let placements: &[Placement] =
        if arguments.padded_only { &[Placement::Padded] } else { &[Placement::Padded, Placement::Packed] };
    let (mut rows, mut counted) = (Vec::new(), 0);
    for &placement in placements {
        for step in STEPS.iter().filter(|s| only.is_empty() || only.iter().any(|o| o == s.name)) {
            eprintln!("{} {}: {}", placement.name(), step.name, contest.doing());
            let enough = |quads: &[_]| statistics::pairs_kept(placement, quads) >= arguments.pairs as usize;
            let duel = duel::Duel { contest, step, placement, cpus };
            let fought = duel::measure(&duel, arguments.seed, enough)?;
            counted = fought.counted;
            rows.push(statistics::row(contest, step.name, placement, &fought.quads, arguments.pairs, arguments.seed));
        }
    }
    let report = report::Report::new(contest, arguments.seed, cpus, counted, rows);
    let text = if arguments.json { report.json() } else { report.table() };
    println!("{text}");
    Ok(ExitCode::from(report.exit_status()))
}
