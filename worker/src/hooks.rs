//! The functions that the compiled loop calls where a step has no instruction of its own.
#![allow(unsafe_code)] // called from compiled code with the context's address

use crate::compile::{Hooks, LockCell};
use crate::context::Context;
use crate::locks::slow_path;
use crate::region;
use shm_layout::ticks;
use std::ffi::c_void;
use std::time::Duration;

/// Spins of a `wait` between two clock reads: a pause takes 10 to 50 ns, so they come each 0.5 to 3 us.
const SPINS_A_READ: u32 = 64;

/// The hooks of a worker; the context of their first cell is the worker's own state.
pub fn hooks() -> Hooks {
    Hooks { lock, unlock, released, handoff, sample, spin, tick, yield_now, sleep, memory, die }
}

/// Borrows the context for the length of one hook.
///
/// # Safety
/// `first` is what the runtime gave to `CompiledLoop::run`, from [`Context::handle`], and nobody holds a reference to
/// that context meanwhile.
unsafe fn borrow<'a>(first: *mut c_void) -> &'a mut Context<'a> {
    // SAFETY: by contract.
    unsafe { &mut *(*first.cast::<LockCell>()).context.get().cast::<Context<'a>>() }
}

unsafe extern "C" fn lock(context: *mut c_void, index: u32, shared: u32, timeout_ns: u64, told: i64) -> u32 {
    // SAFETY: called by the compiled loop alone, with the context it was given.
    let context = unsafe { borrow(context) };
    let timeout = (timeout_ns > 0).then(|| Duration::from_nanos(timeout_ns));
    let owned = slow_path::acquire(context, index, shared != 0, timeout, told);
    stop_after_pass_if_told(context);
    u32::from(owned)
}

unsafe extern "C" fn unlock(context: *mut c_void, index: u32, shared: u32, told: i64) -> u32 {
    // SAFETY: as in `lock`.
    u32::from(slow_path::release(unsafe { borrow(context) }, index, shared != 0, told))
}

unsafe extern "C" fn released(context: *mut c_void, index: u32, told: i64) {
    // SAFETY: as in `lock`.
    slow_path::finish_release(unsafe { borrow(context) }, index, told);
}

unsafe extern "C" fn handoff(context: *mut c_void, index: u32) {
    // SAFETY: as in `lock`.
    slow_path::hand_off(unsafe { borrow(context) }, index);
}

unsafe extern "C" fn sample(context: *mut c_void, index: u32, shared: u32) {
    // SAFETY: as in `lock`.
    slow_path::sample(unsafe { borrow(context) }, index, shared != 0);
}

unsafe extern "C" fn spin(context: *mut c_void) -> u32 {
    std::hint::spin_loop();
    // SAFETY: as in `lock`.
    let context = unsafe { borrow(context) };
    context.spins = context.spins.wrapping_add(1);
    if context.spins.is_multiple_of(SPINS_A_READ) {
        context.read_inside_batch(ticks());
        return u32::from(context.segment.control().must_stop());
    }
    0
}

unsafe extern "C" fn tick(context: *mut c_void) -> u32 {
    // SAFETY: as in `lock`.
    let context = unsafe { borrow(context) };
    context.read_inside_batch(ticks());
    u32::from(context.segment.control().must_stop())
}

unsafe extern "C" fn yield_now(context: *mut c_void) {
    // SAFETY: as in `lock`.
    timed(unsafe { borrow(context) }, std::thread::yield_now);
}

unsafe extern "C" fn sleep(context: *mut c_void, ns: u64) {
    // SAFETY: as in `lock`.
    timed(unsafe { borrow(context) }, || std::thread::sleep(Duration::from_nanos(ns)));
}

unsafe extern "C" fn memory(context: *mut c_void, op: u32) {
    // SAFETY: as in `lock`.
    let context = unsafe { borrow(context) };
    region::make_step(context, op as usize);
    stop_after_pass_if_told(context);
}

/// `SIGKILL` gives the process no chance to let go of anything: what it holds stays held, as with any crash.
unsafe extern "C" fn die(_: *mut c_void) {
    // SAFETY: no memory is handed over; the signal ends this process before the call returns.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
}

fn timed(context: &mut Context<'_>, block: impl FnOnce()) {
    let start = ticks();
    block();
    was_blocked(context, start);
}

/// Notes a blocking from `start` until now: what the kernel did then is no eviction.
fn was_blocked(context: &mut Context<'_>, start: u64) {
    let end = ticks();
    context.blocked(start, end);
    stop_after_pass_if_told(context);
}

#[inline(always)]
fn stop_after_pass_if_told(context: &mut Context<'_>) {
    if context.segment.control().must_stop() {
        context.break_after_pass();
    }
}
