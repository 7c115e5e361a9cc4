//! How a command ends: its exit status, and the message of a failure on standard error.

use crate::report::text::escaped_lines;
use crate::signals::SignalsError;
use scenario::Refusal;
use std::process::ExitCode;

/// How a command that did its work ends.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// 0
    Done,
    /// 1: an expectation, or a condition of `compare`, fails.
    ExpectationFails,
    /// 2: the input is wrong; already reported.
    BadInput,
    /// 3: noise hid the answer.
    Inconclusive,
    /// 4: no arm can be placed here.
    HostCannot,
    /// 130: its user ended it early, and has been shown what there was by then.
    EndedEarly,
}

/// Why a command could not do its work. A text is as it was put together: [`CommandError::message`] makes it fit to show.
#[derive(Debug)]
pub(crate) enum CommandError {
    /// The scenario is refused: 2.
    Refused(Box<Refusal>),
    /// Usage: 2.
    Usage(String),
    /// The run failed: 1.
    Failed(String),
    /// What was asked for is not to be had on this host: 4.
    HostCannot(String),
    /// Ctrl-C, or another request to end: 130.
    Interrupted,
    /// Standard output was closed: quiet, 0 as `head` expects.
    ClosedPipe,
}

impl CommandError {
    /// What a reader is told of it, with everything that a terminal would obey written out; `None` where nobody reads.
    pub(crate) fn message(&self, colour: bool) -> Option<String> {
        match self {
            CommandError::Refused(refusal) => Some(refusal.render(colour)),
            CommandError::Usage(text) | CommandError::Failed(text) => Some(format!("error: {}", escaped_lines(text))),
            CommandError::HostCannot(text) => Some(escaped_lines(text)),
            CommandError::Interrupted => Some("interrupted: workers ended, segment removed".to_owned()),
            CommandError::ClosedPipe => None,
        }
    }

    fn status(&self) -> u8 {
        match self {
            CommandError::ClosedPipe => 0,
            CommandError::Failed(_) => 1,
            CommandError::Refused(_) | CommandError::Usage(_) => 2,
            CommandError::HostCannot(_) => 4,
            CommandError::Interrupted => 130,
        }
    }
}

impl From<Refusal> for CommandError {
    fn from(refusal: Refusal) -> CommandError {
        CommandError::Refused(Box::new(refusal))
    }
}

impl From<std::io::Error> for CommandError {
    fn from(error: std::io::Error) -> CommandError {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => CommandError::ClosedPipe,
            _ => CommandError::Failed(format!("writing the output failed: {error}")),
        }
    }
}

impl From<SignalsError> for CommandError {
    fn from(error: SignalsError) -> CommandError {
        CommandError::Failed(error.to_string())
    }
}

/// Reports a failure and gives the exit status.
pub(crate) fn code(outcome: Result<Ending, CommandError>, colour: bool) -> ExitCode {
    ExitCode::from(match outcome {
        Ok(Ending::Done) => 0,
        Ok(Ending::ExpectationFails) => 1,
        Ok(Ending::BadInput) => 2,
        Ok(Ending::Inconclusive) => 3,
        Ok(Ending::HostCannot) => 4,
        Ok(Ending::EndedEarly) => 130,
        Err(error) => {
            if let Some(message) = error.message(colour) {
                say(&message);
            }
            error.status()
        }
    })
}

/// Ends with what is wrong with the command line, or with the help that was asked for. An argument may be a name that a
/// shell put there and somebody else chose.
pub(crate) fn usage(error: &clap::Error) -> ! {
    let asked_for = !error.use_stderr();
    let hostile = std::env::args_os().any(|argument| !argument.to_string_lossy().chars().all(plan::is_plain));
    if asked_for || !hostile {
        error.exit();
    }
    say(escaped_lines(&error.render().to_string()).trim_end());
    std::process::exit(error.exit_code());
}

/// A message on standard error, of its own line or lines. What came from outside is [escaped](escaped_lines) in it already.
pub(crate) fn say(text: &str) {
    use std::io::Write;
    // Nobody is left to tell where standard error is closed, and that is no reason to end what goes on.
    let _ = writeln!(std::io::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_shown_with_its_own_lines_and_with_each_escape_once() {
        let text = || "`\u{1b}[2J\u{202e}`:\n  more".to_owned();
        let shown = "`\\u{1b}[2J\\u{202e}`:\n  more";
        let message = |error: CommandError| error.message(false).unwrap();
        for error in [CommandError::Usage(text()), CommandError::Failed(text())] {
            assert_eq!(message(error), format!("error: {shown}"));
        }
        assert_eq!(message(CommandError::HostCannot(text())), shown);
        assert_eq!(
            message(CommandError::HostCannot(shown.to_owned())),
            shown,
            "what is escaped already stays as it is"
        );
        assert_eq!(CommandError::ClosedPipe.message(false), None);
    }
}
