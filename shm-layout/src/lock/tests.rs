//! Every kind of lock, used in one process; `processes.rs` has the tests with several.
#![allow(unsafe_code)] // locks in memory of the tests' own

mod processes;

use super::*;
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::scope;
use testing::{A_LONG_TIME, within};

const SLOTS: u32 = 3;

/// Memory for one lock, as a segment has it.
#[repr(C, align(128))]
struct Memory {
    lock: UnsafeCell<[u8; 128]>,
    nodes: UnsafeCell<[[u8; 128]; SLOTS as usize + 1]>,
}

// SAFETY: after `made`, only locks use the bytes, as one process's threads and another's do: by calls made for that and
// by atomics.
unsafe impl Sync for Memory {}

impl Memory {
    fn place(&self) -> LockPlace {
        LockPlace { at: self.lock.get().cast(), nodes: self.nodes.get().cast(), slots: SLOTS }
    }
}

fn made(kind: LockKind) -> Box<Memory> {
    // Not zero: a lock is made wherever it is put.
    let memory = Memory { lock: UnsafeCell::new([0xa5; 128]), nodes: UnsafeCell::new([[0xa5; 128]; 4]) };
    let memory = Box::new(memory);
    // SAFETY: large enough, aligned to 128, and nobody else knows it yet.
    unsafe { initialise(memory.place(), kind).unwrap() };
    memory
}

fn lock(memory: &Memory, kind: LockKind, worker: u32) -> SharedLock<'_> {
    // SAFETY: made by `made` with this kind, borrowed for as long as the lock, and no test makes two for one worker.
    unsafe { SharedLock::new(memory.place(), kind, worker) }
}

/// Every kind; where Miri runs this the lab's own, since it knows few of the C library's calls.
fn kinds() -> impl Iterator<Item = LockKind> {
    LockKind::ALL.into_iter().filter(|&kind| !cfg!(miri) || waits_by_itself(kind))
}

fn never() -> bool {
    false
}

fn take(lock: &mut SharedLock<'_>) -> Acquired {
    match lock.try_acquire(false).unwrap() {
        Attempt::Acquired(acquired) => acquired,
        Attempt::Contended => panic!("held by another"),
    }
}

fn give(lock: &mut SharedLock<'_>) {
    assert_eq!(lock.release(false, &never), Ok(Released::Done));
}

fn wait(lock: &mut SharedLock<'_>) -> Acquired {
    lock.acquire(false, &mut Effort::default(), &never).unwrap()
}

#[test]
fn handoffs_and_the_last_owner_are_told_by_every_kind() {
    for kind in kinds() {
        let memory = made(kind);
        let mut locks = [0, 1].map(|worker| lock(&memory, kind, worker));
        assert_eq!(locks[0].last_owner(), None, "{kind:?}");
        let told = [0, 0, 1, 1, 1, 0].map(|worker: usize| {
            let acquired = take(&mut locks[worker]);
            give(&mut locks[worker]);
            assert!(!acquired.owner_died);
            assert_eq!(locks[0].last_owner(), Some(worker as u32), "{kind:?}");
            acquired.handoff
        });
        assert_eq!(told, [false, false, true, false, false, true], "{kind:?}");
    }
}

#[test]
fn every_kind_tells_whether_it_is_held() {
    for kind in kinds() {
        let memory = made(kind);
        let looks = lock(&memory, kind, 1);
        let mut mine = lock(&memory, kind, 0);
        for _ in 0..2 {
            assert!(!looks.is_held(), "{kind:?}");
            take(&mut mine);
            assert!(looks.is_held(), "{kind:?}");
            give(&mut mine);
        }
        assert!(!looks.is_held(), "{kind:?}");
        // A reader of a sequence lock holds nothing: it keeps nobody out.
        assert_eq!(mine.try_acquire(true), Ok(Attempt::Acquired(Acquired::default())), "{kind:?}");
        assert_eq!(looks.is_held(), kind != LockKind::Seqlock, "{kind:?}");
        assert_eq!(mine.release(true, &never), Ok(Released::Done), "{kind:?}");
        assert!(!looks.is_held(), "{kind:?}");
    }
}

fn await_true(word: &AtomicBool) {
    within(A_LONG_TIME, "the other thread's word", || word.load(Ordering::Acquire).then_some(()));
}

/// Sets a word when dropped, also by a panic.
struct Sets<'a>(&'a AtomicBool);

impl Drop for Sets<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Runs `body` with a lock of worker 1, while worker 0 holds it: on a thread of its own, as some kinds know their owner
/// by it. What the body drops lets the owner release.
fn while_held<T>(memory: &Memory, kind: LockKind, body: impl FnOnce(SharedLock<'_>, Sets<'_>) -> T) -> T {
    let (held, release) = (AtomicBool::new(false), AtomicBool::new(false));
    scope(|scope| {
        scope.spawn(|| {
            let mut mine = lock(memory, kind, 0);
            take(&mut mine);
            held.store(true, Ordering::Release);
            await_true(&release);
            give(&mut mine);
        });
        let release = Sets(&release);
        await_true(&held);
        body(lock(memory, kind, 1), release)
    })
}

#[test]
fn a_first_attempt_on_a_held_lock_is_contended_and_the_wait_ends_with_the_release() {
    for kind in kinds() {
        while_held(&made(kind), kind, |mut other, release| {
            assert_eq!(other.try_acquire(false), Ok(Attempt::Contended), "{kind:?}");
            drop(release);
            let acquired = wait(&mut other);
            assert!(acquired.handoff, "{kind:?}: {acquired:?}");
            give(&mut other);
        });
    }
}

/// Passes of each of `workers`. First come, first served among more workers than CPUs (there may be one) waits at each
/// handoff until the scheduler brings the next one on, some milliseconds.
fn passes(kind: LockKind, workers: u32) -> u64 {
    match kind {
        _ if cfg!(miri) => 20,
        LockKind::Ticket | LockKind::Mcs | LockKind::Clh if workers > 2 => 40,
        LockKind::Ticket | LockKind::Mcs | LockKind::Clh => 400,
        _ => 20_000,
    }
}

/// What compiled code does where the lock is free, and what it tells the hook where it is not.
struct Compiled<'a> {
    lock: SharedLock<'a>,
    place: LockPlace,
    fast: FastPath,
    /// As a reader among others.
    shared: bool,
    worker: u32,
    /// What it remembers: its node's name and the predecessor's, or the count at which its reading began.
    node: u32,
    before: u32,
}

impl<'a> Compiled<'a> {
    fn new(memory: &'a Memory, kind: LockKind, worker: u32, shared: bool) -> Compiled<'a> {
        let (lock, place, fast) = (lock(memory, kind, worker), memory.place(), fast_path(kind));
        let shared = shared && kind.shares_readers();
        Compiled { lock, place, fast, shared, worker, node: clh_name(worker), before: 0 }
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: inside the lock and aligned; a word of the lab's own kinds, which all touch as an atomic.
        unsafe { &*self.place.at.add(offset).cast() }
    }

    /// The first word of the node that begins there.
    fn node(&self, offset: u32) -> &AtomicU32 {
        // SAFETY: one of the nodes, aligned; an atomic to all.
        unsafe { &*self.place.nodes.add(offset as usize).cast() }
    }

    fn own_mcs_node(&self) -> &AtomicU32 {
        self.node(self.worker * NODE_BYTES as u32)
    }

    fn clh_node(&self, name: u32) -> &AtomicU32 {
        self.node(name - NODE_BYTES as u32)
    }

    fn calls(&self) -> Calls {
        let FastPath::Calls { exclusive, shared } = self.fast else { panic!("no calls") };
        shared.filter(|_| self.shared).unwrap_or(exclusive)
    }

    fn call(&self, function: Function) -> Option<i64> {
        // SAFETY: such a lock lies there, made and mapped.
        let code = unsafe { (function.call)(self.place.at.cast::<c_void>()) };
        (code != 0).then(|| code.into())
    }

    /// What the hook is to be told; `None` where it is owned.
    fn attempt(&mut self) -> Option<i64> {
        match self.fast {
            FastPath::Word => Some(self.word(0).swap(1, Ordering::Acquire)).filter(|&was| was != 0).map(i64::from),
            FastPath::FutexWord => {
                self.word(0).compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).err().map(i64::from)
            }
            FastPath::Ticket => {
                let ticket = self.word(0).fetch_add(1, Ordering::Relaxed);
                (self.word(4).load(Ordering::Acquire) != ticket).then(|| ticket.into())
            }
            FastPath::Mcs => {
                self.own_mcs_node().store(0, Ordering::Relaxed);
                let before = self.word(0).swap(self.worker + 1, Ordering::AcqRel);
                (before != 0).then(|| before.into())
            }
            FastPath::Clh => {
                self.clh_node(self.node).store(1, Ordering::Relaxed);
                self.before = self.word(0).swap(self.node, Ordering::AcqRel);
                (self.clh_node(self.before).load(Ordering::Acquire) != 0).then(|| self.remembered())
            }
            FastPath::Seqlock if self.shared => {
                self.before = self.word(0).load(Ordering::Acquire);
                (self.before % 2 == 1).then_some(0)
            }
            FastPath::Seqlock => {
                let count = self.word(0).load(Ordering::Relaxed);
                let acquire = || self.word(0).compare_exchange(count, count + 1, Ordering::Acquire, Ordering::Relaxed);
                if count % 2 == 1 || acquire().is_err() {
                    return Some(0);
                }
                std::sync::atomic::fence(Ordering::Release);
                None
            }
            FastPath::Calls { .. } => self.call(self.calls().try_acquire),
        }
    }

    /// What the hook is told for a release.
    fn remembered(&self) -> i64 {
        match self.fast {
            FastPath::Clh => i64::from(self.node) | i64::from(self.before) << 32,
            _ => self.before.into(),
        }
    }

    /// Acquires, by the hook where it must; true where the hook did.
    fn acquire(&mut self) -> bool {
        let Some(told) = self.attempt() else {
            if !self.shared {
                self.lock.note_owner();
            }
            return false;
        };
        if let Attempt::Contended = self.lock.settle(self.shared, told).unwrap() {
            self.lock.acquire(self.shared, &mut Effort::default(), &never).unwrap();
        }
        true
    }

    /// Releases by itself; false where nothing is done yet, and the hook has to.
    fn try_release(&mut self) -> bool {
        let told = match self.fast {
            FastPath::Word => {
                self.word(0).store(0, Ordering::Release);
                None
            }
            FastPath::FutexWord => Some(self.word(0).swap(0, Ordering::Release)).filter(|&was| was != 1).map(i64::from),
            FastPath::Ticket => {
                let served = self.word(4).load(Ordering::Relaxed);
                self.word(4).store(served.wrapping_add(1), Ordering::Release);
                None
            }
            FastPath::Mcs => {
                let me = self.worker + 1;
                let alone = || self.word(0).compare_exchange(me, 0, Ordering::Release, Ordering::Relaxed).is_ok();
                return self.own_mcs_node().load(Ordering::Relaxed) == 0 && alone();
            }
            FastPath::Clh => {
                self.clh_node(self.node).store(0, Ordering::Release);
                None
            }
            FastPath::Seqlock if self.shared => {
                std::sync::atomic::fence(Ordering::Acquire);
                return self.word(0).load(Ordering::Relaxed) == self.before;
            }
            FastPath::Seqlock => {
                let odd = self.word(0).load(Ordering::Relaxed);
                self.word(0).store(odd.wrapping_add(1), Ordering::Release);
                None
            }
            FastPath::Calls { .. } => self.call(self.calls().release),
        };
        if let Some(told) = told {
            self.lock.release_after(told).unwrap();
        }
        true
    }

    /// Releases, by the hook where it must or is asked to.
    fn release(&mut self, by_hook: bool) -> Released {
        let mut released = Released::Done;
        if by_hook || !self.try_release() {
            released = self.lock.release_for(self.shared, self.remembered(), &never).unwrap();
        }
        self.node = self.before;
        released
    }
}

/// Half of the releases of what compiled code has acquired by itself go by the hook, as those of sampled holds do.
#[test]
fn compiled_code_and_hooks_exclude_each_other() {
    for kind in kinds() {
        let (memory, count) = (made(kind), AtomicU64::new(0));
        // Relaxed, and apart: what makes this exact is the lock.
        let bump = || count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        scope(|scope| {
            scope.spawn(|| {
                let mut compiled = Compiled::new(&memory, kind, 0, false);
                for pass in 0..passes(kind, 2) {
                    let by_hook = compiled.acquire();
                    bump();
                    assert_eq!(compiled.release(by_hook || pass % 2 == 0), Released::Done);
                }
            });
            let mut other = lock(&memory, kind, 1);
            for _ in 0..passes(kind, 2) {
                other.acquire_plain(false, &mut Effort::default(), &never).unwrap();
                bump();
                give(&mut other);
            }
        });
        assert_eq!(count.load(Ordering::Relaxed), 2 * passes(kind, 2), "{kind:?}");
    }
}

#[test]
fn compiled_code_that_reads_knows_when_it_read_what_belongs_together() {
    const WRITINGS: u64 = if cfg!(miri) { 20 } else { 20_000 };
    for kind in kinds().filter(|kind| kind.shares_readers()) {
        let (memory, words, done) = (made(kind), [AtomicU64::new(0), AtomicU64::new(0)], AtomicBool::new(false));
        scope(|scope| {
            scope.spawn(|| {
                let mut writer = Compiled::new(&memory, kind, 0, false);
                for value in 1..=WRITINGS {
                    let by_hook = writer.acquire();
                    // Relaxed: it is the lock that keeps them together.
                    words.iter().for_each(|word| word.store(value, Ordering::Relaxed));
                    writer.release(by_hook);
                }
                done.store(true, Ordering::Release);
            });
            let mut reader = Compiled::new(&memory, kind, 1, true);
            let mut readings = 0u64;
            while readings == 0 || !done.load(Ordering::Acquire) {
                let by_hook = reader.acquire();
                let [first, second] = words.each_ref().map(|word| word.load(Ordering::Relaxed));
                if reader.release(by_hook || readings.is_multiple_of(2)) == Released::Done {
                    assert_eq!(first, second, "{kind:?}: torn");
                    readings += 1;
                }
            }
        });
    }
}

#[test]
fn what_compiled_code_tells_is_taken_for_what_it_is() {
    let told = |kind, told| {
        let memory = made(kind);
        lock(&memory, kind, 0).settle(false, told)
    };
    for kind in kinds() {
        let busy = match kind {
            LockKind::Semaphore => -1,
            LockKind::Mcs => 2, // the name of a node
            _ => libc::EBUSY.into(),
        };
        assert_eq!(told(kind, busy), Ok(Attempt::Contended), "{kind:?}");
    }
    let refused = told(LockKind::PthreadRobust, libc::ENOTRECOVERABLE.into());
    let call = "pthread_mutex_lock or _trylock";
    assert_eq!(refused, Err(LockError::Call { call, errno: nix::errno::Errno::ENOTRECOVERABLE }));
    let memory = made(LockKind::Tas);
    assert_eq!(lock(&memory, LockKind::Tas, 0).release_after(1), Err(LockError::NoFastPath));
}

#[test]
fn a_wait_that_ends_at_a_time_leaves_the_lock_as_it_was() {
    let timeout = Duration::from_millis(5);
    for kind in kinds() {
        let memory = made(kind);
        if !kind.times_out() {
            let refused = lock(&memory, kind, 0).acquire_until(false, timeout, &mut Effort::default(), &never);
            assert_eq!(refused, Err(LockError::NoTimeout { kind: kind.name() }));
            continue;
        }
        while_held(&memory, kind, |mut other, release| {
            let mut until = |shared| other.acquire_until(shared, timeout, &mut Effort::default(), &never);
            for shared in [false, true] {
                let begun = Instant::now();
                assert_eq!(until(shared), Ok(None), "{kind:?}");
                // The clock of the C library's calls may be slewed against this one.
                assert!(begun.elapsed() > timeout / 2, "{kind:?}: {:?}", begun.elapsed());
            }
            drop(release);
            let acquired = other.acquire_until(false, Duration::MAX, &mut Effort::default(), &never).unwrap();
            assert!(acquired.is_some_and(|acquired| acquired.handoff), "{kind:?}: {acquired:?}");
            give(&mut other);
        });
    }
}

/// The kinds whose waiting is the lab's own: these ask whether to give up.
fn waits_by_itself(kind: LockKind) -> bool {
    !kind.is_tried_first()
}

#[test]
fn a_waiter_of_the_lab_s_own_kinds_gives_up_when_told() {
    for kind in kinds().filter(|&kind| waits_by_itself(kind)) {
        while_held(&made(kind), kind, |mut other, _release| {
            assert_eq!(other.try_acquire(false), Ok(Attempt::Contended));
            let asked = std::cell::Cell::new(0);
            let stop = || asked.replace(asked.get() + 1) == 2;
            let mut effort = Effort::default();
            assert_eq!(other.acquire(false, &mut effort, &stop), Err(LockError::Abandoned), "{kind:?}");
            assert_eq!(asked.get(), 3, "{kind:?}");
            let counted = if kind == LockKind::Futex { effort.futex_waits } else { effort.spins };
            assert!(counted >= 2, "{kind:?}: {effort:?}");
            assert_eq!(effort.spins == 0, kind == LockKind::Futex, "{kind:?}: {effort:?}");
        });
    }
}

/// The kinds that cannot know: their locks record no owner, and do not say either that nobody holds them.
fn tells_nothing(kind: LockKind) -> bool {
    use LockKind::{Pthread, PthreadAdaptive, PthreadRwlock, PthreadSpin, RawSync};
    matches!(kind, Pthread | PthreadAdaptive | PthreadRwlock | PthreadSpin | RawSync)
}

#[test]
fn releasing_what_is_not_held_is_refused_where_the_kind_can_tell() {
    for kind in kinds().filter(|&kind| !tells_nothing(kind)) {
        let memory = made(kind);
        let mut mine = lock(&memory, kind, 0);
        assert_eq!(mine.release(false, &never), Err(LockError::NotHeld), "{kind:?}");
        take(&mut mine);
        give(&mut mine);
        assert_eq!(mine.release(false, &never), Err(LockError::NotHeld), "{kind:?}");
        take(&mut mine);
        assert_eq!(lock(&memory, kind, 1).try_acquire(false), Ok(Attempt::Contended), "{kind:?}: still excludes");
    }
}

#[test]
fn a_waiter_in_a_queue_cannot_enter_it_again() {
    for kind in [LockKind::Ticket, LockKind::Mcs, LockKind::Clh] {
        while_held(&made(kind), kind, |mut other, release| {
            assert_eq!(other.try_acquire(false), Ok(Attempt::Contended));
            assert_eq!(other.try_acquire(false), Err(LockError::HeldAlready), "{kind:?}");
            drop(release);
            wait(&mut other);
            give(&mut other);
        });
    }
}

#[test]
fn readers_share_keep_writers_out_of_a_reader_writer_lock_and_leave_no_record() {
    let kind = LockKind::PthreadRwlock;
    let memory = made(kind);
    let [mut first, mut second, mut writer] = [0, 1, 2].map(|worker| lock(&memory, kind, worker));
    take(&mut writer);
    give(&mut writer);
    let reading = Attempt::Acquired(Acquired::default());
    assert_eq!((first.try_acquire(true), second.try_acquire(true)), (Ok(reading), Ok(reading)));
    assert_eq!(writer.try_acquire(false), Ok(Attempt::Contended));
    for reader in [&mut first, &mut second] {
        assert_eq!(reader.release(true, &never), Ok(Released::Done));
    }
    assert!(!take(&mut writer).handoff, "readers are no owners");
}

#[test]
fn a_sequence_lock_s_reader_reads_again_after_a_writer_and_keeps_none_out() {
    let kind = LockKind::Seqlock;
    let memory = made(kind);
    let [mut reader, mut writer] = [0, 1].map(|worker| lock(&memory, kind, worker));
    let reading = Ok(Attempt::Acquired(Acquired::default()));
    assert_eq!(reader.try_acquire(true), reading);
    assert_eq!(reader.release(true, &never), Ok(Released::Done));
    assert_eq!(reader.try_acquire(true), reading);
    take(&mut writer);
    assert_eq!(reader.release(true, &never), Ok(Released::ReadAgain), "a writer is inside");
    assert_eq!(reader.try_acquire(true), Ok(Attempt::Contended));
    give(&mut writer);
    assert_eq!(reader.try_acquire(true), reading);
    take(&mut writer);
    give(&mut writer);
    assert_eq!(reader.release(true, &never), Ok(Released::ReadAgain), "a writer was inside");
}

#[test]
fn kinds_without_readers_take_a_reader_for_an_owner() {
    for kind in kinds().filter(|kind| !kind.shares_readers()) {
        let memory = made(kind);
        let mut mine = lock(&memory, kind, 0);
        assert!(matches!(mine.try_acquire(true), Ok(Attempt::Acquired(_))), "{kind:?}");
        assert_eq!(mine.last_owner(), Some(0), "{kind:?}");
        assert_eq!(lock(&memory, kind, 1).try_acquire(true), Ok(Attempt::Contended), "{kind:?}");
        assert_eq!(mine.release(true, &never), Ok(Released::Done), "{kind:?}");
    }
}

/// A worker that was killed between entering the queue and writing itself into its predecessor's node.
#[test]
fn an_mcs_owner_whose_successor_never_comes_gives_up_when_told() {
    let memory = made(LockKind::Mcs);
    let mut mine = lock(&memory, LockKind::Mcs, 0);
    take(&mut mine);
    // SAFETY: the tail is the lock's first word, an atomic to all.
    let tail = unsafe { &*memory.place().at.cast::<AtomicU32>() };
    assert_eq!(tail.swap(3, Ordering::AcqRel), 1);
    assert_eq!(mine.release(false, &|| true), Err(LockError::Abandoned));
}

#[test]
fn a_queue_that_names_a_node_that_is_not_there_is_refused() {
    for (kind, name) in [(LockKind::Mcs, SLOTS + 2), (LockKind::Mcs, u32::MAX), (LockKind::Clh, 0), (LockKind::Clh, 9)]
    {
        let memory = made(kind);
        // SAFETY: the tail is the lock's first word, an atomic to all.
        let tail = unsafe { &*memory.place().at.cast::<AtomicU32>() };
        tail.store(name, Ordering::Relaxed);
        let refused = lock(&memory, kind, 0).try_acquire(false);
        assert_eq!(refused, Err(LockError::Corrupt { word: "tail", found: name }), "{kind:?}");
    }
}

#[test]
fn tickets_wrap_round() {
    let memory = made(LockKind::Ticket);
    for offset in [0, 4] {
        // SAFETY: the lock's two counters, atomics to all.
        unsafe { &*memory.place().at.add(offset).cast::<AtomicU32>() }.store(u32::MAX, Ordering::Relaxed);
    }
    let mut mine = lock(&memory, LockKind::Ticket, 0);
    for _ in 0..3 {
        take(&mut mine);
        give(&mut mine);
    }
}

#[test]
fn an_owner_that_dies_is_reported_once_and_a_robust_lock_goes_on() {
    let kind = LockKind::PthreadRobust;
    let memory = made(kind);
    // A thread that ends holding it; `processes.rs` kills a process.
    scope(|scope| {
        // Joined: a scope ends before the kernel has ended its threads, and it is the kernel that marks the lock.
        scope.spawn(|| take(&mut lock(&memory, kind, 0))).join().unwrap();
    });
    let mut next = lock(&memory, kind, 1);
    let after = wait(&mut next);
    assert!(after.owner_died && after.handoff, "{after:?}");
    give(&mut next);
    assert!(!take(&mut next).owner_died);
    give(&mut next);
}

/// The same where compiled code's own attempt found out.
#[test]
fn a_dead_owner_that_compiled_code_finds_is_reported_without_a_wait() {
    let kind = LockKind::PthreadRobust;
    let memory = made(kind);
    scope(|scope| {
        // Joined: a scope ends before the kernel has ended its threads, and it is the kernel that marks the lock.
        scope.spawn(|| take(&mut lock(&memory, kind, 0))).join().unwrap();
    });
    let mut next = Compiled::new(&memory, kind, 1, false);
    assert!(next.lock.is_held());
    let told = next.attempt();
    assert_eq!(told, Some(libc::EOWNERDEAD.into()));
    let settled = next.lock.settle(false, libc::EOWNERDEAD.into());
    assert_eq!(settled, Ok(Attempt::Acquired(Acquired { owner_died: true, handoff: true })));
    next.release(false);
    assert_eq!(next.attempt(), None);
    next.release(false);
}
