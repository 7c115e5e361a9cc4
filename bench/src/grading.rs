//! How often a right answer fails: the reference of each exercise graded again and again, and what came of it.

use crate::coordinator::{Coordinator, NotBuilt};
use record::{Grade, GradeVerdict, Interval};
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GradingError {
    #[error(transparent)]
    NotBuilt(#[from] NotBuilt),
    #[error("{}: no exercise (a folder with exercise.toml) there", .0.display())]
    NoExercise(PathBuf),
    #[error("`coordinator grade {}` ended with {status}: {said}", .file.display())]
    Grade { file: PathBuf, status: ExitStatus, said: String },
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// All exercises.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    schema_version: u32,
    benchmark: &'static str,
    cpu_model: String,
    kernel: String,
    exercises: Vec<Tally>,
}

/// What came of one exercise's file.
#[derive(Debug, Default, Serialize)]
struct Tally {
    exercise: String,
    file: String,
    runs: u32,
    pass: u32,
    not_yet: u32,
    inconclusive: u32,
    host_unsuitable: u32,
    /// The least of the shares recovered, and of their lower ends; `None` where nothing was measured.
    least_recovered: Option<Interval>,
    /// Reasons of what did not pass, each once.
    why: Vec<String>,
}

impl Tally {
    fn note(&mut self, grade: &Grade) {
        self.runs += 1;
        let slot = match grade.verdict {
            GradeVerdict::Pass => &mut self.pass,
            GradeVerdict::NotYet => &mut self.not_yet,
            GradeVerdict::Inconclusive => &mut self.inconclusive,
            GradeVerdict::HostUnsuitable => &mut self.host_unsuitable,
        };
        *slot += 1;
        if grade.verdict != GradeVerdict::Pass && self.why.len() < 20 {
            self.why.push(format!("seed {}: {}", grade.seed, grade.why));
        }
        let recovered = grade.effect.as_ref().and_then(|effect| effect.recovered);
        let least = [self.least_recovered, recovered].into_iter().flatten();
        self.least_recovered = least.min_by(|a, b| a.low.total_cmp(&b.low));
    }
}

/// What is asked for.
pub(crate) struct Request<'a> {
    pub(crate) exercises: &'a Path,
    pub(crate) only: &'a [String],
    pub(crate) file: &'a str,
    pub(crate) runs: u32,
    pub(crate) repetitions: Option<u32>,
}

/// Grades each exercise's file so often, exercise after exercise within each round, so that a bad spell of the machine falls
/// on all of them.
pub(crate) fn measure(request: &Request<'_>) -> Result<Report, GradingError> {
    let coordinator = Coordinator::find()?;
    let folders = folders(request)?;
    let name = |folder: &Path| folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let tally = |folder: &PathBuf| Tally { exercise: name(folder), file: request.file.to_owned(), ..Tally::default() };
    let mut exercises: Vec<Tally> = folders.iter().map(tally).collect();
    let mut host = (String::new(), String::new());
    for round in 1..=request.runs {
        for (folder, tally) in folders.iter().zip(&mut exercises) {
            let grade = grade(&coordinator, &folder.join(request.file), request.repetitions)?;
            host = (grade.host.cpu_model.clone(), grade.host.kernel.clone());
            tally.note(&grade);
        }
        let failed: u32 = exercises.iter().map(|tally| tally.not_yet).sum();
        eprintln!("round {round} of {}: {failed} failed so far", request.runs);
    }
    Ok(Report { schema_version: 1, benchmark: "grading", cpu_model: host.0, kernel: host.1, exercises })
}

fn folders(request: &Request<'_>) -> Result<Vec<PathBuf>, GradingError> {
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(request.exercises)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.join("exercise.toml").exists() && crate::is_asked(request.only, &name) {
            folders.push(path);
        }
    }
    folders.sort();
    if folders.is_empty() { Err(GradingError::NoExercise(request.exercises.to_owned())) } else { Ok(folders) }
}

fn grade(coordinator: &Coordinator, file: &Path, repetitions: Option<u32>) -> Result<Grade, GradingError> {
    let mut command = coordinator.command("grade");
    command.arg(file).args(["--json", "--quiet"]);
    if let Some(blocks) = repetitions {
        command.args(["--repetitions", &blocks.to_string()]);
    }
    let output = command.output()?;
    serde_json::from_slice(&output.stdout).map_err(|_| GradingError::Grade {
        file: file.to_owned(),
        status: output.status,
        said: String::from_utf8_lossy(&output.stderr).into_owned(),
    })
}

impl Report {
    /// One JSON object.
    pub(crate) fn json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_else(|error| error.to_string())
    }

    /// A table in Markdown, and the reasons of what did not pass.
    pub(crate) fn markdown(&self) -> String {
        let mut text = format!(
            "{}, Linux {}\n\n| exercise | file | runs | pass | not yet | inconclusive | host unsuitable | least recovered |\n\
             |---|---|---|---|---|---|---|---|\n",
            self.cpu_model, self.kernel
        );
        for tally in &self.exercises {
            let recovered = tally.least_recovered.map_or("–".to_owned(), |share| {
                format!("{:.0} % (from {:.0} %)", share.median * 100.0, share.low * 100.0)
            });
            text.push_str(&format!(
                "| {} | {} | {} | {} | {} | {} | {} | {recovered} |\n",
                tally.exercise,
                tally.file,
                tally.runs,
                tally.pass,
                tally.not_yet,
                tally.inconclusive,
                tally.host_unsuitable
            ));
        }
        for tally in &self.exercises {
            tally.why.iter().for_each(|why| text.push_str(&format!("\n- {}: {why}", tally.exercise)));
        }
        text
    }

    /// 0: nothing was told "not yet"; 1: something was.
    pub(crate) fn exit_status(&self) -> u8 {
        u8::from(self.exercises.iter().any(|tally| tally.not_yet > 0))
    }
}
