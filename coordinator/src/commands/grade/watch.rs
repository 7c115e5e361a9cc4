//! `--watch`: the two fast gates at each save, the third on a key. Nothing is measured unless someone asks: a
//! measurement takes the machine for seconds, and a save must not.

use super::{Depth, grade_once, hints, show};
use crate::cli::GradeOptions;
use crate::exit::{CommandError, Ending};
use crate::machine::Machine;
use crate::report::grade as screen;
use crate::report::style::Style;
use crate::report::text::shown;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{Read, Write};
use std::os::fd::AsFd;

/// How often the file is looked at: an editor's save is answered before its user looks up. It is a few kilobytes.
const LOOK_EACH_MS: u16 = 200;

/// Looks at the file until standard input ends or `q` is entered.
pub(super) fn watch(options: &GradeOptions, machine: &Machine, style: &Style) -> Result<Ending, CommandError> {
    say(&format!(
        "watching {}: it is looked at when it is saved; Enter measures, h Enter tells the next hint, q Enter ends",
        shown(&options.file)
    ))?;
    let mut seen = None;
    let mut keys = Keys::default();
    loop {
        // A file that is away for the moment of a save, as some editors do it, is looked at when it is back.
        let now = std::fs::read(&options.file).ok();
        if now.is_some() && now != seen {
            seen = now;
            grade(options, machine, style, Depth::Look)?;
        }
        match keys.wait()? {
            Key::None => {}
            Key::Measure => grade(options, machine, style, Depth::Measure)?,
            Key::Hint => match hints::more(options) {
                Some(hint) => say(&screen::hint(&hint, style))?,
                None => say("no hint: the exercise cannot be read")?,
            },
            Key::End => return Ok(Ending::Done),
        }
    }
}

/// One grading, shown. What a file in the middle of an edit is refused for is shown too, and ends nothing.
fn grade(options: &GradeOptions, machine: &Machine, style: &Style, depth: Depth) -> Result<(), CommandError> {
    match grade_once(options, machine, depth) {
        Ok(grade) => show(&grade, options, style),
        Err(ends @ (CommandError::Interrupted | CommandError::ClosedPipe)) => Err(ends),
        Err(error) => error.message(style.has_colour()).map_or(Ok(()), |message| say(&message)),
    }
}

/// On standard output, where the pages are.
fn say(text: &str) -> Result<(), CommandError> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", text.trim_end())?;
    out.flush()?;
    Ok(())
}

/// What was entered.
enum Key {
    None,
    Measure,
    Hint,
    End,
}

/// Lines of standard input, taken as they come: the terminal stays as it is.
#[derive(Default)]
struct Keys {
    begun: Vec<u8>,
}

impl Keys {
    /// Waits until a line is there, or it is time to look at the file.
    fn wait(&mut self) -> Result<Key, CommandError> {
        if let Some(key) = self.line() {
            return Ok(key);
        }
        let input = std::io::stdin();
        let mut fds = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, PollTimeout::from(LOOK_EACH_MS)) {
            Ok(0) | Err(nix::errno::Errno::EINTR) => return Ok(Key::None),
            Ok(_) => {}
            Err(errno) => return Err(CommandError::Failed(format!("waiting for keys failed: {errno}"))),
        }
        let mut some = [0; 256];
        match input.lock().read(&mut some) {
            Ok(0) => Ok(Key::End),
            Ok(length) => {
                self.begun.extend(&some[..length]);
                Ok(self.line().unwrap_or(Key::None))
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => Ok(Key::None),
            Err(error) => Err(CommandError::Failed(format!("reading keys failed: {error}"))),
        }
    }

    /// The first whole line that has come.
    fn line(&mut self) -> Option<Key> {
        let end = self.begun.iter().position(|byte| *byte == b'\n')?;
        let line: Vec<u8> = self.begun.drain(..=end).collect();
        Some(match line.trim_ascii() {
            b"" | b"m" => Key::Measure,
            b"h" => Key::Hint,
            b"q" => Key::End,
            _ => Key::None,
        })
    }
}
