//! From touches of bytes to the words of a line, and who uses each how often.

use crate::candidates::line_of;
use crate::perf::Access;
use crate::prove::{Look, Proof, Touch, TouchKey, WORD_BYTES};
use std::collections::{BTreeMap, BTreeSet};

/// Of a trap's time, the part that its own spread hides: accesses are taken to be at least so far apart.
const UNSEEN_PART: f64 = 0.25;
/// Accesses that seem closer together than this part of a trap's time may be much closer: what is computed from them is
/// a lower bound.
const UNSURE_PART: f64 = 1.0;

/// A value grows steadily where it does so in so many stretches, the fastest of which is at most so many times the
/// slowest.
const STEADY_LEAST: usize = 2;
const STEADY_RATIO: f64 = 3.0;

/// A thread of a process, which stands for those that followed it.
pub(crate) type User = (u32, u32);

/// One touch with how often it happens.
#[derive(Clone, Debug)]
pub(crate) struct Use {
    pub(crate) user: User,
    pub(crate) key: TouchKey,
    pub(crate) touch: Touch,
    /// Accesses a second, or at least that many.
    pub(crate) rate: f64,
    /// Whether the rate is a lower bound.
    pub(crate) at_least: bool,
    /// Accesses a second as the traps alone have them: what users are compared by.
    pub(crate) trapped: f64,
    /// Whether a breakpoint was switched off after its hits, so soon did they come.
    pub(crate) full: bool,
}

/// Bytes that are used as one.
#[derive(Clone, Debug)]
pub(crate) struct Word {
    pub(crate) offset: u64,
    /// Of the widest access.
    pub(crate) bytes: u64,
    pub(crate) uses: Vec<Use>,
}

impl Word {
    /// Users by what they do.
    pub(crate) fn users(&self, does: impl Fn(&Touch) -> bool) -> BTreeSet<User> {
        self.uses.iter().filter(|one| does(&one.touch)).map(|one| one.user).collect()
    }

    /// What its writers add each time, the least of them, where an instruction adds.
    pub(crate) fn adds(&self) -> Option<u64> {
        self.uses.iter().filter(|one| one.touch.writes).filter_map(|one| one.touch.adds).min()
    }

    /// Accesses a second of a user.
    pub(crate) fn rate_of(&self, user: User) -> f64 {
        self.uses.iter().filter(|one| one.user == user).map(|one| one.rate).sum()
    }
}

/// The words of every line that was touched, by line.
pub(crate) fn words(proof: &Proof, trap_ns: f64) -> BTreeMap<u64, Vec<Word>> {
    let rates = rates(proof, trap_ns);
    let mut lines: BTreeMap<u64, Vec<Word>> = BTreeMap::new();
    for (key, touch) in &proof.touches {
        if key.bytes > 0 {
            place(lines.entry(line_of(key.offset)).or_default(), use_of(key, touch, proof, &rates), key.bytes);
        }
    }
    // Of these it is not known which bytes: a word of which bytes are known has them, where there is one.
    for (key, touch) in proof.touches.iter().filter(|(key, _)| key.bytes == 0) {
        place(lines.entry(line_of(key.offset)).or_default(), use_of(key, touch, proof, &rates), 0);
    }
    for (line, words) in &mut lines {
        words.sort_by_key(|word| word.offset);
        if let Some(looks) = proof.looks.get(line) {
            words.iter_mut().for_each(|word| by_value(word, *line, looks));
        }
    }
    lines
}

/// How often a thread touched eight bytes.
#[derive(Copy, Clone, Debug, Default)]
struct Rate {
    per_second: f64,
    /// Whether that is a lower bound.
    at_least: bool,
    /// Whether a breakpoint was switched off after its hits.
    full: bool,
}

fn rates(proof: &Proof, trap_ns: f64) -> BTreeMap<(User, u64), Rate> {
    let mut sums: BTreeMap<(User, u64), (f64, f64, Rate)> = BTreeMap::new();
    for stint in proof.stints.iter().filter(|stint| stint.access == Access::ReadWrite) {
        let seen = f64::from(stint.accesses);
        let least = seen * trap_ns * UNSEEN_PART;
        let (accesses, ns, rate) = sums.entry(((stint.pid, stint.tid), stint.offset)).or_default();
        *accesses += seen;
        *ns += stint.time_ns.max(least);
        rate.at_least |= stint.hits > 1 && stint.time_ns < seen * trap_ns * UNSURE_PART;
        rate.full |= stint.hits > stint.accesses;
    }
    let rate = |(accesses, ns, rate): (f64, f64, Rate)| Rate {
        per_second: if ns > 0.0 { accesses / ns * 1e9 } else { 0.0 },
        ..rate
    };
    sums.into_iter().map(|(key, sum)| (key, rate(sum))).collect()
}

/// A touch with its part of what its thread does to the eight bytes around.
fn use_of(key: &TouchKey, touch: &Touch, proof: &Proof, rates: &BTreeMap<(User, u64), Rate>) -> Use {
    let thread = (key.pid, key.tid);
    let around = key.offset / WORD_BYTES * WORD_BYTES;
    let same = |other: &&TouchKey| {
        (other.pid, other.tid, other.offset / WORD_BYTES * WORD_BYTES) == (key.pid, key.tid, around)
    };
    let all: u64 = proof.touches.iter().filter(|(other, _)| same(other)).map(|(_, touch)| touch.hits).sum();
    let Rate { per_second, at_least, full } = rates.get(&(thread, around)).copied().unwrap_or_default();
    let part = touch.hits as f64 / all.max(1) as f64;
    let user = (key.pid, proof.stand_ins.get(&thread).copied().unwrap_or(key.tid));
    Use { user, key: *key, touch: touch.clone(), rate: per_second * part, trapped: per_second * part, at_least, full }
}

/// Puts a use of `bytes` bytes into the word that it overlaps; 0 bytes overlap all of the eight around.
fn place(words: &mut Vec<Word>, one: Use, bytes: u64) {
    let (start, length) = (one.key.offset, if bytes == 0 { WORD_BYTES } else { bytes });
    let overlaps = |word: &&mut Word| word.offset < start + length && start < word.offset + word.bytes;
    match words.iter_mut().find(overlaps) {
        Some(word) => {
            if bytes > 0 {
                word.offset = word.offset.min(start);
                word.bytes = word.bytes.max(bytes);
            }
            word.uses.push(one);
        }
        None => words.push(Word { offset: start, bytes: length, uses: vec![one] }),
    }
}

/// A word that only grows, and steadily, counts something: what its value says is taken where traps gave a lower bound.
fn by_value(word: &mut Word, line: u64, looks: &[Look]) {
    let Some(grown) = growth(word, line, looks) else { return };
    let writes = |one: &Use| one.touch.writes;
    let step = word.adds().unwrap_or(1).max(1);
    let told = grown / step as f64;
    let trapped: f64 = word.uses.iter().filter(|one| writes(one)).map(|one| one.rate).sum();
    if trapped <= 0.0 || told <= trapped {
        return;
    }
    let writers = word.users(|touch| touch.writes);
    for one in word.uses.iter_mut().filter(|one| writers.contains(&one.user)) {
        one.rate *= told / trapped;
        one.at_least = false;
    }
}

/// By how much the word's value grows a second, where it does so steadily.
fn growth(word: &Word, line: u64, looks: &[Look]) -> Option<f64> {
    let bits = word.bytes * 8;
    if !matches!(word.bytes, 4 | 8) || !word.uses.iter().any(|one| one.touch.writes) {
        return None;
    }
    let at = usize::try_from(word.offset - line).ok()?;
    let value = |look: &Look| {
        let mut number = [0; 8];
        let bytes = look.1.get(at..at + word.bytes as usize)?;
        number[..bytes.len()].copy_from_slice(bytes);
        Some(u64::from_ne_bytes(number))
    };
    let mut rates = Vec::new();
    let mut whole = 0.0;
    for pair in looks.windows(2) {
        let grown = value(&pair[1])?.wrapping_sub(value(&pair[0])?) & (u64::MAX >> (64 - bits));
        // More than half of what it can hold is a value that fell.
        if grown >> (bits - 1) != 0 {
            return None;
        }
        whole += grown as f64;
        rates.push(grown as f64 / (pair[1].0 - pair[0].0).max(1) as f64 * 1e9);
    }
    // Who counts may have been off its CPU in between.
    rates.retain(|rate| *rate > 0.0);
    let (low, high) = (rates.iter().copied().reduce(f64::min)?, rates.iter().copied().reduce(f64::max)?);
    let time = looks.last()?.0 - looks.first()?.0;
    (rates.len() >= STEADY_LEAST && high <= low * STEADY_RATIO).then(|| whole / time.max(1) as f64 * 1e9)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::decode::Role;
    use crate::prove::Stint;

    /// A touch by a thread of the process of the same number.
    pub(crate) fn touch(pid: u32, offset: u64, bytes: u64, ip: u64, does: &str) -> (TouchKey, Touch) {
        let (reads, writes) = (does.contains('r'), does.contains('w'));
        let key = TouchKey { pid, tid: pid, offset, bytes, ip };
        let role = Role::Other;
        (key, Touch { text: None, reads, writes, kernel: false, hits: 4, role, stores_zero: false, adds: None })
    }

    fn stint(pid: u32, offset: u64, accesses: u32, time_ns: f64) -> Stint {
        Stint { pid, tid: pid, offset, access: Access::ReadWrite, hits: accesses + 1, accesses, time_ns }
    }

    fn look(at_ns: u64, value: u64) -> Look {
        let mut bytes = [0; 64];
        bytes[8..16].copy_from_slice(&value.to_ne_bytes());
        (at_ns, bytes)
    }

    #[test]
    fn halves_of_eight_bytes_are_words_and_overlapping_accesses_are_one() {
        let touches =
            [touch(1, 0, 4, 10, "w"), touch(2, 4, 4, 20, "w"), touch(1, 8, 8, 30, "r"), touch(2, 8, 4, 40, "w")];
        let mut proof = Proof { touches: touches.into_iter().collect(), ..Proof::default() };
        let (key, unknown) = touch(3, 0, 0, 50, "r");
        proof.touches.insert(key, unknown);
        let words = &words(&proof, 1000.0)[&0];
        let seen: Vec<_> = words.iter().map(|word| (word.offset, word.bytes, word.uses.len())).collect();
        assert_eq!(seen, [(0, 4, 2), (4, 4, 1), (8, 8, 2)]);
    }

    #[test]
    fn what_traps_hide_is_a_lower_bound_and_a_counter_tells_more() {
        let (key, one) = touch(1, 8, 8, 10, "rw");
        let mut proof = Proof { touches: [(key, one)].into(), ..Proof::default() };
        proof.stints = vec![stint(1, 8, 3, -50.0)];
        let rate = |proof: &Proof| {
            let one = &words(proof, 1000.0)[&0][0].uses[0];
            (one.rate.round(), one.at_least)
        };
        assert_eq!(rate(&proof), (4_000_000.0, true));
        // 30,000 more in 3 ms, and again.
        proof.looks.insert(0, vec![look(0, 5), look(3_000_000, 30_005), look(6_000_000, 60_005)]);
        assert_eq!(rate(&proof), (10_000_000.0, false));
        proof.looks.insert(0, vec![look(0, 5), look(3_000_000, 30_005), look(6_000_000, 4)]);
        assert_eq!(rate(&proof), (4_000_000.0, true), "it fell: no counter");
        proof.stints = vec![stint(1, 8, 3, 3_000_000.0)];
        assert_eq!(rate(&proof), (1_000.0, false), "far apart, they are told apart");
    }
}
