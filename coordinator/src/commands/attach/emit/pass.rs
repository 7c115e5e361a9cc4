//! How often a process goes round its loop.

use super::accesses::{Access, scaled};
use record::{AttachedProcess, Interval};

/// How much is known of it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// A word counts: a rate with its spread.
    Counted,
    /// From the proof's hits: about.
    Roughly,
    /// It is faster than traps can tell.
    AtLeast,
    /// Nothing.
    Not,
}

/// Passes of a process, or of like ones.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pass {
    pub(super) known: Known,
    /// Passes a second of a thread: of its CPU time, or of wall time where it takes a lock. With [`Known::Counted`].
    pub(super) observed: Option<Interval>,
    /// Passes a second of wall time, all threads of the process together; a lower bound with [`Known::AtLeast`].
    pub(super) wall_per_second: Option<f64>,
    /// Threads that do it.
    pub(super) threads: u32,
    /// CPU time over wall time, of one thread.
    pub(super) cpu: Option<f64>,
    /// Whether it takes a lock, and so may sleep in a pass.
    pub(super) locks: bool,
}

impl Pass {
    /// Of a process: its most frequent access is made once a pass. `taken`: how often it takes a lock a second, where that is
    /// known.
    pub(super) fn of(accesses: &[Access], locks: bool, taken: Option<f64>, process: &AttachedProcess) -> Pass {
        let threads = accesses.iter().map(|access| access.threads).max().unwrap_or(1);
        let cpu = process.cpu[2].or(process.cpu[0]).map(|share| share / f64::from(threads));
        let bare = Pass { known: Known::Not, observed: None, wall_per_second: None, threads, cpu, locks };
        let counted = accesses.iter().filter_map(|access| access.paces);
        let counted = counted.max_by(|(a, _), (b, _)| a.median.total_cmp(&b.median));
        let certain = |access: &&Access| access.paces.is_none() && !access.at_least;
        let roughly = accesses.iter().filter(certain).filter_map(|access| access.per_second).chain(taken);
        let roughly = roughly.reduce(f64::max).filter(|rate| *rate > 0.0);
        match (counted, roughly) {
            (Some((wall, cpu)), roughly) => {
                // What is more frequent than the word that counts makes several passes of one.
                let times = roughly.map_or(1.0, |rate| (rate / wall.median).round().max(1.0));
                let of_thread = if locks { scaled(wall, times / f64::from(threads)) } else { scaled(cpu, times) };
                let wall_per_second = Some(wall.median * times);
                Pass { known: Known::Counted, observed: Some(of_thread), wall_per_second, ..bare }
            }
            (None, Some(rate)) if !accesses.iter().any(|access| access.at_least) => {
                Pass { known: Known::Roughly, wall_per_second: Some(rate), ..bare }
            }
            _ => {
                let least = accesses.iter().filter_map(|access| access.per_second).reduce(f64::max);
                let known = if least.is_some() { Known::AtLeast } else { Known::Not };
                Pass { known, wall_per_second: least, ..bare }
            }
        }
    }

    /// Of several that do the same: the middle one, and as far as any reaches.
    pub(super) fn together<'a>(all: impl Iterator<Item = &'a Pass>) -> Pass {
        let mut all: Vec<&Pass> = all.collect();
        let rate = |pass: &Pass| pass.wall_per_second.unwrap_or(0.0);
        all.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
        let middle = all[all.len() / 2];
        let ends: Vec<Interval> = all.iter().filter_map(|pass| pass.observed).collect();
        let observed = middle.observed.map(|own| Interval {
            median: own.median,
            low: ends.iter().map(|one| one.low).fold(own.low, f64::min),
            high: ends.iter().map(|one| one.high).fold(own.high, f64::max),
        });
        let threads = all.iter().map(|pass| pass.threads).max().unwrap_or(1);
        Pass { observed, threads, ..middle.clone() }
    }

    /// In one pass of how many an access is made: in each, where that is not known.
    pub(super) fn every(&self, access: &Access) -> u64 {
        let known = access.paces.map(|(wall, _)| wall.median).or(access.per_second.filter(|_| !access.at_least));
        let times = self.wall_per_second.zip(known).map(|(pass, one)| (pass / one).round());
        times.filter(|_| self.known != Known::AtLeast).map_or(1, |times| times.max(1.0) as u64)
    }

    /// Work of a pass beside the lock's `held_ns`, as far as it follows from what was seen; 0 where it has to be tried, or
    /// is not known.
    pub(super) fn work_ns(&self, held_ns: f64) -> u64 {
        let of_pass = match (self.known, self.observed) {
            (Known::Counted, Some(observed)) if self.locks => 1e9 / observed.median,
            (Known::Roughly, _) => self.wall_per_second.map_or(0.0, |rate| 1e9 * f64::from(self.threads) / rate),
            _ => return 0,
        };
        (of_pass * self.cpu.unwrap_or(1.0).min(1.0) - held_ns).max(0.0).round() as u64
    }

    /// How long a pass takes, nanoseconds, as far as is known.
    pub(super) fn ns(&self) -> Option<f64> {
        let roughly = self.wall_per_second.map(|rate| 1e9 * f64::from(self.threads) / rate);
        self.observed.map(|rate| 1e9 / rate.median).or(roughly.filter(|_| self.known == Known::Roughly))
    }
}
