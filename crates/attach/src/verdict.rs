//! What the accesses to a line amount to, and what they cost.

use crate::decode::Role;
use crate::prove::Touch;
use crate::words::{User, Word};
use record::{Interval, LineVerdict};
use std::collections::{BTreeMap, BTreeSet};

/// Who only reads, and less often than this part of what the busiest user of the line does, changes nothing about it: a
/// monitor that looks at counters ten times a second does not make them shared. It is told by traps alone, whatever a
/// word's value says of its writers; and of nobody whose hits came so fast that a breakpoint was switched off. Who
/// waits for a lock most of the time is rare too, but writes.
const NEGLIGIBLE: f64 = 0.001;

/// What the words' users amount to.
pub(crate) fn verdict(words: &[Word]) -> LineVerdict {
    let users = busy_users(words);
    if users.len() < 2 {
        return LineVerdict::Private;
    }
    if words.iter().any(|word| is_lock(word, &users)) {
        return LineVerdict::LockWord;
    }
    let most = most(words);
    let of = |word: &Word, does: fn(&Touch) -> bool| -> BTreeSet<User> {
        let counts = |user: &User| users.contains(user) && counts(std::slice::from_ref(word), *user, most);
        word.users(does).into_iter().filter(counts).collect()
    };
    let written: Vec<&Word> = words.iter().filter(|word| !of(word, |touch| touch.writes).is_empty()).collect();
    if written.is_empty() {
        return LineVerdict::ReadMostly;
    }
    match written.iter().any(|word| of(word, |_| true).len() > 1) {
        true => LineVerdict::TrueSharing,
        false => LineVerdict::FalseSharing,
    }
}

/// Threads whose accesses count beside those of the busiest.
fn busy_users(words: &[Word]) -> BTreeSet<User> {
    let most = most(words);
    users(words).into_iter().filter(|user| counts(words, *user, most)).collect()
}

fn users(words: &[Word]) -> BTreeSet<User> {
    words.iter().flat_map(|word| word.users(|_| true)).collect()
}

/// What the busiest user does to the line.
fn most(words: &[Word]) -> f64 {
    users(words).into_iter().map(|user| trapped_on(words, user)).fold(0.0, f64::max)
}

/// Whether what a user does to the words counts beside `most`.
fn counts(words: &[Word], user: User, most: f64) -> bool {
    let mut own = words.iter().flat_map(|word| &word.uses).filter(|one| one.user == user);
    own.any(|one| one.full || one.touch.writes) || trapped_on(words, user) >= most * NEGLIGIBLE
}

/// Accesses of a user to the words a second, as traps have them.
fn trapped_on(words: &[Word], user: User) -> f64 {
    let uses = words.iter().flat_map(|word| &word.uses);
    uses.filter(|one| one.user == user).map(|one| one.trapped).sum()
}

/// Whether a lower bound is all that is known of how much a user does.
fn is_at_least(words: &[Word], user: User) -> bool {
    words.iter().flat_map(|word| &word.uses).any(|one| one.user == user && one.at_least)
}

/// Accesses of a user to the line a second.
pub(crate) fn rate_on(words: &[Word], user: User) -> f64 {
    words.iter().map(|word| word.rate_of(user)).sum()
}

/// Whether several use it and some process takes it and gives it back: a compare-and-exchange or an exchange, and by
/// another instruction an exchange or a store of 0. Who waits may only look.
fn is_lock(word: &Word, users: &BTreeSet<User>) -> bool {
    let mut by_process: BTreeMap<u32, Vec<(u64, &Touch)>> = BTreeMap::new();
    for one in word.uses.iter().filter(|one| users.contains(&one.user)) {
        by_process.entry(one.user.0).or_default().push((one.key.ip, &one.touch));
    }
    let locks = |uses: &Vec<(u64, &Touch)>| {
        uses.iter().filter(|(_, touch)| matches!(touch.role, Role::Takes | Role::Exchanges)).any(|(taker, _)| {
            uses.iter().any(|(giver, touch)| giver != taker && (touch.stores_zero || touch.role == Role::Exchanges))
        })
    };
    word.users(|_| true).intersection(users).count() > 1 && by_process.values().any(locks)
}

/// What the line costs its users: accesses a second, what one costs more than it would alone, and what part of the time
/// of the user who loses most a cure could give back.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) struct Burden {
    pub(crate) accesses_per_second: f64,
    /// Whether that is a lower bound.
    pub(crate) at_least: bool,
    pub(crate) penalty_ns: Option<Interval>,
    pub(crate) recoverable: Option<(f64, f64)>,
}

/// `cpus`: where each user was seen; `shares`: what part of its samples lies in loops that reach the line; `penalty`:
/// what an access costs more, for two CPUs.
pub(crate) fn burden(
    words: &[Word],
    verdict: LineVerdict,
    cpus: &BTreeMap<User, BTreeSet<u32>>,
    shares: &dyn Fn(User) -> f64,
    penalty: &dyn Fn(u32, u32) -> Option<Interval>,
) -> Burden {
    let users = busy_users(words);
    let accesses_per_second = users.iter().map(|user| rate_on(words, *user)).sum();
    let at_least = users.iter().any(|user| is_at_least(words, *user));
    if matches!(verdict, LineVerdict::Private | LineVerdict::ReadMostly) {
        return Burden { accesses_per_second, at_least, penalty_ns: None, recoverable: None };
    }
    let places: Vec<&BTreeSet<u32>> = users.iter().filter_map(|user| cpus.get(user)).collect();
    let others = |at: usize| places[at + 1..].iter().flat_map(|cpus| cpus.iter());
    let pairs = places
        .iter()
        .enumerate()
        .flat_map(|(at, cpus)| cpus.iter().flat_map(move |a| others(at).map(move |b| (*a, *b))));
    let pairs: BTreeSet<(u32, u32)> = pairs.filter(|(a, b)| a != b).map(|(a, b)| (a.min(b), a.max(b))).collect();
    let penalties = pairs.into_iter().filter_map(|(a, b)| penalty(a, b));
    let penalty_ns = penalties.max_by(|a, b| a.median.total_cmp(&b.median));
    let lost = |user: &User, by: Interval| {
        let rate = rate_on(words, *user);
        let most = (rate * by.high * 1e-9).clamp(0.0, 1.0);
        // A lower bound of a rate bounds nothing from above: the time in those loops does.
        let most = if is_at_least(words, *user) { most.max(shares(*user).clamp(0.0, 1.0)) } else { most };
        ((rate * by.low * 1e-9).clamp(0.0, 1.0), most)
    };
    let recoverable = penalty_ns.map(|by| {
        let (low, high) = users
            .iter()
            .map(|user| lost(user, by))
            .fold((0.0, 0.0), |(low, high): (f64, f64), (a, b)| (low.max(a), high.max(b)));
        // Data that are really shared, or a lock, may be needed where they are: then nothing is to be had.
        (if verdict == LineVerdict::FalseSharing { low } else { 0.0 }, high)
    });
    Burden { accesses_per_second, at_least, penalty_ns, recoverable }
}

#[cfg(test)]
mod tests {
    use super::{burden, verdict};
    use crate::decode::Role;
    use crate::words::tests::touch;
    use crate::words::{Use, Word};
    use record::{Interval, LineVerdict};
    use std::collections::{BTreeMap, BTreeSet};

    /// Words out of (offset, process, what it does, accesses a second).
    fn line(uses: &[(u64, u32, &str, f64)]) -> Vec<Word> {
        let mut words: Vec<Word> = Vec::new();
        for (at, &(offset, pid, does, rate)) in uses.iter().enumerate() {
            let (key, mut touch) = touch(pid, offset, 8, at as u64, does);
            touch.role = match does {
                does if does.contains('c') => Role::Takes,
                does if does.contains('x') => Role::Exchanges,
                _ => Role::Stores,
            };
            touch.stores_zero = does.contains('0');
            let one = Use { user: (pid, pid), key, touch, rate, at_least: false, trapped: rate, full: false };
            match words.iter_mut().find(|word| word.offset == offset) {
                Some(word) => word.uses.push(one),
                None => words.push(Word { offset, bytes: 8, uses: vec![one] }),
            }
        }
        words
    }

    #[test]
    fn different_words_are_false_sharing_and_one_word_is_true() {
        let of = |uses: &[(u64, u32, &str, f64)]| verdict(&line(uses));
        assert_eq!(of(&[(0, 1, "rw", 1e6), (8, 2, "rw", 1e6)]), LineVerdict::FalseSharing);
        assert_eq!(of(&[(0, 1, "rw", 1e6), (8, 2, "r", 1e6)]), LineVerdict::FalseSharing);
        assert_eq!(of(&[(0, 1, "rw", 1e6), (0, 2, "rw", 1e6)]), LineVerdict::TrueSharing);
        assert_eq!(of(&[(0, 1, "w", 1e6), (0, 2, "r", 1e5), (8, 2, "w", 1e5)]), LineVerdict::TrueSharing);
        assert_eq!(of(&[(0, 1, "r", 1e6), (0, 2, "r", 1e6)]), LineVerdict::ReadMostly);
        assert_eq!(of(&[(0, 1, "rw", 1e6), (8, 1, "rw", 1e6)]), LineVerdict::Private);
        let monitored = [(0, 1, "rw", 1e6), (8, 2, "rw", 1e6), (0, 3, "r", 10.0), (8, 3, "r", 10.0)];
        assert_eq!(of(&monitored), LineVerdict::FalseSharing, "who looks seldom does not share");
    }

    #[test]
    fn a_lock_is_taken_by_several_and_given_back() {
        let of = |uses: &[(u64, u32, &str, f64)]| verdict(&line(uses));
        let mutex = [(0, 1, "rwc", 1e5), (0, 1, "rwx", 1e5), (0, 2, "rwc", 1e5), (0, 2, "rwx", 1e5), (8, 1, "w", 1e5)];
        assert_eq!(of(&mutex), LineVerdict::LockWord);
        let spin = [(0, 1, "rwx", 1e5), (0, 1, "w0", 1e5), (0, 2, "rwx", 1e5), (0, 2, "w0", 1e5)];
        assert_eq!(of(&spin), LineVerdict::LockWord);
        let waits = [(0, 1, "rwx", 1e5), (0, 1, "w0", 1e5), (0, 2, "r", 1e5)];
        assert_eq!(of(&waits), LineVerdict::LockWord);
        let counter = [(0, 1, "rwc", 1e5), (0, 1, "r", 1e5), (0, 2, "rwc", 1e5), (0, 2, "r", 1e5)];
        assert_eq!(of(&counter), LineVerdict::TrueSharing, "a compare-and-exchange alone is no lock");
    }

    #[test]
    fn the_cure_gives_back_rate_times_penalty_and_of_true_sharing_perhaps_nothing() {
        let words = line(&[(0, 1, "rw", 10e6), (8, 2, "rw", 5e6)]);
        let on = |one: &[u32], other: &[u32]| {
            let set = |cpus: &[u32]| cpus.iter().copied().collect::<BTreeSet<u32>>();
            BTreeMap::from([((1, 1), set(one)), ((2, 2), set(other))])
        };
        let cpus = on(&[0], &[0, 1]);
        let penalty = |_: u32, _: u32| Some(Interval { median: 20.0, low: 15.0, high: 30.0 });
        let of = |verdict| burden(&words, verdict, &cpus, &|_| 0.9, &penalty);
        let seen = of(LineVerdict::FalseSharing);
        let (low, high) = seen.recoverable.unwrap();
        assert!((low - 0.15).abs() < 1e-9 && (high - 0.3).abs() < 1e-9 && seen.accesses_per_second == 15e6, "{seen:?}");
        assert_eq!(of(LineVerdict::TrueSharing).recoverable.unwrap().0, 0.0);
        assert_eq!(of(LineVerdict::Private).recoverable, None);
        let one_cpu = on(&[0], &[0]);
        assert_eq!(burden(&words, LineVerdict::FalseSharing, &one_cpu, &|_| 0.9, &penalty).penalty_ns, None);
    }
}
