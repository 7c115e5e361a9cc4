//! The command line, as clap reads it.

use crate::report::style::ColourChoice;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// A laboratory for memory that several processes share: it runs a scenario on pinned processes, measures what sharing
/// costs, and says what would cure it.
#[derive(Debug, Parser)]
#[command(name = "coordinator", version, propagate_version = true)]
#[command(after_help = "Exit status: 0 done; 1 it ran and something failed, or an expectation fails; 2 the input or \
                        usage is wrong; 3 inconclusive; 4 this host cannot; 130 interrupted.")]
pub(crate) struct Cli {
    /// When to colour the output; NO_COLOR and TERM=dumb are heeded
    #[arg(long = "color", visible_alias = "colour", value_name = "WHEN", default_value = "auto", global = true)]
    pub(crate) colour: ColourChoice,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a scenario and say what was seen
    #[command(
        after_help = "Examples: coordinator run scenarios/false_sharing.toml --repetitions 5 --only packed --only \
                      padded-64\n          coordinator run scenarios/first_touch.toml --hold --repetitions 1   (then, \
                      in another terminal: perf stat -p PID)"
    )]
    Run(RunOptions),
    /// Check scenario files without running them
    #[command(after_help = "Example: coordinator check scenarios/*.toml")]
    Check(CheckOptions),
    /// List the scenarios and their questions
    #[command(after_help = "Example: coordinator list scenarios")]
    List(ListOptions),
    /// Look at this machine: what can be measured on it, what would disturb that, and the command that changes it
    #[command(
        after_help = "Example: coordinator doctor scenarios/false_sharing.toml\n\nIt never changes anything, and ends \
                      with 0 whatever it finds."
    )]
    Doctor(DoctorOptions),
    /// Remove shared-memory segments that dead runs left
    #[command(after_help = "Example: coordinator clean   (never touches a segment that a living process holds)")]
    Clean,
}

#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    /// The scenario file
    pub(crate) scenario: PathBuf,
    /// Print the run as JSON (the same as run.json) instead of the table
    #[arg(long)]
    pub(crate) json: bool,
    /// Folder that results go under
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub(crate) out: PathBuf,
    /// Blocks: how often each arm runs; or "auto"
    #[arg(long, value_name = "N")]
    pub(crate) repetitions: Option<String>,
    /// Length of each measuring window, e.g. 50ms
    #[arg(long, value_name = "TIME")]
    pub(crate) window: Option<String>,
    #[command(flatten)]
    pub(crate) shape: ShapeOptions,
    /// Seed of the arms' order, of random elements and of the intervals; a fresh one by default
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Print each worker's machine code with the steps it came from
    #[arg(long)]
    pub(crate) show_code: bool,
    /// Print what would run and how long it takes, and stop
    #[arg(long, conflicts_with_all = ["json", "show_code"])]
    pub(crate) dry_run: bool,
    /// Stop before each repetition's warm-up and after its window: the workers sleep, their pids are printed on
    /// standard error, and Enter goes on; so perf, gdb or bpftrace can be attached to them
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) hold: bool,
    /// Leave also locks.csv: each contended wait for a lock and each sampled hold, one by one
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) lock_log: bool,
    /// No progress on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// What decides which CPUs and counters a run of a scenario uses: `doctor` takes the same as `run`, so that it can be
/// asked about the same run.
#[derive(Debug, Default, Args)]
pub(crate) struct ShapeOptions {
    /// Workers of the headline role
    #[arg(long, value_name = "N", requires = "scenario")]
    pub(crate) workers: Option<u32>,
    /// CPUs of the headline role, one a worker (0,1), or a choice by name (spread, same-core, same-llc, cross-socket)
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<String>,
    /// Events to count beside the lab's own, in perf's spelling with commas between them, in place of the scenario's;
    /// may be repeated. E.g. cache-misses:u,cpu/event=0xd1,umask=0x01,name=l1_hits/u,sched:sched_switch
    #[arg(long, value_name = "LIST", requires = "scenario")]
    pub(crate) events: Vec<String>,
    /// This variant only; may be repeated
    #[arg(long, value_name = "VARIANT", requires = "scenario")]
    pub(crate) only: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorOptions {
    /// A scenario: look at the CPUs that its workers run on, and say what spoils its runs. Without one, --cpus is a
    /// list of CPUs to look at (0,1 or 0-3)
    pub(crate) scenario: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) shape: ShapeOptions,
    /// Print the checks as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Say of every check why it matters, not only of those that are not well
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckOptions {
    /// The scenario files
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ListOptions {
    /// Folder to look in
    #[arg(value_name = "DIR", default_value = "scenarios")]
    pub(crate) folder: PathBuf,
}
