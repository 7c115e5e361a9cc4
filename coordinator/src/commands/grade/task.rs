//! What is graded: the exercise, its starter and reference, and the student's file, read and checked.

use crate::cli::GradeOptions;
use crate::exit::CommandError;
use crate::overrides;
use crate::report::text::shown;
use exercise::Exercise;
use plan::{Arm, Measure, Plan};
use scenario::Loaded;
use std::path::{Path, PathBuf};

/// One exercise and one answer to it.
pub(super) struct Task {
    pub(super) exercise: Exercise,
    /// What each file is, its path, and its text.
    pub(super) files: Vec<(&'static str, PathBuf, String)>,
    pub(super) starter: Entry,
    pub(super) yours: Entry,
    /// None where the folder holds none.
    pub(super) reference: Option<Entry>,
}

/// One of the three scenarios: its one arm, under the name that results give it, in the starter's window.
pub(super) struct Entry {
    pub(super) arm: Arm,
    pub(super) loaded: Loaded,
}

impl Task {
    /// Reads all files of a grading.
    ///
    /// # Errors
    /// [`CommandError`] for a file that is refused, and for an exercise whose rules do not fit its starter.
    pub(super) fn load(options: &GradeOptions) -> Result<Task, CommandError> {
        let folder = options.exercise.clone().unwrap_or_else(|| folder_of(&options.file));
        let (asked, text) = exercise::load(&folder.join(exercise::FILE))?;
        let mut files = vec![("exercise", folder.join(exercise::FILE), text)];
        let mut read = |what: &'static str, path: &Path| -> Result<Entry, CommandError> {
            let loaded = overrides::load_on(path, options.cpus.as_deref())?;
            files.push((what, path.to_owned(), loaded.source.text.clone()));
            entry(what, loaded, path)
        };
        let starter = read("starter", &folder.join("starter.toml"))?;
        let mut yours = read("yours", &options.file)?;
        let path = options.reference.clone().unwrap_or_else(|| folder.join("reference.toml"));
        let wanted = options.reference.is_some() || path.exists();
        let mut reference = wanted.then(|| read("reference", &path)).transpose()?;
        for entry in reference.iter_mut().chain([&mut yours]) {
            (entry.arm.window, entry.arm.warm_up) = (starter.arm.window, starter.arm.warm_up);
        }
        exercise::fits(&asked, &starter.arm).map_err(|why| {
            let file = folder.join(exercise::FILE);
            CommandError::Usage(format!("{}: {why}: the exercise is at fault, not your file", shown(&file)))
        })?;
        Ok(Task { exercise: asked, files, starter, yours, reference })
    }

    /// A plan of these entries alone, measured as the starter says, with no baselines.
    pub(super) fn plan(&self, entries: &[&Entry]) -> Plan {
        let starter = &self.starter.loaded.plan;
        Plan {
            arms: entries.iter().map(|entry| entry.arm.clone()).collect(),
            measure: Measure { baselines: Some(Vec::new()), ..starter.measure.clone() },
            expects: Vec::new(),
            predictions: Vec::new(),
            ..starter.clone()
        }
    }
}

fn folder_of(file: &Path) -> PathBuf {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// The one arm of a file. Its window may be the file's own until the starter's takes its place.
fn entry(what: &str, loaded: Loaded, path: &Path) -> Result<Entry, CommandError> {
    match loaded.plan.arms.as_slice() {
        [arm] => {
            let arm = Arm { name: what.to_owned(), variant: what.to_owned(), ..arm.clone() };
            Ok(Entry { arm, loaded })
        }
        arms => Err(CommandError::Usage(format!(
            "{}: it has {} arms, and an answer is one: leave [[variant]] and [sweep] out, and write the placement at the \
             top of the file",
            shown(path),
            arms.len()
        ))),
    }
}
