//! What the page and the Markdown of `compare` both say.

use crate::report::figures::{percent, plain};
use record::{
    Asks, Both, CompareLock, CompareRow, ComparedPair, Comparison, ConditionRow, ConditionState, Difference,
    Percentiles, Side, Unmatched, Verdict,
};
use std::collections::BTreeSet;

/// Digits of a scenario's hash that are shown, as at the end of a run's page.
const HASH_DIGITS: usize = 12;

/// What heads it all.
pub(super) fn title(comparison: &Comparison) -> String {
    let titles: BTreeSet<&str> = comparison.runs.iter().map(|run| run.title.as_str()).collect();
    let titles = titles.into_iter().collect::<Vec<_>>().join(", ");
    format!("Compared: {titles}")
}

/// The number of a run in front of its line.
pub(super) fn mark(comparison: &Comparison, index: usize) -> String {
    let base = comparison.pairs.iter().any(|pair| pair.base == index && pair.run != index);
    format!("{}{}: ", index + 1, if base { ", base" } else { "" })
}

/// Which run it is.
pub(super) fn run_line(comparison: &Comparison, index: usize) -> String {
    let run = &comparison.runs[index];
    let hash: String = run.scenario_sha256.chars().take(HASH_DIGITS).collect();
    let resolution = match run.resolution {
        Some(share) => format!("its control arm could tell effects from {}", percent(share)),
        None => "its control arm resolved nothing".to_owned(),
    };
    format!("{}; host {}, {}, scenario {hash}; {resolution}", run.path, run.host, run.started_utc)
}

/// What stands in front of a row: what tells it from the others, and no more.
pub(super) struct Labels<'a> {
    comparison: &'a Comparison,
    /// Heads of the columns that tell pairs apart: none where there is one.
    pub(super) pair_columns: Vec<&'static str>,
    /// The same, and what tells the rows of a pair apart.
    pub(super) columns: Vec<&'static str>,
}

pub(super) fn labels(comparison: &Comparison) -> Labels<'_> {
    let mut pair_columns = Vec::new();
    if comparison.pairs.len() > 1 {
        let hosts: BTreeSet<&str> =
            comparison.pairs.iter().map(|pair| comparison.runs[pair.run].host.as_str()).collect();
        // A host tells its pair where each has one.
        pair_columns.extend((hosts.len() < comparison.pairs.len()).then_some("run"));
        pair_columns.extend((hosts.len() > 1).then_some("host"));
    }
    let mut columns = pair_columns.clone();
    columns.push("variant");
    columns.extend((roles(comparison).len() > 1).then_some("role"));
    Labels { comparison, pair_columns, columns }
}

fn roles(comparison: &Comparison) -> BTreeSet<&str> {
    comparison.rows.iter().map(|row| row.role.as_str()).collect()
}

impl Labels<'_> {
    /// The cells under the heads.
    pub(super) fn of(&self, row: &CompareRow) -> Vec<String> {
        let mut cells = self.of_pair(row.run, row.base);
        cells.extend(self.columns[cells.len()..].iter().map(|name| match *name {
            "role" => row.role.clone(),
            _ => self.variant(row),
        }));
        cells
    }

    /// The arm of a row.
    pub(super) fn variant(&self, row: &CompareRow) -> String {
        variant(self.comparison, &row.variant, &row.base_variant)
    }

    /// Whether rows differ by role.
    pub(super) fn several_roles(&self) -> bool {
        self.columns.contains(&"role")
    }

    /// The cells that tell the row's pair.
    pub(super) fn of_pair(&self, run: usize, base: usize) -> Vec<String> {
        let pair = if run == base { format!("{}", run + 1) } else { format!("{}/{}", run + 1, base + 1) };
        let cell = |name: &&'static str| match *name {
            "run" => pair.clone(),
            _ => self.comparison.runs[run].host.clone(),
        };
        self.pair_columns.iter().map(cell).collect()
    }
}

/// The arm; and where it is called otherwise, what it is held against, unless the heading says it for all.
fn variant(comparison: &Comparison, arm: &str, base: &str) -> String {
    match arm == base || common_base(comparison).is_some() {
        true => arm.to_owned(),
        false => format!("{arm} against {base}"),
    }
}

/// The one variant that all others are held against, where they are those of one run each.
fn common_base(comparison: &Comparison) -> Option<&str> {
    if comparison.pairs.iter().any(|pair| pair.asks != Asks::Variants) {
        return None;
    }
    let bases = comparison.rows.iter().map(|row| row.base_variant.split('@').next().unwrap_or_default());
    let bases: BTreeSet<&str> = bases.collect();
    bases.first().copied().filter(|_| bases.len() == 1)
}

/// What heads the table of ratios.
pub(super) fn ratios_heading(comparison: &Comparison) -> String {
    let roles = roles(comparison);
    let role = roles.first().filter(|_| roles.len() == 1).map(|role| format!(" of {role}")).unwrap_or_default();
    let base = common_base(comparison).map(|base| format!(", against {base}")).unwrap_or_default();
    format!("How many times as long a pass{role} takes{base}")
}

pub(super) fn verdict_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "faster",
        Verdict::Slower => "slower",
        Verdict::NoDifference => "no difference",
        Verdict::Unresolved => "unresolved",
    }
}

pub(super) fn condition_word(state: ConditionState) -> &'static str {
    match state {
        ConditionState::Fails => "fails",
        ConditionState::Undecided => "undecided",
        ConditionState::Passes => "passes",
    }
}

/// How to read the table of ratios.
pub(super) fn how_to_read(comparison: &Comparison) -> String {
    let asks: BTreeSet<&str> = comparison
        .pairs
        .iter()
        .map(|pair| match pair.asks {
            Asks::Change => {
                "Runs of one host: the interval has room for what the machine did between them, since that is no doing \
                 of a change."
            }
            Asks::Hosts => "One scenario on two hosts: what the machines do is in the ratio.",
            Asks::Variants => "Variants of one run are compared block by block.",
        })
        .collect();
    format!(
        "ratio: this over base, above 1 is slower, with its 95 % interval; it is judged on that. told from: a smaller \
         effect would not have shown here. {}",
        asks.into_iter().collect::<Vec<_>>().join(" ")
    )
}

/// Heads of what stands beside the ratios, behind those that tell pairs apart.
pub(super) const BESIDE: [&str; 6] = ["variant", "of", "figure", "base", "this", "ratio"];

/// How many of them are of words.
pub(super) const BESIDE_WORDS: usize = 3;

/// Events a pass below which a count is interrupts' doing, not the loop's: as a diagnosis has it.
const LEAST_RATE: f64 = 0.001;

/// A figure without interval, on both sides.
pub(super) struct Beside {
    /// A cell a column.
    pub(super) cells: Vec<String>,
    /// Its name where there is no room for a table.
    pub(super) block: String,
}

/// Counters, latencies and waits that both sides have.
pub(super) fn beside(comparison: &Comparison) -> Vec<Beside> {
    let labels = labels(comparison);
    let line = |pair: (usize, usize), arms: (&str, &str), of: &str, figure: String, both: Both<f64>| {
        let mut cells = labels.of_pair(pair.0, pair.1);
        cells.extend([variant(comparison, arms.0, arms.1), of.to_owned(), figure]);
        let block = cells.join(", ");
        let ratio = if both.base > 0.0 { plain(both.run / both.base) } else { "–".to_owned() };
        cells.extend([plain(both.base), plain(both.run), ratio]);
        Beside { cells, block }
    };
    let mut all = Vec::new();
    for row in &comparison.rows {
        let add =
            |(figure, both)| line((row.run, row.base), (&row.variant, &row.base_variant), &row.role, figure, both);
        let counted = row.counters.iter().filter(|(_, both)| both.base.max(both.run) >= LEAST_RATE);
        all.extend(counted.map(|(name, both)| (format!("{name}/op"), *both)).map(add));
        all.extend(row.percentiles.iter().flat_map(|(name, both)| quantiles(name, both)).map(add));
    }
    for lock in &comparison.locks {
        let name = lock_name(lock);
        let add =
            |(figure, both)| line((lock.run, lock.base), (&lock.variant, &lock.base_variant), &name, figure, both);
        all.extend(quantiles("wait_ns", &lock.wait_ns).map(add));
        let shares = lock.contended_share.base.zip(lock.contended_share.run);
        all.extend(shares.map(|(base, run)| add(("contended share".to_owned(), Both { base, run }))));
    }
    all
}

fn lock_name(lock: &CompareLock) -> String {
    match lock.kind.base == lock.kind.run {
        true => format!("{} ({})", lock.lock, lock.kind.run),
        false => format!("{} ({}, was {})", lock.lock, lock.kind.run, lock.kind.base),
    }
}

fn quantiles(name: &str, both: &Both<Percentiles>) -> impl Iterator<Item = (String, Both<f64>)> {
    let at = |pick: fn(&Percentiles) -> u64| Both { base: pick(&both.base) as f64, run: pick(&both.run) as f64 };
    let (stem, unit) = name.strip_suffix("_ns").map_or((name, ""), |stem| (stem, " ns"));
    let name = |quantile: &str| format!("{stem} {quantile}{unit}");
    let all = [(name("p50"), at(|p| p.p50)), (name("p99"), at(|p| p.p99)), (name("p99.9"), at(|p| p.p999))];
    all.into_iter()
}

/// What heads the list of differences of a pair.
pub(super) fn differences_heading(comparison: &Comparison, pair: &ComparedPair) -> String {
    match comparison.pairs.len() {
        1 => "What else differs".to_owned(),
        _ => format!("What else differs between run {} and its base {}", pair.run + 1, pair.base + 1),
    }
}

/// A difference without its name.
pub(super) fn difference(one: &Difference) -> String {
    let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "not known".to_owned());
    format!("{} in the base, {} in this run", side(&one.base), side(&one.run))
}

/// What only one side has.
pub(super) fn only_in(one: &Unmatched) -> String {
    match one.only_in {
        Side::Base => format!("{}: in the base only", one.what),
        Side::Run => format!("{}: in this run only", one.what),
    }
}

/// A condition against one row.
pub(super) fn condition_row(comparison: &Comparison, one: &ConditionRow) -> String {
    let row = &comparison.rows[one.row];
    let labels = labels(comparison);
    let mut name = labels.of(row);
    name.extend((!labels.several_roles()).then(|| row.role.clone()));
    format!("{}: {}", name.join(", "), one.why)
}
