//! A table that a page of the docs keeps between two marks.

use std::io;
use std::path::{Path, PathBuf};

/// The marks of one table, each a comment of Markdown.
#[derive(Debug)]
pub(crate) struct Marks {
    pub(crate) begin: &'static str,
    pub(crate) end: &'static str,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum MarksError {
    #[error("{}: has no `{mark}`, between which and the next mark the table goes", .file.display())]
    NoMark { file: PathBuf, mark: &'static str },
    #[error("{}: {error}", .file.display())]
    File { file: PathBuf, error: io::Error },
}

impl Marks {
    /// What stands between the marks.
    ///
    /// # Errors
    /// Where the file cannot be read, or a mark is not there.
    pub(crate) fn read(&self, file: &Path) -> Result<String, MarksError> {
        self.parts(file).map(|[_, table, _]| table)
    }

    /// Puts the table in the place of what stands between the marks.
    ///
    /// # Errors
    /// Where the file cannot be read or written, or a mark is not there.
    pub(crate) fn replace(&self, file: &Path, table: &str) -> Result<(), MarksError> {
        let Marks { begin, end } = *self;
        let [before, _, after] = self.parts(file)?;
        let failed = |error| MarksError::File { file: file.to_owned(), error };
        std::fs::write(file, format!("{before}{begin}\n\n{table}\n{end}{after}")).map_err(failed)
    }

    /// Before, between and behind the marks.
    fn parts(&self, file: &Path) -> Result<[String; 3], MarksError> {
        let text = std::fs::read_to_string(file).map_err(|error| MarksError::File { file: file.to_owned(), error })?;
        let no = |mark| MarksError::NoMark { file: file.to_owned(), mark };
        let (before, rest) = text.split_once(self.begin).ok_or_else(|| no(self.begin))?;
        let (between, after) = rest.split_once(self.end).ok_or_else(|| no(self.end))?;
        Ok([before, between, after].map(str::to_owned))
    }
}
