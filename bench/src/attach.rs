//! What `coordinator attach` costs those that it watches: pairs of C programs (`c/target.c`), watched and left alone in
//! turn. `bench/README.md` has the method.

mod alarms;
mod answers;
mod judge;
mod page;
mod slice;
mod target;

pub(crate) use alarms::{AlarmReport, alarms};
pub(crate) use answers::answers;
pub(crate) use page::{ALARM_MARKS, ANSWER_MARKS, MARKS};

use crate::contest::DuelError;
use crate::contest::duel;
use crate::schedule::{self, Comparison, Quad};
use crate::table;
use crate::verdict::{self, Verdict};
use judge::row;
use record::Interval;
use serde::Serialize;
use slice::Slice;
use std::io;
use std::time::Duration;
use target::Pair;

/// What two programs do in their segment.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// Each counts on a pair of lines of its own. These alone are judged.
    Padded,
    /// Each counts on a word of its own in one line.
    Packed,
    /// Each takes one mutex of the C library's, counts, gives it back, and does something else for three times as long.
    Convoy,
    /// Both count on one word. For answers alone, as is the next.
    #[value(skip)]
    Shared,
    /// Each counts on a word of its own in each of two lines of a gibibyte.
    #[value(skip)]
    Huge,
}

impl Kind {
    /// Those of which it is measured what a watch costs.
    pub(crate) const ALL: [Kind; 3] = [Kind::Padded, Kind::Packed, Kind::Convoy];

    /// As the target and the tables spell it.
    fn name(self) -> &'static str {
        match self {
            Kind::Padded => "padded",
            Kind::Packed => "packed",
            Kind::Convoy => "convoy",
            Kind::Shared => "shared",
            Kind::Huge => "huge",
        }
    }
}

/// A part of a watch that has a price of its own.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Step {
    /// From before the segment is found until everything is closed.
    Watch,
    /// The counters alone, at its beginning and at its end.
    Counting,
    /// Samples.
    Sampling,
    /// Breakpoints, and names read from debug information.
    Proof,
    /// Tracepoints of futex calls.
    Futex,
}

impl Step {
    const ALL: [Step; 5] = [Step::Watch, Step::Counting, Step::Sampling, Step::Proof, Step::Futex];
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AttachError {
    #[error(transparent)]
    Cpus(#[from] DuelError),
    #[error("the target {program} does not start: {error}; build again, `cargo build --release -p bench`")]
    NoTarget { program: &'static str, error: io::Error },
    #[error("a target ended early ({0}): its message stands above")]
    Ended(std::process::ExitStatus),
    #[error(
        "{}: process {process} went round {passes} times and its word says {found}: the watch changed what it does",
        .kind.name()
    )]
    Changed { kind: Kind, process: usize, passes: u64, found: u64 },
    #[error("the watch finds no segment: {0}")]
    NotFound(#[from] ::attach::FindError),
    #[error(
        "no watch of the {} targets saw what they do, so what it costs says nothing; it needs root, and x86-64. The last \
         one said: {said}",
        .kind.name()
    )]
    Blind { kind: Kind, said: String },
    #[error(transparent)]
    Marks(#[from] crate::marks::MarksError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What is measured.
pub(crate) struct Request<'a> {
    /// These kinds; none for all.
    pub(crate) only: &'a [Kind],
    /// How long a watch takes, and a slice without one.
    pub(crate) time: Duration,
    /// Quads of each comparison.
    pub(crate) quads: u32,
    /// Seed of the order.
    pub(crate) seed: u64,
}

/// All kinds.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    schema_version: u32,
    benchmark: &'static str,
    cpu_model: String,
    kernel: String,
    seed: u64,
    watch_s: f64,
    bar: f64,
    kinds: Vec<Measured>,
}

/// One kind of target.
#[derive(Debug, Serialize)]
pub(crate) struct Measured {
    kind: Kind,
    /// Whether the exit status looks at it.
    judged: bool,
    /// Watches made, and those that saw both processes write.
    watches: usize,
    saw_both: usize,
    /// Of a watch: traps, samples, events of futex calls; medians.
    traps: f64,
    samples: f64,
    events: f64,
    /// What a watch itself said that it took of the targets' time; median, 0.01 is one part in a hundred.
    said_slowdown: Option<f64>,
    /// Quads of each comparison.
    quads: usize,
    /// Passes a second of both, undisturbed; median.
    passes_per_second: f64,
    /// Left alone over left alone.
    control: Option<Interval>,
    steps: Vec<Row>,
    verdict: Verdict,
}

/// What a step costs.
#[derive(Copy, Clone, Debug, Serialize)]
pub(crate) struct Row {
    step: Step,
    /// Seconds of it in a watch; median.
    seconds: f64,
    /// Time a pass takes, over what it takes in the slices beside it in which nobody watches.
    ratio: Option<Interval>,
    /// The same of the targets' CPU time: without the time in which the watch itself had their CPUs.
    cpu_ratio: Option<Interval>,
}

/// Four slices in a row, watched or not, as their quad orders them.
struct Measurement {
    quad: Quad,
    slices: [Slice; 4],
}

/// Measures each kind, one behind the other.
pub(crate) fn measure(request: &Request<'_>) -> Result<Report, AttachError> {
    let cpus = duel::two_cpus()?;
    let kinds = Kind::ALL.into_iter().filter(|kind| request.only.is_empty() || request.only.contains(kind));
    let host = host::facts(&host::Root::system());
    Ok(Report {
        schema_version: 1,
        benchmark: "attach",
        cpu_model: host.cpu_model,
        kernel: host.kernel,
        seed: request.seed,
        watch_s: request.time.as_secs_f64(),
        bar: judge::BAR,
        kinds: kinds.map(|kind| of_kind(kind, cpus, request)).collect::<Result<_, _>>()?,
    })
}

/// Fresh targets for each quad of watches and the control beside it.
fn of_kind(kind: Kind, cpus: [usize; 2], request: &Request<'_>) -> Result<Measured, AttachError> {
    let mut measured = Vec::new();
    for (number, quads) in schedule::batch(request.quads as usize, request.seed).chunks(2).enumerate() {
        eprintln!("{}: quad {} of {}", kind.name(), number + 1, request.quads);
        let pair = Pair::start(kind, cpus)?;
        for quad in quads {
            let slices: Vec<Slice> = quad
                .order()
                .into_iter()
                .map(|is_contestant| match is_contestant && quad.comparison == Comparison::Contest {
                    true => Slice::watched(&pair, request.time),
                    false => Slice::left_alone(&pair, request.time),
                })
                .collect::<Result<_, _>>()?;
            let slices = slices.try_into().unwrap_or_else(|_| unreachable!("a quad is four slices"));
            measured.push(Measurement { quad: *quad, slices });
        }
        pair.end()?;
    }
    row(kind, &measured)
}

impl Report {
    /// For the table of everything: what the whole watch costs each kind of target.
    pub(crate) fn rows(&self) -> Vec<table::Row> {
        let row = |kind: &Measured| {
            let whole = kind.steps.iter().find(|row| row.step == Step::Watch).and_then(|row| row.ratio);
            let what = format!("a pass of {} targets, watched for {} s", kind.kind.name(), self.watch_s);
            let seen = table::Row::ratio(what, "left alone", whole, kind.control);
            let seen = seen.noting(format!("{} of {} watches saw both", kind.saw_both, kind.watches));
            let bar = table::Bar::AtMost(self.bar);
            if kind.judged { table::Row { bar: Some(bar), state: kind.verdict.into(), ..seen } } else { seen }
        };
        self.kinds.iter().map(row).collect()
    }

    /// 0 where the padded targets are within the bar, or were not asked for; 1 where they are over it, else 3.
    pub(crate) fn exit_status(&self) -> u8 {
        verdict::exit_status(self.kinds.iter().filter(|kind| kind.judged).map(|kind| kind.verdict))
    }
}
