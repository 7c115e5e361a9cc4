//! The contest over locks: a lock as a worker uses it against the same kind in C.
#![allow(unsafe_code)]
// SAFETY of this module: a C lock and its nodes are made before the two processes are forked, each has a seat of its
// own, and nothing but the loops of `c/locks.c` touches them; both words are looked at as atomics.

use crate::contest::arena::{Arena, Tally};
use crate::contest::c_locks::{InC, Loop, Seat, in_c};
use crate::contest::duel::DuelError;
use crate::contest::{Setting, Side, Sides};
use plan::{
    AccessKind, Address, CpuId, Layout, LockKind, Nanos, Op, OpKind, PlacedLock, Program, TickRate, Width, WorkerIndex,
    WorkerProgram,
};
use shm_layout::{Segment, SegmentSpec};
use std::sync::atomic::{AtomicU64, Ordering};
use worker::LoopOnSegment;

/// Turns of the multiply-add chain outside a section, on both sides: some 0.2 µs, so that the other can come in between
/// two acquisitions and the lock is still wanted by both most of the time.
const TURNS_OUTSIDE: u64 = 200;

/// Long beyond any batch: in its window a worker records its acquisitions, as the contestant shall all along.
const WINDOW: Nanos = Nanos(120_000_000_000);

/// Where the lab's locks lie, one a process, and the word that its sections bump: pairs of lines of their own.
const LOCKS_AT: [u64; 2] = [0, 256];
const WORD_AT: u64 = 1024;
const AREA_BYTES: u64 = 4096;

/// The kinds of a setting: each where each process has a lock of its own, those whose readers share where it reads, and
/// where two share a lock those that are calls of the C library. `raw-sync`, which waits as `pthread` does, is not
/// contended again.
pub(crate) fn kinds(setting: Setting) -> Vec<LockKind> {
    let is_in = |kind: &LockKind| match setting {
        Setting::Free => true,
        Setting::FreeReaders => kind.shares_readers(),
        Setting::Contended | Setting::TriesFirst => kind.is_tried_first() && *kind != LockKind::RawSync,
        Setting::Padded | Setting::Packed => false,
    };
    LockKind::ALL.into_iter().filter(is_in).collect()
}

/// What a batch is fought on: made by the parent before it forks the two processes.
pub(crate) struct Ground<'a> {
    kind: LockKind,
    setting: Setting,
    arena: &'a Arena,
    in_c: InC,
    /// What the lab runs, and on which segment; `None` where the contestant is C too.
    lab: Option<(Program, Segment)>,
}

impl<'a> Ground<'a> {
    /// Makes the locks of both sides.
    ///
    /// # Errors
    /// [`DuelError`]: a lock or the segment could not be made.
    pub(crate) fn prepare(
        kind: LockKind,
        setting: Setting,
        arena: &'a Arena,
        cpus: [usize; 2],
        rate: TickRate,
    ) -> Result<Ground<'a>, DuelError> {
        let mut ground = Ground { kind, setting, arena, in_c: in_c(kind), lab: None };
        for process in 0..2 {
            let owner = ground.lock_of(process);
            if owner == process {
                let mut seat = arena.seat(process, owner, 0);
                // SAFETY: the arena is new: the lock and its nodes are zero, and nobody uses them yet.
                let code = unsafe { (ground.in_c.init)(&raw mut seat) };
                if code != 0 {
                    return Err(DuelError::MakingInC { name: kind.name(), code });
                }
            }
        }
        if setting != Setting::TriesFirst {
            let program = program(kind, setting, cpus);
            let spec = SegmentSpec { program: &program, encoded_program: b"", slots: 2, rate, node: None };
            let mut segment = Segment::create(&spec)?;
            segment.control().release();
            // The two processes are forked with the mapping: nobody needs the name.
            segment.unlink();
            ground.lab = Some((program, segment));
        }
        Ok(ground)
    }

    /// Whose lock this process takes.
    fn lock_of(&self, process: usize) -> usize {
        if self.setting.shares_lock() { 0 } else { process }
    }

    /// In one of the two processes: runs `fight` with both sides, then tells the tally.
    ///
    /// # Errors
    /// What failed, in words.
    pub(crate) fn enter(
        &self,
        process: usize,
        fight: impl FnOnce(&mut dyn Sides) -> Result<(), String>,
    ) -> Result<(), String> {
        let in_c = self.arena.protected();
        let Some((program, segment)) = &self.lab else {
            let tries_first = self.in_c.tries_first.ok_or("this kind is not tried first")?;
            return self.contestants(process, Rival::InC(tries_first), [in_c; 2])?.all(fight, self.tally(process));
        };
        // One turn a nanosecond: `work` is given in turns.
        let lone = LoopOnSegment::new(segment, program, process as u32, 1.0).map_err(said)?;
        let words = [lab_word(segment), in_c];
        self.contestants(process, Rival::Lab(Box::new(lone)), words)?.all(fight, self.tally(process))
    }

    fn contestants<'s>(
        &self,
        process: usize,
        rival: Rival<'s>,
        words: [&'s AtomicU64; 2],
    ) -> Result<Contestants<'s>, &'static str> {
        let in_c = match self.setting {
            Setting::FreeReaders => self.in_c.reads.ok_or("this kind has no readers")?,
            _ if self.setting.shares_lock() => self.in_c.contended,
            _ => self.in_c.free,
        };
        let seat = self.arena.seat(process, self.lock_of(process), TURNS_OUTSIDE);
        let protected = self.setting.shares_lock().then_some(words);
        Ok(Contestants { rival, in_c, seat, made: [0; 2], protected })
    }

    fn tally(&self, process: usize) -> &Tally {
        &self.arena.control().tallies[process]
    }

    /// When both processes have ended: holds what the sections have bumped against the passes made.
    ///
    /// # Errors
    /// [`DuelError::Lost`] where one of the two locks let both in at once; [`DuelError::NotFree`] where a lock of one
    /// process was contended.
    pub(crate) fn check(&self) -> Result<(), DuelError> {
        let tallies = &self.arena.control().tallies;
        let of =
            |figure: fn(&Tally) -> &AtomicU64| tallies.iter().map(|t| figure(t).load(Ordering::Relaxed)).sum::<u64>();
        let (by_contestant, by_reference) = (of(|t| &t.made[0]), of(|t| &t.made[1]));
        let name = self.kind.name();
        if !self.setting.shares_lock() {
            let contended = of(|t| &t.contended);
            return if contended == 0 { Ok(()) } else { Err(DuelError::NotFree { name, contended }) };
        }
        let in_c = self.arena.protected().load(Ordering::Relaxed);
        match &self.lab {
            None => kept(name, "C", in_c, by_contestant + by_reference),
            Some((_, segment)) => kept(name, "C", in_c, by_reference)
                .and_then(|()| kept(name, "the lab", lab_word(segment).load(Ordering::Relaxed), by_contestant)),
        }
    }
}

fn kept(name: &'static str, side: &'static str, found: u64, made: u64) -> Result<(), DuelError> {
    if found == made { Ok(()) } else { Err(DuelError::Lost { name, side, found, made }) }
}

/// What the lab's sections bump.
fn lab_word(segment: &Segment) -> &AtomicU64 {
    // SAFETY: in the area of `AREA_BYTES`, aligned; the mapping lives as long as the segment; compiled code touches it
    // in whole words.
    unsafe { &*segment.area().add(WORD_AT as usize).cast::<AtomicU64>() }
}

/// What the lab's two workers run.
fn program(kind: LockKind, setting: Setting, cpus: [usize; 2]) -> Program {
    let worker = |process: usize| {
        let lock = if setting.shares_lock() { 0 } else { process as u32 };
        let shared = setting == Setting::FreeReaders;
        let bump = OpKind::Access { kind: AccessKind::Bump, width: Width::U64, at: Address::Fixed(WORD_AT) };
        let (acquire, release) = (OpKind::Lock { lock, shared, timeout: None }, OpKind::Unlock { lock, shared });
        let kinds = if setting.shares_lock() {
            vec![acquire, bump, release, OpKind::Work(Nanos(TURNS_OUTSIDE))]
        } else {
            vec![acquire, release]
        };
        WorkerProgram {
            process: process as u32,
            period: None,
            latency: false,
            index: WorkerIndex(process as u32),
            role: 0,
            role_name: "bench".to_owned(),
            cpu: CpuId(cpus[process] as u32),
            after: Nanos(0),
            populate: vec![],
            steps: kinds.iter().map(|kind| format!("{kind:?}")).collect(),
            ops: kinds.into_iter().zip(0..).map(|(kind, step)| Op { every: 1, step, kind }).collect(),
        }
    };
    let locks = if setting.shares_lock() { &LOCKS_AT[..1] } else { &LOCKS_AT };
    let placed = |&offset: &u64| PlacedLock { name: "m".to_owned(), kind, offset };
    Program {
        timed_locks: true,
        arm: setting.name().to_owned(),
        window: WINDOW,
        warm_up: Nanos(0),
        layout: Layout { placed: Vec::new(), bytes: AREA_BYTES },
        area_bytes: AREA_BYTES,
        locks: locks.iter().map(placed).collect(),
        regions: Vec::new(),
        workers: [0, 1].map(worker).into(),
        shares_cpu: false,
        seed: 1,
    }
}

/// The contestant.
enum Rival<'s> {
    Lab(Box<LoopOnSegment<'s>>),
    InC(Loop),
}

/// Both sides in one process.
struct Contestants<'s> {
    rival: Rival<'s>,
    in_c: Loop,
    seat: Seat,
    /// By this process alone: the contestant's and the reference's.
    made: [u64; 2],
    /// What the sections of both bump, where there are sections.
    protected: Option<[&'s AtomicU64; 2]>,
}

fn said(failure: worker::Failure) -> String {
    format!("{}; {}", failure.what, failure.cure)
}

impl Contestants<'_> {
    fn all(mut self, fight: impl FnOnce(&mut dyn Sides) -> Result<(), String>, tally: &Tally) -> Result<(), String> {
        fight(&mut self)?;
        tally.made.iter().zip(self.made).for_each(|(word, made)| word.store(made, Ordering::Relaxed));
        if let Rival::Lab(lone) = self.rival {
            for lock in lone.into_locks().map_err(said)? {
                tally.acquisitions.fetch_add(lock.acquisitions, Ordering::Relaxed);
                tally.contended.fetch_add(lock.contended, Ordering::Relaxed);
            }
        }
        Ok(())
    }
}

impl Sides for Contestants<'_> {
    fn run(&mut self, side: Side, passes: u64) -> Result<(), String> {
        self.made[side as usize] += passes;
        let in_c = match (side, &mut self.rival) {
            (Side::Contestant, Rival::Lab(lone)) => {
                return lone.run(passes).map_err(said);
            }
            (Side::Contestant, Rival::InC(tries_first)) => *tries_first,
            (Side::Reference, _) => self.in_c,
        };
        // SAFETY: the parent made the lock for this kind, and this process's seat at it is the only one of its number;
        // passes are above 0.
        match unsafe { in_c(&raw mut self.seat, passes) } {
            0 => Ok(()),
            code => Err(format!("a lock's call in C failed: {code}")),
        }
    }

    fn made(&self, side: Side) -> u64 {
        match self.protected {
            // Relaxed: how far both are by now; nothing is read by it.
            Some(words) => words[side as usize].load(Ordering::Relaxed),
            None => self.made[side as usize],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_have_the_kinds_that_docs_promise() {
        let names = |setting| kinds(setting).into_iter().map(LockKind::name).collect::<Vec<_>>().join(" ");
        assert_eq!(kinds(Setting::Free), LockKind::ALL);
        assert_eq!(names(Setting::FreeReaders), "pthread-rwlock seqlock");
        let library = "pthread pthread-adaptive pthread-robust pthread-pi pthread-spin pthread-rwlock semaphore";
        assert_eq!(names(Setting::Contended), library);
        assert_eq!(names(Setting::TriesFirst), library);
        assert!(kinds(Setting::Padded).is_empty());
    }

    #[test]
    fn free_locks_lie_on_pairs_of_their_own_and_contended_ones_are_one() {
        let places = |setting| {
            let program = program(LockKind::Tas, setting, [0, 1]);
            let used = |worker: &WorkerProgram| match worker.ops[0].kind {
                OpKind::Lock { lock, shared, timeout: None } => {
                    assert_eq!(shared, setting == Setting::FreeReaders);
                    program.locks[lock as usize].offset
                }
                ref other => panic!("{other:?}"),
            };
            [used(&program.workers[0]), used(&program.workers[1])]
        };
        let [first, second] = places(Setting::Free);
        assert!(second / plan::LINE_PAIR_BYTES > (first + LockKind::BYTES - 1) / plan::LINE_PAIR_BYTES);
        assert_eq!(places(Setting::FreeReaders), [first, second]);
        let [first, second] = places(Setting::Contended);
        assert_eq!(first, second);
        assert!(WORD_AT / plan::LINE_PAIR_BYTES > (first + LockKind::BYTES - 1) / plan::LINE_PAIR_BYTES);
    }

    /// The C side alone: one thread plays both processes, one after the other.
    #[test]
    fn a_lost_update_is_an_error() {
        let arena = Arena::new(1).unwrap();
        let rate = TickRate { ticks_per_ns: 1.0 };
        let ground = Ground::prepare(LockKind::Pthread, Setting::TriesFirst, &arena, [0, 1], rate).unwrap();
        for process in [0, 1] {
            let fight = |sides: &mut dyn Sides| {
                sides.run(Side::Contestant, 8)?;
                assert_eq!(sides.made(Side::Contestant) % 24, 8, "of both sides and processes");
                sides.run(Side::Reference, 16)
            };
            ground.enter(process, fight).unwrap();
        }
        ground.check().unwrap();
        arena.protected().fetch_sub(1, Ordering::Relaxed);
        assert!(matches!(ground.check(), Err(DuelError::Lost { name: "pthread", side: "C", found: 47, made: 48 })));
    }

    /// Both sides, one thread for both processes: its first batch as the second opens the window.
    #[test]
    fn what_the_lab_records_and_bumps_is_told_and_checked() {
        for setting in [Setting::Free, Setting::FreeReaders, Setting::Contended] {
            for kind in kinds(setting) {
                let arena = Arena::new(1).unwrap();
                let rate = shm_layout::calibrate(std::time::Duration::from_millis(2));
                let ground = Ground::prepare(kind, setting, &arena, [0, 1], rate).unwrap();
                let batches = |sides: &mut dyn Sides| {
                    [8, 16, 24].into_iter().try_for_each(|passes| {
                        sides.run(Side::Contestant, passes)?;
                        sides.run(Side::Reference, 8)
                    })
                };
                // The first process, alone, records nothing, and says so.
                let closed = ground.enter(0, batches).unwrap_err();
                assert!(closed.contains("window"), "{closed}");
                ground.enter(1, batches).unwrap();
                let tally = &arena.control().tallies[1];
                let told = [&tally.made[0], &tally.made[1], &tally.acquisitions, &tally.contended];
                assert_eq!(told.map(|w| w.load(Ordering::Relaxed)), [48, 24, 40, 0], "{kind:?}");
                ground.check().unwrap();
            }
        }
    }
}
