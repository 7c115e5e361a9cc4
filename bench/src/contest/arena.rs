//! Memory that the two processes and their parent share: anonymous, mapped before the fork.
//!
//! | offset | what |
//! |---|---|
//! | 0 | [`Control`] |
//! | 4096 | the ball of the transfer probe |
//! | 8192 | the words under test; or the locks in C, one a process |
//! | 8192 + 1024 | what the sections of those locks bump |
//! | 8192 + 2048 | their queue nodes, three a process |
//! | 12288 .. | records: one for each process and slice; then one transfer time for each quad |
#![allow(unsafe_code)]
// SAFETY of this module: the mapping lives as long as the process (it is unmapped on drop by the parent alone, after
// its children have ended); every word in it is used as an atomic, except the words under test.

use crate::contest::Side;
use crate::contest::c_locks::Seat;
use crate::contest::evictions::Seen;
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

const PAGE: usize = 4096;

/// Where the word that C's sections bump lies among the words.
const PROTECTED: usize = 1024;

/// What the two processes meet at.
#[repr(C, align(128))]
pub(crate) struct Control {
    /// Arrivals at slices, both processes together.
    pub(crate) arrived: AtomicU64,
    /// Keeps what is polled off the line that arrivals write.
    _apart: [u64; 31],
    /// Number of the slice that may run; the last one to arrive sets it.
    pub(crate) slice: AtomicU64,
    /// When it begins, ticks.
    pub(crate) begin: AtomicU64,
    /// Passes between two clock reads, of the contestant and of the reference; chosen by process 0.
    pub(crate) chunks: [AtomicU64; 2],
    /// What each process did in the whole batch.
    pub(crate) tallies: [Tally; 2],
}

/// What one process did in a whole batch; written at its end.
#[repr(C)]
pub(crate) struct Tally {
    /// In a contest of counting: counters that counted.
    pub(crate) counted: AtomicU64,
    /// Passes that the contestant and the reference made on a lock, warm-up included.
    pub(crate) made: [AtomicU64; 2],
    /// Acquisitions that the lab recorded.
    pub(crate) acquisitions: AtomicU64,
    /// Those of them whose first attempt failed.
    pub(crate) contended: AtomicU64,
}

/// What one process did in one slice: [`Seen`], whose side the schedule tells.
#[repr(C)]
pub(crate) struct Record {
    passes: AtomicU64,
    ticks: AtomicU64,
    longest: AtomicU64,
    chunks: AtomicU64,
    queued_ns: AtomicU64,
}

/// The shared mapping.
pub(crate) struct Arena {
    base: NonNull<u8>,
    bytes: usize,
    slices: usize,
}

impl Arena {
    /// Maps and touches memory for `quads` quads.
    pub(crate) fn new(quads: usize) -> io::Result<Arena> {
        let slices = quads * 4;
        let bytes = 3 * PAGE + 2 * slices * size_of::<Record>() + quads * size_of::<AtomicU64>();
        // SAFETY: a fresh anonymous mapping, no address asked for.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
                -1,
                0,
            )
        };
        match NonNull::new(base.cast::<u8>()) {
            Some(base) if base.as_ptr().cast::<libc::c_void>() != libc::MAP_FAILED => Ok(Arena { base, bytes, slices }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn at<T>(&self, offset: usize) -> &T {
        assert!(offset + size_of::<T>() <= self.bytes);
        // SAFETY: inside the mapping, aligned by the table above, zeroed, and of atomics alone.
        unsafe { self.base.byte_add(offset).cast::<T>().as_ref() }
    }

    pub(crate) fn control(&self) -> &Control {
        self.at(0)
    }

    /// What the transfer probe throws to and fro.
    pub(crate) fn ball(&self) -> &AtomicU64 {
        self.at(PAGE)
    }

    /// A word under test; `offset` lies in one page.
    pub(crate) fn word(&self, offset: usize) -> *mut u64 {
        assert!(offset + size_of::<u64>() <= PAGE);
        self.base.as_ptr().wrapping_add(2 * PAGE + offset).cast()
    }

    /// The seat of a process at the C lock of `owner`, with so many turns of work outside the section.
    pub(crate) fn seat(&self, process: usize, owner: usize, turns: u64) -> Seat {
        let (lock, nodes) = (self.word(owner * 256), self.word(2048 + owner * 512));
        Seat::new(process, lock.cast(), nodes.cast(), self.word(PROTECTED), turns)
    }

    /// What the sections of the C locks bump, one at a time: for the parent when nobody does any more, and for a look
    /// at how far they are.
    pub(crate) fn protected(&self) -> &AtomicU64 {
        self.at(2 * PAGE + PROTECTED)
    }

    pub(crate) fn record(&self, process: usize, slice: usize) -> &Record {
        assert!(slice < self.slices && process < 2);
        self.at(3 * PAGE + (process * self.slices + slice) * size_of::<Record>())
    }

    /// One-way transfer time before a quad, in ticks times 1000.
    pub(crate) fn transfer(&self, quad: usize) -> &AtomicU64 {
        assert!(quad * 4 < self.slices);
        self.at(3 * PAGE + 2 * self.slices * size_of::<Record>() + quad * size_of::<AtomicU64>())
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: nothing borrows the mapping any more; children have mappings of their own.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}

impl Record {
    /// Written once, after the slice; read by the parent after the process has ended.
    pub(crate) fn set(&self, seen: &Seen) {
        let values = [seen.passes, seen.ticks, seen.longest, seen.chunks, seen.queued_ns];
        self.words().into_iter().zip(values).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
    }

    /// What was written, of a slice of that side.
    pub(crate) fn get(&self, side: Side) -> Seen {
        let [passes, ticks, longest, chunks, queued_ns] = self.words().map(|word| word.load(Ordering::Relaxed));
        Seen { side, passes, ticks, longest, chunks, queued_ns }
    }

    fn words(&self) -> [&AtomicU64; 5] {
        [&self.passes, &self.ticks, &self.longest, &self.chunks, &self.queued_ns]
    }
}
