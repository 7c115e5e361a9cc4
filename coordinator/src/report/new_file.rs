//! A file that a user names for a command to make: never in place of one that is there, and whole or not at all.

use crate::exit::CommandError;
use crate::report::text::shown;
use crate::report::write_error::WriteError;
use std::fs::File;
use std::io::{self, ErrorKind, Seek, Write};
use std::path::Path;

/// What to do where it cannot be written.
const CURE: &str = "name a file in a folder that is there, has room, and may be written to";

/// A file that was made here, and is removed where it cannot be written.
#[derive(Debug)]
pub(crate) struct NewFile<'a> {
    path: &'a Path,
    file: File,
}

impl<'a> NewFile<'a> {
    /// Makes the file that `option` of the command line names.
    ///
    /// # Errors
    /// [`CommandError::Usage`] where one is there already, which stays as it is; [`CommandError::Failed`] where none can be
    /// made.
    pub(crate) fn create(option: &str, path: &'a Path) -> Result<NewFile<'a>, CommandError> {
        match File::create_new(path) {
            Ok(file) => Ok(NewFile { path, file }),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(CommandError::Usage(format!(
                "{option} {}: it is there already; name another, or remove it",
                shown(path)
            ))),
            Err(error) => Err(failed(path, error)),
        }
    }

    /// Writes `text`, in place of what was written before.
    ///
    /// # Errors
    /// [`CommandError::Failed`]; then the file is removed.
    pub(crate) fn write(&mut self, text: &str) -> Result<(), CommandError> {
        let written = self
            .file
            .rewind()
            .and_then(|()| self.file.set_len(0))
            .and_then(|()| self.file.write_all(text.as_bytes()))
            .and_then(|()| self.file.sync_all());
        written.map_err(|error| {
            // A part is of no use; that it cannot be removed either changes nothing about that.
            let _ = std::fs::remove_file(self.path);
            failed(self.path, error)
        })
    }
}

/// Whether the file could be made: told before something begins that takes a while. None is there afterwards.
///
/// # Errors
/// As [`NewFile::create`].
pub(crate) fn check(option: &str, path: &Path) -> Result<(), CommandError> {
    NewFile::create(option, path).map(|_| {
        // One that stays is found by whoever makes it in earnest.
        let _ = std::fs::remove_file(path);
    })
}

/// Makes the file and writes it.
///
/// # Errors
/// As [`NewFile::create`] and [`NewFile::write`].
pub(crate) fn write(option: &str, path: &Path, text: &str) -> Result<(), CommandError> {
    NewFile::create(option, path)?.write(text)
}

fn failed(path: &Path, error: io::Error) -> CommandError {
    CommandError::Failed(WriteError { cure: CURE, ..WriteError::new("write", path, error) }.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(outcome: Result<(), CommandError>) -> String {
        match outcome {
            Err(CommandError::Failed(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_file_that_is_there_is_refused_and_stays_and_a_new_one_can_be_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new.toml");
        check("--write", &path).unwrap();
        assert!(!path.exists());
        let mut file = NewFile::create("--write", &path).unwrap();
        for text in ["longer", "short"] {
            file.write(text).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        for outcome in [check("--write", &path), write("--write", &path, "other")] {
            let Err(CommandError::Usage(text)) = outcome else { panic!("{outcome:?}") };
            assert!(text.starts_with("--write /") && text.ends_with("it is there already; name another, or remove it"));
            assert_eq!(std::fs::read_to_string(&path).unwrap(), "short");
        }
    }

    #[test]
    fn what_cannot_be_written_is_a_failure_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let below = folder.path().join("gone/new.toml");
        for outcome in [check("--write", &below), write("--write", &below, "text")] {
            let text = failed(outcome);
            assert!(text.contains("cannot write") && text.contains("(ENOENT); name a file in a folder"), "{text}");
        }
        let path = folder.path().join("new.toml");
        std::fs::write(&path, "a part").unwrap();
        // Opened to be read alone.
        let mut file = NewFile { path: &path, file: File::open(&path).unwrap() };
        assert!(failed(file.write("whole")).contains("cannot write"));
        assert!(!path.exists());
    }
}
