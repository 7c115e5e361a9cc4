//! The clock that all workers share: the CPU's invariant time-stamp counter.
#![allow(unsafe_code)] // one instruction, on each architecture

use plan::TickRate;
use std::time::Duration;

/// Ticks of the time-stamp counter (x86-64 `RDTSC`; Arm `CNTVCT_EL0`): one clock over all CPUs where the kernel calls
/// it invariant. Not serialising: the read may move by a few nanoseconds against the surrounding instructions.
///
/// # References
/// Intel SDM vol. 2, RDTSC; AMD64 APM vol. 3; Arm ARM, `CNTVCT_EL0`.
#[inline(always)]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: RDTSC is unprivileged on every Linux system that does not set PR_SET_TSC, which the lab never does.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
    #[cfg(target_arch = "aarch64")]
    {
        let count: u64;
        // SAFETY: CNTVCT_EL0 is readable from user space under Linux; the instruction touches one register.
        unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack)) };
        count
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("the lab needs an invariant time-stamp counter: x86-64 or aarch64");

/// Compares the counter with `CLOCK_MONOTONIC` over `length`; 20 ms gives about five digits. Blocks so long.
pub fn calibrate(length: Duration) -> TickRate {
    let (t0, c0) = pair();
    std::thread::sleep(length);
    let (t1, c1) = pair();
    TickRate { ticks_per_ns: (c1 - c0) as f64 / t1.duration_since(t0).as_nanos() as f64 }
}

/// The closest of several readings of both clocks: an eviction between the two would spoil a single one.
fn pair() -> (std::time::Instant, u64) {
    (0..16)
        .map(|_| {
            let before = ticks();
            let now = std::time::Instant::now();
            let after = ticks();
            (after - before, now, before + (after - before) / 2)
        })
        .min_by_key(|&(width, ..)| width)
        .map(|(_, now, middle)| (now, middle))
        .expect("sixteen readings")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_advance_and_the_rate_is_that_of_a_real_counter() {
        let first = ticks();
        let rate = calibrate(Duration::from_millis(5));
        assert!(ticks() > first);
        // Slowest Arm counters tick at 1 MHz-25 MHz, fastest x86 at under 10 GHz.
        assert!(rate.ticks_per_ns > 0.000_9 && rate.ticks_per_ns < 10.0, "{rate:?}");
    }
}
