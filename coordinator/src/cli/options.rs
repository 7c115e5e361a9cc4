//! What each command takes.

use super::values::{budget, offset, place, type_name, watching_time};
use clap::{ArgGroup, Args, ValueEnum, ValueHint};
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Args)]
pub(crate) struct RunOptions {
    /// The scenario file
    pub(crate) scenario: PathBuf,
    /// Print the run as JSON (the same as run.json) instead of the table
    #[arg(long)]
    pub(crate) json: bool,
    /// Folder that results go under
    #[arg(long, value_name = "DIR", default_value = "results", value_hint = ValueHint::DirPath)]
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
    /// What you think it will show, kept in run.json and shown beside the result; may be repeated. E.g.
    /// 'ns_per_op(packed) / ns_per_op(padded-64) = 5'; without the number it is asked for. It never passes or fails
    #[arg(long, value_name = "PREDICTION", conflicts_with = "dry_run")]
    pub(crate) predict: Vec<String>,
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
    /// Show what the model computes beside what was measured, also where the hardware counted
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) model: bool,
    /// Leave also locks.csv: each contended wait for a lock and each sampled hold, one by one
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) lock_log: bool,
    /// Keep the kernel's stack at each TLB flush and function-call interrupt of a scenario with steps on regions, which
    /// makes each of them slower
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) stacks: bool,
    /// Show on standard error, where that is a terminal, each worker's rate, what it waited, and the diagnosis so far;
    /// drawn between the windows, never within one
    #[arg(long, conflicts_with_all = ["dry_run", "hold", "quiet"])]
    pub(crate) live: bool,
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
pub(crate) struct ModelOptions {
    /// The scenario file
    pub(crate) scenario: PathBuf,
    /// A machine that comes with the lab, or a machine file; by default the present machine, measured now
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) machine: Option<String>,
    /// Workers of the headline role; as a range (1..128), how throughput scales with them
    #[arg(long, value_name = "N|A..B")]
    pub(crate) workers: Option<String>,
    /// CPUs of the headline role on the modelled machine, one a worker (0,1), or a choice by name (spread, same-core,
    /// same-llc, cross-socket)
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<String>,
    /// This variant only; may be repeated
    #[arg(long, value_name = "VARIANT")]
    pub(crate) only: Vec<String>,
    /// Seed of the simulation: one seed, one result
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct AdviseOptions {
    /// The scenario file: the struct's fields, and roles that say who does what with them
    pub(crate) scenario: PathBuf,
    /// How long it may take: it ends sooner where intervals are tight, and never more than 10 s later. From 3s to 1h
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = budget)]
    pub(crate) budget: Duration,
    /// The variant that stands for the present layout
    #[arg(long, value_name = "VARIANT")]
    pub(crate) present: Option<String>,
    /// Of the scenario's variants this one only; may be repeated. Those that do the same work as the present one
    /// compete with the layouts that are made
    #[arg(long, value_name = "VARIANT")]
    pub(crate) only: Vec<String>,
    /// Layouts to measure beside the present one, programs that have to change not counted
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=32))]
    pub(crate) layouts: u8,
    /// Workers of the headline role
    #[arg(long, value_name = "N")]
    pub(crate) workers: Option<u32>,
    /// CPUs of the headline role, one a worker (0,1), or a choice by name (spread, same-core, same-llc, cross-socket)
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<String>,
    /// Print the struct that is advised in this language, and the page on standard error
    #[arg(long, value_enum, value_name = "LANGUAGE")]
    pub(crate) emit: Option<EmitLanguage>,
    /// Its name; by default made from the scenario's
    #[arg(long, value_name = "STRUCT", requires = "emit", value_parser = type_name)]
    pub(crate) name: Option<String>,
    /// Seed of the arms' order, of random elements and of the intervals; a fresh one by default
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// A language in which a struct is printed.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EmitLanguage {
    /// C11
    C,
    /// C++11
    Cpp,
    /// Rust
    Rust,
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

#[derive(Debug, Default, Args)]
pub(crate) struct TopologyOptions {
    /// Measure how long a line takes between CPUs, and what operations cost on them
    #[arg(long)]
    pub(crate) measure: bool,
    /// Measure every two CPUs, both threads of a core included
    #[arg(long, requires = "measure")]
    pub(crate) all_pairs: bool,
    /// Times each pair is measured; as many as take half a minute by default, 3 to 10
    #[arg(long, value_name = "N", requires = "measure", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repetitions: Option<u32>,
    /// Write this machine as a file that `--machine` takes; the file must not be there yet
    #[arg(long, value_name = "FILE", requires = "measure")]
    pub(crate) write: Option<PathBuf>,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ImportOptions {
    /// A program, a library or an object file with debug information
    #[arg(value_name = "BINARY", required_unless_present = "btf", conflicts_with = "btf")]
    pub(crate) binary: Option<PathBuf>,
    /// The struct, class, union or Rust enum, as its language writes its name
    #[arg(long = "struct", value_name = "NAME")]
    pub(crate) name: String,
    /// Read the types of a kernel or a BPF program in place of a binary's; without FILE, those of the running kernel
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = structs::KERNEL_BTF)]
    pub(crate) btf: Option<PathBuf>,
    /// Of several types of that name the one that is declared there; the end of the path is enough
    #[arg(long, value_name = "FILE:LINE", value_parser = place)]
    pub(crate) at: Option<(String, u64)>,
    /// Of several types of that name the one with this number in the list
    #[arg(long, value_name = "N")]
    pub(crate) nth: Option<usize>,
    /// Write a scenario with each member as a field at its offset, for you to add who uses it; the file must not be
    /// there yet
    #[arg(long, short = 'o', value_name = "FILE")]
    pub(crate) emit_scenario: Option<PathBuf>,
    /// Show the members of nested structs, too
    #[arg(long, conflicts_with = "json")]
    pub(crate) expand: bool,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").required(true).multiple(true).args(["segment", "file", "sysv", "pid", "list"])))]
pub(crate) struct AttachOptions {
    /// The segment: /NAME of shm_open, memfd:NAME of memfd_create, or DEVICE:INODE as --list shows it
    #[arg(long, value_name = "NAME", conflicts_with_all = ["file", "sysv", "list"])]
    pub(crate) segment: Option<String>,
    /// A file that is mapped
    #[arg(long, value_name = "PATH", conflicts_with_all = ["sysv", "list"])]
    pub(crate) file: Option<PathBuf>,
    /// A segment of shmget, by its number (shmid of `ipcs -m`)
    #[arg(long, value_name = "ID", conflicts_with = "list")]
    pub(crate) sysv: Option<u64>,
    /// A process; may be repeated. Alone: the segment that these processes share; with a segment: these of its users
    /// alone. Children that they begin later are not followed: to have these too, name the segment alone
    #[arg(long, value_name = "PID", value_delimiter = ',', conflicts_with = "list")]
    pub(crate) pid: Vec<u32>,
    /// How long to watch, in all. From 1s to 1h
    #[arg(long = "for", value_name = "TIME", default_value = "4s", value_parser = watching_time)]
    pub(crate) time: Duration,
    /// The struct that lies in the segment, as its language writes its name: words become fields
    #[arg(long = "struct", value_name = "NAME", requires = "binary", conflicts_with = "list")]
    pub(crate) of: Option<String>,
    /// A program, a library or an object file whose debug information has the struct
    #[arg(long, value_name = "BINARY", requires = "of")]
    pub(crate) binary: Option<PathBuf>,
    /// Where in the segment the struct begins, bytes; 0x40 for hexadecimal
    #[arg(long, value_name = "OFFSET", default_value = "0", value_parser = offset, requires = "of")]
    pub(crate) base: u64,
    /// How many of it lie there, one behind the other
    #[arg(long, value_name = "N", default_value_t = 1, requires = "of")]
    pub(crate) count: u64,
    /// What a line costs between the CPUs of this machine, as `coordinator topology --measure --json` wrote it: lines
    /// are ranked by cost, and told with what a cure could give back. Without it they are ranked by accesses alone
    #[arg(long, value_name = "FILE", conflicts_with = "list")]
    pub(crate) measured: Option<PathBuf>,
    /// A folder with debug information that was split off, laid out as /usr/lib/debug is, before which it is looked in;
    /// may be repeated
    #[arg(long, value_name = "FOLDER", conflicts_with = "list")]
    pub(crate) debug_dir: Vec<PathBuf>,
    /// Count every acquisition, too, by a probe on pthread_mutex_lock and on the lab's own markers: a trap at each,
    /// whose cost is said first
    #[arg(long, conflicts_with = "list")]
    pub(crate) uprobes: bool,
    /// Write what was seen as a scenario, run it in the lab, and say whether that has the targets' rates; then
    /// `coordinator advise` says what each cure would gain
    #[arg(long, value_name = "FILE", conflicts_with = "list")]
    pub(crate) emit_scenario: Option<PathBuf>,
    /// With --emit-scenario: write it, and do not run it here, where the lab's workers would take CPUs from what runs
    #[arg(long, requires = "emit_scenario")]
    pub(crate) no_run: bool,
    /// Show the shared segments of this machine and who maps them, and watch nothing
    #[arg(long)]
    pub(crate) list: bool,
    /// With --list: also those on which nobody contends, such as fonts that all map and nobody may write
    #[arg(long, requires = "list")]
    pub(crate) all: bool,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckOptions {
    /// The scenario files
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct CompareOptions {
    /// The runs: folders, or their run.json
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    /// Compare within each run: its variants against this arm
    #[arg(long, value_name = "ARM")]
    pub(crate) base: Option<String>,
    /// End with 1 where this holds, e.g. 'padded-64 slower 5%'; may be repeated
    #[arg(long, value_name = "CONDITION")]
    pub(crate) fail_if: Vec<String>,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print it as Markdown, for a pull request
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,
}

/// What a saved run is written as.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// InfluxDB's line protocol
    Influx,
    /// A table with a row for each figure of each point that influx writes
    Csv,
    /// The run's latency.hlog, checked against its run.json
    Hlog,
    /// The run's run.json, checked
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct ExportOptions {
    /// A run's folder, or its run.json
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,
    /// What to write on standard output
    #[arg(long, value_enum, value_name = "FORMAT", required_unless_present = "push")]
    pub(crate) format: Option<ExportFormat>,
    /// Write the points to a server that takes InfluxDB's line protocol, in place of standard output
    #[arg(long, value_name = "URL")]
    pub(crate) push: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ExplainOptions {
    /// A diagnosis as a run names it (false_sharing), or a lesson by its number or folder (1, 01-false-sharing)
    #[arg(value_name = "NAME")]
    pub(crate) name: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsOptions {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManOptions {
    /// Folder to write them to; made where it is missing
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ReportOptions {
    /// The runs: folders, or their run.json; each has a page of its own
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    /// Draw the map of distances from what `topology --measure --json` printed on the same machine
    #[arg(long, value_name = "FILE")]
    pub(crate) topology: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct GradeOptions {
    /// The student's file: the starter, repaired
    pub(crate) file: PathBuf,
    /// The exercise's folder, where FILE does not lie in it
    #[arg(long, value_name = "DIR")]
    pub(crate) exercise: Option<PathBuf>,
    /// What the effect is held against, where it does not lie in the exercise's folder
    #[arg(long, value_name = "FILE")]
    pub(crate) reference: Option<PathBuf>,
    /// Blocks: how often each of starter, FILE, reference and control runs; those of the starter by default
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(3..=10_000))]
    pub(crate) repetitions: Option<u32>,
    /// CPUs of the headline role, one a worker (0,1), or a choice by name, in place of the exercise's
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<String>,
    /// Seed of the arms' order, of random elements and of the intervals; a fresh one by default
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Look at the file at each save, without measuring; Enter measures, h and Enter tells the next hint, q ends
    #[arg(long, conflicts_with = "json")]
    pub(crate) watch: bool,
    /// Print the grade as JSON, with all samples
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ListOptions {
    /// Folder to look in, and in the folders in it
    #[arg(value_name = "DIR", default_value = "scenarios", value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
}
