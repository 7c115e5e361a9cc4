//! How many passes one iteration of the emitted loop makes.

use plan::{Op, OpKind, WorkerProgram};

/// Operations after which the loop's own two instructions (a subtraction and a branch) no longer show: one `store` a
/// cycle makes 8 cycles, in which the pair finds free slots. Fewer would put loop control into a padded `bump`; more
/// only makes the code longer.
const SHORT_OPS: u64 = 8;

/// Passes an iteration: the largest power of two that keeps it within [`SHORT_OPS`] short operations, and 1 where a
/// pass can block, since then the loop may have to stop after each.
pub(super) fn passes_per_iteration(program: &WorkerProgram) -> u64 {
    let cost: u64 = program.ops.iter().map(cost).sum();
    match SHORT_OPS / cost.max(1) {
        0 => 1,
        _ if program.can_block() => 1,
        passes => 1 << passes.ilog2(),
    }
}

/// In short operations. What takes tens of cycles by itself counts in full, so that an iteration stays short beside
/// the 20 µs in which the stop word must be seen.
fn cost(op: &Op) -> u64 {
    match op.kind {
        OpKind::Access { .. } | OpKind::Post { .. } => 1,
        OpKind::Work(time) => time.0.clamp(1, SHORT_OPS),
        _ => SHORT_OPS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::{AccessKind, Address, Nanos, Width};

    fn passes(kinds: Vec<OpKind>) -> u64 {
        passes_per_iteration(&WorkerProgram::of(kinds))
    }

    #[test]
    fn short_bodies_are_repeated_and_long_or_blocking_ones_are_not() {
        let load = || OpKind::Access { kind: AccessKind::Load, width: Width::U64, at: Address::Fixed(0) };
        assert_eq!(passes(vec![load()]), 8);
        assert_eq!(passes(vec![load(), load()]), 4);
        assert_eq!(passes(vec![load(), load(), load()]), 2);
        assert_eq!(passes(vec![load(); 9]), 1);
        assert_eq!(passes(vec![OpKind::Work(Nanos(100))]), 1);
        assert_eq!(passes(vec![OpKind::Pause]), 1);
        assert_eq!(passes(vec![OpKind::Wait { width: Width::U64, at: 0 }]), 1);
    }
}
