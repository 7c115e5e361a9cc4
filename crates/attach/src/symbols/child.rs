//! The parser's child, as the watcher sees it: started, asked, ended.

use super::beside::{Handed, Lack, Part};
use super::spots::{self, Spot};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, posix_spawn};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use plan::is_plain;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The descriptors that the child finds: the program, the offsets asked for, where its answer goes, and, where the request
/// says so, the files that the program's debug information was split off to.
pub(super) const PROGRAM_FD: i32 = 3;
pub(super) const REQUEST_FD: i32 = 4;
pub(super) const ANSWER_FD: i32 = 5;
pub(super) const DEBUG_FD: i32 = 6;
pub(super) const SHARED_FD: i32 = 7;
/// With which lines the request says so.
pub(super) const WITH_DEBUG: &str = "with debug";
pub(super) const WITH_SHARED: &str = "with shared";
/// Own descriptors are moved above those, so that none is overwritten before it was handed on.
const ABOVE: i32 = 10;
/// For one file.
const TIME_MAX: Duration = Duration::from_secs(2);
/// Longer answers are no answers.
const ANSWER_MAX: usize = 1 << 20;
/// Of a name that is shown, characters.
const NAME_MAX: usize = 200;
/// Of an identifier and of a path, bytes: linkers make identifiers of 20, the kernel takes paths of 4,096.
const BUILD_ID_MAX: usize = 64;
const PATH_MAX: usize = 4_000;

/// How to start a process that calls [`super::serve`]: this program again with a hidden argument, say.
#[derive(Clone, Debug)]
pub struct SymbolParser {
    program: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
    folders: Vec<PathBuf>,
}

/// What the child said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// By offset.
    pub(super) answers: BTreeMap<u64, Answer>,
    /// What it would need to say more.
    pub(super) lack: Option<Lack>,
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
        SymbolParser { program, arguments, environment, folders: Vec::new() }
    }

    /// Looks for debug information that was split off in these folders before [`structs::split_off::DEBUG_ROOT`]; they are
    /// laid out as that is, by build identifiers and by paths.
    pub fn looking_in(self, folders: Vec<PathBuf>) -> SymbolParser {
        SymbolParser { folders, ..self }
    }

    /// Those folders.
    pub(super) fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// Asks a child for the offsets of a file. What it said before it failed counts.
    pub(super) fn ask(&self, handed: &Handed, offsets: &[u64], deadline: Instant) -> Result<Told, NoAnswer> {
        let parts = [(&handed.debug, WITH_DEBUG), (&handed.shared, WITH_SHARED)];
        let mut request: String =
            parts.iter().filter(|(file, _)| file.is_some()).map(|(_, line)| format!("{line}\n")).collect();
        offsets.iter().for_each(|offset| request.push_str(&format!("{offset:x}\n")));
        self.exchange(handed, &request, deadline, parse)
    }

    /// Asks a child for the places of a file at which locks are taken.
    pub(super) fn ask_spots(&self, handed: &Handed, deadline: Instant) -> Result<BTreeSet<Spot>, NoAnswer> {
        self.exchange(handed, spots::REQUEST, deadline, spots::parse)
    }

    /// Has a child read a file, and takes apart what it says; an answer that is cut off counts as far as it goes.
    fn exchange<T: Default + PartialEq>(
        &self,
        handed: &Handed,
        request: &str,
        deadline: Instant,
        parse: impl Fn(&str) -> T,
    ) -> Result<T, NoAnswer> {
        let deadline = deadline.min(Instant::now() + TIME_MAX);
        let request = written(request).map_err(NoAnswer::NotStarted)?;
        let (pid, mut answer) = self.start(handed, &request).map_err(NoAnswer::NotStarted)?;
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

    fn start(&self, handed: &Handed, request: &impl AsFd) -> Result<(Pid, File), Errno> {
        let (answer, told) = nix::unistd::pipe2(OFlag::O_CLOEXEC)?;
        let mut actions = PosixSpawnFileActions::init()?;
        for standard in 0..3 {
            actions.add_open(standard, c"/dev/null", OFlag::O_RDWR, Mode::empty())?;
        }
        let Handed { program, debug, shared } = handed;
        let mut all = vec![(above(program)?, PROGRAM_FD), (above(request)?, REQUEST_FD), (above(&told)?, ANSWER_FD)];
        for (part, theirs) in [(debug, DEBUG_FD), (shared, SHARED_FD)] {
            all.extend(part.as_ref().map(|file| Ok::<_, Errno>((above(file)?, theirs))).transpose()?);
        }
        for (own, theirs) in &all {
            actions.add_dup2(own.as_raw_fd(), *theirs)?;
        }
        let attributes = PosixSpawnAttr::init()?;
        let pid = posix_spawn(self.program.as_c_str(), &actions, &attributes, &self.arguments, &self.environment)?;
        Ok((pid, File::from(answer)))
    }
}

/// A request as the child reads it.
fn written(text: &str) -> Result<File, Errno> {
    let mut request = File::from(memfd_create(c"request", MFdFlags::MFD_CLOEXEC)?);
    let failed = |error: std::io::Error| Errno::from_raw(error.raw_os_error().unwrap_or(0));
    request.write_all(text.as_bytes()).and_then(|()| request.rewind()).map_err(failed)?;
    Ok(request)
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

/// `s OFFSET DISTANCE NAME` and `l OFFSET LINE FILE`, numbers hexadecimal but for the line; `debug` or `shared`, `BUILD-ID`
/// and `NAME`, each with a `-` before it, for a file that it lacks.
pub(super) fn parse(text: &str) -> Told {
    let mut told = Told::default();
    let answers = &mut told.answers;
    for line in text.lines() {
        if let Some(lack) = lack(line) {
            told.lack = Some(lack);
            continue;
        }
        let mut words = line.splitn(4, ' ');
        let (Some(kind), Some(offset), Some(number), Some(name)) =
            (words.next(), words.next(), words.next(), words.next())
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
    told
}

fn lack(line: &str) -> Option<Lack> {
    let mut words = line.splitn(3, ' ');
    let part = match words.next()? {
        "debug" => Part::Debug,
        "shared" => Part::Shared,
        _ => return None,
    };
    let (id, name) = (words.next()?.strip_prefix('-')?, words.next()?.strip_prefix('-')?);
    let bytes = id.as_bytes().chunks(2).map(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok());
    let build_id = bytes.collect::<Option<Vec<u8>>>().filter(|id| !id.is_empty() && id.len() <= BUILD_ID_MAX);
    let link = Some(name).filter(|name| !name.is_empty() && name.len() <= PATH_MAX).map(str::to_owned);
    (build_id.is_some() || link.is_some()).then_some(Lack { part, build_id, link })
}

/// A foreign name, fit for a terminal: nothing in it that one obeys, and of bounded length.
fn shown(name: &str) -> String {
    name.chars().filter(|one| is_plain(*one)).take(NAME_MAX).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::{Answer, Handed, Lack, NoAnswer, Part, SymbolParser, Told, parse};
    use nix::sys::signal::{Signal, kill};
    use nix::sys::wait::waitpid;
    use std::ffi::CString;
    use std::fs::File;
    use std::time::{Duration, Instant};

    /// No test, but the child of those below.
    #[test]
    fn reader() {
        if std::env::var_os("LAB_READS_SYMBOLS").is_some() {
            crate::symbols::serve();
            std::process::exit(0);
        }
    }

    pub(in crate::symbols) fn parser() -> SymbolParser {
        let program = CString::new(std::env::current_exe().unwrap().into_os_string().into_encoded_bytes()).unwrap();
        let arguments = [c"attach", c"symbols::child::tests::reader", c"--exact"].map(CString::from).to_vec();
        SymbolParser::new(program, arguments, vec![c"LAB_READS_SYMBOLS=1".into()])
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(50)
    }

    #[test]
    fn the_child_has_given_up_its_privileges_before_it_reads() {
        let (request, held) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC).unwrap();
        let program = Handed::new(File::open("/proc/self/exe").unwrap());
        // It waits for its request, which does not come.
        let (pid, _answer) = parser().start(&program, &request).unwrap();
        let read = |what: &str| std::fs::read_to_string(format!("/proc/{pid}/{what}")).unwrap_or_default();
        // Here it is a thread of the test's harness that reads.
        let status = loop {
            let threads = host::thread_numbers(&host::Root::system(), pid.as_raw() as u32);
            let mut all = threads.into_iter().map(|tid| read(&format!("task/{tid}/status")));
            if let Some(status) = all.find(|status| status.contains("NoNewPrivs:\t1")) {
                break status;
            }
            assert!(!read("status").contains("State:\tZ"), "it ended early");
            std::thread::sleep(Duration::from_millis(1));
        };
        let limits = read("limits");
        kill(pid, Signal::SIGKILL).unwrap();
        waitpid(pid, None).unwrap();
        drop(held);
        let row = |name: &str| status.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
        if nix::unistd::geteuid().is_root() {
            assert_eq!(row("Uid:"), "Uid:\t65534\t65534\t65534\t65534");
            assert_eq!((row("Gid:"), row("Groups:").trim()), ("Gid:\t65534\t65534\t65534\t65534".into(), "Groups:"));
            assert_eq!(
                (row("CapEff:"), row("CapPrm:")),
                ("CapEff:\t0000000000000000".into(), "CapPrm:\t0000000000000000".into())
            );
        }
        let limit = |name: &str| limits.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
        assert!(limit("Max address space").contains("4294967296"), "{limits}");
        assert!(limit("Max cpu time").contains(" 5 "), "{limits}");
    }

    #[test]
    fn a_child_that_ends_hangs_or_talks_nonsense_costs_the_names_alone() {
        let of = |program: &str, arguments: &[&str]| {
            let arguments = arguments.iter().map(|one| CString::new(*one).unwrap()).collect();
            SymbolParser::new(CString::new(program).unwrap(), arguments, vec![])
        };
        let program = Handed::new(File::open("/proc/self/exe").unwrap());
        let ask = |parser: SymbolParser, until| parser.ask(&program, &[64], until);
        let late = Instant::now() + Duration::from_secs(60);
        assert!(matches!(ask(of("/bin/false", &["false"]), late), Err(NoAnswer::Ended)));
        assert!(matches!(ask(of("/bin/sleep", &["sleep", "1000"]), soon()), Err(NoAnswer::TooSlow)));
        assert!(matches!(ask(of("/no/such/program", &["x"]), late), Err(NoAnswer::NotStarted(_))));
        let talk = "echo s 40 1 main >&5; head -c 3000000 /dev/zero >&5";
        let said = ask(of("/bin/sh", &["sh", "-c", talk]), late).unwrap();
        assert_eq!(said.answers[&0x40].symbol.as_deref(), Some("main+0x1"), "what it said before counts");
    }

    #[test]
    fn an_answer_is_believed_line_by_line_and_shown_harmlessly() {
        let text = "s 1a 5 bump\x1b[31m\u{202e}(int)\nl 1a 12 /src/a b.c\nnonsense\ns zz 1 x\nl 1b twelve f.c\ns 1b 0 main\n.\n";
        let Told { answers, lack } = parse(text);
        assert_eq!(lack, None);
        let of = |symbol: &str, source: Option<(String, u32)>| Answer { symbol: Some(symbol.into()), source };
        assert_eq!(answers[&0x1a], of("bump[31m(int)+0x5", Some(("/src/a b.c".into(), 12))));
        assert_eq!((answers[&0x1b].clone(), answers.len()), (of("main+0x0", None), 2));
    }

    #[test]
    fn what_it_lacks_is_believed_as_far_as_it_could_be_a_name() {
        let of = |line: &str| parse(&format!("{line}\n.\n")).lack;
        let link = |name: &str| Some(name.to_owned());
        let lack = |part, build_id: Option<&[u8]>, link| Lack { part, build_id: build_id.map(<[u8]>::to_vec), link };
        assert_eq!(of("debug -0aff -a b.debug"), Some(lack(Part::Debug, Some(&[0x0a, 0xff]), link("a b.debug"))));
        assert_eq!(of("shared - -../x"), Some(lack(Part::Shared, None, link("../x"))));
        assert_eq!(of("debug -zz -x"), Some(lack(Part::Debug, None, link("x"))));
        let endless = format!("debug -{} -{}", "00".repeat(100), "a".repeat(5000));
        for nonsense in ["debug - -", "debug", "debug -0a", "debug 0a x", &endless] {
            assert_eq!(of(nonsense), None, "{nonsense}");
        }
    }
}
