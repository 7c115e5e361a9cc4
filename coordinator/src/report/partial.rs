//! The hidden folder that a run's files are written to before they get their name: held as long as its writer lives, so
//! that what a killed one left is told from what another is writing, and goes with the next run of the scenario.

use crate::report::names;
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Folders that are tried before giving up. One is lost where its name is taken, or where a sweep meets it between its
/// making and its locking, a few microseconds.
const ATTEMPTS: usize = 64;

/// A folder that was made, and is held.
pub(super) struct Partial {
    pub(super) path: PathBuf,
    /// None where the file system has no locks: then no sweep can take one either, and what is left stays.
    _held: Option<Flock<File>>,
}

impl Partial {
    /// Makes one in `parent` for the run that began at `stamp`.
    ///
    /// # Errors
    /// What the system answers.
    pub(super) fn create(parent: &Path, stamp: &str) -> io::Result<Partial> {
        // No name twice, whatever became of the first: a sweep may be about to remove what had it.
        static MADE: AtomicU64 = AtomicU64::new(1);
        for _ in 0..ATTEMPTS {
            let number = MADE.fetch_add(1, Ordering::Relaxed);
            // A process's number alone does not make it one's own: a run in another container that shares the results may
            // have the same one.
            let path = parent.join(format!(".{stamp}.{}-{number}.partial", std::process::id()));
            match fs::create_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                done => done?,
            }
            match hold(&path) {
                Ok(held) if is_at(&held, &path) => return Ok(Partial { path, _held: Some(held) }),
                // A sweep has it, or had it, and removes it.
                Ok(_) | Err(Errno::EWOULDBLOCK | Errno::ENOENT) => {}
                Err(Errno::ENOLCK | Errno::EOPNOTSUPP | Errno::ENOSYS | Errno::EINVAL | Errno::EBADF) => {
                    return Ok(Partial { path, _held: None });
                }
                Err(errno) => {
                    let _ = fs::remove_dir(&path);
                    return Err(errno.into());
                }
            }
        }
        Err(Errno::EBUSY.into())
    }
}

/// Removes what writers that were killed left in `parent`: their folders, with the files that a run's folder can hold. One
/// that somebody holds, or has put something else into, stays.
pub(super) fn sweep(parent: &Path) {
    // A folder that cannot be read has nothing to sweep; writing into it will say what is wrong with it.
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder
            && entry.file_name().to_str().is_some_and(is_partial)
            && let Ok(held) = hold(&path)
            // What was opened may have got its name meanwhile.
            && is_at(&held, &path)
        {
            remove(&path);
        }
    }
}

/// Removes a run's folder, whole or not.
pub(super) fn remove(folder: &Path) {
    for file in names::ALL {
        // Absent in part; an error here has a worse one before it, which is reported.
        let _ = fs::remove_file(folder.join(file));
    }
    // Refused where somebody else has put something there meanwhile, and rightly so.
    let _ = fs::remove_dir(folder);
}

/// `.STAMP.PID-NUMBER.partial`.
fn is_partial(name: &str) -> bool {
    let stem = name.strip_prefix('.').and_then(|rest| rest.strip_suffix(".partial"));
    let pid = stem.and_then(|stem| stem.rsplit_once('.')).map(|(_, pid)| pid);
    pid.is_some_and(|pid| !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'))
}

fn hold(folder: &Path) -> Result<Flock<File>, Errno> {
    let open = File::open(folder).map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(0)))?;
    Flock::lock(open, FlockArg::LockExclusiveNonblock).map_err(|(_, errno)| errno)
}

/// Whether the folder that is held is still the one at that path.
fn is_at(held: &File, path: &Path) -> bool {
    let (Ok(held), Ok(there)) = (held.metadata(), path.symlink_metadata()) else { return false };
    (held.dev(), held.ino()) == (there.dev(), there.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_holds_is_swept_and_what_is_being_written_or_is_no_runs_stays() {
        let parent = tempfile::tempdir().unwrap();
        let make = |name: &str, file: &str| {
            fs::create_dir(parent.path().join(name)).unwrap();
            fs::write(parent.path().join(name).join(file), "{").unwrap();
        };
        make(".2026-11-24T12-34-56Z.77-1.partial", "run.json");
        make(".2026-11-24T12-34-56Z.78-2.partial", "notes.txt");
        make(".2026.partial", "run.json");
        make("2026-11-24T12-34-56Z", "run.json");
        std::os::unix::fs::symlink(parent.path(), parent.path().join(".x.79-1.partial")).unwrap();
        let partial = Partial::create(parent.path(), "2026-11-24T12-34-57Z").unwrap();
        sweep(parent.path());
        let mut left: Vec<String> =
            fs::read_dir(&parent).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        left.sort();
        let own = partial.path.file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(
            left,
            [".2026-11-24T12-34-56Z.78-2.partial", &own, ".2026.partial", ".x.79-1.partial", "2026-11-24T12-34-56Z"]
        );
        drop(partial);
        sweep(parent.path());
        assert!(!parent.path().join(&own).exists());
    }

    #[test]
    fn a_name_that_is_taken_leads_to_another() {
        let parent = tempfile::tempdir().unwrap();
        let [one, other] = [(); 2].map(|()| Partial::create(parent.path(), "s").unwrap());
        assert_ne!(one.path, other.path);
        assert!(is_partial(other.path.file_name().unwrap().to_str().unwrap()));
    }

    #[test]
    fn sweeps_race_creation() {
        let parent = tempfile::tempdir().unwrap();
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    sweep(parent.path());
                }
            });
            let made = std::panic::catch_unwind(|| {
                for nth in 0..500 {
                    let partial = Partial::create(parent.path(), "s").unwrap();
                    fs::write(partial.path.join("run.json"), "{}").unwrap();
                    fs::rename(&partial.path, parent.path().join(nth.to_string())).unwrap();
                }
            });
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            made.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        });
        assert_eq!(fs::read_dir(&parent).unwrap().count(), 500);
    }
}
