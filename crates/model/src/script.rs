//! A Program resolved for the simulation: lines and words by index, jumps by operation.

use crate::time::{Ps, ps};
use plan::{AccessKind, Address, CACHE_LINE_BYTES, LINE_PAIR_BYTES, LockKind, OpKind, Program, WorkerProgram};
use std::collections::HashMap;

/// A word: its line and itself, by index.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) line: u32,
    pub(crate) word: u32,
}

/// Where an operation touches memory.
#[derive(Clone, Debug)]
pub(crate) enum Where {
    Fixed(Place),
    Any(Vec<Place>),
}

/// How an atomic read-modify-write makes the new value.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Update {
    Add,
    Swap,
    /// Compare with what the operation last saw, and exchange for one more.
    Cas,
}

/// One operation.
#[derive(Clone, Debug)]
pub(crate) enum Do {
    Load(Where),
    Store(Where),
    Bump(Where),
    Atomic(Where, Update),
    Post(Place),
    Wait(Place),
    Flush(Where),
    Lock {
        lock: u32,
        shared: bool,
        timeout: Option<Ps>,
        /// Where an acquisition that was given up goes on.
        behind: usize,
    },
    Unlock {
        lock: u32,
        shared: bool,
        /// Where a reader that has to read again goes on.
        again: usize,
    },
    Work(Ps),
    Pause,
    Fence,
    Yield,
    Sleep(Ps),
}

/// An operation, and in which passes it is made.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) every: u32,
    pub(crate) what: Do,
}

/// One worker's loop.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) steps: Vec<Step>,
    pub(crate) period: Option<Ps>,
}

/// A lock's words.
#[derive(Clone, Debug)]
pub(crate) struct LockWords {
    pub(crate) kind: LockKind,
    /// The word that says who has it, or the queue's tail, or the next number.
    pub(crate) state: Place,
    /// The ticket lock's second word.
    pub(crate) serving: Place,
    /// Who owned it last.
    pub(crate) owner: Place,
    /// Two words for each worker, and for CLH's first dummy: what it waits on, and its successor.
    pub(crate) nodes: Vec<(Place, Place)>,
}

/// Offset of the last owner in a lock's bytes (`shm-layout`, `lock/place.rs`).
const LAST_OWNER_OFFSET: u64 = 56;

/// Queue nodes lie beyond every offset of a fields area.
const NODES: u64 = 1 << 48;

/// Everything a simulation runs.
#[derive(Debug)]
pub(crate) struct Scripts {
    pub(crate) workers: Vec<Script>,
    pub(crate) locks: Vec<LockWords>,
    /// Each line's number: its offset in lines.
    pub(crate) lines: Vec<u64>,
    /// Each word's offset.
    pub(crate) words: Vec<u64>,
}

/// Gives lines and words their indices as they come.
#[derive(Default)]
struct Interner {
    lines: Vec<u64>,
    words: Vec<u64>,
    line_of: HashMap<u64, u32>,
    word_of: HashMap<u64, u32>,
}

impl Interner {
    fn place(&mut self, offset: u64) -> Place {
        let number = offset / CACHE_LINE_BYTES;
        let line = *self.line_of.entry(number).or_insert_with(|| {
            self.lines.push(number);
            self.lines.len() as u32 - 1
        });
        let word = *self.word_of.entry(offset).or_insert_with(|| {
            self.words.push(offset);
            self.words.len() as u32 - 1
        });
        Place { line, word }
    }

    fn at(&mut self, address: &Address) -> Where {
        match address {
            Address::Fixed(offset) => Where::Fixed(self.place(*offset)),
            Address::Any(offsets) => Where::Any(offsets.iter().map(|&offset| self.place(offset)).collect()),
        }
    }
}

impl Scripts {
    /// Resolves a Program whose every operation the model knows: [`refused`](crate::engine) has looked.
    pub(crate) fn of(program: &Program) -> Scripts {
        let mut interner = Interner::default();
        let locks = locks(program, &mut interner);
        let workers = program.workers.iter().map(|worker| script(worker, &mut interner)).collect();
        Scripts { workers, locks, lines: interner.lines, words: interner.words }
    }
}

fn locks(program: &Program, interner: &mut Interner) -> Vec<LockWords> {
    let slots = program.workers.iter().map(|w| u64::from(w.index.0) + 1).max().unwrap_or(0);
    let mut nodes_at = NODES;
    let mut lock = |placed: &plan::PlacedLock| {
        let nodes = if placed.kind.has_nodes() { slots + 1 } else { 0 };
        let words = LockWords {
            kind: placed.kind,
            state: interner.place(placed.offset),
            serving: interner.place(placed.offset + 4),
            owner: interner.place(placed.offset + LAST_OWNER_OFFSET),
            nodes: (0..nodes)
                .map(|node| nodes_at + node * LINE_PAIR_BYTES)
                .map(|at| (interner.place(at), interner.place(at + 4)))
                .collect(),
        };
        nodes_at += nodes * LINE_PAIR_BYTES;
        words
    };
    program.locks.iter().map(&mut lock).collect()
}

fn script(worker: &WorkerProgram, interner: &mut Interner) -> Script {
    let ops = &worker.ops;
    let release_of = |from: usize, wanted: u32| {
        let is_it = |op: &plan::Op| matches!(op.kind, OpKind::Unlock { lock, .. } if lock == wanted);
        (from..ops.len()).find(|&i| is_it(&ops[i])).map_or(ops.len(), |i| i + 1)
    };
    let acquisition_of = |before: usize, wanted: u32| {
        let is_it = |op: &plan::Op| matches!(op.kind, OpKind::Lock { lock, .. } if lock == wanted);
        (0..before).rev().find(|&i| is_it(&ops[i])).unwrap_or(0)
    };
    let mut step = |(index, op): (usize, &plan::Op)| {
        let what = match &op.kind {
            OpKind::Access { kind, at, .. } => {
                let at = interner.at(at);
                match kind {
                    AccessKind::Load => Do::Load(at),
                    AccessKind::Store => Do::Store(at),
                    AccessKind::Bump => Do::Bump(at),
                    AccessKind::Add => Do::Atomic(at, Update::Add),
                    AccessKind::Swap => Do::Atomic(at, Update::Swap),
                    AccessKind::Cas => Do::Atomic(at, Update::Cas),
                }
            }
            OpKind::Post { at, .. } => Do::Post(interner.place(*at)),
            OpKind::Wait { at, .. } => Do::Wait(interner.place(*at)),
            OpKind::Flush { at } => Do::Flush(interner.at(at)),
            OpKind::Lock { lock, shared, timeout } => Do::Lock {
                lock: *lock,
                shared: *shared,
                timeout: timeout.map(|t| t.0 * 1_000),
                behind: release_of(index, *lock),
            },
            OpKind::Unlock { lock, shared } => {
                Do::Unlock { lock: *lock, shared: *shared, again: acquisition_of(index, *lock) }
            }
            OpKind::Work(time) => Do::Work(ps(time.0 as f64)),
            OpKind::Pause => Do::Pause,
            OpKind::Fence => Do::Fence,
            OpKind::Yield => Do::Yield,
            OpKind::Sleep(time) => Do::Sleep(ps(time.0 as f64)),
            OpKind::Die | OpKind::Touch { .. } => unreachable!("refused before: the model has no processes and no pages"),
        };
        Step { every: op.every, what }
    };
    let steps = ops.iter().enumerate().map(&mut step).collect();
    Script { steps, period: worker.period.map(|p| ps(p.0 as f64)) }
}
