//! From the stream of futex calls to each word's waits: who waited how long, who woke whom, who kept others waiting.
//!
//! The kernel's tracepoints stand at both ends of a call. A thread is in one call at a time, so each end is matched by the
//! thread alone; what a full buffer has swallowed shows as a second beginning or an end without one, and is left out.

use super::call::Outcome;
use hdrhistogram::Histogram;
use std::collections::{BTreeMap, BTreeSet};

/// A thread of a process, both as the watcher numbers them.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Thread {
    pub(super) pid: u32,
    pub(super) tid: u32,
}

/// What a call is for, with its words as offsets in the segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Began {
    Waiting {
        words: Vec<u64>,
        private: bool,
        inherits_priority: bool,
    },
    Waking {
        words: Vec<u64>,
        moves: bool,
        inherits_priority: bool,
    },
    /// About words elsewhere, or none.
    Elsewhere,
}

/// Everything that was seen so far.
#[derive(Debug)]
pub(super) struct Follower {
    /// When watching began, nanoseconds of CLOCK_MONOTONIC.
    from_ns: u64,
    threads: BTreeMap<Thread, State>,
    pub(super) words: BTreeMap<u64, WordSeen>,
    /// Threads that ended, and when.
    pub(super) ended: BTreeMap<Thread, u64>,
}

#[derive(Debug)]
enum State {
    /// In a call since.
    In(Began, u64),
    /// In a wait that had begun before watching did.
    Before(u64),
    Out,
}

/// What was seen of one word.
#[derive(Debug)]
pub(super) struct WordSeen {
    /// Waits that ended, refused ones included; each has its place in `wait_ns`.
    pub(super) waits: u64,
    pub(super) refused: u64,
    pub(super) wait_ns: Histogram<u64>,
    pub(super) waited_ns: u64,
    /// Waits that had begun before watching did: how long they were is not known.
    pub(super) begun_before: u64,
    /// What was seen of those that ended.
    begun_before_ns: u64,
    /// Calls and nanoseconds by process.
    pub(super) waiters: BTreeMap<u32, (u64, u64)>,
    /// Calls and threads woken by process.
    pub(super) wakers: BTreeMap<u32, (u64, u64)>,
    /// Who waits now, and since when; those from before since watching began.
    pub(super) waiting: BTreeMap<Thread, u64>,
    /// Threads that ever waited.
    pub(super) waited: BTreeSet<Thread>,
    /// Time in which somebody waited, until `queue_from`.
    queued_ns: u64,
    queue_from: Option<u64>,
    /// When somebody last asked the kernel to wake a waiter.
    woken_at: Option<u64>,
    /// When each thread's last wait ended by being woken.
    back_at: BTreeMap<Thread, u64>,
    /// How long each thread kept others waiting before it woke one.
    pub(super) kept: BTreeMap<Thread, Kept>,
    /// Of these, the times that begin with the thread's own waking: the whole hold of one who had waited.
    pub(super) handed: Kept,
    /// Waits that ended well though nobody's call had woken them: from, to.
    pub(super) woken_by_kernel: Vec<(u64, u64)>,
    /// Whether waiters are moved to or from it, so that who was woken may have waited elsewhere.
    moved: bool,
    /// Processes that told the kernel that nobody else uses the word.
    pub(super) private: BTreeSet<u32>,
    /// Whether the kernel handed it on itself.
    pub(super) inherits_priority: bool,
}

/// Spans of time by length: in eight classes an octave, so that a few hundred hold them all.
#[derive(Clone, Debug, Default)]
pub(super) struct Kept {
    classes: BTreeMap<u64, Class>,
}

/// Spans of about one length.
#[derive(Copy, Clone, Debug, Default)]
struct Class {
    count: u64,
    ns: u64,
    waited_ns: u64,
}

impl Kept {
    /// Adds a span in which others waited for so long all together.
    pub(super) fn add(&mut self, ns: u64, waited_ns: u64) {
        let class = self.classes.entry(class(ns)).or_default();
        class.count += 1;
        class.ns += ns;
        class.waited_ns += waited_ns;
    }

    pub(super) fn count(&self) -> u64 {
        self.classes.values().map(|class| class.count).sum()
    }

    /// The mean of the class that the median lies in; `None` where there are none.
    pub(super) fn median_ns(&self) -> Option<f64> {
        let half = self.count().div_ceil(2);
        let mut passed = 0;
        self.classes.values().find_map(|class| {
            passed += class.count;
            (class.count > 0 && passed >= half).then(|| class.ns as f64 / class.count as f64)
        })
    }

    /// Of the spans from `least_ns` on: how many, how long on average, and how long others waited in them all together.
    pub(super) fn from(&self, least_ns: f64) -> (u64, f64, u64) {
        let (mut count, mut ns, mut waited_ns) = (0u64, 0u64, 0u64);
        for class in self.classes.values().filter(|class| class.ns as f64 >= least_ns * class.count as f64) {
            count += class.count;
            ns += class.ns;
            waited_ns += class.waited_ns;
        }
        (count, ns as f64 / count.max(1) as f64, waited_ns)
    }
}

/// The three bits below the highest one are kept.
fn class(ns: u64) -> u64 {
    let dropped = (u64::BITS - ns.leading_zeros()).saturating_sub(4);
    ns >> dropped << dropped
}

/// Digits of a wait that are kept.
const DIGITS: u8 = 3;

impl Default for WordSeen {
    fn default() -> WordSeen {
        WordSeen {
            waits: 0,
            refused: 0,
            wait_ns: Histogram::new(DIGITS).expect("so many digits are allowed"),
            waited_ns: 0,
            begun_before: 0,
            begun_before_ns: 0,
            waiters: BTreeMap::new(),
            wakers: BTreeMap::new(),
            waiting: BTreeMap::new(),
            waited: BTreeSet::new(),
            queued_ns: 0,
            queue_from: None,
            woken_at: None,
            back_at: BTreeMap::new(),
            kept: BTreeMap::new(),
            handed: Kept::default(),
            woken_by_kernel: Vec::new(),
            moved: false,
            private: BTreeSet::new(),
            inherits_priority: false,
        }
    }
}

impl Follower {
    pub(super) fn new(from_ns: u64) -> Follower {
        Follower { from_ns, threads: BTreeMap::new(), words: BTreeMap::new(), ended: BTreeMap::new() }
    }

    /// A thread was found waiting at a word when its calls were already watched. What was not seen to begin had begun
    /// before; so this is to be told before the first of its calls that began later.
    pub(super) fn waits_already(&mut self, thread: Thread, word: u64, private: bool) {
        if self.threads.contains_key(&thread) {
            return;
        }
        self.threads.insert(thread, State::Before(word));
        let from_ns = self.from_ns;
        let seen = self.words.entry(word).or_default();
        seen.begun_before += 1;
        seen.private.extend(private.then_some(thread.pid));
        seen.joins(thread, from_ns);
    }

    /// A thread's call began.
    pub(super) fn began(&mut self, thread: Thread, at: u64, what: Began) {
        match self.threads.remove(&thread) {
            // Told twice: of a thread that was both inherited and opened.
            Some(State::In(same, since)) if same == what && at - since < TWICE_NS => {
                self.threads.insert(thread, State::In(same, since));
                return;
            }
            Some(State::In(lost, _)) => self.leaves(thread, &lost, at),
            // It was found waiting in a call whose end was lost.
            Some(State::Before(word)) => self.leaves_word(thread, word, at),
            Some(State::Out) | None => {}
        }
        match &what {
            Began::Waiting { words, private, inherits_priority } => {
                for word in words {
                    let seen = self.words.entry(*word).or_default();
                    seen.inherits_priority |= inherits_priority;
                    seen.private.extend(private.then_some(thread.pid));
                    seen.joins(thread, at);
                }
            }
            Began::Waking { words, moves, .. } => {
                for word in words {
                    self.words.entry(*word).or_default().wakes(thread, at, *moves);
                }
            }
            Began::Elsewhere => {}
        }
        self.threads.insert(thread, State::In(what, at));
    }

    /// A thread's call returned.
    pub(super) fn returned(&mut self, thread: Thread, at: u64, value: i64) {
        match self.threads.insert(thread, State::Out) {
            Some(State::In(Began::Waiting { words, .. }, since)) => {
                for word in words {
                    let seen = self.words.entry(word).or_default();
                    seen.ends(thread, since, at, Outcome::of(value));
                }
            }
            Some(State::In(Began::Waking { words, inherits_priority, .. }, _)) => {
                // Given away by the kernel, the lock has one new owner; else the call tells how many it woke.
                let woken = if inherits_priority { u64::from(value == 0) } else { u64::try_from(value).unwrap_or(0) };
                for (index, word) in words.into_iter().enumerate() {
                    let (calls, amount) = self.words.entry(word).or_default().wakers.entry(thread.pid).or_default();
                    *calls += 1;
                    *amount += if index == 0 { woken } else { 0 };
                }
            }
            Some(State::Before(word)) => {
                self.leaves_word(thread, word, at);
                let (from_ns, seen) = (self.from_ns, self.words.entry(word).or_default());
                seen.begun_before_ns += at.saturating_sub(from_ns);
                if Outcome::of(value) == Outcome::Woken {
                    seen.is_back(thread, from_ns, at);
                }
            }
            Some(State::In(Began::Elsewhere, _) | State::Out) | None => {}
        }
    }

    /// A thread ended; or executed another program, by which it leaves the segment.
    pub(super) fn gone(&mut self, thread: Thread, at: u64, ended: bool) {
        match self.threads.insert(thread, State::Out) {
            Some(State::In(call, _)) => self.leaves(thread, &call, at),
            Some(State::Before(word)) => self.leaves_word(thread, word, at),
            Some(State::Out) | None => {}
        }
        if ended {
            self.ended.insert(thread, at);
        }
    }

    fn leaves(&mut self, thread: Thread, call: &Began, at: u64) {
        if let Began::Waiting { words, .. } = call {
            for word in words {
                self.leaves_word(thread, *word, at);
            }
        }
    }

    fn leaves_word(&mut self, thread: Thread, word: u64, at: u64) {
        self.words.entry(word).or_default().leaves(thread, at);
    }
}

/// Two records of one call are written one right after the other.
const TWICE_NS: u64 = 100_000;

/// Kept of waits that nobody ended: enough to find an owner that died among them.
const MOST_BY_KERNEL: usize = 1000;

impl WordSeen {
    fn joins(&mut self, thread: Thread, at: u64) {
        self.waited.insert(thread);
        self.waiting.insert(thread, at);
        self.queue_from.get_or_insert(at);
    }

    fn leaves(&mut self, thread: Thread, at: u64) {
        self.waiting.remove(&thread);
        if self.waiting.is_empty() {
            self.queued_ns += self.queue_from.take().map_or(0, |from| at.saturating_sub(from));
        }
    }

    fn ends(&mut self, thread: Thread, since: u64, at: u64, outcome: Outcome) {
        let ns = at.saturating_sub(since);
        self.leaves(thread, at);
        self.waits += 1;
        self.refused += u64::from(outcome == Outcome::Refused);
        self.waited_ns += ns;
        // It grows with what is recorded: no wait is too long for it.
        let _ = self.wait_ns.record(ns);
        let (calls, waited_ns) = self.waiters.entry(thread.pid).or_default();
        *calls += 1;
        *waited_ns += ns;
        if outcome == Outcome::Woken {
            self.is_back(thread, since, at);
        }
    }

    fn is_back(&mut self, thread: Thread, since: u64, at: u64) {
        let by_somebody = self.woken_at.is_some_and(|woken| woken >= since);
        if !by_somebody && !self.moved && self.woken_by_kernel.len() < MOST_BY_KERNEL {
            self.woken_by_kernel.push((since, at));
        }
        self.back_at.insert(thread, at);
    }

    /// A thread has given the lock back, if it is one, and goes to wake a waiter: until then it kept those who wait waiting.
    fn wakes(&mut self, thread: Thread, at: u64, moves: bool) {
        self.moved |= moves;
        let back = self.back_at.remove(&thread);
        if let Some(from) = self.kept_from(back) {
            let ns = at.saturating_sub(from);
            let waited = self.waiting.values().map(|since| at.saturating_sub(from.max(*since))).sum();
            self.kept.entry(thread).or_default().add(ns, waited);
            if back == Some(from) {
                self.handed.add(ns, waited);
            }
        }
        self.woken_at = Some(at);
    }

    /// Since when a thread that is there now keeps others waiting: since the first of them came, or since somebody last gave
    /// it away, or since this thread itself came `back` from waiting. `None` where nobody waits.
    fn kept_from(&self, back: Option<u64>) -> Option<u64> {
        let first = self.waiting.values().min()?;
        Some([self.woken_at, back].into_iter().flatten().fold(*first, u64::max))
    }

    /// Adds that this thread still owns it, and keeps those who wait waiting.
    pub(super) fn still_kept_by(&mut self, thread: Thread, until: u64) {
        let back = self.back_at.get(&thread).copied();
        if let Some(from) = self.kept_from(back) {
            let ns = until.saturating_sub(from);
            let waited = self.waiting.values().map(|since| until.saturating_sub(from.max(*since))).sum();
            self.kept.entry(thread).or_default().add(ns, waited);
        }
    }

    /// Waiting that has been seen, that of those who still wait or waited before included.
    pub(super) fn all_waited_ns(&self, until: u64) -> u64 {
        self.waited_ns
            + self.begun_before_ns
            + self.waiting.values().map(|since| until.saturating_sub(*since)).sum::<u64>()
    }

    /// Time in which somebody waited.
    pub(super) fn queued_ns(&self, until: u64) -> u64 {
        self.queued_ns + self.queue_from.map_or(0, |from| until.saturating_sub(from))
    }
}

#[cfg(test)]
mod tests {
    use super::{Began, Follower, Kept, Thread, class};

    const A: Thread = Thread { pid: 10, tid: 10 };
    const B: Thread = Thread { pid: 20, tid: 21 };
    const C: Thread = Thread { pid: 30, tid: 30 };

    fn wait(word: u64) -> Began {
        Began::Waiting { words: vec![word], private: false, inherits_priority: false }
    }

    fn wake(word: u64) -> Began {
        Began::Waking { words: vec![word], moves: false, inherits_priority: false }
    }

    #[test]
    fn waits_and_refusals_are_counted_with_their_length() {
        let mut seen = Follower::new(0);
        seen.began(A, 1_000, wait(64));
        seen.returned(A, 3_000, 0);
        seen.began(A, 4_000, wait(64));
        seen.returned(A, 4_500, -11);
        seen.began(B, 5_000, wait(64));
        seen.returned(B, 9_000, -110);
        let word = &seen.words[&64];
        assert_eq!((word.waits, word.refused, word.waited_ns), (3, 1, 6_500));
        assert_eq!((word.waiters[&10], word.waiters[&20]), ((2, 2_500), (1, 4_000)));
        assert_eq!(word.wait_ns.len(), 3);
        assert_eq!(word.queued_ns(9_000), 6_500);
        assert!(word.waiting.is_empty());
    }

    #[test]
    fn who_wakes_is_told_with_how_many_it_woke_and_how_long_it_kept_them() {
        let mut seen = Follower::new(0);
        seen.began(A, 1_000, wait(64));
        seen.began(B, 2_000, wait(64));
        seen.began(C, 11_000, wake(64));
        seen.returned(A, 11_500, 0);
        seen.returned(C, 11_600, 1);
        // A has it now, and keeps B waiting from its waking on.
        seen.began(A, 12_500, wake(64));
        seen.returned(A, 12_600, 1);
        seen.returned(B, 12_700, 0);
        // Nobody waits: nobody is kept.
        seen.began(B, 20_000, wake(64));
        seen.returned(B, 20_100, 0);
        let word = &seen.words[&64];
        assert_eq!([word.wakers[&30], word.wakers[&10], word.wakers[&20]], [(1, 1), (1, 1), (1, 0)]);
        assert_eq!(word.kept[&C].from(0.0), (1, 10_000.0, 10_000 + 9_000));
        assert_eq!(word.kept[&A].from(0.0), (1, 1_000.0, 1_000));
        assert!(!word.kept.contains_key(&B));
        assert_eq!(word.handed.count(), 1);
        assert!(word.woken_by_kernel.is_empty());
    }

    #[test]
    fn a_wait_that_nobody_ended_was_ended_by_the_kernel() {
        let mut seen = Follower::new(0);
        seen.began(A, 1_000, wait(64));
        seen.gone(C, 5_000, true);
        seen.returned(A, 5_500, 0);
        assert_eq!(seen.words[&64].woken_by_kernel, [(1_000, 5_500)]);
        assert_eq!(seen.ended[&C], 5_000);
    }

    #[test]
    fn what_began_before_has_no_length_and_is_still_there_at_the_end() {
        let mut seen = Follower::new(500);
        seen.waits_already(A, 64, false);
        seen.waits_already(B, 64, false);
        seen.returned(A, 2_000, 0);
        let word = &seen.words[&64];
        assert_eq!((word.waits, word.begun_before), (0, 2));
        assert_eq!(word.waiting.iter().collect::<Vec<_>>(), [(&B, &500)]);
        assert_eq!(word.all_waited_ns(2_500), 1_500 + 2_000);
        // A call that was already seen to begin is no older one.
        seen.began(C, 3_000, wait(64));
        seen.waits_already(C, 64, false);
        assert_eq!(seen.words[&64].begun_before, 2);
        assert_eq!(seen.words[&64].queued_ns(4_000), 3_500);
    }

    #[test]
    fn a_call_told_twice_is_one_and_a_lost_end_is_none() {
        let mut seen = Follower::new(0);
        seen.began(A, 1_000, wait(64));
        seen.began(A, 1_100, wait(64));
        seen.returned(A, 2_000, 0);
        seen.returned(A, 2_050, 0);
        assert_eq!((seen.words[&64].waits, seen.words[&64].waited_ns), (1, 1_000));
        seen.began(A, 10_000, wait(64));
        seen.began(A, 900_000, wake(64));
        let word = &seen.words[&64];
        assert_eq!(word.waits, 1);
        assert!(word.waiting.is_empty());
    }

    #[test]
    fn one_who_ends_or_leaves_waits_no_more() {
        let mut seen = Follower::new(0);
        seen.began(A, 1_000, wait(64));
        seen.gone(A, 2_000, false);
        seen.began(B, 1_000, wait(64));
        seen.gone(B, 3_000, true);
        assert!(seen.words[&64].waiting.is_empty());
        assert_eq!(seen.words[&64].waits, 0);
        assert_eq!(seen.ended.keys().collect::<Vec<_>>(), [&B]);
    }

    #[test]
    fn classes_are_an_eighth_of_an_octave() {
        assert_eq!([0, 1, 7, 15, 16, 17, 1_000, 1_023].map(class), [0, 1, 7, 15, 16, 16, 960, 960]);
        let mut kept = Kept::default();
        for ns in [10, 10, 10, 100_000] {
            kept.add(ns, 2 * ns);
        }
        assert_eq!((kept.median_ns(), kept.count()), (Some(10.0), 4));
        assert_eq!(kept.from(1_000.0), (1, 100_000.0, 200_000));
        assert_eq!(Kept::default().median_ns(), None);
    }
}
