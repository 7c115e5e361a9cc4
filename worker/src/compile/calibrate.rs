//! How long a turn of `work` takes on this CPU.
#![allow(unsafe_code)]
// SAFETY of this module: it runs a loop of one `work`, which touches no memory and calls no hook.

use super::{CompileError, CompiledLoop};
use plan::{Nanos, OpKind};
use std::time::Instant;

/// Turns of one timed try: some 13 µs, so that two clock reads weigh under 1 % and an interrupt seldom falls in.
const TURNS: u64 = 10_000;

/// Tries, of which the shortest counts: what disturbs a try only makes it longer.
const TRIES: u32 = 32;

/// Nanoseconds that a turn of `work`'s arithmetic chain takes on the present CPU, of the monotonic clock: the compiled
/// chain itself, the shortest of several tries. Call it after pinning. Takes under a millisecond beside the
/// compilation. What it does not show: a later change of the core's clock.
///
/// # Errors
/// As [`CompiledLoop::compile`].
pub fn work_turn_ns() -> Result<f64, CompileError> {
    let mut chain = CompiledLoop::of_one(OpKind::Work(Nanos(TURNS)))?;
    let mut shortest = f64::INFINITY;
    for _ in 0..TRIES {
        let start = Instant::now();
        // SAFETY: the program has no step that touches the area, calls a hook or looks at the context.
        unsafe { chain.run(std::ptr::null_mut(), std::ptr::null_mut(), chain.unroll()) };
        let turns = chain.unroll() * TURNS;
        shortest = shortest.min(start.elapsed().as_nanos() as f64 / turns as f64);
    }
    Ok(shortest)
}
