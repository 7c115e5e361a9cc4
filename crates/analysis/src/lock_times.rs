//! Single waits and holds at locks, for whoever writes them out: what the distributions count, and what the mask leaves
//! out of them.

use crate::evictions::Evictions;
use crate::mask::{Masking, role_name};
use plan::{Program, TickRate};
use record::Trace;

/// What a [`LockTime`] is the length of.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum LockSpan {
    /// A contended wait: from the failed first attempt until the lock was owned.
    Wait,
    /// A sampled hold: from owning to releasing.
    Hold,
}

/// One contended wait, or one sampled hold, as its worker logged it, and whether the mask keeps it.
#[derive(Clone, Debug, PartialEq)]
pub struct LockTime<'a> {
    /// The worker's index.
    pub worker: u32,
    /// Its role's name.
    pub role: &'a str,
    /// The lock's name.
    pub lock: &'a str,
    /// Of what.
    pub span: LockSpan,
    /// When it began, nanoseconds after the repetition's window opened.
    pub start_ns: f64,
    /// How long it took, ticks of the TSC: what the worker logged.
    pub ticks: u64,
    /// The same in nanoseconds, rounded: what the distributions count.
    pub ns: u64,
    /// Left out of `wait_ns` and `hold_ns`: it overlaps an eviction, or began before all roles had.
    pub masked: bool,
}

/// Gives every contended wait and every sampled hold of one repetition to `each`: worker by worker, lock by lock, the
/// waits in order and then the holds. [`observe`](crate::observe) counts the same ones.
///
/// # Errors
/// The first that `each` gives, which ends it.
pub fn each_lock_time<E>(
    program: &Program,
    traces: &[Trace],
    clock: TickRate,
    mut each: impl FnMut(LockTime<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let evictions = Evictions::of(traces, clock);
    let masking = Masking::of(program, traces, &evictions, clock);
    for trace in traces {
        let role = role_name(program.worker(trace.worker));
        for of_lock in &trace.locks {
            let lock = masking.lock_name(of_lock);
            let spans = [(LockSpan::Wait, &of_lock.waits), (LockSpan::Hold, &of_lock.holds)];
            for (span, time) in spans.into_iter().flat_map(|(span, times)| times.iter().map(move |time| (span, time))) {
                let after_opening = time.start_ticks as f64 - trace.open_ticks as f64;
                each(LockTime {
                    worker: trace.worker,
                    role: &role,
                    lock: &lock,
                    span,
                    start_ns: after_opening / clock.ticks_per_ns,
                    ticks: time.ticks,
                    ns: masking.ns(time),
                    masked: !masking.counts(time),
                })?;
            }
        }
    }
    Ok(())
}
