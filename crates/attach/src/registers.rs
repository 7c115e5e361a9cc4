//! The user's registers as samples have them.
//!
//! # References
//! `arch/x86/include/uapi/asm/perf_regs.h`, `arch/arm64/include/uapi/asm/perf_regs.h`: the kernel's numbering. With
//! other numbers other registers would be read, and addresses be made of them that nobody used.

/// The registers asked for, as bits of the kernel's numbering: on x86-64 the general ones with the stack and
/// instruction pointers, on Arm all; none elsewhere.
pub(crate) const ASKED: u64 = if cfg!(target_arch = "x86_64") {
    0xff_01ff
} else if cfg!(target_arch = "aarch64") {
    (1 << 33) - 1
} else {
    0
};

/// The general registers of x86 by the number that instructions have for them, `rax` first; the kernel's order is
/// another.
pub(crate) type Registers = [Option<u64>; 16];

/// Place in a sample of each register, by the instructions' numbers: rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8 to r15.
const PLACES: [usize; 16] = [0, 2, 3, 1, 7, 6, 4, 5, 9, 10, 11, 12, 13, 14, 15, 16];

/// The general registers out of a sample's; of a process of 32 bits the lower eight, to 32 bits.
pub(crate) fn general(sampled: &[u64], address_bits: u32) -> Registers {
    let wide = address_bits == 64;
    std::array::from_fn(|number| {
        let value = *sampled.get(PLACES[number])?;
        if wide { Some(value) } else { (number < 8).then_some(value & u64::from(u32::MAX)) }
    })
}

#[cfg(test)]
mod tests {
    use super::general;

    #[test]
    fn the_kernels_order_becomes_the_instructions() {
        let sampled: Vec<u64> = (100..117).collect();
        let registers = general(&sampled, 64);
        // rbx is the kernel's second and the instructions' fourth; rsp its eighth and their fifth; r8 lies behind rip.
        assert_eq!(
            (registers[3], registers[4], registers[8], registers[15]),
            (Some(101), Some(107), Some(109), Some(116))
        );
        assert_eq!(general(&[], 64), [None; 16]);
        let narrow = general(&[u64::MAX; 17], 32);
        assert_eq!((narrow[0], narrow[8]), (Some(u64::from(u32::MAX)), None));
    }
}
