//! Requests to end, as a descriptor that can be polled beside the workers.

use crate::cures;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::os::fd::{AsFd, BorrowedFd};

/// SIGINT, SIGTERM, SIGHUP and SIGQUIT, blocked and readable, as long as this lives: so long workers and a segment must be
/// cleaned up after. One that this process was begun to ignore, as nohup(1) has it, stays ignored. Dropped, it restores
/// the thread's mask, and a signal that is still pending acts as it would have.
/// Workers start with an empty mask of their own.
pub(crate) struct Signals {
    descriptor: SignalFd,
    mask_before: SigSet,
}

/// The signals cannot be read, so nothing was begun that they would have to end.
#[derive(Debug, thiserror::Error)]
#[error("signalfd failed: {0}: {cure}", cure = cures::of(*.0))]
pub(crate) struct SignalsError(Errno);

/// A file that grows beyond `ulimit -f` then answers EFBIG, which is reported and cleaned up after, instead of ending the
/// process; workers inherit it.
pub(crate) fn ignore_file_size_limit() {
    #[allow(unsafe_code)]
    // SAFETY: SIG_IGN runs no code of ours.
    let result = unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) };
    debug_assert!(result.is_ok(), "SIGXFSZ can be ignored");
}

/// Whether whoever began this process had it ignore that signal: nohup(1), or a shell without job control for what it
/// runs in the background. Blocked, the kernel would queue it all the same (`sig_ignored` of kernel/signal.c). It must be
/// blocked, since it is asked by way of another disposition.
fn is_ignored(which: Signal) -> bool {
    #[allow(unsafe_code)]
    // SAFETY: SIG_DFL runs no code of ours, and the other is what was there.
    let before = unsafe { signal(which, SigHandler::SigDfl) };
    let is_ignored = matches!(before, Ok(SigHandler::SigIgn));
    if let Ok(before) = before {
        #[allow(unsafe_code)]
        // SAFETY: as above.
        let restored = unsafe { signal(which, before) };
        debug_assert!(restored.is_ok(), "{which} had that disposition");
    }
    is_ignored
}

impl Signals {
    /// Blocks the signals for this thread. No other thread may be alive then, or it would take the signals.
    ///
    /// # Errors
    /// Where the kernel gives no descriptor; the mask is as before then.
    pub(crate) fn block() -> Result<Signals, SignalsError> {
        let requests = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT];
        let mask_before = SigSet::from_iter(requests).thread_swap_mask(SigmaskHow::SIG_BLOCK).map_err(SignalsError)?;
        let heard = SigSet::from_iter(requests.into_iter().filter(|&request| !is_ignored(request)));
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        let descriptor = SignalFd::with_flags(&heard, flags);
        let mut mask = mask_before;
        if descriptor.is_ok() {
            mask.extend(&heard);
        }
        // It fails for an unknown `how` alone (pthread_sigmask(3)).
        let _ = mask.thread_set_mask();
        Ok(Signals { descriptor: descriptor.map_err(SignalsError)?, mask_before })
    }

    /// Whether one has come. It stays pending.
    pub(crate) fn pending(&self) -> bool {
        let mut fds = [PollFd::new(self.as_fd(), PollFlags::POLLIN)];
        matches!(poll(&mut fds, PollTimeout::ZERO), Ok(1))
    }

    /// Lets signals act on the calling thread, which is not the one that blocked them, as they did before.
    pub(crate) fn act_here(&self) {
        // It fails for an unknown `how` alone (pthread_sigmask(3)).
        let _ = self.mask_before.thread_set_mask();
    }

    /// Takes what is pending, so that it does not act a second time, and says whether there was any.
    pub(crate) fn take(&self) -> bool {
        let mut any = false;
        while let Ok(Some(_)) = self.descriptor.read_signal() {
            any = true;
        }
        any
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // It fails for an unknown `how` alone (pthread_sigmask(3)).
        let _ = self.mask_before.thread_set_mask();
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::signal::raise;

    #[test]
    fn the_mask_is_as_before_once_nobody_looks_any_more() {
        // A thread of its own: `raise` reaches the calling thread alone, and so does the mask.
        let outcome = std::thread::spawn(|| {
            let before = SigSet::thread_get_mask().unwrap();
            let signals = Signals::block().unwrap();
            assert!(!signals.pending() && !signals.take());
            raise(Signal::SIGTERM).unwrap();
            assert!(signals.pending(), "looking does not take it");
            assert!(signals.take() && !signals.pending(), "taken, it will not act");
            drop(signals);
            assert_eq!(SigSet::thread_get_mask().unwrap(), before);
        });
        outcome.join().unwrap();
    }
}
