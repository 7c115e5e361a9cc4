//! What a line costs those who share it: the arithmetic by which layouts are made. It ranks nothing that is shown; the
//! model and the measurement do.

use plan::{CACHE_LINE_BYTES, Usage};
use std::collections::BTreeMap;

/// Losses of a line a second below which nobody notices: at about 100 ns for fetching it back (published figures lie
/// between 23 and 107 ns, `docs/model.md`) they take a hundredth of one worker's time, less than a run resolves. If it
/// were larger, fields that disturb each other would be put together; if much smaller, each field that is written once
/// a second would get a line.
pub(crate) const NEGLIGIBLE: f64 = 1e5;

/// How often a second each worker writes and uses each item, estimated from its loop.
#[derive(Clone, Debug, PartialEq)]
pub struct Rates {
    workers: usize,
    /// By item, by worker.
    writes: Vec<Vec<f64>>,
    uses: Vec<Vec<f64>>,
}

impl Rates {
    /// Those of a case's items.
    pub fn of(usage: &Usage) -> Rates {
        let workers = usage.touches.iter().map(|touch| touch.worker.0 as usize + 1).max().unwrap_or(0);
        let blank = vec![vec![0.0; workers]; usage.items.len()];
        let mut rates = Rates { workers, writes: blank.clone(), uses: blank };
        for touch in &usage.touches {
            let (item, worker) = (touch.item, touch.worker.0 as usize);
            rates.uses[item][worker] += touch.per_second;
            if touch.writes {
                rates.writes[item][worker] += touch.per_second;
            }
        }
        rates
    }

    /// Workers that write the item often enough to matter.
    pub(crate) fn writers(&self, item: usize) -> Vec<usize> {
        (0..self.workers).filter(|&worker| self.writes[item][worker] >= NEGLIGIBLE).collect()
    }

    /// Workers that use it often enough to matter, writers among them.
    pub(crate) fn users(&self, item: usize) -> Vec<usize> {
        (0..self.workers).filter(|&worker| self.uses[item][worker] >= NEGLIGIBLE).collect()
    }

    /// Times a second that a worker finds the line of these items gone, over all workers: each loses it as often as
    /// others write anything on it, and notices at most as often as it uses what it uses most.
    pub(crate) fn line(&self, items: &[usize]) -> f64 {
        let written: Vec<f64> =
            (0..self.workers).map(|worker| items.iter().map(|&item| self.writes[item][worker]).sum()).collect();
        let all: f64 = written.iter().sum();
        let misses = |worker: usize| {
            let used = items.iter().map(|&item| self.uses[item][worker]).fold(0.0, f64::max);
            (all - written[worker]).max(0.0).min(used)
        };
        (0..self.workers).map(misses).sum()
    }

    /// By how much more is lost when two lots of items lie on one line than when each has its own; below 0 where less.
    pub(crate) fn excess(&self, some: &[usize], others: &[usize]) -> f64 {
        self.line(&[some, others].concat()) - self.line(some) - self.line(others)
    }
}

/// Times a second that workers find a line gone, over all lines of a layout: `places` are offset and size of each item.
/// An item across two lines counts on both.
pub fn misses_per_second(rates: &Rates, places: &[(u64, u64)]) -> f64 {
    let mut lines: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (item, &(offset, bytes)) in places.iter().enumerate() {
        for line in lines_of(offset, bytes) {
            lines.entry(line).or_default().push(item);
        }
    }
    lines.values().map(|items| rates.line(items)).sum()
}

/// The lines that so many bytes from this offset on lie on.
pub(crate) fn lines_of(offset: u64, bytes: u64) -> std::ops::RangeInclusive<u64> {
    offset / CACHE_LINE_BYTES..=(offset + bytes.max(1) - 1) / CACHE_LINE_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::tests::usage_of;

    const QUEUE: &str = r#"
[field.head]
type = "u64"
[field.tail]
type = "u64"
[field.mask]
type = "u64"
[[role]]
name = "producer"
loop = ["bump tail", "load mask"]
[[role]]
name = "consumer"
loop = ["bump head", "load mask"]
"#;

    #[test]
    fn two_writers_of_one_line_lose_it_and_two_lines_are_lost_by_nobody() {
        let usage = usage_of(QUEUE);
        let rates = Rates::of(&usage);
        let (head, tail, mask) = (0, 1, 2);
        assert_eq!(rates.line(&[head]), 0.0);
        assert!(rates.excess(&[head], &[tail]) > 1e8);
        assert!(rates.excess(&[head], &[mask]) > 1e8, "the producer reads mask");
        assert_eq!(misses_per_second(&rates, &[(0, 8), (64, 8), (128, 8)]), 0.0);
        assert!(misses_per_second(&rates, &[(0, 8), (8, 8), (128, 8)]) > 1e8);
    }

    #[test]
    fn what_both_need_anyway_is_lost_once_where_it_lies_together() {
        let usage = usage_of(
            "[field.a]\ntype = \"u64\"\n[field.b]\ntype = \"u64\"\n[[role]]\nname = \"r\"\nworkers = 2\nloop = [\"add a\", \"add b\"]",
        );
        assert!(Rates::of(&usage).excess(&[0], &[1]) < 0.0);
    }

    #[test]
    fn a_word_across_two_lines_counts_on_both() {
        assert_eq!(lines_of(60, 8), 0..=1);
        assert_eq!(lines_of(64, 64), 1..=1);
    }
}
