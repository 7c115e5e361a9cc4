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
    format!("[{}]{} ", index + 1, if base { " base" } else { "" })
}

/// Which run it is.
pub(super) fn run_line(comparison: &Comparison, index: usize) -> String {
    let run = &comparison.runs[index];
    let hash: String = run.scenario_sha256.chars().take(HASH_DIGITS).collect();
    let resolution = match run.resolution {
        Some(share) => format!("could tell effects from {}", percent(share)),
        None => "its control arm resolved nothing".to_owned(),
    };
    format!("{}; host {}, {}, scenario {hash}; {resolution}", run.path, run.host, run.started_utc)
}

/// What stands in front of a row where there is more than one pair.
pub(super) struct Labels<'a> {
    comparison: &'a Comparison,
    /// Heads of the columns.
    pub(super) columns: Vec<&'static str>,
}

pub(super) fn labels(comparison: &Comparison) -> Labels<'_> {
    let mut columns = Vec::new();
    if comparison.pairs.len() > 1 {
        columns.push("run");
        let hosts: BTreeSet<&str> = comparison.runs.iter().map(|run| run.host.as_str()).collect();
        columns.extend((hosts.len() > 1).then_some("host"));
    }
    Labels { comparison, columns }
}

impl Labels<'_> {
    /// The cells under the heads.
    pub(super) fn of(&self, row: &CompareRow) -> Vec<String> {
        self.at(row.run, row.base)
    }

    fn at(&self, run: usize, base: usize) -> Vec<String> {
        let pair = if run == base { format!("[{}]", run + 1) } else { format!("[{}]/[{}]", run + 1, base + 1) };
        let cell = |name: &&'static str| match *name {
            "run" => pair.clone(),
            _ => self.comparison.runs[run].host.clone(),
        };
        self.columns.iter().map(cell).collect()
    }
}

/// The arm, and where it is called otherwise what it is held against.
pub(super) fn variant(row: &CompareRow) -> String {
    pair_of_arms(&row.variant, &row.base_variant)
}

fn pair_of_arms(variant: &str, base: &str) -> String {
    if variant == base { variant.to_owned() } else { format!("{variant} against {base}") }
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
        "ratio: this over base, above 1 is slower, with its 95 % interval; it is judged on that. least effect told: a \
         smaller one would not have shown here. {}",
        asks.into_iter().collect::<Vec<_>>().join(" ")
    )
}

/// A figure without interval, on both sides.
pub(super) struct Beside {
    pub(super) labels: Vec<String>,
    pub(super) variant: String,
    pub(super) of: String,
    pub(super) figure: String,
    pub(super) base: String,
    pub(super) run: String,
    pub(super) ratio: String,
}

/// Counters, latencies and waits that both sides have.
pub(super) fn beside(comparison: &Comparison) -> Vec<Beside> {
    let labels = labels(comparison);
    let mut all = Vec::new();
    for row in &comparison.rows {
        let line = |figure: String, both: Both<f64>| Beside {
            labels: labels.of(row),
            variant: variant(row),
            of: row.role.clone(),
            ..figures(figure, both)
        };
        all.extend(row.counters.iter().filter(|(_, both)| both.base > 0.0 || both.run > 0.0).map(|(name, both)| {
            line(format!("{name}/op"), *both)
        }));
        for (name, both) in &row.percentiles {
            all.extend(quantiles(name, both).map(|(figure, both)| line(figure, both)));
        }
    }
    for lock in &comparison.locks {
        let line = |figure: String, both: Both<f64>| Beside {
            labels: labels.at(lock.run, lock.base),
            variant: pair_of_arms(&lock.variant, &lock.base_variant),
            of: lock_name(lock),
            ..figures(figure, both)
        };
        all.extend(quantiles("wait_ns", &lock.wait_ns).map(|(figure, both)| line(figure, both)));
        let shares = lock.contended_share.base.zip(lock.contended_share.run);
        all.extend(shares.map(|(base, run)| line("contended_share".to_owned(), Both { base, run })));
    }
    all
}

fn lock_name(lock: &CompareLock) -> String {
    match lock.kind.base == lock.kind.run {
        true => format!("{} ({})", lock.lock, lock.kind.run),
        false => format!("{} ({}, was {})", lock.lock, lock.kind.run, lock.kind.base),
    }
}

fn figures(figure: String, both: Both<f64>) -> Beside {
    let ratio = if both.base > 0.0 { plain(both.run / both.base) } else { "–".to_owned() };
    Beside {
        labels: Vec::new(),
        variant: String::new(),
        of: String::new(),
        figure,
        base: plain(both.base),
        run: plain(both.run),
        ratio,
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
        _ => format!("What else differs between [{}] and its base [{}]", pair.run + 1, pair.base + 1),
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
    let mut name = labels(comparison).of(row);
    name.extend([variant(row), row.role.clone()]);
    format!("{}: {}", name.join(", "), one.why)
}
