//! What an instruction does to memory.

use crate::registers::Registers;
use iced_x86::{
    Formatter, GasFormatter, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register, UsedMemory,
};

/// An access of memory by an instruction.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Operand {
    /// First address; `None` where a register of it is not known.
    pub(crate) address: Option<u64>,
    /// Bytes; 0 where the instruction decides when it runs.
    pub(crate) bytes: u64,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
}

/// What an instruction would be in the taking and giving back of a lock.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Role {
    /// A compare-and-exchange, or a test and set of a bit.
    Takes,
    /// An exchange: takes a lock or gives it back.
    Exchanges,
    /// A plain store, a decrement, a bit that is cleared: may give back.
    Stores,
    /// None of these.
    Other,
}

/// The operands in memory of an instruction, with the registers as they are before it. What it does to the stack by the
/// way (the push of a call) is left out.
pub(crate) fn operands(
    instruction: &Instruction,
    registers: &Registers,
    info: &mut InstructionInfoFactory,
) -> Vec<Operand> {
    if matches!(instruction.mnemonic(), Mnemonic::Lea | Mnemonic::Nop) {
        return Vec::new();
    }
    let uses = info.info(instruction).used_memory();
    uses.iter().filter_map(|used| operand(used, registers)).collect()
}

/// The operand that lies within `bytes` from `address` on, with the registers as they are *behind* the instruction: an
/// address whose registers it changed is not known, and then the only operand there is counts.
pub(crate) fn operand_within(
    instruction: &Instruction,
    behind: &Registers,
    address: u64,
    bytes: u64,
) -> Option<Operand> {
    let mut info = InstructionInfoFactory::new();
    let mut kept = *behind;
    for used in info.info(instruction).used_registers() {
        let full = used.register().full_register();
        if changes(used.access()) && full.is_gpr() {
            kept[full.number()] = None;
        }
    }
    let found = operands(instruction, &kept, &mut info);
    let overlaps = |one: &&Operand| {
        one.address
            .is_some_and(|at| at < address.saturating_add(bytes) && at.saturating_add(one.bytes.max(1)) > address)
    };
    if let Some(one) = found.iter().find(overlaps) {
        return Some(*one);
    }
    let mut unknown = found.iter().filter(|one| one.address.is_none());
    unknown.next().filter(|_| unknown.next().is_none()).copied()
}

fn operand(used: &UsedMemory, registers: &Registers) -> Option<Operand> {
    let (reads, writes) = halves(used.access());
    if !reads && !writes || used.base() == Register::RSP || used.base() == Register::ESP {
        return None;
    }
    let address = used.try_virtual_address(0, |register, _, _| value(register, registers));
    Some(Operand { address, bytes: used.memory_size().size() as u64, reads, writes })
}

/// A register's value, as an address is made of it.
pub(super) fn value(register: Register, registers: &Registers) -> Option<u64> {
    if register.is_segment_register() {
        // The bases of the others are 0 in user mode; those two hold a thread's own memory.
        return (!matches!(register, Register::FS | Register::GS)).then_some(0);
    }
    let full = register.full_register();
    if !full.is_gpr() {
        return None;
    }
    let value = registers[full.number()]?;
    match register.size() {
        8 => Some(value),
        4 => Some(value & u64::from(u32::MAX)),
        2 => Some(value & 0xffff),
        1 if !is_high(register) => Some(value & 0xff),
        _ => None,
    }
}

/// Whether it is the second byte of a register (`ah`).
pub(super) fn is_high(register: Register) -> bool {
    matches!(register, Register::AH | Register::BH | Register::CH | Register::DH)
}

fn halves(access: OpAccess) -> (bool, bool) {
    match access {
        OpAccess::Read | OpAccess::CondRead => (true, false),
        OpAccess::Write | OpAccess::CondWrite => (false, true),
        // A compare-and-exchange that fails writes what it read: the line is taken all the same.
        OpAccess::ReadWrite | OpAccess::ReadCondWrite => (true, true),
        OpAccess::None | OpAccess::NoMemAccess => (false, false),
    }
}

/// Whether a register so used may hold another value behind it.
pub(super) fn changes(access: OpAccess) -> bool {
    matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite)
}

/// What the instruction would be in the taking and giving back of a lock.
pub(crate) fn role_of(instruction: &Instruction) -> Role {
    match instruction.mnemonic() {
        Mnemonic::Cmpxchg | Mnemonic::Bts => Role::Takes,
        Mnemonic::Xchg => Role::Exchanges,
        Mnemonic::Mov | Mnemonic::Dec | Mnemonic::Btr | Mnemonic::Sub if instruction.op0_kind() == OpKind::Memory => {
            Role::Stores
        }
        _ => Role::Other,
    }
}

/// What a plain store stored, with the registers behind it; of an addition to memory what was added.
pub(crate) fn stored_value(instruction: &Instruction, behind: &Registers) -> Option<u64> {
    match (instruction.mnemonic(), instruction.op0_kind()) {
        (Mnemonic::Inc, OpKind::Memory) => return Some(1),
        (Mnemonic::Mov | Mnemonic::Add, OpKind::Memory) => {}
        _ => return None,
    }
    match instruction.op1_kind() {
        OpKind::Register => value(instruction.op1_register(), behind),
        kind if is_immediate(kind) => Some(instruction.immediate(1)),
        _ => None,
    }
}

/// Whether the operand is a number in the instruction itself.
pub(super) fn is_immediate(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::Immediate8
            | OpKind::Immediate8_2nd
            | OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64
    )
}

/// As an assembler writes it, GNU syntax.
pub(crate) fn text(instruction: &Instruction) -> String {
    let mut text = String::new();
    GasFormatter::new().format(instruction, &mut text);
    text
}
