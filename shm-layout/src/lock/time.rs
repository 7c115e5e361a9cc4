//! Points in time as the C library's timed calls take them.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// `deadline` on the realtime clock, which `pthread_mutex_timedlock` and its like wait by. A step of that clock while a
/// caller waits moves its deadline by as much.
pub(super) fn realtime(deadline: Instant) -> libc::timespec {
    let left = deadline.saturating_duration_since(Instant::now());
    // A clock set to before 1970 gives no waiting at all.
    timespec(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).saturating_add(left))
}

/// The length, or a point after an epoch.
pub(super) fn timespec(length: Duration) -> libc::timespec {
    let seconds = libc::time_t::try_from(length.as_secs()).unwrap_or(libc::time_t::MAX);
    libc::timespec { tv_sec: seconds, tv_nsec: length.subsec_nanos().into() }
}
