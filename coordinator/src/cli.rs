//! The command line, as clap reads it: the commands and their examples. What each takes: [`options`].

mod options;
mod values;

pub(crate) use options::{
    AdviseOptions, AttachOptions, CheckOptions, CompareOptions, CompletionsOptions, DoctorOptions, EmitLanguage,
    ExplainOptions, ExportFormat, ExportOptions, GradeOptions, ImportOptions, ListOptions, ManOptions, ModelOptions,
    ReportOptions, RunOptions, ShapeOptions, TopologyOptions,
};

use crate::report::style::ColourChoice;
use clap::{Parser, Subcommand};

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

/// What stands below a command's options: examples, and what else there is to say.
macro_rules! examples {
    ($one:literal $(; $text:literal)?) => {
        concat!("Example: ", $one $(, "\n\n", $text)?)
    };
    ($first:literal $(, $more:literal)+ $(; $text:literal)?) => {
        concat!("Examples: ", $first $(, "\n          ", $more)+ $(, "\n\n", $text)?)
    };
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a scenario and say what was seen
    #[command(after_help = examples! {
        "coordinator run scenarios/false_sharing.toml --repetitions 5 --only packed --only padded-64",
        "coordinator run scenarios/first_touch.toml --hold --repetitions 1   (then, in another terminal: perf stat -p \
         PID)"
    })]
    Run(RunOptions),
    /// Check scenario files without running them
    #[command(after_help = examples! {
        "coordinator check scenarios/*.toml"
    })]
    Check(CheckOptions),
    /// List the scenarios and their questions
    #[command(after_help = examples! {
        "coordinator list scenarios",
        "coordinator list scenarios/cases"
    })]
    List(ListOptions),
    /// Look at this machine: what can be measured on it, what would disturb that, and the command that changes it
    #[command(after_help = examples! {
        "coordinator doctor scenarios/false_sharing.toml";
        "It never changes anything, and ends with 0 whatever it finds."
    })]
    Doctor(DoctorOptions),
    /// Compute what the caches would do with a scenario, here or on a machine you do not have: modelled, never measured
    #[command(after_help = examples! {
        "coordinator model scenarios/false_sharing.toml --machine epyc-7r13",
        "coordinator model scenarios/false_sharing.toml --machine xeon-8375c-2s --workers 1..64";
        "Without --machine it is this one, whose figures are measured first. Exit status 4: no arm can be modelled."
    })]
    Model(ModelOptions),
    /// The CPUs, what they share, and how far they are from each other
    #[command(after_help = examples! {
        "coordinator topology",
        "coordinator topology --measure --write host.toml";
        "Distances are measured between pinned processes. Of more than 16 cores a sample is measured: --all-pairs \
         measures every two CPUs, in rings of neighbours whose disjoint pairs run at once, which takes about half a \
         minute on 128 CPUs. Exit status 4: there is one CPU to measure on."
    })]
    Topology(TopologyOptions),
    /// Say which layout of a scenario's struct is worth its memory: makes layouts, has the model rank them, measures
    /// the best beside the present one
    #[command(after_help = examples! {
        "coordinator advise scenarios/false_sharing.toml",
        "coordinator advise scenarios/true_sharing.toml --budget 30s --emit c --name counters > counters.h";
        "The present layout is the scenario's first variant, or the one whose placement is \"declared\". Exit status \
         3: noise hid the answer; 4: this host can measure no layout, having one CPU, say. docs/advise.md has the \
         rules."
    })]
    Advise(AdviseOptions),
    /// Read a struct's layout out of a program's debug information, and make a scenario of it
    #[command(after_help = examples! {
        "coordinator import target/debug/server --struct Ring --emit-scenario ring.toml",
        "coordinator import --btf --struct task_struct",
        "coordinator import server --struct 'lab::Queue<int>' --at queue.h:12";
        "Debug information is DWARF, of C, C++ or Rust, in the program or split off (.dwo, .dwp, .gnu_debuglink, \
         .gnu_debugaltlink, /usr/lib/debug). Of a name the namespaces and the arguments of a template may be left \
         out."
    })]
    Import(ImportOptions),
    /// Watch processes that you did not write: who maps a shared segment, who touches which of its words, who waits for
    /// whom
    #[command(after_help = examples! {
        "coordinator attach --list",
        "coordinator attach --segment /ring --for 5s",
        "coordinator attach --pid 4711 --pid 4712",
        "coordinator attach --segment /ring --emit-scenario ring.toml";
        "It changes nothing in them and leaves nothing behind, however it ends; Ctrl-C ends it early and shows what was \
         seen (exit status 130). What watching cost them is printed. Processes of other users take root. Exit status 4: \
         nothing of what was named may be watched. With \
         --emit-scenario also: 1 the lab has other rates than the targets; 3 it could not tell. docs/attach.md says \
         what is seen and how."
    })]
    Attach(AttachOptions),
    /// Hold runs against each other: before and after a change, one machine and another, or the variants of one run
    #[command(after_help = examples! {
        "coordinator compare results/queue/BEFORE results/queue/AFTER --fail-if 'packed slower 5%'",
        "coordinator compare results/false_sharing/TIME --base padded-64";
        "RUN is a run's folder or its run.json. Each run is held against the first one of its own host, and the first \
         of another host against the first of all. CONDITION is ARM [ROLE] slower|faster N%; it fails where the whole \
         interval says so. Exit status: 1 a condition fails; 3 one is undecided, or without conditions nothing was \
         resolved."
    })]
    Compare(CompareOptions),
    /// Give a saved run to other programs: a database of time series, a statistics program, a reader of histograms
    #[command(after_help = examples! {
        "coordinator export results/mutex/2026-11-24T12-34-56Z --format csv > mutex.csv",
        "coordinator export results/mutex/2026-11-24T12-34-56Z --push 'http://localhost:8086/write?db=lab'";
        "A dashboard for Grafana over what is written stands in docs/grafana/. A server from 2.0 on is written to by \
         http://HOST:8086/api/v2/write?org=ORG&bucket=BUCKET, with its token in the environment variable \
         INFLUX_TOKEN."
    })]
    Export(ExportOptions),
    /// Show a lesson, or what a diagnosis means: how it shows, what cures it, where to see it
    #[command(after_help = examples! {
        "coordinator explain false_sharing",
        "coordinator explain 1";
        "Without a name it lists them. The lessons are docs/lessons/, the diagnoses docs/diagnoses.md."
    })]
    Explain(ExplainOptions),
    /// Print the JSON Schema of scenario files, by which an editor completes and checks them
    #[command(after_help = examples! {
        "coordinator schema > schema.json";
        "An editor with taplo reads it where the scenario begins with the line: #:schema schema.json"
    })]
    Schema,
    /// Print the completions of this command line, for a shell to read
    #[command(after_help = examples! {
        "coordinator completions bash > ~/.local/share/bash-completion/completions/coordinator"
    })]
    Completions(CompletionsOptions),
    /// Write the manual pages: one of the program, and one of each command
    #[command(after_help = examples! {
        "coordinator man ~/.local/share/man/man1 && man coordinator-run"
    })]
    Man(ManOptions),
    /// Write the page of a saved run again, `report.html` beside its run.json: one file, no network, no script
    #[command(after_help = examples! {
        "coordinator report results/false_sharing/2026-11-24T12-34-56Z",
        "coordinator topology --measure --json > topology.json && coordinator report results/mutex/* --topology \
         topology.json";
        "Every run writes its page by itself. A record of another name, such as before.json, has its page beside it \
         as before.report.html. To hold runs against each other: coordinator compare."
    })]
    Report(ReportOptions),
    /// Grade a student's repair of an exercise: is every count exact, is the cause gone, is it faster here
    #[command(after_help = examples! {
        "cp scenarios/exercises/01-two-counters/starter.toml mine.toml",
        "coordinator grade mine.toml --exercise scenarios/exercises/01-two-counters --watch";
        "The exercise is the one in whose folder FILE lies, or the one that --exercise names. Exit status: 0 pass; 1 \
         not yet, and the next hint is told; 3 inconclusive; 4 this host is unsuitable. Nobody fails by 3 or 4."
    })]
    Grade(GradeOptions),
    /// Remove shared-memory segments that dead runs left
    #[command(after_help = examples! {
        "coordinator clean";
        "It never touches a segment that a living process holds."
    })]
    Clean,
}
