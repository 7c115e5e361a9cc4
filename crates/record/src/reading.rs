//! A counter's reading. A count that could not be taken is not zero.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Counter readings by glossary name (`l1d_load_misses`, `context_switches`, …), over the measuring window alone;
/// those that [span the warm-up](plan::event::spans_warm_up) over that too.
pub type CounterReadings = BTreeMap<String, Reading>;

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

/// How the reason begins where no core of the machine has a PMU: one cause for all that a processor counts.
pub const NO_PMU: &str = "this machine exposes no hardware PMU";

/// Why an open counter counted nothing.
const NEVER_RAN: &str = "open, but never on a counter: others held them (a profiler, the NMI watchdog)";
const FREE_COUNTERS: &str = "end other profilers, and sudo sysctl kernel.nmi_watchdog=0, or count fewer events";

impl Reading {
    /// The count, where there is one; scaled counts included.
    pub fn value(&self) -> Option<u64> {
        match self {
            Reading::Counted { value } | Reading::Scaled { value, .. } => Some(*value),
            _ => None,
        }
    }

    /// Why there is no count, in plain words; `None` where there is one.
    pub fn why(&self) -> Option<&str> {
        match self {
            Reading::Counted { .. } | Reading::Scaled { .. } => None,
            Reading::NotScheduled => Some(NEVER_RAN),
            Reading::Unsupported { why } | Reading::Denied { why, .. } => Some(why),
        }
    }

    /// What would make it count: a command or a setting; `None` where there is a count, or nothing helps.
    pub fn cure(&self) -> Option<&str> {
        match self {
            Reading::Counted { .. } | Reading::Scaled { .. } | Reading::Unsupported { .. } => None,
            Reading::NotScheduled => Some(FREE_COUNTERS),
            Reading::Denied { cure, .. } => Some(cure),
        }
    }

    /// Whether it was not counted because no core of the machine has a PMU.
    pub fn lacks_pmu(&self) -> bool {
        matches!(self, Reading::Unsupported { why } if why.starts_with(NO_PMU))
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
        let ratio = match reading {
            Reading::Scaled { ratio, .. } => Some(ratio),
            _ => None,
        };
        let (why, cure) = (reading.why().map(str::to_owned), reading.cure().map(str::to_owned));
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

#[cfg(test)]
mod tests {
    use super::{NO_PMU, Reading};
    use serde_json::{Value, json};

    #[test]
    fn whatever_is_not_counted_says_why_and_what_helps() {
        let written = |reading: &Reading| serde_json::to_value(reading).expect("JSON");
        let denied = Reading::Denied { why: "paranoid".into(), cure: "sysctl".into() };
        let known = json!({"state": "denied", "value": null, "ratio": null, "why": "paranoid", "cure": "sysctl"});
        assert_eq!(written(&denied), known);
        let never = written(&Reading::NotScheduled);
        assert!(never["why"].as_str().is_some_and(|why| why.contains("NMI watchdog")), "{never}");
        assert!(never["cure"].as_str().is_some_and(|cure| cure.contains("kernel.nmi_watchdog=0")), "{never}");
        let old = json!({"state": "not_scheduled", "value": null, "ratio": null, "why": null, "cure": null});
        for text in [never, old] {
            assert_eq!(serde_json::from_value::<Reading>(text).expect("a reading"), Reading::NotScheduled);
        }
        let scaled = written(&Reading::Scaled { value: 3, ratio: 0.5 });
        assert_eq!((&scaled["why"], &scaled["cure"], &scaled["ratio"]), (&Value::Null, &Value::Null, &json!(0.5)));
    }

    #[test]
    fn a_missing_pmu_is_told_from_other_lacks() {
        let unsupported = |why: String| Reading::Unsupported { why };
        assert!(unsupported(format!("{NO_PMU} (perf_event_open: ENOENT)")).lacks_pmu());
        assert!(!unsupported("this processor's PMU has no such event".into()).lacks_pmu());
        assert!(!Reading::Denied { why: NO_PMU.into(), cure: String::new() }.lacks_pmu());
    }
}
