//! How many passes go between two clock reads, in a worker's loop as in the contended probe.

use plan::TickRate;

/// A batch aims at this: often enough that an eviction shows as a gap and a stop is seen soon, rarely enough that the
/// clock read (12 to 40 ns in a virtual machine) costs under 0.2 %.
pub(crate) const BATCH_NS: u64 = 20_000;
/// No batch is planned longer than this many passes.
const MAX_BATCH: u64 = 1 << 40;

/// How many passes a batch has: adapted all along, since other workers come and go.
pub(crate) struct Batch {
    passes: u64,
    unroll: u64,
    aim_ticks: f64,
}

impl Batch {
    /// Batches of a loop that makes `unroll` passes an iteration.
    pub(crate) fn new(unroll: u64, rate: TickRate) -> Batch {
        Batch { passes: unroll, unroll, aim_ticks: BATCH_NS as f64 * rate.ticks_per_ns }
    }

    /// Passes of the next batch.
    pub(crate) fn passes(&self) -> u64 {
        self.passes
    }

    /// Learns from the length of the last batch.
    pub(crate) fn took(&mut self, ticks: u64) {
        self.adapt(ticks as f64 / self.aim_ticks);
    }

    /// `ratio`: the last batch's length against the one aimed at. A very long one says nothing: it was evicted. One
    /// somewhat long is mended at once: when a fellow comes back from an eviction, passes cost forty times as much from
    /// one moment to the next, and batches that long would look like evictions themselves.
    fn adapt(&mut self, ratio: f64) {
        let wanted = match ratio {
            r if r < 0.1 => self.passes * 4,
            r if r < 0.75 => self.passes + self.passes / 4 + 1,
            r if r > 1.25 && r < 100.0 => (self.passes as f64 / r) as u64,
            _ => return,
        };
        self.passes = wanted.clamp(1, MAX_BATCH).next_multiple_of(self.unroll);
    }
}

#[cfg(test)]
mod tests {
    use super::Batch;

    fn settle(unroll: u64, pass_of_batch: f64) -> u64 {
        let mut batch = Batch { passes: unroll, unroll, aim_ticks: 1.0 };
        for _ in 0..200 {
            batch.adapt(batch.passes as f64 * pass_of_batch);
            assert!(batch.passes >= unroll && batch.passes.is_multiple_of(unroll));
        }
        batch.passes
    }

    #[test]
    fn a_batch_settles_near_its_aim_and_never_below_one_iteration() {
        for unroll in [1, 8] {
            let passes = settle(unroll, 1.0 / 40_000.0);
            assert!((28_000..=52_000).contains(&passes), "{passes}");
        }
        assert_eq!(settle(1, 30.0), 1);
        let passes = settle(8, 0.001);
        assert!((750..=1_256).contains(&passes), "{passes}");
    }

    #[test]
    fn a_batch_that_grew_alone_shrinks_at_once_in_company() {
        let mut batch = Batch { passes: 80_000, unroll: 8, aim_ticks: 1.0 };
        batch.adapt(40.0);
        assert_eq!(batch.passes, 2_000);
    }

    #[test]
    fn an_eviction_does_not_shrink_the_batch() {
        let mut batch = Batch { passes: 1_000, unroll: 1, aim_ticks: 1.0 };
        batch.adapt(200.0);
        assert_eq!(batch.passes, 1_000);
    }
}
