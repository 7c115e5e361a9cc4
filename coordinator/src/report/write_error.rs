//! Why something could not be written below the folder of results, and what to do about it.

use crate::report::text::shown;
use nix::errno::Errno;
use std::io;
use std::path::{Path, PathBuf};

/// Why a run's files could not be written. None is left behind, whole or in part.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} `{}`: {}; {cure}", shown(path), in_words(source))]
pub(crate) struct WriteError {
    /// What was tried: `create the folder`, `write`, ….
    pub(crate) action: &'static str,
    /// On what.
    pub(crate) path: PathBuf,
    /// What to do.
    pub(crate) cure: &'static str,
    /// What the system answered.
    #[source]
    pub(crate) source: io::Error,
}

impl WriteError {
    /// That `action` failed on `path`, with the cure by the system's answer.
    pub(super) fn new(action: &'static str, path: &Path, source: io::Error) -> WriteError {
        let source = unwrapped(source);
        let cure = match source.raw_os_error().map(Errno::from_raw) {
            Some(Errno::EROFS | Errno::EACCES | Errno::EPERM) => "name a folder that you may write to with --out DIR",
            Some(Errno::ENOSPC | Errno::EDQUOT) => {
                "make room there (`results/` holds one folder a run), or name another file system with --out DIR"
            }
            Some(Errno::ENOTDIR | Errno::EEXIST) => {
                "a file stands where a folder is needed: move it away, or name another folder with --out DIR"
            }
            Some(Errno::ENOENT) => {
                "something removed it meanwhile, or a link leads nowhere: name another folder with --out DIR"
            }
            Some(Errno::ENAMETOOLONG | Errno::ELOOP) => "name a shorter or simpler folder with --out DIR",
            _ => "check that the file system is sound, or name another folder with --out DIR",
        };
        WriteError { action, path: path.to_owned(), cure, source }
    }
}

/// The system's answer, also where the writer of tables has wrapped it.
fn unwrapped(error: io::Error) -> io::Error {
    let table = error.get_ref().and_then(|inner| inner.downcast_ref::<csv::Error>());
    let answer = table.and_then(|table| match table.kind() {
        csv::ErrorKind::Io(inner) => inner.raw_os_error(),
        _ => None,
    });
    answer.map_or(error, io::Error::from_raw_os_error)
}

/// `no space left on device (ENOSPC)`.
fn in_words(error: &io::Error) -> String {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(errno) => format!("{} ({errno:?})", errno.desc()),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A full disk was called a file system that is not sound.
    #[test]
    fn a_table_s_error_keeps_the_system_s_answer() {
        let full = csv::Error::from(io::Error::from_raw_os_error(Errno::ENOSPC as i32));
        let message = WriteError::new("write", Path::new("/x"), io::Error::from(full)).to_string();
        assert!(message.contains("(ENOSPC); make room there"), "{message}");
    }

    #[test]
    fn the_cure_is_that_of_the_systems_answer() {
        let message = WriteError::new("create", Path::new("/x"), io::Error::from_raw_os_error(Errno::EROFS as i32));
        assert_eq!(
            message.to_string(),
            "cannot create `/x`: Read-only file system (EROFS); name a folder that you may write to with --out DIR"
        );
    }
}
