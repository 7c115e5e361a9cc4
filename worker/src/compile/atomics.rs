//! What locks in line are made of: atomic operations on words of the segment, by their distance from the fields area,
//! and the orderings that they need beyond what the processor keeps.

use super::emit::{Emitter, displacement};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I32;
use cranelift_codegen::ir::{AtomicRmwOp, Block, BlockArg, InstBuilder, MemFlagsData, Value};

impl Emitter<'_> {
    /// Address of the word at that distance.
    pub(super) fn at(&mut self, distance: i64) -> Value {
        self.sum(self.area, displacement(distance))
    }

    pub(super) fn branch_if_equal(&mut self, a: Value, b: Value, equal: Block, other: Block) {
        let are_equal = self.builder.ins().icmp(IntCC::Equal, a, b);
        const NONE: &[BlockArg] = &[];
        self.builder.ins().brif(are_equal, equal, NONE, other, NONE);
    }

    pub(super) fn atomic_load(&mut self, distance: i64) -> Value {
        let address = self.at(distance);
        self.builder.ins().atomic_load(I32, flags(), address)
    }

    pub(super) fn exchange(&mut self, distance: i64, value: Value) -> Value {
        let address = self.at(distance);
        self.builder.ins().atomic_rmw(I32, flags(), AtomicRmwOp::Xchg, address, value)
    }

    pub(super) fn compare_exchange(&mut self, distance: i64, expected: Value, wanted: Value) -> Value {
        let address = self.at(distance);
        self.builder.ins().atomic_cas(flags(), address, expected, wanted)
    }

    pub(super) fn store_release(&mut self, value: Value, distance: i64) {
        let address = self.at(distance);
        self.store_release_to(value, address);
    }

    /// A store that no access of this thread before it passes. On x86-64 every store is one (Intel SDM 3A, 10.2.2), and
    /// the code generator's atomic store brings an `mfence` there, which no C compiler puts into a release.
    pub(super) fn store_release_to(&mut self, value: Value, address: Value) {
        if cfg!(target_arch = "x86_64") {
            self.builder.ins().store(flags(), value, address, 0);
        } else {
            self.builder.ins().atomic_store(flags(), value, address);
        }
    }

    /// Between making a sequence lock's count odd and the section's stores. On x86-64 the exchange is a full fence.
    pub(super) fn order_stores(&mut self) {
        if !cfg!(target_arch = "x86_64") {
            self.builder.ins().fence();
        }
    }

    /// Between a section's loads and the look at a sequence lock's count. On x86-64 loads keep their order.
    pub(super) fn order_loads(&mut self) {
        if !cfg!(target_arch = "x86_64") {
            self.builder.ins().fence();
        }
    }
}

/// Words of the segment, which others change: no assumption but that they are there.
pub(super) fn flags() -> MemFlagsData {
    MemFlagsData::new().with_notrap()
}
