//! Locks in line: the first attempt, the count and the release of a lock that nobody else wants, as
//! [`FastPath`](shm_layout::lock::FastPath) says for each kind, and calls of hooks for all the rest.
//!
//! Shape of an acquisition: the kind's first attempt; where it is no plain success, the hook `lock` (cold). Behind it,
//! owned either way: an owner that the owner record does not name has the hook `handoff` write it (cold); one more is
//! counted; where it is one to sample, the hook `sample` (cold). Of a release: where the acquisition was contended or
//! is sampled, the hook `unlock` (cold), which the cell says; else the kind's own, and the hook `released` (cold) where
//! that leaves something to do.
//!
//! In a `plain` arm nothing is sampled, no release goes by the hook for that, and the kinds that are otherwise tried
//! first are acquired by the library's blocking call, between two stores that say what the worker is blocked on.

use super::atomics::flags;
use super::cells;
use super::emit::{Emitter, displacement};
use super::private::{Carried, Local};
use super::sites::LockSite;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{AtomicRmwOp, Block, InstBuilder, MemFlagsData, Value};
use cranelift_frontend::Variable;
use plan::{Nanos, Op, OpKind};
use shm_layout::lock::{Calls, FastPath, Function, LAST_OWNER_OFFSET, NODE_BYTES, fast_path};

/// What a hook is told, still in parts: put together where the hook is called.
#[derive(Copy, Clone)]
enum Told {
    Nothing,
    /// A word of a lock, or a name.
    Word(Value),
    /// What a C function returned.
    Code(Value),
    /// The names of two nodes: lower half, upper half.
    Names(Value, Value),
}

/// A lock as one operation uses it.
#[derive(Copy, Clone)]
struct Use {
    lock: u32,
    /// As a reader among others: only where the kind has readers.
    shared: bool,
    at: i64,
    nodes: i64,
    path: FastPath,
    /// Whether the library's blocking call is made at once.
    blocks: bool,
}

impl Emitter<'_> {
    fn local(&mut self, local: Local) -> Variable {
        if let Some((_, variable)) = self.locals.iter().find(|(known, _)| *known == local) {
            return *variable;
        }
        let variable = self.builder.declare_var(match local {
            Local::Predecessor(_) => I64,
            Local::Begun(_) => I32,
        });
        self.locals.push((local, variable));
        variable
    }

    fn used(&self, lock: u32, shared: bool) -> Use {
        let LockSite { kind, at, nodes } = self.sites.sites[lock as usize];
        let shared = shared && kind.shares_readers();
        Use { lock, shared, at, nodes, path: fast_path(kind), blocks: !self.sites.timed && kind.is_tried_first() }
    }

    /// Acquires. Where a timeout lets it fail, what follows up to the matching release is skipped; where it fails
    /// without one, the pass is given up.
    pub(super) fn lock(&mut self, index: usize, lock: u32, asked_shared: bool, timeout: Option<Nanos>) {
        let used = self.used(lock, asked_shared);
        let release = self.release_of(index, lock);
        self.note_reading(used, index, true);
        let [slow, owned] = [(); 2].map(|()| self.builder.create_block());
        self.builder.set_cold_block(slow);
        let told = self.attempt(Use { blocks: used.blocks && timeout.is_none(), ..used }, slow, owned);
        self.builder.switch_to_block(slow);
        let ns = self.builder.ins().iconst(I64, timeout.map_or(0, |timeout| timeout.0 as i64));
        let told = self.told(told);
        let [number, part] = self.number_and_part(lock, asked_shared);
        let arguments = [self.cells, number, part, ns, told];
        let is_owned = self.call(self.calls.lock, &arguments, true).expect("lock returns a word");
        let failed = self.builder.create_block();
        self.builder.ins().brif(is_owned, owned, &[], failed, &[]);
        match (timeout, release) {
            (Some(_), Some(release)) => {
                self.builder.set_cold_block(failed);
                self.builder.switch_to_block(failed);
                self.note_reading(used, index, false);
                let skipped = self.behind_release[release].unwrap_or_else(|| self.builder.create_block());
                self.behind_release[release] = Some(skipped);
                self.builder.ins().jump(skipped, &[]);
            }
            _ => self.give_up(failed, index),
        }
        self.builder.switch_to_block(owned);
        if !used.shared {
            self.check_owner_record(used);
        }
        self.count(used, asked_shared);
        if let (true, Some(release)) = (used.shared, release) {
            let begun = self.builder.create_block();
            self.builder.ins().jump(begun, &[]);
            self.behind_acquisition[release] = Some(begun);
            self.builder.switch_to_block(begun);
        }
    }

    /// The kind's first attempt: goes on at `owned`, or at `slow` with what the hook is to be told.
    fn attempt(&mut self, used: Use, slow: Block, owned: Block) -> Told {
        match used.path {
            FastPath::Word => {
                let one = self.builder.ins().iconst(I32, 1);
                let before = self.exchange(used.at, one);
                self.builder.ins().brif(before, slow, &[], owned, &[]);
                Told::Word(before)
            }
            FastPath::FutexWord => {
                let [free, held] = [0, 1].map(|n| self.builder.ins().iconst(I32, n));
                let found = self.compare_exchange(used.at, free, held);
                self.builder.ins().brif(found, slow, &[], owned, &[]);
                Told::Word(found)
            }
            FastPath::Ticket => {
                let [one, address] = [self.builder.ins().iconst(I32, 1), self.at(used.at)];
                let ticket = self.builder.ins().atomic_rmw(I32, flags(), AtomicRmwOp::Add, address, one);
                let serving = self.atomic_load(used.at + 4);
                self.branch_if_equal(serving, ticket, owned, slow);
                Told::Word(ticket)
            }
            FastPath::Mcs => {
                let nobody = self.builder.ins().iconst(I32, 0);
                let next = displacement(self.own_mcs_node(used));
                self.builder.ins().store(flags(), nobody, self.area, next);
                let me = self.builder.ins().iconst(I32, i64::from(self.sites.me));
                let before = self.exchange(used.at, me);
                self.builder.ins().brif(before, slow, &[], owned, &[]);
                Told::Word(before)
            }
            FastPath::Clh => self.attempt_clh(used, slow, owned),
            FastPath::Seqlock if used.shared => {
                let begun = self.local(Local::Begun(used.lock));
                let count = self.atomic_load(used.at);
                self.builder.def_var(begun, count);
                let odd = self.builder.ins().band_imm_u(count, 1);
                self.builder.ins().brif(odd, slow, &[], owned, &[]);
                Told::Nothing
            }
            FastPath::Seqlock => {
                self.attempt_to_write(used, slow, owned);
                Told::Nothing
            }
            FastPath::Calls { exclusive, shared } => {
                let calls = part_of(exclusive, shared, used.shared);
                let code = if used.blocks {
                    self.block_in(calls.acquire, used)
                } else {
                    self.call_library(calls.try_acquire, used.at)
                };
                self.builder.ins().brif(code, slow, &[], owned, &[]);
                Told::Code(code)
            }
        }
    }

    fn attempt_clh(&mut self, used: Use, slow: Block, owned: Block) -> Told {
        let (node, predecessor) = (self.variable(Carried::Node(used.lock)), self.local(Local::Predecessor(used.lock)));
        let mine = self.builder.use_var(node);
        let (address, at) = self.node(used, mine);
        let taken = self.builder.ins().iconst(I32, 1);
        self.builder.ins().store(flags(), taken, address, at);
        let name = self.builder.ins().ireduce(I32, mine);
        let name_before = self.exchange(used.at, name);
        let before = self.builder.ins().uextend(I64, name_before);
        self.builder.def_var(predecessor, before);
        self.branch_unless_a_node(name_before, slow);
        let (address, at) = self.node(used, before);
        let address = self.sum(address, at);
        let taken = self.builder.ins().atomic_load(I32, flags(), address);
        self.builder.ins().brif(taken, slow, &[], owned, &[]);
        Told::Names(mine, before)
    }

    /// Goes on where `name` is a CLH node's; else at `refused`. A foreign writer's tail could lead out of the segment.
    fn branch_unless_a_node(&mut self, name: Value, refused: Block) {
        let is_a_node = self.builder.create_block();
        // A name that is no multiple comes out of the turn with its low bits on top, beyond every index.
        let number = self.builder.ins().rotr_imm_u(name, i64::from(NODE_BYTES.trailing_zeros()));
        let index = self.builder.ins().iadd_imm_s(number, -1);
        let within = self.builder.ins().icmp_imm_u(IntCC::UnsignedLessThan, index, i64::from(self.sites.clh_nodes));
        self.builder.ins().brif(within, is_a_node, &[], refused, &[]);
        self.builder.switch_to_block(is_a_node);
    }

    fn attempt_to_write(&mut self, used: Use, slow: Block, owned: Block) {
        let (even, inside) = (self.builder.create_block(), self.builder.create_block());
        let count = self.atomic_load(used.at);
        let odd = self.builder.ins().band_imm_u(count, 1);
        self.builder.ins().brif(odd, slow, &[], even, &[]);
        self.builder.switch_to_block(even);
        let next = self.builder.ins().iadd_imm_s(count, 1);
        let found = self.compare_exchange(used.at, count, next);
        self.branch_if_equal(found, count, inside, slow);
        self.builder.switch_to_block(inside);
        self.order_stores();
        self.builder.ins().jump(owned, &[]);
    }

    /// The library's blocking call, and around it what the coordinator wants to know of one that blocks for ever.
    fn block_in(&mut self, function: Function, used: Use) -> Value {
        let waits_for = displacement(self.sites.waits_for);
        let [name, none] = [i64::from(used.lock) + 1, 0].map(|n| self.builder.ins().iconst(I32, n));
        self.builder.ins().store(flags(), name, self.area, waits_for);
        let code = self.call_library(function, used.at);
        self.builder.ins().store(flags(), none, self.area, waits_for);
        code
    }

    /// Behind an exclusive acquisition: the hook where the record names another, or nobody.
    fn check_owner_record(&mut self, used: Use) {
        let [noted, another] = [(); 2].map(|()| self.builder.create_block());
        self.builder.set_cold_block(another);
        let record = displacement(used.at + i64::from(LAST_OWNER_OFFSET));
        let last = self.builder.ins().load(I32, flags(), self.area, record);
        let is_me = self.builder.ins().icmp_imm_u(IntCC::Equal, last, i64::from(self.sites.me));
        self.builder.ins().brif(is_me, noted, &[], another, &[]);
        self.builder.switch_to_block(another);
        let number = self.builder.ins().iconst(I32, i64::from(used.lock));
        self.call(self.calls.handoff, &[self.cells, number], false);
        self.builder.ins().jump(noted, &[]);
        self.builder.switch_to_block(noted);
    }

    /// Behind an acquisition: one more, and the hook where it is one to sample.
    fn count(&mut self, used: Use, asked_shared: bool) {
        let (cells, tally) = (self.cells, cells::tally(used.lock, used.shared));
        let acquired = displacement(tally + cells::ACQUIRED);
        let before = self.builder.ins().load(I64, MemFlagsData::trusted(), cells, acquired);
        let number = self.builder.ins().iadd_imm_s(before, 1);
        self.builder.ins().store(MemFlagsData::trusted(), number, cells, acquired);
        if !self.sites.timed {
            return;
        }
        let [go_on, sample] = [(); 2].map(|()| self.builder.create_block());
        self.builder.set_cold_block(sample);
        let sample_at = displacement(tally + cells::SAMPLE_AT);
        let due = self.builder.ins().load(I64, MemFlagsData::trusted(), cells, sample_at);
        self.branch_if_equal(number, due, sample, go_on);
        self.builder.switch_to_block(sample);
        let [number, part] = self.number_and_part(used.lock, asked_shared);
        self.call(self.calls.sample, &[self.cells, number, part], false);
        self.builder.ins().jump(go_on, &[]);
        self.builder.switch_to_block(go_on);
    }

    /// Releases. A reader goes back to behind its acquisition where the hook says so.
    pub(super) fn unlock(&mut self, index: usize, lock: u32, asked_shared: bool) {
        let used = self.used(lock, asked_shared);
        let [by_hook, done] = [(); 2].map(|()| self.builder.create_block());
        self.builder.set_cold_block(by_hook);
        if self.sites.timed {
            let inline = self.builder.create_block();
            let at = displacement(cells::by_hook(lock));
            let asked = self.builder.ins().load(I32, MemFlagsData::trusted(), self.cells, at);
            self.builder.ins().brif(asked, by_hook, &[], inline, &[]);
            self.builder.switch_to_block(inline);
        }
        self.release(used, by_hook, done);
        self.builder.switch_to_block(by_hook);
        let again = self.release_by_hook(used, asked_shared);
        if matches!(used.path, FastPath::Seqlock) && used.shared {
            // Where it reads again, the hook has acquired: an odd count says so, and one that the count has passed.
            let begun = self.local(Local::Begun(lock));
            let before = self.builder.use_var(begun);
            let odd = self.builder.ins().bor_imm_u(before, 1);
            self.builder.def_var(begun, odd);
        }
        match self.behind_acquisition[index] {
            Some(begun) => drop(self.builder.ins().brif(again, begun, &[], done, &[])),
            None => drop(self.builder.ins().jump(done, &[])),
        }
        self.builder.switch_to_block(done);
        self.change_nodes(used);
        self.note_reading(used, index, false);
        if let Some(behind) = self.behind_release[index] {
            self.builder.ins().jump(behind, &[]);
            self.builder.switch_to_block(behind);
        }
    }

    /// Behind a release of a CLH lock, whoever made it: the predecessor's node is this worker's next.
    fn change_nodes(&mut self, used: Use) {
        if let FastPath::Clh = used.path {
            let (node, predecessor) =
                (self.variable(Carried::Node(used.lock)), self.local(Local::Predecessor(used.lock)));
            let before = self.builder.use_var(predecessor);
            self.builder.def_var(node, before);
        }
    }

    /// The kind's release where nobody waits: goes on at `done`, or at `by_hook` with nothing done yet.
    fn release(&mut self, used: Use, by_hook: Block, done: Block) {
        match used.path {
            FastPath::Word => {
                let free = self.builder.ins().iconst(I32, 0);
                self.store_release(free, used.at);
                self.builder.ins().jump(done, &[]);
            }
            FastPath::FutexWord => {
                let free = self.builder.ins().iconst(I32, 0);
                let before = self.exchange(used.at, free);
                let others = self.builder.create_block();
                let alone = self.builder.ins().icmp_imm_u(IntCC::Equal, before, 1);
                self.builder.ins().brif(alone, done, &[], others, &[]);
                self.finish_release(others, used, Told::Word(before), done);
            }
            FastPath::Ticket => {
                let serving = self.atomic_load(used.at + 4);
                let next = self.builder.ins().iadd_imm_s(serving, 1);
                self.store_release(next, used.at + 4);
                self.builder.ins().jump(done, &[]);
            }
            FastPath::Mcs => {
                let alone = self.builder.create_block();
                let successor = self.atomic_load(self.own_mcs_node(used));
                self.builder.ins().brif(successor, by_hook, &[], alone, &[]);
                self.builder.switch_to_block(alone);
                let [me, nobody] = [i64::from(self.sites.me), 0].map(|n| self.builder.ins().iconst(I32, n));
                let found = self.compare_exchange(used.at, me, nobody);
                self.branch_if_equal(found, me, done, by_hook);
            }
            FastPath::Clh => {
                let node = self.variable(Carried::Node(used.lock));
                let mine = self.builder.use_var(node);
                let (address, at) = self.node(used, mine);
                let address = self.sum(address, at);
                let free = self.builder.ins().iconst(I32, 0);
                self.store_release_to(free, address);
                self.builder.ins().jump(done, &[]);
            }
            FastPath::Seqlock if used.shared => {
                let begun = self.local(Local::Begun(used.lock));
                let begun = self.builder.use_var(begun);
                self.order_loads();
                let now = self.atomic_load(used.at);
                self.branch_if_equal(now, begun, done, by_hook);
            }
            FastPath::Seqlock => {
                let odd = self.atomic_load(used.at);
                let even = self.builder.ins().iadd_imm_s(odd, 1);
                self.store_release(even, used.at);
                self.builder.ins().jump(done, &[]);
            }
            FastPath::Calls { exclusive, shared } => {
                let code = self.call_library(part_of(exclusive, shared, used.shared).release, used.at);
                let failed = self.builder.create_block();
                self.builder.ins().brif(code, failed, &[], done, &[]);
                self.finish_release(failed, used, Told::Code(code), done);
            }
        }
    }

    /// Fills `block`: the hook does what a release by compiled code leaves to do.
    fn finish_release(&mut self, block: Block, used: Use, told: Told, done: Block) {
        self.builder.set_cold_block(block);
        self.builder.switch_to_block(block);
        let told = self.told(told);
        let number = self.builder.ins().iconst(I32, i64::from(used.lock));
        self.call(self.calls.released, &[self.cells, number, told], false);
        self.builder.ins().jump(done, &[]);
    }

    /// Has the hook release. Nonzero: a reader is to read again.
    fn release_by_hook(&mut self, used: Use, asked_shared: bool) -> Value {
        let told = match used.path {
            FastPath::Clh => {
                let (node, predecessor) =
                    (self.variable(Carried::Node(used.lock)), self.local(Local::Predecessor(used.lock)));
                Told::Names(self.builder.use_var(node), self.builder.use_var(predecessor))
            }
            FastPath::Seqlock if used.shared => {
                let begun = self.local(Local::Begun(used.lock));
                Told::Word(self.builder.use_var(begun))
            }
            _ => Told::Nothing,
        };
        let told = self.told(told);
        let [number, part] = self.number_and_part(used.lock, asked_shared);
        let arguments = [self.cells, number, part, told];
        self.call(self.calls.unlock, &arguments, true).expect("unlock returns a word")
    }

    /// Gives back what the pass holds at the operation of that index, the last taken first. A reader of a sequence lock
    /// holds nothing.
    pub(super) fn release_what_is_held(&mut self, index: usize) {
        let held: Vec<(u32, bool)> = held_at(&self.program.ops, index);
        for (lock, shared) in held.into_iter().rev() {
            let used = self.used(lock, shared);
            if !(matches!(used.path, FastPath::Seqlock) && used.shared) {
                self.release_by_hook(used, shared);
                self.change_nodes(used);
            }
        }
        if self
            .program
            .ops
            .iter()
            .any(|op| matches!(op.kind, OpKind::Lock { lock, shared, .. } if self.is_noted(lock, shared)))
        {
            self.store_reads(0);
        }
    }

    /// In a kind whose readers are known to nobody but themselves, says in the slot that this worker takes or has it,
    /// or does so no more. What else stands there at each step is known beforehand.
    fn note_reading(&mut self, used: Use, index: usize, reads: bool) {
        if !self.is_noted(used.lock, used.shared) {
            return;
        }
        let held = held_at(&self.program.ops, index);
        let noted = held.into_iter().filter(|&(lock, shared)| lock != used.lock && self.is_noted(lock, shared));
        let noted = noted.map(|(lock, _)| lock).chain(reads.then_some(used.lock));
        let bits = noted.fold(0, |bits, lock| bits | 1u64.checked_shl(lock).unwrap_or(0));
        self.store_reads(bits);
    }

    /// Whether the slot says that this worker reads.
    fn is_noted(&self, lock: u32, asked_shared: bool) -> bool {
        let used = self.used(lock, asked_shared);
        used.shared && matches!(used.path, FastPath::Calls { .. })
    }

    fn store_reads(&mut self, bits: u64) {
        let bits = self.builder.ins().iconst(I64, bits as i64);
        self.builder.ins().store(flags(), bits, self.area, displacement(self.sites.reads));
    }

    /// The operation that releases what the one at `index` acquires, if there is one: a loop that dies may hold it.
    fn release_of(&self, index: usize, lock: u32) -> Option<usize> {
        let releases = |op: &Op| matches!(op.kind, OpKind::Unlock { lock: released, .. } if released == lock);
        (index + 1..self.program.ops.len()).find(|&later| releases(&self.program.ops[later]))
    }

    fn number_and_part(&mut self, lock: u32, shared: bool) -> [Value; 2] {
        [lock, u32::from(shared)].map(|n| self.builder.ins().iconst(I32, i64::from(n)))
    }

    fn told(&mut self, told: Told) -> Value {
        match told {
            Told::Nothing => self.builder.ins().iconst(I64, 0),
            Told::Word(word) => self.builder.ins().uextend(I64, word),
            Told::Code(code) => self.builder.ins().sextend(I64, code),
            Told::Names(lower, upper) => {
                let upper = self.builder.ins().ishl_imm_u(upper, 32);
                self.builder.ins().bor(lower, upper)
            }
        }
    }

    /// Where the CLH node of that name lies: a value and a displacement.
    fn node(&mut self, used: Use, name: Value) -> (Value, i32) {
        (self.builder.ins().iadd(self.area, name), displacement(used.nodes - NODE_BYTES as i64))
    }

    fn own_mcs_node(&self, used: Use) -> i64 {
        used.nodes + (i64::from(self.sites.me) - 1) * NODE_BYTES as i64
    }

    fn call_library(&mut self, function: Function, distance: i64) -> Value {
        let address = self.at(distance);
        self.call(function.call as usize, &[address], true).expect("each returns an int")
    }
}

/// The locks that a pass holds when it comes to the operation at `index`, in the order in which they were taken, and
/// whether as a reader. Where an acquisition has timed out, the pass does not come there.
pub(super) fn held_at(ops: &[Op], index: usize) -> Vec<(u32, bool)> {
    let mut held = Vec::new();
    for op in &ops[..index] {
        match op.kind {
            OpKind::Lock { lock, shared, .. } => held.push((lock, shared)),
            OpKind::Unlock { lock, .. } => held.retain(|&(taken, _)| taken != lock),
            _ => {}
        }
    }
    held
}

fn part_of(exclusive: Calls, shared: Option<Calls>, as_reader: bool) -> Calls {
    shared.filter(|_| as_reader).unwrap_or(exclusive)
}
