//! The claims a scenario makes about its own outcome, and the predictions of whoever runs it, parsed; `analysis` holds
//! both against intervals.

mod names;

pub use names::UnknownWord;

/// One claim: `left op [factor *] right`, in force only where `when` holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Expect {
    /// As written.
    pub text: String,
    /// Left-hand term.
    pub left: Term,
    /// The relation.
    pub op: Relation,
    /// Right-hand side.
    pub right: Against,
    /// Condition on the host.
    pub when: Option<When>,
}

/// What a prediction is of: a figure, or the ratio of two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quantity {
    /// As written.
    pub text: String,
    /// The figure, or what is divided.
    pub term: Term,
    /// What it is divided by.
    pub over: Option<Term>,
}

/// What whoever runs a scenario thinks it will show. It is shown beside what was seen, and never passes or fails.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// What it is of.
    pub of: Quantity,
    /// The number, 0 or more, in the unit of the metric; a ratio has none.
    pub predicted: f64,
}

/// The relation a claim asserts.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Relation {
    /// `>=`
    AtLeast,
    /// `<=`
    AtMost,
    /// `>`
    MoreThan,
    /// `<`
    LessThan,
}

/// Right-hand side of a claim.
#[derive(Clone, Debug, PartialEq)]
pub enum Against {
    /// A plain number, in the unit of the left-hand metric.
    Number(f64),
    /// `factor * term`; factor is 1 where none is written.
    Scaled {
        /// The factor.
        factor: f64,
        /// The term.
        term: Term,
    },
}

/// `metric(arm[, role or lock])`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// What is compared.
    pub metric: Metric,
    /// Name of an arm, as [`Arm::name`](crate::Arm::name).
    pub arm: String,
    /// A role's or lock's name; `None` is the headline role, or the only lock.
    pub of: Option<String>,
}

/// A figure that claims can name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Metric {
    /// `ns_per_op`: nanoseconds a pass, per worker, over kept slices.
    NsPerOp,
    /// `ops_per_second`, summed over the role's workers.
    OpsPerSecond,
    /// `fairness_jain`, 1/n to 1.
    FairnessJain,
    /// `contention_solo`: against one worker alone.
    ContentionSolo,
    /// `contention_unshared`: against a copy for each.
    ContentionUnshared,
    /// `bytes` the layout takes.
    Bytes,
    /// `contended_share` of a lock's acquisitions, 0 to 1.
    ContendedShare,
    /// `handoffs_per_op`: a lock's changes of owner, each acquisition.
    HandoffsPerOp,
    /// `wait_p50_ns`, `wait_p99_ns`, `wait_p999_ns`, `wait_max_ns`: a lock's contended waits.
    Wait(Quantile),
    /// `hold_p50_ns`, …: how long a lock was held.
    Hold(Quantile),
    /// `latency_p50_ns`, …: an operation's time in an open loop, from its intended start.
    Latency(Quantile),
    /// `batch_p50_ns`, …: one batch of a `touch` step, as it was: a stall counts once.
    Batch(Quantile),
    /// `COUNTER_per_op`, e.g. `llc_load_misses_per_op`.
    CounterPerOp(String),
    /// `COUNTER_per_second`.
    CounterPerSecond(String),
}

/// What a metric is a figure of: what may stand behind the arm's comma.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// A role of the arm.
    Role,
    /// One of its locks.
    Lock,
    /// Its layout.
    Layout,
}

/// A point of a distribution.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Quantile {
    /// The median.
    P50,
    /// 99 %.
    P99,
    /// 99.9 %.
    P999,
    /// The largest.
    Max,
}

/// A condition on the host: `llc_groups >= 2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct When {
    /// As written.
    pub text: String,
    /// What is counted.
    pub fact: HostFact,
    /// The relation.
    pub op: Relation,
    /// The number.
    pub number: u64,
}

/// What a condition can ask of the host; usable CPUs only.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum HostFact {
    /// `cpus`
    Cpus,
    /// `llc_groups`
    LlcGroups,
    /// `sockets`
    Sockets,
    /// `nodes`
    Nodes,
}
