//! The lab's own algorithms under loom, which runs a few threads in every order that matters and shows each load every
//! value that the memory orderings allow. The code is that of the segments; the words are loom's.
//!
//! Loom treats no access as stronger than Acquire and Release, as the algorithms do, and fails a model whose threads all
//! wait (a lost wake-up) or that goes on for ever.
#![allow(unsafe_code)] // the section's cell, which loom watches

use super::algorithm::{Algorithm, Effort, Outcome, Released, Waiting};
use super::clh::{self, Clh};
use super::flag::{Tas, Ttas};
use super::futex::Futex;
use super::mcs::{self, Mcs};
use super::seqlock::Seqlock;
use super::ticket::{Counters, Ticket};
use super::word::Word;
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, fence};
use loom::sync::{Arc, Condvar, Mutex};
use nix::errno::Errno;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// What is kept of the orderings that the algorithms ask for.
const AS_WRITTEN: u8 = 0;
const NO_ACQUIRE: u8 = 1;
const NO_RELEASE: u8 = 2;

/// A word of loom's, with a kernel's queue for those that sleep on it. With `KEPT` other than [`AS_WRITTEN`] it weakens
/// every ordering, and a model that then still holds is one that sees nothing.
#[derive(Default)]
struct Modelled<const KEPT: u8> {
    value: AtomicU32,
    /// What the kernel locks while it compares the word and lays the sleeper down, and while it wakes one.
    queue: Mutex<()>,
    woken: Condvar,
    turns: std::sync::Mutex<Turns>,
}

/// What stands still until a word is another, beside what loom knows. Its threads take turns on one thread of the
/// process, and none is interrupted in here.
#[derive(Default)]
struct Turns {
    newest: u32,
    /// Whether it was ever exchanged.
    exchanged: bool,
    waiting: Vec<loom::thread::Thread>,
}

const fn kept<const KEPT: u8>(order: Ordering) -> Ordering {
    match (KEPT, order) {
        (NO_ACQUIRE, Ordering::Acquire) | (NO_RELEASE, Ordering::Release) => Ordering::Relaxed,
        (NO_ACQUIRE, Ordering::AcqRel) => Ordering::Release,
        (NO_RELEASE, Ordering::AcqRel) => Ordering::Acquire,
        (_, order) => order,
    }
}

impl<const KEPT: u8> Modelled<KEPT> {
    fn now(&self, value: u32) {
        let mut turns = self.turns.lock().unwrap();
        if std::mem::replace(&mut turns.newest, value) != value {
            turns.waiting.drain(..).for_each(|thread| thread.unpark());
        }
    }
}

impl<const KEPT: u8> Word for Modelled<KEPT> {
    fn load(&self, order: Ordering) -> u32 {
        self.value.load(kept::<KEPT>(order))
    }

    fn store(&self, value: u32, order: Ordering) {
        // As an exchange where others exchange: loom may order a plain store before exchanges that it let happen earlier,
        // for ever where one spins on exchanges, which no processor does.
        if self.turns.lock().unwrap().exchanged {
            self.swap(value, order);
        } else {
            self.value.store(value, kept::<KEPT>(order));
            self.now(value);
        }
    }

    fn swap(&self, value: u32, order: Ordering) -> u32 {
        self.turns.lock().unwrap().exchanged = true;
        let before = self.value.swap(value, kept::<KEPT>(order));
        self.now(value);
        before
    }

    fn compare_exchange(&self, current: u32, new: u32, success: Ordering, failure: Ordering) -> Result<u32, u32> {
        let before = self.value.compare_exchange(current, new, kept::<KEPT>(success), kept::<KEPT>(failure));
        if before.is_ok() {
            self.now(new);
        }
        before
    }

    fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
        let before = self.value.fetch_add(value, kept::<KEPT>(order));
        self.now(before.wrapping_add(value));
        before
    }

    fn sleep_if(&self, expected: u32, _at_most: Duration) -> Result<bool, Errno> {
        let queue = self.queue.lock().unwrap();
        if self.value.load(Ordering::Relaxed) != expected {
            return Ok(false);
        }
        // Without a time: a sleeper that nobody wakes is what the models look for.
        drop(self.woken.wait(queue).unwrap());
        Ok(true)
    }

    fn wake_one(&self) -> Result<(), Errno> {
        drop(self.queue.lock().unwrap());
        self.woken.notify_one();
        Ok(())
    }

    /// Stands still until the word is another. Turns of a waiting loop that see nothing new differ in nothing, and their
    /// number has no bound: without this no model would end. It orders a waiter behind the writer that it waited for,
    /// whatever the orderings; those show where a waiter comes late and finds the word changed at once.
    fn pause(&self, seen: u32, _hints: u32) {
        let mut turns = self.turns.lock().unwrap();
        let unchanged = turns.newest == seen;
        if unchanged {
            turns.waiting.push(loom::thread::current());
        }
        drop(turns);
        if unchanged {
            loom::thread::park();
        } else {
            // The load gave an old value; behind this it will not again.
            loom::thread::yield_now();
        }
    }

    fn fence(order: Ordering) {
        // A fence without an ordering is none.
        let kept = kept::<KEPT>(order);
        if kept != Ordering::Relaxed {
            fence(kept);
        }
    }
}

const WORKERS: u32 = 3;

/// A lock's bytes and nodes, for any algorithm, and what its section protects.
struct Memory<W> {
    word: W,
    counters: Counters<W>,
    mcs: Vec<mcs::Node<W>>,
    clh: Vec<clh::Node<W>>,
    section: UnsafeCell<u32>,
}

// SAFETY: `section` is used inside the lock alone; that this holds is what loom checks at each access.
unsafe impl<W: Send> Send for Memory<W> {}
// SAFETY: as above.
unsafe impl<W: Sync> Sync for Memory<W> {}

type Make<W> = for<'a> fn(&'a Memory<W>, u32) -> Box<dyn Algorithm + 'a>;

fn memory<W: Word + Default>(word: u32) -> Arc<Memory<W>> {
    let memory = Memory {
        word: W::default(),
        counters: Counters::default(),
        mcs: (0..=WORKERS).map(|_| mcs::Node::default()).collect(),
        clh: (0..=WORKERS).map(|_| clh::Node::default()).collect(),
        section: UnsafeCell::new(0),
    };
    memory.word.store(word, Ordering::Relaxed);
    Arc::new(memory)
}

/// The lock's word when made, and the algorithm of one worker.
fn algorithms<W: Word + 'static>() -> [(&'static str, u32, Make<W>); 7] {
    [
        ("tas", 0, |memory, _| Box::new(Tas(&memory.word))),
        ("ttas", 0, |memory, _| Box::new(Ttas(&memory.word))),
        ("ticket", 0, |memory, _| Box::new(Ticket::new(&memory.counters))),
        ("mcs", 0, |memory, worker| Box::new(Mcs::new(&memory.word, &memory.mcs, worker))),
        ("clh", clh::first_dummy(WORKERS), |memory, worker| Box::new(Clh::new(&memory.word, &memory.clh, worker))),
        ("futex", 0, |memory, _| Box::new(Futex(&memory.word))),
        ("seqlock", 0, |memory, _| Box::new(Seqlock::new(&memory.word))),
    ]
}

fn acquire(lock: &mut dyn Algorithm, shared: bool) {
    let mut effort = Effort::default();
    let outcome = lock.acquire_plain(shared, &mut Waiting::new(&mut effort, &|| false, None)).unwrap();
    assert_eq!(outcome, Outcome::Owned);
}

fn release(lock: &mut dyn Algorithm, shared: bool) -> Released {
    lock.release(shared, &mut Waiting::new(&mut Effort::default(), &|| false, None)).unwrap()
}

fn explore(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// `threads` workers go `passes` times through a section that only one may be in.
fn exclusion<W: Word + Default + Send + Sync + 'static>(
    (_, word, make): (&'static str, u32, Make<W>),
    threads: u32,
    passes: u32,
) {
    let memory = memory::<W>(word);
    let worker = |index| {
        let memory = memory.clone();
        move || {
            let mut lock = make(&memory, index);
            for _ in 0..passes {
                acquire(&mut *lock, false);
                // SAFETY: inside the lock; loom fails the model if another access is unordered with this one.
                memory.section.with_mut(|count| unsafe { *count += 1 });
                release(&mut *lock, false);
            }
        }
    };
    let others: Vec<_> = (1..threads).map(|index| loom::thread::spawn(worker(index))).collect();
    worker(0)();
    others.into_iter().for_each(|other| other.join().unwrap());
    // SAFETY: all are done.
    assert_eq!(memory.section.with(|count| unsafe { *count }), threads * passes);
}

#[test]
fn two_workers_exclude_each_other_pass_after_pass_and_none_is_forgotten() {
    for algorithm in algorithms::<Modelled<AS_WRITTEN>>() {
        explore(3, move || exclusion(algorithm, 2, 2));
    }
}

#[test]
fn three_workers_exclude_each_other_and_none_is_forgotten() {
    for algorithm in algorithms::<Modelled<AS_WRITTEN>>() {
        explore(2, move || exclusion(algorithm, 3, 1));
    }
}

/// The models see what orderings do: without either half each algorithm is found out.
#[test]
fn no_algorithm_excludes_without_its_orderings() {
    fn is_found_out<const KEPT: u8>(what: &str) {
        for algorithm in algorithms::<Modelled<KEPT>>() {
            let outcome = std::panic::catch_unwind(|| explore(2, move || exclusion(algorithm, 2, 2)));
            assert!(outcome.is_err(), "{} without {what} was not found out", algorithm.0);
        }
    }
    is_found_out::<NO_ACQUIRE>("Acquire");
    is_found_out::<NO_RELEASE>("Release");
}

/// A writer keeps two words equal; a reader that is told that it read undisturbed has seen them so. The writer stores
/// without looking: of all reads before a write loom remembers the last alone, so a look of its own would hide the
/// reader's.
fn consistency<W: Word + Default + Send + Sync + 'static>() {
    let memory = memory::<W>(0);
    let words = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
    let reader = {
        let (memory, words) = (memory.clone(), words.clone());
        loom::thread::spawn(move || {
            let mut lock = Seqlock::new(&memory.word);
            acquire(&mut lock, true);
            let [first, second] = [0, 1].map(|index: usize| words[index].load(Ordering::Relaxed));
            if release(&mut lock, true) == Released::Done {
                assert_eq!(first, second, "torn");
            }
        })
    };
    let mut lock = Seqlock::new(&memory.word);
    for value in 1..=2 {
        acquire(&mut lock, false);
        words.iter().for_each(|word| word.store(value, Ordering::Relaxed));
        release(&mut lock, false);
    }
    reader.join().unwrap();
}

#[test]
fn a_sequence_lock_s_reader_knows_when_it_read_what_belongs_together() {
    explore(3, consistency::<Modelled<AS_WRITTEN>>);
    for broken in [consistency::<Modelled<NO_ACQUIRE>>, consistency::<Modelled<NO_RELEASE>>] {
        assert!(std::panic::catch_unwind(|| explore(3, broken)).is_err(), "not found out");
    }
}

/// One waiter gives up while another sleeps: the one that sleeps is woken all the same.
#[test]
fn a_waiter_that_leaves_a_futex_lock_takes_nobody_s_waking_with_it() {
    explore(2, || {
        let memory = memory::<Modelled<AS_WRITTEN>>(0);
        let (leaver, sleeper) = (memory.clone(), memory.clone());
        let leaver = loom::thread::spawn(move || {
            let mut lock = Futex(&leaver.word);
            let mut effort = Effort::default();
            let outcome = lock.wait(false, &mut Waiting::new(&mut effort, &|| false, Some(Instant::now()))).unwrap();
            if outcome == Outcome::Owned {
                release(&mut lock, false);
            }
        });
        let sleeper = loom::thread::spawn(move || {
            let mut lock = Futex(&sleeper.word);
            acquire(&mut lock, false);
            release(&mut lock, false);
        });
        let mut lock = Futex(&memory.word);
        acquire(&mut lock, false);
        release(&mut lock, false);
        leaver.join().unwrap();
        sleeper.join().unwrap();
    });
}
