//! When the next pass is due: at once in a closed loop, by the schedule in an open one, whatever became of the others.
//!
//! Every worker of an open loop begins its schedule at a moment of its own. Without that all would ask in the same
//! instant, period after period, as no clients do that know nothing of each other.

use crate::draw::{self, Purpose};
use plan::{TickRate, WorkerProgram};

/// A worker's schedule, ticks.
pub(crate) struct Pace {
    schedule: Option<Schedule>,
    start: u64,
    begun: u64,
}

/// The schedule of an open loop.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) struct Schedule {
    period_ticks: f64,
    /// From where the schedule starts to when its first pass is due; less than a period.
    phase_ticks: f64,
}

impl Schedule {
    /// The schedule of a worker whose working window is so long; `None` for a closed loop. The phase is drawn evenly
    /// from a period, or from half of the window where that is shorter, so that the first pass has time to end in it.
    /// `seed` is the repetition's: workers and repetitions have phases of their own, and one seed gives the same again.
    pub(crate) fn of(me: &WorkerProgram, window_ns: u64, seed: u64, rate: TickRate) -> Option<Schedule> {
        let period_ns = me.period?.0 as f64;
        let working_ns = window_ns.saturating_sub(me.after.0) as f64;
        // The upper 53 bits fill a double: from 0 to 1, 1 left out.
        let fraction = (draw::bits(seed, me.index.0, Purpose::Phase) >> 11) as f64 / (1u64 << 53) as f64;
        let phase_ns = fraction * period_ns.min(working_ns / 2.0);
        Some(Schedule { period_ticks: period_ns * rate.ticks_per_ns, phase_ticks: phase_ns * rate.ticks_per_ns })
    }
}

impl Pace {
    /// A pace whose schedule starts at `start`.
    pub(crate) fn new(schedule: Option<Schedule>, start: u64) -> Pace {
        Pace { schedule, start, begun: 0 }
    }

    /// Starts the schedule anew: the opening of the window takes time that no pass can help.
    pub(crate) fn restart(&mut self, start: u64) {
        *self = Pace::new(self.schedule, start);
    }

    /// The intended start of the next pass; `None` in a closed loop, where it is the actual one. The k-th is k periods
    /// behind the first: nothing adds up.
    pub(crate) fn due(&self) -> Option<u64> {
        let due = |s: Schedule| self.start + (s.phase_ticks + self.begun as f64 * s.period_ticks) as u64;
        self.schedule.map(due)
    }

    /// The pass that was due has begun.
    pub(crate) fn begin(&mut self) {
        self.begun += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::{Pace, Schedule};
    use plan::{Nanos, TickRate, WorkerIndex, WorkerProgram};

    fn due(schedule: Schedule, passes: u32) -> Vec<u64> {
        let mut pace = Pace::new(Some(schedule), 1_000);
        (0..passes).map(|_| (pace.due().unwrap(), pace.begin()).0).collect()
    }

    #[test]
    fn passes_are_due_whole_periods_behind_the_first() {
        assert_eq!(due(Schedule { period_ticks: 2.5, phase_ticks: 0.0 }, 5), [1_000, 1_002, 1_005, 1_007, 1_010]);
        let late = Schedule { period_ticks: 2.5, phase_ticks: 2.4 };
        assert_eq!(due(late, 4), [1_002, 1_004, 1_007, 1_009]);
        let mut pace = Pace::new(Some(late), 1_000);
        pace.begin();
        pace.restart(4_000);
        assert_eq!(pace.due(), Some(4_002), "the window's opening keeps the phase");
    }

    #[test]
    fn a_closed_loop_has_no_schedule() {
        assert_eq!(Pace::new(None, 7).due(), None);
        assert_eq!(Schedule::of(&worker(0, None, 0), 1_000, 1, RATE), None);
    }

    const RATE: TickRate = TickRate { ticks_per_ns: 2.0 };

    fn worker(index: u32, period: Option<u64>, after: u64) -> WorkerProgram {
        WorkerProgram {
            index: WorkerIndex(index),
            period: period.map(Nanos),
            latency: true,
            after: Nanos(after),
            ..WorkerProgram::of([])
        }
    }

    fn phases(seed: u64, after: u64, window: u64) -> Vec<f64> {
        let of = |index| Schedule::of(&worker(index, Some(1_000), after), window, seed, RATE).unwrap();
        (0..1_000).map(|index| of(index).phase_ticks).collect()
    }

    /// Workers of one rate asked in the same instant of every period.
    #[test]
    fn phases_are_spread_over_the_period_and_differ_by_worker_and_seed() {
        let drawn = phases(7, 0, 1_000_000);
        assert!(drawn.iter().all(|phase| (0.0..2_000.0).contains(phase)), "a period is 2,000 ticks");
        for tenth in 0..10 {
            let within = |phase: &&f64| (**phase / 200.0) as u32 == tenth;
            let here = drawn.iter().filter(within).count();
            assert!((60..=140).contains(&here), "{here} of 1,000 in tenth {tenth}");
        }
        assert_eq!(drawn, phases(7, 0, 1_000_000));
        assert_ne!(drawn, phases(8, 0, 1_000_000));
    }

    #[test]
    fn the_first_pass_is_due_in_the_first_half_of_a_short_window() {
        let latest = |after| phases(7, after, 1_100).into_iter().fold(0.0, f64::max);
        assert!((1_000.0..1_100.0).contains(&latest(0)), "half of 1,100 ns are 1,100 ticks: {}", latest(0));
        assert!((80.0..100.0).contains(&latest(1_000)), "of what is left of the window: {}", latest(1_000));
    }
}
