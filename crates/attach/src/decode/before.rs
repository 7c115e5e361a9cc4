//! The instruction before an address. Instructions of x86 differ in length and are read forwards only; but from most
//! wrong beginnings a reader falls into step within a few, so that many beginnings together tell the right ones.

use crate::memory::Memory;
use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic};

/// How far back beginnings are tried, bytes: some sixteen instructions.
const BACK: u64 = 64;

/// Whether it is a string instruction that traps show themselves at, and not behind, while it repeats.
pub(super) fn repeats(instruction: &Instruction) -> bool {
    instruction.is_string_instruction() && (instruction.has_rep_prefix() || instruction.has_repne_prefix())
}

/// The instruction that ends at `ip`, of those that access memory the one most beginnings agree on.
pub(super) fn vote(bits: u32, ip: u64, memory: &mut Memory) -> Option<Instruction> {
    let start = ip.saturating_sub(BACK);
    let mut bytes = vec![0; (ip - start) as usize];
    let count = memory.read(start, &mut bytes);
    if count < bytes.len() {
        return None;
    }
    let mut votes: Vec<(u32, Instruction)> = Vec::new();
    for skipped in 0..bytes.len() {
        let Some(last) = last_before(bits, &bytes[skipped..], start + skipped as u64) else { continue };
        match votes.iter_mut().find(|(_, one)| one.ip() == last.ip()) {
            Some((count, _)) => *count += 1,
            None => votes.push((1, last)),
        }
    }
    let mut info = InstructionInfoFactory::new();
    votes.retain(|(_, one)| {
        !matches!(one.mnemonic(), Mnemonic::Lea | Mnemonic::Nop) && !info.info(one).used_memory().is_empty()
    });
    votes.into_iter().max_by_key(|(count, _)| *count).map(|(_, instruction)| instruction)
}

/// The last instruction where reading from the beginning of `bytes` ends exactly at their end.
fn last_before(bits: u32, bytes: &[u8], start: u64) -> Option<Instruction> {
    let mut last = None;
    for instruction in Decoder::with_ip(bits, bytes, start, DecoderOptions::NONE) {
        if instruction.is_invalid() {
            return None;
        }
        last = Some(instruction);
    }
    last
}
