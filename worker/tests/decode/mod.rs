//! Reads a loop's memory accesses and calls back from its machine code.
//!
//! A data-flow analysis follows the function's four arguments through registers and stack slots: every memory operand
//! must turn out to be the fields area, the row of cells, the worker's private words or the stack. An operand of
//! unknown origin is an error, so nothing can escape the comparison.

use iced_x86::{
    Code, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register, UsedMemory,
};
use std::collections::BTreeMap;

/// What the code does to the outside, in the order of the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// An access of the fields area.
    Area {
        /// How.
        how: How,
        /// Size.
        bytes: u64,
        /// Offset; `None` where an index register chooses it. Slots and queue nodes lie before the area.
        at: Option<i64>,
    },
    /// An access of the cells, of which passes have the first word.
    Cell {
        /// How.
        how: How,
        /// Size.
        bytes: u64,
        /// Offset.
        at: i64,
    },
    /// A full fence.
    Fence,
    /// A call of the worker's function of that name; `flush` and the C library's with the area's offset that they are
    /// given.
    Call(&'static str, Option<Option<i64>>),
}

/// How an instruction touches memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Read,
    Write,
    /// One atomic read-modify-write.
    Locked,
    /// A read and a write by one instruction that is not atomic: no step is allowed to become this.
    Fused,
}

/// The events with the offsets of their instructions.
#[derive(Debug, Default)]
pub(crate) struct Decoded {
    pub(crate) events: Vec<(u64, Event)>,
    /// Where the function returns: what lies behind is seldom run.
    pub(crate) returns_at: u64,
    /// Reads and writes of the number of the last pass.
    pub(crate) last_pass: (usize, usize),
    /// Multiplications: turns of `work` as the code holds them, and the draws of `[any]`.
    pub(crate) multiplications: usize,
}

/// What a register or stack slot holds.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Value {
    /// The fields area plus an offset.
    Area(i64),
    /// The fields area plus an offset that is only known at run time.
    AreaIndexed,
    Cells,
    Private,
    Constant(u64),
    Other,
}

/// Registers by number, and stack slots by their displacement from the stack pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    registers: [Value; 16],
    slots: BTreeMap<i64, Value>,
}

/// Decodes `code`, in which the functions `called` are known by name.
pub(crate) fn decode(code: &[u8], called: &[(&'static str, usize)]) -> Result<Decoded, String> {
    let instructions: BTreeMap<u64, Instruction> =
        Decoder::with_ip(64, code, 0, DecoderOptions::NONE).into_iter().map(|i| (i.ip(), i)).collect();
    let before = fixpoint(&instructions)?;
    let mut decoded = Decoded::default();
    let mut info = InstructionInfoFactory::new();
    for (ip, instruction) in &instructions {
        let state = before.get(ip).ok_or_else(|| format!("unreachable code at {ip:#x}"))?;
        decoded.multiplications += usize::from(instruction.mnemonic() == Mnemonic::Imul);
        match instruction.mnemonic() {
            Mnemonic::Lea => {}
            Mnemonic::Mfence => decoded.events.push((*ip, Event::Fence)),
            Mnemonic::Call => decoded.events.push((*ip, call(instruction, state, called)?)),
            Mnemonic::Ret => decoded.returns_at = *ip,
            _ => {
                for memory in info.info(instruction).used_memory() {
                    access(instruction, memory, state, &mut decoded)?;
                }
            }
        }
    }
    Ok(decoded)
}

/// The state before each reachable instruction.
fn fixpoint(instructions: &BTreeMap<u64, Instruction>) -> Result<BTreeMap<u64, State>, String> {
    let mut entry = State { registers: [Value::Other; 16], slots: BTreeMap::new() };
    for (register, value) in
        [(Register::RDI, Value::Area(0)), (Register::RSI, Value::Cells), (Register::RDX, Value::Private)]
    {
        entry.registers[register.number()] = value;
    }
    let mut before = BTreeMap::from([(0, entry)]);
    let mut open = vec![0];
    let mut info = InstructionInfoFactory::new();
    while let Some(ip) = open.pop() {
        let instruction = instructions.get(&ip).ok_or_else(|| format!("a jump to {ip:#x}, between instructions"))?;
        let mut state = before[&ip].clone();
        step(instruction, &mut state, &mut info);
        for next in successors(instruction)? {
            let joined = before.get(&next).map_or(state.clone(), |known| join(known, &state));
            if before.get(&next) != Some(&joined) {
                before.insert(next, joined);
                open.push(next);
            }
        }
    }
    Ok(before)
}

fn successors(instruction: &Instruction) -> Result<Vec<u64>, String> {
    Ok(match instruction.flow_control() {
        FlowControl::Next | FlowControl::IndirectCall => vec![instruction.next_ip()],
        FlowControl::UnconditionalBranch => vec![instruction.near_branch64()],
        FlowControl::ConditionalBranch => vec![instruction.near_branch64(), instruction.next_ip()],
        FlowControl::Return => vec![],
        other => return Err(format!("{other:?} at {:#x}", instruction.ip())),
    })
}

fn join(a: &State, b: &State) -> State {
    let registers =
        std::array::from_fn(|i| if a.registers[i] == b.registers[i] { a.registers[i] } else { Value::Other });
    let slots = a.slots.iter().filter(|(at, value)| b.slots.get(at) == Some(value)).map(|(&at, &v)| (at, v)).collect();
    State { registers, slots }
}

/// What an instruction does to the state.
fn step(i: &Instruction, state: &mut State, info: &mut InstructionInfoFactory) {
    let value = match i.mnemonic() {
        Mnemonic::Mov => moved(i, state),
        Mnemonic::Lea => sum(register(i.memory_base(), state), index(i, state), i.memory_displacement64() as i64),
        Mnemonic::Add => added(i, state),
        _ => Value::Other,
    };
    if i.mnemonic() == Mnemonic::Mov && i.op0_kind() == OpKind::Memory && i.memory_base() == Register::RSP {
        state.slots.insert(i.memory_displacement64() as i64, register(i.op1_register(), state));
    }
    if i.mnemonic() == Mnemonic::Call {
        use Register::{R8, R9, R10, R11, RAX, RCX, RDI, RDX, RSI};
        for clobbered in [RAX, RCX, RDX, RSI, RDI, R8, R9, R10, R11] {
            state.registers[clobbered.number()] = Value::Other;
        }
    }
    for used in info.info(i).used_registers() {
        let full = used.register().full_register();
        if !full.is_gpr() || !writes(used.access()) {
            continue;
        }
        if full == Register::RSP && i.mnemonic() != Mnemonic::Call {
            state.slots.clear();
        }
        let is_target =
            i.op_count() > 0 && i.op0_kind() == OpKind::Register && i.op0_register().full_register() == full;
        state.registers[full.number()] = if is_target { value } else { Value::Other };
    }
}

fn moved(i: &Instruction, state: &State) -> Value {
    match i.op1_kind() {
        OpKind::Register if i.op1_register().is_gpr64() => register(i.op1_register(), state),
        OpKind::Memory if i.memory_base() == Register::RSP && i.op0_register().is_gpr64() => {
            state.slots.get(&(i.memory_displacement64() as i64)).copied().unwrap_or(Value::Other)
        }
        OpKind::Immediate64 => Value::Constant(i.immediate64()),
        _ => Value::Other,
    }
}

fn added(i: &Instruction, state: &State) -> Value {
    let target = register(i.op0_register(), state);
    match i.op1_kind() {
        OpKind::Register => sum(target, Some(register(i.op1_register(), state)), 0),
        OpKind::Memory => sum(target, Some(Value::Other), 0),
        _ => sum(target, None, i.immediate(1) as i64),
    }
}

fn register(register: Register, state: &State) -> Value {
    if register.is_gpr64() { state.registers[register.number()] } else { Value::Other }
}

fn index(i: &Instruction, state: &State) -> Option<Value> {
    (i.memory_index() != Register::None).then(|| register(i.memory_index(), state))
}

fn sum(base: Value, index: Option<Value>, displacement: i64) -> Value {
    use Value::{Area, AreaIndexed, Other, Private};
    match (base, index) {
        (Area(at), None) => Area(at + displacement),
        (Area(_) | AreaIndexed, Some(Other)) | (Other, Some(Area(_) | AreaIndexed)) | (AreaIndexed, None) => {
            AreaIndexed
        }
        (Private, None | Some(Other)) => Private,
        _ => Other,
    }
}

fn writes(access: OpAccess) -> bool {
    use OpAccess::{CondWrite, ReadCondWrite, ReadWrite, Write};
    matches!(access, Write | CondWrite | ReadWrite | ReadCondWrite)
}

fn reads(access: OpAccess) -> bool {
    use OpAccess::{CondRead, Read, ReadCondWrite, ReadWrite};
    matches!(access, Read | CondRead | ReadWrite | ReadCondWrite)
}

fn how(instruction: &Instruction, memory: &UsedMemory) -> How {
    let atomic = instruction.has_lock_prefix() || instruction.mnemonic() == Mnemonic::Xchg;
    match (reads(memory.access()), writes(memory.access())) {
        (true, true) if atomic => How::Locked,
        (true, true) => How::Fused,
        (_, true) => How::Write,
        _ => How::Read,
    }
}

/// Writes down one memory operand, or says that its address comes from nowhere known.
fn access(i: &Instruction, memory: &UsedMemory, state: &State, decoded: &mut Decoded) -> Result<(), String> {
    if matches!(memory.base(), Register::RSP | Register::RBP) && memory.index() == Register::None {
        return Ok(());
    }
    let index = (memory.index() != Register::None).then(|| register(memory.index(), state));
    let how = how(i, memory);
    let at = match sum(register(memory.base(), state), index, memory.displacement() as i64) {
        Value::Area(at) => Some(at),
        Value::AreaIndexed => None,
        Value::Private => return Ok(()),
        _ if register(memory.base(), state) == Value::Cells && index.is_none() => {
            let (at, bytes) = (memory.displacement() as i64, memory.memory_size().size() as u64);
            match (at, how) {
                (0, How::Read) => decoded.last_pass.0 += 1,
                (0, How::Write) => decoded.last_pass.1 += 1,
                // Memory of the worker's own: one instruction or two, who could tell?
                (_, How::Fused) => {
                    let both = [How::Read, How::Write].map(|how| (i.ip(), Event::Cell { how, bytes, at }));
                    decoded.events.extend(both);
                }
                _ => decoded.events.push((i.ip(), Event::Cell { how, bytes, at })),
            }
            return Ok(());
        }
        other => return Err(format!("memory of unknown origin ({other:?}) at {:#x}: {:?}", i.ip(), i.code())),
    };
    let bytes = memory.memory_size().size() as u64;
    decoded.events.push((i.ip(), Event::Area { how, bytes, at }));
    Ok(())
}

fn call(i: &Instruction, state: &State, called: &[(&'static str, usize)]) -> Result<Event, String> {
    let target = register(i.op0_register(), state);
    if i.code() != Code::Call_rm64 {
        return Err(format!("an unexpected call at {:#x}", i.ip()));
    }
    let known = called.iter().find(|(_, address)| target == Value::Constant(*address as u64));
    let (name, _) = known.ok_or_else(|| format!("a call of {target:?} at {:#x}", i.ip()))?;
    let argument = match (*name, register(Register::RDI, state)) {
        ("flush", Value::Area(at)) => Some(Some(at)),
        (library, Value::Area(at)) if library.starts_with("pthread_") || library.starts_with("sem_") => Some(Some(at)),
        ("flush", Value::AreaIndexed) => Some(None),
        ("pause", _) | (_, Value::Cells) => None,
        (name, other) => return Err(format!("{name} is given {other:?}")),
    };
    Ok(Event::Call(name, argument))
}
