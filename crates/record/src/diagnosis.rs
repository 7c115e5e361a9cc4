//! What is wrong with what was run, what that rests on and what cured it; and what to know about the figures.

use crate::figure::Interval;
use serde::{Deserialize, Serialize};

/// What is wrong, or that nothing is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// `false_sharing`, `true_sharing`, `reader_invalidation`, `adjacent_line`; of locks `long_hold`, `convoy`,
    /// `costly_handoff`, `unfair`, `starved`, `oversubscribed`, `lock_word_shares_line`, `owner_died`,
    /// `lock_contention`; of memory given back `tlb_shootdown`; or `none`.
    pub kind: String,
    /// How much it costs.
    pub severity: Severity,
    /// In one sentence, for a student.
    pub text: String,
    /// The arms it was seen in.
    pub arms: Vec<String>,
    /// The fields concerned.
    pub fields: Vec<String>,
    /// The roles concerned.
    pub roles: Vec<String>,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
    /// What to do.
    pub cure: String,
    /// What the cure gave in this run: the ratio of ns per pass, sick over cured; of `tlb_shootdown` that of the
    /// batches' 99.9th percentile where it tells more. `None` where no arm holds the cure.
    pub expected_gain: Option<Gain>,
}

/// How much a diagnosis costs.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Nothing to do.
    None,
    /// Below 1.2 ×.
    Low,
    /// Below 2 ×.
    Medium,
    /// From 2 ×.
    High,
}

/// One figure a diagnosis rests on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// What it is.
    pub name: String,
    /// The figure; `None` where it could not be had.
    pub value: Option<f64>,
    /// Its unit.
    pub unit: String,
    /// Where it comes from: `measured`, `modelled`, `layout`, or `missing: …`.
    pub source: String,
}

impl Evidence {
    /// A row, with `None` where it is missing; `source` then says why.
    pub fn new(name: String, value: Option<f64>, unit: &str, source: &str) -> Evidence {
        Evidence { name, value, unit: unit.to_owned(), source: source.to_owned() }
    }
}

/// A cure's measured gain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// The arm that holds the cure.
    pub arm: String,
    /// Sick over cured.
    pub ratio: Interval,
}

/// What the reader should know about the figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Warning {
    /// Stable: `no_pmu`, `lost_time`, `regimes_mixed`, ….
    pub id: String,
    /// What was seen.
    pub text: String,
    /// What to do.
    pub advice: String,
}
