//! Figures that are made of many: an interval, and quantiles. Their units stand in the names of whoever has them.

use serde::{Deserialize, Serialize};

/// A median and its 95 % interval.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// The estimate.
    pub median: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Quantiles of single slices.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// 10 %.
    pub p10: f64,
    /// Median.
    pub p50: f64,
    /// 90 %.
    pub p90: f64,
}

/// Percentiles of a distribution, from an HdrHistogram of 3 digits. Its unit stands in the name of whoever has one.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// How many.
    pub count: u64,
    /// Smallest.
    pub min: u64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: u64,
    /// 90 %.
    pub p90: u64,
    /// 99 %.
    pub p99: u64,
    /// 99.9 %.
    pub p999: u64,
    /// Largest.
    pub max: u64,
}
