//! What a run writes repetition by repetition, since it may be too much to keep: a file without a name for each log, so that
//! nothing stays where the run comes to nothing, copied to its place at the end.

use super::files::WriteError;
use super::lock_log::LockLog;
use super::timeline::TimelineLog;
use plan::{Program, TickRate};
use record::Trace;
use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};

/// The logs of a run that is being made; each only where there is something to log.
#[derive(Default)]
pub(crate) struct Logs {
    /// `locks.csv`, on demand.
    pub(crate) locks: Option<LockLog>,
    /// `timeline.csv`, where a loop has steps on regions.
    pub(crate) timeline: Option<TimelineLog>,
}

/// One repetition, for whoever logs it.
#[derive(Copy, Clone)]
pub(crate) struct Repetition<'a> {
    pub(crate) block: u32,
    pub(crate) program: &'a Program,
    pub(crate) traces: &'a [Trace],
    pub(crate) rate: TickRate,
}

impl Logs {
    /// Empty logs in `folder`, on the file system that results go to: of lock times where they are asked for, and of steps
    /// on regions where one of these programs has any.
    ///
    /// # Errors
    /// [`WriteError`], naming the folder.
    pub(crate) fn create<'p>(
        folder: &Path,
        lock_times: bool,
        mut programs: impl Iterator<Item = &'p Program>,
    ) -> Result<Logs, WriteError> {
        let has_steps = programs.any(|p| p.workers.iter().any(|worker| worker.memory_steps().next().is_some()));
        Ok(Logs {
            locks: lock_times.then(|| LockLog::create(folder)).transpose()?,
            timeline: has_steps.then(|| TimelineLog::create(folder)).transpose()?,
        })
    }

    /// Adds what the workers of one repetition logged. Between windows only: it writes as much as there is.
    ///
    /// # Errors
    /// [`WriteError`], naming the folder.
    pub(crate) fn repetition(&mut self, repetition: Repetition<'_>) -> Result<(), WriteError> {
        self.locks.iter_mut().try_for_each(|log| log.repetition(repetition))?;
        self.timeline.iter_mut().try_for_each(|log| log.repetition(repetition))
    }
}

/// Rows of a log, in a file without a name.
pub(super) struct Rows {
    folder: PathBuf,
    what: &'static str,
    rows: csv::Writer<BufWriter<File>>,
}

impl Rows {
    /// A log with its head and no rows, in `folder`. `what` says what goes wrong where it does.
    pub(super) fn create(folder: &Path, what: &'static str, head: &[&str]) -> Result<Rows, WriteError> {
        let open = || {
            let mut rows = csv::Writer::from_writer(BufWriter::new(tempfile::tempfile_in(folder)?));
            rows.write_record(head)?;
            Ok(Rows { folder: folder.to_owned(), what, rows })
        };
        open().map_err(|error| WriteError::new(what, folder, error))
    }

    /// Adds the rows that `write` gives.
    pub(super) fn add(
        &mut self,
        write: impl FnOnce(&mut csv::Writer<BufWriter<File>>) -> csv::Result<()>,
    ) -> Result<(), WriteError> {
        let added = write(&mut self.rows).and_then(|()| Ok(self.rows.flush()?));
        added.map_err(|error| WriteError::new(self.what, &self.folder, error.into()))
    }

    /// Copies it to where it stays.
    ///
    /// # Errors
    /// What the system answers.
    pub(super) fn copy(self, out: &mut impl Write) -> io::Result<()> {
        let mut file = self.rows.into_inner().map_err(|error| error.into_error())?.into_inner()?;
        file.rewind()?;
        io::copy(&mut file, out)?;
        Ok(())
    }
}
