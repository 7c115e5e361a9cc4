//! A worker never outlives its coordinator, by three means: the parent-death signal, the end of a pipe, a timer.
//!
//! The signal alone is not enough: it is cleared by executing a file with capabilities, and it fires when the launching
//! *thread* exits, not the process. Their default actions end the process, so nothing here can be caught in a loop.

use crate::handover::LIFE_FD;
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl, open};
use nix::sys::prctl;
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, alarm, getpid, getppid, read};
use plan::Program;
use std::os::fd::{AsRawFd, OwnedFd};

/// Beyond window, warm-up and a pass at either end, how long a worker may live by its own timer; times the workers that
/// take turns on its CPU. The coordinator's deadline is shorter.
const GRACE_S: u64 = 40;

/// Ties this process to its coordinator. Interrupts from the keyboard are for the coordinator, which ends its workers.
///
/// # Errors
/// ESRCH where the coordinator is gone already, or what a call said.
pub(crate) fn tie_to(parent: i32) -> Result<(), Errno> {
    ignore_interrupts()?;
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    if getppid() != Pid::from_raw(parent) {
        return Err(Errno::ESRCH); // it died before the signal was set
    }
    watch_pipe()
}

/// The kernel's own end to a worker that hangs while its coordinator cannot act.
pub(crate) fn set_deadline(program: &Program) {
    let pass = program.longest_pass();
    let lengths = [program.window, program.warm_up, program.longest_populate(), pass, pass];
    let seconds = lengths.iter().fold(0u64, |sum, n| sum.saturating_add(n.0)).div_ceil(1_000_000_000) + GRACE_S;
    let seconds = seconds.saturating_mul(u64::from(program.workers_a_cpu()));
    alarm::set(u32::try_from(seconds).unwrap_or(u32::MAX));
}

/// Stops that timer: for a worker that waits for a human.
pub(crate) fn cancel_deadline() {
    alarm::cancel();
}

fn ignore_interrupts() -> Result<(), Errno> {
    #[allow(unsafe_code)]
    // SAFETY: SIG_IGN runs no code of ours.
    unsafe {
        nix::sys::signal::signal(Signal::SIGINT, SigHandler::SigIgn)?;
    }
    sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)
}

/// Asks for SIGIO, which ends the process, at the pipe's end. `F_SETOWN` belongs to the open file, so each worker opens
/// the pipe anew for itself.
fn watch_pipe() -> Result<(), Errno> {
    let own: OwnedFd = open(
        format!("/proc/self/fd/{LIFE_FD}").as_str(),
        OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC,
        Mode::empty(),
    )?;
    #[allow(unsafe_code)]
    // SAFETY: a plain system call on a descriptor we own; nix has no F_SETOWN.
    Errno::result(unsafe { libc::fcntl(own.as_raw_fd(), libc::F_SETOWN, getpid().as_raw()) })?;
    fcntl(&own, FcntlArg::F_SETFL(OFlag::O_ASYNC | OFlag::O_NONBLOCK))?;
    let ended_before = read(&own, &mut [0]) == Ok(0);
    std::mem::forget(own); // watched for as long as the process lives
    if ended_before { Err(Errno::ESRCH) } else { Ok(()) }
}
