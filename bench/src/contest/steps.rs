//! The contests over one step: the compiled loop against C, and under counters against itself.
#![allow(unsafe_code)]
// SAFETY of this module: the C functions touch their word and their state alone, and so does the compiled loop.

use crate::contest::{Contest, Setting, Side, Sides};
use counters::{Counters, Order};
use plan::{AccessKind, Address, CpuId, Nanos, Op, OpKind, Width, WorkerIndex, WorkerProgram};
use worker::compile::{CompileError, CompiledLoop, Hooks, LockSites};

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

/// Byte offset of a process's word: on a pair of lines of its own, or beside the other's.
pub(crate) fn word_offset(setting: Setting, process: usize) -> usize {
    let apart = if setting == Setting::Packed { size_of::<u64>() } else { plan::LINE_PAIR_BYTES as usize };
    process * apart
}

/// Both sides of one step in one process, on one word.
pub(crate) struct Contestants {
    /// In a contest of counting, what counts.
    counters: Option<Counters>,
    in_c: unsafe extern "C" fn(*mut u64, u64, *mut u64),
    c_state: u64,
    compiled: CompiledLoop,
    word: *mut u64,
    made: u64,
}

impl Contestants {
    /// Compiles the step for this process, which is pinned, and opens what `orders` say where counting is at stake.
    ///
    /// # Safety
    /// `word` must stay mapped and writable as long as this lives, with only atomic or volatile accesses by others.
    pub(crate) unsafe fn new(
        contest: Contest,
        step: &Step,
        word: *mut u64,
        orders: &[Order],
    ) -> Result<Contestants, CompileError> {
        let compiled = compile(step)?;
        // SAFETY: a constant that nobody writes.
        let in_c = unsafe { c_passes_per_iteration };
        assert_eq!(compiled.unroll(), in_c, "bench/c/loops.c must repeat the step as often as the compiled loop does");
        let counters = (contest == Contest::Counting).then(|| Counters::open(orders));
        Ok(Contestants { counters, in_c: step.in_c, c_state: 0, compiled, word, made: 0 })
    }

    /// How many counters counted; 0 where the contest is another.
    pub(crate) fn counted(&mut self) -> u64 {
        let Some(counters) = &mut self.counters else { return 0 };
        counters.read().values().filter(|reading| reading.value().is_some()).count() as u64
    }
}

impl Sides for Contestants {
    /// Sets the counters going for a contestant's slice and leaves them still for a reference's.
    fn begin(&mut self, side: Side) {
        if let Some(counters) = self.counters.as_mut().filter(|_| side == Side::Contestant) {
            counters.enable();
        }
    }

    fn run(&mut self, side: Side, passes: u64) -> Result<(), String> {
        self.made += passes;
        match side {
            // SAFETY: the word is mapped by the promise made to `new`; passes is what loops.c asks for.
            Side::Reference if self.counters.is_none() => unsafe {
                (self.in_c)(self.word, passes, &raw mut self.c_state);
            },
            // SAFETY: the program has one access, 8 bytes at offset 0 of the word; it calls no hook and cannot block.
            Side::Contestant | Side::Reference => unsafe {
                self.compiled.run(self.word.cast(), std::ptr::null_mut(), passes);
            },
        }
        Ok(())
    }

    fn made(&self, _side: Side) -> u64 {
        self.made
    }

    /// The counters stand still again.
    fn end(&mut self, side: Side) {
        if let Some(counters) = self.counters.as_mut().filter(|_| side == Side::Contestant) {
            counters.disable();
        }
    }
}

/// The step as a worker would run it, its word at offset 0 of the area.
pub(crate) fn compile(step: &Step) -> Result<CompiledLoop, CompileError> {
    let kind = OpKind::Access { kind: step.kind, width: Width::U64, at: Address::Fixed(0) };
    let program = WorkerProgram {
        process: 0,
        period: None,
        latency: false,
        index: WorkerIndex(0),
        role: 0,
        role_name: "bench".to_owned(),
        cpu: CpuId(0),
        after: Nanos(0),
        populate: vec![],
        steps: vec![format!("{} word", step.name)],
        ops: vec![Op { every: 1, step: 0, kind }],
    };
    CompiledLoop::compile(&program, &LockSites::NONE, 1, 1.0, &Hooks::UNUSED)
}
