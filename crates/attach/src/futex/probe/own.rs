//! What a hit costs the thread that takes it, measured on this thread.
#![allow(unsafe_code)] // calls of the C library's lock; its address

use super::{FIELDS, RING_PAGES};
use crate::perf::{Event, Order, Ring, Source, Whom};
use crate::registers::ASKED;
use crate::{maps, symbols};
use host::Root;
use std::os::fd::AsRawFd;
use std::time::Instant;

/// Calls of one series, at some ten microseconds each.
const CALLS: u32 = 100;
/// Series with and without a probe; of each the fastest counts, which nobody interrupted.
const SERIES: u32 = 3;

/// Nanoseconds that one acquisition takes longer with a probe on `pthread_mutex_lock`; to be told before [`super::probe()`]
/// is used. `None` where this process may not probe itself, or its C library is not shared.
pub fn cost_ns(root: &Root) -> Option<f64> {
    let unit = host::pmu(root, "uprobe")?.kind;
    let address = libc::pthread_mutex_lock as *const () as u64;
    let pid = std::process::id();
    let mapped = maps::of(pid);
    let mapping = mapped.iter().find(|one| one.executable && one.holds(address))?;
    let file = symbols::open(pid, mapping)?;
    let source =
        Source::Instruction { unit, file: file.as_raw_fd(), offset: mapping.offset + (address - mapping.start) };
    let order = |source| Order { source, period: 1, fields: FIELDS, registers: ASKED, inherit: false, kernel: false };
    let own = Whom::Thread(nix::unistd::gettid().as_raw().unsigned_abs());
    let fastest = || (0..SERIES).map(|_| call_ns()).fold(f64::INFINITY, f64::min);
    let free_ns = fastest();
    let owner = Event::open(&order(Source::Nothing), own).ok()?;
    let _ring = Ring::map(&owner, RING_PAGES, FIELDS, ASKED).ok()?;
    let event = Event::open(&order(source), own).ok()?;
    event.write_to(&owner).ok()?;
    event.enable().ok()?;
    let probed_ns = fastest();
    // The address may be of a stub that only leads to the function: then nothing was hit, and nothing measured.
    (event.count() == Ok(u64::from(CALLS * SERIES))).then(|| (probed_ns - free_ns).max(0.0))
}

/// Mean time of taking a free lock, and giving it back.
fn call_ns() -> f64 {
    let mut mutex = libc::PTHREAD_MUTEX_INITIALIZER;
    let from = Instant::now();
    for _ in 0..CALLS {
        // SAFETY: a mutex on this stack, initialised statically, that this thread alone knows.
        unsafe {
            libc::pthread_mutex_lock(&raw mut mutex);
            libc::pthread_mutex_unlock(&raw mut mutex);
        }
    }
    from.elapsed().as_nanos() as f64 / f64::from(CALLS)
}
