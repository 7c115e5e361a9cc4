//! C programs that the lab did not start, built by `cc` for the tests, and the watch of them.
#![allow(dead_code)] // each test binary uses a part

use super::common::{coordinator, stderr, stdout};
use record::{Attach, AttachedProcess};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

/// Where the programs of this test binary are built, anew in each run of it.
fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let binary = std::env::current_exe().unwrap();
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(binary.file_name().unwrap());
        std::fs::create_dir_all(&folder).unwrap();
        folder
    })
}

/// Builds `NAME.c` of this folder.
///
/// # Errors
/// What the compiler said, or that there is none.
pub(crate) fn built(name: &str, flags: &[&str]) -> Result<PathBuf, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/foreign").join(format!("{name}.c"));
    let program = folder().join(name);
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-g", "-Wall", "-Wextra"]).arg("-o").arg(&program).arg(source).args(flags);
    match cc.output() {
        Err(error) => Err(format!("there is no C compiler: {error}")),
        Ok(output) if !output.status.success() => Err(format!("cc: {}", stderr(&output))),
        Ok(_) => Ok(program),
    }
}

/// `sharer.c`, built once.
pub(crate) fn sharer() -> Result<&'static Path, String> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    BUILT.get_or_init(|| built("sharer", &["-pthread"])).as_deref().map_err(Clone::clone)
}

/// A running `sharer`, which ends with this.
pub(crate) struct Sharer {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// The number by which this test knows it.
    pub(crate) pid: u32,
    /// Its segment's name, number or path, for another one.
    pub(crate) handle: String,
    /// Where it has the segment.
    pub(crate) address: u64,
}

impl Sharer {
    /// Starts it and waits until it has the segment.
    pub(crate) fn start(kind: &str, name: &str) -> Sharer {
        let mut command = Command::new(sharer().unwrap());
        command.args([kind, name]);
        Sharer::with(command)
    }

    /// The same of a command that runs it.
    pub(crate) fn with(mut command: Command) -> Sharer {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let (pid, handle, address) = (child.id(), String::new(), 0);
        let mut sharer = Sharer { child, input, output, pid, handle, address };
        let line = sharer.line();
        let told = line.trim().strip_prefix("ready ").and_then(|told| told.rsplit_once(' '));
        let (handle, address) = told.unwrap_or_else(|| panic!("{line:?}"));
        (sharer.handle, sharer.address) = (handle.to_owned(), address.parse().unwrap());
        sharer
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }

    /// Has it do something, and waits until it has: the number that it answers.
    pub(crate) fn tell(&mut self, command: &str) -> i64 {
        self.order(command);
        let line = self.line();
        let number = line.trim().strip_prefix("done ").unwrap_or_else(|| panic!("{command}: {line:?}"));
        number.parse().unwrap()
    }

    /// Has it do something after which it does not answer.
    pub(crate) fn order(&mut self, command: &str) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{command}").unwrap();
        input.flush().unwrap();
    }

    /// Ends it before it can do anything more, and has it gone.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Sharer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What `attach --json` with these arguments saw.
pub(crate) fn watched(arguments: &[&str]) -> Attach {
    let output = coordinator().arg("attach").args(arguments).arg("--json").output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap()
}

pub(crate) fn process(seen: &Attach, pid: u32) -> &AttachedProcess {
    seen.processes
        .iter()
        .find(|one| one.pid == pid)
        .unwrap_or_else(|| panic!("no process {pid}: {:#?}", seen.processes))
}

/// A watch that goes on beside the test until all that it watches have ended.
pub(crate) struct Watching {
    child: Child,
    errors: BufReader<ChildStderr>,
    said: String,
}

impl Watching {
    /// Starts it and waits until its counters are open. It watches for ten minutes at most, far longer than any test.
    pub(crate) fn start(arguments: &[&str]) -> Watching {
        let mut command = coordinator();
        command.arg("attach").args(arguments).args(["--json", "--for", "10min"]);
        Watching::with(command)
    }

    /// The same of a whole command.
    pub(crate) fn with(mut command: Command) -> Watching {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap());
        let mut watching = Watching { child, errors, said: String::new() };
        watching.says("counting, undisturbed");
        watching
    }

    /// The watch's own number.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has said so, now or before.
    pub(crate) fn says(&mut self, part: &str) {
        while !self.said.contains(part) {
            let length = self.errors.read_line(&mut self.said).unwrap();
            assert!(length > 0, "it never said `{part}`: {}", self.said);
        }
    }

    /// Waits for its end: what it saw.
    pub(crate) fn finish(self) -> Attach {
        self.ends_with(0)
    }

    /// Waits for its end with that exit status: what it saw.
    pub(crate) fn ends_with(mut self, status: i32) -> Attach {
        let mut out = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        self.errors.read_to_string(&mut self.said).unwrap();
        let ended = self.child.wait().unwrap();
        assert_eq!(ended.code(), Some(status), "{}", self.said);
        serde_json::from_str(&out).unwrap()
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
