//! From what was seen at a word to what is wrong there, as the lab judges its own locks.
//!
//! Only waiting in the kernel is seen from outside, and neither the acquisitions that do not wait nor the holds that nobody
//! waits behind. So a hold is judged by the time in which others waited for its end.
//!
//! # References
//! `crates/analysis/src/diagnose/`: `long_hold.rs`, `convoy.rs`, `owner_died.rs`, which judge the lab's own locks. How
//! many times the typical hold a long one is, and how much of the waiting it explains, is as there; the least length and
//! what has none there follow from what a watch sees (docs/attach.md has each).

use super::follow::{Follower, Thread, WordSeen};
use super::owners::{Looks, Meant, Numbers};
use super::word::Word;
use record::LockFinding;
use std::collections::BTreeSet;

/// A hold is long from so many times the typical one of the others.
const LONG: f64 = 10.0;
/// No shorter one is: waking a sleeper takes up to a tenth of this, and which CPU runs whom is decided each few
/// milliseconds.
const LEAST_LONG_NS: f64 = 1e6;
/// So much of all waiting falls to its long holds before they are the cause.
const LEAST_EXPLAINED: f64 = 0.5;
/// And so many times as much as to those of the next: owners that are taken off their CPUs share it evenly.
const AHEAD: f64 = 2.0;
/// And it keeps one thread waiting for so much of the time,
const LEAST_COST: f64 = 0.05;
/// so often, or for so much of the time all together: an owner is taken off its CPU once, too.
const LEAST_TIMES: u64 = 3;
const COST_OF_FEW: f64 = 0.3;

/// A convoy's mean wait is so many times what the others' holds take, one after the other.
const WAITS_OVER_HOLDS: f64 = 3.0;
/// And its queue does not dissolve: so much of the time somebody waits.
const LEAST_QUEUED: f64 = 0.5;
/// And takes so much of the time of those who wait there.
const LEAST_WAITED: f64 = 0.1;
/// Of fewer sleeps nothing is said.
const LEAST_SLEEPS: u64 = 50;

/// The kernel wakes who waits for a dead owner's lock just before it tells of the owner's end; on another CPU the waiter
/// may be back by then. In that time the two belong together.
const TOGETHER_NS: u64 = 100_000_000;

/// The watch that is judged.
pub(super) struct Watch<'a> {
    pub(super) from_ns: u64,
    pub(super) until_ns: u64,
    pub(super) follower: &'a Follower,
    pub(super) numbers: &'a Numbers,
}

/// What is wrong at a word, the worst first.
pub(super) fn findings(watch: &Watch, word: &WordSeen, looks: &Looks) -> Vec<LockFinding> {
    let dead = owner_died(watch, word, looks);
    let long = looks.is_lock().then(|| long_hold(watch, word)).flatten().filter(|_| dead.is_none());
    let queue = (looks.is_lock() && dead.is_none() && long.is_none()).then(|| convoy(watch, word)).flatten();
    [dead, private_futex(word), long, queue].into_iter().flatten().collect()
}

/// The thread that owns the lock now, where its word names one that is known.
pub(super) fn owner(numbers: &Numbers, looks: &Looks) -> Option<Thread> {
    match looks.now {
        Some(Word::Owned { thread, .. }) => match numbers.meant(thread) {
            Meant::One(thread) => Some(thread),
            Meant::Nobody | Meant::Unclear => None,
        },
        _ => None,
    }
}

fn finding(kind: &str, text: String) -> LockFinding {
    LockFinding { kind: kind.to_owned(), text }
}

fn owner_died(watch: &Watch, word: &WordSeen, looks: &Looks) -> Option<LockFinding> {
    let waiting = match word.waiting.len() {
        0 => "nobody waits for it now".to_owned(),
        1 => "1 thread waits for it".to_owned(),
        many => format!("{many} threads wait for it"),
    };
    if looks.now == Some(Word::Lost) {
        let text = "an owner died, and the next gave the mutex back without pthread_mutex_consistent: nobody can take \
                    it any more (ENOTRECOVERABLE)";
        return Some(finding("owner_died", text.to_owned()));
    }
    if let Some(text) = never_given_back(watch, looks) {
        return Some(finding("owner_died", format!("{text}; {waiting}, and none will get it")));
    }
    if let Some(dead) = died_owning(watch, word, looks) {
        let text = format!(
            "thread {} of process {} ended while it owned the lock, and the kernel woke the next: check what the lock \
             protects; {waiting}",
            dead.tid, dead.pid
        );
        return Some(finding("owner_died", text));
    }
    let text = || format!("the word says that an owner died: check what the lock protects; {waiting}");
    looks.died.then(|| finding("owner_died", text()))
}

/// The lock's owner has ended, and the lock is of a kind that does not tell.
fn never_given_back(watch: &Watch, looks: &Looks) -> Option<String> {
    let Some(Word::Owned { thread, died: false }) = looks.now else { return None };
    match watch.numbers.meant(thread) {
        Meant::One(owner) if watch.follower.ended.contains_key(&owner) || !watch.numbers.lives(owner) => {
            Some(format!("its owner, thread {} of process {}, has ended without giving it back", owner.tid, owner.pid))
        }
        Meant::Nobody => Some(format!("its owner, thread {thread}, has ended without giving it back")),
        _ => None,
    }
}

/// A thread that ended when it was last seen to own the lock, while somebody's wait ended by nobody's call.
fn died_owning(watch: &Watch, word: &WordSeen, looks: &Looks) -> Option<Thread> {
    watch.follower.ended.iter().find_map(|(thread, at)| {
        let owned = looks.owner_at(*at).or_else(|| looks.owner_at(at.saturating_sub(TOGETHER_NS)));
        let owned = owned.is_some_and(|number| watch.numbers.meant(number) == Meant::One(*thread));
        let together = |(from, to): &(u64, u64)| *from < *at && at.abs_diff(*to) < TOGETHER_NS;
        (owned && word.woken_by_kernel.iter().any(together)).then_some(*thread)
    })
}

/// Processes that tell the kernel that the word is nobody else's cannot be woken by others.
fn private_futex(word: &WordSeen) -> Option<LockFinding> {
    let users: BTreeSet<u32> = word.waiters.keys().chain(word.wakers.keys()).copied().collect();
    let users: BTreeSet<u32> = users.into_iter().chain(word.waiting.keys().map(|thread| thread.pid)).collect();
    let private = *word.private.first()?;
    (users.len() > 1).then(|| {
        let text = format!(
            "process {private} waits for it as for a word of its own (FUTEX_PRIVATE_FLAG), and other processes use it: \
             their wakes do not reach it. A pthread lock needs PTHREAD_PROCESS_SHARED"
        );
        finding("private_futex", text)
    })
}

fn long_hold(watch: &Watch, word: &WordSeen) -> Option<LockFinding> {
    let all_ns = word.all_waited_ns(watch.until_ns) as f64;
    let mut holders: Vec<Holder> = word.kept.keys().map(|thread| Holder::of(word, *thread)).collect();
    holders.sort_by(|a, b| b.waited_ns.total_cmp(&a.waited_ns));
    let (worst, next_ns) = (holders.first()?, holders.get(1).map_or(0.0, |next| next.waited_ns));
    let explained = worst.waited_ns / all_ns.max(1.0);
    let span_ns = watch.until_ns.saturating_sub(watch.from_ns) as f64;
    let is_cause = explained >= LEAST_EXPLAINED && worst.waited_ns >= AHEAD * next_ns;
    let least = if worst.count < LEAST_TIMES { COST_OF_FEW } else { LEAST_COST };
    if !is_cause || worst.waited_ns < least * span_ns {
        return None;
    }
    let usual = match worst.typical_ns {
        Some(ns) => format!(", where others keep it for {}", duration(ns)),
        None => String::new(),
    };
    let text = format!(
        "thread {} of process {} keeps others waiting for {} at a time ({}){usual}: {:.0} % of all waiting for it is behind \
         that",
        worst.thread.tid,
        worst.thread.pid,
        duration(worst.mean_ns),
        times(worst.count),
        explained.min(1.0) * 100.0
    );
    Some(finding("long_hold", text))
}

/// A thread that holds the lock long.
struct Holder {
    thread: Thread,
    /// Long holds, and their mean.
    count: u64,
    mean_ns: f64,
    /// What others waited behind them.
    waited_ns: f64,
    /// The shortest median of the others'; `None` where nobody waits behind theirs.
    typical_ns: Option<f64>,
}

impl Holder {
    fn of(word: &WordSeen, thread: Thread) -> Holder {
        let others = word.kept.iter().filter(|(other, _)| **other != thread);
        let typical_ns = others.filter_map(|(_, kept)| kept.median_ns()).reduce(f64::min);
        let least_ns = (LONG * typical_ns.unwrap_or(0.0)).max(LEAST_LONG_NS);
        let (count, mean_ns, waited_ns) = word.kept[&thread].from(least_ns);
        Holder { thread, count, mean_ns, waited_ns: waited_ns as f64, typical_ns }
    }
}

fn convoy(watch: &Watch, word: &WordSeen) -> Option<LockFinding> {
    let threads = word.waited.len() as f64;
    let span_ns = watch.until_ns.saturating_sub(watch.from_ns) as f64;
    let sleeps = word.waits - word.refused;
    let wait_ns = word.waited_ns as f64 / sleeps.max(1) as f64;
    // Not the mean: an owner that is taken off its CPU now and then holds no longer for that.
    let hold_ns = word.handed.median_ns()?;
    let queued = word.queued_ns(watch.until_ns) as f64 / span_ns.max(1.0);
    let waited = word.all_waited_ns(watch.until_ns) as f64 / (threads * span_ns).max(1.0);
    let is_convoy = sleeps >= LEAST_SLEEPS
        && wait_ns >= WAITS_OVER_HOLDS * hold_ns * (threads - 1.0)
        && queued >= LEAST_QUEUED
        && waited >= LEAST_WAITED;
    is_convoy.then(|| {
        let text = format!(
            "somebody sleeps in its queue {:.0} % of the time although it is held for {} at a time (median): a sleep takes {} on \
             average, most of it being woken",
            queued * 100.0,
            duration(hold_ns),
            duration(wait_ns)
        );
        finding("convoy", text)
    })
}

/// Nanoseconds for a reader, to two digits.
fn duration(ns: f64) -> String {
    let (value, unit) = match ns {
        ..1e3 => (ns, "ns"),
        ..1e6 => (ns / 1e3, "us"),
        ..1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    if value < 10.0 { format!("{value:.1} {unit}") } else { format!("{value:.0} {unit}") }
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

#[cfg(test)]
mod tests {
    use super::super::follow::{Began, Follower, Thread};
    use super::super::owners::{Looks, Numbers};
    use super::super::word::Word;
    use super::{Watch, duration, findings, owner};
    use host::Root;

    const WORD: u64 = 64;
    const MS: u64 = 1_000_000;

    fn thread(number: u32) -> Thread {
        Thread { pid: number, tid: number }
    }

    /// Processes 1, 2 and 3 on a machine that has no others.
    struct Case {
        _folder: tempfile::TempDir,
        numbers: Numbers,
        follower: Follower,
        looks: Looks,
    }

    impl Case {
        fn new() -> Case {
            let folder = tempfile::tempdir().unwrap();
            let mut numbers = Numbers::new(&Root::at(folder.path()));
            for pid in 1..=3 {
                let task = folder.path().join(format!("proc/{pid}/task/{pid}"));
                std::fs::create_dir_all(&task).unwrap();
                std::fs::write(task.join("status"), format!("State:\tS (sleeping)\nNSpid:\t{pid}\n")).unwrap();
                numbers.add(thread(pid));
            }
            Case { _folder: folder, numbers, follower: Follower::new(0), looks: Looks::default() }
        }

        fn waits(&mut self, who: u32, from: u64, to: u64, value: i64) {
            let what = Began::Waiting { words: vec![WORD], private: false, inherits_priority: false };
            self.follower.began(thread(who), from, what);
            self.follower.returned(thread(who), to, value);
        }

        fn begins(&mut self, who: u32, at: u64) {
            let what = Began::Waiting { words: vec![WORD], private: false, inherits_priority: false };
            self.follower.began(thread(who), at, what);
        }

        fn wakes(&mut self, who: u32, at: u64) {
            let what = Began::Waking { words: vec![WORD], moves: false, inherits_priority: false };
            self.follower.began(thread(who), at, what);
            self.follower.returned(thread(who), at + 1_000, 1);
        }

        fn owned_by(&mut self, at: u64, number: u32) {
            self.looks.note(at, Word::Owned { thread: number, died: false }, true);
        }

        fn found(&mut self, until_ns: u64) -> Vec<(String, String)> {
            if let Some(owner) = owner(&self.numbers, &self.looks) {
                self.follower.words.entry(WORD).or_default().still_kept_by(owner, until_ns);
            }
            let watch = Watch { from_ns: 0, until_ns, follower: &self.follower, numbers: &self.numbers };
            let found = findings(&watch, &self.follower.words[&WORD], &self.looks);
            found.into_iter().map(|one| (one.kind, one.text)).collect()
        }
    }

    #[test]
    fn one_who_holds_long_is_named_with_what_is_usual() {
        let mut case = Case::new();
        case.owned_by(0, 1);
        for round in 0..10 {
            let at = round * 100 * MS;
            case.begins(2, at);
            case.begins(3, at + MS);
            case.wakes(1, at + 30 * MS);
            case.follower.returned(thread(2), at + 30 * MS + 50_000, 0);
            case.wakes(2, at + 30 * MS + 60_000);
            case.follower.returned(thread(3), at + 30 * MS + 110_000, 0);
        }
        let found = case.found(1_000 * MS);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, "long_hold");
        let expected =
            "thread 1 of process 1 keeps others waiting for 30 ms at a time (10 times), where others keep it";
        assert!(found[0].1.starts_with(expected) && found[0].1.contains("10 us"), "{found:?}");
    }

    #[test]
    fn a_hold_that_never_ends_is_long_too() {
        let mut case = Case::new();
        case.follower.waits_already(thread(2), WORD, false);
        case.owned_by(10, 1);
        let found = case.found(1_000 * MS);
        assert!(found[0].0 == "long_hold" && found[0].1.contains("for 1.0 s at a time (once)"), "{found:?}");
    }

    #[test]
    fn a_pause_or_two_are_no_habit() {
        let mut case = Case::new();
        case.owned_by(0, 1);
        for round in 0..2 {
            case.begins(2, round * 500 * MS);
            case.wakes(1, round * 500 * MS + 60 * MS);
            case.follower.returned(thread(2), round * 500 * MS + 60 * MS + 50_000, 0);
        }
        case.looks.note(1_000 * MS, Word::Free, false);
        assert_eq!(case.found(1_000 * MS), []);
    }

    #[test]
    fn evenly_spread_pauses_have_no_culprit() {
        let mut case = Case::new();
        case.owned_by(0, 1);
        for round in 0..12 {
            let at = round * 50 * MS;
            let (owner, waiter) = (u32::try_from(round % 3).unwrap() + 1, u32::try_from((round + 1) % 3).unwrap() + 1);
            case.begins(waiter, at);
            case.wakes(owner, at + 4 * MS);
            case.follower.returned(thread(waiter), at + 4 * MS + 50_000, 0);
        }
        case.looks.note(600 * MS, Word::Free, false);
        assert_eq!(case.found(600 * MS), []);
    }

    #[test]
    fn a_queue_of_sleepers_for_a_lock_that_is_hardly_held_is_a_convoy() {
        let mut case = Case::new();
        case.owned_by(0, 1);
        // One is always on its way back, for 50 us, holds for 1 us and wakes the next.
        let step = 51_000;
        case.begins(2, 0);
        case.begins(3, 1_000);
        let mut owner = 1;
        for round in 1..1_000u64 {
            let at = round * step;
            let next = owner % 3 + 1;
            case.wakes(owner, at);
            case.begins(owner, at + 2_000);
            case.follower.returned(thread(next), at + 50_000, 0);
            owner = next;
        }
        case.looks.note(51 * MS, Word::Free, false);
        let found = case.found(51 * MS);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].0 == "convoy" && found[0].1.contains("held for 1.0 us at a time (median)"), "{found:?}");
    }

    #[test]
    fn a_condition_that_is_waited_for_is_no_lock() {
        let mut case = Case::new();
        for round in 0..10 {
            case.begins(2, round * 100 * MS);
            case.wakes(1, round * 100 * MS + 80 * MS);
            case.follower.returned(thread(2), round * 100 * MS + 81 * MS, 0);
            case.looks.note(round * 100 * MS, Word::Other, true);
        }
        assert_eq!(case.found(1_000 * MS), []);
    }

    #[test]
    fn an_owner_that_ended_among_waiters_is_found_by_its_end() {
        let mut case = Case::new();
        case.begins(2, MS);
        case.owned_by(5 * MS, 1);
        case.follower.gone(thread(1), 20 * MS + 200, true);
        case.follower.returned(thread(2), 20 * MS, 0);
        case.owned_by(25 * MS, 2);
        let found = case.found(100 * MS);
        assert!(found[0].0 == "owner_died" && found[0].1.contains("thread 1 of process 1 ended while"), "{found:?}");
    }

    #[test]
    fn one_who_gave_it_back_and_ended_later_did_not_die_with_it() {
        let mut case = Case::new();
        case.begins(2, MS);
        case.owned_by(5 * MS, 1);
        case.wakes(1, 10 * MS);
        case.follower.returned(thread(2), 10 * MS + 50_000, 0);
        case.owned_by(15 * MS, 2);
        case.follower.gone(thread(1), 20 * MS, true);
        case.looks.note(30 * MS, Word::Free, false);
        assert_eq!(case.found(1_000 * MS), []);
    }

    #[test]
    fn a_plain_lock_whose_owner_ended_is_never_given_back() {
        let mut case = Case::new();
        case.follower.waits_already(thread(2), WORD, false);
        case.owned_by(10, 9);
        let found = case.found(100 * MS);
        let expected =
            "its owner, thread 9, has ended without giving it back; 1 thread waits for it, and none will get it";
        assert_eq!(found, [("owner_died".to_owned(), expected.to_owned())]);
    }

    #[test]
    fn a_word_that_says_so_is_believed() {
        for (word, says) in
            [(Word::Lost, "ENOTRECOVERABLE"), (Word::Owned { thread: 2, died: true }, "says that an owner")]
        {
            let mut case = Case::new();
            case.waits(2, 0, MS, 0);
            case.looks.note(MS, word, false);
            let found = case.found(10 * MS);
            assert!(found[0].0 == "owner_died" && found[0].1.contains(says), "{found:?}");
        }
    }

    #[test]
    fn private_waits_are_told_where_another_process_uses_the_word() {
        let mut case = Case::new();
        let what = Began::Waiting { words: vec![WORD], private: true, inherits_priority: false };
        case.follower.began(thread(2), 0, what);
        assert_eq!(case.found(MS), []);
        case.wakes(1, MS);
        assert_eq!(case.found(2 * MS)[0].0, "private_futex");
    }

    #[test]
    fn durations_have_two_digits() {
        let ns = [5.0, 999.0, 1_234.0, 45_600.0, 2e6, 3.21e9];
        assert_eq!(ns.map(duration), ["5.0 ns", "999 ns", "1.2 us", "46 us", "2.0 ms", "3.2 s"]);
    }
}
