//! The scenario's claims, judged, and what was predicted beside what was seen.

use crate::figure::Interval;
use serde::{Deserialize, Serialize};

/// A claim, judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExpectOutcome {
    /// As written.
    pub claim: String,
    /// The judgement.
    pub state: ExpectState,
    /// Left-hand side over right-hand side, or the left-hand side against a number.
    pub seen: Option<Interval>,
    /// What the state rests on, in plain words.
    pub why: String,
}

/// How a claim was judged on its interval.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpectState {
    /// The whole interval is on the claimed side.
    Holds,
    /// The whole interval is on the other.
    Fails,
    /// It lies across.
    Undecided,
    /// It does not apply here.
    NotApplicable,
}

/// What somebody thought a run would show, beside what it showed. It does not pass or fail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// Of what: `ns_per_op(packed) / ns_per_op(padded-64)`.
    pub text: String,
    /// The number, in the unit of the metric; a ratio has none.
    pub predicted: f64,
    /// What was seen; `None` where the run has no such figure.
    pub seen: Option<Interval>,
    /// The larger of the prediction and the median seen, over the smaller: 1 where they agree. `None` where one of them
    /// is 0, or nothing was seen.
    pub off_by: Option<f64>,
    /// Whether the prediction lies in the interval; `None` where nothing was seen.
    pub inside: Option<bool>,
    /// Why nothing was seen; else empty.
    pub why: String,
}
