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
use crate::atom::Atom;
use crate::modelled::{Model, granted, unmissed};
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, fence};
use loom::sync::{Arc, Condvar, Mutex};
use nix::errno::Errno;
use plan::LockKind;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// A word of loom's, with a kernel's queue for those that sleep on it.
#[derive(Default)]
struct Modelled {
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

impl Modelled {
    fn now(&self, value: u32) {
        let mut turns = self.turns.lock().unwrap();
        if std::mem::replace(&mut turns.newest, value) != value {
            turns.waiting.drain(..).for_each(|thread| thread.unpark());
        }
    }
}

impl Atom<u32> for Modelled {
    #[track_caller]
    fn load(&self, order: Ordering) -> u32 {
        self.value.load(granted(order))
    }

    #[track_caller]
    fn store(&self, value: u32, order: Ordering) {
        // As an exchange where others exchange: loom may order a plain store before exchanges that it let happen earlier,
        // for ever where one spins on exchanges, which no processor does.
        if self.turns.lock().unwrap().exchanged {
            self.swap(value, order);
        } else {
            self.value.store(value, granted(order));
            self.now(value);
        }
    }

    #[track_caller]
    fn fetch_add(&self, value: u32, order: Ordering) -> u32 {
        let before = self.value.fetch_add(value, granted(order));
        self.now(before.wrapping_add(value));
        before
    }

    #[track_caller]
    fn fetch_max(&self, value: u32, order: Ordering) -> u32 {
        let before = self.value.fetch_max(value, granted(order));
        self.now(before.max(value));
        before
    }
}

impl Word for Modelled {
    #[track_caller]
    fn swap(&self, value: u32, order: Ordering) -> u32 {
        self.turns.lock().unwrap().exchanged = true;
        let before = self.value.swap(value, granted(order));
        self.now(value);
        before
    }

    #[track_caller]
    fn compare_exchange(&self, current: u32, new: u32, success: Ordering, failure: Ordering) -> Result<u32, u32> {
        let before = self.value.compare_exchange(current, new, granted(success), failure);
        if before.is_ok() {
            self.now(new);
        }
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

    #[track_caller]
    fn fence(order: Ordering) {
        // A fence without an ordering is none.
        let granted = granted(order);
        if granted != Ordering::Relaxed {
            fence(granted);
        }
    }
}

const WORKERS: u32 = 3;

/// A lock's bytes and nodes, for any algorithm, and what its section protects.
struct Memory {
    word: Modelled,
    counters: Counters<Modelled>,
    mcs: Vec<mcs::Node<Modelled>>,
    clh: Vec<clh::Node<Modelled>>,
    section: UnsafeCell<u32>,
}

// SAFETY: `section` is used inside the lock alone; that this holds is what loom checks at each access.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

/// One of the lab's own algorithms.
#[derive(Copy, Clone)]
struct Kind {
    kind: LockKind,
    /// The lock's word when made.
    word: u32,
    /// The algorithm of one worker.
    of: for<'a> fn(&'a Memory, u32) -> Box<dyn Algorithm + 'a>,
}

fn memory(word: u32) -> Arc<Memory> {
    let memory = Memory {
        word: Modelled::default(),
        counters: Counters::default(),
        mcs: (0..=WORKERS).map(|_| mcs::Node::default()).collect(),
        clh: (0..=WORKERS).map(|_| clh::Node::default()).collect(),
        section: UnsafeCell::new(0),
    };
    memory.word.store(word, Ordering::Relaxed);
    Arc::new(memory)
}

/// The lab's own algorithms. `None` for a kind whose algorithm is the C library's: what it does with the lock's bytes is
/// not in this program, and no model of ours would be of it.
fn modelled(kind: LockKind) -> Option<Kind> {
    let of = |word, of| Some(Kind { kind, word, of });
    match kind {
        LockKind::Tas => of(0, |memory, _| Box::new(Tas(&memory.word))),
        LockKind::Ttas => of(0, |memory, _| Box::new(Ttas(&memory.word))),
        LockKind::Ticket => of(0, |memory, _| Box::new(Ticket::new(&memory.counters))),
        LockKind::Mcs => of(0, |memory, worker| Box::new(Mcs::new(&memory.word, &memory.mcs, worker))),
        LockKind::Clh => {
            of(clh::first_dummy(WORKERS), |memory, worker| Box::new(Clh::new(&memory.word, &memory.clh, worker)))
        }
        LockKind::Futex => of(0, |memory, _| Box::new(Futex(&memory.word))),
        LockKind::Seqlock => of(0, |memory, _| Box::new(Seqlock::new(&memory.word))),
        LockKind::Pthread
        | LockKind::PthreadAdaptive
        | LockKind::PthreadRobust
        | LockKind::PthreadPi
        | LockKind::PthreadSpin
        | LockKind::PthreadRwlock
        | LockKind::Semaphore
        | LockKind::RawSync => None,
    }
}

fn all_modelled() -> impl Iterator<Item = Kind> {
    LockKind::ALL.into_iter().filter_map(modelled)
}

fn acquire(lock: &mut dyn Algorithm, shared: bool) {
    let mut effort = Effort::default();
    let outcome = lock.acquire_plain(shared, &mut Waiting::new(&mut effort, &|| false, None)).unwrap();
    assert_eq!(outcome, Outcome::Owned);
}

fn release(lock: &mut dyn Algorithm, shared: bool) -> Released {
    lock.release(shared, &mut Waiting::new(&mut Effort::default(), &|| false, None)).unwrap()
}

/// `threads` workers go `passes` times through a section that only one may be in.
fn exclusion(Kind { word, of, .. }: Kind, threads: u32, passes: u32) {
    let memory = memory(word);
    let worker = |index| {
        let memory = memory.clone();
        move || {
            let mut lock = of(&memory, index);
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

/// A writer keeps two words equal; a reader that is told that it read undisturbed has seen them so. The writer stores
/// without looking: of all reads before a write loom remembers the last alone, so a look of its own would hide the
/// reader's.
fn consistency() {
    let memory = memory(0);
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

/// The models of an algorithm.
fn models(kind: Kind) -> Vec<Model> {
    let pass_after_pass = Model::new(3, move || exclusion(kind, 2, 2));
    match kind.kind {
        LockKind::Seqlock => vec![pass_after_pass, Model::new(3, consistency)],
        _ => vec![pass_after_pass],
    }
}

/// Workers exclude each other, pass after pass, and none is forgotten; and each half of each ordering is needed: without
/// it some model fails.
#[test]
fn every_algorithm_holds_in_every_order_and_with_no_ordering_less() {
    for kind in all_modelled() {
        assert_eq!(unmissed(&models(kind)), [""; 0], "{}", kind.kind.name());
    }
}

#[test]
fn three_workers_exclude_each_other_and_none_is_forgotten() {
    for kind in all_modelled() {
        Model::new(2, move || exclusion(kind, 3, 1)).explore();
    }
}

/// One waiter gives up while another sleeps: the one that sleeps is woken all the same.
#[test]
fn a_waiter_that_leaves_a_futex_lock_takes_nobody_s_waking_with_it() {
    let model = || {
        let memory = memory(0);
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
    };
    Model::new(2, model).explore();
}
