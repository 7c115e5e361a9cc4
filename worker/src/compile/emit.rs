//! From a program to the code generator's intermediate form, operation by operation.
//!
//! Shape of the function: load what is carried; head: the passes of one iteration, each operation in order; count them;
//! back to the head until the last is made, which where a pass can block stands in the first cell for hooks to change.
//! At the end store what is carried, the number of passes made among it (a returned value would be bound to a register,
//! which costs the loop a move an iteration). Locks: `locking.rs`.

use super::LockSites;
use super::calls::Calls;
use super::cells::LAST_PASS;
use super::private::{Carried, GAVE_UP, Local, Private, same_group};
use crate::batch::BATCH_NS;
use cranelift_codegen::Context;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I16, I32, I64};
use cranelift_codegen::ir::{
    AbiParam, AtomicRmwOp, Block, InstBuilder, MemFlagsData, Signature, SourceLoc, StackSlot, StackSlotData,
    StackSlotKind, Type, Value,
};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext, Variable};
use cranelift_jit::JITModule;
use cranelift_module::Module;
use plan::{AccessKind, Address, Nanos, Op, OpKind, Width, WorkerProgram};

/// Shifts of the generator of `[any]`, Marsaglia's xorshift64 (2003): a full period over all nonzero states, and no
/// constant that would have to be loaded. A triple with a short period would leave elements out.
const RANDOM_SHIFTS: [i64; 3] = [13, 7, 17];

/// Multiplier and increment of the chain of `work`: odd, and small enough to be immediates, so that a turn is a
/// multiplication and an addition and nothing else.
const WORK_MULTIPLIER: i64 = 0x2c1b_3c6d;
const WORK_INCREMENT: i64 = 0x297a_2d39;

/// A `work` longer than this comes in chunks of so long: the clock is read as often as in every other loop.
const TICK_NS: u64 = BATCH_NS;

/// What is compiled.
pub(super) struct Source<'a> {
    pub(super) program: &'a WorkerProgram,
    pub(super) sites: &'a LockSites,
    /// Passes of an iteration.
    pub(super) unroll: u64,
    pub(super) work_ns_per_turn: f64,
}

/// Fills `context` with the loop of `source`.
pub(super) fn emit(
    module: &mut JITModule,
    context: &mut Context,
    source: &Source<'_>,
    private: &Private,
    calls: &Calls,
) {
    let Source { program, sites, unroll, work_ns_per_turn } = *source;
    let mut signature = module.make_signature();
    signature.params.extend([I64; 4].map(AbiParam::new));
    context.func.signature = signature;
    let mut builder_context = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(&mut context.func, &mut builder_context);
    let entry = builder.create_block();
    builder.append_block_params_for_function_params(entry);
    builder.switch_to_block(entry);
    let &[area, cells, words, end] = builder.block_params(entry) else {
        unreachable!("the signature has four parameters")
    };
    let carried = private.carried.iter().map(|(what, _)| builder.declare_var(type_of(*what))).collect();
    let exit = builder.create_block();
    let empty_signature = module.make_signature();
    let frontend_config = module.target_config();
    let mut emitter = Emitter {
        builder,
        program,
        sites,
        private,
        carried,
        locals: Vec::new(),
        end,
        kept: None,
        area,
        cells,
        words,
        exit,
        calls,
        empty_signature,
        work_ns_per_turn,
        unroll,
        pass: 0,
        behind_release: vec![None; program.ops.len()],
        behind_acquisition: vec![None; program.ops.len()],
    };
    emitter.whole();
    emitter.builder.seal_all_blocks();
    emitter.builder.finalize(frontend_config);
}

pub(super) struct Emitter<'a> {
    pub(super) builder: FunctionBuilder<'a>,
    pub(super) program: &'a WorkerProgram,
    pub(super) sites: &'a LockSites,
    private: &'a Private,
    /// One for each of `private.carried`.
    carried: Vec<Variable>,
    /// What is remembered within a pass alone.
    pub(super) locals: Vec<(Local, Variable)>,
    /// The number of the last pass to make.
    end: Value,
    /// Where the private words' address is kept on the stack.
    kept: Option<StackSlot>,
    pub(super) area: Value,
    /// The first cell.
    pub(super) cells: Value,
    words: Value,
    exit: Block,
    pub(super) calls: &'a Calls,
    empty_signature: Signature,
    work_ns_per_turn: f64,
    /// Passes of an iteration.
    unroll: u64,
    /// The pass of the iteration that is being emitted, from 0.
    pass: u64,
    /// By operation: where an acquisition that timed out goes on, behind its release. A program with locks makes one
    /// pass an iteration, so one block each is enough.
    pub(super) behind_release: Vec<Option<Block>>,
    /// By operation: where a reader that has to read again goes back to, behind its acquisition.
    pub(super) behind_acquisition: Vec<Option<Block>>,
}

impl Emitter<'_> {
    fn whole(&mut self) {
        self.load_carried();
        if self.program.can_block() {
            self.builder.ins().store(MemFlagsData::trusted(), self.end, self.cells, LAST_PASS);
        }
        if self.program.ops.iter().any(|op| matches!(op.kind, OpKind::Lock { .. })) {
            self.keep_on_stack();
        }
        let head = self.builder.create_block();
        self.builder.ins().jump(head, &[]);
        self.builder.switch_to_block(head);
        self.count_passes();
        for pass in 0..self.unroll {
            self.pass(pass);
        }
        self.builder.set_srcloc(SourceLoc::default());
        self.loop_control(head);
        self.builder.switch_to_block(self.exit);
        self.store_carried();
        self.builder.ins().return_(&[]);
    }

    /// Leaves the registers that survive calls to what a pass with locks uses at each turn: the allocator, left to
    /// itself, stores such a value in each pass, which on a Zen 5 costs a free spin lock and its release 5 %.
    fn keep_on_stack(&mut self) {
        let slot = self.builder.create_sized_stack_slot(StackSlotData::new(StackSlotKind::ExplicitSlot, 16, 3));
        for value in [&mut self.area, &mut self.cells] {
            self.builder.ins().stack_store(I64, *value, slot, 8);
            *value = self.builder.ins().stack_load(I64, I64, slot, 8);
        }
        self.builder.ins().stack_store(I64, self.words, slot, 0);
        self.kept = Some(slot);
    }

    /// Address of the private words.
    fn words(&mut self) -> Value {
        self.kept.map_or(self.words, |slot| self.builder.ins().stack_load(I64, I64, slot, 0))
    }

    fn load_carried(&mut self) {
        for (position, (what, _)) in self.private.carried.iter().enumerate() {
            let at = byte_of(self.private.word(position));
            let value = self.builder.ins().load(type_of(*what), MemFlagsData::trusted(), self.words, at);
            self.builder.def_var(self.carried[position], value);
        }
    }

    fn store_carried(&mut self) {
        let words = self.words();
        for position in 0..self.carried.len() {
            let value = self.builder.use_var(self.carried[position]);
            let at = byte_of(self.private.word(position));
            self.builder.ins().store(MemFlagsData::trusted(), value, words, at);
        }
    }

    /// Goes back to the head until the last pass is made or something asks for a break.
    fn loop_control(&mut self, head: Block) {
        let passes = self.variable(Carried::Passes);
        let made = self.builder.use_var(passes);
        let more = if self.program.can_block() {
            let last = self.builder.ins().load(I64, MemFlagsData::trusted(), self.cells, LAST_PASS);
            self.builder.ins().icmp(IntCC::UnsignedLessThan, made, last)
        } else {
            self.builder.ins().icmp(IntCC::NotEqual, made, self.end)
        };
        self.builder.ins().brif(more, head, &[], self.exit, &[]);
    }

    /// Counts the passes of an iteration before they are made. One register counts passes and numbers them: with the
    /// fused comparison at the end that is what a C compiler makes of such a loop, and `store` shows it (on a Zen 5 one
    /// addition more an iteration cost 9 %, this one just before the last pass 2.6 %). A subtraction of the negative
    /// number, since the back end joins two additions in a row into one that needs a further register.
    fn count_passes(&mut self) {
        let passes = self.private.position(Carried::Passes).expect("passes are always counted");
        let unroll = self.unroll as i64;
        self.update(passes, |b, made| {
            let negative = b.ins().iconst(I64, -unroll);
            b.ins().isub(made, negative)
        });
    }

    fn pass(&mut self, pass: u64) {
        self.pass = pass;
        let ops = &self.program.ops;
        let mut first = 0;
        for group in ops.chunk_by(same_group) {
            // An operation's place in the iteration: listing.rs turns it back into pass and step.
            let place = |index: usize| SourceLoc::new((pass as usize * ops.len() + index) as u32);
            self.builder.set_srcloc(place(first));
            let behind = (group[0].every > 1).then(|| self.open_every(first, group[0].every));
            for (index, op) in (first..).zip(group) {
                self.builder.set_srcloc(place(index));
                self.op(index, op);
            }
            if let Some(behind) = behind {
                self.builder.ins().jump(behind, &[]);
                self.builder.switch_to_block(behind);
            }
            first += group.len();
        }
    }

    /// Counts down to the due pass; code emitted next runs in that one alone. Returns the block behind it.
    fn open_every(&mut self, first: usize, every: u32) -> Block {
        let counter = self.variable(Carried::Every(first));
        let (due, behind) = (self.builder.create_block(), self.builder.create_block());
        let left = self.builder.use_var(counter);
        let left = self.builder.ins().iadd_imm_s(left, -1);
        self.builder.def_var(counter, left);
        self.builder.ins().brif(left, behind, &[], due, &[]);
        self.builder.switch_to_block(due);
        let again = self.builder.ins().iconst(I64, i64::from(every));
        self.builder.def_var(counter, again);
        behind
    }

    fn op(&mut self, index: usize, op: &Op) {
        let context = self.cells;
        match &op.kind {
            OpKind::Access { kind, width, at } => self.access(index, *kind, *width, at),
            OpKind::Post { width, at } => self.post(*width, *at),
            OpKind::Wait { width, at } => self.wait(index, *width, *at),
            OpKind::Flush { at } => {
                let (base, offset) = self.address(index, at);
                let address = self.sum(base, offset);
                self.call(self.calls.flush, &[address], false);
            }
            OpKind::Lock { lock, shared, timeout } => self.lock(index, *lock, *shared, *timeout),
            OpKind::Unlock { lock, shared } => self.unlock(index, *lock, *shared),
            OpKind::Memory(_) => self.call_with_index(self.calls.memory, index as u32),
            OpKind::Work(time) => self.work(index, *time),
            OpKind::Pause => drop(self.call(self.calls.pause, &[], false)),
            OpKind::Die => drop(self.call(self.calls.die, &[context], false)),
            OpKind::Fence => drop(self.builder.ins().fence()),
            OpKind::Yield => drop(self.call(self.calls.yield_now, &[context], false)),
            OpKind::Sleep(time) => {
                let ns = self.builder.ins().iconst(I64, time.0 as i64);
                self.call(self.calls.sleep, &[context, ns], false);
            }
        }
    }

    fn access(&mut self, index: usize, kind: AccessKind, width: Width, at: &Address) {
        let (base, offset) = self.address(index, at);
        let (ty, flags) = (int(width), MemFlagsData::new().with_notrap());
        match kind {
            AccessKind::Load => {
                let address = self.sum(base, offset);
                self.builder.ins().atomic_load(ty, flags, address);
            }
            AccessKind::Store => {
                let value = self.pass_number(ty);
                self.builder.ins().store(flags, value, base, offset);
            }
            AccessKind::Bump => {
                let address = self.sum(base, offset);
                let seen = self.builder.ins().atomic_load(ty, flags, address);
                let more = self.builder.ins().iadd_imm_s(seen, 1);
                self.builder.ins().store(flags, more, base, offset);
            }
            AccessKind::Add => drop(self.fetch_add(ty, base, offset)),
            AccessKind::Swap => {
                let value = self.pass_number(ty);
                let address = self.sum(base, offset);
                self.builder.ins().atomic_rmw(ty, flags, AtomicRmwOp::Xchg, address, value);
            }
            AccessKind::Cas => {
                let expected = self.variable(Carried::Expected(index, width));
                let before = self.builder.use_var(expected);
                let wanted = self.builder.ins().iadd_imm_s(before, 1);
                let address = self.sum(base, offset);
                let seen = self.builder.ins().atomic_cas(flags, address, before, wanted);
                let done = self.builder.ins().icmp(IntCC::Equal, seen, before);
                let next = self.builder.ins().select(done, wanted, seen);
                self.builder.def_var(expected, next);
            }
        }
    }

    fn post(&mut self, width: Width, at: u64) {
        let before = self.fetch_add(int(width), self.area, displacement(at as i64));
        if let Some(position) = self.private.position(Carried::LastSeen(at, width)) {
            self.update(position, |b, _| b.ins().iadd_imm_s(before, 1));
        }
    }

    fn fetch_add(&mut self, ty: Type, base: Value, offset: i32) -> Value {
        let address = self.sum(base, offset);
        let one = self.builder.ins().iconst(ty, 1);
        self.builder.ins().atomic_rmw(ty, MemFlagsData::new().with_notrap(), AtomicRmwOp::Add, address, one)
    }

    /// Loads the word until it differs from the last one seen; each turn between two loads is the hook's.
    fn wait(&mut self, index: usize, width: Width, at: u64) {
        let last = self.variable(Carried::LastSeen(at, width));
        let [look, spin, give_up, changed] = [(); 4].map(|()| self.builder.create_block());
        self.builder.ins().jump(look, &[]);
        self.builder.switch_to_block(look);
        let address = self.sum(self.area, displacement(at as i64));
        let seen = self.builder.ins().atomic_load(int(width), MemFlagsData::new().with_notrap(), address);
        let before = self.builder.use_var(last);
        let differs = self.builder.ins().icmp(IntCC::NotEqual, seen, before);
        self.builder.ins().brif(differs, changed, &[], spin, &[]);
        self.builder.switch_to_block(spin);
        let enough = self.call(self.calls.spin, &[self.cells], true).expect("spin returns a word");
        self.builder.ins().brif(enough, give_up, &[], look, &[]);
        self.give_up(give_up, index);
        self.builder.switch_to_block(changed);
        self.builder.def_var(last, seen);
    }

    /// Fills `block` with the way out of a pass that is not completed, from its operation of that index: what the pass
    /// holds there is given back, so that others can end theirs.
    pub(super) fn give_up(&mut self, block: Block, index: usize) {
        self.builder.set_cold_block(block);
        self.builder.switch_to_block(block);
        self.release_what_is_held(index);
        let passes = self.private.position(Carried::Passes).expect("passes are always counted");
        self.update(passes, |b, counted| b.ins().iadd_imm_s(counted, -1)); // this one was not completed
        let code = self.builder.ins().iconst(I64, i64::from(self.program.ops[index].step) + 1);
        let words = self.words();
        self.builder.ins().store(MemFlagsData::trusted(), code, words, byte_of(GAVE_UP));
        self.builder.ins().jump(self.exit, &[]);
    }

    /// A chain of dependent multiply-adds: its latency is the time, and it touches no memory. A long one comes in
    /// chunks, with a `tick` behind each: the clock must be read and the stop word seen meanwhile.
    fn work(&mut self, index: usize, time: Nanos) {
        let turns = |ns: f64| (ns / self.work_ns_per_turn).round() as i64;
        let (all, chunk) = (turns(time.0 as f64), turns(TICK_NS as f64).max(1));
        if time.0 <= TICK_NS {
            return self.work_turns(all);
        }
        let [next, give_up, go_on, done] = [(); 4].map(|()| self.builder.create_block());
        let left = self.builder.append_block_param(next, I64);
        let chunks = self.builder.ins().iconst(I64, all / chunk);
        self.builder.ins().jump(next, &[chunks.into()]);
        self.builder.switch_to_block(next);
        self.work_turns(chunk);
        let enough = self.call(self.calls.tick, &[self.cells], true).expect("tick returns a word");
        self.builder.ins().brif(enough, give_up, &[], go_on, &[]);
        self.give_up(give_up, index);
        self.builder.switch_to_block(go_on);
        let left = self.builder.ins().iadd_imm_s(left, -1);
        self.builder.ins().brif(left, next, &[left.into()], done, &[]);
        self.builder.switch_to_block(done);
        self.work_turns(all % chunk);
    }

    fn work_turns(&mut self, turns: i64) {
        if turns == 0 {
            return;
        }
        let position = self.private.position(Carried::Work).expect("a program with `work` carries its chain");
        let (turn, done) = (self.builder.create_block(), self.builder.create_block());
        let left = self.builder.append_block_param(turn, I64);
        let all = self.builder.ins().iconst(I64, turns);
        self.builder.ins().jump(turn, &[all.into()]);
        self.builder.switch_to_block(turn);
        self.update(position, |b, chain| {
            let product = b.ins().imul_imm_s(chain, WORK_MULTIPLIER);
            b.ins().iadd_imm_s(product, WORK_INCREMENT)
        });
        let left = self.builder.ins().iadd_imm_s(left, -1);
        self.builder.ins().brif(left, turn, &[left.into()], done, &[]);
        self.builder.switch_to_block(done);
    }

    /// Where the operation at `index` goes this pass: a value and a displacement.
    fn address(&mut self, index: usize, at: &Address) -> (Value, i32) {
        match at {
            Address::Fixed(at) => (self.area, displacement(*at as i64)),
            Address::Any(_) => {
                let offset = self.draw(index);
                (self.builder.ins().iadd(self.area, offset), 0)
            }
        }
    }

    /// Draws one of the offsets of the operation at `index`, all alike in probability: the generator's upper 32 bits
    /// times the number of offsets, upper half (Lemire 2019, without its rejection: off by under n / 2³²).
    fn draw(&mut self, index: usize) -> Value {
        let (table, elements) = self.private.table(index);
        let random = self.private.position(Carried::Random).expect("a program with `[any]` carries its generator");
        let [left, right, last] = RANDOM_SHIFTS;
        self.update(random, |b, state| {
            let shifted = b.ins().ishl_imm_u(state, left);
            let state = b.ins().bxor(state, shifted);
            let shifted = b.ins().ushr_imm_u(state, right);
            let state = b.ins().bxor(state, shifted);
            let shifted = b.ins().ishl_imm_u(state, last);
            b.ins().bxor(state, shifted)
        });
        let state = self.builder.use_var(self.carried[random]);
        let words = self.words();
        let b = &mut self.builder;
        let upper = b.ins().ushr_imm_u(state, 32);
        let scaled = b.ins().imul_imm_s(upper, elements as i64);
        let element = b.ins().ushr_imm_u(scaled, 32);
        let byte = b.ins().ishl_imm_u(element, 3);
        let entry = b.ins().iadd(words, byte);
        b.ins().load(I64, MemFlagsData::trusted(), entry, byte_of(table))
    }

    /// The pass's number, from 1, in the width of an access.
    fn pass_number(&mut self, ty: Type) -> Value {
        let variable = self.variable(Carried::Passes);
        let counted = self.builder.use_var(variable);
        let number = match self.unroll - self.pass - 1 {
            0 => counted,
            before_last => self.builder.ins().iadd_imm_s(counted, -(before_last as i64)),
        };
        if ty == I64 { number } else { self.builder.ins().ireduce(ty, number) }
    }

    pub(super) fn sum(&mut self, base: Value, offset: i32) -> Value {
        if offset == 0 { base } else { self.builder.ins().iadd_imm_s(base, i64::from(offset)) }
    }

    pub(super) fn variable(&self, what: Carried) -> Variable {
        self.carried[self.private.position(what).expect("private.rs carries what its operations need")]
    }

    fn update(&mut self, position: usize, next: impl FnOnce(&mut FunctionBuilder<'_>, Value) -> Value) {
        let value = self.builder.use_var(self.carried[position]);
        let value = next(&mut self.builder, value);
        self.builder.def_var(self.carried[position], value);
    }

    /// Calls a hook that is given an index.
    fn call_with_index(&mut self, function: usize, index: u32) {
        let index = self.builder.ins().iconst(I32, i64::from(index));
        self.call(function, &[self.cells, index], false);
    }

    pub(super) fn call(&mut self, function: usize, arguments: &[Value], returns_word: bool) -> Option<Value> {
        let mut signature = self.empty_signature.clone();
        let types = arguments.iter().map(|&a| AbiParam::new(self.builder.func.dfg.value_type(a)));
        signature.params.extend(types);
        signature.returns.extend(returns_word.then(|| AbiParam::new(I32)));
        let signature = self.builder.import_signature(signature);
        let callee = self.builder.ins().iconst(I64, function as i64);
        let call = self.builder.ins().call_indirect(signature, callee, arguments);
        self.builder.inst_results(call).first().copied()
    }
}

fn type_of(what: Carried) -> Type {
    match what {
        Carried::Passes | Carried::Random | Carried::Work | Carried::Every(_) | Carried::Node(_) => I64,
        Carried::Expected(_, width) | Carried::LastSeen(_, width) => int(width),
    }
}

fn int(width: Width) -> Type {
    match width {
        Width::U8 => I8,
        Width::U16 => I16,
        Width::U32 => I32,
        Width::U64 => I64,
    }
}

/// Byte offset of a private word.
fn byte_of(word: usize) -> i32 {
    i32::try_from(word * 8).expect("a program of 2 GiB does not fit a worker's memfd")
}

pub(super) fn displacement(at: i64) -> i32 {
    i32::try_from(at).expect("`check` refused offsets beyond a displacement's reach")
}
