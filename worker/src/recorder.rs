//! The recorder of one worker's window: slices, gaps, blockings. Everything it writes to is reserved and touched before
//! the warm-up. It judges nothing: which gap is an eviction, and which slice counts, is for whoever sees all workers.

use crate::resident::touched;
use crate::schedstat::Schedstat;
use counters::{Counters, Order};
use hdrhistogram::Histogram;
use plan::{Program, TickRate};
use record::{EVICTION_NS, Gap, QueueDelay, SLICE_NS, Slice};
use shm_layout::{Control, Slot, WorkerState, ticks};

/// A blocking longer than this asks the run queue: in a shorter one no delay can be an eviction.
const LONG_BLOCKING_NS: u64 = EVICTION_NS;
/// Gaps and queue delays that the logs hold.
const LOG_ENTRIES: usize = 16_384;

/// Where a worker stands in its repetition.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Stage {
    /// Before the window.
    Before,
    /// In it.
    Inside,
    /// Past it, running on until all are.
    Left,
}

/// See the module.
pub(crate) struct Recorder {
    stage: Stage,
    slice_ticks: u64,
    gap_floor_ticks: u64,
    long_blocking_ticks: u64,
    /// Locks are waited for without being timed: a long distance of two reads may be such a wait, and the run queue is
    /// asked whether it was.
    waits_untimed: bool,
    counters: Counters,
    /// When what is taken was noted: first, and last.
    noted: (Option<u64>, Option<u64>),
    schedstat: Schedstat,

    open_ticks: u64,
    close_ticks: u64,
    /// From the window's opening to this worker's work.
    after_ticks: u64,
    /// From the window's opening to the work of the role that begins last.
    last_after_ticks: u64,
    first_read: u64,
    last_read: u64,
    span_ticks: u64,
    /// Timed blocking since the last clock read, and since the window opened.
    blocked_since_read: u64,
    blocked_ticks: u64,
    blocked_in_slice: bool,
    /// End of the last timed blocking.
    blocked_until: u64,
    /// Long blockings since the last batch's end, from the first one's begin to the last one's end.
    long_blocking: Option<(u64, u64)>,

    passes: u64,
    /// Passes since the loop's first, the window's among them.
    all_passes: u64,
    /// The window opened inside a batch, whose passes began before it.
    opened_inside_batch: bool,
    /// The last read at a batch's end: passes are counted up to it.
    counted_until: u64,
    slice_start: u64,
    slice_passes: u64,
    slices: Vec<Slice>,
    gap_candidate_ticks: u64,
    gaps: Vec<Gap>,
    gaps_lost: u64,
    queue_delays: Vec<QueueDelay>,
    queue_delays_lost: u64,
    distances: Histogram<u64>,
    read_cost_ticks: f64,
}

/// What the recorder saw, for the trace.
pub(crate) struct Recorded {
    pub(crate) open_ticks: u64,
    pub(crate) work_ticks: u64,
    pub(crate) close_ticks: u64,
    pub(crate) passes: u64,
    pub(crate) all_passes: u64,
    pub(crate) span_ticks: u64,
    pub(crate) slices: Vec<Slice>,
    pub(crate) gaps: Vec<Gap>,
    pub(crate) gaps_lost: u64,
    pub(crate) queue_delays_lost: u64,
    pub(crate) read_distance_ticks: u64,
    pub(crate) read_cost_ticks: f64,
    pub(crate) blocked_ticks: u64,
    pub(crate) queue_delays: Vec<QueueDelay>,
    pub(crate) noted_ticks: Option<u64>,
    pub(crate) counters: record::CounterReadings,
    pub(crate) kernel: Option<record::KernelTrace>,
}

impl Recorder {
    /// A recorder for a window of the Program's length, which counts what `orders` say.
    pub(crate) fn new(program: &Program, rate: TickRate, orders: &[Order]) -> Recorder {
        let slices = (program.window.0 / SLICE_NS) as usize + 16;
        let schedstat = Schedstat::open();
        Recorder {
            stage: Stage::Before,
            slice_ticks: rate.ticks(SLICE_NS),
            gap_floor_ticks: rate.ticks(EVICTION_NS),
            long_blocking_ticks: rate.ticks(LONG_BLOCKING_NS),
            waits_untimed: !program.timed_locks && schedstat.tells(),
            counters: Counters::open(orders).logging_by(ticks),
            noted: (None, None),
            schedstat,
            open_ticks: 0,
            close_ticks: 0,
            after_ticks: 0,
            last_after_ticks: rate.ticks(program.workers.iter().map(|w| w.after.0).max().unwrap_or(0)),
            first_read: 0,
            last_read: ticks(),
            span_ticks: 0,
            blocked_since_read: 0,
            blocked_ticks: 0,
            blocked_in_slice: false,
            blocked_until: 0,
            long_blocking: None,
            passes: 0,
            all_passes: 0,
            opened_inside_batch: false,
            counted_until: 0,
            slice_start: 0,
            slice_passes: 0,
            slices: touched(slices, Slice { start_ticks: 1, end_ticks: 1, passes: 1 }),
            gap_candidate_ticks: rate.ticks(EVICTION_NS),
            gaps: touched(LOG_ENTRIES, Gap { start_ticks: 1, end_ticks: 1, blocked_ticks: 1 }),
            gaps_lost: 0,
            queue_delays: touched(LOG_ENTRIES, QueueDelay { start_ticks: 1, end_ticks: 1, delay_ns: 1 }),
            queue_delays_lost: 0,
            // Two digits up to a minute of ticks: the median is all that is asked of it.
            distances: Histogram::new_with_bounds(1, 1 << 38, 2).expect("constant bounds are valid"),
            read_cost_ticks: 0.0,
        }
    }

    /// The same for a worker whose work begins so long after the window has opened.
    pub(crate) fn with_work_after(self, after_ticks: u64) -> Recorder {
        Recorder { after_ticks, ..self }
    }

    /// Whether work comes later than the window, so that [`Recorder::begin_work`] says when.
    pub(crate) fn works_later(&self) -> bool {
        self.after_ticks > 0
    }

    /// Whether it is time to work: the window is open, and its first part over.
    pub(crate) fn work_is_due(&self, now: u64) -> bool {
        self.stage != Stage::Before && now >= self.work_ticks()
    }

    /// When this worker's work began, or will.
    pub(crate) fn work_ticks(&self) -> u64 {
        self.open_ticks + self.after_ticks
    }

    /// When the window opened; 0 before it has.
    pub(crate) fn open_ticks(&self) -> u64 {
        self.open_ticks
    }

    /// When the work of the role that begins last began, or will.
    pub(crate) fn together_ticks(&self) -> u64 {
        self.open_ticks + self.last_after_ticks
    }

    /// When the window closes; 0 before it has opened.
    pub(crate) fn close_ticks(&self) -> u64 {
        self.close_ticks
    }

    /// Times a clock read with its bookkeeping, before the window: the cheapest of some short series, per read.
    pub(crate) fn price(&mut self, control: &Control, slot: &Slot, workers: u32) {
        const SERIES: u64 = 8;
        const READS: u64 = 64;
        let mut series = || {
            let start = ticks();
            for _ in 0..READS {
                let now = ticks();
                self.completed(0, now);
                self.read(now, control, slot, workers);
            }
            (ticks() - start) as f64 / READS as f64
        };
        let cheapest = (0..SERIES).map(|_| series()).fold(f64::INFINITY, f64::min);
        self.read_cost_ticks = cheapest;
        self.distances.reset();
    }

    /// Notes what is taken from this worker's CPU and cgroup: once before the warm-up, once after all have left.
    pub(crate) fn around(&mut self) {
        match &mut self.noted {
            (first @ None, _) => *first = Some(ticks()),
            (Some(_), last) => *last = Some(ticks()),
        }
        self.counters.around();
    }

    /// Whether what happens now belongs to the window.
    #[inline(always)]
    pub(crate) fn inside(&self) -> bool {
        self.stage == Stage::Inside
    }

    /// The last clock read.
    #[inline(always)]
    pub(crate) fn last_read(&self) -> u64 {
        self.last_read
    }

    /// The last moment known without a clock read of its own: the last read, or the end of a timed blocking since.
    #[inline(always)]
    pub(crate) fn last_known(&self) -> u64 {
        self.last_read.max(self.blocked_until)
    }

    /// Whether a pass that ended at `now` was made in the window. One in which the window opened was not: the opening
    /// of counters lies in it.
    pub(crate) fn counts(&self, now: u64) -> bool {
        self.inside() && !self.opened_inside_batch && now < self.close_ticks
    }

    /// A clock read inside a batch, from a hook.
    pub(crate) fn read_inside_batch(&mut self, now: u64, control: &Control, slot: &Slot, workers: u32) {
        let was_inside = self.inside();
        self.read(now, control, slot, workers);
        self.opened_inside_batch |= self.inside() && !was_inside;
    }

    /// A clock read, about every 20 us: notes the distance to the last one, and enters or leaves the window.
    pub(crate) fn read(&mut self, now: u64, control: &Control, slot: &Slot, workers: u32) {
        self.note_distance(now);
        match self.stage {
            Stage::Before => {
                if let Some(window) = control.window().filter(|w| now >= w.open) {
                    (self.open_ticks, self.close_ticks) = (window.open, window.close);
                    self.enter();
                }
            }
            Stage::Inside if now >= self.close_ticks => {
                self.leave();
                // In this order: the coordinator arrives for a worker that died as planned and had not left.
                control.arrive_left(workers);
                slot.set_state(WorkerState::Left);
            }
            Stage::Inside | Stage::Left => {}
        }
    }

    fn note_distance(&mut self, now: u64) {
        let distance = now.saturating_sub(self.last_read);
        let blocked = std::mem::take(&mut self.blocked_since_read).min(distance);
        let unexplained = distance - blocked;
        if self.waits_untimed && unexplained > self.long_blocking_ticks {
            // Judged as a timed blocking that long: an eviction where the run queue kept this worker.
            self.blocked(self.last_read + blocked, now);
            self.blocked_since_read = 0;
            self.last_read = now;
            return;
        }
        self.distances.saturating_record(unexplained.max(1));
        if self.stage == Stage::Inside && unexplained > self.gap_candidate_ticks {
            if self.gaps.len() < self.gaps.capacity() {
                self.gaps.push(Gap { start_ticks: self.last_read, end_ticks: now, blocked_ticks: blocked });
            } else {
                self.gaps_lost += 1;
            }
        }
        self.last_read = now;
    }

    fn enter(&mut self) {
        // Distances this long are ordinary for the loop as the warm-up knew it: logging each would fill the log. The
        // final threshold adds three medians, so with two nothing that counts is missed while the loop keeps its pace.
        let warm_up_median = self.distances.value_at_quantile(0.5);
        self.gap_candidate_ticks = self.gap_floor_ticks + 2 * warm_up_median;
        self.distances.reset();
        self.schedstat.rebase();
        self.stage = Stage::Inside;
        self.counters.enable();
        let now = ticks();
        self.last_read = now;
        self.count_from(now);
    }

    /// Slices, passes and the span begin now. What clock reads were apart while there was no work says nothing of it.
    pub(crate) fn begin_work(&mut self) {
        if self.inside() {
            self.distances.reset();
            self.schedstat.rebase();
            let now = ticks();
            self.last_read = now;
            self.count_from(now);
        }
    }

    fn count_from(&mut self, now: u64) {
        (self.first_read, self.counted_until, self.slice_start) = (now, now, now);
        (self.slice_passes, self.blocked_in_slice) = (0, false);
    }

    fn leave(&mut self) {
        self.counters.disable();
        self.stage = Stage::Left;
        // Inside a batch: what it has completed is not known, so the span ends with the batch before.
        self.span_ticks = self.counted_until - self.first_read;
    }

    /// A batch of passes ended at the clock read `now`. Call before [`Recorder::read`], which may close the window.
    #[inline(always)]
    pub(crate) fn completed(&mut self, passes: u64, now: u64) {
        self.all_passes += passes;
        if self.stage != Stage::Inside {
            return;
        }
        if std::mem::take(&mut self.opened_inside_batch) {
            // Some of its passes were made before the window: they are not counted, nor is its time.
            return self.count_from(now);
        }
        if let Some((start, end)) = self.long_blocking.take() {
            self.ask_run_queue(start, end);
        }
        self.counted_until = now;
        self.passes += passes;
        self.slice_passes += passes;
        let full = now - self.slice_start >= self.slice_ticks;
        if self.slice_passes > 0 && (full || self.last_role_began(now)) {
            self.end_slice(now);
        }
    }

    /// Whether the last role's work was due between the slice's start and now: no slice holds both states.
    fn last_role_began(&self, now: u64) -> bool {
        let due = self.open_ticks + self.last_after_ticks;
        self.slice_start < due && due <= now
    }

    fn end_slice(&mut self, now: u64) {
        if self.slices.len() < self.slices.capacity() {
            self.slices.push(Slice { start_ticks: self.slice_start, end_ticks: now, passes: self.slice_passes });
        }
        (self.slice_start, self.slice_passes) = (now, 0);
        if std::mem::take(&mut self.blocked_in_slice) {
            // Short waits are not asked about one by one: their queueing must not add up in the next long one's.
            self.schedstat.rebase();
        }
    }

    /// A blocking that was timed: a contended lock, a sleep, a yield.
    pub(crate) fn blocked(&mut self, start: u64, end: u64) {
        let length = end.saturating_sub(start);
        self.blocked_since_read += length;
        self.blocked_until = end;
        if self.stage != Stage::Inside {
            return;
        }
        self.blocked_ticks += length;
        self.blocked_in_slice = true;
        if length > self.long_blocking_ticks {
            // Asked at the batch's end, which comes after this pass: here a lock may be held, and others wait for it.
            self.long_blocking = Some((self.long_blocking.map_or(start, |(first, _)| first), end));
        }
    }

    fn ask_run_queue(&mut self, start_ticks: u64, end_ticks: u64) {
        let Some(delay_ns) = self.schedstat.delay_since_rebase().filter(|ns| *ns > EVICTION_NS) else { return };
        if self.queue_delays.len() < self.queue_delays.capacity() {
            self.queue_delays.push(QueueDelay { start_ticks, end_ticks, delay_ns });
        } else {
            self.queue_delays_lost += 1;
        }
    }

    /// Ends the record.
    pub(crate) fn finish(mut self) -> Recorded {
        Recorded {
            open_ticks: self.open_ticks,
            work_ticks: self.work_ticks(),
            close_ticks: self.close_ticks,
            passes: self.passes,
            all_passes: self.all_passes,
            span_ticks: self.span_ticks,
            slices: self.slices,
            gaps: self.gaps,
            gaps_lost: self.gaps_lost,
            queue_delays_lost: self.queue_delays_lost,
            read_distance_ticks: self.distances.value_at_quantile(0.5),
            read_cost_ticks: self.read_cost_ticks,
            blocked_ticks: self.blocked_ticks,
            queue_delays: self.queue_delays,
            noted_ticks: self.noted.1.zip(self.noted.0).map(|(last, first)| last.saturating_sub(first)),
            counters: self.counters.read(),
            kernel: self.counters.log(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::Nanos;

    /// One tick a nanosecond, window of 10 ms, opened by the only worker at tick `OPEN`.
    fn recorder() -> (Recorder, Control, Slot) {
        let program = Program { window: Nanos(10_000_000), ..Program::of([]) };
        (Recorder::new(&program, TickRate { ticks_per_ns: 1.0 }, &[]), Control::default(), Slot::default())
    }

    /// Drives a recorder by a script of clock reads, as the loop would: `at` is relative to the window's opening.
    struct Script {
        recorder: Recorder,
        control: Control,
        slot: Slot,
        start: u64,
    }

    impl Script {
        fn opened() -> Script {
            let (mut recorder, control, slot) = recorder();
            recorder.price(&control, &slot, 1);
            let mut script = Script { recorder, control, slot, start: 0 };
            let now = ticks();
            script.control.arrive_ready(1, now, 0, 10_000_000);
            script.recorder.read(now, &script.control, &script.slot, 1);
            script.start = script.recorder.last_read();
            script
        }

        fn read(&mut self, at: u64, passes: u64) {
            let now = self.start + at;
            self.recorder.completed(passes, now);
            self.recorder.read(now, &self.control, &self.slot, 1);
        }

        fn finish(self) -> (Recorded, u64) {
            (self.recorder.finish(), self.start)
        }
    }

    #[test]
    fn slices_are_contiguous_and_at_least_half_a_millisecond() {
        let mut script = Script::opened();
        assert!(script.recorder.inside());
        for read in 1..=600 {
            script.read(read * 20_000, 10);
        }
        assert!(!script.recorder.inside());
        assert!(script.control.must_stop(), "the only worker was the last to leave");
        let (recorded, start) = script.finish();
        assert_eq!(recorded.slices.len(), 19);
        assert_eq!(recorded.slices[0], Slice { start_ticks: start, end_ticks: start + 500_000, passes: 250 });
        assert!(recorded.slices.windows(2).all(|w| w[0].end_ticks == w[1].start_ticks && w[1].passes == 250));
        assert!(recorded.passes * 20_000 / 10 >= 9_900_000, "{}", recorded.passes);
        assert_eq!(recorded.span_ticks, recorded.passes / 10 * 20_000);
        assert!(recorded.gaps.is_empty());
    }

    #[test]
    fn an_interruption_is_logged_with_its_ends() {
        let mut script = Script::opened();
        script.read(20_000, 1);
        script.read(40_000, 1);
        script.read(4_040_000, 1);
        script.read(4_060_000, 1);
        let (recorded, start) = script.finish();
        assert_eq!(
            recorded.gaps,
            [Gap { start_ticks: start + 40_000, end_ticks: start + 4_040_000, blocked_ticks: 0 }]
        );
    }

    #[test]
    fn timed_blocking_is_no_gap() {
        let mut script = Script::opened();
        script.read(20_000, 1);
        let begin = script.start + 25_000;
        script.recorder.blocked(begin, begin + 1_000_000);
        script.read(1_040_000, 1);
        let (recorded, _) = script.finish();
        assert!(recorded.gaps.is_empty());
        assert_eq!(recorded.blocked_ticks, 1_000_000);
        assert_eq!(recorded.slices.len(), 1, "a pass longer than a slice is its own slice");
    }

    /// In a `plain` arm a wait for a lock is inside the distance of two reads. All of a role that waited 100 us at a
    /// time was taken for evicted, and no repetition counted.
    #[test]
    fn where_waits_are_untimed_a_long_distance_is_left_to_the_run_queue() {
        let mut script = Script::opened();
        let knows = script.recorder.schedstat.tells();
        script.recorder.waits_untimed = knows;
        script.read(20_000, 1);
        script.recorder.blocked(script.start + 30_000, script.start + 130_000);
        script.read(240_000, 1);
        script.read(260_000, 1);
        let (recorded, start) = script.finish();
        let gap = Gap { start_ticks: start + 20_000, end_ticks: start + 240_000, blocked_ticks: 100_000 };
        assert_eq!(recorded.gaps, if knows { vec![] } else { vec![gap] }, "else nobody knows what it was");
        assert_eq!(recorded.blocked_ticks, if knows { 220_000 } else { 100_000 });
        let stretch = (start + 30_000, start + 240_000);
        assert!(recorded.queue_delays.iter().all(|d| (d.start_ticks, d.end_ticks) == stretch), "asked about both");
    }

    #[test]
    fn a_batch_that_straddles_the_opening_is_not_counted() {
        let (mut recorder, control, slot) = recorder();
        recorder.price(&control, &slot, 1);
        let now = ticks();
        control.arrive_ready(1, now, 0, 10_000_000);
        recorder.read_inside_batch(now, &control, &slot, 1);
        assert!(recorder.inside());
        let opened = recorder.last_read();
        recorder.completed(1_000, opened + 100_000);
        recorder.completed(7, opened + 700_000);
        // The window closes inside a batch: nothing is known of its passes.
        recorder.read_inside_batch(now + 10_000_000, &control, &slot, 1);
        let recorded = recorder.finish();
        assert_eq!((recorded.passes, recorded.span_ticks), (7, 600_000));
        assert_eq!(recorded.slices, [Slice { start_ticks: opened + 100_000, end_ticks: opened + 700_000, passes: 7 }]);
    }

    #[test]
    fn work_that_begins_later_is_counted_from_then() {
        let mut script = Script::opened();
        script.recorder = script.recorder.with_work_after(4_000_000);
        let open = script.recorder.open_ticks;
        assert!(script.recorder.works_later());
        for read in 1..=200 {
            assert!(!script.recorder.work_is_due(open + read * 20_000 - 1));
            script.read(read * 20_000, 0);
        }
        assert!(script.recorder.work_is_due(open + 4_000_000));
        script.recorder.begin_work();
        // The script's clock goes on from the real one, which `begin_work` has read.
        script.start = script.recorder.last_read();
        script.read(600_000, 3);
        script.recorder.read(open + 10_000_000, &script.control, &script.slot, 1);
        let (recorded, start) = script.finish();
        assert_eq!((recorded.open_ticks, recorded.work_ticks), (open, open + 4_000_000));
        assert_eq!(recorded.slices, [Slice { start_ticks: start, end_ticks: start + 600_000, passes: 3 }]);
        assert_eq!((recorded.passes, recorded.span_ticks), (3, 600_000));
        let distance = recorded.read_distance_ticks;
        assert!((590_000..=610_000).contains(&distance), "{distance}: of the work alone");
    }

    #[test]
    fn the_stretch_of_what_is_taken_lies_around_the_window() {
        let noted_around = |times: u32| {
            let (mut recorder, ..) = recorder();
            let start = ticks();
            (0..times).for_each(|_| recorder.around());
            let (recorded, passed) = (recorder.finish(), ticks() - start);
            recorded.noted_ticks.inspect(|noted| assert!((1..=passed).contains(noted), "{noted} of {passed}"))
        };
        assert_eq!([0, 1].map(noted_around), [None, None], "one note is no stretch");
        assert!(noted_around(2).is_some());
    }

    #[test]
    fn a_slice_ends_where_the_last_role_s_work_begins() {
        let slices = |begins: u64, reads: &mut dyn Iterator<Item = (u64, u64)>| -> Vec<(u64, u64)> {
            let mut script = Script::opened();
            script.recorder.last_after_ticks = script.start - script.recorder.open_ticks + begins;
            reads.for_each(|(at, passes)| script.read(at, passes));
            let (recorded, start) = script.finish();
            recorded.slices.iter().map(|s| (s.end_ticks - start, s.passes)).collect()
        };
        let steady = slices(1_010_000, &mut (1..=80).map(|read| (read * 20_000, 1)));
        assert_eq!(steady, [(500_000, 25), (1_000_000, 25), (1_020_000, 1), (1_520_000, 25)]);
        let waits_for_the_late_one = [(20_000, 0), (700_000, 0), (720_000, 1), (1_240_000, 9)];
        assert_eq!(slices(700_000, &mut waits_for_the_late_one.into_iter()), [(720_000, 1), (1_240_000, 9)]);
    }

    #[test]
    fn outside_the_window_nothing_is_recorded() {
        let (mut recorder, control, slot) = recorder();
        let now = ticks();
        recorder.completed(100, now);
        recorder.read(now + 5_000_000, &control, &slot, 1);
        recorder.blocked(now, now + 1_000_000);
        let recorded = recorder.finish();
        assert_eq!((recorded.passes, recorded.slices.len(), recorded.gaps.len(), recorded.blocked_ticks), (0, 0, 0, 0));
    }

    #[test]
    fn a_full_gap_log_says_so() {
        let mut script = Script::opened();
        script.recorder.close_ticks = u64::MAX;
        for read in 1..=(LOG_ENTRIES as u64 + 5) {
            script.read(read * 1_000_000, 1);
        }
        let (recorded, _) = script.finish();
        assert_eq!((recorded.gaps.len(), recorded.gaps_lost), (LOG_ENTRIES, 5));
    }
}
