//! Ctrl-C, or another request to end, while a watch goes on: the first ends it early, the second ends the program at once.

use crate::signals::Signals;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs `work`, which asks the flag that it is given whether to end. `heard` is called at the first request, from a thread of
/// its own; from then on signals act as in any program, and the kernel takes back what was opened on others.
///
/// # Errors
/// Where no descriptor or thread is left.
pub(super) fn watching<T>(
    signals: &Signals,
    heard: &(dyn Fn() + Sync),
    work: impl FnOnce(&AtomicBool) -> T,
) -> io::Result<T> {
    let (over, end) = io::pipe()?;
    let asked = AtomicBool::new(false);
    let done = std::thread::scope(|scope| {
        std::thread::Builder::new().spawn_scoped(scope, || listen(signals, &over, &asked, heard))?;
        let _end = end; // closed at the end, be it a panic's
        Ok::<T, io::Error>(work(&asked))
    })?;
    Ok(done)
}

/// Waits for a request, and then for the end.
fn listen(signals: &Signals, over: &impl AsFd, asked: &AtomicBool, heard: &dyn Fn()) {
    let over = || PollFd::new(over.as_fd(), PollFlags::empty()); // its hang-up is told unasked
    wait(&mut [over(), PollFd::new(signals.as_fd(), PollFlags::POLLIN)]);
    if signals.take() {
        // Relaxed: nothing is published with it.
        asked.store(true, Ordering::Relaxed);
        // First: who is told may not be read.
        signals.act_here();
        heard();
        wait(&mut [over()]);
    }
}

fn wait(fds: &mut [PollFd<'_>]) {
    while poll(fds, PollTimeout::NONE) == Err(Errno::EINTR) {}
}
