//! Points in time as the C library's timed calls take them.

use nix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// The clock that the timed calls wait by: `Instant`'s. No step of the wall clock moves it, which would end a wait too
/// early, or hours late: with the run in the latter case.
pub(super) const CLOCK: libc::clockid_t = libc::CLOCK_MONOTONIC;

/// `deadline` on [`CLOCK`].
pub(super) fn on_the_clock(deadline: Instant) -> libc::timespec {
    let left = deadline.saturating_duration_since(Instant::now());
    // It fails for an unknown clock alone (clock_gettime(2)).
    let now = clock_gettime(ClockId::from_raw(CLOCK)).map_or(Duration::ZERO, Duration::from);
    timespec(now.saturating_add(left))
}

/// The length, or a point after an epoch.
pub(super) fn timespec(length: Duration) -> libc::timespec {
    let seconds = libc::time_t::try_from(length.as_secs()).unwrap_or(libc::time_t::MAX);
    libc::timespec { tv_sec: seconds, tv_nsec: length.subsec_nanos().into() }
}
