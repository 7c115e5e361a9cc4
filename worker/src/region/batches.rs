//! How long each batch of touches took, through the window: a small histogram for each millisecond, one for the whole,
//! and a log of the longest. Everything is reserved and touched before the warm-up.
//!
//! Noting a batch is to cost under 40 ns, its clock read (12 to 17 ns in a virtual machine) included: that is an
//! increment in either histogram, two comparisons and no division.

use crate::latency;
use crate::resident::touched;
use hdrhistogram::Histogram;
use record::{BatchBucket, BatchTimes, MemoryTrace, Stall};

/// Length of a bucket.
const BUCKET_NS: u64 = 1_000_000;
/// Most buckets; in a longer window each is longer. A bucket takes 2 KiB.
const MOST_BUCKETS: u64 = 4_096;
/// Steps of an octave in a bucket's histogram: a length is known to one part in 32.
const STEPS: usize = 16;
/// Steps of all octaves up to 2^36 ticks, some ten seconds; longer ones count as that long.
const BINS: usize = (36 - 3) * STEPS;
/// Digits of the whole window's histogram.
const DIGITS: u8 = 3;
/// Longest batch that it tells from longer ones, ticks.
const LONGEST_TICKS: u64 = 1 << 36;
/// A batch of so many medians of the warm-up is logged as a stall: an interrupt takes microseconds, a batch a fraction
/// of one.
const STALL_MEDIANS: u64 = 4;
/// Batches of the warm-up from which their median is told.
const LEAST_WARM_UP: u64 = 100;
/// Stalls that the log holds.
const STALL_ENTRIES: usize = 65_536;

/// See the module.
pub(super) struct Batches {
    bucket_ticks: u64,
    /// The window, once it is known to be open.
    window: Option<(u64, u64)>,
    /// When the role that begins last begins.
    together: u64,
    /// The present bucket's number and end.
    bucket: usize,
    bucket_end: u64,
    /// [`BINS`] counts for each bucket.
    counts: Vec<u32>,
    /// Shortest and longest of each bucket.
    extremes: Vec<(u64, u64)>,
    /// From then on, and before.
    whole: Histogram<u64>,
    before: Histogram<u64>,
    warm_up: Histogram<u64>,
    stall_over: u64,
    stalls: Vec<Stall>,
    stalls_lost: u64,
    /// Where the next batch begins, if it is known without a clock read.
    pub(super) carried: Option<u64>,
}

impl Batches {
    /// For a window of that length; without room where the loop has no batches.
    pub(super) fn new(any: bool, window_ns: u64, ticks: impl Fn(u64) -> u64) -> Batches {
        let bucket_ns = BUCKET_NS.max(window_ns.div_ceil(MOST_BUCKETS));
        // The last bucket may be cut short by the rounding of ticks.
        let buckets = if any { (window_ns.div_ceil(bucket_ns) + 1) as usize } else { 0 };
        let mut counts = vec![1; buckets * BINS];
        counts.fill(0);
        let mut extremes = vec![(1, 1); buckets];
        extremes.fill((u64::MAX, 0));
        let histogram = |digits, longest| {
            let mut new = Histogram::new_with_bounds(1, longest, digits).expect("constant bounds are valid");
            new.reset(); // writes all of it
            new
        };
        Batches {
            bucket_ticks: ticks(bucket_ns).max(1),
            window: None,
            bucket: 0,
            bucket_end: 0,
            counts,
            extremes,
            together: 0,
            whole: histogram(DIGITS, LONGEST_TICKS),
            before: histogram(DIGITS, LONGEST_TICKS),
            warm_up: histogram(2, LONGEST_TICKS),
            stall_over: u64::MAX,
            stalls: touched(if any { STALL_ENTRIES } else { 0 }, Stall { start_ticks: 1, end_ticks: 1 }),
            stalls_lost: 0,
            carried: None,
        }
    }

    /// Notes a batch of the warm-up, which tells what is ordinary.
    #[inline]
    pub(super) fn warm_up(&mut self, start: u64, end: u64) {
        self.warm_up.saturating_record(end.saturating_sub(start).max(1));
    }

    /// The window is open, from and to these ticks, and the last role begins at `together`: what is noted from now on
    /// counts.
    pub(super) fn open(&mut self, open: u64, together: u64, close: u64) {
        if self.warm_up.len() >= LEAST_WARM_UP {
            self.stall_over = STALL_MEDIANS * self.warm_up.value_at_quantile(0.5);
        }
        (self.window, self.together) = (Some((open, close)), together);
        (self.bucket, self.bucket_end) = (0, (open + self.bucket_ticks).min(close));
    }

    /// Whether the window is known to be open.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.window.is_some()
    }

    /// Notes a batch in the window; nothing of one that ended behind it.
    #[inline]
    pub(super) fn note(&mut self, start: u64, end: u64) {
        if end >= self.bucket_end && !self.next_bucket(end) {
            return;
        }
        let length = end.saturating_sub(start).max(1);
        let bin = self.bucket * BINS + bin(length);
        if let (Some(count), Some((least, most))) = (self.counts.get_mut(bin), self.extremes.get_mut(self.bucket)) {
            *count = count.saturating_add(1);
            (*least, *most) = ((*least).min(length), (*most).max(length));
        }
        let times = if start >= self.together { &mut self.whole } else { &mut self.before };
        times.saturating_record(length);
        if length > self.stall_over {
            self.note_stall(Stall { start_ticks: start, end_ticks: end });
        }
    }

    #[cold]
    fn next_bucket(&mut self, end: u64) -> bool {
        let Some((open, close)) = self.window.filter(|(open, close)| (*open..*close).contains(&end)) else {
            return false;
        };
        self.bucket = ((end - open) / self.bucket_ticks) as usize;
        self.bucket_end = (open + (self.bucket as u64 + 1) * self.bucket_ticks).min(close);
        true
    }

    #[cold]
    fn note_stall(&mut self, stall: Stall) {
        if self.stalls.len() < self.stalls.capacity() {
            self.stalls.push(stall);
        } else {
            self.stalls_lost += 1;
        }
    }

    /// Forgets what was noted, as after trying out what noting costs.
    pub(super) fn clear(&mut self) {
        self.counts.fill(0);
        self.extremes.fill((u64::MAX, 0));
        self.whole.reset();
        self.before.reset();
        self.warm_up.reset();
        self.stalls.clear();
        (self.window, self.bucket, self.bucket_end) = (None, 0, 0);
        (self.stall_over, self.stalls_lost, self.carried) = (u64::MAX, 0, None);
    }

    /// What was noted in the window, without the calls.
    pub(super) fn into_trace(self) -> MemoryTrace {
        let buckets = self.counts.chunks_exact(BINS).zip(&self.extremes).zip(0..);
        let buckets = buckets.filter_map(|((counts, extremes), number)| bucket(number, counts, *extremes)).collect();
        let all_at_once = self.window.is_none_or(|(open, _)| self.together <= open);
        MemoryTrace {
            bucket_ticks: self.bucket_ticks,
            buckets,
            times: times(&self.whole),
            before: (!all_at_once).then(|| times(&self.before)),
            stalls: self.stalls,
            stalls_lost: self.stalls_lost,
            stall_over_ticks: (self.stall_over < u64::MAX).then_some(self.stall_over),
            ..MemoryTrace::default()
        }
    }
}

fn times(of: &Histogram<u64>) -> BatchTimes {
    let expected_ticks = of.value_at_quantile(0.5);
    BatchTimes {
        batches: of.len(),
        uncorrected: latency::counts(of),
        corrected: latency::counts(&of.clone_correct(expected_ticks)),
        expected_ticks,
    }
}

/// The bin of a length: below 32 each its own, then [`STEPS`] of an octave.
#[inline]
fn bin(length: u64) -> usize {
    let octave = (63 - length.max(STEPS as u64).leading_zeros()).saturating_sub(STEPS.ilog2());
    (octave as usize * STEPS + (length >> octave) as usize).min(BINS - 1)
}

/// The middle of a bin's lengths.
fn middle(bin: usize) -> u64 {
    let octave = (bin / STEPS).saturating_sub(1);
    let start = ((bin - octave * STEPS) as u64) << octave;
    start + ((1 << octave) >> 1)
}

fn bucket(number: u32, counts: &[u32], (least, most): (u64, u64)) -> Option<BatchBucket> {
    let count: u64 = counts.iter().map(|count| u64::from(*count)).sum();
    let at = |share: f64| {
        let rank = ((count as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        let reaches = |counted: &u32| {
            seen += u64::from(*counted);
            seen >= rank
        };
        counts.iter().position(reaches).map_or(most, |bin| middle(bin).clamp(least, most))
    };
    let (p50_ticks, p99_ticks) = (at(0.5), at(0.99));
    (count > 0).then_some(BatchBucket { number, count, min_ticks: least, p50_ticks, p99_ticks, max_ticks: most })
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::TickCount;

    const MS: u64 = 1_000_000;

    /// One tick a nanosecond, a window of 10 ms that opened at `OPEN`.
    fn opened() -> Batches {
        let mut batches = Batches::new(true, 10 * MS, |ns| ns);
        (0..1_000).for_each(|_| batches.warm_up(0, 100));
        batches.open(OPEN, OPEN + 2 * MS, OPEN + 10 * MS);
        batches
    }

    const OPEN: u64 = 5_000_000;

    #[test]
    fn bins_go_up_without_a_gap_and_are_a_thirty_second_wide() {
        for length in (0..60).flat_map(|bit| [0, 1, 7, 13].map(|part| (1u64 << bit) + (part << bit) / 16)) {
            let (here, next) = (bin(length), bin(length + 1));
            assert!(next == here || next == here + 1, "{length}: {here}, {next}");
            if length < 1 << 35 {
                assert!(
                    middle(here).abs_diff(length) as f64 <= length as f64 / 32.0 + 0.5,
                    "{length}: {}",
                    middle(here)
                );
            }
        }
        assert_eq!([0, 31, 32, 33, 34].map(bin), [0, 31, 32, 32, 33]);
        assert_eq!(bin(u64::MAX), BINS - 1);
    }

    #[test]
    fn a_batch_counts_in_the_millisecond_in_which_it_ended() {
        let mut batches = opened();
        let mut at = |end: u64, length: u64| batches.note(OPEN + end - length, OPEN + end);
        (1..100).for_each(|nth| at(nth * 1_000, 100));
        at(100_000, 900);
        at(3 * MS, 50);
        at(10 * MS - 1, 3_000_000);
        at(10 * MS, 70); // behind the window
        at(11 * MS, 70);
        let noted = batches.into_trace();
        let seen: Vec<_> = noted.buckets.iter().map(|b| (b.number, b.count, b.min_ticks, b.max_ticks)).collect();
        assert_eq!(seen, [(0, 100, 100, 900), (3, 1, 50, 50), (9, 1, 3_000_000, 3_000_000)]);
        let first = &noted.buckets[0];
        assert!(first.p50_ticks.abs_diff(100) <= 3 && first.p99_ticks.abs_diff(100) <= 3, "{first:?}");
        let before = noted.before.unwrap();
        assert_eq!((before.batches, before.expected_ticks), (100, 100));
        assert_eq!((noted.times.batches, noted.bucket_ticks), (2, MS));
        let over: Vec<_> = noted.stalls.iter().map(|stall| stall.end_ticks - stall.start_ticks).collect();
        assert_eq!((noted.stall_over_ticks, over), (Some(400), vec![900, 3_000_000]));
    }

    /// 1,000 batches of 100 ticks and one stall of 100,000: 999 more should have started in it.
    #[test]
    fn a_stall_is_charged_to_every_batch_that_should_have_started_meanwhile() {
        let mut batches = opened();
        let start = OPEN + 2 * MS;
        (1..=1_000).for_each(|nth| batches.note(start + nth * 100, start + nth * 100 + 100));
        batches.note(start + 200_000, start + 300_000);
        let noted = batches.into_trace().times;
        let sum = |counts: &[TickCount]| counts.iter().map(|c| c.count).sum::<u64>();
        assert_eq!(sum(&noted.uncorrected), 1_001);
        let corrected = sum(&noted.corrected);
        assert!((1_995..=2_005).contains(&corrected), "{corrected}");
        let long = |counts: &[TickCount]| counts.iter().filter(|c| c.ticks > 50_000).map(|c| c.count).sum::<u64>();
        assert!(long(&noted.uncorrected) == 1 && (490..=510).contains(&long(&noted.corrected)));
    }

    #[test]
    fn memory_is_fixed_before_the_window_however_long_and_full_logs_count() {
        for window_s in [1, 60, 3_600] {
            let batches = Batches::new(true, window_s * 1_000 * MS, |ns| ns);
            assert!(batches.counts.len() <= (MOST_BUCKETS as usize + 1) * BINS);
            assert!(batches.bucket_ticks * batches.extremes.len() as u64 >= window_s * 1_000 * MS);
        }
        let mut batches = opened();
        let (counts, stalls) = (batches.counts.capacity(), batches.stalls.capacity());
        let many = stalls as u64 + 5;
        (0..many).for_each(|nth| batches.note(OPEN, OPEN + 1_000 + nth));
        assert_eq!((batches.counts.capacity(), batches.stalls.capacity()), (counts, stalls));
        assert_eq!((batches.stalls_lost, batches.stalls.len() as u64), (5, many - 5));
    }

    #[test]
    fn what_was_tried_out_is_forgotten_and_a_short_warm_up_calls_nothing_a_stall() {
        let mut batches = opened();
        batches.note(OPEN, OPEN + 100_000);
        batches.clear();
        assert!(!batches.is_open());
        batches.warm_up(0, 100);
        batches.open(OPEN, OPEN, OPEN + 10 * MS);
        batches.note(OPEN, OPEN + 5_000_000);
        let noted = batches.into_trace();
        assert_eq!((noted.times.batches, noted.stalls.len(), noted.stall_over_ticks), (1, 0, None));
        assert_eq!(noted.before, None);
        assert_eq!(noted.buckets.len(), 1);
    }
}
