//! Waits that fail in the end: one without a deadline would hold up all tests, and say nothing.

use std::time::{Duration, Instant};

/// What a wait allows the slowest machine.
pub const A_LONG_TIME: Duration = Duration::from_secs(120);

/// For so long a wait only lets others go first. Most that is waited for is there by then; behind that, the CPU is left to
/// those who do it.
const BRIEF: Duration = Duration::from_millis(2);

/// Asks `found` again and again until it gives something.
///
/// # Panics
/// After `limit`, with `what` was waited for.
#[track_caller]
pub fn within<T>(limit: Duration, what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        let waited = begin.elapsed();
        assert!(waited < limit, "not within {limit:?}: {what}");
        if waited < BRIEF {
            std::thread::yield_now();
        } else {
            std::thread::sleep(BRIEF);
        }
    }
}
