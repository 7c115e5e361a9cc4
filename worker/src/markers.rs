//! Markers for tracers outside: places in a worker's dealings with a lock that `bpftrace`, `perf` or SystemTap can
//! attach to while nobody is asked and nothing is recompiled. `docs/tracing.md` shows how.
//!
//! A marker is one instruction that does nothing, and an ELF note (`.note.stapsdt`) that says where it is, what it is
//! called and in which registers its arguments lie at that moment. Without a tracer it costs that instruction.
//!
//! On x86-64 the instruction is the nop of five bytes, which Linux from 6.18 on replaces by a call where a tracer
//! attaches: most of what a probe costs otherwise is the trap. The page that it lies in is this process's own copy from
//! then on; nothing else of the program is changed.
//!
//! # References
//! The note: SystemTap wiki, "UserSpaceProbeImplementation"; `sys/sdt.h` of SystemTap. The nop: Intel SDM vol. 2, NOP;
//! Linux `arch/x86/kernel/uprobes.c`, `can_optimize`.
#![allow(unsafe_code)] // the instruction and its note are written in assembly

use std::arch::asm;

/// What every marker says.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Place {
    /// The lock's index in the Program.
    pub(crate) lock: u32,
    /// The worker's index over all roles.
    pub(crate) worker: u32,
    /// Where this process maps the lock's first byte.
    pub(crate) address: usize,
}

/// Defines the marker of this name: a function whose body is the instruction, and its note.
///
/// All arguments are in registers, as the note's argument string says in the assembler's own notation: `4@%eax` is an
/// unsigned of four bytes. Where the function is put in line more than once, each place has a note of its own, and
/// tracers attach to all.
///
/// The parts of the note, which is described by the references above:
/// - It lies in a section that is not loaded (no flag `a`): the addresses in it are those that the linker gives, which
///   tracers shift by where the executable is mapped. So it needs no relocation at run time, in a position-independent
///   executable either. Linkers keep such a section with `--gc-sections`; flag `?` has it go where a function's own
///   group goes.
/// - The byte `_.stapsdt.base` is loaded: where a tool moves the loaded parts of a finished file and leaves notes as
///   they are, its address tells by how much. One for the whole program, hence a weak symbol in a group of its own.
///   Only the notes refer to it, which LLD does not count as use: flag `R` makes linkers keep it.
/// - The third address is of a semaphore, by which a program learns that it is traced: there is none.
macro_rules! marker {
    ($(#[$documentation:meta])* $name:ident) => {
        $(#[$documentation])*
        #[inline(always)]
        pub(crate) fn $name(place: Place) {
            let Place { lock, worker, address } = place;
            // SAFETY: the instruction does nothing. What the kernel puts in its place for a tracer preserves registers
            // and flags, and lets it read this process's memory (`readonly`: so what was written before is there).
            unsafe {
                #[cfg(target_arch = "x86_64")]
                asm!(
                    ".balign 8", // the call is written at once, which the kernel does within one page
                    "990: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00", // nopl 0x0(%rax,%rax,1)
                    note!($name, "4@{lock:e} 4@{worker:e} 8@{address:r}"),
                    lock = in(reg) lock,
                    worker = in(reg) worker,
                    address = in(reg) address,
                    options(att_syntax, readonly, nostack, preserves_flags)
                );
                #[cfg(target_arch = "aarch64")]
                asm!(
                    "990: nop",
                    note!($name, "4@{lock:x} 4@{worker:x} 8@{address:x}"),
                    lock = in(reg) lock,
                    worker = in(reg) worker,
                    address = in(reg) address,
                    options(readonly, nostack, preserves_flags)
                );
            }
        }
    };
}

/// The note of the marker at label 990. Padding of the name, eight bytes, and of the whole is to four.
macro_rules! note {
    ($name:ident, $arguments:literal) => {
        concat!(
            ".pushsection .note.stapsdt, \"?\", \"note\"\n",
            ".balign 4\n",
            ".4byte 992f - 991f, 994f - 993f, 3\n", // lengths of name and description; the type
            "991: .asciz \"stapsdt\"\n",
            "992: .balign 4\n",
            "993: .8byte 990b\n",
            ".8byte _.stapsdt.base\n",
            ".8byte 0\n",
            ".asciz \"contention_lab\"\n",
            ".asciz \"",
            stringify!($name),
            "\"\n",
            ".asciz \"",
            $arguments,
            "\"\n",
            "994: .balign 4\n",
            ".popsection\n",
            ".ifndef _.stapsdt.base\n",
            ".pushsection .stapsdt.base, \"aGR\", \"progbits\", .stapsdt.base, comdat\n",
            ".weak _.stapsdt.base\n",
            ".hidden _.stapsdt.base\n",
            "_.stapsdt.base: .space 1\n",
            ".size _.stapsdt.base, 1\n",
            ".popsection\n",
            ".endif",
        )
    };
}

marker! {
    /// The first attempt has failed: a wait begins.
    lock_contended
}

marker! {
    /// The lock is owned after a wait, the one that began with this worker's last `lock_contended` of this lock. A wait
    /// that ends without owning has none.
    lock_acquired
}

marker! {
    /// A lock whose acquisition had waited was released; another may own it already.
    lock_released
}
