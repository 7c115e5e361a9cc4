//! A run's end: on disk before anything is shown or fails, then what a reader sees and the exit status.

use crate::assemble::Verdict;
use crate::campaign::command_error;
use crate::cli::RunOptions;
use crate::exit::{CommandError, Ending, say};
use crate::report::data;
use crate::report::logs::Logs;
use crate::report::style::Style;
use crate::report::text::shown;
use crate::report::{files, terminal};
use crate::signals::Signals;
use record::{ExpectState, Run};
use std::io::Write;
use std::path::PathBuf;

/// Writes the results. From here on a signal acts as in any program, since there is nothing to clean up: one that came
/// unseen before, while figures were made, is an interrupt with all results on disk.
///
/// # Errors
/// Why the run ended early, where it did. The inner result is that of writing, which waits until the table is shown.
pub(crate) fn save(
    run: &Run,
    logs: Logs,
    options: &RunOptions,
    name: &str,
    verdict: &Verdict,
    signals: Signals,
) -> Result<Result<PathBuf, CommandError>, CommandError> {
    let folder = files::write(run, logs, &options.out, name);
    let ended = match &verdict.ended_early {
        Some(error) => Some(command_error(error, &signals)),
        None => signals.take().then_some(CommandError::Interrupted),
    };
    let Some(error) = ended else { return Ok(folder.map_err(|why| CommandError::Failed(why.to_string()))) };
    match &folder {
        Ok(folder) => say(&format!("what was measured until then is in {}", shown(folder))),
        Err(why) => say(&format!("what was measured until then could not be kept: {why}")),
    }
    Err(error)
}

/// Shows the run, and says how the command ends.
pub(crate) fn show(
    run: &Run,
    options: &RunOptions,
    folder: Result<PathBuf, CommandError>,
    verdict: &Verdict,
    style: &Style,
) -> Result<Ending, CommandError> {
    let mut out = std::io::stdout().lock();
    match options.json {
        true => data::json(run)?,
        false => out.write_all(terminal::render(run, folder.as_deref().ok(), style).as_bytes())?,
    }
    out.flush()?;
    folder?;
    Ok(match verdict.conclusive {
        _ if run.expect.iter().any(|e| e.state == ExpectState::Fails) => Ending::ExpectationFails,
        true => Ending::Done,
        false => Ending::Inconclusive,
    })
}
