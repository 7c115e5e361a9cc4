//! From samples to the cache lines that may be hot: the operands of the loops in which the samples lie.

use crate::decode::{Code, Reached, spins, walk};
use crate::memory::Memory;
use crate::sample::Moments;
use crate::{Target, registers};
use plan::CACHE_LINE_BYTES;
use std::collections::{BTreeMap, BTreeSet};

/// Different instructions of a process whose surroundings are looked at, the most sampled first.
const PLACES_MAX: usize = 48;
/// Samples of one instruction that are followed: registers differ from one to the next, as of a loop over an array.
const WALKS_MAX: usize = 4;
/// An operand so many instructions away from a sample counts half of one at hand.
const HALF_STEPS: f64 = 32.0;
/// Instructions from a sample to the look of the loop that it lies in, where the loop waits: see [`spins`].
const SPIN_STEPS: u32 = 10;
/// A process spins on a word where this part of a thread's samples lies in such loops.
const SPINNING_PART: f64 = 0.1;

/// An operand that samples lead to.
#[derive(Debug, Default)]
pub(crate) struct Candidate {
    /// Bytes of the access.
    pub(crate) bytes: u64,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
    /// Samples at the instruction or right behind it.
    pub(crate) at: u64,
}

/// What the samples amount to.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    /// By line (offset of its first byte), how much speaks for it.
    pub(crate) lines: BTreeMap<u64, f64>,
    /// By process, offset in the segment and instruction.
    pub(crate) operands: BTreeMap<(u32, u64, u64), Candidate>,
    /// By offset and thread, what part of its samples lies in short loops that look at it and pause.
    waiting: BTreeMap<(u64, u32, u32), f64>,
    /// Threads by what part of their samples lies in loops that reach a line.
    pub(crate) shares: BTreeMap<(u64, u32, u32), f64>,
}

impl Candidates {
    /// By offset, the processes that spin on it.
    pub(crate) fn spinners(&self) -> BTreeMap<u64, Vec<u32>> {
        let mut spinners: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        for ((offset, pid, _), _) in self.waiting.iter().filter(|(_, part)| **part >= SPINNING_PART) {
            let pids = spinners.entry(*offset).or_default();
            if !pids.contains(pid) {
                pids.push(*pid);
            }
        }
        spinners
    }

    /// Lines, the most likely first.
    pub(crate) fn ranked(&self) -> Vec<u64> {
        let mut lines: Vec<(u64, f64)> = self.lines.iter().map(|(line, weight)| (*line, *weight)).collect();
        lines.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        lines.into_iter().map(|(line, _)| line).collect()
    }
}

/// The line that holds an offset.
pub(crate) fn line_of(offset: u64) -> u64 {
    offset / CACHE_LINE_BYTES * CACHE_LINE_BYTES
}

/// What one process's samples amount to, added to `found`.
pub(crate) fn gather(target: &Target, moments: &Moments, code: &mut Code, memory: &mut Memory, found: &mut Candidates) {
    let mut places: BTreeMap<(u32, u64), Vec<usize>> = BTreeMap::new();
    let mut totals: BTreeMap<u32, usize> = BTreeMap::new();
    for (at, moment) in moments.list.iter().enumerate().filter(|(_, moment)| moment.pid == target.pid) {
        places.entry((moment.tid, moment.ip)).or_default().push(at);
        *totals.entry(moment.tid).or_default() += 1;
    }
    let mut places: Vec<((u32, u64), Vec<usize>)> = places.into_iter().collect();
    places.sort_by_key(|(_, samples)| std::cmp::Reverse(samples.len()));
    places.truncate(PLACES_MAX);
    for ((tid, ip), samples) in places {
        let part = samples.len() as f64 / totals[&tid] as f64;
        let place = Place { target, tid, ip, part, samples: samples.len() };
        let step = samples.len().div_ceil(WALKS_MAX);
        let followed: Vec<usize> = samples.into_iter().step_by(step).collect();
        if Code::is_known() {
            place.follow(&followed, moments, code, memory, found);
        } else {
            place.point(&followed, moments, found);
        }
    }
}

/// One instruction at which a thread was seen.
struct Place<'a> {
    target: &'a Target,
    tid: u32,
    ip: u64,
    /// Of the thread's samples.
    part: f64,
    samples: usize,
}

impl Place<'_> {
    fn follow(
        &self,
        followed: &[usize],
        moments: &Moments,
        code: &mut Code,
        memory: &mut Memory,
        found: &mut Candidates,
    ) {
        let holds = |address: u64| self.target.offset(address).is_some();
        let mut touched: BTreeSet<u64> = BTreeSet::new();
        let mut weights: BTreeMap<u64, f64> = BTreeMap::new();
        let mut at_hand: BTreeSet<(u64, u64)> = BTreeSet::new();
        for &sample in followed {
            let known = registers::general(&moments.list[sample].registers, self.target.address_bits);
            let mut looks: BTreeSet<u64> = BTreeSet::new();
            for reached in &walk(self.ip, known, code, memory, &holds) {
                let Some(offset) = self.target.offset(reached.address) else { continue };
                self.note(offset, reached, code, &mut at_hand, found);
                touched.insert(line_of(offset));
                let weight = HALF_STEPS / (HALF_STEPS + f64::from(reached.steps)) / followed.len() as f64;
                *weights.entry(line_of(offset)).or_default() += weight;
                if reached.steps <= SPIN_STEPS && !reached.operand.writes && spins(reached.ip, code, memory) {
                    looks.insert(offset);
                }
            }
            for offset in looks {
                let part = self.part / followed.len() as f64;
                *found.waiting.entry((offset, self.target.pid, self.tid)).or_default() += part;
            }
        }
        self.count(touched, weights, found);
    }

    /// An operand, and the samples at it once for each instruction.
    fn note(
        &self,
        offset: u64,
        reached: &Reached,
        code: &mut Code,
        at_hand: &mut BTreeSet<(u64, u64)>,
        found: &mut Candidates,
    ) {
        let candidate = found.operands.entry((self.target.pid, offset, reached.ip)).or_default();
        candidate.bytes = candidate.bytes.max(reached.operand.bytes);
        candidate.reads |= reached.operand.reads;
        candidate.writes |= reached.operand.writes;
        let is_here = reached.ip == self.ip || code.is_before(reached.ip, self.ip);
        if is_here && at_hand.insert((offset, reached.ip)) {
            candidate.at += self.samples as u64;
        }
    }

    /// Without instructions: registers that point into the segment. A pointer is likely to be used with a small
    /// distance.
    fn point(&self, followed: &[usize], moments: &Moments, found: &mut Candidates) {
        let mut touched = BTreeSet::new();
        let mut weights: BTreeMap<u64, f64> = BTreeMap::new();
        for &sample in followed {
            for offset in moments.list[sample].registers.iter().filter_map(|value| self.target.offset(*value)) {
                touched.insert(line_of(offset));
                *weights.entry(line_of(offset)).or_default() += 1.0 / followed.len() as f64;
            }
        }
        self.count(touched, weights, found);
    }

    /// The lines that this place leads to. One sample speaks for a line as much as all its operands of that line do
    /// together, once at most.
    fn count(&self, touched: BTreeSet<u64>, weights: BTreeMap<u64, f64>, found: &mut Candidates) {
        for line in touched {
            let weight = weights.get(&line).copied().unwrap_or(0.0).min(1.0);
            *found.lines.entry(line).or_default() += weight * self.samples as f64;
            *found.shares.entry((line, self.target.pid, self.tid)).or_default() += self.part;
        }
    }
}
