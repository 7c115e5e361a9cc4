//! How often a user goes round its loop.

use super::accesses::{Access, Pace, TRAPS_TELL, scaled};
use record::Interval;

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

/// Passes of a user, or of like ones.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pass {
    pub(super) known: Known,
    /// Passes a second of its CPU time, or of wall time where it takes a lock. With [`Known::Counted`].
    pub(super) observed: Option<Interval>,
    /// Passes a second of wall time; a lower bound with [`Known::AtLeast`].
    pub(super) wall_per_second: Option<f64>,
    /// Its CPU time over wall time.
    pub(super) cpu: Option<f64>,
    /// Whether it takes a lock, and so may sleep in a pass.
    pub(super) locks: bool,
}

impl Pass {
    /// Of a user: its most frequent access is made once a pass. `taken`: how often it takes a lock a second, by traps, where
    /// that is known; `cpu`: its CPU time over wall time, where no word tells it.
    pub(super) fn of(accesses: &[Access], locks: bool, taken: Option<f64>, cpu: Option<f64>) -> Pass {
        let bare = Pass { known: Known::Not, observed: None, wall_per_second: None, cpu, locks };
        let counted = |exact: bool| {
            let paces = accesses.iter().filter_map(|access| access.pace).filter(move |pace| pace.exact == exact);
            paces.max_by(|a, b| a.wall.median.total_cmp(&b.wall.median))
        };
        let certain = |access: &&Access| access.pace.is_none() && !access.at_least;
        let trapped = accesses.iter().filter(certain).filter_map(|access| access.per_second).chain(taken);
        let (exact, inexact) = (counted(true), counted(false));
        let trapped = trapped.chain(exact.and(inexact).map(|pace| pace.wall.median));
        let trapped = trapped.reduce(f64::max).filter(|rate| *rate > 0.0);
        match (exact.or(inexact), trapped) {
            (Some(Pace { wall, cpu, .. }), trapped) => {
                // What is more frequent than the word that counts makes several passes of one.
                let times = trapped.map_or(1.0, |rate| coarse(rate / wall.median));
                let observed = scaled(if locks { wall } else { cpu }, times);
                let share = wall.median / cpu.median;
                Pass {
                    known: Known::Counted,
                    observed: Some(observed),
                    wall_per_second: Some(wall.median * times),
                    cpu: Some(share).filter(|share| share.is_finite()).or(bare.cpu),
                    ..bare
                }
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
        Pass { observed, ..middle.clone() }
    }

    /// In one pass of how many an access is made: in each, where that is not known.
    pub(super) fn every(&self, access: &Access) -> u64 {
        let times = |one: f64| self.wall_per_second.map(|pass| pass / one).filter(|_| self.known != Known::AtLeast);
        let times = match (access.pace, access.per_second) {
            (Some(Pace { wall, exact: true, .. }), _) => times(wall.median).map(f64::round),
            (Some(Pace { wall, .. }), _) => times(wall.median).map(coarse),
            (None, Some(rate)) if !access.at_least => times(rate).map(coarse),
            _ => None,
        };
        times.map_or(1, |times| times.max(1.0) as u64)
    }

    /// Work of a pass beside `held_ns` of a lock, as far as it follows from what was seen, to begin the trials with or where
    /// there can be none; 0 where nothing tells.
    pub(super) fn work_ns(&self, held_ns: f64) -> u64 {
        let of_pass = match (self.known, self.observed) {
            (Known::Counted, Some(observed)) if self.locks => 1e9 / observed.median,
            (Known::Roughly, _) => self.wall_per_second.map_or(0.0, |rate| 1e9 / rate),
            _ => return 0,
        };
        (of_pass * self.cpu.unwrap_or(1.0).min(1.0) - held_ns).max(0.0).round() as u64
    }

    /// How long a pass takes, nanoseconds, as far as is known.
    pub(super) fn ns(&self) -> Option<f64> {
        let roughly = self.wall_per_second.filter(|_| self.known == Known::Roughly);
        self.observed.map(|rate| 1e9 / rate.median).or(roughly.map(|rate| 1e9 / rate))
    }
}

/// A ratio in which traps have a part, as a whole number of times: what is too near to 1 to be told from it is 1.
fn coarse(ratio: f64) -> f64 {
    if ratio < TRAPS_TELL { 1.0 } else { ratio.round() }
}
