//! Everything that is asked of the lab's speed and disturbance, part by part, in one table: which parts there are, and each
//! in a process of its own, since one pins itself and another leaves threads behind.

mod page;

use crate::attach::{self, AttachError};
use crate::contest::{self, Contest, DuelError, LOCK_SETTINGS, Setting, Terms};
use crate::coordinator::{NotBuilt, RunError};
use crate::model::{self, ModelError};
use crate::predictions::{self, PredictionsError};
use crate::table::{self, Row};
use crate::tracing::{self, TracingError};
use crate::{latency, sharing, startup, watching};
use clap::ValueEnum;
use nix::unistd::geteuid;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// What is measured together.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Part {
    /// The compiled loop against C.
    Loops,
    /// What counting costs.
    Counting,
    /// Locks against C.
    Locks,
    /// One way of a line, against core-to-core-latency.
    Latency,
    /// What a shared line costs, against stress-ng.
    Sharing,
    /// What --live and --lock-log cost.
    Watching,
    /// What tracing at the markers costs, and at pthread_mutex_lock.
    Tracing,
    /// What a watch costs those that it watches.
    Attach,
    /// Start-up and collection.
    Startup,
    /// How fast the model is.
    Model,
    /// What the model predicts against what is measured.
    Predictions,
}

/// How long it may take.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// As long as figures need.
    Full,
    /// Only whether it goes through.
    Quick,
}

impl Effort {
    /// The one or the other.
    pub(crate) fn of<T>(self, full: T, quick: T) -> T {
        if self == Effort::Quick { quick } else { full }
    }
}

/// Why a part has no figures.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unmeasured {
    /// Something is not here; how to get it.
    #[error("{0}")]
    Missing(String),
    /// It was tried.
    #[error("{0}")]
    Failed(String),
}

/// What was measured.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    schema_version: u32,
    benchmark: String,
    cpu_model: String,
    kernel: String,
    /// The day, UTC.
    date: String,
    parts: Vec<Measured>,
}

/// One part's rows.
#[derive(Debug, Serialize, Deserialize)]
struct Measured {
    part: Part,
    seconds: f64,
    rows: Vec<Row>,
}

/// Measures the parts asked for, or all, one behind the other. A part without figures has a row that says why.
pub(crate) fn measure(only: &[Part], quick: bool) -> Report {
    let effort = if quick { Effort::Quick } else { Effort::Full };
    let parts = match only {
        [] => Part::ALL.to_vec(),
        _ => Part::ALL.into_iter().filter(|part| only.contains(part)).collect(),
    };
    let measured = |part: &Part| {
        let start = Instant::now();
        let rows = if let [_] = parts[..] { part.rows(effort) } else { part.rows_of_its_own(effort) };
        let rows = rows.unwrap_or_else(|why| vec![why.row(part.about())]);
        Measured { part: *part, seconds: start.elapsed().as_secs_f64(), rows }
    };
    let parts = parts.iter().map(measured).collect();
    let host = host::facts(&host::Root::system());
    let (cpu_model, kernel, date) = (host.cpu_model, host.kernel, page::today());
    Report { schema_version: 1, benchmark: "all".to_owned(), cpu_model, kernel, date, parts }
}

impl Part {
    /// In the order in which they are measured and shown.
    pub(crate) const ALL: [Part; 11] = [
        Part::Loops,
        Part::Counting,
        Part::Locks,
        Part::Latency,
        Part::Sharing,
        Part::Watching,
        Part::Tracing,
        Part::Attach,
        Part::Startup,
        Part::Model,
        Part::Predictions,
    ];

    /// As the command line and the table spell it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Part::Loops => "loops",
            Part::Counting => "counting",
            Part::Locks => "locks",
            Part::Latency => "latency",
            Part::Sharing => "sharing",
            Part::Watching => "watching",
            Part::Tracing => "tracing",
            Part::Attach => "attach",
            Part::Startup => "startup",
            Part::Model => "model",
            Part::Predictions => "predictions",
        }
    }

    /// In a few words, as `--help` has them.
    fn about(self) -> String {
        let value = self.to_possible_value();
        value.and_then(|value| value.get_help().map(ToString::to_string)).unwrap_or_default()
    }

    /// Measures it in this process.
    fn rows(self, effort: Effort) -> Result<Vec<Row>, Unmeasured> {
        let terms = Terms { pairs: effort.of(400, 8), budget: effort.of(None, Some(Duration::ZERO)), seed: 1 };
        match self {
            Part::Loops => Ok(contest::fight(Contest::Loops, &contest::steps(&[], false), &terms)?.rows()),
            Part::Counting => {
                let over = contest::steps(&["bump", "add"].map(str::to_owned), true);
                Ok(contest::fight(Contest::Counting, &over, &terms)?.rows())
            }
            Part::Locks => {
                let judged = LOCK_SETTINGS.into_iter().filter(|setting| setting.is_judged()).map(Setting::name);
                let over = contest::locks(&[], &judged.map(str::to_owned).collect::<Vec<_>>());
                Ok(contest::fight(Contest::Locks, &over, &terms)?.rows())
            }
            Part::Latency => latency::rows(effort),
            Part::Sharing => sharing::rows(effort),
            Part::Watching => watching::rows(effort),
            Part::Tracing => Ok(tracing::measure(effort.of(6, 1))?.rows()),
            Part::Attach => {
                let time = Duration::from_secs(effort.of(2, 1));
                let only = [attach::Kind::Padded];
                Ok(attach::measure(&attach::Request { only: &only, time, quads: effort.of(10, 1), seed: 1 })?.rows())
            }
            Part::Startup => startup::rows(effort),
            Part::Model => Ok(model::measure(effort.of(6, 1))?.rows()),
            Part::Predictions => {
                let only = effort.of(Vec::new(), vec!["false_sharing".to_owned()]);
                let request = predictions::Request { scenarios: Path::new("scenarios"), half: None, only: &only };
                Ok(vec![predictions::measure(&request)?.row()])
            }
        }
    }

    /// Measures it in a fresh process of this program.
    fn rows_of_its_own(self, effort: Effort) -> Result<Vec<Row>, Unmeasured> {
        eprintln!("== {}", self.name());
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["all", "--json", "--only", self.name()]).args(effort.of(None, Some("--quick")));
        let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
        let report: Result<Report, _> = serde_json::from_slice(&output.stdout);
        let ended = || Unmeasured::Failed(format!("its process ended with {}", output.status));
        Ok(report.map_err(|_| ended())?.parts.into_iter().flat_map(|measured| measured.rows).collect())
    }
}

impl Report {
    /// 0 where every bar is kept, 1 where one is not or something failed, 3 where noise hid one.
    pub(crate) fn exit_status(&self) -> u8 {
        table::exit_status(self.parts.iter().flat_map(|measured| &measured.rows))
    }

    pub(crate) fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report is plain data")
    }
}

impl Unmeasured {
    fn row(self, what: String) -> Row {
        match self {
            Unmeasured::Missing(how) => Row::missing(what, how),
            Unmeasured::Failed(why) => Row::failed(what, why),
        }
    }
}

impl From<std::io::Error> for Unmeasured {
    fn from(error: std::io::Error) -> Unmeasured {
        Unmeasured::Failed(error.to_string())
    }
}

impl From<NotBuilt> for Unmeasured {
    fn from(why: NotBuilt) -> Unmeasured {
        Unmeasured::Missing(why.to_string())
    }
}

impl From<RunError> for Unmeasured {
    fn from(error: RunError) -> Unmeasured {
        Unmeasured::Failed(error.to_string())
    }
}

impl From<ModelError> for Unmeasured {
    fn from(error: ModelError) -> Unmeasured {
        Unmeasured::Failed(error.to_string())
    }
}

impl From<DuelError> for Unmeasured {
    fn from(error: DuelError) -> Unmeasured {
        match error {
            DuelError::TooFewCpus(_) => Unmeasured::Missing(error.to_string()),
            _ => Unmeasured::Failed(error.to_string()),
        }
    }
}

impl From<AttachError> for Unmeasured {
    fn from(error: AttachError) -> Unmeasured {
        match error {
            AttachError::Cpus(error) => error.into(),
            // Without root, or on another processor: what it takes is not here.
            AttachError::Blind { .. } => Unmeasured::Missing(error.to_string()),
            _ => Unmeasured::Failed(error.to_string()),
        }
    }
}

impl From<TracingError> for Unmeasured {
    fn from(error: TracingError) -> Unmeasured {
        match error {
            TracingError::NotBuilt(_) | TracingError::NoTracer(_) => Unmeasured::Missing(error.to_string()),
            TracingError::TracerEnded(_) if !geteuid().is_root() => Unmeasured::Missing(error.to_string()),
            _ => Unmeasured::Failed(error.to_string()),
        }
    }
}

impl From<PredictionsError> for Unmeasured {
    fn from(error: PredictionsError) -> Unmeasured {
        match error {
            PredictionsError::NotBuilt(_) => Unmeasured::Missing(error.to_string()),
            _ => Unmeasured::Failed(error.to_string()),
        }
    }
}
