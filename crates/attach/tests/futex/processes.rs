//! The C program of these tests, built once a test, and its processes.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use testing::{A_LONG_TIME, Lines, skip, within};

/// A segment of its own, and the program that uses it under a name of its own. One at a time: two tests at once would take
/// each other's CPUs.
pub(crate) struct Bench {
    folder: tempfile::TempDir,
    pub(crate) name: String,
    _alone: MutexGuard<'static, ()>,
}

static ALONE: Mutex<()> = Mutex::new(());

impl Bench {
    /// Builds the program and has it make a mutex of that kind; `None`, having said why, where there is no compiler.
    pub(crate) fn new(kind: &str) -> Option<Bench> {
        let bench = Bench::without_mutex()?;
        bench.start(&["init", kind]).ends();
        Some(bench)
    }

    fn without_mutex() -> Option<Bench> {
        // The segment is memory and no file on a disk.
        let folder = tempfile::Builder::new().prefix("lab-futex-").tempdir_in("/dev/shm").unwrap();
        let name: String = folder.path().to_str().unwrap().bytes().rev().take(6).map(char::from).collect();
        // A test that failed leaves nothing behind that the next one could trip over.
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let bench = Bench { folder, name: format!("ftx{name}"), _alone: alone };
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/futex/locks.c");
        let built = Command::new("cc").args(["-O1", "-pthread", "-o"]).arg(bench.program()).arg(source).output();
        let built = built.map_err(|error| skip(&format!("there is no C compiler: {error}"))).ok()?;
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        Some(bench)
    }

    pub(crate) fn program(&self) -> PathBuf {
        self.folder.path().join(&self.name)
    }

    pub(crate) fn segment(&self) -> PathBuf {
        self.folder.path().join("segment")
    }

    /// Starts a process that does what the first word says to the segment.
    pub(crate) fn start(&self, words: &[&str]) -> Process {
        let mut command = Command::new(self.program());
        command.arg(words[0]).arg(self.segment()).args(&words[1..]);
        Process::start(command)
    }
}

/// A started process; killed when dropped.
pub(crate) struct Process {
    child: Child,
    input: Option<ChildStdin>,
    lines: Lines,
}

impl Process {
    pub(crate) fn start(command: Command) -> Process {
        Process::try_start(command).unwrap()
    }

    pub(crate) fn try_start(mut command: Command) -> std::io::Result<Process> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let lines = Lines::of(child.stdout.take().unwrap());
        Ok(Process { input: child.stdin.take(), child, lines })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its next line.
    pub(crate) fn line(&self) -> String {
        self.next_line().expect("it ended before it said more")
    }

    /// The same; `None` where it ended instead.
    pub(crate) fn next_line(&self) -> Option<String> {
        self.lines.hear()
    }

    /// Whether it has said this; takes what it said before.
    pub(crate) fn has_said(&self, what: &str) -> bool {
        self.lines.heard().any(|line| line == what)
    }

    /// Sends it on.
    pub(crate) fn tell(&mut self) {
        self.input.as_mut().unwrap().write_all(b"go\n").unwrap();
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Has it end by itself, and waits for that.
    pub(crate) fn ends(mut self) {
        drop(self.input.take());
        let status = within(A_LONG_TIME, "its end", || self.child.try_wait().unwrap());
        assert!(status.success(), "{status:?}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until it sleeps in a futex call.
pub(crate) fn await_sleep(pid: u32) {
    within(A_LONG_TIME, "a process that sleeps in a futex call", || sleeps_in_futex(pid).then_some(()));
}

/// What a thread sleeps in, as the kernel says; whether that is a futex call.
pub(crate) fn sleeps_in_futex(pid: u32) -> bool {
    let text = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("syscall")).unwrap_or_default();
    text.split_whitespace().next().and_then(|word| word.parse().ok()) == Some(libc::SYS_futex)
}
