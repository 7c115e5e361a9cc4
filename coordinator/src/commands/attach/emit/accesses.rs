//! What each process does to which words, and how often.

use super::sites::Sites;
use super::verbs::Verb;
use record::{Attach, Interval, TouchedWord, TouchingInstruction};

/// An access of a load and one of a store count as one read and write back where neither is rarer than this part of the other:
/// the few hits of a breakpoint tell no finer.
const PAIR_PART: f64 = 1.0 / 3.0;

/// What one process does to one word in one way.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Access {
    /// The word's offset in the segment.
    pub(super) offset: u64,
    pub(super) verb: Verb,
    /// Accesses a second of wall time; `None` where none is known.
    pub(super) per_second: Option<f64>,
    /// Whether that is a lower bound.
    pub(super) at_least: bool,
    /// Where the word's value tells: accesses a second of wall time and of CPU time, and between which they lay.
    pub(super) paces: Option<(Interval, Interval)>,
    /// Threads of the process that do it.
    pub(super) threads: u32,
    /// The instructions, as a reader of the scenario sees them.
    pub(super) places: Vec<String>,
}

/// What a process does to the words that are fields: those of locks, and what the kernel did for it, are left out.
pub(super) fn of(seen: &Attach, pid: u32, sites: &Sites) -> Vec<Access> {
    let words = seen.lines.iter().flat_map(|line| &line.words).filter(|word| !sites.holds(word.offset));
    let mut all: Vec<Access> = words.flat_map(|word| on_word(word, pid)).collect();
    all.sort_by_key(|one| (one.offset, one.verb));
    all
}

/// Whether the kernel did it: its address is no place in the program.
pub(super) fn by_kernel(at: &TouchingInstruction) -> bool {
    at.symbol.as_deref() == Some("[kernel]")
}

fn on_word(word: &TouchedWord, pid: u32) -> Vec<Access> {
    let mut all: Vec<Access> = Vec::new();
    for at in word.instructions.iter().filter(|at| at.pid == pid && !by_kernel(at)) {
        let verb = Verb::of(at);
        let place = place(at);
        match all.iter_mut().find(|one| one.verb == verb) {
            Some(one) => {
                one.per_second = one.per_second.zip(at.per_second).map(|(a, b)| a + b);
                one.at_least |= at.at_least;
                one.threads = one.threads.max(at.threads);
                one.places.push(place);
            }
            None => all.push(Access {
                offset: word.offset,
                verb,
                per_second: at.per_second,
                at_least: at.at_least,
                paces: None,
                threads: at.threads.max(1),
                places: vec![place],
            }),
        }
    }
    pair(&mut all);
    let share = Share::of(word, pid, &all);
    for one in all.iter_mut().filter(|one| one.verb.writes()) {
        one.paces = share.as_ref().and_then(|share| share.paces(word, one));
    }
    all
}

/// A plain read and a plain write of one word, as often as each other, are one count.
fn pair(all: &mut Vec<Access>) {
    let find = |verb| all.iter().position(|one| one.verb == verb);
    let (Some(load), Some(store)) = (find(Verb::Load), find(Verb::Store)) else { return };
    let alike = match (all[load].per_second, all[store].per_second) {
        (Some(a), Some(b)) => a.min(b) >= a.max(b) * PAIR_PART,
        _ => true,
    };
    if !alike {
        return;
    }
    let load = all[load].clone();
    let store = &mut all[store];
    store.verb = Verb::Bump;
    store.at_least |= load.at_least;
    store.threads = store.threads.max(load.threads);
    store.places.splice(0..0, load.places);
    all.retain(|one| one.verb != Verb::Load);
}

/// A process's part in writing a word.
struct Share {
    /// Of all writes.
    part: f64,
    /// How many processes write it.
    writers: usize,
    /// Of the process's own writes, all verbs together, a second.
    own: f64,
    verbs: usize,
}

impl Share {
    fn of(word: &TouchedWord, pid: u32, own: &[Access]) -> Option<Share> {
        if !word.writers.contains(&pid) {
            return None;
        }
        let writes = |of: Option<u32>| -> f64 {
            let counted = word.instructions.iter().filter(|at| at.writes && of.is_none_or(|pid| at.pid == pid));
            counted.filter_map(|at| at.per_second).sum()
        };
        let (mine, all, writers) = (writes(Some(pid)), writes(None), word.writers.len());
        let part = if writers == 1 || all <= 0.0 { 1.0 / writers as f64 } else { mine / all };
        let own: Vec<&Access> = own.iter().filter(|one| one.verb.writes()).collect();
        Some(Share { part, writers, own: own.iter().filter_map(|one| one.per_second).sum(), verbs: own.len() })
    }

    /// What the word's pace says of one of the process's ways to write it.
    fn paces(&self, word: &TouchedWord, one: &Access) -> Option<(Interval, Interval)> {
        let pace = word.pace.as_ref()?;
        let own = match one.per_second {
            Some(rate) if self.own > 0.0 => rate / self.own,
            _ => 1.0 / self.verbs as f64,
        };
        let wall = scaled(pace.per_second, self.part * own);
        // Writers together make so many a second of CPU time of them all.
        let cpu = scaled(pace.per_cpu_second?, self.part * own * self.writers as f64);
        Some((wall, cpu))
    }
}

pub(super) fn scaled(interval: Interval, by: f64) -> Interval {
    Interval { median: interval.median * by, low: interval.low * by, high: interval.high * by }
}

/// `addq $1,(%rdi) in bump+0xc (ring.c:10)`.
fn place(at: &TouchingInstruction) -> String {
    let text = at.text.as_deref().unwrap_or("an instruction that cannot be read");
    let object = at.object.as_deref().map(|path| path.rsplit('/').next().unwrap_or(path).to_owned());
    let place = at.symbol.clone().or(object).unwrap_or_else(|| format!("{:#x}", at.address));
    let source = at.source.as_ref().map_or_else(String::new, |(file, line)| format!(" ({file}:{line})"));
    format!("{text} in {place}{source}")
}
