//! What each user does to which words, and how often.

use super::sites::Sites;
use super::users::User;
use super::verbs::Verb;
use record::{Attach, Interval, TouchedWord, TouchingInstruction};
use std::collections::{BTreeMap, BTreeSet};

/// Traps tell how often something is done to within this factor: a breakpoint is switched off after a few hits, and makes
/// those who contend take turns as they would not without it.
pub(super) const TRAPS_TELL: f64 = 3.0;

/// Medians of rates that were read at the same times belong together to within this part of the smaller.
const SAME: f64 = 0.2;

/// What one user does to one word in one way.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Access {
    /// The word's offset in the segment.
    pub(super) offset: u64,
    pub(super) verb: Verb,
    /// Accesses a second of wall time, by traps; `None` where none is known.
    pub(super) per_second: Option<f64>,
    /// Whether that is a lower bound.
    pub(super) at_least: bool,
    /// Where the word's value tells.
    pub(super) pace: Option<Pace>,
    /// The instructions, as a reader of the scenario sees them.
    pub(super) places: Vec<String>,
}

/// How often, by a word's value.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Pace {
    /// A second of wall time.
    pub(super) wall: Interval,
    /// A second of the user's CPU time.
    pub(super) cpu: Interval,
    /// Whether the value alone tells it. Else traps have a part in it: they say which of several made how much of it.
    pub(super) exact: bool,
}

/// What a user does to the words that are fields: those of locks, and what the kernel did for it, are left out.
pub(super) fn of(seen: &Attach, user: User, sites: &Sites, alone: &Alone) -> Vec<Access> {
    let words = seen.lines.iter().flat_map(|line| &line.words).filter(|word| !sites.holds(word.offset));
    let mut all: Vec<Access> = words.flat_map(|word| on_word(word, user, alone)).collect();
    all.sort_by_key(|one| (one.offset, one.verb));
    all
}

/// Whether the kernel did it: its address is no place in the program.
pub(super) fn by_kernel(at: &TouchingInstruction) -> bool {
    at.symbol.as_deref() == Some("[kernel]")
}

fn on_word(word: &TouchedWord, user: User, alone: &Alone) -> Vec<Access> {
    let mut all: Vec<Access> = Vec::new();
    for at in word.instructions.iter().filter(|at| user.was_at(at) && !by_kernel(at)) {
        let verb = Verb::of(at);
        let place = place(at);
        match all.iter_mut().find(|one| one.verb == verb) {
            Some(one) => {
                one.per_second = one.per_second.zip(User::part(at)).map(|(a, b)| a + b);
                one.at_least |= at.at_least;
                one.places.push(place);
            }
            None => all.push(Access {
                offset: word.offset,
                verb,
                per_second: User::part(at),
                at_least: at.at_least,
                pace: None,
                places: vec![place],
            }),
        }
    }
    pair(&mut all);
    let share = Share::of(word, user, &all, alone);
    for one in all.iter_mut().filter(|one| one.verb.writes()) {
        one.pace = share.as_ref().and_then(|share| share.pace(word, one));
    }
    all
}

/// A plain read and a plain write of one word, as often as each other, are one count.
fn pair(all: &mut Vec<Access>) {
    let find = |verb| all.iter().position(|one| one.verb == verb);
    let (Some(load), Some(store)) = (find(Verb::Load), find(Verb::Store)) else { return };
    let alike = match (all[load].per_second, all[store].per_second) {
        (Some(a), Some(b)) => a.min(b) * TRAPS_TELL >= a.max(b),
        _ => true,
    };
    if !alike {
        return;
    }
    let load = all[load].clone();
    let store = &mut all[store];
    store.verb = Verb::Bump;
    store.at_least |= load.at_least;
    store.places.splice(0..0, load.places);
    all.retain(|one| one.verb != Verb::Load);
}

/// Who writes a word.
fn writers(word: &TouchedWord) -> BTreeSet<User> {
    word.instructions.iter().filter(|at| at.writes && !by_kernel(at)).flat_map(User::at).collect()
}

/// How often each user writes the fastest word that it alone writes, where its value counts.
#[derive(Debug, Default)]
pub(super) struct Alone(BTreeMap<User, f64>);

impl Alone {
    pub(super) fn of(seen: &Attach, sites: &Sites) -> Alone {
        let mut rates: BTreeMap<User, f64> = BTreeMap::new();
        let words = seen.lines.iter().flat_map(|line| &line.words).filter(|word| !sites.holds(word.offset));
        for (word, pace) in words.filter_map(|word| Some((word, word.pace.as_ref()?))) {
            let writers = writers(word);
            if let (Some(only), 1) = (writers.first(), writers.len()) {
                let rate = rates.entry(*only).or_insert(0.0);
                *rate = rate.max(pace.per_second.median);
            }
        }
        Alone(rates)
    }

    /// A user's part in what all of these do, `total` times a second together, where each does it as many times for each time
    /// that it writes its own word: then the total is so many times what they write alone. Beside it, how many times.
    fn part(&self, user: User, all: &BTreeSet<User>, total: f64) -> Option<(f64, f64)> {
        let rates: Option<Vec<f64>> = all.iter().map(|one| self.0.get(one).copied()).collect();
        let sum: f64 = rates?.iter().sum();
        let times = (total / sum).round();
        let fits = times >= 1.0 && (total / sum - times).abs() <= SAME;
        Some((self.0.get(&user)? / sum, times)).filter(|_| fits)
    }
}

/// A user's part in writing a word.
struct Share {
    /// Of all writes.
    part: f64,
    /// Whether that is sure, and not by traps.
    exact: bool,
    /// How many write it.
    writers: usize,
    /// Of the user's own writes, all verbs together, a second.
    own: f64,
    verbs: usize,
}

impl Share {
    fn of(word: &TouchedWord, user: User, own: &[Access], alone: &Alone) -> Option<Share> {
        let all = writers(word);
        if !all.contains(&user) {
            return None;
        }
        let writes = word.instructions.iter().filter(|at| at.writes);
        let sum: f64 = writes.clone().filter_map(|at| at.per_second).sum();
        let mine: f64 = writes.filter(|at| user.was_at(at)).filter_map(User::part).sum();
        let trapped = if all.len() == 1 || sum <= 0.0 { 1.0 / all.len() as f64 } else { mine / sum };
        // One that goes twice as fast may look like two that do it twice: there traps have to agree.
        let fits = |(part, times): &(f64, f64)| *times == 1.0 || part.max(trapped) < part.min(trapped) * TRAPS_TELL;
        let total = word.pace.as_ref().map_or(0.0, |pace| pace.per_second.median);
        let counted = alone.part(user, &all, total).filter(fits).map(|(part, _)| part);
        let own: Vec<&Access> = own.iter().filter(|one| one.verb.writes()).collect();
        Some(Share {
            part: counted.unwrap_or(trapped),
            exact: all.len() == 1 || counted.is_some(),
            writers: all.len(),
            own: own.iter().filter_map(|one| one.per_second).sum(),
            verbs: own.len(),
        })
    }

    /// What the word's pace says of one of the user's ways to write it.
    fn pace(&self, word: &TouchedWord, one: &Access) -> Option<Pace> {
        let pace = word.pace.as_ref()?;
        let own = match one.per_second {
            Some(rate) if self.own > 0.0 => rate / self.own,
            _ => 1.0 / self.verbs as f64,
        };
        let wall = scaled(pace.per_second, self.part * own);
        // Writers together make so many a second of CPU time of them all.
        let cpu = scaled(pace.per_cpu_second?, self.part * own * self.writers as f64);
        Some(Pace { wall, cpu, exact: self.exact && self.verbs == 1 })
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
