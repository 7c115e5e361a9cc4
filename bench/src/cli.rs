//! What the program can be told.

use crate::all::Part;
use crate::contest::{LOCK_SETTINGS, STEPS, Setting, Terms};
use clap::{Parser, Subcommand};
use plan::LockKind;
use std::path::PathBuf;
use std::time::Duration;

/// Side-by-side measurements of the lab's own parts.
#[derive(Parser)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Everything that is asked of the lab's speed and disturbance, part by part, as one table: each figure beside its
    /// control and its bar. Needs a built `coordinator`, and for all rows root, bpftrace, stress-ng and
    /// core-to-core-latency. Exit status: 0 all bars are kept, 1 one is not, or something failed, 3 noise hid one.
    All(AllArguments),
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

/// What `all` can be told.
#[derive(clap::Args)]
pub(crate) struct AllArguments {
    /// Print one JSON object in place of the table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Only these parts.
    #[arg(long, value_delimiter = ',')]
    pub(crate) only: Vec<Part>,
    /// So short that it shows whether everything goes through; most figures stay unresolved.
    #[arg(long, conflicts_with = "write")]
    pub(crate) quick: bool,
    /// Put the table between the marks of this file; with --only the other parts' rows stay as they are.
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,
}

/// What `attach` can be told.
#[derive(clap::Args)]
pub(crate) struct AttachArguments {
    /// Print one JSON object in place of the table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Only these targets.
    #[arg(long, value_delimiter = ',')]
    pub(crate) only: Vec<crate::attach::Kind>,
    /// How long a watch takes, and a slice without one: 2, and with --answers 4, as the command's own.
    #[arg(long = "for", value_name = "SECONDS", value_parser = watching_seconds)]
    pub(crate) seconds: Option<f64>,
    /// Quads of each comparison: two watches and two times left alone, and four times left alone beside them. Fewer than
    /// six have no interval.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) quads: u32,
    /// Seed of their order.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Watch a padded pair so often instead, and count what is said to be shared.
    #[arg(long, value_name = "WATCHES", value_parser = clap::value_parser!(u32).range(1..=10_000),
          conflicts_with_all = ["only", "quads", "seed"])]
    pub(crate) alarms: Option<u32>,
    /// Watch each kind of pair so often instead, and hold what is told, and when, against what there is to tell.
    #[arg(long, value_name = "WATCHES", value_parser = clap::value_parser!(u32).range(1..=1_000),
          conflicts_with_all = ["only", "quads", "seed", "alarms"])]
    pub(crate) answers: Option<u32>,
    /// Put the table between the marks of this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,
}

/// As `coordinator attach --for` bounds it.
fn watching_seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (1.0..=3600.0).contains(seconds));
    seconds.ok_or_else(|| "expected seconds, from 1 to 3600".to_owned())
}

/// What `model` can be told.
#[derive(clap::Args)]
pub(crate) struct ModelArguments {
    /// Print one JSON object in place of the tables.
    #[arg(long)]
    pub(crate) json: bool,
    /// How often each Program is simulated.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) rounds: u32,
    /// Simulate this alone, and print the most that was resident, KiB.
    #[arg(long, hide = true)]
    pub(crate) peak: Option<String>,
}

/// What `advice` can be told.
#[derive(clap::Args)]
pub(crate) struct AdviceArguments {
    /// Print one JSON object in place of the table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Folder of the cases.
    #[arg(long, value_name = "FOLDER", default_value = "scenarios/cases")]
    pub(crate) cases: PathBuf,
    /// Only these, by name.
    #[arg(long, value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// What is done to each case before it is asked about.
    #[arg(long, value_delimiter = ',', default_values = ["as-is", "shuffled", "permuted"])]
    pub(crate) twists: Vec<crate::advice::Twist>,
    /// What `advise` may take for each.
    #[arg(long, value_name = "TIME", default_value = "20s")]
    pub(crate) budget: String,
    /// Blocks of the run that holds what was advised against what was published.
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(3..=1_000))]
    pub(crate) repetitions: u32,
    /// Put the table between the marks of this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,
}

/// What `predictions` can be told.
#[derive(clap::Args)]
pub(crate) struct PredictionsArguments {
    /// Print one JSON object in place of the tables.
    #[arg(long)]
    pub(crate) json: bool,
    /// Folder of the scenarios.
    #[arg(long, value_name = "FOLDER", default_value = "scenarios")]
    pub(crate) scenarios: PathBuf,
    /// Only this half of them.
    #[arg(long)]
    pub(crate) half: Option<crate::predictions::Half>,
    /// Only these, by name.
    #[arg(long, value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Put the tables between the marks of this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) write: Option<PathBuf>,
}

/// What `grading` can be told.
#[derive(clap::Args)]
pub(crate) struct GradingArguments {
    /// Print one JSON object in place of the table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Folder of the exercises.
    #[arg(long, value_name = "FOLDER", default_value = "scenarios/exercises")]
    pub(crate) exercises: PathBuf,
    /// Only these, by folder.
    #[arg(long, value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Which file of each is graded.
    #[arg(long, value_name = "FILE", default_value = "reference.toml")]
    pub(crate) file: String,
    /// How often each is graded.
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) runs: u32,
    /// Blocks of each grading; those of the starter unless given.
    #[arg(long, value_parser = clap::value_parser!(u32).range(3..=10_000))]
    pub(crate) repetitions: Option<u32>,
}

/// What `tracing` can be told.
#[derive(clap::Args)]
pub(crate) struct TracingArguments {
    /// Print one JSON object in place of the tables.
    #[arg(long)]
    pub(crate) json: bool,
    /// How often each way of watching has its turn.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) rounds: u32,
}

/// What every contest can be told.
#[derive(clap::Args)]
pub(crate) struct ContestArguments {
    /// Print one JSON object in place of the table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Pairs of slices to keep for each row, at least.
    #[arg(long, default_value_t = 400, value_parser = clap::value_parser!(u32).range(8..=100_000))]
    pub(crate) pairs: u32,
    /// Seconds after which a row is left as it stands; 15, or 30 where both processes take one lock, unless given. A batch
    /// that was begun is ended.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) budget: Option<u64>,
    /// Seed of the slices' order and of the intervals.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}

impl ContestArguments {
    /// How long the contest goes on.
    pub(crate) fn terms(&self) -> Terms {
        Terms { pairs: self.pairs, budget: self.budget.map(Duration::from_secs), seed: self.seed }
    }
}

/// What `loops` can be told.
#[derive(clap::Args)]
pub(crate) struct LoopsArguments {
    /// Only these steps: load, store, bump, add, cas.
    #[arg(long, value_delimiter = ',', value_parser = clap::builder::PossibleValuesParser::new(STEPS.map(|s| s.name)))]
    pub(crate) only: Vec<String>,
    /// Leave out the packed ones, which are shown for information and judged by nothing.
    #[arg(long)]
    pub(crate) padded_only: bool,
    #[command(flatten)]
    pub(crate) contest: ContestArguments,
}

/// What `counting` can be told.
#[derive(clap::Args)]
pub(crate) struct CountingArguments {
    /// Only these steps: load, store, bump, add, cas.
    #[arg(long, value_delimiter = ',', default_values = ["bump", "add"],
          value_parser = clap::builder::PossibleValuesParser::new(STEPS.map(|s| s.name)))]
    pub(crate) only: Vec<String>,
    /// Leave out the packed ones, which are shown for information and judged by nothing.
    #[arg(long)]
    pub(crate) padded_only: bool,
    #[command(flatten)]
    pub(crate) contest: ContestArguments,
}

/// What `locks` can be told.
#[derive(clap::Args)]
pub(crate) struct LocksArguments {
    /// Only these kinds.
    #[arg(long, value_delimiter = ',',
          value_parser = clap::builder::PossibleValuesParser::new(LockKind::ALL.map(LockKind::name)))]
    pub(crate) only: Vec<String>,
    /// Only these settings: free, free-readers, contended, and tries-first, which is for information.
    #[arg(long, value_delimiter = ',',
          value_parser = clap::builder::PossibleValuesParser::new(LOCK_SETTINGS.map(Setting::name)))]
    pub(crate) settings: Vec<String>,
    #[command(flatten)]
    pub(crate) contest: ContestArguments,
}
