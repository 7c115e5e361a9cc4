//! Finished runs held against each other: before and after a change, two machines, or variants within a run.
//!
//! Each run has its figures within itself, where blocks pair and regimes are told apart ([`crate::analyse`]); here a
//! ratio is made across them. Of two runs of one host it asks what a *change* did, and then all that the machine did
//! meanwhile is noise, for which its interval allows (`between.rs`); of one scenario on two hosts it asks how the
//! *hosts* differ, and then the machine is the answer.

mod between;
mod condition;
mod differences;
mod rows;

pub use condition::{Condition, ConditionError, judge};

use record::{ArmSummary, Asks, ComparedPair, ComparedRun, Comparison, Kind, Run, SCHEMA_VERSION, Side, Unmatched};
use std::fmt;

/// A run, and where it was read from.
#[derive(Copy, Clone, Debug)]
pub struct NamedRun<'a> {
    /// The file.
    pub path: &'a str,
    /// What it says.
    pub run: &'a Run,
}

/// Why runs cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompareError {
    /// One run alone, and no arm of it to hold the others against.
    Alone {
        /// The run.
        path: String,
        /// Its variants.
        arms: Vec<String>,
    },
    /// One run twice.
    SameRun {
        /// As it was named first.
        first: String,
        /// As it was named again.
        second: String,
    },
    /// The arm to hold the others against is not in a run.
    NoArm {
        /// The run.
        path: String,
        /// The arm asked for.
        arm: String,
        /// What it has.
        arms: Vec<String>,
    },
    /// No variant with a role that both have.
    NothingInCommon {
        /// The run held against.
        base: String,
        /// The run in question.
        run: String,
        /// The variants of the one.
        base_arms: Vec<String>,
        /// The variants of the other.
        run_arms: Vec<String>,
    },
}

impl std::error::Error for CompareError {}

impl fmt::Display for CompareError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompareError::Alone { path, arms } => write!(
                f,
                "`{path}` is the only run: name a second one, or hold its variants against one of them with --base \
                 ARM ({})",
                arms.join(", ")
            ),
            CompareError::SameRun { first, second } => write!(
                f,
                "`{first}` and `{second}` are the same run, which differs from itself in nothing: name another, or \
                 compare its variants with --base ARM"
            ),
            CompareError::NoArm { path, arm, arms } => {
                let near = plan::nearest(arm, arms).map(|near| format!("; did you mean `{near}`?"));
                let near = near.unwrap_or_default();
                write!(f, "--base {arm}: `{path}` has no such arm; it has {}{near}", arms.join(", "))
            }
            CompareError::NothingInCommon { base, run, base_arms, run_arms } => write!(
                f,
                "`{run}` ({}) and `{base}` ({}) have no variant in common with a role in common: run both with the \
                 same names, since figures are compared by them",
                run_arms.join(", "),
                base_arms.join(", ")
            ),
        }
    }
}

/// Holds every run against the first of its own host, and the first of each other host against the first of all; with
/// `base_arm` the variants of each run against that one of the same run.
///
/// # Errors
/// [`CompareError`]: what to name instead.
pub fn compare(runs: &[NamedRun], base_arm: Option<&str>) -> Result<Comparison, CompareError> {
    told_apart(runs)?;
    let mut comparison = Comparison {
        schema_version: SCHEMA_VERSION,
        rows: Vec::new(),
        locks: Vec::new(),
        runs: runs.iter().map(described).collect(),
        pairs: Vec::new(),
        conditions: Vec::new(),
    };
    match base_arm {
        Some(arm) => {
            for (index, named) in runs.iter().enumerate() {
                within(&mut comparison, index, named, arm)?;
            }
        }
        None => {
            if let [alone] = runs {
                return Err(CompareError::Alone { path: alone.path.to_owned(), arms: variants(alone.run) });
            }
            for (run, base) in (1..runs.len()).map(|run| (run, base_of(runs, run))) {
                across(&mut comparison, runs, run, base)?;
            }
        }
    }
    Ok(comparison)
}

/// Two sides of a pair, and what their ratio answers.
#[derive(Copy, Clone)]
struct Sides<'a> {
    base: &'a Run,
    run: &'a Run,
    places: (usize, usize),
    asks: Asks,
}

/// A run is known by when, where and from what seed it was made, however its file is called.
fn told_apart(runs: &[NamedRun]) -> Result<(), CompareError> {
    let identity = |run: &Run| (run.started_utc.clone(), run.host.hostname.clone(), run.seed, run.duration_s.to_bits());
    for (index, second) in runs.iter().enumerate() {
        if let Some(first) = runs[..index].iter().find(|first| identity(first.run) == identity(second.run)) {
            return Err(CompareError::SameRun { first: first.path.to_owned(), second: second.path.to_owned() });
        }
    }
    Ok(())
}

/// The first run of the same host, or where that is this one the first of all.
fn base_of(runs: &[NamedRun], run: usize) -> usize {
    let own = runs.iter().position(|other| same_host(other.run, runs[run].run)).unwrap_or(0);
    if own == run { 0 } else { own }
}

fn same_host(a: &Run, b: &Run) -> bool {
    let identity = |run: &Run| (run.host.hostname.clone(), run.host.cpu_model.clone(), run.host.cpus);
    identity(a) == identity(b)
}

fn described(named: &NamedRun) -> ComparedRun {
    let run = named.run;
    ComparedRun {
        path: named.path.to_owned(),
        host: run.host.hostname.clone(),
        cpu_model: run.host.cpu_model.clone(),
        started_utc: run.started_utc.clone(),
        tool: run.tool.clone(),
        seed: run.seed,
        title: run.scenario.title.clone(),
        scenario_sha256: run.scenario.sha256.clone(),
        resolution: run.method.resolution,
        headline_regime: run.method.headline_regime.clone(),
        blocks: run.method.blocks,
    }
}

fn variants(run: &Run) -> Vec<String> {
    candidates(run).map(|arm| arm.name.clone()).collect()
}

fn candidates(run: &Run) -> impl Iterator<Item = &ArmSummary> {
    run.arms.iter().filter(|arm| arm.kind == Kind::Variant)
}

fn across(comparison: &mut Comparison, runs: &[NamedRun], run: usize, base: usize) -> Result<(), CompareError> {
    let (this, that) = (runs[run].run, runs[base].run);
    let one_scenario = this.scenario.sha256 == that.scenario.sha256;
    let asks = if !same_host(this, that) && one_scenario { Asks::Hosts } else { Asks::Change };
    let sides = Sides { base: that, run: this, places: (base, run), asks };
    let matched: Vec<(&ArmSummary, &ArmSummary)> =
        candidates(this).filter_map(|arm| Some((twin(that, this, arm)?, arm))).collect();
    let before = comparison.rows.len();
    for (base_arm, arm) in &matched {
        rows::add(comparison, &sides, base_arm, arm);
    }
    if comparison.rows.len() == before {
        return Err(CompareError::NothingInCommon {
            base: runs[base].path.to_owned(),
            run: runs[run].path.to_owned(),
            base_arms: variants(that),
            run_arms: variants(this),
        });
    }
    let differences = differences::between(&sides, &matched);
    let unmatched = unmatched(&sides, &matched);
    comparison.pairs.push(ComparedPair { run, base, asks, differences, unmatched });
    Ok(())
}

/// The arm of the same name; where each run has one variant, that one at the same point of the sweep, whatever it is
/// called.
fn twin<'a>(base: &'a Run, run: &Run, arm: &ArmSummary) -> Option<&'a ArmSummary> {
    let lone = |run: &Run| {
        let mut names: Vec<&str> = candidates(run).map(|arm| arm.variant.as_str()).collect();
        names.dedup();
        names.len() == 1
    };
    let same_point = |other: &&ArmSummary| other.sweep == arm.sweep && lone(base) && lone(run);
    candidates(base).find(|other| other.name == arm.name).or_else(|| candidates(base).find(same_point))
}

fn unmatched(sides: &Sides, matched: &[(&ArmSummary, &ArmSummary)]) -> Vec<Unmatched> {
    let lonely = |what: String, only_in| Unmatched { what, only_in };
    let arms_of_base = candidates(sides.base).filter(|arm| matched.iter().all(|(base, _)| base.name != arm.name));
    let arms_of_run = candidates(sides.run).filter(|arm| matched.iter().all(|(_, run)| run.name != arm.name));
    let mut all: Vec<Unmatched> = arms_of_base.map(|arm| lonely(arm.name.clone(), Side::Base)).collect();
    all.extend(arms_of_run.map(|arm| lonely(arm.name.clone(), Side::Run)));
    for (base, run) in matched {
        let missing = |from: &ArmSummary, other: &ArmSummary, side| {
            let lacks = |role: &&record::RoleSummary| rows::role_of(other, from, &role.role).is_none();
            let named = |role: &record::RoleSummary| lonely(format!("{} of {}", role.role, from.name), side);
            from.roles.iter().filter(lacks).map(named).collect::<Vec<_>>()
        };
        all.extend(missing(base, run, Side::Base));
        all.extend(missing(run, base, Side::Run));
    }
    all
}

fn within(comparison: &mut Comparison, index: usize, named: &NamedRun, base: &str) -> Result<(), CompareError> {
    let run = named.run;
    let sides = Sides { base: run, run, places: (index, index), asks: Asks::Variants };
    let exact = run.arms.iter().find(|arm| arm.name == base);
    let at_point = |arm: &ArmSummary| candidates(run).find(|b| b.variant == base && b.sweep == arm.sweep);
    if exact.is_none() && !candidates(run).any(|arm| arm.variant == base) {
        let mut arms: Vec<String> = candidates(run).map(|arm| arm.variant.clone()).collect();
        arms.dedup();
        arms.extend(
            run.arms.iter().map(|arm| arm.name.clone()).filter(|name| !arms.contains(name)).collect::<Vec<_>>(),
        );
        return Err(CompareError::NoArm { path: named.path.to_owned(), arm: base.to_owned(), arms });
    }
    let before = comparison.rows.len();
    for arm in candidates(run) {
        if let Some(base_arm) = exact.or_else(|| at_point(arm)).filter(|base_arm| base_arm.name != arm.name) {
            rows::add(comparison, &sides, base_arm, arm);
        }
    }
    if comparison.rows.len() == before {
        let arms = variants(run);
        let (base, run) = (format!("{}, --base {base}", named.path), named.path.to_owned());
        return Err(CompareError::NothingInCommon { base, run, base_arms: arms.clone(), run_arms: arms });
    }
    let pair = ComparedPair { run: index, base: index, asks: Asks::Variants, differences: vec![], unmatched: vec![] };
    comparison.pairs.push(pair);
    Ok(())
}

#[cfg(test)]
mod tests;
