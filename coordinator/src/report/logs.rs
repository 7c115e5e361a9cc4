//! What a run writes repetition by repetition, since it may be too much to keep: which logs there are.

use super::lock_log::LockLog;
use super::rows::Repetition;
use super::timeline::TimelineLog;
use super::write_error::WriteError;
use plan::Program;
use std::path::Path;

/// The logs of a run that is being made; each only where there is something to log.
#[derive(Default)]
pub(crate) struct Logs {
    /// `locks.csv`, on demand.
    pub(crate) locks: Option<LockLog>,
    /// `timeline.csv`, where a loop has steps on regions.
    pub(crate) timeline: Option<TimelineLog>,
}

impl Logs {
    /// Empty logs in `folder`, on the file system that results go to: of lock times where they are asked for, and of
    /// steps on regions where one of these programs has any.
    ///
    /// # Errors
    /// [`WriteError`], naming the folder.
    pub(crate) fn create<'p>(
        folder: &Path,
        lock_times: bool,
        mut programs: impl Iterator<Item = &'p Program>,
    ) -> Result<Logs, WriteError> {
        let has_steps = programs.any(Program::has_memory_steps);
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
