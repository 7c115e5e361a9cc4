//! When threads were there. Two that were never there at once do not contend with each other: a pool that begins a
//! thread for each task is, to a cache line, one user.

use std::collections::BTreeMap;
use std::time::Instant;

/// When each thread was first and last seen, by process and thread.
#[derive(Debug, Default)]
pub(super) struct Lives {
    seen: BTreeMap<(u32, u32), (Instant, Instant)>,
}

impl Lives {
    /// A thread is there.
    pub(super) fn see(&mut self, pid: u32, tid: u32, now: Instant) {
        self.seen.entry((pid, tid)).or_insert((now, now)).1 = now;
    }

    /// By process and thread, the thread that stands for it: the first of those of its process that came one behind the
    /// other.
    pub(super) fn stand_ins(&self) -> BTreeMap<(u32, u32), u32> {
        let mut in_order: Vec<(Instant, Instant, u32, u32)> =
            self.seen.iter().map(|((pid, tid), (first, last))| (*first, *last, *pid, *tid)).collect();
        in_order.sort_unstable();
        // Each with when its present holder was last seen.
        let mut rows: Vec<(u32, u32, Instant)> = Vec::new();
        let mut stand_ins = BTreeMap::new();
        for (first, last, pid, tid) in in_order {
            let free = rows.iter_mut().find(|(of, _, until)| *of == pid && *until < first);
            let stands = match free {
                Some(row) => {
                    row.2 = last;
                    row.1
                }
                None => {
                    rows.push((pid, tid, last));
                    tid
                }
            };
            stand_ins.insert((pid, tid), stands);
        }
        stand_ins
    }
}

#[cfg(test)]
mod tests {
    use super::Lives;
    use std::time::{Duration, Instant};

    #[test]
    fn threads_that_follow_each_other_are_one_user_and_those_side_by_side_are_two() {
        let (begin, mut lives) = (Instant::now(), Lives::default());
        let at = |ms| begin + Duration::from_millis(ms);
        for (pid, tid, times) in [(1, 10, 0..2), (1, 11, 2..4), (1, 12, 3..6), (1, 13, 5..9), (2, 20, 8..9)] {
            times.for_each(|ms| lives.see(pid, tid, at(ms)));
        }
        let stands: Vec<u32> = lives.stand_ins().into_values().collect();
        assert_eq!(stands, [10, 10, 12, 10, 20]);
    }
}
