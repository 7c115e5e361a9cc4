//! A Program resolved for the simulation: lines and words by index, jumps by operation.

use crate::time::{Ps, ps};
use plan::{AccessKind, Address, CACHE_LINE_BYTES, LINE_PAIR_BYTES, LockKind, OpKind, Program, WorkerProgram};
use std::collections::{BTreeMap, HashMap};

/// A word: its line and itself, by index.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) line: u32,
    pub(crate) word: u32,
}

/// What an access touches: a word, and where that straddles two lines its rest in the second one, which is an access of
/// its own.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) place: Place,
    pub(crate) rest: Option<Place>,
}

/// Where an operation touches memory.
#[derive(Clone, Debug)]
pub(crate) enum Where {
    Fixed(Place),
    Split(Target),
    Any(Vec<Target>),
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
    /// How long after the window's opening it begins.
    pub(crate) after: Ps,
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

/// Queue nodes lie beyond every offset of a fields area.
const NODES: u64 = 1 << 48;

/// Everything a simulation runs.
#[derive(Debug)]
pub(crate) struct Scripts {
    pub(crate) workers: Vec<Script>,
    pub(crate) locks: Vec<LockWords>,
    /// Each line's number: its offset in lines.
    pub(crate) lines: Vec<u64>,
    /// How many words there are.
    pub(crate) words: usize,
    /// Each word's place among those of its line pair, by word.
    pub(crate) nth_in_pair: Vec<u16>,
    /// Offsets of the words of a line pair, ascending, by the pair's number.
    pub(crate) pairs: BTreeMap<u64, Vec<u64>>,
}

impl Scripts {
    /// Offsets of the words in a line's pair.
    pub(crate) fn words_beside(&self, number: u64) -> &[u64] {
        self.pairs.get(&(number * CACHE_LINE_BYTES / LINE_PAIR_BYTES)).map_or(&[], Vec::as_slice)
    }
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

    /// `bytes` from an offset on. Nothing is wider than a line.
    fn target(&mut self, offset: u64, bytes: u64) -> Target {
        let next_line = offset / CACHE_LINE_BYTES * CACHE_LINE_BYTES + CACHE_LINE_BYTES;
        let place = self.place(offset);
        Target { place, rest: (offset + bytes > next_line).then(|| self.place(next_line)) }
    }

    fn at(&mut self, address: &Address, bytes: u64) -> Where {
        match address {
            Address::Fixed(offset) => match self.target(*offset, bytes) {
                Target { place, rest: None } => Where::Fixed(place),
                split => Where::Split(split),
            },
            Address::Any(offsets) => Where::Any(offsets.iter().map(|&offset| self.target(offset, bytes)).collect()),
        }
    }

    fn finish(self, workers: Vec<Script>, locks: Vec<LockWords>) -> Scripts {
        let mut pairs: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
        self.words.iter().for_each(|offset| pairs.entry(offset / LINE_PAIR_BYTES).or_default().push(*offset));
        pairs.values_mut().for_each(|offsets| offsets.sort_unstable());
        let nth = |offset: &u64| pairs[&(offset / LINE_PAIR_BYTES)].partition_point(|before| before < offset) as u16;
        let nth_in_pair = self.words.iter().map(nth).collect();
        Scripts { workers, locks, lines: self.lines, words: self.words.len(), nth_in_pair, pairs }
    }
}

impl Scripts {
    /// Resolves a Program whose every operation the model knows: [`knows`](crate::knows) has looked.
    pub(crate) fn of(program: &Program) -> Scripts {
        let mut interner = Interner::default();
        let locks = locks(program, &mut interner);
        let workers = program.workers.iter().map(|worker| script(worker, &mut interner)).collect();
        interner.finish(workers, locks)
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
            owner: interner.place(placed.offset + LockKind::LAST_OWNER_OFFSET),
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
            OpKind::Access { kind, at, width } => {
                let at = interner.at(at, width.bytes());
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
            OpKind::Flush { at } => Do::Flush(interner.at(at, 1)),
            OpKind::Lock { lock, shared, timeout } => Do::Lock {
                lock: *lock,
                shared: *shared,
                timeout: timeout.map(|t| ps(t.0 as f64)),
                behind: release_of(index, *lock),
            },
            OpKind::Unlock { lock, shared } => {
                Do::Unlock { lock: *lock, shared: *shared, again: acquisition_of(index, *lock) }
            }
            OpKind::Work(time) => Do::Work(ps(time.0 as f64).max(1)),
            OpKind::Pause => Do::Pause,
            OpKind::Fence => Do::Fence,
            OpKind::Yield => Do::Yield,
            OpKind::Sleep(time) => Do::Sleep(ps(time.0 as f64)),
            OpKind::Die | OpKind::Memory(_) => {
                unreachable!("refused before: the model has no processes and no pages")
            }
        };
        Step { every: op.every, what }
    };
    let steps = ops.iter().enumerate().map(&mut step).collect();
    Script { steps, period: worker.period.map(|p| ps(p.0 as f64)), after: ps(worker.after.0 as f64) }
}
