//! How long a worker takes to compile a loop of one step.

use crate::contest;
use std::time::Instant;

/// Milliseconds: the first in this process, and twenty more.
pub(crate) fn times_ms() -> (f64, Vec<f64>) {
    let took_ms = || {
        let start = Instant::now();
        contest::compile_a_step();
        start.elapsed().as_secs_f64() * 1e3
    };
    (took_ms(), (0..20).map(|_| took_ms()).collect())
}

/// In a sentence.
pub(crate) fn text() -> String {
    let (first, later) = times_ms();
    let later = crate::order::median(later).unwrap_or(f64::NAN);
    format!("compiling a loop of one step: first {first:.2} ms, then {later:.2} ms")
}
