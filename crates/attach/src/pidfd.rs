//! Descriptors that stand for processes: they never come to stand for another that got the number later.
#![allow(unsafe_code)] // pidfd_open, which nix lacks

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::os::fd::{AsFd, FromRawFd, OwnedFd};

/// The process that has that number now.
///
/// # Errors
/// ESRCH where there is none; EINVAL, or since Linux 6.9 ENOENT, where it is the number of a thread.
///
/// # References
/// pidfd_open(2).
pub(crate) fn open(pid: u32) -> Result<OwnedFd, Errno> {
    let pid = libc::pid_t::try_from(pid).map_err(|_| Errno::ESRCH)?;
    // SAFETY: pidfd_open takes two numbers and touches no memory of ours.
    let fd = Errno::result(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
    let fd = i32::try_from(fd).map_err(|_| Errno::EBADF)?;
    // SAFETY: the kernel just made this descriptor for us, close-on-exec, and nothing else has its number.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Whether the process has ended, reaped or not.
pub(crate) fn has_ended(pidfd: &impl AsFd) -> bool {
    let mut fds = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
    matches!(poll(&mut fds, PollTimeout::ZERO), Ok(1))
}

#[cfg(test)]
mod tests {
    use super::{has_ended, open};
    use nix::errno::Errno;
    use std::process::{Command, Stdio};

    #[test]
    fn an_ended_process_is_told_though_nobody_reaped_it() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().expect("cat");
        let pidfd = open(child.id()).expect("a living process");
        assert!(!has_ended(&pidfd));
        drop(child.stdin.take());
        testing::within(testing::A_LONG_TIME, "the end of cat", || has_ended(&pidfd).then_some(()));
        child.wait().expect("its status");
        assert!(has_ended(&pidfd));
    }

    #[test]
    fn there_is_no_process_of_an_impossible_number() {
        assert_eq!(open(u32::MAX).expect_err("no such number"), Errno::ESRCH);
    }
}
