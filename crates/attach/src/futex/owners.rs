//! Who owns each lock, as its word said each time that it was looked at.

use super::follow::Thread;
use super::word::Word;
use host::Root;
use std::collections::{BTreeMap, BTreeSet};

/// What the looks at one word have shown.
#[derive(Debug, Default)]
pub(super) struct Looks {
    /// At the last look; `None` where it could not be read.
    pub(super) now: Option<Word>,
    /// Each change of owner: when it was seen, and the thread's number in its own namespace; 0 is nobody.
    pub(super) owners: Vec<(u64, u32)>,
    /// Whether it was ever seen to be a lock that names its owner.
    pub(super) names_owner: bool,
    /// Whether an owner was seen that had died.
    pub(super) died: bool,
    /// Looks at which somebody waited, as far as was known: what is known lags behind what is read.
    waited: u32,
    /// Of these, at how many it was 2.
    waited_for: u32,
    /// Whether it was ever something else than 0, 1 or 2.
    other: bool,
}

/// Changes of owner that are kept.
const MOST_CHANGES: usize = 10_000;
/// A word that is 2 at so many looks while it is waited for, and at every other look at least, is taken for a lock of three
/// states.
const LOOKS: u32 = 5;

impl Looks {
    /// Notes what it was at a moment, and whether somebody waited then.
    pub(super) fn note(&mut self, at: u64, word: Word, waited: bool) {
        self.now = Some(word);
        let owner = match word {
            Word::Owned { thread, died } => {
                self.died |= died;
                thread
            }
            Word::Lost => {
                self.died = true;
                0
            }
            Word::Free => 0,
            Word::ThreeState(value) => {
                self.waited += u32::from(waited);
                self.waited_for += u32::from(waited && value == 2);
                return;
            }
            Word::Other => {
                self.other = true;
                return;
            }
        };
        self.names_owner = true;
        if self.owners.last().is_none_or(|(_, last)| *last != owner) && self.owners.len() < MOST_CHANGES {
            self.owners.push((at, owner));
        }
    }

    /// Whether it is a lock: who wakes others at it has held it.
    pub(super) fn is_lock(&self) -> bool {
        self.names_owner || !self.other && self.waited_for >= LOOKS.max(self.waited / 2)
    }

    /// The thread that owned it at a moment, by its own number.
    pub(super) fn owner_at(&self, at: u64) -> Option<u32> {
        let seen = self.owners.iter().take_while(|(when, _)| *when <= at).last();
        seen.map(|(_, thread)| *thread).filter(|thread| *thread != 0)
    }
}

/// Threads by the number that they know themselves by, which is what they write into a lock.
#[derive(Debug)]
pub(super) struct Numbers {
    root: Root,
    inside: BTreeMap<u32, BTreeSet<Thread>>,
    /// Whether all are numbered as here, as far as was seen.
    as_here: bool,
}

/// Whom a number means.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Meant {
    /// This thread.
    One(Thread),
    /// No thread at all: it has ended.
    Nobody,
    /// Several, in different namespaces of pids; or one that is not watched.
    Unclear,
}

impl Numbers {
    pub(super) fn new(root: &Root) -> Numbers {
        Numbers { root: root.clone(), inside: BTreeMap::new(), as_here: true }
    }

    /// Adds a thread. Who has ended before it could be asked is taken to be numbered as here.
    pub(super) fn add(&mut self, thread: Thread) {
        let inside = host::tid_inside(&self.root, thread.pid, thread.tid).unwrap_or(thread.tid);
        self.as_here &= inside == thread.tid;
        self.inside.entry(inside).or_default().insert(thread);
    }

    /// Whom a number in a lock means.
    pub(super) fn meant(&self, number: u32) -> Meant {
        let candidates = self.inside.get(&number).into_iter().flatten();
        match candidates.copied().collect::<Vec<_>>()[..] {
            [one] => Meant::One(one),
            [] if self.as_here && !host::number_is_taken(&self.root, number) => Meant::Nobody,
            _ => Meant::Unclear,
        }
    }

    /// Whether a thread is there.
    pub(super) fn lives(&self, thread: Thread) -> bool {
        host::thread_lives(&self.root, thread.pid, thread.tid)
    }
}

#[cfg(test)]
mod tests {
    use super::{Looks, Meant, Numbers};
    use crate::futex::follow::Thread;
    use crate::futex::word::Word;
    use host::Root;

    fn owned(thread: u32) -> Word {
        Word::Owned { thread, died: false }
    }

    #[test]
    fn an_owner_is_the_one_last_seen() {
        let mut looks = Looks::default();
        for (at, word) in [(10, owned(7)), (20, owned(7)), (30, owned(8)), (40, Word::Free)] {
            looks.note(at, word, true);
        }
        assert_eq!([5, 10, 29, 30, 45].map(|at| looks.owner_at(at)), [None, Some(7), Some(7), Some(8), None]);
        assert!(looks.is_lock() && !looks.died);
        assert_eq!(looks.owners.len(), 3);
    }

    #[test]
    fn a_word_of_three_states_is_a_lock_if_it_says_so_when_it_is_waited_for() {
        let seen = |values: &[u32]| {
            let mut looks = Looks::default();
            values.iter().for_each(|value| looks.note(1, Word::ThreeState(*value), true));
            looks
        };
        assert!(seen(&[2, 1, 2, 2, 2, 2]).is_lock());
        assert!(!seen(&[2, 2]).is_lock());
        assert!(
            !seen(&[0, 2, 0, 2, 0, 2, 0, 2, 0, 2, 0, 0]).is_lock(),
            "a semaphore's count is 0 while it is waited for"
        );
        let mut counter = seen(&[2, 2, 2, 2, 2]);
        counter.note(2, Word::Other, false);
        assert!(!counter.is_lock());
    }

    #[test]
    fn a_number_is_looked_up_among_the_threads_as_they_are_numbered_inside() {
        let folder = tempfile::tempdir().unwrap();
        for (pid, row) in [(100, "NSpid:\t100\t7\n"), (200, "NSpid:\t200\t8\n"), (300, "NSpid:\t300\t8\n")] {
            let task = folder.path().join(format!("proc/{pid}/task/{pid}"));
            std::fs::create_dir_all(&task).unwrap();
            std::fs::write(task.join("status"), format!("Name:\tx\nState:\tS (sleeping)\n{row}")).unwrap();
        }
        let mut numbers = Numbers::new(&Root::at(folder.path()));
        let thread = |number| Thread { pid: number, tid: number };
        [100, 200, 300].into_iter().for_each(|number| numbers.add(thread(number)));
        assert_eq!(numbers.meant(7), Meant::One(thread(100)));
        assert_eq!(numbers.meant(8), Meant::Unclear);
        assert_eq!(numbers.meant(9), Meant::Unclear, "it may be one in a namespace that nobody watches");
        assert!(numbers.lives(thread(100)) && !numbers.lives(thread(101)));
    }

    #[test]
    fn a_number_that_nobody_has_is_one_who_ended() {
        let folder = tempfile::tempdir().unwrap();
        for pid in [100, 555] {
            let task = folder.path().join(format!("proc/{pid}/task/{pid}"));
            std::fs::create_dir_all(&task).unwrap();
            std::fs::write(task.join("status"), format!("State:\tZ (zombie)\nNSpid:\t{pid}\n")).unwrap();
        }
        let mut numbers = Numbers::new(&Root::at(folder.path()));
        numbers.add(Thread { pid: 100, tid: 100 });
        assert_eq!([99, 555].map(|number| numbers.meant(number)), [Meant::Nobody, Meant::Unclear]);
        assert!(!numbers.lives(Thread { pid: 100, tid: 100 }));
    }
}
