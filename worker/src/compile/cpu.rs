//! Steps that are one instruction of the CPU but none of the code generator's: the loop calls these.
#![allow(unsafe_code)]
// SAFETY of this module: `flush` is handed an address by the emitted code, inside the fields area.

/// The spin-loop hint: `pause`, or `isb` on Arm.
pub(super) extern "C" fn pause() {
    std::hint::spin_loop();
}

/// Writes the line at `address` back and drops it from every cache of the coherence domain.
///
/// # Safety
/// `address` must lie in a mapping of this process.
#[cfg(target_arch = "x86_64")]
pub(super) unsafe extern "C" fn flush(address: *const u8) {
    // SAFETY: every x86-64 CPU has `clflush`; the address is mapped by the caller's promise.
    unsafe { std::arch::x86_64::_mm_clflush(address) };
}

/// Writes the line at `address` back and drops it from every cache of the coherence domain.
///
/// # Safety
/// `address` must lie in a mapping of this process.
#[cfg(target_arch = "aarch64")]
pub(super) unsafe extern "C" fn flush(address: *const u8) {
    // SAFETY: Linux lets user space run `dc civac` (SCTLR_EL1.UCI); the address is mapped by the caller's promise.
    unsafe { std::arch::asm!("dc civac, {}", "dsb ish", in(reg) address, options(nostack, preserves_flags)) };
}

/// Never called: [`super::CompiledLoop::compile`] refuses other architectures.
///
/// # Safety
/// None is needed.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) unsafe extern "C" fn flush(_address: *const u8) {}
