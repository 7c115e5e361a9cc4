//! A run that was saved, for the commands that look back: found, read and checked.

use crate::foreign_file;
use crate::report::names::RECORD;
use crate::report::text::{escaped, shown};
use record::{Run, SCHEMA_VERSION};
use serde::Deserialize;
use serde_json::Value;
use serde_json::error::Category;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// A saved run.
#[derive(Debug)]
pub(crate) struct Saved {
    /// Where it was read from.
    pub(crate) path: PathBuf,
    /// The file as it is.
    pub(crate) text: Vec<u8>,
    /// What it says.
    pub(crate) run: Run,
}

/// Why there is no run to read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SavedError {
    /// Nothing there, or it cannot be read.
    #[error(
        "cannot read the run `{}`: {source}; name a run's folder (results/SCENARIO/TIME) or its run.json",
        shown(path)
    )]
    Unreadable { path: PathBuf, source: io::Error },
    /// A folder, but not a run's.
    #[error("`{}` holds no run.json; {cure}", shown(path))]
    NoRecord { path: PathBuf, cure: String },
    /// It ends too early.
    #[error(
        "`{}` ends in the middle, at line {line}, column {column}: it was cut off in copying, or the disk was full; \
         copy it again from where the run left it",
        shown(path)
    )]
    Truncated { path: PathBuf, line: usize, column: usize },
    /// No JSON.
    #[error("`{}` is no JSON: {source}; name a run's folder or its run.json", shown(path))]
    NotJson { path: PathBuf, source: serde_json::Error },
    /// Another version's.
    #[error(
        "`{}` is written in schema version {found}, and this program reads {SCHEMA_VERSION}: read it with the \
         program that made it (its `tool` says {tool})",
        shown(path)
    )]
    OtherVersion { path: PathBuf, found: String, tool: String },
    /// JSON of something else.
    #[error(
        "`{}` is no run's record: {why}; name what `coordinator run` left as run.json, or printed with --json",
        shown(path)
    )]
    NoRun { path: PathBuf, why: String },
}

impl Saved {
    /// Reads a run by its folder or by its `run.json`, whatever that file is called now.
    ///
    /// # Errors
    /// [`SavedError`]: what is there instead.
    pub(crate) fn read(run: &Path) -> Result<Saved, SavedError> {
        let path = if run.is_dir() { run.join(RECORD) } else { run.to_owned() };
        let read = if run.is_dir() { foreign_file::read } else { foreign_file::read_named };
        let text = read(&path).map_err(|source| match source.kind() {
            ErrorKind::NotFound if run.is_dir() => SavedError::NoRecord { path: run.to_owned(), cure: cure(run) },
            _ => SavedError::Unreadable { path: path.clone(), source },
        })?;
        let Head { schema_version: version, tool } = head(&text, &path)?;
        if version.is_null() {
            return Err(SavedError::NoRun { path, why: "it has no `schema_version`".to_owned() });
        }
        if version != SCHEMA_VERSION {
            let tool = escaped(&tool.to_string());
            return Err(SavedError::OtherVersion { path, found: escaped(&version.to_string()), tool });
        }
        match serde_json::from_slice(&text) {
            Ok(run) => Ok(Saved { path, text, run }),
            Err(error) => Err(SavedError::NoRun { path, why: escaped(&error.to_string()) }),
        }
    }
}

/// What says who can read the rest, which is passed over here: a record is large, and its values would be larger.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Head {
    schema_version: Value,
    tool: Value,
}

fn head(text: &[u8], path: &Path) -> Result<Head, SavedError> {
    match serde_json::from_slice(text) {
        // A list would be taken for the values of the keys, in order.
        Ok(head) if text.trim_ascii_start().starts_with(b"{") => Ok(head),
        Ok(_) => Ok(Head::default()),
        Err(source) => match source.classify() {
            // Sound JSON of something else: no version.
            Category::Data => Ok(Head::default()),
            Category::Eof => {
                Err(SavedError::Truncated { path: path.to_owned(), line: source.line(), column: source.column() })
            }
            _ => Err(SavedError::NotJson { path: path.to_owned(), source }),
        },
    }
}

/// What to name in place of a folder that is no run's: often it is the scenario's, one level up.
fn cure(folder: &Path) -> String {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    match entries.filter(|path| path.join(RECORD).is_file()).max() {
        Some(latest) => {
            format!("it holds folders of runs: name one of them, of which `{}` is the last", shown(&latest))
        }
        None => "name a run's folder (results/SCENARIO/TIME) or its run.json".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::logs::Logs;
    use crate::report::{files, testing};

    fn written(folder: &Path, text: &str) -> PathBuf {
        let path = folder.join("changed.json");
        fs::write(&path, text).unwrap();
        path
    }

    fn error(path: &Path) -> String {
        Saved::read(path).unwrap_err().to_string()
    }

    #[test]
    fn a_run_is_read_by_its_folder_and_by_its_file() {
        let root = tempfile::tempdir().unwrap();
        let run = testing::mutex();
        let folder = files::write(&run, Logs::default(), root.path(), "mutex").unwrap();
        for path in [folder.clone(), folder.join(RECORD)] {
            let saved = Saved::read(&path).unwrap();
            assert_eq!((saved.run, saved.path), (run.clone(), folder.join(RECORD)));
            assert_eq!(saved.text, fs::read(folder.join(RECORD)).unwrap());
        }
    }

    #[test]
    fn what_is_no_run_says_what_it_is_and_what_to_name() {
        let root = tempfile::tempdir().unwrap();
        let folder = files::write(&testing::mutex(), Logs::default(), root.path(), "mutex").unwrap();
        let text = fs::read_to_string(folder.join(RECORD)).unwrap();
        let nothing = error(&root.path().join("nothing"));
        assert!(nothing.contains("No such file") && nothing.contains("name a run's folder"), "{nothing}");
        let above = error(&root.path().join("mutex"));
        assert!(above.contains(&format!("`{}` is the last", folder.display())), "{above}");
        assert!(error(root.path()).contains("holds no run.json; name a run's folder"));
        let every_cut = (1..text.trim_end().len()).step_by(997);
        for end in every_cut {
            let cut = error(&written(root.path(), &text[..end]));
            assert!(cut.contains("ends in the middle, at line"), "{cut}");
        }
        assert!(error(&written(root.path(), "")).contains("ends in the middle"));
        assert!(error(&written(root.path(), "arm,block\n")).contains("is no JSON"));
        assert!(error(&written(root.path(), "{}")).contains("no `schema_version`"));
        assert!(error(&written(root.path(), "[1]")).contains("no `schema_version`"));
        let other = error(&written(root.path(), r#"{"schema_version": 1, "checks": []}"#));
        assert!(other.contains("is no run's record: missing field `tool`"), "{other}");
    }

    #[test]
    fn another_version_is_named_with_the_program_that_reads_it() {
        let root = tempfile::tempdir().unwrap();
        let newer = r#"{"schema_version": 2, "tool": {"version": "9.1.0", "commit": null}, "all": "else differs"}"#;
        let said = error(&written(root.path(), newer));
        assert!(said.contains("schema version 2, and this program reads 1"), "{said}");
        assert!(said.contains("9.1.0"), "{said}");
    }
}
