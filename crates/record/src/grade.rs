//! What `grade` found: the JSON contract of `coordinator grade --json`, with all that grading again elsewhere takes.

use crate::arm::ArmSummary;
use crate::diagnosis::Warning;
use crate::figure::Interval;
use crate::observation::Observation;
use crate::run::{Host, Method, Tool};
use serde::{Deserialize, Serialize};

/// One grading of a student's file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Grade {
    /// [`crate::SCHEMA_VERSION`]; always the first key.
    pub schema_version: u32,
    /// The program that made it.
    pub tool: Tool,
    /// The command line, as typed.
    pub command: String,
    /// Seed of the arms' order, of `[any]` and of the intervals.
    pub seed: u64,
    /// Start, UTC, RFC 3339 with seconds.
    pub started_utc: String,
    /// Wall time of the grading.
    pub duration_s: f64,
    /// The machine.
    pub host: Host,
    /// The exercise's title.
    pub exercise: String,
    /// What came of it.
    pub verdict: GradeVerdict,
    /// The verdict's reason, in a sentence.
    pub why: String,
    /// Where the verdict is "not yet": the hint that is due.
    pub hint: Option<Hint>,
    /// The three gates, in order; those behind one that does not pass are not reached.
    pub gates: Vec<GateOutcome>,
    /// What the third gate measured; `None` where it was not reached, or the exercise has none.
    pub effect: Option<Effect>,
    /// The files that were read: the exercise's own, the starter, the student's, the reference.
    pub files: Vec<GradedFile>,
    /// How figures were made; `None` where nothing was measured.
    pub method: Option<Method>,
    /// The arms that were measured: `starter`, `yours`, `reference`, and `control`, which is the starter again.
    pub arms: Vec<ArmSummary>,
    /// Every worker of every repetition of these arms, in the order in which they ran: the samples.
    pub observations: Vec<Observation>,
    /// What the reader should know about these figures.
    pub warnings: Vec<Warning>,
}

/// What came of a grading.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GradeVerdict {
    /// All gates pass.
    Pass,
    /// A gate fails.
    NotYet,
    /// Noise hid the effect, or there is no reference to hold it against. Nobody fails by it.
    Inconclusive,
    /// This machine does not show the effect, or cannot run the exercise. Nobody fails by it.
    HostUnsuitable,
}

/// The next hint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hint {
    /// Which one, from 1.
    pub number: u32,
    /// How many there are.
    pub of: u32,
    /// What it says.
    pub text: String,
}

/// One of the three gates.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// The same work is done, and every count is exact.
    Conservation,
    /// What made the starter slow is gone: by the layout, by the lock.
    Mechanism,
    /// It is faster here, by how much of what the reference gains.
    Effect,
}

/// What became of a gate, or of one of its checks.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GateState {
    /// It passes.
    Passes,
    /// It does not.
    Fails,
    /// Noise hid the answer.
    Undecided,
    /// This machine cannot say.
    HostUnsuitable,
    /// A gate before it does not pass, or the exercise does not have it.
    NotReached,
}

/// A gate and what was looked at for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateOutcome {
    /// Which.
    pub gate: Gate,
    /// What became of it.
    pub state: GateState,
    /// What was looked at.
    pub checks: Vec<GateCheck>,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateCheck {
    /// What must be so, in a few words.
    pub what: String,
    /// Whether it is.
    pub state: GateState,
    /// What was seen, in a sentence.
    pub why: String,
}

impl GateCheck {
    /// A check that passes, or fails, with what was seen.
    pub fn of(what: impl Into<String>, seen: Result<String, String>) -> GateCheck {
        let (state, why) = match seen {
            Ok(why) => (GateState::Passes, why),
            Err(why) => (GateState::Fails, why),
        };
        GateCheck { what: what.into(), state, why }
    }
}

/// What the third gate measured. Lower is better in every metric that it takes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// The metric, as claims spell it.
    pub metric: String,
    /// Whose: a role, or a lock.
    pub of: Option<String>,
    /// The starter's.
    pub starter: Option<Interval>,
    /// The student's.
    pub yours: Option<Interval>,
    /// The reference's.
    pub reference: Option<Interval>,
    /// Starter over reference: what there is to gain here.
    pub starter_to_reference: Option<Interval>,
    /// The starter over itself, run as one arm more: what the machine makes of no change at all.
    pub starter_to_itself: Option<Interval>,
    /// (starter − yours) / (starter − reference): the share recovered, 1 where it is all of it.
    pub recovered: Option<Interval>,
    /// Share whose lower bound passes.
    pub wanted: f64,
    /// Blocks in which all three have a figure.
    pub blocks: u32,
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GradedFile {
    /// `exercise`, `starter`, `yours` or `reference`.
    pub what: String,
    /// As named.
    pub path: String,
    /// SHA-256 of the text, hexadecimal.
    pub sha256: String,
    /// The whole file.
    pub text: String,
}
