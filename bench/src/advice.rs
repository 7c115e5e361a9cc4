//! What `advise` says of the published cases, held against what was done there: each case as it stands, with its fields
//! renamed and in another order, and with the parts that fields play given to others, so that another layout is right.
//! `bench/README.md` has the method.

mod page;
mod twist;

use crate::coordinator::{Coordinator, NotBuilt};
use analysis::{Kept, Who};
use record::{AdviseRun, Interval, Run};
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
pub(crate) use twist::Twist;

pub(crate) use page::MARKS;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AdviceError {
    #[error(transparent)]
    NotBuilt(#[from] NotBuilt),
    #[error("{}: no case (*.toml with a variant `before` and one `after`) there", .0.display())]
    NoCase(PathBuf),
    #[error("{what} ended with {status}: {said}")]
    Ended { what: String, status: std::process::ExitStatus, said: String },
    #[error(transparent)]
    Marks(#[from] crate::marks::MarksError),
    #[error("{}: {error}", .file.display())]
    File { file: PathBuf, error: io::Error },
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What is asked for.
pub(crate) struct Request<'a> {
    pub(crate) cases: &'a Path,
    /// All, without.
    pub(crate) only: &'a [String],
    pub(crate) twists: &'a [Twist],
    /// What `advise` may take for each.
    pub(crate) budget: &'a str,
    /// Blocks of the run that holds what was advised against what was published.
    pub(crate) repetitions: u32,
}

/// All cases.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    schema_version: u32,
    benchmark: &'static str,
    cpu_model: String,
    kernel: String,
    pub(crate) rows: Vec<Row>,
}

/// One case in one twist.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    case: String,
    twist: Twist,
    /// The published change; of several the fastest.
    change: String,
    /// Whether it changes what roles do, beside where fields lie.
    change_is_code: bool,
    /// Its gain, measured here: the time of a pass before over that after.
    published: Option<Interval>,
    /// Layouts and changed programs that were advised; `present` is to leave it.
    layout: String,
    code_changes: Vec<String>,
    /// What of them is held against the published change: the layout where that is one, else the fastest of all.
    best: String,
    /// Its gain, measured beside the published one.
    advised: Option<Interval>,
    /// It against the published change: the latter's time over its own.
    against_published: Option<Interval>,
    /// What the layout advised differs from the present one by.
    layout_gain: Option<Interval>,
    /// The present layout against itself, as a ratio minus 1.
    noise: Option<f64>,
    /// False where `advise` itself said that noise hid the answer.
    conclusive: bool,
    /// Roles that the layout advised makes slower.
    slower_roles: Vec<String>,
    verdict: Outcome,
}

/// How the advice stands.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// Better than what was published.
    Better,
    /// No measurement tells the two apart.
    AsGood,
    /// What was published is better.
    Worse,
    /// The layout that was advised is slower than the present one.
    Slower,
    /// Noise hid it: from this comparison, or from `advise`, which said so.
    Unresolved,
}

/// Asks and compares.
///
/// # Errors
/// [`AdviceError`] where there is nothing to ask about, or a command failed.
pub(crate) fn measure(request: &Request<'_>) -> Result<Report, AdviceError> {
    let coordinator = Coordinator::find()?;
    let (mut rows, mut cpu_model) = (Vec::new(), String::new());
    for path in cases(request)? {
        let text = std::fs::read_to_string(&path).map_err(|error| AdviceError::File { file: path.clone(), error })?;
        for (before, rivals) in pairs(&text) {
            for &twist in request.twists {
                let name = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
                let name = if before == "before" { name } else { format!("{name}, {before}") };
                eprintln!("{name}: {}", twist.name());
                let asked = Asked { coordinator: &coordinator, request, before: &before, rivals: &rivals };
                let (row, cpu) = asked.row(name, &twist.of(&text), twist)?;
                cpu_model = cpu;
                eprint!("  {}", page::line(&row));
                rows.push(row);
            }
        }
    }
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned();
    Ok(Report { schema_version: 1, benchmark: "advice", cpu_model, kernel, rows })
}

fn cases(request: &Request<'_>) -> Result<Vec<PathBuf>, AdviceError> {
    let folder = request.cases;
    let failed = |error| AdviceError::File { file: folder.to_owned(), error };
    let entries = std::fs::read_dir(folder).map_err(failed)?.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    let stem = |path: &PathBuf| path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let mut found: Vec<PathBuf> = entries
        .into_iter()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .filter(|path| request.only.is_empty() || request.only.contains(&stem(path)))
        .collect();
    found.sort();
    if found.is_empty() { Err(AdviceError::NoCase(folder.to_owned())) } else { Ok(found) }
}

/// The variants of a case that are before some change, each with those that may be put in its place: `after-16` in that of
/// `before-16`, and whatever has no such pair in that of `before`.
fn pairs(text: &str) -> Vec<(String, Vec<String>)> {
    let names: Vec<&str> = twist::variants(text);
    let pair_of = |name: &str| name.strip_prefix("after").map(|rest| format!("before{rest}"));
    let before_of = |name: &str| {
        pair_of(name).filter(|before| names.contains(&before.as_str())).unwrap_or_else(|| "before".to_owned())
    };
    let before = names.iter().filter(|name| name.starts_with("before"));
    before
        .map(|before| {
            let rivals = names.iter().filter(|name| !name.starts_with("before") && before_of(name) == **before);
            ((*before).to_owned(), rivals.map(|name| (*name).to_owned()).collect::<Vec<_>>())
        })
        .filter(|(_, rivals)| !rivals.is_empty())
        .collect()
}

/// A variant and those that may be put in its place.
struct Asked<'a> {
    coordinator: &'a Coordinator,
    request: &'a Request<'a>,
    before: &'a str,
    rivals: &'a [String],
}

impl Asked<'_> {
    /// Asks for advice on the text's variant `before` alone, then runs it beside its rivals and all that was
    /// advised.
    fn row(&self, case: String, text: &str, twist: Twist) -> Result<(Row, String), AdviceError> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("case.toml");
        std::fs::write(&file, text)?;
        let advise: AdviseRun = self.json(
            &case,
            self.coordinator.command("advise").arg(&file).args([
                "--only",
                self.before,
                "--budget",
                self.request.budget,
                "--json",
                "--quiet",
            ]),
        )?;
        let mut all = text.to_owned();
        let mut options = vec![self.before.to_owned()];
        options.extend_from_slice(self.rivals);
        let wanted = std::iter::once(&advise.advice.layout).chain(&advise.advice.code_changes);
        for layout in wanted.filter_map(|name| advise.layouts[1..].iter().find(|layout| layout.name == *name)) {
            all.push_str(&format!("\n{}", layout.variant));
            options.push(variant(&layout.name));
        }
        std::fs::write(&file, twist::without_claims(&all))?;
        let mut command = self.coordinator.command("run");
        command.arg(&file).args(["--json", "--quiet", "--repetitions", &self.request.repetitions.to_string()]);
        command.arg("--out").arg(folder.path());
        options.iter().for_each(|name| _ = command.args(["--only", name]));
        let run: Run = self.json(&case, &mut command)?;
        Ok((self.judged(case, twist, &advise, &run), run.host.cpu_model))
    }

    fn json<T: serde::de::DeserializeOwned>(&self, case: &str, command: &mut Command) -> Result<T, AdviceError> {
        let output = command.output()?;
        serde_json::from_slice(&output.stdout).map_err(|_| AdviceError::Ended {
            what: format!("{case}: {command:?}"),
            status: output.status,
            said: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    fn judged(&self, case: String, twist: Twist, advise: &AdviseRun, run: &Run) -> Row {
        let regime = |name: &str| run.arms.iter().find(|arm| arm.name == name).and_then(|arm| arm.regime);
        let kept = Kept::of(&run.observations, regime, run.seed);
        let first = run.arms.iter().find(|arm| arm.name == self.before);
        let roles: Vec<&str> =
            first.map_or(Vec::new(), |arm| arm.roles.iter().map(|role| role.role.as_str()).collect());
        let over = |base: &str, arm: &str| kept.gain_over(base, arm, &roles);
        let layout = match advise.advice.layout == advise.layouts[0].name {
            true => self.before.to_owned(),
            false => variant(&advise.advice.layout),
        };
        let fast = |name: &String| over(self.before, name).map_or(1.0, |gain| gain.median);
        let published = self.rivals.iter().max_by(|a, b| fast(a).total_cmp(&fast(b)));
        let change_is_code =
            published.is_some_and(|published| changes_code(&run.scenario.text, self.before, published));
        let code = advise.advice.code_changes.iter().filter(|_| change_is_code).map(|name| variant(name));
        let advised = std::iter::once(layout.clone()).chain(code);
        let best = advised.max_by(|a, b| fast(a).total_cmp(&fast(b))).unwrap_or_else(|| layout.clone());
        let noise = over(self.before, "control").map(|control| control.high.max(1.0 / control.low) - 1.0);
        let exact = Some(Interval { median: 1.0, low: 1.0, high: 1.0 });
        let gain = |base: &str, arm: &str| if base == arm { exact } else { over(base, arm) };
        let slower = |role: &&&str| {
            layout != self.before && {
                let twin = kept.gain(self.before, "control", role, Who::Median);
                let noise = twin.map(|twin| twin.high.max(1.0 / twin.low) - 1.0);
                verdict(kept.gain(self.before, &layout, role, Who::Median), noise) == Some(false)
            }
        };
        let slower_roles: Vec<String> = roles.iter().filter(slower).map(|role| (*role).to_owned()).collect();
        let against_published = published.and_then(|published| gain(published, &best));
        Row {
            published: published.and_then(|published| over(self.before, published)),
            change_is_code,
            change: published.cloned().unwrap_or_default(),
            advised: gain(self.before, &best),
            layout_gain: gain(self.before, &layout),
            verdict: match outcome(against_published, gain(self.before, &layout), &slower_roles, noise) {
                Outcome::Worse if !advise.advice.conclusive => Outcome::Unresolved,
                outcome => outcome,
            },
            conclusive: advise.advice.conclusive,
            layout: advise.advice.layout.clone(),
            code_changes: advise.advice.code_changes.clone(),
            best: best.strip_prefix(ADVISED).unwrap_or(&best).to_owned(),
            against_published,
            noise,
            slower_roles,
            case,
            twist,
        }
    }
}

/// What stands before a layout's name in the variant that runs it.
const ADVISED: &str = "advised-";

/// The variant of that layout.
fn variant(layout: &str) -> String {
    format!("{ADVISED}{layout}")
}

/// Whether two variants of a scenario's text differ in what its roles do.
fn changes_code(text: &str, before: &str, after: &str) -> bool {
    let Ok(loaded) = scenario::parse("case.toml", text) else { return false };
    let roles = |variant: &str| {
        let arm = loaded.plan.arms.iter().find(|arm| arm.variant == variant);
        arm.map(|arm| arm.case.roles.iter().map(|role| role.steps.clone()).collect::<Vec<_>>())
    };
    roles(before) != roles(after)
}

/// Whether a gain is one, or a loss, beyond the noise; `None` for neither.
fn verdict(gain: Option<Interval>, noise: Option<f64>) -> Option<bool> {
    let (gain, noise) = (gain?, noise?);
    match () {
        () if gain.low > 1.0 && gain.median - 1.0 > noise => Some(true),
        () if gain.high < 1.0 && 1.0 / gain.median - 1.0 > noise => Some(false),
        () => None,
    }
}

fn outcome(
    against: Option<Interval>,
    layout: Option<Interval>,
    slower_roles: &[String],
    noise: Option<f64>,
) -> Outcome {
    match (verdict(against, noise), verdict(layout, noise)) {
        _ if against.is_none() || noise.is_none() => Outcome::Unresolved,
        (_, Some(false)) => Outcome::Slower,
        _ if !slower_roles.is_empty() => Outcome::Slower,
        (Some(true), _) => Outcome::Better,
        (Some(false), _) => Outcome::Worse,
        (None, _) => Outcome::AsGood,
    }
}

impl Report {
    /// 0 where no advice is worse than what was published, nor slower than what was there; else 1.
    pub(crate) fn exit_status(&self) -> u8 {
        u8::from(self.rows.iter().any(|row| matches!(row.verdict, Outcome::Worse | Outcome::Slower)))
    }

    pub(crate) fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report is plain data")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn around(median: f64) -> Option<Interval> {
        Some(Interval { median, low: median * 0.98, high: median * 1.02 })
    }

    #[test]
    fn advice_is_judged_by_what_it_does_to_the_present_layout_first() {
        let noise = Some(0.03);
        assert_eq!(outcome(around(1.0), around(2.0), &[], noise), Outcome::AsGood);
        assert_eq!(outcome(around(1.5), around(2.0), &[], noise), Outcome::Better);
        assert_eq!(outcome(around(0.5), around(2.0), &[], noise), Outcome::Worse);
        assert_eq!(outcome(around(1.5), around(0.8), &[], noise), Outcome::Slower);
        assert_eq!(outcome(around(1.5), around(2.0), &["reader".to_owned()], noise), Outcome::Slower);
        assert_eq!(outcome(None, around(2.0), &[], noise), Outcome::Unresolved);
    }

    #[test]
    fn a_change_is_of_code_where_loops_differ() {
        let text = "[field.a]\ntype = \"u64\"\n[[variant]]\nname = \"before\"\n[[variant]]\nname = \"after\"\nplacement = { pad = 64 }\n\
                    [[variant]]\nname = \"less\"\n[variant.set]\n\"role.r.loop\" = [\"load a\"]\n[[role]]\nname = \"r\"\nloop = [\"bump a\"]\n";
        assert!(!changes_code(text, "before", "after") && changes_code(text, "before", "less"));
    }

    #[test]
    fn before_and_after_go_together_by_what_follows() {
        let variant = |name: &str| format!("[[variant]]\nname = \"{name}\"\n");
        let names = ["before", "after", "before-16", "after-16", "after-64", "packed"];
        let text: String = names.into_iter().map(variant).collect();
        let pair =
            |before: &str, rivals: &[&str]| (before.to_owned(), rivals.iter().map(|r| (*r).to_owned()).collect());
        assert_eq!(pairs(&text), [pair("before", &["after", "after-64", "packed"]), pair("before-16", &["after-16"])]);
    }
}
