//! How a command ends: its exit status, and the message of a failure on standard error.

use crate::report::text::escaped_lines;
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

/// Why a command could not do its work.
#[derive(Debug)]
pub(crate) enum CommandError {
    /// The scenario is refused: 2.
    Refused(Box<Refusal>),
    /// Usage: 2.
    Usage(String),
    /// The run failed: 1.
    Failed(String),
    /// Ctrl-C, or another request to end: 130.
    Interrupted,
    /// Standard output was closed: quiet, 0 as `head` expects.
    ClosedPipe,
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

/// Reports a failure and gives the exit status.
pub(crate) fn code(outcome: Result<Ending, CommandError>, colour: bool) -> ExitCode {
    ExitCode::from(match outcome {
        Ok(Ending::Done) => 0,
        Ok(Ending::ExpectationFails) => 1,
        Ok(Ending::BadInput) => 2,
        Ok(Ending::Inconclusive) => 3,
        Ok(Ending::HostCannot) => 4,
        Ok(Ending::EndedEarly) => 130,
        Err(CommandError::Refused(refusal)) => {
            say(&refusal.render(colour));
            2
        }
        Err(CommandError::Usage(text)) => {
            say(&format!("error: {}", escaped_lines(&text)));
            2
        }
        Err(CommandError::Failed(text)) => {
            say(&format!("error: {}", escaped_lines(&text)));
            1
        }
        Err(CommandError::Interrupted) => {
            say("interrupted: workers ended, segment removed");
            130
        }
        Err(CommandError::ClosedPipe) => 0,
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

fn say(text: &str) {
    use std::io::Write;
    // Nobody is left to tell where standard error is closed.
    let _ = writeln!(std::io::stderr(), "{text}");
}
