//! A counter's reading. A count that could not be taken is not zero.

use serde::{Deserialize, Serialize};

/// What a counter said over one measuring window, or why it said nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(into = "Flat", try_from = "Flat")]
pub enum Reading {
    /// Counted during the whole window.
    Counted {
        /// Events.
        value: u64,
    },
    /// Counted for a part of the window (`time_running_ns / time_enabled_ns`) and scaled up.
    Scaled {
        /// Events, scaled.
        value: u64,
        /// The multiplex ratio, above 0 and below 1.
        ratio: f64,
    },
    /// Opened, but the kernel never put it on a counter: `time_running_ns` was 0.
    NotScheduled,
    /// This machine cannot count it.
    Unsupported {
        /// In plain words, with the errno where there is one.
        why: String,
    },
    /// This machine could, this process may not.
    Denied {
        /// In plain words.
        why: String,
        /// The command or setting that allows it.
        cure: String,
    },
}

impl Reading {
    /// The count, where there is one; scaled counts included.
    pub fn value(&self) -> Option<u64> {
        match self {
            Reading::Counted { value } | Reading::Scaled { value, .. } => Some(*value),
            _ => None,
        }
    }

    /// The state as the JSON spells it.
    pub fn state(&self) -> &'static str {
        match self {
            Reading::Counted { .. } => "counted",
            Reading::Scaled { .. } => "scaled",
            Reading::NotScheduled => "not_scheduled",
            Reading::Unsupported { .. } => "unsupported",
            Reading::Denied { .. } => "denied",
        }
    }
}

/// A reading whose parts do not fit its state.
#[derive(Debug)]
pub struct ReadingError(String);

impl std::fmt::Display for ReadingError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for ReadingError {}

/// The JSON shape: one flat object, every key present, `null` where it does not apply.
#[derive(Serialize, Deserialize)]
struct Flat {
    state: String,
    value: Option<u64>,
    ratio: Option<f64>,
    why: Option<String>,
    cure: Option<String>,
}

impl From<Reading> for Flat {
    fn from(reading: Reading) -> Flat {
        let state = reading.state().to_owned();
        let value = reading.value();
        let (ratio, why, cure) = match reading {
            Reading::Scaled { ratio, .. } => (Some(ratio), None, None),
            Reading::Unsupported { why } => (None, Some(why), None),
            Reading::Denied { why, cure } => (None, Some(why), Some(cure)),
            Reading::Counted { .. } | Reading::NotScheduled => (None, None, None),
        };
        Flat { state, value, ratio, why, cure }
    }
}

impl TryFrom<Flat> for Reading {
    type Error = ReadingError;

    fn try_from(flat: Flat) -> Result<Reading, ReadingError> {
        let missing = |what| ReadingError(format!("a reading in state `{}` lacks `{what}`", flat.state));
        Ok(match flat.state.as_str() {
            "counted" => Reading::Counted { value: flat.value.ok_or_else(|| missing("value"))? },
            "scaled" => Reading::Scaled {
                value: flat.value.ok_or_else(|| missing("value"))?,
                ratio: flat.ratio.ok_or_else(|| missing("ratio"))?,
            },
            "not_scheduled" => Reading::NotScheduled,
            "unsupported" => Reading::Unsupported { why: flat.why.ok_or_else(|| missing("why"))? },
            "denied" => Reading::Denied {
                why: flat.why.clone().ok_or_else(|| missing("why"))?,
                cure: flat.cure.ok_or_else(|| missing("cure"))?,
            },
            other => return Err(ReadingError(format!("unknown reading state `{other}`"))),
        })
    }
}
