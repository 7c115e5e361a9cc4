//! From traps to touches: which instruction it was, what it did, to which bytes.

use super::WORD_BYTES;
use super::round::Hit;
use crate::candidates::{Candidates, line_of};
use crate::decode::{Code, Role, operand_within, role_of, stored_value, text};
use crate::memory::Memory;
use crate::perf::Access;
use crate::{Target, registers};
use iced_x86::Instruction;
use std::collections::{BTreeMap, BTreeSet};

/// What tells touches apart.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TouchKey {
    /// Offset of the first byte in the segment; first, so that touches lie in the order of the words.
    pub(crate) offset: u64,
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    /// Bytes; 0 where it is not known which of the word's.
    pub(crate) bytes: u64,
    /// Address of the instruction, or where that is not known of the one behind it.
    pub(crate) ip: u64,
}

impl TouchKey {
    /// Not behind any key of that offset or a later one.
    pub(super) fn first_of(offset: u64) -> TouchKey {
        TouchKey { offset, pid: 0, tid: 0, bytes: 0, ip: 0 }
    }
}

/// What an instruction of a thread did to a word.
#[derive(Clone, Debug)]
pub(crate) struct Touch {
    /// As an assembler writes it; `None` where it is not known.
    pub(crate) text: Option<String>,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
    /// Whether the kernel did it on the thread's behalf.
    pub(crate) kernel: bool,
    /// Traps.
    pub(crate) hits: u64,
    pub(crate) role: Role,
    /// Whether a plain store of it stored 0.
    pub(crate) stores_zero: bool,
    /// What it added each time, where it is an addition.
    pub(crate) adds: Option<u64>,
}

/// Code and memory of the processes, by pid.
#[derive(Debug, Default)]
pub(crate) struct Books {
    books: BTreeMap<u32, (Code, Memory)>,
}

impl Books {
    /// Those of a process.
    pub(crate) fn of(&mut self, target: &Target) -> (&mut Code, &mut Memory) {
        let open = || (Code::new(target.address_bits), Memory::of(target.pid));
        let (code, memory) = self.books.entry(target.pid).or_insert_with(open);
        (code, memory)
    }

    /// What stands at an address of a process now.
    pub(crate) fn now(&self, pid: u32, address: u64, into: &mut [u8]) -> bool {
        self.books.get(&pid).is_some_and(|(_, memory)| memory.now(address, into))
    }

    /// Enters a hit.
    pub(super) fn enter(
        &mut self,
        target: &Target,
        hit: &Hit,
        candidates: &Candidates,
        touches: &mut BTreeMap<TouchKey, Touch>,
    ) {
        let (key, touch) = match self.instruction(target, hit) {
            Some(instruction) => decoded(target, hit, &instruction, candidates),
            None => undecoded(hit),
        };
        let known = touches.entry(key).or_insert_with(|| Touch { hits: 0, ..touch.clone() });
        known.hits += 1;
        // A breakpoint on writes says for certain what another left open.
        (known.reads, known.writes) = match (known.text.is_some(), hit.access) {
            (false, Access::Write) => (known.reads && known.hits > 1, true),
            _ => (known.reads || touch.reads, known.writes || touch.writes),
        };
        known.stores_zero |= touch.stores_zero;
    }

    fn instruction(&mut self, target: &Target, hit: &Hit) -> Option<Instruction> {
        if !hit.user || !Code::is_known() {
            return None;
        }
        let (code, memory) = self.of(target);
        code.before(hit.ip, memory)
    }

    /// Processes and words of a line at which reads alone were seen.
    pub(super) fn read_alone(&self, touches: &BTreeMap<TouchKey, Touch>, line: u64) -> BTreeSet<(u32, u64)> {
        let of_line = || touches.iter().filter(|(key, _)| line_of(key.offset) == line);
        let word = |key: &TouchKey| (key.pid, key.offset / WORD_BYTES * WORD_BYTES);
        let written: BTreeSet<(u32, u64)> =
            of_line().filter(|(_, touch)| touch.writes).map(|(key, _)| word(key)).collect();
        of_line().map(|(key, _)| word(key)).filter(|word| !written.contains(word)).collect()
    }
}

fn decoded(target: &Target, hit: &Hit, instruction: &Instruction, candidates: &Candidates) -> (TouchKey, Touch) {
    let behind = registers::general(&hit.registers, target.address_bits);
    let operand = operand_within(instruction, &behind, hit.address, WORD_BYTES);
    // A breakpoint on writes was not set off by an instruction that only reads: it is another one.
    let Some(operand) = operand.filter(|one| one.writes || hit.access != Access::Write) else { return undecoded(hit) };
    let by_register = operand.address.and_then(|address| target.offset(address));
    let by_sample = || sampled_offset(hit, instruction.ip(), candidates);
    let exact = by_register.filter(|_| operand.bytes > 0).or_else(by_sample);
    let whole = operand.bytes >= WORD_BYTES;
    let (offset, bytes) = match exact {
        Some(offset) if !whole => (offset, operand.bytes),
        None if !whole => (hit.offset, 0),
        _ => (hit.offset, WORD_BYTES),
    };
    let adds = matches!(instruction.mnemonic(), iced_x86::Mnemonic::Add | iced_x86::Mnemonic::Inc);
    let value = stored_value(instruction, &behind);
    let role = role_of(instruction);
    let touch = Touch {
        text: Some(text(instruction)),
        reads: operand.reads,
        writes: operand.writes,
        kernel: false,
        hits: 0,
        role,
        stores_zero: role == Role::Stores && !adds && value == Some(0),
        adds: value.filter(|_| adds),
    };
    (TouchKey { pid: hit.pid, tid: hit.tid, offset, bytes, ip: instruction.ip() }, touch)
}

/// Where samples saw the instruction's operand, in the word of the hit.
fn sampled_offset(hit: &Hit, ip: u64, candidates: &Candidates) -> Option<u64> {
    let in_word = (hit.pid, hit.offset, 0)..(hit.pid, hit.offset + WORD_BYTES, 0);
    let mut found = candidates.operands.range(in_word).filter(|((_, _, at), _)| *at == ip).map(|((_, at, _), _)| *at);
    found.next().filter(|_| found.next().is_none())
}

/// By the breakpoint alone: one on writes tells a write, the other that it was touched.
fn undecoded(hit: &Hit) -> (TouchKey, Touch) {
    let writes = hit.access == Access::Write;
    let touch = Touch {
        text: None,
        reads: !writes,
        writes,
        kernel: !hit.user,
        hits: 0,
        role: Role::Other,
        stores_zero: false,
        adds: None,
    };
    (TouchKey { pid: hit.pid, tid: hit.tid, offset: hit.offset, bytes: 0, ip: hit.ip }, touch)
}
