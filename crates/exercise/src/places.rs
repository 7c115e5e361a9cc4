//! Whose bytes an operation touches: offsets of a Program back to elements by name.

use plan::{AccessKind, Address, Op, OpKind, Placed, Program, WorkerProgram};
use std::collections::BTreeSet;

/// One operation of one worker on one element.
pub(crate) struct Touch<'a> {
    pub(crate) worker: &'a WorkerProgram,
    /// Place of the operation in the worker's pass.
    pub(crate) op: usize,
    pub(crate) kind: TouchKind,
    pub(crate) placed: &'a Placed,
    /// 1: each pass; N: one in N.
    pub(crate) every: u32,
    /// How many elements it draws from: 1, but for `[any]`.
    pub(crate) among: usize,
    /// Locks that the worker holds alone at that moment, by index.
    pub(crate) alone_under: BTreeSet<u32>,
    /// Whether a lock that it holds is waited for with a timeout: then the pass may go on without it.
    pub(crate) may_be_skipped: bool,
}

/// How an element is touched.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum TouchKind {
    /// It is read, once or until it changes.
    Read,
    /// One is added, atomically.
    Add,
    /// One is added by a plain read and a plain write.
    Bump,
    /// It is overwritten, or may be.
    Overwrite,
    /// Its line is taken from all: a lock's word, a flush.
    Line,
}

impl TouchKind {
    pub(crate) fn writes(self) -> bool {
        self != TouchKind::Read
    }

    pub(crate) fn raises(self) -> bool {
        matches!(self, TouchKind::Add | TouchKind::Bump)
    }
}

impl Touch<'_> {
    /// The step as written.
    pub(crate) fn step(&self) -> &str {
        let op = &self.worker.ops[self.op];
        self.worker.steps.get(op.step as usize).map_or("", String::as_str)
    }

    /// Times a pass, on average.
    pub(crate) fn per_pass(&self) -> f64 {
        1.0 / f64::from(self.every) / self.among as f64
    }
}

/// Every touch of every worker, in the order of the passes.
pub(crate) fn touches(program: &Program) -> Vec<Touch<'_>> {
    program.workers.iter().flat_map(|worker| of_worker(program, worker)).collect()
}

fn of_worker<'a>(program: &'a Program, worker: &'a WorkerProgram) -> Vec<Touch<'a>> {
    let mut held: Vec<Held> = Vec::new();
    let mut touches = Vec::new();
    for (index, op) in worker.ops.iter().enumerate() {
        if let OpKind::Unlock { lock, .. } = op.kind {
            held.retain(|held| held.lock != lock);
        }
        let (kind, offsets) = reach(program, op);
        for offset in &offsets {
            let Some(placed) = at(program, *offset) else { continue };
            touches.push(Touch {
                worker,
                op: index,
                kind,
                placed,
                every: op.every,
                among: offsets.len(),
                alone_under: held.iter().filter(|held| held.alone).map(|held| held.lock).collect(),
                may_be_skipped: held.iter().any(|held| held.times_out),
            });
        }
        if let OpKind::Lock { lock, shared, timeout } = op.kind {
            let kind = program.locks[lock as usize].kind;
            held.push(Held { lock, alone: !(shared && kind.shares_readers()), times_out: timeout.is_some() });
        }
    }
    touches
}

struct Held {
    lock: u32,
    alone: bool,
    times_out: bool,
}

/// How an operation touches memory, and at which offsets.
fn reach(program: &Program, op: &Op) -> (TouchKind, Vec<u64>) {
    let lock = |lock: u32| vec![program.locks[lock as usize].offset];
    match &op.kind {
        OpKind::Access { kind, at, .. } => (
            match kind {
                AccessKind::Load => TouchKind::Read,
                AccessKind::Add => TouchKind::Add,
                AccessKind::Bump => TouchKind::Bump,
                AccessKind::Store | AccessKind::Swap | AccessKind::Cas => TouchKind::Overwrite,
            },
            offsets(at),
        ),
        OpKind::Post { at, .. } => (TouchKind::Add, vec![*at]),
        OpKind::Wait { at, .. } => (TouchKind::Read, vec![*at]),
        OpKind::Flush { at } => (TouchKind::Line, offsets(at)),
        // A sequence lock's reader reads its word and writes nothing.
        OpKind::Lock { lock: index, shared: true, .. } | OpKind::Unlock { lock: index, shared: true }
            if program.locks[*index as usize].kind == plan::LockKind::Seqlock =>
        {
            (TouchKind::Read, lock(*index))
        }
        OpKind::Lock { lock: index, .. } | OpKind::Unlock { lock: index, .. } => (TouchKind::Line, lock(*index)),
        _ => (TouchKind::Read, Vec::new()),
    }
}

fn offsets(at: &Address) -> Vec<u64> {
    match at {
        Address::Fixed(offset) => vec![*offset],
        Address::Any(offsets) => offsets.clone(),
    }
}

fn at(program: &Program, offset: u64) -> Option<&Placed> {
    program.layout.placed.iter().find(|placed| (placed.offset..placed.offset + placed.bytes).contains(&offset))
}

/// `hits[1]`; a field of one element, and a lock, without brackets.
pub(crate) fn shown(program: &Program, placed: &Placed) -> String {
    let alone = program.layout.placed.iter().filter(|other| other.field == placed.field).count() == 1;
    if alone { format!("`{}`", placed.field) } else { format!("`{}[{}]`", placed.field, placed.element) }
}

/// `worker 1 (counter)`.
pub(crate) fn who(worker: &WorkerProgram) -> String {
    format!("worker {} ({})", worker.index.0, worker.role_name)
}
