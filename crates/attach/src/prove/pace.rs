//! What each thread has lost to being watched, and how long to leave it alone.

use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Longest sleep before it is asked again whether to stop.
const NAP: Duration = Duration::from_millis(20);

/// Bounds what a watch takes of a thread's time.
pub(super) struct Pace {
    started: Instant,
    most_lost: f64,
    spent_ns: HashMap<u32, f64>,
}

impl Pace {
    /// `most_lost` is the part of its time that no thread may lose.
    pub(super) fn new(most_lost: f64) -> Pace {
        Pace { started: Instant::now(), most_lost, spent_ns: HashMap::new() }
    }

    /// So much was taken of a thread.
    pub(super) fn spend(&mut self, tid: u32, ns: f64) {
        *self.spent_ns.entry(tid).or_default() += ns;
    }

    /// Sleeps until nobody has lost more than the bound.
    pub(super) fn wait(&self, stop: &dyn Fn() -> bool) {
        loop {
            let left = self.left(self.started.elapsed());
            if left.is_zero() || stop() {
                return;
            }
            std::thread::sleep(left.min(NAP));
        }
    }

    fn left(&self, elapsed: Duration) -> Duration {
        let most = self.spent_ns.values().copied().fold(0.0, f64::max);
        let needed = Duration::from_nanos((most / self.most_lost) as u64);
        needed.saturating_sub(elapsed)
    }
}

#[cfg(test)]
mod tests {
    use super::Pace;
    use std::time::Duration;

    #[test]
    fn who_lost_most_decides_and_time_heals() {
        let mut pace = Pace::new(0.02);
        assert_eq!(pace.left(Duration::ZERO), Duration::ZERO);
        pace.spend(1, 150_000.0);
        pace.spend(2, 90_000.0);
        pace.spend(2, 90_000.0);
        assert_eq!(pace.left(Duration::from_millis(4)), Duration::from_millis(5));
        assert_eq!(pace.left(Duration::from_millis(9)), Duration::ZERO);
    }
}
