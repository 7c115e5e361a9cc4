//! What compiled code and hooks agree on while a loop runs, in memory of the worker's own.

use std::cell::Cell;
use std::ffi::c_void;
use std::mem::offset_of;

/// No acquisition has this number.
pub const NEVER: u64 = u64::MAX;

/// One lock's cell, in a row with one for each lock of the Program, by index, and at least one. The address of the
/// first is what [`CompiledLoop::run`](super::CompiledLoop::run) is given and what hooks are handed: compiled code has
/// it in a register all the time, and reaches all of the row from it.
///
/// A pair of lines each: workers that are threads of one process never share one.
#[repr(C, align(128))]
#[derive(Debug)]
pub struct LockCell {
    /// Of the first cell alone: behind the pass of this number, or the present one if that is later, a loop that can
    /// block returns. Compiled code sets it when it begins; a hook that sets it to 0 ends the loop behind the present
    /// pass.
    pub last_pass: Cell<u64>,
    /// Of the first cell alone: what the hooks make of it. Compiled code leaves it alone.
    pub context: Cell<*mut c_void>,
    /// As its owner, and as a reader where the kind has none.
    pub exclusive: Tally,
    /// As a reader among others.
    pub shared: Tally,
    /// Hooks make it nonzero where the next release is to go by the hook `unlock`, which makes it 0 again.
    pub by_hook: Cell<u32>,
}

/// The acquisitions of one part.
#[repr(C)]
#[derive(Debug)]
pub struct Tally {
    /// How many so far. Compiled code alone counts, behind each acquisition.
    pub acquired: Cell<u64>,
    /// The number, from 1, of the acquisition behind which the hook `sample` is called; [`NEVER`].
    pub sample_at: Cell<u64>,
}

const _: () = assert!(size_of::<LockCell>() == 128 && offset_of!(LockCell, last_pass) == 0);

impl Default for Tally {
    fn default() -> Tally {
        Tally { acquired: Cell::new(0), sample_at: Cell::new(NEVER) }
    }
}

impl Default for LockCell {
    fn default() -> LockCell {
        LockCell {
            last_pass: Cell::new(0),
            context: Cell::new(std::ptr::null_mut()),
            exclusive: Tally::default(),
            shared: Tally::default(),
            by_hook: Cell::new(0),
        }
    }
}

impl LockCell {
    /// A new row for so many locks.
    pub fn row(locks: usize) -> Vec<LockCell> {
        (0..locks.max(1)).map(|_| LockCell::default()).collect()
    }

    /// The tally of a part.
    pub fn tally(&self, shared: bool) -> &Tally {
        if shared { &self.shared } else { &self.exclusive }
    }

    /// Acquisitions so far.
    pub fn acquired(&self) -> u64 {
        self.exclusive.acquired.get() + self.shared.acquired.get()
    }
}

/// Byte offsets from the first cell, for compiled code.
pub(super) fn tally(lock: u32, shared: bool) -> i64 {
    let part = if shared { offset_of!(LockCell, shared) } else { offset_of!(LockCell, exclusive) };
    cell(lock) + part as i64
}

pub(super) fn by_hook(lock: u32) -> i64 {
    cell(lock) + offset_of!(LockCell, by_hook) as i64
}

pub(super) const LAST_PASS: i32 = offset_of!(LockCell, last_pass) as i32;
pub(super) const ACQUIRED: i64 = offset_of!(Tally, acquired) as i64;
pub(super) const SAMPLE_AT: i64 = offset_of!(Tally, sample_at) as i64;

fn cell(lock: u32) -> i64 {
    i64::from(lock) * size_of::<LockCell>() as i64
}
