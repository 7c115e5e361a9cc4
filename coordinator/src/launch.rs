//! Starting workers: this executable again, with its descriptors in place, known by pidfd from the first moment.
#![allow(unsafe_code)] // pidfd system calls, which the safe wrappers lack

use crate::cures;
use crate::provision::Provision;
use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::spawn::{PosixSpawnAttr, PosixSpawnFileActions, PosixSpawnFlags, posix_spawn};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;
use plan::{Program, WorkerProgram};
use std::ffi::CString;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::time::{Duration, Instant};
use worker::{Arguments, HUGE_REGIONS_FD, LIFE_FD, PROGRAM_FD, READY_FD, REGIONS_FD, REPORT_FD};

/// This executable, even if its file was replaced meanwhile.
const THIS_EXECUTABLE: &str = "/proc/self/exe";

/// What a worker reads as its standard input.
const NO_INPUT: &str = "/dev/null";

/// What the kernel gets to end a killed process. It takes milliseconds, unless the process is in a call that cannot be
/// interrupted (state D in `ps`); that may last for ever, and waiting for it would be a hang.
const REAP_TIME: Duration = Duration::from_secs(5);

/// A running process of workers. Dropping one that has not ended kills and reaps it: none outlives its repetition,
/// unless it is in an uninterruptible call for longer than [`REAP_TIME`].
pub(crate) struct Child {
    /// How messages name it: by its worker, where that is the only one.
    pub(crate) name: String,
    /// Its workers, in order; each is a thread of it.
    pub(crate) workers: Vec<Member>,
    pub(crate) pid: Pid,
    pub(crate) pidfd: OwnedFd,
    pub(crate) status: Option<WaitStatus>,
    /// Whether a loop of its own ends it: then being killed is no failure, and it leaves no trace.
    pub(crate) dies: bool,
}

/// A worker of a child.
pub(crate) struct Member {
    /// Its index over all roles.
    pub(crate) index: u32,
    pub(crate) name: String,
}

/// A process of workers could not be started.
#[derive(Debug, thiserror::Error)]
#[error("starting {worker} failed: {errno}: {}", cure(*.errno))]
pub(crate) struct LaunchError {
    worker: String,
    errno: Errno,
}

/// What to do about it. A file that is not there is one of the two that starting a worker names; which, is looked up.
fn cure(errno: Errno) -> String {
    match errno {
        Errno::ENOENT => missing(|path| std::path::Path::new(path).exists()),
        errno => cures::of(errno).to_owned(),
    }
}

fn missing(exists: impl Fn(&str) -> bool) -> String {
    if !exists(THIS_EXECUTABLE) {
        return format!(
            "a worker is this program again, started from {THIS_EXECUTABLE}, which is not there: /proc is hidden or not \
             mounted; mount it with `mount -t proc proc /proc`, or start the container or sandbox with its own /proc"
        );
    }
    if !exists(NO_INPUT) {
        return format!(
            "{NO_INPUT}, a worker's standard input, is not there: make it with `mknod -m 666 {NO_INPUT} c 1 3`"
        );
    }
    format!("is the loader there that `file {THIS_EXECUTABLE}` names as its interpreter?")
}

/// Starts every process of `program`, in order. From the main thread: its parent-death signal follows the launching
/// *thread*. It starts its further threads itself. On an error those already started are gone again.
pub(crate) fn launch(program: &Program, provision: &Provision) -> Result<Vec<Child>, LaunchError> {
    let environment: Vec<CString> = std::env::vars_os()
        .filter_map(|(mut name, value)| {
            name.push("=");
            name.push(value);
            CString::new(name.into_vec()).ok()
        })
        .collect();
    let mut children = Vec::with_capacity(provision.reports.len());
    for (number, process) in program.processes().enumerate() {
        let name = name_of_process(process);
        match start(number, provision, &environment) {
            Ok((pid, pidfd)) => {
                let member = |worker: &WorkerProgram| Member { index: worker.index.0, name: name_of(program, worker) };
                let workers = process.iter().map(member).collect();
                let dies = process.iter().any(WorkerProgram::dies);
                children.push(Child { name, workers, pid, pidfd, status: None, dies })
            }
            Err(errno) => return Err(LaunchError { worker: name, errno }),
        }
    }
    Ok(children)
}

/// How messages name the worker of that index; `?` where no child has it.
pub(crate) fn name_among(children: &[Child], index: u32) -> &str {
    let mut members = children.iter().flat_map(|child| &child.workers);
    members.find(|member| member.index == index).map_or("?", |member| &member.name)
}

/// How messages name a worker of `program`. Threads and processes are counted from 0, as workers are.
pub(crate) fn name_of(program: &Program, worker: &WorkerProgram) -> String {
    let process = program.processes().find(|process| process[0].process == worker.process).unwrap_or_default();
    let thread = match process.iter().position(|one| one.index == worker.index) {
        Some(nth) if process.len() > 1 => format!("thread {nth} of process {}, ", worker.process),
        _ => String::new(),
    };
    format!("worker {} (role `{}`, {thread}CPU {})", worker.index, worker.role_name, worker.cpu)
}

/// How messages name a process as a whole: its workers have indices in a row, and are of one role or of several.
fn name_of_process(workers: &[WorkerProgram]) -> String {
    let ([first, ..], [.., last]) = (workers, workers) else { return String::new() };
    match workers.len() {
        1 => format!("worker {} (role `{}`, CPU {})", first.index, first.role_name, first.cpu),
        _ => {
            let mut roles: Vec<String> = workers.iter().map(|worker| format!("`{}`", worker.role_name)).collect();
            roles.dedup();
            let kind = if roles.len() == 1 { "role" } else { "roles" };
            let roles = roles.join(" and ");
            format!("process {} ({kind} {roles}, workers {} to {})", first.process, first.index, last.index)
        }
    }
}

fn start(number: usize, provision: &Provision, environment: &[CString]) -> Result<(Pid, OwnedFd), Errno> {
    let arguments = Arguments {
        segment: provision.segment.name().to_owned(),
        process: number as u32,
        slots: provision.slots,
        parent: std::process::id() as i32,
    };
    let argv: Vec<CString> = std::iter::once("coordinator".to_owned())
        .chain(arguments.to_strings())
        .map(|argument| CString::new(argument).map_err(|_| Errno::EINVAL))
        .collect::<Result<_, _>>()?;
    let mut actions = PosixSpawnFileActions::init()?;
    actions.add_open(0, NO_INPUT, nix::fcntl::OFlag::O_RDONLY, nix::sys::stat::Mode::empty())?;
    let always = [
        (provision.program_fd.as_fd(), PROGRAM_FD),
        (provision.reports[number].as_fd(), REPORT_FD),
        (provision.ready_write.as_fd(), READY_FD),
        (provision.life_read.as_fd(), LIFE_FD),
    ];
    let regions = provision.regions.iter().zip([REGIONS_FD, HUGE_REGIONS_FD]);
    let regions = regions.filter_map(|(fd, number)| Some((fd.as_ref()?.as_fd(), number)));
    for (fd, number) in always.into_iter().chain(regions) {
        actions.add_dup2(fd.as_raw_fd(), number)?;
    }
    let mut attributes = PosixSpawnAttr::init()?;
    attributes.set_flags(PosixSpawnFlags::POSIX_SPAWN_SETSIGMASK)?;
    attributes.set_sigmask(&SigSet::empty())?;
    let pid = posix_spawn(THIS_EXECUTABLE, &actions, &attributes, &argv, environment)?;
    match pidfd_of(pid) {
        Ok(pidfd) => Ok((pid, pidfd)),
        Err(errno) => {
            // By its number, which stays its own until it is waited for. It has not attached, so it holds nothing.
            let _ = kill(pid, Signal::SIGKILL);
            while waitpid(pid, None) == Err(Errno::EINTR) {}
            Err(errno)
        }
    }
}

/// The pidfd of a child that was not waited for yet, so that its number cannot have been given to another process.
fn pidfd_of(pid: Pid) -> Result<OwnedFd, Errno> {
    // SAFETY: pidfd_open takes two numbers and touches no memory of ours. A descriptor it returns is new, and this
    // function, which alone has seen its number, gives it to one owner.
    unsafe {
        let fd = Errno::result(libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0))?;
        Ok(OwnedFd::from_raw_fd(fd as i32))
    }
}

impl Child {
    /// The indices of its workers.
    pub(crate) fn indices(&self) -> impl Iterator<Item = u32> {
        self.workers.iter().map(|member| member.index)
    }

    /// The name of a worker of it; its own where that is not known.
    pub(crate) fn name_of(&self, worker: Option<u32>) -> &str {
        let member = worker.and_then(|index| self.workers.iter().find(|member| member.index == index));
        member.map_or(&self.name, |member| &member.name)
    }

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

    /// Whether it has ended as a loop of its own says: killed, as `die` does it.
    pub(crate) fn died_as_planned(&self) -> bool {
        self.dies && matches!(self.status, Some(WaitStatus::Signaled(_, Signal::SIGKILL, _)))
    }

    /// Kills it, if it lives.
    pub(crate) fn kill(&self) {
        if self.status.is_none() {
            // SAFETY: pidfd_send_signal reads a siginfo only where it is given one, and it is given null. `self` owns
            // the descriptor, so it is open and means this child, even if the child's number is another's by now.
            unsafe {
                libc::syscall(libc::SYS_pidfd_send_signal, self.pidfd.as_raw_fd(), libc::SIGKILL, 0usize, 0);
            }
        }
    }

    /// Waits until it has ended, at most [`REAP_TIME`]; whether it has. For a child that was killed or told to leave.
    pub(crate) fn reap(&mut self) -> bool {
        self.reap_within(REAP_TIME)
    }

    fn reap_within(&mut self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        while self.poll_status().is_none() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            // Whatever it says (EINTR, ENOMEM), the status and the deadline are looked at again.
            let mut ended = [PollFd::new(self.pidfd.as_fd(), PollFlags::POLLIN)];
            let _ = poll(&mut ended, PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX));
        }
        true
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
        // One that does not end is left to the kernel, which ends it at once when its call returns.
        self.reap();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn child(argv: &[&str]) -> Child {
        let argv: Vec<CString> = argv.iter().map(|word| CString::new(*word).unwrap()).collect();
        let (actions, attributes) = (PosixSpawnFileActions::init().unwrap(), PosixSpawnAttr::init().unwrap());
        let pid = posix_spawn(argv[0].as_c_str(), &actions, &attributes, &argv, &[] as &[CString]).unwrap();
        Child { name: "child".into(), workers: vec![], pid, pidfd: pidfd_of(pid).unwrap(), status: None, dies: false }
    }

    #[test]
    fn a_failed_start_names_what_was_lacking_and_no_limit_that_was_not() {
        let hidden = missing(|path| path != THIS_EXECUTABLE);
        assert!(hidden.contains("/proc is hidden or not mounted") && hidden.contains("mount -t proc"), "{hidden}");
        assert!(missing(|path| path != NO_INPUT).contains("mknod -m 666 /dev/null"));
        let said = |errno| LaunchError { worker: "worker 0".into(), errno }.to_string();
        for (errno, limit) in [(Errno::EMFILE, "ulimit -n"), (Errno::EAGAIN, "ulimit -u"), (Errno::ENOMEM, "ulimit -v")]
        {
            assert!(said(errno).contains(limit), "{}", said(errno));
        }
        for errno in [Errno::ENOENT, Errno::EPERM, Errno::EIO] {
            assert!(!said(errno).contains("ulimit"), "{}", said(errno));
        }
    }

    #[test]
    fn threads_are_named_where_a_process_has_several() {
        let worker = |index, process| WorkerProgram {
            index: plan::WorkerIndex(index),
            role_name: "x".into(),
            cpu: plan::CpuId(index % 2),
            process,
            ..WorkerProgram::of([])
        };
        let program = Program::of([worker(0, 0), worker(1, 1), worker(2, 1), worker(3, 1)]);
        let names: Vec<String> = program.workers.iter().map(|worker| name_of(&program, worker)).collect();
        assert_eq!(names[0], "worker 0 (role `x`, CPU 0)");
        assert_eq!(names[1], "worker 1 (role `x`, thread 0 of process 1, CPU 1)");
        assert_eq!(names[3], "worker 3 (role `x`, thread 2 of process 1, CPU 1)");
        let processes: Vec<String> = program.processes().map(name_of_process).collect();
        assert_eq!(processes, [names[0].as_str(), "process 1 (role `x`, workers 1 to 3)"]);
    }

    #[test]
    fn a_child_that_ends_is_reaped_with_its_status() {
        let mut ending = child(&["/bin/sh", "-c", "exit 7"]);
        assert!(ending.reap());
        assert_eq!(ending.status, Some(WaitStatus::Exited(ending.pid, 7)));
    }

    #[test]
    fn a_child_that_does_not_end_is_given_up_and_a_dropped_one_is_gone() {
        let mut staying = child(&["/bin/sleep", "1000"]);
        let pid = staying.pid;
        assert!(!staying.reap_within(Duration::from_millis(20)));
        drop(staying);
        assert_eq!(kill(pid, None), Err(Errno::ESRCH));
    }
}
