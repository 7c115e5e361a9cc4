//! How long this process was ready to run and did not.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Second figure of `/proc/thread-self/schedstat`, nanoseconds (Documentation/scheduler/sched-stats.rst).
pub(crate) struct RunQueue(Option<File>);

impl RunQueue {
    /// Of the calling thread; where the kernel keeps none, or nobody asks, it stands at 0.
    pub(crate) fn open(asked: bool) -> RunQueue {
        RunQueue(asked.then(|| File::open("/proc/thread-self/schedstat").ok()).flatten())
    }

    /// So far. A system call.
    pub(crate) fn waited_ns(&self) -> u64 {
        self.0.as_ref().and_then(read).unwrap_or(0)
    }
}

fn read(file: &File) -> Option<u64> {
    let mut text = [0; 96];
    let length = file.read_at(&mut text, 0).ok()?;
    second_figure(&text[..length])
}

fn second_figure(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_second_figure_and_never_shrinks() {
        assert_eq!(second_figure(b"182736 5512 14\n"), Some(5512));
        assert_eq!(second_figure(b"\n"), None);
        let queue = RunQueue::open(true);
        let before = queue.waited_ns();
        std::thread::yield_now();
        assert!(queue.waited_ns() >= before);
        assert_eq!(RunQueue::open(false).waited_ns(), 0);
    }
}
