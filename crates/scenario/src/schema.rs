//! The names a scenario may use, and the bounds of its numbers. `scenarios/README.md` explains each; a test holds the
//! two together. [`json_schema`] gives them to editors.

mod json;
mod patterns;
mod reference;

use plan::Nanos;
use toml_text::context::Kind;

pub use json::json_schema;
pub use toml_text::file::BYTES_MAX as FILE_BYTES_MAX;

/// What messages call a scenario, and where they send its writer.
pub(crate) static KIND: Kind = Kind {
    name: "scenario",
    reference: "scenarios/README.md",
    if_missing: "check the path; `coordinator list` names the scenarios that are there",
    example: "scenarios/false_sharing.toml",
    if_twice: "keep one of the two; a list of tables, such as [[variant]], takes double brackets",
    depth: "four",
    sections: SECTIONS,
};

/// Keys at the top of the file.
pub const TOP: &[&str] = &[
    "title",
    "question",
    "oversubscribe",
    "placement",
    "measure",
    "field",
    "lock",
    "region",
    "variant",
    "role",
    "sweep",
    "expect",
];
/// Keys of `[measure]`.
pub(crate) const MEASURE: &[&str] =
    &["window", "warm_up", "repetitions", "precision", "budget", "baselines", "headline", "events"];
/// Those of [`MEASURE`] that an arm can have its own of.
pub(crate) const MEASURE_PER_ARM: &[&str] = &["window", "warm_up"];
/// Keys of `[field.NAME]`.
pub(crate) const FIELD: &[&str] = &["type", "each", "count", "at"];
/// Keys of `[lock.NAME]`.
pub const LOCK: &[&str] = &["kind", "at"];
/// Keys of `[region.NAME]`.
pub const REGION: &[&str] = &["size", "shared", "pages"];
/// Keys of `[[variant]]`.
pub const VARIANT: &[&str] = &["name", "placement", "set"];
/// Keys of `[[role]]`.
pub const ROLE: &[&str] =
    &["name", "workers", "threads", "process", "cpus", "rate", "latency", "after", "populate", "loop"];
/// Keys of `[[expect]]`.
pub(crate) const EXPECT: &[&str] = &["claim", "when"];
/// Keys of a placement written as a table.
pub(crate) const PLACEMENT: &[&str] = &["strategy", "pad", "offsets", "shift"];

/// Every table with fixed keys, by the name that messages give it.
pub const SECTIONS: &[(&str, &[&str])] = &[
    ("the top of the file", TOP),
    ("[measure]", MEASURE),
    ("[field.NAME]", FIELD),
    ("[lock.NAME]", LOCK),
    ("[region.NAME]", REGION),
    ("[[variant]]", VARIANT),
    ("[[role]]", ROLE),
    ("[[expect]]", EXPECT),
    ("placement", PLACEMENT),
];

/// Paths without a dot that `[variant.set]` and `[sweep]` know, beside the placeholders of steps.
pub const BARE_PATHS: &[&str] = &["workers", "cpus", "kind", "placement", "shift", "oversubscribe"];

/// Placements that are a word.
pub const STRATEGIES: &[&str] = &["packed", "declared", "by-writer", "hot-cold"];
/// Pages of a region.
pub const PAGES: &[&str] = &["4KiB", "transparent", "2MiB"];
/// What may stand behind a verb and its region, beside a size.
pub(crate) const MEMORY_WORDS: &[&str] = &["chunk", "pause"];
/// Field types.
pub const TYPES: &[&str] = &["u8", "u16", "u32", "u64"];
/// Named choices of CPUs.
pub const CPUS: &[&str] = &["spread", "same-core", "same-llc", "cross-socket"];
/// Baselines.
pub const BASELINES: &[&str] = &["solo", "unshared", "plain"];
/// Elements in brackets that are a word.
pub const ELEMENTS: &[&str] = &["me", "next", "any", "all"];
/// The least time that is measured: two slices of half a millisecond. With less no slice may come to its end, and a
/// repetition without one does not count.
pub(crate) const LEAST_MEASURED: Nanos = Nanos(1_000_000);
/// Bounds of a window; an hour bounds what a typing error can cost.
pub const WINDOW: (Nanos, Nanos) = (LEAST_MEASURED, Nanos(3_600_000_000_000));
/// Bounds of a warm-up.
pub const WARM_UP: (Nanos, Nanos) = (Nanos(0), Nanos(3_600_000_000_000));
/// Bounds of `after`; beside them it must leave the least measured time of the window.
pub const AFTER: (Nanos, Nanos) = (Nanos(0), Nanos(3_600_000_000_000));
/// Bounds of a budget.
pub(crate) const BUDGET: (Nanos, Nanos) = (Nanos(100_000_000), Nanos(86_400_000_000_000));
/// Bounds of `work`: every worker looks at the stop word between two steps, so a step must not last.
pub(crate) const WORK: (Nanos, Nanos) = (Nanos(0), Nanos(1_000_000_000));
/// Bounds of `sleep`, for the same reason.
pub(crate) const SLEEP: (Nanos, Nanos) = (Nanos(1), Nanos(1_000_000_000));
/// Bounds of the `pause` behind a memory step's chunks, as for `sleep`.
pub(crate) const PAUSE: (Nanos, Nanos) = (Nanos(1), Nanos(1_000_000_000));
/// Bounds of a lock's `timeout`: a shorter one ends before the clock could tell, a longer one would hold up the run's
/// end as a long `sleep` would.
pub(crate) const TIMEOUT: (Nanos, Nanos) = (Nanos(1_000), Nanos(1_000_000_000));
/// Bounds of a fixed number of repetitions: one shows nothing of the spread but may be asked for; past ten thousand
/// the drift of the machine outweighs what more of them could tell.
pub const REPETITIONS: (u64, u64) = (1, 10_000);
/// Bounds of a role's workers; the upper one is more than the CPUs of any machine the lab has met.
pub const WORKERS: (u64, u64) = (1, 1_024);
/// Bounds of the threads of one process; past the upper one more processes serve as well.
pub(crate) const THREADS: (u64, u64) = (1, 64);
/// Bounds of `rate`, passes a second of each worker: at more than ten million one read of the clock a pass takes a good
/// part of the time from one intended start to the next.
pub const RATE: (u64, u64) = (1, 10_000_000);
/// Bounds of an array's fixed element count.
pub const COUNT: (u64, u64) = (1, 65_536);
/// Bounds of `pad`: no field is wider than 8 bytes' alignment asks, and the base is aligned to a page of 4096.
pub(crate) const PAD: (u64, u64) = (8, 4_096);
/// Bounds of `shift`: the base is aligned to a page, so 4096 would be 0 again.
pub(crate) const SHIFT: (u64, u64) = (0, 4_095);
/// Bounds of an offset; sixteen megabytes keep a typing error from reserving the machine's memory.
pub const OFFSET: (u64, u64) = (0, (16 << 20) - 1);
/// Bounds of a region's size, bytes: a page, and what a machine of today has to spare for each process.
pub(crate) const REGION_BYTES: (u64, u64) = (4_096, 1 << 30);
/// Bounds of a CPU's number: Linux is built for at most 8192.
pub const CPU: (u64, u64) = (0, 8_191);
/// Bounds of the N in `every N`: at a third of a nanosecond a pass, a million passes still fit in a millisecond.
pub(crate) const EVERY: (u64, u64) = (1, 1_000_000);

/// Most arms of a run: variants times the points of the sweep.
pub(crate) const ARMS_MAX: usize = 256;
/// Most roles.
pub(crate) const ROLES_MAX: usize = 16;
/// Most steps of one loop, and most fields, most locks and most regions of a scenario.
pub const ITEMS_MAX: usize = 256;
/// Longest name, bytes: it must fit in a table's column and in a file's name.
pub const NAME_BYTES_MAX: usize = 64;

pub use crate::steps::{VERBS, Verb};
