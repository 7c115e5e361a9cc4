//! Memory that the two processes and their parent share: anonymous, mapped before the fork.
//!
//! | offset | what |
//! |---|---|
//! | 0 | [`Control`] |
//! | 4096 | the ball of the transfer probe |
//! | 8192 | the words under test |
//! | 12288 .. | records: one for each process and slice; then one transfer time for each quad |
#![allow(unsafe_code)]
// SAFETY of this module: the mapping lives as long as the process (it is unmapped on drop by the parent alone, after
// its children have ended); every word in it is used as an atomic, except the words under test.

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

const PAGE: usize = 4096;

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
    /// Passes between two clock reads, chosen by process 0.
    pub(crate) chunk: AtomicU64,
    /// Counters that counted in process 0 in a contest of counting.
    pub(crate) counted: AtomicU64,
}

/// What one process did in one slice.
#[repr(C)]
pub(crate) struct Record {
    /// Passes between the first and the last clock read.
    pub(crate) passes: AtomicU64,
    /// Ticks between those two.
    pub(crate) ticks: AtomicU64,
    /// Longest distance of two neighbouring reads, ticks.
    pub(crate) longest: AtomicU64,
    /// Clock reads, the first not counted.
    pub(crate) chunks: AtomicU64,
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
    pub(crate) fn set(&self, passes: u64, ticks: u64, longest: u64, chunks: u64) {
        let words = [(&self.passes, passes), (&self.ticks, ticks), (&self.longest, longest), (&self.chunks, chunks)];
        for (word, value) in words {
            word.store(value, Ordering::Relaxed);
        }
    }
}
