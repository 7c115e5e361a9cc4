//! The parser's child, as the watcher sees it: started, asked, ended.

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, posix_spawn};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use super::spots::{self, Spot};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// The descriptors that the child finds: the program, the offsets asked for, and where its answer goes.
pub(super) const PROGRAM_FD: i32 = 3;
pub(super) const REQUEST_FD: i32 = 4;
pub(super) const ANSWER_FD: i32 = 5;
/// Own descriptors are moved above those, so that none is overwritten before it was handed on.
const ABOVE: i32 = 10;
/// For one file.
const TIME_MAX: Duration = Duration::from_secs(2);
/// Longer answers are no answers.
const ANSWER_MAX: usize = 1 << 20;
/// Of a name that is shown, characters.
const NAME_MAX: usize = 200;

/// How to start a process that calls [`super::serve`]: this program again with a hidden argument, say.
#[derive(Clone, Debug)]
pub struct SymbolParser {
    program: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

/// What the child said of an offset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) symbol: Option<String>,
    pub(super) source: Option<(String, u32)>,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAnswer {
    #[error("the reader could not be started ({0})")]
    NotStarted(Errno),
    #[error("its debug information took too long to read")]
    TooSlow,
    #[error("the reader of its debug information ended early")]
    Ended,
}

impl SymbolParser {
    /// This program again, if it calls [`super::serve`] where [`super::ARGUMENT`] is its only argument.
    pub fn this_program() -> SymbolParser {
        let argument = CString::new(super::ARGUMENT).unwrap_or_default();
        SymbolParser::new(c"/proc/self/exe".into(), vec![c"symbols".into(), argument], Vec::new())
    }

    /// A program by its path, with its arguments (the first of which is its name) and its whole environment.
    pub fn new(program: CString, arguments: Vec<CString>, environment: Vec<CString>) -> SymbolParser {
        SymbolParser { program, arguments, environment }
    }

    /// Asks a child for the offsets of a file. What it said before it failed counts.
    pub(super) fn ask(&self, file: &File, offsets: &[u64], deadline: Instant) -> Result<BTreeMap<u64, Answer>, NoAnswer> {
        let request: String = offsets.iter().map(|offset| format!("{offset:x}\n")).collect();
        self.exchange(file, &request, deadline, parse)
    }

    /// Asks a child for the places of a file at which locks are taken.
    pub(super) fn ask_spots(&self, file: &File, deadline: Instant) -> Result<BTreeSet<Spot>, NoAnswer> {
        self.exchange(file, spots::REQUEST, deadline, spots::parse)
    }

    /// Has a child read a file, and takes apart what it says; an answer that is cut off counts as far as it goes.
    fn exchange<T: Default + PartialEq>(
        &self,
        file: &File,
        request: &str,
        deadline: Instant,
        parse: impl Fn(&str) -> T,
    ) -> Result<T, NoAnswer> {
        let deadline = deadline.min(Instant::now() + TIME_MAX);
        let (pid, mut answer) = self.start(file, request).map_err(NoAnswer::NotStarted)?;
        let told = read_until(&mut answer, deadline);
        // Its number is its own until it is waited for.
        let _ = kill(pid, Signal::SIGKILL);
        while waitpid(pid, None) == Err(Errno::EINTR) {}
        let (text, is_whole) = told;
        let answers = parse(&text);
        match (answers == T::default(), is_whole) {
            (true, Whole::Late) => Err(NoAnswer::TooSlow),
            (true, Whole::Cut) => Err(NoAnswer::Ended),
            _ => Ok(answers),
        }
    }

    fn start(&self, file: &File, text: &str) -> Result<(Pid, File), Errno> {
        let request = memfd_create(c"offsets", MFdFlags::MFD_CLOEXEC)?;
        let mut request = File::from(request);
        let failed = |error: std::io::Error| Errno::from_raw(error.raw_os_error().unwrap_or(0));
        request.write_all(text.as_bytes()).and_then(|()| request.rewind()).map_err(failed)?;
        let (answer, told) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
        let mut actions = PosixSpawnFileActions::init()?;
        for standard in 0..3 {
            actions.add_open(standard, c"/dev/null", OFlag::O_RDWR, Mode::empty())?;
        }
        let handed = [(above(file)?, PROGRAM_FD), (above(&request)?, REQUEST_FD), (above(&told)?, ANSWER_FD)];
        for (own, theirs) in &handed {
            actions.add_dup2(own.as_raw_fd(), *theirs)?;
        }
        let attributes = PosixSpawnAttr::init()?;
        let pid = posix_spawn(self.program.as_c_str(), &actions, &attributes, &self.arguments, &self.environment)?;
        Ok((pid, File::from(answer)))
    }
}

/// A second descriptor of the same, above those that are handed on.
#[allow(unsafe_code)] // fcntl returns a number
fn above(own: &impl AsFd) -> Result<OwnedFd, Errno> {
    let number = fcntl(own, FcntlArg::F_DUPFD_CLOEXEC(ABOVE))?;
    // SAFETY: the kernel just made this descriptor for us, and nothing else has its number.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// How an answer ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Whole {
    /// By its last line.
    Yes,
    Cut,
    Late,
}

fn read_until(answer: &mut File, deadline: Instant) -> (String, Whole) {
    let mut bytes = Vec::new();
    let mut part = [0; 4096];
    let whole = loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut ready = [PollFd::new(answer.as_fd(), PollFlags::POLLIN)];
        match poll(&mut ready, PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)) {
            Ok(0) if left.is_zero() => break Whole::Late,
            Ok(0) | Err(Errno::EINTR) => continue,
            Ok(_) => {}
            Err(_) => break Whole::Cut,
        }
        match answer.read(&mut part) {
            Ok(0) | Err(_) => break if bytes.ends_with(b"\n.\n") || bytes == b".\n" { Whole::Yes } else { Whole::Cut },
            Ok(count) => bytes.extend(&part[..count]),
        }
        if bytes.len() > ANSWER_MAX {
            break Whole::Cut;
        }
    };
    (String::from_utf8_lossy(&bytes).into_owned(), whole)
}

/// `s OFFSET DISTANCE NAME` and `l OFFSET LINE FILE`, numbers hexadecimal but for the line.
fn parse(text: &str) -> BTreeMap<u64, Answer> {
    let mut answers: BTreeMap<u64, Answer> = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.splitn(4, ' ');
        let (Some(kind), Some(offset), Some(number), Some(name)) = (words.next(), words.next(), words.next(), words.next())
        else {
            continue;
        };
        let Ok(offset) = u64::from_str_radix(offset, 16) else { continue };
        let name = shown(name);
        match (kind, u64::from_str_radix(number, 16), number.parse()) {
            ("s", Ok(distance), _) => answers.entry(offset).or_default().symbol = Some(format!("{name}+{distance:#x}")),
            ("l", _, Ok(line)) => answers.entry(offset).or_default().source = Some((name, line)),
            _ => {}
        }
    }
    answers
}

/// A foreign name, fit for a terminal: no control characters, and of bounded length.
fn shown(name: &str) -> String {
    name.chars().filter(|one| !one.is_control()).take(NAME_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::{Answer, parse};

    #[test]
    fn an_answer_is_believed_line_by_line_and_shown_harmlessly() {
        let text = "s 1a 5 bump\x1b[31m(int)\nl 1a 12 /src/a b.c\nnonsense\ns zz 1 x\nl 1b twelve f.c\ns 1b 0 main\n.\n";
        let answers = parse(text);
        let of = |symbol: &str, source: Option<(String, u32)>| Answer { symbol: Some(symbol.into()), source };
        assert_eq!(answers[&0x1a], of("bump[31m(int)+0x5", Some(("/src/a b.c".into(), 12))));
        assert_eq!((answers[&0x1b].clone(), answers.len()), (of("main+0x0", None), 2));
    }
}
