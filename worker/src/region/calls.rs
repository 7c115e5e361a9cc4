//! The log of calls that gave memory back.

use crate::resident::touched;
use plan::MemoryVerb;
use record::MemoryCall;

/// Calls that the log holds: those of a second at the highest rate seen (about 40,000), and half as many again.
const LOG_ENTRIES: usize = 65_536;

/// Begin and end of each call, of a capacity that is fixed before the window.
pub(super) struct Calls {
    log: Vec<MemoryCall>,
    lost: u64,
}

impl Calls {
    /// An empty log; without room where the loop makes no such call.
    pub(super) fn new(any: bool) -> Calls {
        let empty = MemoryCall { step: 1, verb: MemoryVerb::Punch, start_ticks: 1, end_ticks: 1 };
        Calls { log: touched(if any { LOG_ENTRIES } else { 0 }, empty), lost: 0 }
    }

    /// Notes one; counts it where the log is full.
    pub(super) fn note(&mut self, call: MemoryCall) {
        if self.log.len() < self.log.capacity() {
            self.log.push(call);
        } else {
            self.lost += 1;
        }
    }

    /// Those that were noted, in order, and how many were not.
    pub(super) fn into_parts(self) -> (Vec<MemoryCall>, u64) {
        (self.log, self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_log_counts_what_it_cannot_hold() {
        let mut calls = Calls::new(true);
        let capacity = calls.log.capacity();
        let call = |at| MemoryCall { step: 0, verb: MemoryVerb::Free, start_ticks: at, end_ticks: at + 1 };
        (0..capacity as u64 + 3).for_each(|at| calls.note(call(at)));
        assert_eq!(calls.log.capacity(), capacity, "it does not grow inside a window");
        let (log, lost) = calls.into_parts();
        assert_eq!((log.len(), lost, log[capacity - 1]), (capacity, 3, call(capacity as u64 - 1)));
        let mut none = Calls::new(false);
        none.note(call(1));
        assert_eq!(none.into_parts(), (vec![], 1));
    }
}
