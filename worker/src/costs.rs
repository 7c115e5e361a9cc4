//! What operations cost on this worker's CPU when no other worker has a hand in it: the figures that, with the probes
//! of lines between CPUs, make a model of this machine.
//!
//! Each is timed in the very loop that a role would run, compiled by the same translator: how much of an operation a
//! loop of them hides hangs on the instructions. All of it takes a few milliseconds before the repetition's probes,
//! most of that in the translator and in page faults while the workers attach; the timing itself takes half a
//! millisecond.
#![allow(unsafe_code)] // entering compiled code; a system call; a block of additions

mod chase;
mod wake;

use crate::compile::CompiledLoop;
use crate::failure::Failure;
use chase::Chased;
use crossbeam_utils::CachePadded;
use plan::{AccessKind, Address, CpuId, OpKind, Program, TickRate, Width, WorkerProgram};
use record::CostProbe;
use shm_layout::{Segment, WorkerState, ticks};
use std::sync::atomic::AtomicU64;

/// Tries, of which the shortest counts: what disturbs a try only makes it longer.
const TRIES: usize = 5;
/// A try aims at this: a clock read (12 to 40 ns in a virtual machine) is under half a percent of it, and an eviction
/// seldom falls into five of them.
const TRY_NS: f64 = 10_000.0;
/// Calls of one try; some 100 ns each.
const CALLS: u64 = 64;
/// Instructions of one block in the source below.
const BLOCK: u64 = 32;
/// Blocks of one try.
const BLOCKS: u64 = 1_000;

/// The probes of one worker, compiled, and those of its caches, which are timed by then.
pub(crate) struct Costs {
    load: Loop,
    store: Loop,
    bump: Loop,
    atomic: Loop,
    fence: Loop,
    pause: Loop,
    flush: Loop,
    caches: Chased,
}

impl Costs {
    /// Compiles the probes and times the caches of the worker's own CPU, before it says that it has attached.
    ///
    /// # Errors
    /// [`Failure`] as for a role's loop.
    pub(crate) fn prepare(cpu: CpuId) -> Result<Costs, Failure> {
        let access = |kind| OpKind::Access { kind, width: Width::U64, at: Address::Fixed(0) };
        let mut flush = Loop::compile(OpKind::Flush { at: Address::Fixed(0) })?;
        Ok(Costs {
            load: Loop::compile(access(AccessKind::Load))?,
            store: Loop::compile(access(AccessKind::Store))?,
            bump: Loop::compile(access(AccessKind::Bump))?,
            atomic: Loop::compile(access(AccessKind::Add))?,
            fence: Loop::compile(OpKind::Fence)?,
            pause: Loop::compile(OpKind::Pause)?,
            caches: chase::chase(cpu, &mut flush),
            flush,
        })
    }

    /// Times the operations, while the other workers do the same; last, ring neighbours wake each other.
    ///
    /// # Errors
    /// When the repetition is given up.
    pub(crate) fn measure(
        mut self,
        segment: &Segment,
        program: &Program,
        me: &WorkerProgram,
    ) -> Result<CostProbe, Failure> {
        segment.slot(me.index.0).set_state(WorkerState::Probing);
        let rate = segment.tick_rate();
        let ns = |of: &mut Loop| Some(of.ns_a_pass(rate));
        Ok(CostProbe {
            load_ns: ns(&mut self.load),
            store_ns: ns(&mut self.store),
            bump_ns: ns(&mut self.bump),
            atomic_ns: ns(&mut self.atomic),
            fence_ns: ns(&mut self.fence),
            pause_ns: ns(&mut self.pause),
            flush_ns: ns(&mut self.flush),
            instruction_ns: Some(shortest(rate, BLOCK * BLOCKS, additions)),
            clock_ns: Some(shortest(rate, CALLS, clock_reads)),
            syscall_ns: Some(shortest(rate, CALLS, system_calls)),
            futex_ns: Some(shortest(rate, CALLS, || wake::nobody(segment, me))),
            wake_ns: wake::wake_ns(segment, program, me)?,
            ..self.caches.probe(rate)
        })
    }
}

/// A compiled loop of one operation on a line of this worker's own.
pub(crate) struct Loop {
    compiled: CompiledLoop,
    line: Box<CachePadded<AtomicU64>>,
}

impl Loop {
    fn compile(kind: OpKind) -> Result<Loop, Failure> {
        Ok(Loop { compiled: CompiledLoop::of_one(kind).map_err(Failure::compile)?, line: Box::default() })
    }

    /// Nanoseconds a pass: the shortest try.
    fn ns_a_pass(&mut self, rate: TickRate) -> f64 {
        let mut passes = self.compiled.unroll();
        // As many passes as fill a try, found by doubling; the loop is warm by then. The shorter of two: a first call
        // takes a page fault, and an eviction may fall into any.
        let half_a_try = (TRY_NS / 2.0 * rate.ticks_per_ns) as u64;
        while self.ticks(passes).min(self.ticks(passes)) < half_a_try && passes < 1 << 32 {
            passes *= 2;
        }
        let tries = (0..TRIES).map(|_| self.ticks(passes));
        rate.ns(tries.min().unwrap_or(0)) / passes as f64
    }

    fn ticks(&mut self, passes: u64) -> u64 {
        let line = self.line.as_ptr();
        let start = ticks();
        // SAFETY: `line` points to 8 bytes that self owns and nobody else knows of.
        unsafe { self.run_on(line.cast(), passes) };
        ticks() - start
    }

    /// Makes `passes` passes, a multiple of the unrolling, on the eight bytes at `target`.
    ///
    /// # Safety
    /// `target` must point to eight bytes of this process that may be written.
    unsafe fn run_on(&mut self, target: *mut u8, passes: u64) {
        // SAFETY: the loop's one operation takes at most eight bytes at offset 0 of its area, which is `target`: the
        // caller's promise; no operation of it takes the cells.
        unsafe { self.compiled.run(target, std::ptr::null_mut(), passes) };
    }
}

/// Nanoseconds that one of `parts` equal parts of `body` takes: the shortest try.
fn shortest(rate: TickRate, parts: u64, body: impl Fn()) -> f64 {
    let one_try = |_| {
        let start = ticks();
        body();
        ticks() - start
    };
    rate.ns((0..TRIES).map(one_try).min().unwrap_or(0)) / parts as f64
}

/// [`CALLS`] times the clock is read.
fn clock_reads() {
    for _ in 0..CALLS {
        std::hint::black_box(ticks());
    }
}

/// [`CALLS`] times the shortest call that the C library does not answer by itself.
fn system_calls() {
    for _ in 0..CALLS {
        // SAFETY: getppid takes nothing and touches no memory of ours.
        std::hint::black_box(unsafe { libc::syscall(libc::SYS_getppid) });
    }
}

/// [`BLOCKS`] times [`BLOCK`] additions in two chains, which is about what straight code offers a core.
fn additions() {
    let (mut a, mut b) = (0u64, 1u64);
    for _ in 0..BLOCKS {
        (a, b) = block(a, b);
    }
    std::hint::black_box((a, b));
}

/// The additions, of two registers: a core may do away with the addition of a constant.
#[inline(always)]
fn block(mut a: u64, mut b: u64) -> (u64, u64) {
    macro_rules! pairs {
        ($pair:literal) => {
            // SAFETY: additions of registers.
            unsafe {
                core::arch::asm!(
                    $pair, $pair, $pair, $pair, $pair, $pair, $pair, $pair,
                    $pair, $pair, $pair, $pair, $pair, $pair, $pair, $pair,
                    a = inout(reg) a, b = inout(reg) b, step = in(reg) 3u64, options(pure, nomem, nostack)
                );
            }
        };
    }
    #[cfg(target_arch = "x86_64")]
    pairs!("add {a}, {step}\n add {b}, {step}");
    #[cfg(target_arch = "aarch64")]
    pairs!("add {a}, {a}, {step}\n add {b}, {b}, {step}");
    (a, b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_makes_the_passes_that_it_is_timed_for() {
        let add = OpKind::Access { kind: AccessKind::Add, width: Width::U64, at: Address::Fixed(0) };
        let mut add = Loop::compile(add).unwrap();
        let passes = 8 * add.compiled.unroll();
        add.ticks(passes);
        assert_eq!(add.line.load(std::sync::atomic::Ordering::Relaxed), passes);
        let rate = shm_layout::calibrate(std::time::Duration::from_millis(5));
        let ns = add.ns_a_pass(rate);
        // No CPU adds atomically in a hundredth of a nanosecond, and none takes a millisecond.
        assert!(ns > 0.01 && ns < 1e6, "{ns}");
    }

    #[test]
    fn a_block_makes_its_additions() {
        let pairs = BLOCK / 2;
        assert_eq!(block(0, 1), (3 * pairs, 3 * pairs + 1));
    }
}
