//! A worker's surroundings for tests: an area of memory, hooks that write down what was called, and short programs.
#![allow(dead_code, unsafe_code)] // each test file uses a part of it

use plan::{
    AccessKind, Address, LockKind, MemoryStep, MemoryVerb, Nanos, OpKind, PlacedLock, Program, Width, WorkerIndex,
    WorkerProgram,
};
use shm_layout::lock::{self, LockPlace};
use shm_layout::{SegmentMap, Slot};
use std::ffi::c_void;
use std::sync::atomic::AtomicU32;
use worker::compile::{CompiledLoop, Hooks, LockCell, LockSites, Progress};

/// What the hooks work on.
pub(crate) struct Context {
    /// One for each lock of a [`Stage`].
    pub(crate) cells: Vec<LockCell>,
    /// Spins that `spin` allows before it gives up.
    pub(crate) patience: u64,
    /// Yields after which the loop is ended; 0 is never.
    pub(crate) break_after_yields: usize,
    /// Whether `lock` says that it is not owned.
    pub(crate) times_out: bool,
    /// Times that `unlock` sends a reader back.
    pub(crate) retries: u32,
    /// Calls in order.
    pub(crate) log: Vec<Called>,
}

impl Default for Context {
    fn default() -> Context {
        Context {
            cells: LockCell::row(LOCKS),
            patience: 0,
            break_after_yields: 0,
            times_out: false,
            retries: 0,
            log: Vec::new(),
        }
    }
}

impl Context {
    /// What a loop is given.
    pub(crate) fn handle(&mut self) -> *mut LockCell {
        let context: *mut Context = self;
        self.cells[0].context.set(context.cast());
        self.cells.as_ptr().cast_mut()
    }
}

/// One call of a hook.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Called {
    /// `lock` of an index, as a reader or not, with a timeout in nanoseconds or 0, and what it is told.
    Lock(u32, bool, u64, i64),
    /// `unlock` of an index, as a reader or not, and what it is told.
    Unlock(u32, bool, i64),
    /// `released` of an index, and what it is told.
    Released(u32, i64),
    /// `handoff` of an index.
    Handoff(u32),
    /// `sample` of an index, as a reader or not.
    Sample(u32, bool),
    /// `yield`.
    Yield,
    /// `tick`.
    Tick,
    /// `sleep` of so many nanoseconds.
    Sleep(u64),
    /// `memory` of an operation by index.
    Memory(u32),
    /// `die`: writes it down, and lives.
    Die,
}

/// Calls of hooks after which a `tick` gives up.
pub(crate) const TICKS_BEFORE_GIVING_UP: usize = 100;

/// The names of the functions that a loop calls.
pub(crate) const NAMES: [&str; 13] = [
    "lock", "unlock", "released", "handoff", "sample", "spin", "tick", "yield", "sleep", "memory", "die", "pause",
    "flush",
];

/// Hooks that write to the [`Context`].
pub(crate) const HOOKS: Hooks =
    Hooks { lock, unlock, released, handoff, sample, spin, tick, yield_now, sleep, memory, die };

/// # Safety
/// `first` is from [`Context::handle`] of a context that only the calling thread uses, as [`run`] sees to.
unsafe fn context<'a>(first: *mut c_void) -> &'a mut Context {
    // SAFETY: see above.
    unsafe { &mut *(*first.cast::<LockCell>()).context.get().cast::<Context>() }
}

unsafe extern "C" fn lock(c: *mut c_void, lock: u32, shared: u32, timeout_ns: u64, told: i64) -> u32 {
    // SAFETY: the loop hands through what `run` gave it.
    let context = unsafe { context(c) };
    context.log.push(Called::Lock(lock, shared != 0, timeout_ns, told));
    context.cells[lock as usize].by_hook.set(1);
    u32::from(!context.times_out)
}

unsafe extern "C" fn unlock(c: *mut c_void, lock: u32, shared: u32, told: i64) -> u32 {
    // SAFETY: as in `lock`.
    let context = unsafe { context(c) };
    context.log.push(Called::Unlock(lock, shared != 0, told));
    let again = context.retries > 0;
    context.cells[lock as usize].by_hook.set(again.into());
    context.retries = context.retries.saturating_sub(1);
    u32::from(again)
}

unsafe extern "C" fn released(c: *mut c_void, lock: u32, told: i64) {
    // SAFETY: as in `lock`.
    unsafe { context(c) }.log.push(Called::Released(lock, told));
}

unsafe extern "C" fn handoff(c: *mut c_void, lock: u32) {
    // SAFETY: as in `lock`.
    unsafe { context(c) }.log.push(Called::Handoff(lock));
}

unsafe extern "C" fn sample(c: *mut c_void, lock: u32, shared: u32) {
    // SAFETY: as in `lock`.
    let context = unsafe { context(c) };
    context.log.push(Called::Sample(lock, shared != 0));
    context.cells[lock as usize].by_hook.set(1);
}

unsafe extern "C" fn tick(c: *mut c_void) -> u32 {
    // SAFETY: as in `lock`.
    let context = unsafe { context(c) };
    context.log.push(Called::Tick);
    u32::from(context.log.len() >= TICKS_BEFORE_GIVING_UP)
}

unsafe extern "C" fn spin(c: *mut c_void) -> u32 {
    // SAFETY: as in `lock`.
    let context = unsafe { context(c) };
    if context.patience == 0 {
        return 1;
    }
    context.patience -= 1;
    std::thread::yield_now();
    0
}

unsafe extern "C" fn yield_now(c: *mut c_void) {
    // SAFETY: as in `lock`.
    let context = unsafe { context(c) };
    context.log.push(Called::Yield);
    if context.log.len() == context.break_after_yields {
        context.cells[0].last_pass.set(0);
    }
}

unsafe extern "C" fn sleep(c: *mut c_void, ns: u64) {
    // SAFETY: as in `lock`.
    unsafe { context(c) }.log.push(Called::Sleep(ns));
}

unsafe extern "C" fn memory(c: *mut c_void, op: u32) {
    // SAFETY: as in `lock`.
    unsafe { context(c) }.log.push(Called::Memory(op));
}

unsafe extern "C" fn die(c: *mut c_void) {
    // SAFETY: as in `lock`.
    unsafe { context(c) }.log.push(Called::Die);
}

/// A step on a region.
pub(crate) fn memory_step(verb: MemoryVerb) -> OpKind {
    OpKind::Memory(MemoryStep { verb, region: 2, bytes: 4096, chunk: 4096, pause: Nanos(0) })
}

/// A program of these operations, each a step of its own, in each pass.
pub(crate) fn program(kinds: impl IntoIterator<Item = OpKind>) -> WorkerProgram {
    program_every(kinds.into_iter().map(|kind| (1, kind)))
}

/// A program of these operations, each a step of its own with its `every`.
pub(crate) fn program_every(ops: impl IntoIterator<Item = (u32, OpKind)>) -> WorkerProgram {
    let (every, kinds): (Vec<u32>, Vec<OpKind>) = ops.into_iter().unzip();
    let mut program = WorkerProgram::of(kinds);
    program.ops.iter_mut().zip(every).for_each(|(op, every)| op.every = every);
    program
}

/// One access of 8 bytes at a fixed offset.
pub(crate) fn access(kind: AccessKind, at: u64) -> OpKind {
    OpKind::Access { kind, width: Width::U64, at: Address::Fixed(at) }
}

/// Locks of a [`Stage`].
pub(crate) const LOCKS: usize = 4;

/// Workers of a [`Stage`].
pub(crate) const WORKERS: u32 = 2;

/// Bytes of its area: the locks lie in its last half, a pair of lines each.
const AREA_BYTES: u64 = 4096;

/// Memory as a segment has it, with [`LOCKS`] locks of one kind, for loops of worker 0.
pub(crate) struct Stage {
    kind: LockKind,
    map: SegmentMap,
    memory: Vec<Page>,
}

#[derive(Clone)]
#[repr(C, align(4096))]
struct Page([u64; 512]);

impl Stage {
    pub(crate) fn new(kind: LockKind) -> Stage {
        let map = SegmentMap::new(WORKERS, LOCKS as u32, AREA_BYTES).unwrap();
        let mut stage = Stage { kind, map, memory: vec![Page([0; 512]); (map.segment_bytes / 4096) as usize] };
        for lock in 0..LOCKS as u32 {
            // SAFETY: the memory is as large as the map says, aligned to pages, and this test's alone.
            unsafe { lock::initialise(stage.place(lock), kind).unwrap() };
        }
        stage
    }

    fn base(&mut self) -> *mut u8 {
        self.memory.as_mut_ptr().cast()
    }

    fn offset(lock: u32) -> u64 {
        AREA_BYTES / 2 + u64::from(lock) * 128
    }

    pub(crate) fn place(&mut self, lock: u32) -> LockPlace {
        let (nodes, at) = (self.map.lock_nodes_offset(lock).unwrap(), self.map.area_offset + Stage::offset(lock));
        // SAFETY: both lie in the memory, which is as large as the map says.
        unsafe {
            LockPlace { at: self.base().add(at as usize), nodes: self.base().add(nodes as usize), slots: WORKERS }
        }
    }

    /// Where a lock lies, in bytes from the area's first; so are the following.
    pub(crate) fn at(lock: u32) -> i64 {
        Stage::offset(lock) as i64
    }

    /// Where worker 0's queue node of a lock lies.
    pub(crate) fn own_node_at(&self, lock: u32) -> i64 {
        self.map.lock_nodes_offset(lock).unwrap() as i64 - self.map.area_offset as i64
    }

    /// Where the word of worker 0's slot lies that has this offset there.
    pub(crate) fn slot_at(&self, offset: u64) -> i64 {
        (self.map.slot_offset(0).unwrap() + offset) as i64 - self.map.area_offset as i64
    }

    /// A word of a lock's.
    pub(crate) fn lock_word(&mut self, lock: u32, offset: usize) -> &AtomicU32 {
        // SAFETY: inside the lock and aligned; other users touch it as an atomic.
        unsafe { &*self.place(lock).at.add(offset).cast() }
    }

    /// The worker's slot.
    pub(crate) fn slot(&mut self) -> &Slot {
        let offset = self.map.slot_offset(0).unwrap();
        // SAFETY: a slot's bytes, aligned, which are zero or a slot's.
        unsafe { &*self.base().add(offset as usize).cast() }
    }

    /// A word of the area.
    pub(crate) fn word(&mut self, offset: u64) -> u64 {
        // SAFETY: in the area and aligned, and no loop runs.
        unsafe { *self.base().add((self.map.area_offset + offset) as usize).cast() }
    }

    pub(crate) fn sites(&self, timed: bool) -> LockSites {
        let placed = |lock| PlacedLock { name: format!("m{lock}"), kind: self.kind, offset: Stage::offset(lock) };
        let locks = (0..LOCKS as u32).map(placed).collect();
        let whole = Program { timed_locks: timed, area_bytes: AREA_BYTES, locks, ..Program::of([]) };
        LockSites::of(&whole, &self.map, WorkerIndex(0))
    }

    /// Compiles with the test's hooks.
    pub(crate) fn compile(&self, program: &WorkerProgram, timed: bool) -> CompiledLoop {
        CompiledLoop::compile(program, &self.sites(timed), 7, 1.0, &HOOKS).expect("the program compiles")
    }

    pub(crate) fn run(&mut self, compiled: &mut CompiledLoop, context: &mut Context, passes: u64) -> Progress {
        // SAFETY: the memory is a segment's, with initialised locks; the tests place every offset in the area; the
        // context is the one that HOOKS expect.
        unsafe {
            let area = self.base().add(self.map.area_offset as usize);
            compiled.run(area, context.handle(), passes)
        }
    }
}

/// Compiles with the test's hooks and a turn of `work` of one nanosecond.
pub(crate) fn compile(program: &WorkerProgram) -> CompiledLoop {
    CompiledLoop::compile(program, &LockSites::NONE, 7, 1.0, &HOOKS).expect("the program compiles")
}

/// Runs a loop on `area`, whose length bounds the program's offsets.
pub(crate) fn run(compiled: &mut CompiledLoop, area: &mut [u64], context: &mut Context, passes: u64) -> Progress {
    // SAFETY: the tests place every offset inside their area; the context is the one that HOOKS expect.
    unsafe { compiled.run(area.as_mut_ptr().cast(), context.handle(), passes) }
}
