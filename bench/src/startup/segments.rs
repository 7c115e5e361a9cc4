//! The windows of a run that is watched from outside: its segments are opened while they have names, and read when it has
//! ended. Nothing is done in a window: this process sleeps until a name comes or goes.
#![allow(unsafe_code)]

use crate::all::Unmeasured;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use shm_layout::{WindowTicks, ticks};
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::process::Child;

/// Where POSIX shared memory has its names (shm_overview(7)), and how the lab's begin.
const FOLDER: &CStr = c"/dev/shm";
const PREFIX: &str = "contention-lab-";

/// What comes to the folder and goes.
pub(super) struct Segments {
    events: File,
}

impl Segments {
    /// From now on.
    ///
    /// # Errors
    /// [`Unmeasured`]: inotify(7) says no.
    pub(super) fn watch() -> Result<Segments, Unmeasured> {
        // SAFETY: no memory is passed.
        let events = unsafe { libc::inotify_init1(libc::IN_NONBLOCK | libc::IN_CLOEXEC) };
        if events < 0 {
            return Err(io::Error::last_os_error().into());
        }
        // SAFETY: the descriptor is new and nobody else's.
        let events = unsafe { OwnedFd::from_raw_fd(events) };
        let wanted = libc::IN_CREATE | libc::IN_DELETE;
        // SAFETY: the path is a constant that ends in a zero byte.
        let watch = unsafe { libc::inotify_add_watch(events.as_raw_fd(), FOLDER.as_ptr(), wanted) };
        if watch < 0 {
            return Err(io::Error::last_os_error().into());
        }
        Ok(Segments { events: File::from(events) })
    }

    /// The windows of a run, in their order, and when it ended, ticks. Those of other runs on this machine are left out.
    ///
    /// # Errors
    /// [`Unmeasured`]: what comes cannot be read, or came and went too fast.
    pub(super) fn windows_until_end(&mut self, run: &Child) -> Result<(Vec<WindowTicks>, u64), Unmeasured> {
        let end = pidfd(run)?;
        let (mut named, mut ours) = (BTreeMap::new(), Vec::new());
        let ended = loop {
            let has_ended = self.sleep_until_news(&end)?;
            let now = ticks();
            for (is_new, name) in self.events()? {
                match is_new {
                    true => _ = File::open(format!("/dev/shm/{name}")).map(|file| named.insert(name, file)),
                    // All have attached: whoever made it maps it by now.
                    false if maps(run.id(), &name) => ours.push(named.remove(&name).ok_or_else(unseen)?),
                    false => _ = named.remove(&name),
                }
            }
            if has_ended {
                break now;
            }
        };
        let windows = ours.iter().map(WindowTicks::read).collect::<io::Result<Vec<_>>>()?;
        Ok((windows.into_iter().flatten().collect(), ended))
    }

    /// Sleeps until a name comes or goes, or the process ends; whether that has ended.
    fn sleep_until_news(&self, end: &OwnedFd) -> Result<bool, Unmeasured> {
        let wanted = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut wanted = [wanted(self.events.as_fd()), wanted(end.as_fd())];
        match poll(&mut wanted, PollTimeout::NONE) {
            Ok(_) => Ok(wanted[1].any().unwrap_or(false)),
            Err(Errno::EINTR) => Ok(false),
            Err(errno) => Err(io::Error::from(errno).into()),
        }
    }

    /// Names of the lab's that came (`true`) or went since it was last asked.
    fn events(&mut self) -> io::Result<Vec<(bool, String)>> {
        let mut bytes = [0; 16_384];
        match self.events.read(&mut bytes) {
            Ok(length) => Ok(read(&bytes[..length])),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

/// inotify(7): four words, the second of which says what, the fourth how long the name behind them is with its zeros.
fn read(mut bytes: &[u8]) -> Vec<(bool, String)> {
    let mut found = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<16>() {
        let word = |at: usize| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (mask, length) = (word(4), word(12) as usize);
        let Some((name, rest)) = rest.split_at_checked(length) else { break };
        let name = String::from_utf8_lossy(name).trim_end_matches('\0').to_owned();
        if name.starts_with(PREFIX) {
            found.push((mask & libc::IN_CREATE != 0, name));
        }
        bytes = rest;
    }
    found
}

/// Readable when the process has ended (pidfd_open(2)).
fn pidfd(run: &Child) -> io::Result<OwnedFd> {
    // SAFETY: no memory is passed; a child that nobody has waited for keeps its number.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, run.id(), 0) };
    match i32::try_from(fd) {
        // SAFETY: the descriptor is new and nobody else's.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

fn unseen() -> Unmeasured {
    Unmeasured::Failed("a segment came and went before it could be opened: this machine is too busy".to_owned())
}

fn maps(pid: u32, name: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/maps")).is_ok_and(|maps| maps.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(mask: u32, name: &str, padded: usize) -> Vec<u8> {
        let words = [1, mask, 0, padded as u32].map(u32::to_ne_bytes).concat();
        let mut name = name.as_bytes().to_vec();
        name.resize(padded, 0);
        [words, name].concat()
    }

    #[test]
    fn events_are_told_apart_and_others_are_left_out() {
        let bytes = [
            event(libc::IN_CREATE, "contention-lab-1", 32),
            event(libc::IN_CREATE, "sem.other", 16),
            event(libc::IN_DELETE, "contention-lab-1", 32),
        ];
        let name = "contention-lab-1".to_owned();
        assert_eq!(read(&bytes.concat()), [(true, name.clone()), (false, name)]);
        assert!(read(&bytes[0][..20]).is_empty(), "cut short");
    }

    #[test]
    fn names_that_come_and_go_are_seen() {
        let mut segments = Segments::watch().unwrap_or_else(|_| panic!("no inotify"));
        let name = format!("{PREFIX}test-{}", std::process::id());
        std::fs::write(format!("/dev/shm/{name}"), b"").unwrap();
        std::fs::remove_file(format!("/dev/shm/{name}")).unwrap();
        let seen: Vec<bool> = segments
            .events()
            .unwrap()
            .into_iter()
            .filter(|(_, seen)| *seen == name)
            .map(|(is_new, _)| is_new)
            .collect();
        assert_eq!(seen, [true, false]);
        assert!(!maps(std::process::id(), &name));
    }
}
