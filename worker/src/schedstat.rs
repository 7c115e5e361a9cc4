//! How long a thread was runnable without running: the run-queue delay by which a long blocking is told from an
//! eviction.
//!
//! # References
//! Documentation/scheduler/sched-stats.rst, `/proc/<pid>/schedstat`: the second figure, nanoseconds.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// The calling thread's run-queue delay, since it last asked.
pub(crate) struct Schedstat {
    file: Option<File>,
    base_ns: u64,
}

impl Schedstat {
    /// Of the calling thread, from now on.
    pub(crate) fn open() -> Schedstat {
        Schedstat { file: File::open("/proc/thread-self/schedstat").ok(), base_ns: 0 }
    }

    /// Whether the kernel keeps it.
    pub(crate) fn tells(&self) -> bool {
        self.file.is_some()
    }

    /// Forgets the delay so far.
    pub(crate) fn rebase(&mut self) {
        self.base_ns = self.delay_ns().unwrap_or(0);
    }

    /// Nanoseconds of delay since the last [`Schedstat::rebase`], or since this was last asked; `None` where the kernel
    /// keeps none.
    pub(crate) fn delay_since_rebase(&mut self) -> Option<u64> {
        let now = self.delay_ns()?;
        let since = now.saturating_sub(self.base_ns);
        self.base_ns = now;
        Some(since)
    }

    fn delay_ns(&self) -> Option<u64> {
        let mut text = [0u8; 96];
        let length = self.file.as_ref()?.read_at(&mut text, 0).ok()?;
        std::str::from_utf8(&text[..length]).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
    }
}
