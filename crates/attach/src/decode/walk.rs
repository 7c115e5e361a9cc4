//! Following a loop from where a sample was taken: its registers are known there, and what each instruction makes of
//! them is, for moves and sums, known too. So the operands of the instructions ahead have addresses.
//!
//! This is no emulator: what it does not know it forgets, both ways of a branch are gone, and memory is what it was
//! when it was read. What comes out are candidates, which breakpoints have to prove.

use super::Code;
use super::access::{Operand, changes, is_high, is_immediate, operands, value};
use crate::memory::Memory;
use crate::registers::Registers;
use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register};
use std::collections::{HashMap, VecDeque};

/// Instructions of one walk: loops that are hot are shorter, callees included.
const STEPS_MAX: u32 = 320;
/// Instructions of a loop that waits for a word: a look, a comparison or two, a pause.
const SPIN_MAX: u32 = 10;
/// How often one instruction is passed: behind a call it is reached with and without what the callee made.
const PASSES_MAX: u8 = 2;

/// An operand that lies in the memory looked for.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Reached {
    /// Address of its instruction.
    pub(crate) ip: u64,
    /// Its first address, known.
    pub(crate) address: u64,
    pub(crate) operand: Operand,
    /// Instructions between the sample and it.
    pub(crate) steps: u32,
}

#[derive(Clone)]
struct State {
    ip: u64,
    registers: Registers,
    /// What was written since, by address.
    written: HashMap<u64, Option<u64>>,
    steps: u32,
}

/// Follows the code from `ip` on, nearest instructions first; `holds` tells the memory looked for.
pub(crate) fn walk(
    ip: u64,
    registers: Registers,
    code: &mut Code,
    memory: &mut Memory,
    holds: &dyn Fn(u64) -> bool,
) -> Vec<Reached> {
    let mut walker = Walker { code, memory, info: InstructionInfoFactory::new() };
    let mut reached = Vec::new();
    let mut passed: HashMap<u64, u8> = HashMap::new();
    let mut open = VecDeque::from([State { ip, registers, written: HashMap::new(), steps: 0 }]);
    let mut steps = 0;
    while let Some(mut state) = open.pop_front() {
        let times = passed.entry(state.ip).or_default();
        *times += 1;
        if *times > PASSES_MAX || steps >= STEPS_MAX {
            continue;
        }
        steps += 1;
        let Some(instruction) = walker.code.at(state.ip, walker.memory) else { continue };
        walker.code.ends.insert(instruction.next_ip(), instruction.ip());
        for operand in operands(&instruction, &state.registers, &mut walker.info) {
            if let Some(address) = operand.address.filter(|address| holds(*address)) {
                reached.push(Reached { ip: state.ip, address, operand, steps: state.steps });
            }
        }
        state.steps += 1;
        open.extend(walker.behind(&instruction, state));
    }
    reached
}

/// Whether the instruction lies in a short loop with a `pause`: what code does that waits for a word to change.
pub(crate) fn spins(ip: u64, code: &mut Code, memory: &mut Memory) -> bool {
    let mut open = VecDeque::from([(ip, false, 0)]);
    while let Some((at, paused, steps)) = open.pop_front() {
        if at == ip && paused {
            return true;
        }
        let Some(instruction) = code.at(at, memory).filter(|_| steps < SPIN_MAX) else { continue };
        let paused = paused || instruction.mnemonic() == Mnemonic::Pause;
        let (next, target) = (instruction.next_ip(), instruction.near_branch_target());
        match instruction.flow_control() {
            FlowControl::Next => open.push_back((next, paused, steps + 1)),
            FlowControl::UnconditionalBranch => open.push_back((target, paused, steps + 1)),
            FlowControl::ConditionalBranch => {
                open.extend([(next, paused, steps + 1), (target, paused, steps + 1)]);
            }
            _ => {}
        }
    }
    false
}

struct Walker<'a> {
    code: &'a mut Code,
    memory: &'a mut Memory,
    info: InstructionInfoFactory,
}

impl Walker<'_> {
    /// Where the processor may be behind the instruction, and what it may know there.
    fn behind(&mut self, instruction: &Instruction, mut state: State) -> Vec<State> {
        let next = instruction.next_ip();
        let to = |state: &State, ip: u64| State { ip, ..state.clone() };
        match instruction.flow_control() {
            FlowControl::Next => {
                self.apply(instruction, &mut state);
                vec![State { ip: next, ..state }]
            }
            FlowControl::UnconditionalBranch => vec![to(&state, instruction.near_branch_target())],
            FlowControl::ConditionalBranch => {
                vec![to(&state, instruction.near_branch_target()), State { ip: next, ..state }]
            }
            FlowControl::IndirectBranch => {
                let target = self.source(instruction, 0, &state);
                target.map(|ip| State { ip, ..state }).into_iter().collect()
            }
            FlowControl::Call | FlowControl::IndirectCall => self.call(instruction, state),
            FlowControl::Return => {
                let stack = state.registers[RSP];
                let target = stack.and_then(|at| self.load(at, self.code.word_bytes(), &state));
                state.registers[RSP] = stack.map(|at| at.wrapping_add(self.code.word_bytes()));
                target.map(|ip| State { ip, ..state }).into_iter().collect()
            }
            _ if matches!(instruction.mnemonic(), Mnemonic::Syscall | Mnemonic::Int) => {
                forget(&mut state.registers, &[RAX, RCX, R11]);
                vec![State { ip: next, ..state }]
            }
            _ => vec![State { ip: next, ..state }],
        }
    }

    /// Into the callee where it is known, and over it: what a callee may change is not known then.
    fn call(&mut self, instruction: &Instruction, state: State) -> Vec<State> {
        let next = instruction.next_ip();
        let target = match instruction.flow_control() {
            FlowControl::Call => Some(instruction.near_branch_target()),
            _ => self.source(instruction, 0, &state),
        };
        let mut over = State { ip: next, ..state.clone() };
        forget(&mut over.registers, &[RAX, RCX, RDX, RSI, RDI, 8, 9, 10, R11]);
        let into = target.map(|ip| {
            let mut into = State { ip, ..state };
            self.push(Some(next), &mut into);
            into
        });
        into.into_iter().chain([over]).collect()
    }

    fn apply(&mut self, instruction: &Instruction, state: &mut State) {
        let word = self.code.word_bytes();
        match instruction.mnemonic() {
            Mnemonic::Push => {
                let value = self.source(instruction, 0, state);
                self.push(value, state);
            }
            Mnemonic::Pop if instruction.op0_kind() == OpKind::Register => {
                let value = state.registers[RSP].and_then(|at| self.load(at, word, state));
                state.registers[RSP] = state.registers[RSP].map(|at| at.wrapping_add(word));
                set(instruction.op0_register(), value, &mut state.registers);
            }
            Mnemonic::Leave => {
                let frame = state.registers[RBP];
                state.registers[RBP] = frame.and_then(|at| self.load(at, word, state));
                state.registers[RSP] = frame.map(|at| at.wrapping_add(word));
            }
            _ => match self.result(instruction, state) {
                Some(value) if instruction.op0_kind() == OpKind::Register => {
                    set(instruction.op0_register(), value, &mut state.registers);
                }
                Some(value) => self.store(instruction, value, state),
                None => self.forget_changed(instruction, state),
            },
        }
    }

    /// What a move or a sum leaves in its first operand; the inner `None` is a value that is not known. The outer is an
    /// instruction of another kind.
    fn result(&mut self, instruction: &Instruction, state: &State) -> Option<Option<u64>> {
        if instruction.op_count() == 0 || instruction.has_lock_prefix() {
            return None;
        }
        let first = |this: &mut Self| this.source(instruction, 0, state);
        let both = |this: &mut Self, sum: fn(u64, u64) -> u64| {
            let (a, b) = (this.source(instruction, 0, state)?, this.source(instruction, 1, state)?);
            Some(sum(a, b))
        };
        let same =
            instruction.op1_kind() == OpKind::Register && instruction.op0_register() == instruction.op1_register();
        Some(match instruction.mnemonic() {
            Mnemonic::Mov | Mnemonic::Movzx => self.source(instruction, 1, state),
            Mnemonic::Movsx | Mnemonic::Movsxd => {
                let bits = operand_bytes(instruction, 1) * 8;
                let value = self.source(instruction, 1, state);
                value
                    .filter(|_| (1..=64).contains(&bits))
                    .map(|value| (((value << (64 - bits)) as i64) >> (64 - bits)) as u64)
            }
            Mnemonic::Lea => instruction.try_virtual_address(1, 0, |register, _, _| value(register, &state.registers)),
            Mnemonic::Xor | Mnemonic::Sub if same => Some(0),
            Mnemonic::Add if instruction.op_count() == 2 => both(self, u64::wrapping_add),
            Mnemonic::Sub => both(self, u64::wrapping_sub),
            Mnemonic::And => both(self, |a, b| a & b),
            Mnemonic::Or => both(self, |a, b| a | b),
            Mnemonic::Xor => both(self, |a, b| a ^ b),
            Mnemonic::Shl => both(self, |a, b| a.wrapping_shl(b as u32)),
            Mnemonic::Inc => first(self).map(|a| a.wrapping_add(1)),
            Mnemonic::Dec => first(self).map(|a| a.wrapping_sub(1)),
            _ => return None,
        })
    }

    /// The value of an operand: a register, a number, or what memory holds.
    fn source(&mut self, instruction: &Instruction, operand: u32, state: &State) -> Option<u64> {
        match instruction.op_kind(operand) {
            OpKind::Register => value(instruction.op_register(operand), &state.registers),
            OpKind::Memory => {
                let at = instruction.try_virtual_address(operand, 0, |one, _, _| value(one, &state.registers))?;
                self.load(at, operand_bytes(instruction, operand), state)
            }
            kind if is_immediate(kind) => Some(instruction.immediate(operand)),
            _ => None,
        }
    }

    fn load(&mut self, address: u64, bytes: u64, state: &State) -> Option<u64> {
        match state.written.get(&address) {
            Some(value) => *value,
            None => self.memory.number(address, usize::try_from(bytes).ok()?),
        }
    }

    fn store(&mut self, instruction: &Instruction, value_: Option<u64>, state: &mut State) {
        if let Some(at) = instruction.try_virtual_address(0, 0, |one, _, _| value(one, &state.registers)) {
            state.written.insert(at, value_);
        }
    }

    fn push(&mut self, value: Option<u64>, state: &mut State) {
        state.registers[RSP] = state.registers[RSP].map(|at| at.wrapping_sub(self.code.word_bytes()));
        if let Some(at) = state.registers[RSP] {
            state.written.insert(at, value);
        }
    }

    /// Of an instruction whose result is not followed: all that it changes.
    fn forget_changed(&mut self, instruction: &Instruction, state: &mut State) {
        let written: Vec<u64> = operands(instruction, &state.registers, &mut self.info)
            .iter()
            .filter(|one| one.writes)
            .filter_map(|one| one.address)
            .collect();
        state.written.extend(written.into_iter().map(|at| (at, None)));
        for used in self.info.info(instruction).used_registers() {
            let full = used.register().full_register();
            if changes(used.access()) && full.is_gpr() {
                state.registers[full.number()] = None;
            }
        }
    }
}

/// Numbers of registers, as instructions have them.
const RAX: usize = 0;
const RCX: usize = 1;
const RDX: usize = 2;
const RSP: usize = 4;
const RBP: usize = 5;
const RSI: usize = 6;
const RDI: usize = 7;
const R11: usize = 11;

fn forget(registers: &mut Registers, numbers: &[usize]) {
    numbers.iter().for_each(|number| registers[*number] = None);
}

fn operand_bytes(instruction: &Instruction, operand: u32) -> u64 {
    match instruction.op_kind(operand) {
        OpKind::Register => instruction.op_register(operand).size() as u64,
        OpKind::Memory => instruction.memory_size().size() as u64,
        _ => 8,
    }
}

/// Writes a register as the processor does: 32 bits clear the upper half, fewer keep the rest.
fn set(register: Register, value: Option<u64>, registers: &mut Registers) {
    let full = register.full_register();
    if !full.is_gpr() {
        return;
    }
    let slot = &mut registers[full.number()];
    let merge = |mask: u64, old: Option<u64>| Some((old? & !mask) | (value? & mask));
    *slot = match register.size() {
        8 => value,
        4 => value.map(|value| value & u64::from(u32::MAX)),
        2 => merge(0xffff, *slot),
        1 if !is_high(register) => merge(0xff, *slot),
        _ => None,
    };
}
