//! How claims spell metrics, relations and facts of the host: the one place, for reading and for writing.

use super::{HostFact, Metric, Quantile, Relation, Subject};
use std::fmt;
use std::str::FromStr;

/// A word that is none of those a claim may use there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a word that claims know here")]
pub struct UnknownWord(pub String);

/// Every metric with a fixed name, subject by subject.
static METRICS: [(&str, Subject, Metric); 24] = [
    ("ns_per_op", Subject::Role, Metric::NsPerOp),
    ("ops_per_second", Subject::Role, Metric::OpsPerSecond),
    ("fairness_jain", Subject::Role, Metric::FairnessJain),
    ("contention_solo", Subject::Role, Metric::ContentionSolo),
    ("contention_unshared", Subject::Role, Metric::ContentionUnshared),
    ("latency_p50_ns", Subject::Role, Metric::Latency(Quantile::P50)),
    ("latency_p99_ns", Subject::Role, Metric::Latency(Quantile::P99)),
    ("latency_p999_ns", Subject::Role, Metric::Latency(Quantile::P999)),
    ("latency_max_ns", Subject::Role, Metric::Latency(Quantile::Max)),
    ("batch_p50_ns", Subject::Role, Metric::Batch(Quantile::P50)),
    ("batch_p99_ns", Subject::Role, Metric::Batch(Quantile::P99)),
    ("batch_p999_ns", Subject::Role, Metric::Batch(Quantile::P999)),
    ("batch_max_ns", Subject::Role, Metric::Batch(Quantile::Max)),
    ("contended_share", Subject::Lock, Metric::ContendedShare),
    ("handoffs_per_op", Subject::Lock, Metric::HandoffsPerOp),
    ("wait_p50_ns", Subject::Lock, Metric::Wait(Quantile::P50)),
    ("wait_p99_ns", Subject::Lock, Metric::Wait(Quantile::P99)),
    ("wait_p999_ns", Subject::Lock, Metric::Wait(Quantile::P999)),
    ("wait_max_ns", Subject::Lock, Metric::Wait(Quantile::Max)),
    ("hold_p50_ns", Subject::Lock, Metric::Hold(Quantile::P50)),
    ("hold_p99_ns", Subject::Lock, Metric::Hold(Quantile::P99)),
    ("hold_p999_ns", Subject::Lock, Metric::Hold(Quantile::P999)),
    ("hold_max_ns", Subject::Lock, Metric::Hold(Quantile::Max)),
    ("bytes", Subject::Layout, Metric::Bytes),
];

const PER_OP: &str = "_per_op";
const PER_SECOND: &str = "_per_second";

impl Metric {
    /// The fixed names of the metrics of one subject. Counters come on top: `COUNTER_per_op`, `COUNTER_per_second`, of
    /// a role.
    pub fn names(subject: Subject) -> impl Iterator<Item = &'static str> {
        METRICS.iter().filter(move |(_, of, _)| *of == subject).map(|(name, ..)| *name)
    }

    /// What it is a figure of.
    pub fn subject(&self) -> Subject {
        let named = METRICS.iter().find(|(.., metric)| metric == self);
        named.map_or(Subject::Role, |(_, subject, _)| *subject)
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Metric::CounterPerOp(counter) => write!(f, "{counter}{PER_OP}"),
            Metric::CounterPerSecond(counter) => write!(f, "{counter}{PER_SECOND}"),
            _ => METRICS.iter().filter(|(.., metric)| metric == self).try_for_each(|(name, ..)| f.write_str(name)),
        }
    }
}

impl FromStr for Metric {
    type Err = UnknownWord;

    /// Takes any word before `_per_op` and `_per_second` for a counter: which ones there are is not known here.
    fn from_str(text: &str) -> Result<Metric, UnknownWord> {
        if let Some((.., metric)) = METRICS.iter().find(|(name, ..)| *name == text) {
            return Ok(metric.clone());
        }
        let counter = |suffix: &str| text.strip_suffix(suffix).filter(|name| !name.is_empty()).map(str::to_owned);
        let per_op = counter(PER_OP).map(Metric::CounterPerOp);
        per_op.or_else(|| counter(PER_SECOND).map(Metric::CounterPerSecond)).ok_or_else(|| UnknownWord(text.to_owned()))
    }
}

impl Relation {
    /// Every relation, as claims spell it.
    pub const ALL: [(&str, Relation); 4] =
        [(">=", Relation::AtLeast), ("<=", Relation::AtMost), (">", Relation::MoreThan), ("<", Relation::LessThan)];
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Relation::ALL.iter().filter(|(_, op)| op == self).try_for_each(|(sign, _)| f.write_str(sign))
    }
}

impl FromStr for Relation {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Relation, UnknownWord> {
        let known = Relation::ALL.iter().find(|(sign, _)| *sign == text);
        known.map(|(_, op)| *op).ok_or_else(|| UnknownWord(text.to_owned()))
    }
}

impl HostFact {
    /// Every fact, as conditions spell it.
    pub const ALL: [(&str, HostFact); 4] = [
        ("cpus", HostFact::Cpus),
        ("llc_groups", HostFact::LlcGroups),
        ("sockets", HostFact::Sockets),
        ("nodes", HostFact::Nodes),
    ];
}

impl FromStr for HostFact {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<HostFact, UnknownWord> {
        let known = HostFact::ALL.iter().find(|(name, _)| *name == text);
        known.map(|(_, fact)| *fact).ok_or_else(|| UnknownWord(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for (name, subject, metric) in &METRICS {
            assert_eq!(metric.to_string(), *name);
            assert_eq!(name.parse(), Ok(metric.clone()));
            assert_eq!(metric.subject(), *subject);
        }
        for metric in [Metric::CounterPerOp("cycles".to_owned()), Metric::CounterPerSecond("cycles".to_owned())] {
            assert_eq!(metric.to_string().parse(), Ok(metric.clone()));
            assert_eq!(metric.subject(), Subject::Role);
        }
        for (sign, op) in Relation::ALL {
            assert_eq!((op.to_string().as_str(), sign.parse()), (sign, Ok(op)));
        }
    }

    #[test]
    fn words_that_are_close_are_not_taken() {
        for word in ["", "_per_op", "wait_p90_ns", "ns", "bytes "] {
            assert!(word.parse::<Metric>().is_err(), "{word}");
        }
        for word in ["", "=", "==", "=>", "> ="] {
            assert!(word.parse::<Relation>().is_err(), "{word}");
        }
        assert_eq!("cores".parse::<HostFact>(), Err(UnknownWord("cores".to_owned())));
    }
}
