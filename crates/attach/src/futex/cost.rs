//! What a record of a call costs the thread that makes it, measured on this thread.
#![allow(unsafe_code)] // the futex call, which no package makes without waiting

use super::open::{Opened, Tracepoints};
use host::Root;
use std::sync::atomic::AtomicU32;
use std::time::Instant;

/// Calls of one series: some tenths of a millisecond.
const CALLS: u32 = 500;
/// Series with and without records; of each the fastest counts, which nobody interrupted.
const SERIES: u32 = 5;

/// Nanoseconds that the kernel takes for one record of a call: what a call that wakes nobody takes longer with both its ends
/// recorded, by two. To be asked while others' calls are recorded, so that the tracepoints themselves are on in both cases.
/// 0 where this thread may not be watched.
pub(super) fn per_event_ns(root: &Root, tracepoints: &Tracepoints) -> f64 {
    let fastest = || (0..SERIES).map(|_| call_ns()).fold(f64::INFINITY, f64::min);
    let free_ns = fastest();
    let Some(_opened) = Opened::on_own_thread(root, tracepoints) else { return 0.0 };
    ((fastest() - free_ns) / 2.0).max(0.0)
}

/// Mean time of a call that wakes nobody.
fn call_ns() -> f64 {
    let word = AtomicU32::new(0);
    let from = Instant::now();
    for _ in 0..CALLS {
        // SAFETY: FUTEX_WAKE reads nothing and writes nothing; it takes the address of a word that lives on this stack.
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1) };
    }
    from.elapsed().as_nanos() as f64 / f64::from(CALLS)
}
