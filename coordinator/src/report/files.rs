//! What stays on disk: a folder a run, there whole or not at all.

use crate::report::logs::Logs;
use crate::report::partial::{self, Partial};
use crate::report::write_error::WriteError;
use crate::report::{hlog, names, samples};
use nix::errno::Errno;
use nix::unistd::{AccessFlags, access};
use record::Run;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Longest part of a path made from a name: file systems take 255 bytes, and a number may follow.
const LONGEST_PART: usize = 120;

/// Names tried before giving up: so many runs of one scenario in one second are not made by hand.
const MOST_NAMES: u32 = 1000;

/// Whether results could go under `out_root`, as far as can be told without making anything: asked before a run
/// measures for minutes. Gives the folder that exists and that what is missing goes into.
///
/// # Errors
/// [`WriteError`] as [`write()`] would give it.
pub(crate) fn check(out_root: &Path) -> Result<&Path, WriteError> {
    let here = Path::new(".");
    let existing = out_root.ancestors().find(|path| path.symlink_metadata().is_ok()).unwrap_or(here);
    let existing = if existing.as_os_str().is_empty() { here } else { existing };
    let answer = match existing.metadata() {
        Ok(found) if !found.is_dir() => Err(Errno::ENOTDIR.into()),
        Ok(_) => access(existing, AccessFlags::W_OK | AccessFlags::X_OK).map_err(io::Error::from),
        Err(error) => Err(error),
    };
    answer.map(|()| existing).map_err(|error| WriteError::new("write below", existing, error))
}

/// Writes a run's files to `out_root/name/<start, UTC>/` and returns that folder: `run.json`, `report.html` and
/// `samples.csv`; `latency.hlog` where waits, holds or latencies were kept; of `logs` those that there are. `name` is
/// the scenario's short name ([`plan::Plan::name`]); whatever it holds, the folder lies below `out_root`.
///
/// The files are written to a hidden folder beside it, flushed to the disk and then renamed: a reader sees all of them
/// or none. Where the name is taken, `-2`, `-3`, … is added.
///
/// # Errors
/// [`WriteError`]: what was tried, on which path, the system's answer and the cure. Then nothing new is left on disk.
pub(crate) fn write(run: &Run, logs: Logs, out_root: &Path, name: &str) -> Result<PathBuf, WriteError> {
    let parent = out_root.join(path_part(name));
    let mut cleanup = Cleanup::default();
    create_with_parents(&parent, &mut cleanup)?;
    let stamp = path_part(&run.started_utc.replace(':', "-"));
    partial::sweep(&parent);
    let partial = Partial::create(&parent, &stamp)
        .map_err(|error| WriteError::new("create a folder for a run in", &parent, error))?;
    let temporary = partial.path.clone();
    cleanup.created.push(temporary.clone());
    put(&temporary.join(names::RECORD), |out| to_json(run, out))?;
    put(&temporary.join(names::PAGE), |out| out.write_all(page::page(run, None).as_bytes()))?;
    put(&temporary.join(names::SAMPLES), |out| samples::write(&run.observations, out))?;
    let distributions = analysis::distributions(&run.arms, &run.observations);
    if !distributions.is_empty() {
        put(&temporary.join(names::LATENCIES), |out| hlog::write(run, &distributions, out))?;
    }
    if let Some(log) = logs.locks {
        put(&temporary.join(names::LOCK_TIMES), |out| log.copy(out))?;
    }
    if let Some(log) = logs.timeline {
        put(&temporary.join(names::TIMELINE), |out| log.copy(out))?;
    }
    sync_folder(&temporary)?;
    let folder = rename_to_free_name(&temporary, &parent, &stamp)?;
    cleanup.disarm();
    sync_folder(&parent)?;
    Ok(folder)
}

/// The run as `run.json` has it and `--json` prints it: indented, in the contract's order, ended by a newline.
///
/// # Errors
/// What `out` answers.
pub(crate) fn to_json(run: &Run, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, run)?;
    out.write_all(b"\n")
}

/// `name` as one part of a path: letters, digits, `-`, `_` and dots that do not lead; anything else becomes `_`.
fn path_part(name: &str) -> String {
    let mut part: String = name
        .chars()
        .take(LONGEST_PART)
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' })
        .collect();
    if part.is_empty() || part.starts_with('.') {
        part.insert(0, '_');
    }
    part
}

/// Folders that go again if the writing fails: what was created is remembered from the outermost inwards.
#[derive(Default)]
struct Cleanup {
    created: Vec<PathBuf>,
}

impl Cleanup {
    fn disarm(&mut self) {
        self.created.clear();
    }
}

impl Drop for Cleanup {
    fn drop(&mut self) {
        for folder in self.created.iter().rev() {
            partial::remove(folder);
        }
    }
}

fn create_with_parents(folder: &Path, cleanup: &mut Cleanup) -> Result<(), WriteError> {
    let missing: Vec<&Path> =
        folder.ancestors().take_while(|part| !part.as_os_str().is_empty() && !part.is_dir()).collect();
    for part in missing.into_iter().rev() {
        match create(part, cleanup) {
            // Another run made it just now.
            Err(error) if error.source.kind() == io::ErrorKind::AlreadyExists && part.is_dir() => {}
            done => done?,
        }
    }
    Ok(())
}

fn create(folder: &Path, cleanup: &mut Cleanup) -> Result<(), WriteError> {
    fs::create_dir(folder).map_err(|error| WriteError::new("create the folder", folder, error))?;
    cleanup.created.push(folder.to_owned());
    Ok(())
}

/// One file, down to the disk.
fn put(path: &Path, content: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<(), WriteError> {
    let file = File::create_new(path).map_err(|error| WriteError::new("create", path, error))?;
    let mut out = BufWriter::new(file);
    content(&mut out).and_then(|()| out.flush()).map_err(|error| WriteError::new("write", path, error))?;
    out.get_ref().sync_all().map_err(|error| WriteError::new("flush to the disk", path, error))
}

fn sync_folder(folder: &Path) -> Result<(), WriteError> {
    match File::open(folder).and_then(|open| open.sync_all()) {
        // fsync(2): some file systems do not synchronise folders and say so with EINVAL.
        Err(error) if error.raw_os_error() == Some(Errno::EINVAL as i32) => Ok(()),
        done => done.map_err(|error| WriteError::new("flush to the disk", folder, error)),
    }
}

/// rename(2) replaces an empty folder only; a finished run's folder is never empty, so none is ever overwritten.
fn rename_to_free_name(temporary: &Path, parent: &Path, stamp: &str) -> Result<PathBuf, WriteError> {
    let mut number = 1;
    loop {
        let target = match number {
            1 => parent.join(stamp),
            _ => parent.join(format!("{stamp}-{number}")),
        };
        match fs::rename(temporary, &target) {
            Ok(()) => return Ok(target),
            Err(error) if taken(&error) && number < MOST_NAMES => number += 1,
            Err(error) => {
                return Err(WriteError::new("rename the finished folder to", &target, error));
            }
        }
    }
}

/// Whether rename(2) says that something stands there: a filled folder, or (`ENOTDIR`) a file.
fn taken(error: &io::Error) -> bool {
    matches!(error.raw_os_error().map(Errno::from_raw), Some(Errno::ENOTEMPTY | Errno::EEXIST | Errno::ENOTDIR))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::testing;
    use serde_json::Value;
    use std::collections::BTreeSet;

    /// Every path below `folder`, relative, sorted.
    fn tree(folder: &Path) -> Vec<String> {
        let mut found = Vec::new();
        let mut open = vec![folder.to_owned()];
        while let Some(next) = open.pop() {
            for entry in fs::read_dir(&next).unwrap() {
                let path = entry.unwrap().path();
                found.push(path.strip_prefix(folder).unwrap().display().to_string());
                if path.is_dir() {
                    open.push(path);
                }
            }
        }
        found.sort();
        found
    }

    #[test]
    fn a_run_comes_back_from_its_json_as_it_was() {
        let root = tempfile::tempdir().unwrap();
        for run in
            [testing::false_sharing(), testing::mutex(), testing::every_reading(), testing::poor(), testing::modelled()]
        {
            let folder = write(&run, Logs::default(), root.path(), "x").unwrap();
            let text = fs::read_to_string(folder.join("run.json")).unwrap();
            assert_eq!(serde_json::from_str::<Run>(&text).unwrap(), run);
        }
    }

    /// Keys of every object in `value`, but for those that are names: of counters, of what is swept, of the kernel's events.
    fn keys(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(object) => object.iter().for_each(|(key, value)| {
                found.insert(key.clone());
                match value {
                    Value::Object(named) if ["counters", "sweep", "events"].contains(&key.as_str()) => {
                        named.values().for_each(|value| keys(value, found));
                    }
                    value => keys(value, found),
                }
            }),
            Value::Array(values) => values.iter().for_each(|value| keys(value, found)),
            _ => {}
        }
    }

    #[test]
    fn the_page_on_results_has_every_key_of_run_json() {
        let page = include_str!("../../../results/README.md");
        let words: BTreeSet<&str> = page.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').collect();
        let mut found = BTreeSet::new();
        for run in [
            testing::false_sharing(),
            testing::open_loop(),
            testing::stalled(),
            testing::every_reading(),
            testing::poor(),
            testing::modelled(),
            testing::two_roles(),
        ] {
            keys(&serde_json::to_value(&run).unwrap(), &mut found);
        }
        let missing: Vec<&String> = found.iter().filter(|key| !words.contains(key.as_str())).collect();
        assert!(missing.is_empty() && found.len() > 150, "{missing:?} of {}", found.len());
    }

    #[test]
    fn the_folder_is_there_whole_and_nothing_beside_it() {
        let root = tempfile::tempdir().unwrap();
        let run = testing::false_sharing();
        let out = root.path().join("deep/results");
        let folder = write(&run, Logs::default(), &out, "false_sharing").unwrap();
        assert_eq!(folder, out.join("false_sharing/2026-11-24T12-34-56Z"));
        assert_eq!(
            tree(&out),
            [
                "false_sharing",
                "false_sharing/2026-11-24T12-34-56Z",
                "false_sharing/2026-11-24T12-34-56Z/report.html",
                "false_sharing/2026-11-24T12-34-56Z/run.json",
                "false_sharing/2026-11-24T12-34-56Z/samples.csv",
            ]
        );
    }

    /// Missing is never empty: a log without an interval would look like a run in which nobody ever waited.
    #[test]
    fn the_log_of_latencies_is_there_where_there_is_something_in_it() {
        let root = tempfile::tempdir().unwrap();
        let mut run = testing::mutex();
        let bare = write(&run, Logs::default(), root.path(), "s").unwrap();
        assert!(!bare.join("latency.hlog").exists());
        run.observations.iter_mut().for_each(|seen| testing::give_times(seen, 0));
        let timed = write(&run, Logs::default(), root.path(), "s").unwrap();
        let log = fs::read_to_string(timed.join("latency.hlog")).unwrap();
        assert!(log.contains("\nTag=packed/wait:m,0.000,"), "{log}");
    }

    #[test]
    fn a_taken_name_gets_a_number_and_is_not_overwritten() {
        let root = tempfile::tempdir().unwrap();
        let mut run = testing::false_sharing();
        let first = write(&run, Logs::default(), root.path(), "s").unwrap();
        let before = fs::read(first.join("run.json")).unwrap();
        run.seed = 43;
        let names = [(); 2].map(|()| write(&run, Logs::default(), root.path(), "s").unwrap());
        assert_eq!(names, ["-2", "-3"].map(|end| root.path().join(format!("s/2026-11-24T12-34-56Z{end}"))));
        assert_eq!(fs::read(first.join("run.json")).unwrap(), before);
        let parent = root.path().join("file");
        fs::create_dir(&parent).unwrap();
        fs::write(parent.join("2026-11-24T12-34-56Z"), "in the way").unwrap();
        assert!(write(&run, Logs::default(), root.path(), "file").unwrap().ends_with("2026-11-24T12-34-56Z-2"));
    }

    #[test]
    fn no_name_leads_out_of_the_root() {
        let root = tempfile::tempdir().unwrap();
        let out = root.path().join("out");
        let mut run = testing::false_sharing();
        "../../2026".clone_into(&mut run.started_utc);
        for name in ["../escape", "/etc/x", "..", ".", "", "a/b", "tab\there", &"long".repeat(200)] {
            let folder = write(&run, Logs::default(), &out, name).unwrap();
            let below = folder.strip_prefix(&out).unwrap();
            assert_eq!(below.components().count(), 2, "{name:?} gave {below:?}");
            assert!(below.components().all(|part| matches!(part, std::path::Component::Normal(_))));
        }
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_in_the_way_is_named_and_nothing_is_left() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        fs::write(&file, "mine").unwrap();
        let error = write(&testing::false_sharing(), Logs::default(), &file, "s").unwrap_err();
        let message = error.to_string();
        assert!(message.contains(&file.display().to_string()), "{message}");
        assert!(message.contains("(ENOTDIR)") || message.contains("(EEXIST)"), "{message}");
        assert!(message.contains("a file stands where a folder is needed"), "{message}");
        assert_eq!((tree(root.path()), fs::read(&file).unwrap()), (vec!["file".to_owned()], b"mine".to_vec()));
    }

    #[test]
    fn a_failure_half_way_takes_back_what_was_made() {
        let root = tempfile::tempdir().unwrap();
        let mut cleanup = Cleanup::default();
        let parent = root.path().join("results/s");
        create_with_parents(&parent, &mut cleanup).unwrap();
        let temporary = parent.join(".x.partial");
        create(&temporary, &mut cleanup).unwrap();
        put(&temporary.join("run.json"), |out| out.write_all(b"{")).unwrap();
        let full = put(&temporary.join("samples.csv"), |out| {
            out.write_all(b"arm")?;
            Err(io::Error::from_raw_os_error(Errno::ENOSPC as i32))
        });
        let message = full.unwrap_err().to_string();
        assert!(message.contains("(ENOSPC); make room there"), "{message}");
        drop(cleanup);
        assert_eq!(tree(root.path()), Vec::<String>::new());
    }

    #[test]
    fn a_folder_that_may_not_be_written_is_named() {
        // The kernel's own file system refuses new folders to everybody, root included.
        let error = write(&testing::false_sharing(), Logs::default(), Path::new("/proc/self"), "s").unwrap_err();
        assert_eq!((error.action, error.path.as_path()), ("create the folder", Path::new("/proc/self/s")));
    }
}
