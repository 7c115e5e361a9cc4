//! The compiled loop: a worker's program as machine code, with nothing added to it and nothing taken away.
//!
//! A padded `bump` costs a third of a nanosecond; dispatching it would cost more and hide the effect under study. So
//! each worker translates its [`WorkerProgram`] once, and the translator must not improve it: every step touches
//! memory exactly as `docs/steps.md` tables, repeats included. `tests/accesses.rs` decodes the emitted code and
//! compares the two.
//!
//! Cranelift runs at `opt_level = none`, so nothing is merged or dropped; reads are atomic loads, which its x86-64
//! back end never folds into another instruction, and writes are plain stores (its atomic store brings an `mfence`).
//! The address of the fields area stays in one register and each access is that register plus a displacement, or
//! plus an index register for `[any]`. What the loop must remember (counters of `every`, expectations of `cas`, words
//! that a `wait` last saw, the random state) lives in registers and in memory of the worker's own, never in the
//! segment, but for what is a lock's. The segment is never executable; the code is writable or executable, never both.
#![allow(unsafe_code)]
// SAFETY of this module: the emitted code touches the fields area only at offsets of the program, which the caller of
// `CompiledLoop::run` has checked against the area's size, and locks, nodes and the worker's slot where the segment's
// map puts them (`LockSites`); everything else it touches belongs to `CompiledLoop` or is the row of cells that the
// caller hands through.

mod atomics;
mod calibrate;
mod calls;
mod cells;
mod cpu;
mod emit;
mod listing;
mod locking;
mod private;
mod sites;
mod unroll;

use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{FuncId, Linkage, Module, ModuleError};
use plan::{Address, OpKind, WorkerProgram};
use std::ffi::c_void;

pub use calibrate::work_turn_ns;
pub use cells::{LockCell, NEVER, Tally};
pub use listing::{Line, Listing};
pub use sites::LockSites;

/// What a loop calls where a step is not an instruction. The functions run on the worker's own thread; `context` is
/// the pointer given to [`CompiledLoop::run`]: the first [`LockCell`].
#[derive(Copy, Clone, Debug)]
pub struct Hooks {
    /// Acquires the lock of that index in [`plan::Program::locks`], whose first attempt came to `told`
    /// ([`shm_layout::lock::FastPath`]); `shared`: 1 as a reader, 0 exclusively. It returns 0 where it is not owned.
    /// With a `timeout_ns` other than 0 the loop then goes on behind the matching release; without, the pass is given
    /// up.
    pub lock: unsafe extern "C" fn(context: *mut c_void, lock: u32, shared: u32, timeout_ns: u64, told: i64) -> u32,
    /// Releases it, where its cell asks for the hook ([`LockCell::by_hook`]), where a queue has a successor, where a
    /// sequence lock's count has moved, and where a pass that holds it is given up. `told` is what the acquisition left
    /// to remember. Nonzero, of a reader alone: what was read may be torn, it is held anew, and the loop goes back to
    /// behind the matching acquisition.
    pub unlock: unsafe extern "C" fn(context: *mut c_void, lock: u32, shared: u32, told: i64) -> u32,
    /// Does what a release by the loop itself left to do, which came to `told`.
    pub released: unsafe extern "C" fn(context: *mut c_void, lock: u32, told: i64),
    /// The loop has acquired it exclusively by itself, and its owner record names another, or nobody.
    pub handoff: unsafe extern "C" fn(context: *mut c_void, lock: u32),
    /// It is acquired, and counted, and this is the acquisition that its cell says to sample ([`Tally::sample_at`]).
    pub sample: unsafe extern "C" fn(context: *mut c_void, lock: u32, shared: u32),
    /// One turn of a `wait`'s spin: pauses the CPU, looks at the clock and at the stop word. Nonzero: give up.
    pub spin: unsafe extern "C" fn(context: *mut c_void) -> u32,
    /// Between two chunks of a long `work`: looks at the clock and at the stop word. Nonzero: give up.
    pub tick: unsafe extern "C" fn(context: *mut c_void) -> u32,
    /// Gives up the CPU once.
    pub yield_now: unsafe extern "C" fn(context: *mut c_void),
    /// Sleeps at least `ns` nanoseconds.
    pub sleep: unsafe extern "C" fn(context: *mut c_void, ns: u64),
    /// Makes one pass's share of the step on a region that is the operation of that index in
    /// [`WorkerProgram::ops`].
    pub memory: unsafe extern "C" fn(context: *mut c_void, op: u32),
    /// Ends the process at once, with what it holds.
    pub die: unsafe extern "C" fn(context: *mut c_void),
}

impl Hooks {
    /// For loops that call none: each does nothing (a lock is always owned), and a spin or a tick gives up.
    pub const UNUSED: Hooks = {
        unsafe extern "C" fn lock(_: *mut c_void, _: u32, _: u32, _: u64, _: i64) -> u32 {
            1
        }
        unsafe extern "C" fn unlock(_: *mut c_void, _: u32, _: u32, _: i64) -> u32 {
            0
        }
        unsafe extern "C" fn released(_: *mut c_void, _: u32, _: i64) {}
        unsafe extern "C" fn sample(_: *mut c_void, _: u32, _: u32) {}
        unsafe extern "C" fn memory(_: *mut c_void, _: u32) {}
        unsafe extern "C" fn give_up(_: *mut c_void) -> u32 {
            1
        }
        unsafe extern "C" fn yield_now(_: *mut c_void) {}
        unsafe extern "C" fn sleep(_: *mut c_void, _: u64) {}
        Hooks {
            lock,
            unlock,
            released,
            handoff: memory,
            sample,
            spin: give_up,
            tick: give_up,
            yield_now,
            sleep,
            memory,
            die: yield_now,
        }
    };
}

/// Why a program could not be compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The instruction set is one that the lab has no steps for.
    #[error("cannot compile a loop for {arch}: only x86_64 and aarch64 are supported; run on one of those")]
    Unsupported {
        /// The architecture.
        arch: &'static str,
    },
    /// An operation that no bound Program holds.
    #[error("step {step} (`{text}`) cannot be compiled: {why}; bind the scenario again with this version of the lab")]
    InvalidOp {
        /// Index of the step.
        step: u32,
        /// The step as written.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// The length of a turn of `work` is no length.
    #[error("a turn of `work` cannot take {ns} ns: calibrate it on the worker's CPU first")]
    Calibration {
        /// The value given.
        ns: f64,
    },
    /// The system refuses memory that holds code.
    #[error(
        "the system denies executable memory to this process ({why}), and the loop is machine code: allow it \
         (systemd: MemoryDenyWriteExecute=no; SELinux: the `execmem` permission; prctl: no PR_SET_MDWE; \
         a container's seccomp profile must let mprotect set PROT_EXEC) or run outside that confinement"
    )]
    ExecutableMemoryDenied {
        /// The failed call's message, with its errno.
        why: String,
    },
    /// Cranelift refused the loop: a fault of the lab.
    #[error(
        "the code generator refused the loop ({why}): this is a fault in the lab, please report it with the scenario"
    )]
    Refused {
        /// The code generator's message.
        why: String,
    },
}

/// How far [`CompiledLoop::run`] came.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Passes completed.
    pub passes: u64,
    /// The step whose `wait` or long `work` was given up in the pass after those; `None` where the last pass is
    /// complete.
    pub gave_up_in: Option<u32>,
}

/// The signature of the emitted function: area, first cell, private words, the number of passes at which to end.
type Entry = unsafe extern "C" fn(*mut u8, *mut LockCell, *mut u64, u64);

/// A worker's program as machine code, with what it remembers between runs. Owned by the worker's own process.
pub struct CompiledLoop {
    /// Owns the code's pages; `None` only while dropping.
    module: Option<JITModule>,
    entry: Entry,
    code_bytes: usize,
    private: Vec<u64>,
    unroll: u64,
    origins: Vec<listing::Origin>,
    steps: Vec<String>,
    called: Vec<(&'static str, usize)>,
}

impl CompiledLoop {
    /// Compiles one worker's program, whose locks are found at `sites`. `seed` and the worker's index start the
    /// generator of `[any]`; `work_ns_per_turn` is what [`work_turn_ns`] said on the worker's CPU, and a `work` of T
    /// takes T divided by it turns, rounded. Takes under 2 ms for a short loop: call it before the warm-up.
    ///
    /// # Errors
    /// [`CompileError::ExecutableMemoryDenied`] where the system allows no executable memory; the others are faults
    /// in what was passed, or in the lab.
    pub fn compile(
        program: &WorkerProgram,
        sites: &LockSites,
        seed: u64,
        work_ns_per_turn: f64,
        hooks: &Hooks,
    ) -> Result<CompiledLoop, CompileError> {
        check(program, sites, work_ns_per_turn)?;
        let unroll = unroll::passes_per_iteration(program);
        let private = private::Private::of(program, sites, seed);
        let mut module = JITModule::new(builder()?);
        let mut context = module.make_context();
        let calls = calls::Calls::new(hooks, program, sites);
        let called = calls.named();
        let source = emit::Source { program, sites, unroll, work_ns_per_turn };
        emit::emit(&mut module, &mut context, &source, &private, &calls);
        let id = define(&mut module, &mut context)?;
        let buffer = &context.compiled_code().expect("define_function leaves the code in its context").buffer;
        let (code_bytes, origins) = (buffer.data().len(), listing::origins(buffer, program));
        module.finalize_definitions().map_err(denied)?;
        // SAFETY: the function was declared with exactly this signature by `emit`, and is finalized.
        let entry = unsafe { std::mem::transmute::<*const u8, Entry>(module.get_finalized_function(id)) };
        Ok(CompiledLoop {
            module: Some(module),
            entry,
            code_bytes,
            private: private.into_words(),
            unroll,
            origins,
            steps: program.steps.clone(),
            called,
        })
    }

    /// Compiles a loop of this one operation, as the probes time it, which calls no hook and cannot block. A turn of
    /// its `work` stands for a nanosecond: so many turns it makes.
    ///
    /// # Errors
    /// As [`CompiledLoop::compile`].
    pub(crate) fn of_one(kind: OpKind) -> Result<CompiledLoop, CompileError> {
        CompiledLoop::compile(&WorkerProgram::of([kind]), &LockSites::NONE, 0, 1.0, &Hooks::UNUSED)
    }

    /// Passes that one iteration of the emitted loop makes: a power of two, 1 where a pass can block.
    pub fn unroll(&self) -> u64 {
        self.unroll
    }

    /// Makes `passes` passes, a multiple of [`CompiledLoop::unroll`]; fewer where a pass can block
    /// ([`WorkerProgram::can_block`]) and a hook has set [`LockCell::last_pass`] to 0, or where a `wait`, a lock or a
    /// long `work` is given up. What steps remember carries over from one run to the next; a pass that was given up
    /// does not, and the next run begins a new one.
    ///
    /// # Panics
    /// If `passes` is no multiple of the unrolling.
    ///
    /// # Safety
    /// `area` must point to the program's fields area, writable, of at least `area_bytes` bytes, and every offset in
    /// the program must have been checked to lie in it. `cells` must be the first of a row of [`LockCell`]s, one for
    /// each lock of the Program, which this thread alone uses, and whose context is what the hooks expect; a loop that
    /// calls no hook and cannot block needs none. Other processes may access the area at the same time.
    ///
    /// A program with locks needs more: the area is that of a segment with the map that its [`LockSites`] were made
    /// for, in which all locks are initialised, and no other loop has acquired locks as this worker in that segment.
    pub unsafe fn run(&mut self, area: *mut u8, cells: *mut LockCell, passes: u64) -> Progress {
        assert!(passes.is_multiple_of(self.unroll), "{passes} passes are no multiple of {}", self.unroll);
        if passes == 0 {
            return Progress { passes: 0, gave_up_in: None };
        }
        self.private[private::GAVE_UP] = 0;
        let before = self.private[private::MADE];
        // SAFETY: the code outlives the call (`module` is owned by self); `private` is as long as the layout that the
        // code was emitted for; area and cells are the caller's promise.
        unsafe { (self.entry)(area, cells, self.private.as_mut_ptr(), before + passes) };
        let gave_up_in = (self.private[private::GAVE_UP] as u32).checked_sub(1);
        Progress { passes: self.private[private::MADE] - before, gave_up_in }
    }

    /// The emitted code as assembly, each line with the step it came from, for `run --show-code`.
    pub fn listing(&self) -> Listing {
        Listing::of(self)
    }

    /// The emitted machine code, at the address at which it runs.
    pub fn code(&self) -> &[u8] {
        // SAFETY: the code's pages stay mapped, readable and unwritten as long as `module` lives, which self owns.
        unsafe { std::slice::from_raw_parts(self.entry as *const u8, self.code_bytes) }
    }

    /// Name and address of each function that the loop may call: the hooks, `pause`, `flush`, and those of the C
    /// library that its locks are.
    pub fn called(&self) -> &[(&'static str, usize)] {
        &self.called
    }
}

impl Drop for CompiledLoop {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: the only pointer into the code is `entry`, which nothing can call any more.
            unsafe { module.free_memory() };
        }
    }
}

/// The translator's settings: see the module's text for why it must not optimise.
fn builder() -> Result<JITBuilder, CompileError> {
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        return Err(CompileError::Unsupported { arch: std::env::consts::ARCH });
    }
    let verifier = if cfg!(debug_assertions) { "true" } else { "false" };
    JITBuilder::with_flags(
        &[("opt_level", "none"), ("enable_verifier", verifier)],
        cranelift_module::default_libcall_names(),
    )
    .map_err(refused)
}

fn define(module: &mut JITModule, context: &mut cranelift_codegen::Context) -> Result<FuncId, CompileError> {
    let id = module.declare_function("pass_loop", Linkage::Local, &context.func.signature).map_err(refused)?;
    module.define_function(id, context).map_err(|error| match error {
        ModuleError::Allocation { .. } => denied(error),
        other => refused(other),
    })?;
    Ok(id)
}

/// Refuses what no bound Program holds, so that a damaged one cannot make the emitted code go astray.
fn check(program: &WorkerProgram, sites: &LockSites, work_ns_per_turn: f64) -> Result<(), CompileError> {
    if !(work_ns_per_turn.is_finite() && work_ns_per_turn > 0.0) {
        return Err(CompileError::Calibration { ns: work_ns_per_turn });
    }
    for (index, op) in program.ops.iter().enumerate() {
        let text = program.steps.get(op.step as usize).cloned().unwrap_or_default();
        let fail = |why: &str| Err(CompileError::InvalidOp { step: op.step, text: text.clone(), why: why.to_owned() });
        if op.every == 0 {
            return fail("`every 0` is never");
        }
        let offsets: &[u64] = match &op.kind {
            OpKind::Access { at: Address::Any(offsets), .. } | OpKind::Flush { at: Address::Any(offsets) } => {
                if offsets.is_empty() {
                    return fail("`[any]` of no elements");
                }
                offsets
            }
            OpKind::Access { at: Address::Fixed(at), .. } | OpKind::Flush { at: Address::Fixed(at) } => {
                std::slice::from_ref(at)
            }
            OpKind::Post { at, .. } | OpKind::Wait { at, .. } => std::slice::from_ref(at),
            OpKind::Lock { lock, shared, .. } | OpKind::Unlock { lock, shared } => {
                if let Err(why) = check_lock(program, sites, index, *lock, *shared) {
                    return fail(why);
                }
                &[]
            }
            _ => &[],
        };
        if offsets.iter().any(|&at| i32::try_from(at).is_err()) {
            return fail("its target lies 2 GiB or more into the fields area, beyond a displacement's reach");
        }
    }
    if program.ops.is_empty() {
        return Err(CompileError::InvalidOp { step: 0, text: String::new(), why: "a pass without a step".to_owned() });
    }
    Ok(())
}

/// The same of a step that takes or releases a lock: code in line relies on each being taken once, and released as
/// taken.
fn check_lock(
    program: &WorkerProgram,
    sites: &LockSites,
    index: usize,
    lock: u32,
    shared: bool,
) -> Result<(), &'static str> {
    let held = locking::held_at(&program.ops, index).into_iter().find(|&(held, _)| held == lock);
    let takes = matches!(program.ops[index].kind, OpKind::Lock { .. });
    match sites.distances(lock) {
        None => return Err("there is no such lock"),
        Some(distances) if distances.iter().any(|&at| i32::try_from(at).is_err()) => {
            return Err("its lock lies 2 GiB or more from the slots, beyond a displacement's reach");
        }
        Some(_) => {}
    }
    match held {
        _ if program.ops[index].every != 1 => Err("locks are taken and released in every pass"),
        Some(_) if takes => Err("the pass holds that lock already"),
        None if !takes => Err("the pass does not hold that lock"),
        Some((_, taken_shared)) if taken_shared != shared => Err("the pass holds that lock as the other part"),
        _ => Ok(()),
    }
}

/// An error with everything beneath it, on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

fn denied(error: ModuleError) -> CompileError {
    CompileError::ExecutableMemoryDenied { why: chain(&error) }
}

fn refused(error: ModuleError) -> CompileError {
    CompileError::Refused { why: chain(&error) }
}
