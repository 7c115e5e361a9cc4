//! Proof by hardware breakpoints: every word of a line that may be hot, in every thread of every process that maps it,
//! four at a time. The kernel switches each off after a few hits, and between rounds there are pauses, so that no
//! thread loses more of its time than [`Limits::most_lost`].
//!
//! A breakpoint stops at writes, or at reads and writes; none stops at reads alone. So every word is watched for both,
//! the instruction behind a hit tells which it was, and a word at which reads alone were seen is watched for writes
//! too: a few hits of a loop that looks often may all be looks.

mod calibrate;
mod lives;
mod pace;
mod round;
mod touches;

pub(crate) use calibrate::{Costs, calibrate};
pub(crate) use round::Stint;
pub(crate) use touches::{Books, Touch, TouchKey};

use crate::candidates::{Candidates, line_of};
use crate::maps;
use crate::notes::Notes;
use crate::perf::Access;
use crate::{Target, Targets, pidfd};
use pace::Pace;
use plan::CACHE_LINE_BYTES;
use round::{Crew, Point};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Bytes that one breakpoint watches.
pub(crate) const WORD_BYTES: u64 = 8;
/// Readings of a line, while nothing is armed, and the time between two.
const LOOKS: usize = 5;
const BETWEEN_LOOKS: Duration = Duration::from_millis(2);
/// How long words are armed at once, at the least and at the most.
const ARMED_LEAST: Duration = Duration::from_millis(4);
const ARMED_MOST: Duration = Duration::from_millis(25);
/// Rounds that a line needs: two for its eight words, and as many for writes.
const ROUNDS_OF_LINE: u32 = 4;
/// How often lines in use are gone over again at the end, while there is time: what is rare is seen once.
const MORE_PASSES: u32 = 2;
/// Between two looks at whether a process still maps the segment.
const CHECK_EVERY: Duration = Duration::from_millis(100);

/// How much a proof may take.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Limits {
    /// Time in all.
    pub(crate) time: Duration,
    /// Part of a thread's time that traps and switching may take.
    pub(crate) most_lost: f64,
    /// Hits until a breakpoint is switched off.
    pub(crate) hits: i32,
}

/// A line as it stood at a moment: nanoseconds since the proof began, and its bytes.
pub(crate) type Look = (u64, [u8; CACHE_LINE_BYTES as usize]);

/// What was proved.
#[derive(Debug, Default)]
pub(crate) struct Proof {
    /// Who touched what, and where in the code.
    pub(crate) touches: BTreeMap<TouchKey, Touch>,
    /// How often in how much time, by thread and word.
    pub(crate) stints: Vec<Stint>,
    /// Lines as they stood.
    pub(crate) looks: BTreeMap<u64, Vec<Look>>,
    /// Lines that were watched, by line and process.
    pub(crate) watched: BTreeSet<(u64, u32)>,
    /// By process and thread, the thread that stands for it: threads that follow each other are one user.
    pub(crate) stand_ins: BTreeMap<(u32, u32), u32>,
    /// Traps taken.
    pub(crate) traps: u64,
    /// What arming took of the threads' time, nanoseconds.
    pub(crate) arming_ns: f64,
    /// Lines that speak for themselves in samples and were not watched for want of time.
    pub(crate) left_out: u64,
}

/// Watches the ranked lines, then what else there is where the segment is small, until `limits` are reached.
pub(crate) fn prove(
    targets: &Targets,
    candidates: &Candidates,
    small: &[u64],
    books: &mut Books,
    setting: Setting<'_>,
) -> Proof {
    let mut prover = Prover {
        targets,
        candidates,
        books,
        started: Instant::now(),
        checked: Instant::now(),
        gone: BTreeSet::new(),
        crew: Crew::default(),
        pace: Pace::new(setting.limits.most_lost),
        setting,
        proof: Proof::default(),
    };
    prover.run(small);
    Proof { stand_ins: prover.crew.stand_ins(), ..prover.proof }
}

/// What a proof is made with.
pub(crate) struct Setting<'a> {
    pub(crate) limits: Limits,
    pub(crate) costs: Costs,
    pub(crate) stop: &'a dyn Fn() -> bool,
    pub(crate) notes: &'a mut Notes,
}

struct Prover<'a> {
    targets: &'a Targets,
    candidates: &'a Candidates,
    books: &'a mut Books,
    started: Instant,
    checked: Instant,
    gone: BTreeSet<u32>,
    crew: Crew,
    pace: Pace,
    setting: Setting<'a>,
    proof: Proof,
}

impl<'a> Prover<'a> {
    fn run(&mut self, small: &[u64]) {
        let ranked = self.candidates.ranked();
        let rounds = u32::try_from(ranked.len()).unwrap_or(u32::MAX).saturating_mul(ROUNDS_OF_LINE).max(1);
        let armed = (self.setting.limits.time / 2 / rounds).clamp(ARMED_LEAST, ARMED_MOST);
        let done = self.each(&ranked, armed);
        self.proof.left_out = (ranked.len() - done) as u64;
        self.each(&self.used(), armed);
        let rest: Vec<u64> = small.iter().filter(|line| !ranked.contains(line)).copied().collect();
        self.each(&rest, ARMED_LEAST);
        for _ in 0..MORE_PASSES {
            self.each(&self.used(), armed);
        }
    }

    /// Lines that somebody was seen to use.
    fn used(&self) -> Vec<u64> {
        let lines: BTreeSet<u64> = self.proof.touches.keys().map(|key| line_of(key.offset)).collect();
        lines.into_iter().collect()
    }

    /// Watches the lines, as many as there is time for: how many.
    fn each(&mut self, lines: &[u64], armed: Duration) -> usize {
        for (done, line) in lines.iter().enumerate() {
            if self.is_over() {
                return done;
            }
            self.line(*line, armed);
        }
        lines.len()
    }

    fn is_over(&self) -> bool {
        self.started.elapsed() >= self.setting.limits.time || (self.setting.stop)()
    }

    /// All words of a line in all processes.
    fn line(&mut self, line: u64, armed: Duration) {
        self.check();
        let words: Vec<u64> = (0..CACHE_LINE_BYTES / WORD_BYTES).map(|word| line + word * WORD_BYTES).collect();
        self.words(&words, Access::ReadWrite, armed, |_, _, _| true);
        let touched = self.books.read_alone(&self.proof.touches, line);
        self.words(&words, Access::Write, armed, |_, pid, word| touched.contains(&(pid, word)));
        if self
            .proof
            .touches
            .range(TouchKey::first_of(line)..TouchKey::first_of(line + CACHE_LINE_BYTES))
            .next()
            .is_some()
        {
            self.look(line);
        }
        for target in self.living() {
            if target.addresses(line).next().is_some() && self.crew.can_watch(target.pid) {
                self.proof.watched.insert((line, target.pid));
            }
        }
    }

    /// Arms the words chosen in all processes, as many at a time as each has breakpoints left.
    fn words(&mut self, words: &[u64], access: Access, armed: Duration, chosen: impl Fn(&Self, u32, u64) -> bool) {
        let mut open: BTreeMap<u32, Vec<Point>> = BTreeMap::new();
        for target in self.living() {
            let points = words.iter().filter(|word| chosen(self, target.pid, **word)).flat_map(|word| {
                target.addresses(*word).map(|address| Point { pid: target.pid, offset: *word, address, access })
            });
            open.insert(target.pid, points.collect());
        }
        while open.values().any(|points| !points.is_empty()) {
            if (self.setting.stop)() {
                return;
            }
            for target in self.living() {
                self.crew.enlist(target, self.setting.notes);
            }
            let mut now = Vec::new();
            for (pid, points) in &mut open {
                let count = self.crew.room(*pid).min(points.len());
                // Where none is left, nothing of this process can be proved.
                match count {
                    0 => points.clear(),
                    count => now.extend(points.drain(..count)),
                }
            }
            self.round(&now, armed);
        }
    }

    fn round(&mut self, points: &[Point], armed: Duration) {
        if points.is_empty() {
            return;
        }
        self.pace.wait(self.setting.stop);
        let setting = &mut self.setting;
        let seen =
            self.crew.round(points, armed, setting.limits.hits, setting.costs.trap_ns, setting.stop, setting.notes);
        for hit in &seen.hits {
            self.pace.spend(hit.tid, self.setting.costs.trap_ns);
            let target = self.targets.processes.iter().find(|target| target.pid == hit.pid);
            if let Some(target) = target {
                self.books.enter(target, hit, self.candidates, &mut self.proof.touches);
            }
        }
        for (tid, taken_ns) in arming_took(&seen, self.setting.costs.arming_ns) {
            self.pace.spend(tid, taken_ns);
            self.proof.arming_ns += taken_ns;
        }
        self.proof.traps += seen.hits.len() as u64;
        self.proof.stints.extend(seen.stints);
    }

    /// What stands in the line, some moments apart: a counter tells its own rate.
    fn look(&mut self, line: u64) {
        let Some((pid, address)) =
            self.living().into_iter().find_map(|one| Some((one.pid, one.addresses(line).next()?)))
        else {
            return;
        };
        let mut looks = Vec::with_capacity(LOOKS);
        for count in 0..LOOKS {
            if count > 0 {
                std::thread::sleep(BETWEEN_LOOKS);
            }
            let mut bytes = [0; CACHE_LINE_BYTES as usize];
            if !self.books.now(pid, address, &mut bytes) {
                return;
            }
            looks.push((self.started.elapsed().as_nanos() as u64, bytes));
        }
        self.proof.looks.insert(line, looks);
    }

    fn living(&self) -> Vec<&'a Target> {
        self.targets.processes.iter().filter(|target| !self.gone.contains(&target.pid)).collect()
    }

    /// Leaves out the processes that have ended, or no longer map the segment: at its addresses may be something else.
    fn check(&mut self) {
        if self.proof.watched.is_empty() || self.checked.elapsed() >= CHECK_EVERY {
            let segment = &self.targets.segment;
            let maps_it = |target: &Target| {
                maps::of(target.pid).iter().any(|one| {
                    (one.device, one.inode) == (segment.device, segment.inode)
                        && target.mappings.iter().any(|known| known.address == one.start)
                })
            };
            let gone = |target: &&Target| pidfd::has_ended(&target.pidfd) || !maps_it(target);
            let gone: Vec<u32> = self.living().into_iter().filter(gone).map(|target| target.pid).collect();
            self.gone.extend(gone);
            self.checked = Instant::now();
        }
    }
}

/// What arming took of each thread: of one that slept nothing, and of none more than it ran.
fn arming_took(seen: &round::Seen, arming_ns: f64) -> BTreeMap<u32, f64> {
    let mut taken: BTreeMap<u32, f64> = BTreeMap::new();
    for stint in &seen.stints {
        *taken.entry(stint.tid).or_default() += arming_ns;
    }
    for (tid, taken_ns) in &mut taken {
        *taken_ns = taken_ns.min(seen.ran_ns.get(tid).copied().unwrap_or(0) as f64);
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::round::{Seen, Stint};
    use super::*;

    #[test]
    fn arming_takes_no_more_of_a_thread_than_it_ran() {
        let stint = |tid| Stint { pid: 1, tid, offset: 0, access: Access::Write, hits: 0, accesses: 0, time_ns: 1e6 };
        let stints = [1, 1, 2, 2, 3, 3, 4].map(stint).to_vec();
        let seen = Seen { stints, ran_ns: [(1, 4_000_000), (2, 30_000), (3, 0)].into(), ..Seen::default() };
        let taken = [(1, 40_000.0), (2, 30_000.0), (3, 0.0), (4, 0.0)];
        assert_eq!(arming_took(&seen, 20_000.0), taken.into());
    }
}
