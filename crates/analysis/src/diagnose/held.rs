//! What a pass touches while it holds which locks: the difference between data that a lock protects and data that
//! workers share at will.

use plan::{Address, Op, OpKind, Program, WorkerProgram};
use std::collections::{BTreeMap, BTreeSet};

/// One operation of a pass on memory, or on a lock.
pub(super) struct Touch<'p> {
    /// Offset in the fields area: of an element, or of a lock that is taken.
    pub(super) offset: u64,
    /// Names of the locks that are held meanwhile, as owner or as reader.
    pub(super) held: BTreeSet<&'p str>,
}

/// Everything that a worker's pass touches, in order. Taking a lock is a touch of its bytes, before it is held.
pub(super) fn touches<'p>(program: &'p Program, worker: &'p WorkerProgram) -> Vec<Touch<'p>> {
    let name = |index: &u32| program.locks.get(*index as usize).map(|lock| lock.name.as_str());
    let mut held: BTreeSet<&str> = BTreeSet::new();
    let mut found = Vec::new();
    for op in &worker.ops {
        found.extend(offsets(program, op).into_iter().map(|offset| Touch { offset, held: held.clone() }));
        match &op.kind {
            OpKind::Lock { lock, .. } => held.extend(name(lock)),
            OpKind::Unlock { lock, .. } => held.retain(|held| Some(*held) != name(lock)),
            _ => {}
        }
    }
    found
}

fn offsets(program: &Program, op: &Op) -> Vec<u64> {
    match &op.kind {
        OpKind::Access { at, .. } | OpKind::Flush { at } => match at {
            Address::Fixed(at) => vec![*at],
            Address::Any(all) => all.clone(),
        },
        OpKind::Post { at, .. } | OpKind::Wait { at, .. } => vec![*at],
        OpKind::Lock { lock, .. } => program.locks.get(*lock as usize).map(|lock| lock.offset).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Which lock protects what in a Program.
pub(super) struct Guards<'p>(BTreeMap<u64, BTreeSet<&'p str>>);

impl<'p> Guards<'p> {
    /// Looks through every worker's pass.
    pub(super) fn of(program: &'p Program) -> Guards<'p> {
        let mut at: BTreeMap<u64, BTreeSet<&str>> = BTreeMap::new();
        for Touch { offset, held } in program.workers.iter().flat_map(|worker| touches(program, worker)) {
            at.entry(offset).and_modify(|always| always.retain(|lock| held.contains(lock))).or_insert(held);
        }
        Guards(at)
    }

    /// The lock that is held whenever any worker touches the element at `offset`: then it protects it, and who is given
    /// the lock is given the data. `None` where some touch does without.
    pub(super) fn lock_of(&self, offset: u64) -> Option<&'p str> {
        self.0.get(&offset)?.first().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::{access, acquire, release, twin_lock_program};

    /// Two workers with these passes, at locks `m` (0) and `n` (1).
    fn two(first: &[Op], second: &[Op]) -> Program {
        let mut program = twin_lock_program();
        program.locks[1].name = "n".into();
        assert_eq!(program.locks[1].offset, 4096);
        program.workers[0].ops = first.to_vec();
        program.workers[1].ops = second.to_vec();
        program
    }

    fn guard(program: &Program, offset: u64) -> Option<&str> {
        Guards::of(program).lock_of(offset)
    }

    #[test]
    fn data_that_every_worker_touches_under_one_lock_is_protected_by_it() {
        let under = [acquire(0), access(64), release(0)];
        assert_eq!(guard(&two(&under, &under), 64), Some("m"));
        let nested = [acquire(1), acquire(0), access(64), release(0), release(1)];
        assert_eq!(guard(&two(&under, &nested), 64), Some("m"), "the one that both hold");
    }

    #[test]
    fn one_touch_without_the_lock_and_it_protects_nothing() {
        let under = [acquire(0), access(64), release(0)];
        assert_eq!(guard(&two(&under, &[access(64)]), 64), None);
        assert_eq!(guard(&two(&under, &[acquire(1), access(64), release(1)]), 64), None, "another lock");
        let behind = [acquire(0), release(0), access(64)];
        assert_eq!(guard(&two(&behind, &behind), 64), None);
        assert_eq!(guard(&two(&under, &under), 128), None, "nobody touches it");
    }

    #[test]
    fn taking_a_lock_touches_it() {
        let program = two(&[acquire(0), acquire(1), release(1), release(0)], &[]);
        let seen = touches(&program, &program.workers[0]);
        let held: Vec<(u64, Vec<&str>)> = seen.into_iter().map(|t| (t.offset, Vec::from_iter(t.held))).collect();
        assert_eq!(held, [(0, vec![]), (4096, vec!["m"])]);
    }
}
