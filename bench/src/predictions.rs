//! What the model predicts against what was measured: every scenario of a folder run once, each arm's ratio to the fastest
//! arm of its role beside the modelled one. `bench/README.md` has the method.

mod page;

use crate::coordinator::{Coordinator, NotBuilt, RunError};
use crate::table;
use record::{ArmState, Interval, Kind, ModelledArm, Run};
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};

pub(crate) use page::MARKS;

/// A prediction within this factor of what was measured is a hit.
pub(crate) const BAR: f64 = 2.0;
/// Share of predictions that are to be hits.
pub(crate) const HITS: f64 = 0.9;

/// Measured ratios above this are counted by themselves: it takes little to predict that nothing happens.
const FAR: f64 = 1.5;

/// Modelled times closer than this share are the same: the model sees no difference.
const TIED: f64 = 0.005;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PredictionsError {
    #[error(transparent)]
    NotBuilt(#[from] NotBuilt),
    #[error("{}: no scenario (*.toml) there", .0.display())]
    NoScenario(PathBuf),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Marks(#[from] crate::marks::MarksError),
    #[error("{}: {error}", .file.display())]
    File { file: PathBuf, error: io::Error },
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Which half of a library a scenario belongs to: by its name alone, so that it stays there whatever comes beside it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Half {
    /// Looked at while the model was made.
    Tuned,
    /// Looked at for the score alone.
    SetAside,
}

impl Half {
    /// Bit 32 of the name's FNV-1a hash.
    fn of(name: &str) -> Half {
        let hash = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        if hash >> 32 & 1 == 0 { Half::Tuned } else { Half::SetAside }
    }
}

/// All scenarios.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    schema_version: u32,
    benchmark: &'static str,
    cpu_model: String,
    kernel: String,
    pub(crate) scenarios: Vec<Scored>,
}

/// One run of one scenario.
#[derive(Debug, Serialize)]
pub(crate) struct Scored {
    scenario: String,
    half: Half,
    rows: Vec<Row>,
    /// Arms of which nothing is compared, and why.
    left_out: Vec<LeftOut>,
    /// Pairs of arms whose measured intervals lie apart: how the model has them.
    order: Order,
}

/// One role of one arm.
#[derive(Debug, Serialize)]
struct Row {
    arm: String,
    role: String,
    /// The regime's line transfer, nanoseconds one way; `None` for a worker alone.
    transfer_ns: Option<f64>,
    measured_ns: f64,
    modelled_ns: f64,
    /// Against the fastest arm of that role and regime, as measured.
    measured_ratio: f64,
    modelled_ratio: f64,
    /// The larger of the two ratios over the other.
    off_by: f64,
}

impl Row {
    fn is_hit(&self) -> bool {
        self.off_by <= BAR
    }
}

#[derive(Debug, Serialize)]
struct LeftOut {
    arm: String,
    why: String,
}

#[derive(Debug, Default, Serialize)]
struct Order {
    right: u32,
    /// Pairs that are the same to the model.
    tied: Vec<Pair>,
    wrong: Vec<Pair>,
}

/// Two arms, the faster one first, as measured.
#[derive(Debug, Serialize)]
struct Pair {
    role: String,
    faster: String,
    slower: String,
    measured_ratio: f64,
    modelled_ratio: f64,
}

/// What is asked for.
pub(crate) struct Request<'a> {
    pub(crate) scenarios: &'a Path,
    /// All, without.
    pub(crate) half: Option<Half>,
    pub(crate) only: &'a [String],
}

/// Runs each scenario and scores it.
pub(crate) fn measure(request: &Request<'_>) -> Result<Report, PredictionsError> {
    let coordinator = Coordinator::find()?;
    let (mut scored, mut cpu_model) = (Vec::new(), String::new());
    for (name, path) in scenarios(request)? {
        eprintln!("{name}: running");
        let run = coordinator.run(&path, tempfile::tempdir()?.path(), &["--model"])?;
        cpu_model.clone_from(&run.host.cpu_model);
        scored.push(score(&name, &run));
    }
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned();
    Ok(Report { schema_version: 1, benchmark: "predictions", cpu_model, kernel, scenarios: scored })
}

/// Those asked for, by name.
fn scenarios(request: &Request<'_>) -> Result<Vec<(String, PathBuf)>, PredictionsError> {
    let folder = request.scenarios;
    let listed = std::fs::read_dir(folder)
        .map_err(|error| PredictionsError::File { file: folder.to_owned(), error })?
        .collect::<Result<Vec<_>, _>>()?;
    let mut found: Vec<(String, PathBuf)> = listed
        .into_iter()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .filter_map(|path| Some((path.file_stem()?.to_str()?.to_owned(), path)))
        .filter(|(name, _)| request.half.is_none_or(|half| half == Half::of(name)))
        .filter(|(name, _)| request.only.is_empty() || request.only.contains(name))
        .collect();
    found.sort();
    if found.is_empty() { Err(PredictionsError::NoScenario(folder.to_owned())) } else { Ok(found) }
}

/// A role of an arm, measured and modelled.
struct Seen<'a> {
    arm: &'a str,
    role: &'a str,
    regime: Option<u32>,
    transfer_ns: Option<f64>,
    measured: &'a Interval,
    modelled_ns: f64,
}

fn score(name: &str, run: &Run) -> Scored {
    let (mut seen, mut left_out) = (Vec::new(), Vec::new());
    for arm in run.arms.iter().filter(|arm| !matches!(arm.kind, Kind::Control | Kind::Plain)) {
        let roles = arm.roles.iter().filter_map(|role| Some((role, role.ns_per_op.as_ref()?)));
        let modelled = |role: &str| arm.modelled.as_ref()?.role(role)?.ns_per_op;
        let before = seen.len();
        seen.extend(roles.filter_map(|(role, measured)| {
            let (arm, transfer_ns) = (&arm.name, arm.regime_transfer_ns);
            let (role, modelled_ns) = (&role.role, modelled(&role.role)?);
            Some(Seen { arm, role, regime: regime(run, arm), transfer_ns, measured, modelled_ns })
        }));
        if seen.len() == before {
            left_out.push(LeftOut {
                arm: arm.name.clone(),
                why: why(arm.state, arm.why.as_deref(), arm.modelled.as_ref()),
            });
        }
    }
    let rows = seen.iter().filter_map(|of| row(of, &seen)).collect();
    Scored { scenario: name.to_owned(), half: Half::of(name), rows, left_out, order: order(&seen) }
}

fn regime(run: &Run, arm: &str) -> Option<u32> {
    run.arms.iter().find(|summary| summary.name == arm)?.regime
}

fn why(state: ArmState, measured: Option<&str>, modelled: Option<&ModelledArm>) -> String {
    let of_model = modelled.and_then(|modelled| modelled.why.clone());
    match (measured, of_model) {
        (Some(why), _) => format!("not measured: {why}"),
        (None, Some(why)) => format!("not modelled: {why}"),
        (None, None) => format!("{state:?}: no time of a pass in both"),
    }
}

/// The same role in arms of the same regime; a worker alone has no transfer, and belongs to any.
fn compares(a: &Seen<'_>, b: &Seen<'_>) -> bool {
    a.role == b.role && (a.regime == b.regime || a.transfer_ns.is_none() || b.transfer_ns.is_none())
}

/// Against the fastest of its like; `None` where it has none.
fn row(of: &Seen<'_>, seen: &[Seen<'_>]) -> Option<Row> {
    let like: Vec<&Seen> = seen.iter().filter(|other| compares(of, other)).collect();
    let fastest = like.iter().min_by(|a, b| a.measured.median.total_cmp(&b.measured.median))?;
    if like.len() < 2 {
        return None;
    }
    let measured_ratio = of.measured.median / fastest.measured.median;
    let modelled_ratio = of.modelled_ns / fastest.modelled_ns;
    let off_by = (measured_ratio / modelled_ratio).max(modelled_ratio / measured_ratio);
    Some(Row {
        arm: of.arm.to_owned(),
        role: of.role.to_owned(),
        transfer_ns: of.transfer_ns,
        measured_ns: of.measured.median,
        modelled_ns: of.modelled_ns,
        measured_ratio,
        modelled_ratio,
        off_by,
    })
}

fn order(seen: &[Seen<'_>]) -> Order {
    let mut order = Order::default();
    for (nth, a) in seen.iter().enumerate() {
        for b in seen[nth + 1..].iter().filter(|b| compares(a, b)) {
            let (faster, slower) = match () {
                () if a.measured.high < b.measured.low => (a, b),
                () if b.measured.high < a.measured.low => (b, a),
                () => continue,
            };
            let pair = Pair {
                role: a.role.to_owned(),
                faster: faster.arm.to_owned(),
                slower: slower.arm.to_owned(),
                measured_ratio: slower.measured.median / faster.measured.median,
                modelled_ratio: slower.modelled_ns / faster.modelled_ns,
            };
            match pair.modelled_ratio {
                ratio if (1.0 - TIED..=1.0 + TIED).contains(&ratio) => order.tied.push(pair),
                ratio if ratio > 1.0 => order.right += 1,
                _ => order.wrong.push(pair),
            }
        }
    }
    order
}

impl Report {
    fn rows(&self, half: Option<Half>) -> impl Iterator<Item = &Row> {
        self.scenarios.iter().filter(move |s| half.is_none_or(|half| s.half == half)).flat_map(|s| &s.rows)
    }

    /// Hits, and rows, of those whose measured ratio is above `above`.
    fn hits(&self, half: Option<Half>, above: f64) -> (usize, usize) {
        let rows = || self.rows(half).filter(|row| row.measured_ratio > above);
        (rows().filter(|row| row.is_hit()).count(), rows().count())
    }

    /// For the table of everything: how many of all predictions are hits.
    pub(crate) fn row(&self) -> table::Row {
        let (hits, rows) = self.hits(None, 0.0);
        let what = format!("times of {} scenarios' arms, modelled", self.scenarios.len());
        table::Row::share(what, "as measured", [hits as u64, rows as u64], HITS).noting("within a factor of 2")
    }

    /// 0 where enough of all predictions are hits, else 1.
    pub(crate) fn exit_status(&self) -> u8 {
        let (hits, rows) = self.hits(None, 0.0);
        u8::from((hits as f64) < HITS * rows as f64)
    }

    pub(crate) fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report is plain data")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen<'a>(arm: &'a str, measured: &'a Interval, modelled_ns: f64) -> Seen<'a> {
        Seen { arm, role: "r", regime: Some(0), transfer_ns: Some(50.0), measured, modelled_ns }
    }

    fn around(median: f64) -> Interval {
        Interval { median, low: median * 0.9, high: median * 1.1 }
    }

    #[test]
    fn a_row_is_held_against_the_fastest_measured_one() {
        let (slow, fast) = (around(40.0), around(10.0));
        let all = [seen("slow", &slow, 90.0), seen("fast", &fast, 10.0)];
        let row = row(&all[0], &all).unwrap();
        assert_eq!((row.measured_ratio, row.modelled_ratio, row.off_by), (4.0, 9.0, 2.25));
        assert!(!row.is_hit());
    }

    #[test]
    fn order_is_asked_only_of_intervals_that_lie_apart() {
        let (a, b, c) = (around(10.0), around(10.5), around(30.0));
        let order = order(&[seen("a", &a, 10.0), seen("b", &b, 12.0), seen("c", &c, 11.0)]);
        assert_eq!((order.right, order.tied.len(), order.wrong.len()), (1, 0, 1));
        assert_eq!((order.wrong[0].faster.as_str(), order.wrong[0].slower.as_str()), ("b", "c"));
    }

    #[test]
    fn arms_of_different_regimes_are_not_compared() {
        let (a, b) = (around(10.0), around(30.0));
        let other = Seen { regime: Some(1), ..seen("b", &b, 30.0) };
        assert!(row(&other, &[seen("a", &a, 10.0)]).is_none());
        assert_eq!(order(&[seen("a", &a, 10.0), other]).right, 0);
    }

    #[test]
    fn halves_go_by_the_name() {
        assert_eq!(Half::of("false_sharing"), Half::Tuned);
        assert_eq!(Half::of("true_sharing"), Half::SetAside);
    }
}
