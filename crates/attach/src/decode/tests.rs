use super::{Code, Role, operand_within, role_of, spins, stored_value, text, walk};
use crate::memory::Memory;
use crate::registers::Registers;
use iced_x86::{Decoder, DecoderOptions, Instruction};

const RAX: usize = 0;
const RBX: usize = 3;
const RSP: usize = 4;
const RBP: usize = 5;
const RDI: usize = 7;

/// Code in this process's own memory, so that it is read as a watched process's is.
struct Program {
    bytes: Vec<u8>,
    memory: Memory,
    code: Code,
}

impl Program {
    fn new(parts: &[&[u8]]) -> Program {
        // What lies around belongs to the reading too.
        let bytes = [&[0x90; 64][..], &parts.concat(), &[0x90; 64]].concat();
        Program { bytes, memory: Memory::of(std::process::id()), code: Code::new(64) }
    }

    fn at(&self, offset: usize) -> u64 {
        self.bytes.as_ptr() as u64 + 64 + offset as u64
    }

    /// Operands reached from `offset` on that lie in the words: index, whether they read, whether they write.
    fn reached(&mut self, offset: usize, registers: Registers, words: &[u64]) -> Vec<(u64, bool, bool)> {
        let start = words.as_ptr() as u64;
        let holds = |address: u64| (start..start + 8 * words.len() as u64).contains(&address);
        let walked = walk(self.at(offset), registers, &mut self.code, &mut self.memory, &holds);
        let of = |one: &super::walk::Reached| ((one.address - start) / 8, one.operand.reads, one.operand.writes);
        walked.iter().map(of).collect()
    }
}

fn registers(known: &[(usize, u64)]) -> Registers {
    let mut registers = [None; 16];
    known.iter().for_each(|(number, value)| registers[*number] = Some(*value));
    registers
}

fn decoded(bits: u32, bytes: &[u8]) -> Instruction {
    Decoder::with_ip(bits, bytes, 0x1000, DecoderOptions::NONE).decode()
}

#[test]
fn a_loop_is_followed_around_from_anywhere_in_it() {
    let words = [0u64; 4];
    // mov rax,[rbx+8]; add rax,1; mov [rbx+8],rax; jmp to the first
    let mut program =
        Program::new(&[&[0x48, 0x8b, 0x43, 8], &[0x48, 0x83, 0xc0, 1], &[0x48, 0x89, 0x43, 8], &[0xeb, 0xf2]]);
    let known = registers(&[(RBX, words.as_ptr() as u64)]);
    let seen = program.reached(4, known, &words);
    assert_eq!(seen[..2], [(1, false, true), (1, true, false)]);
    assert_eq!(program.reached(0, registers(&[]), &words), [], "a register that is not known reaches nothing");
}

#[test]
fn pointers_come_out_of_stack_slots_calls_return_and_what_a_callee_clobbers_is_forgotten() {
    let words = [0u64; 4];
    let slots = [words.as_ptr() as u64 + 16, 0];
    // mov rax,[rbp-8]; call +7 (to the last line); lock add qword [rax],1; ret; xor eax,eax; ret
    let mut program = Program::new(&[
        &[0x48, 0x8b, 0x45, 0xf8],
        &[0xe8, 6, 0, 0, 0],
        &[0xf0, 0x48, 0x83, 0x00, 1],
        &[0xc3],
        &[0x31, 0xc0],
        &[0xc3],
    ]);
    let frame = slots.as_ptr() as u64 + 8;
    let stack = [0u64; 8];
    let known = registers(&[(RBP, frame), (RSP, stack.as_ptr() as u64 + 48)]);
    assert_eq!(program.reached(0, known, &words), [], "the callee leaves 0 in it");
    // Behind the call the register holds what it held at the sample.
    let known = registers(&[(RAX, slots[0]), (RSP, stack.as_ptr() as u64 + 48)]);
    assert_eq!(program.reached(9, known, &words), [(2, true, true)]);
    // From inside the callee the return address is on the stack.
    let stack = [program.at(9), 0];
    let known = registers(&[(RAX, slots[0]), (RSP, stack.as_ptr() as u64)]);
    assert_eq!(program.reached(17, known, &words), [(2, true, true)]);
}

#[test]
fn a_short_loop_with_a_pause_spins_and_one_without_does_not() {
    // mov eax,[rbx]; test eax,eax; je behind; pause; jmp to the first
    let look: [&[u8]; 5] = [&[0x8b, 0x03], &[0x85, 0xc0], &[0x74, 4], &[0xf3, 0x90], &[0xeb, 0xf6]];
    let mut program = Program::new(&look);
    let (first, behind) = (program.at(0), program.at(10));
    assert!(spins(first, &mut program.code, &mut program.memory));
    assert!(!spins(behind, &mut program.code, &mut program.memory));
    let mut program = Program::new(&[look[0], look[1], look[2], &[0x66, 0x90], look[4]]);
    let first = program.at(0);
    assert!(!spins(first, &mut program.code, &mut program.memory), "a nop is no pause");
}

#[test]
fn the_instruction_before_is_found_with_and_without_having_been_there() {
    // mov rcx,rdx; lock add qword [rax],1; inc rsi
    let parts: [&[u8]; 3] = [&[0x48, 0x89, 0xd1], &[0xf0, 0x48, 0x83, 0x00, 1], &[0x48, 0xff, 0xc6]];
    let mut program = Program::new(&parts);
    let behind = program.at(8);
    let found = program.code.before(behind, &mut program.memory).unwrap();
    assert_eq!((found.ip(), text(&found)), (program.at(3), "lock addq $1,(%rax)".to_owned()));
    // A string instruction shows itself while it repeats.
    let mut program = Program::new(&[&[0xf3, 0xa4]]);
    let here = program.at(0);
    assert_eq!(program.code.before(here, &mut program.memory).unwrap().ip(), here);
}

#[test]
fn the_bytes_of_an_access_are_told_from_the_registers_behind_it() {
    let at = |bits, bytes: &[u8], known: &[(usize, u64)]| {
        let operand = operand_within(&decoded(bits, bytes), &registers(known), 0x2000, 8)?;
        Some((operand.address, operand.bytes, operand.reads, operand.writes))
    };
    let plain = Some((Some(0x2004), 4, false, true));
    assert_eq!(at(64, &[0x89, 0x47, 4], &[(RDI, 0x2000)]), plain, "mov [rdi+4],eax");
    assert_eq!(at(32, &[0x89, 0x47, 4], &[(RDI, 0x2000)]), plain, "of a process of 32 bits too");
    assert_eq!(at(64, &[0xf0, 0x0f, 0xb1, 0x17], &[(RDI, 0x2000)]), Some((Some(0x2000), 4, true, true)), "cmpxchg");
    // mov rax,[rax]: the address is gone, and it is the only operand.
    assert_eq!(at(64, &[0x48, 0x8b, 0x00], &[(RAX, 7)]), Some((None, 8, true, false)));
    assert_eq!(at(64, &[0x89, 0x47, 4], &[(RDI, 0x3000)]), None, "elsewhere");
    assert_eq!(at(64, &[0x48, 0x8d, 0x47, 4], &[(RDI, 0x2000)]), None, "lea touches nothing");
}

#[test]
fn what_takes_a_lock_and_what_gives_it_back() {
    let role = |bytes: &[u8]| role_of(&decoded(64, bytes));
    assert_eq!(role(&[0xf0, 0x0f, 0xb1, 0x17]), Role::Takes);
    assert_eq!(role(&[0x87, 0x07]), Role::Exchanges);
    assert_eq!(role(&[0xc7, 0x07, 0, 0, 0, 0]), Role::Stores);
    assert_eq!((role(&[0x8b, 0x07]), role(&[0xf0, 0x0f, 0xc1, 0x07])), (Role::Other, Role::Other));
    let stored = |bytes: &[u8], known: &[(usize, u64)]| stored_value(&decoded(64, bytes), &registers(known));
    assert_eq!(stored(&[0xc7, 0x07, 0, 0, 0, 0], &[]), Some(0), "movl $0,(%rdi)");
    assert_eq!(stored(&[0x89, 0x07], &[(RAX, 1 << 32 | 9)]), Some(9), "mov %eax,(%rdi)");
    assert_eq!(stored(&[0x48, 0x83, 0x07, 5], &[]), Some(5), "addq $5,(%rdi)");
}
