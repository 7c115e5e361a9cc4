//! Instructions of another process: what they do to memory, where a loop's operands lie, which one a trap was behind.
//! x86 alone, of 64 and of 32 bits.

mod access;
mod before;
mod walk;

pub(crate) use access::{Role, operand_within, role_of, stored_value, text};
pub(crate) use walk::{Reached, spins, walk};

use crate::memory::Memory;
use iced_x86::{Decoder, DecoderOptions, Instruction};
use std::collections::HashMap;

/// Longest instruction of x86, bytes.
const LONGEST: usize = 15;

/// Instructions of one process, decoded once each.
#[derive(Debug)]
pub(crate) struct Code {
    bits: u32,
    decoded: HashMap<u64, Option<Instruction>>,
    /// By the address behind it, an instruction that was reached as the processor reaches it.
    ends: HashMap<u64, u64>,
}

impl Code {
    /// Of a process whose addresses have that many bits.
    pub(crate) fn new(bits: u32) -> Code {
        Code { bits, decoded: HashMap::new(), ends: HashMap::new() }
    }

    /// Whether instructions of this machine can be taken apart here.
    pub(crate) fn is_known() -> bool {
        cfg!(target_arch = "x86_64")
    }

    /// Bytes of an address, and of what is pushed.
    fn word_bytes(&self) -> u64 {
        u64::from(self.bits / 8)
    }

    /// The instruction at that address; `None` where there is none to read.
    pub(crate) fn at(&mut self, address: u64, memory: &mut Memory) -> Option<Instruction> {
        let bits = self.bits;
        *self.decoded.entry(address).or_insert_with(|| decode(bits, address, memory))
    }

    /// Whether the instruction at `start`, which was reached, ends at `ip`.
    pub(crate) fn is_before(&self, start: u64, ip: u64) -> bool {
        self.ends.get(&ip) == Some(&start)
    }

    /// The instruction that a trap was behind which showed `ip`: the one before it, or the one at it where that repeats
    /// itself.
    pub(crate) fn before(&mut self, ip: u64, memory: &mut Memory) -> Option<Instruction> {
        if let Some(own) = self.at(ip, memory).filter(before::repeats) {
            return Some(own);
        }
        match self.ends.get(&ip) {
            Some(&start) => self.at(start, memory),
            None => before::vote(self.bits, ip, memory),
        }
    }
}

fn decode(bits: u32, address: u64, memory: &mut Memory) -> Option<Instruction> {
    let mut bytes = [0; LONGEST];
    let count = memory.read(address, &mut bytes);
    let instruction = Decoder::with_ip(bits, &bytes[..count], address, DecoderOptions::NONE).decode();
    (!instruction.is_invalid()).then_some(instruction)
}

#[cfg(test)]
mod tests;
