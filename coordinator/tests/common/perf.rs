//! `perf stat`, attached to a process and told when to count: an independent witness.

use super::A_LONG_TIME;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// A running `perf stat`, told by one named pipe and answering by another.
pub(crate) struct Perf {
    child: Child,
    folder: tempfile::TempDir,
    commands: File,
    answers: File,
}

impl Perf {
    /// Attaches it to a process, threads that are begun later included, and lets it count these events from now on; or why
    /// that is impossible.
    pub(crate) fn attach(pid: i32, events: &str) -> Result<Perf, String> {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for pipe in ["commands", "answers"] {
            mkfifo(&at(pipe), Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
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
        self.commands.write_all(format!("{command}\n").as_bytes()).unwrap();
        let deadline = Instant::now() + A_LONG_TIME;
        let mut answer = String::new();
        while !answer.contains("ack\n") {
            if self.child.try_wait().unwrap().is_some() {
                let mut why = String::new();
                self.child.stderr.take().unwrap().read_to_string(&mut why).unwrap();
                return Err(format!("it ended: {}", why.trim()));
            }
            assert!(Instant::now() < deadline, "no answer to `{command}`");
            let mut ready = [PollFd::new(self.answers.as_fd(), PollFlags::POLLIN)];
            if poll(&mut ready, PollTimeout::from(100u8)) == Ok(1) {
                let mut bytes = [0; 16];
                let length = self.answers.read(&mut bytes).unwrap();
                answer.push_str(std::str::from_utf8(&bytes[..length]).unwrap().trim_matches('\0'));
            }
        }
        Ok(())
    }

    /// Ends the counting, and perf; what it counted of each event, times in milliseconds.
    pub(crate) fn detach(&mut self) -> BTreeMap<String, f64> {
        self.tell("disable").unwrap_or_else(|why| panic!("{why}"));
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGINT).unwrap();
        self.child.wait().unwrap();
        let text = std::fs::read_to_string(self.folder.path().join("counts")).unwrap();
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
    OpenOptions::new().read(true).write(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(pipe).unwrap()
}
