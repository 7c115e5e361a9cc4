//! When the next pass is due: at once in a closed loop, by the schedule in an open one, whatever became of the others.

/// A worker's schedule, ticks.
pub(crate) struct Pace {
    /// `None` in a closed loop.
    period_ticks: Option<f64>,
    start: u64,
    begun: u64,
}

impl Pace {
    /// A schedule whose first pass is due at `start`.
    pub(crate) fn new(period_ticks: Option<f64>, start: u64) -> Pace {
        Pace { period_ticks, start, begun: 0 }
    }

    /// Begins the schedule anew: the opening of the window takes time that no pass can help.
    pub(crate) fn restart(&mut self, start: u64) {
        *self = Pace::new(self.period_ticks, start);
    }

    /// The intended start of the next pass; `None` in a closed loop, where it is the actual one. The k-th is k periods
    /// behind the first: nothing adds up.
    pub(crate) fn due(&self) -> Option<u64> {
        self.period_ticks.map(|period| self.start + (self.begun as f64 * period) as u64)
    }

    /// The pass that was due has begun.
    pub(crate) fn begin(&mut self) {
        self.begun += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::Pace;

    #[test]
    fn passes_are_due_whole_periods_behind_the_first() {
        let mut pace = Pace::new(Some(2.5), 1_000);
        let due: Vec<u64> = (0..5).map(|_| (pace.due().unwrap(), pace.begin()).0).collect();
        assert_eq!(due, [1_000, 1_002, 1_005, 1_007, 1_010]);
        pace.restart(4_000);
        assert_eq!(pace.due(), Some(4_000));
    }

    #[test]
    fn a_closed_loop_has_no_schedule() {
        assert_eq!(Pace::new(None, 7).due(), None);
    }
}
