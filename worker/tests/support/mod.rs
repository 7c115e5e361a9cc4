//! A worker's surroundings for tests: an area of memory, hooks that write down what was called, and short programs.
#![allow(dead_code)] // each test file uses a part of it

use plan::{AccessKind, Address, CpuId, Nanos, Op, OpKind, Width, WorkerIndex, WorkerProgram};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};
use worker::compile::{CompiledLoop, Hooks, Progress};

/// What the hooks are handed: the word that ends a blocking loop comes first.
#[repr(C)]
#[derive(Default)]
pub(crate) struct Context {
    /// Nonzero ends a blocking loop after its pass.
    pub(crate) break_now: AtomicU32,
    /// Spins that `spin` allows before it gives up.
    pub(crate) patience: u64,
    /// Yields after which `break_now` is set; 0 is never.
    pub(crate) break_after_yields: usize,
    /// Whether `lock` says that it is not owned.
    pub(crate) times_out: bool,
    /// Times that `unlock` sends a reader back.
    pub(crate) retries: u32,
    /// Calls in order.
    pub(crate) log: Vec<Called>,
}

/// One call of a hook.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Called {
    /// `lock` of an index, as a reader or not, with a timeout in nanoseconds or 0.
    Lock(u32, bool, u64),
    /// `unlock` of an index, as a reader or not.
    Unlock(u32, bool),
    /// `yield`.
    Yield,
    /// `tick`.
    Tick,
    /// `sleep` of so many nanoseconds.
    Sleep(u64),
    /// `touch` of a region by index.
    Touch(u32),
    /// `die`: writes it down, and lives.
    Die,
}

/// Calls of hooks after which a `tick` gives up.
pub(crate) const TICKS_BEFORE_GIVING_UP: usize = 100;

/// The names of the functions that a loop calls.
pub(crate) const NAMES: [&str; 10] =
    ["lock", "unlock", "spin", "tick", "yield", "sleep", "touch", "die", "pause", "flush"];

/// Hooks that write to the [`Context`].
pub(crate) const HOOKS: Hooks = Hooks { lock, unlock, spin, tick, yield_now, sleep, touch, die };

/// # Safety
/// `context` points to a [`Context`] that only the calling thread uses, as [`run`] sees to.
unsafe fn context<'a>(context: *mut c_void) -> &'a mut Context {
    // SAFETY: see above.
    unsafe { &mut *context.cast::<Context>() }
}

unsafe extern "C" fn lock(c: *mut c_void, lock: u32, shared: u32, timeout_ns: u64) -> u32 {
    // SAFETY: the loop hands through what `run` gave it.
    let context = unsafe { context(c) };
    context.log.push(Called::Lock(lock, shared != 0, timeout_ns));
    u32::from(!context.times_out)
}

unsafe extern "C" fn unlock(c: *mut c_void, lock: u32, shared: u32) -> u32 {
    // SAFETY: as in `lock`.
    let context = unsafe { context(c) };
    context.log.push(Called::Unlock(lock, shared != 0));
    let again = context.retries > 0;
    context.retries = context.retries.saturating_sub(1);
    u32::from(again)
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
        context.break_now.store(1, Ordering::Relaxed);
    }
}

unsafe extern "C" fn sleep(c: *mut c_void, ns: u64) {
    // SAFETY: as in `lock`.
    unsafe { context(c) }.log.push(Called::Sleep(ns));
}

unsafe extern "C" fn touch(c: *mut c_void, region: u32) {
    // SAFETY: as in `lock`.
    unsafe { context(c) }.log.push(Called::Touch(region));
}

unsafe extern "C" fn die(c: *mut c_void) {
    // SAFETY: as in `lock`.
    unsafe { context(c) }.log.push(Called::Die);
}

/// A program of these operations, each a step of its own, in each pass.
pub(crate) fn program(kinds: impl IntoIterator<Item = OpKind>) -> WorkerProgram {
    program_every(kinds.into_iter().map(|kind| (1, kind)))
}

/// A program of these operations, each a step of its own with its `every`.
pub(crate) fn program_every(ops: impl IntoIterator<Item = (u32, OpKind)>) -> WorkerProgram {
    let ops: Vec<Op> = ops.into_iter().zip(0..).map(|((every, kind), step)| Op { every, step, kind }).collect();
    WorkerProgram {
        process: 0,
        period: None,
        latency: false,
        index: WorkerIndex(0),
        role: 0,
        role_name: "role".to_owned(),
        cpu: CpuId(0),
        after: Nanos(0),
        steps: ops.iter().map(|op| format!("{:?}", op.kind)).collect(),
        ops,
    }
}

/// One access of 8 bytes at a fixed offset.
pub(crate) fn access(kind: AccessKind, at: u64) -> OpKind {
    OpKind::Access { kind, width: Width::U64, at: Address::Fixed(at) }
}

/// Compiles with the test's hooks and a turn of `work` of one nanosecond.
pub(crate) fn compile(program: &WorkerProgram) -> CompiledLoop {
    CompiledLoop::compile(program, 7, 1.0, &HOOKS).expect("the program compiles")
}

/// Runs a loop on `area`, whose length bounds the program's offsets.
pub(crate) fn run(compiled: &mut CompiledLoop, area: &mut [u64], context: &mut Context, passes: u64) -> Progress {
    // SAFETY: the tests place every offset inside their area; the context is the one that HOOKS expect.
    unsafe { compiled.run(area.as_mut_ptr().cast(), (context as *mut Context).cast(), passes) }
}
