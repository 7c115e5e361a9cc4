//! Starting workers: this executable again, with its descriptors in place, known by pidfd from the first moment.
#![allow(unsafe_code)] // pidfd system calls, which the safe wrappers lack

use crate::provision::Provision;
use nix::errno::Errno;
use nix::libc;
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawn};
use nix::sys::signal::SigSet;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use plan::{Program, WorkerProgram};
use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use worker::{Arguments, LIFE_FD, PROGRAM_FD, READY_FD, REPORT_FD};

/// This executable, even if its file was replaced meanwhile.
const THIS_EXECUTABLE: &str = "/proc/self/exe";

/// A running worker. Dropping one that has not ended kills and reaps it: none outlives its repetition.
pub(crate) struct Child {
    pub(crate) name: String,
    pub(crate) index: u32,
    pub(crate) pid: Pid,
    pub(crate) pidfd: OwnedFd,
    pub(crate) status: Option<WaitStatus>,
}

/// A worker could not be started.
#[derive(Debug, thiserror::Error)]
#[error("starting {worker} failed: {errno}: is a limit on processes or memory too low? see `ulimit -u`, `ulimit -v`")]
pub(crate) struct LaunchError {
    worker: String,
    errno: Errno,
}

/// Starts every worker of `program`, in order. From the main thread: the workers' parent-death signal follows the
/// launching *thread*. On an error those already started are gone again.
pub(crate) fn launch(program: &Program, provision: &Provision) -> Result<Vec<Child>, LaunchError> {
    let environment: Vec<CString> = std::env::vars_os()
        .filter_map(|(mut name, value)| {
            name.push("=");
            name.push(value);
            CString::new(name.into_vec()).ok()
        })
        .collect();
    let mut children = Vec::with_capacity(program.workers.len());
    for (nth, worker) in program.workers.iter().enumerate() {
        let name = name_of(worker);
        match start(worker, nth, provision, &environment) {
            Ok((pid, pidfd)) => children.push(Child { name, index: worker.index.0, pid, pidfd, status: None }),
            Err(errno) => return Err(LaunchError { worker: name, errno }),
        }
    }
    Ok(children)
}

/// How messages name a worker.
pub(crate) fn name_of(worker: &WorkerProgram) -> String {
    format!("worker {} (role `{}`, CPU {})", worker.index, worker.role_name, worker.cpu)
}

fn start(
    worker: &WorkerProgram,
    nth: usize,
    provision: &Provision,
    environment: &[CString],
) -> Result<(Pid, OwnedFd), Errno> {
    let arguments = Arguments {
        segment: provision.segment.name().to_owned(),
        index: worker.index.0,
        slots: provision.slots,
        parent: std::process::id() as i32,
    };
    let argv: Vec<CString> = std::iter::once("coordinator".to_owned())
        .chain(arguments.to_strings())
        .map(|argument| CString::new(argument).map_err(|_| Errno::EINVAL))
        .collect::<Result<_, _>>()?;
    let mut actions = PosixSpawnFileActions::init()?;
    actions.add_open(0, "/dev/null", nix::fcntl::OFlag::O_RDONLY, nix::sys::stat::Mode::empty())?;
    for (fd, number) in [
        (provision.program_fd.as_fd(), PROGRAM_FD),
        (provision.reports[nth].as_fd(), REPORT_FD),
        (provision.ready_write.as_fd(), READY_FD),
        (provision.life_read.as_fd(), LIFE_FD),
    ] {
        actions.add_dup2(fd.as_raw_fd(), number)?;
    }
    let mut attributes = PosixSpawnAttr::init()?;
    attributes.set_flags(PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK)?;
    attributes.set_sigmask(&SigSet::empty())?;
    let pid = posix_spawn(THIS_EXECUTABLE, &actions, &attributes, &argv, environment)?;
    Ok((pid, pidfd_of(pid)?))
}

/// The pidfd of a child that was not waited for yet, so that its number cannot have been given to another process.
fn pidfd_of(pid: Pid) -> Result<OwnedFd, Errno> {
    // SAFETY: a plain system call; the descriptor it returns is owned by nobody else.
    unsafe {
        let fd = Errno::result(libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0))?;
        Ok(OwnedFd::from_raw_fd(fd as i32))
    }
}

impl Child {
    /// Whether it has ended, and how; reaps it.
    pub(crate) fn poll_status(&mut self) -> Option<WaitStatus> {
        if self.status.is_none() {
            match waitid(Id::PIDFd(self.pidfd.as_fd()), WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG) {
                Ok(WaitStatus::StillAlive) | Err(Errno::EINTR) => {}
                Ok(status) => self.status = Some(status),
                // Reaped by someone else: all that is known is that it is gone.
                Err(_) => self.status = Some(WaitStatus::Exited(self.pid, i32::MAX)),
            }
        }
        self.status
    }

    /// Kills it, if it lives.
    pub(crate) fn kill(&self) {
        if self.status.is_none() {
            // SAFETY: a plain system call on a descriptor we own; it can only reach this child.
            unsafe {
                libc::syscall(libc::SYS_pidfd_send_signal, self.pidfd.as_raw_fd(), libc::SIGKILL, 0usize, 0);
            }
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
        while self.status.is_none() {
            match waitid(Id::PIDFd(self.pidfd.as_fd()), WaitPidFlag::WEXITED) {
                Err(Errno::EINTR) => {}
                Ok(status) => self.status = Some(status),
                Err(_) => break,
            }
        }
    }
}
