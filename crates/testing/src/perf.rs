//! `perf stat`, attached to a process and told when to count: an independent witness.

use crate::{A_LONG_TIME, within};
use nix::fcntl::OFlag;
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A running `perf stat`, told by one named pipe and answering by another. It ends with this.
#[derive(Debug)]
pub struct Perf {
    child: Child,
    folder: tempfile::TempDir,
    commands: File,
    answers: File,
}

impl Perf {
    /// Attaches it to a process, threads that are begun later included, and lets it count these events (perf's list, with
    /// commas) from now on.
    ///
    /// # Errors
    /// Why that is impossible: perf is not there, or it ended with these words.
    ///
    /// # Panics
    /// Where it neither obeys nor ends within [`A_LONG_TIME`].
    pub fn attach(pid: i32, events: &str) -> Result<Perf, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        for pipe in ["commands", "answers"] {
            mkfifo(&at(pipe), Mode::S_IRUSR | Mode::S_IWUSR).expect("a named pipe");
        }
        let child = Command::new("perf")
            .args(["stat", "--delay=-1", "-x", ",", "-e", events])
            .arg("-p")
            .arg(pid.to_string())
            .arg("--control")
            .arg(format!("fifo:{},{}", at("commands").display(), at("answers").display()))
            .arg("-o")
            .arg(at("counts"))
            .env("LC_ALL", "C")
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("perf does not start: {error} (Debian has it in linux-perf)"))?;
        let (commands, answers) = (both_ways(&at("commands")), both_ways(&at("answers")));
        let mut perf = Perf { child, folder, commands, answers };
        perf.tell("enable").map(|()| perf)
    }

    /// Gives a command and waits until it has been obeyed.
    fn tell(&mut self, command: &str) -> Result<(), String> {
        self.commands.write_all(format!("{command}\n").as_bytes()).expect("room in a pipe");
        let mut answer = String::new();
        within(A_LONG_TIME, &format!("perf's answer to `{command}`"), || {
            let mut bytes = [0; 16];
            // Nothing to read yet is an error of a pipe that does not wait.
            let length = self.answers.read(&mut bytes).unwrap_or(0);
            answer.push_str(String::from_utf8_lossy(&bytes[..length]).trim_matches('\0'));
            if answer.contains("ack\n") {
                return Some(Ok(()));
            }
            self.child.try_wait().expect("a child").map(|_| Err(self.last_words()))
        })
    }

    fn last_words(&mut self) -> String {
        let mut why = String::new();
        let errors = self.child.stderr.as_mut().expect("a pipe");
        errors.read_to_string(&mut why).expect("perf's words");
        format!("perf stat ended: {}", why.trim())
    }

    /// Ends the counting, and perf; what it counted of each event, times in milliseconds. What it could not count is not
    /// there.
    ///
    /// # Panics
    /// Where perf ended before it was told to, or does not end.
    pub fn detach(mut self) -> BTreeMap<String, f64> {
        self.tell("disable").unwrap_or_else(|why| panic!("{why}"));
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGINT).expect("a child");
        within(A_LONG_TIME, "the end of perf", || self.child.try_wait().expect("a child"));
        let text = std::fs::read_to_string(self.folder.path().join("counts")).expect("perf's counts");
        let row = |line: &str| {
            let fields: Vec<&str> = line.split(',').collect();
            Some((fields.get(2)?.to_string(), fields[0].parse().ok()?))
        };
        text.lines().filter_map(row).collect()
    }
}

impl Drop for Perf {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Opens a named pipe so that neither opening nor reading ever waits for the other side.
fn both_ways(pipe: &Path) -> File {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(pipe).expect("a named pipe")
}
