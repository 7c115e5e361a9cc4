//! A campaign for commands whose answer is made of all of it: what ended it early is how the command fails.

use super::{Campaign, Measured, Observer, RunError};
use crate::exit::CommandError;
use crate::report::logs::Logs;
use crate::report::progress::{Progress, ProgressMode};
use crate::signals::Signals;

impl Campaign<'_> {
    /// Runs every block, and tells on standard error how far it is, unless `quiet`; `phase` says what for.
    ///
    /// # Errors
    /// [`CommandError::Interrupted`], [`CommandError::Failed`].
    pub(crate) fn whole(&self, phase: Option<&str>, quiet: bool, logs: &mut Logs) -> Result<Measured, CommandError> {
        let mode = ProgressMode::on_stderr(quiet);
        let mut progress = Progress::new(mode, &self.plan.title, self.planned_repetitions());
        phase.into_iter().for_each(|phase| progress.phase(phase));
        let measured = self.measure(&mut progress, logs);
        progress.finish();
        match measured {
            Ok(Measured { ended_early: Some(error), .. }) | Err(error) => Err(command_error(&error, self.signals)),
            Ok(measured) => Ok(measured),
        }
    }
}

/// A reported interrupt is taken: it has had its effect, and the exit status tells of it.
pub(crate) fn command_error(error: &RunError, signals: &Signals) -> CommandError {
    if !error.interrupted() {
        return CommandError::Failed(error.to_string());
    }
    signals.take();
    CommandError::Interrupted
}
