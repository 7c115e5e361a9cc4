//! The two sides: a step's loop in C, and the same step compiled by the worker.
#![allow(unsafe_code)]
// SAFETY of this module: the C functions touch their word and their state alone, and so does the compiled loop.

use plan::{AccessKind, Address, CpuId, Nanos, Op, OpKind, Width, WorkerIndex, WorkerProgram};
use worker::compile::{CompileError, CompiledLoop, Hooks};

/// A step that both sides know.
#[derive(Copy, Clone)]
pub(crate) struct Step {
    /// As scenarios spell it.
    pub(crate) name: &'static str,
    kind: AccessKind,
    in_c: unsafe extern "C" fn(*mut u64, u64, *mut u64),
}

/// The steps under comparison.
pub(crate) const STEPS: [Step; 5] = [
    Step { name: "load", kind: AccessKind::Load, in_c: c_load },
    Step { name: "store", kind: AccessKind::Store, in_c: c_store },
    Step { name: "bump", kind: AccessKind::Bump, in_c: c_bump },
    Step { name: "add", kind: AccessKind::Add, in_c: c_add },
    Step { name: "cas", kind: AccessKind::Cas, in_c: c_cas },
];

unsafe extern "C" {
    static c_passes_per_iteration: u64;
    fn c_load(word: *mut u64, passes: u64, state: *mut u64);
    fn c_store(word: *mut u64, passes: u64, state: *mut u64);
    fn c_bump(word: *mut u64, passes: u64, state: *mut u64);
    fn c_add(word: *mut u64, passes: u64, state: *mut u64);
    fn c_cas(word: *mut u64, passes: u64, state: *mut u64);
}

/// Where the two processes' words lie.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    /// Each on a pair of lines of its own.
    Padded,
    /// Side by side in one line.
    Packed,
}

impl Placement {
    /// As results spell it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Placement::Padded => "padded",
            Placement::Packed => "packed",
        }
    }

    /// Byte offset of a process's word.
    pub(crate) fn offset(self, process: usize) -> usize {
        process
            * match self {
                Placement::Padded => plan::LINE_PAIR_BYTES as usize,
                Placement::Packed => size_of::<u64>(),
            }
    }
}

/// Who runs a slice.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The C function.
    C,
    /// The compiled loop.
    Compiled,
}

/// Both sides of one step in one process, on one word.
pub(crate) struct Contestants {
    in_c: unsafe extern "C" fn(*mut u64, u64, *mut u64),
    c_state: u64,
    compiled: CompiledLoop,
    word: *mut u64,
}

impl Contestants {
    /// Compiles the step for this process.
    ///
    /// # Safety
    /// `word` must stay mapped and writable as long as this lives, with only atomic or volatile accesses by others.
    pub(crate) unsafe fn new(step: &Step, word: *mut u64) -> Result<Contestants, CompileError> {
        let compiled = compile(step)?;
        // SAFETY: a constant that nobody writes.
        let in_c = unsafe { c_passes_per_iteration };
        assert_eq!(compiled.unroll(), in_c, "bench/c/loops.c must repeat the step as often as the compiled loop does");
        Ok(Contestants { in_c: step.in_c, c_state: 0, compiled, word })
    }

    /// Makes `passes` passes, a multiple of 8 above 0.
    #[inline(always)]
    pub(crate) fn run(&mut self, side: Side, passes: u64) {
        match side {
            // SAFETY: the word is mapped by the promise made to `new`; passes is what loops.c asks for.
            Side::C => unsafe { (self.in_c)(self.word, passes, &raw mut self.c_state) },
            // SAFETY: the program has one access, 8 bytes at offset 0 of the word; it calls no hook and cannot block.
            Side::Compiled => unsafe {
                self.compiled.run(self.word.cast(), std::ptr::null_mut(), passes);
            },
        }
    }
}

/// The step as a worker would run it, its word at offset 0 of the area.
pub(crate) fn compile(step: &Step) -> Result<CompiledLoop, CompileError> {
    let kind = OpKind::Access { kind: step.kind, width: Width::U64, at: Address::Fixed(0) };
    let program = WorkerProgram {
        index: WorkerIndex(0),
        role: 0,
        role_name: "bench".to_owned(),
        cpu: CpuId(0),
        after: Nanos(0),
        steps: vec![format!("{} word", step.name)],
        ops: vec![Op { every: 1, step: 0, kind }],
    };
    CompiledLoop::compile(&program, 1, 1.0, &Hooks::UNUSED)
}
