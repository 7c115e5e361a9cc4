//! One step of a role's loop, parsed but not yet placed.

use crate::region::MemoryStep;
use crate::units::Nanos;

/// A step: what is done, and in which passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// 1: in each pass; N: in one pass of N (`every N …`), the N-th, 2N-th, ….
    pub every: u32,
    /// What is done.
    pub action: Action,
    /// As written, for `--show-code` and messages.
    pub text: String,
}

/// What a step does. The memory accesses of each are tabled in `docs/steps.md`, which the decoder test reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Read once.
    Load(Target),
    /// Write once, plainly.
    Store(Target),
    /// Plain read, then plain write of one more: not atomic, updates can be lost.
    Bump(Target),
    /// Atomic fetch-and-add of 1.
    Add(Target),
    /// Atomic exchange.
    Swap(Target),
    /// One atomic compare-and-exchange, expecting what this step last saw.
    Cas(Target),
    /// One atomic add that a [`Action::Wait`] elsewhere can see.
    Post(Target),
    /// Spin until the word differs from what this worker last saw or posted; at first 0.
    Wait(Target),
    /// Write the line back and drop it from every cache.
    Flush(Target),
    /// Take the lock.
    Lock {
        /// Index into [`Case::locks`](crate::Case::locks).
        lock: usize,
        /// `rlock`: as a reader.
        shared: bool,
        /// Give up after so long, and skip what follows up to the release.
        timeout: Option<Nanos>,
    },
    /// Release it.
    Unlock {
        /// Index into [`Case::locks`](crate::Case::locks).
        lock: usize,
        /// `runlock`: as a reader.
        shared: bool,
    },
    /// End the process at once, holding what it holds, as `kill -9` would.
    Die,
    /// Compute without touching memory.
    Work(Nanos),
    /// The CPU's spin-loop hint.
    Pause,
    /// A full memory fence.
    Fence,
    /// `sched_yield(2)`.
    Yield,
    /// Sleep at least so long.
    Sleep(Nanos),
    /// Use a region, or give some of it back.
    Memory(MemoryStep),
}

impl Action {
    /// The field a step touches, if it touches one.
    pub fn target(&self) -> Option<&Target> {
        match self {
            Action::Load(t)
            | Action::Store(t)
            | Action::Bump(t)
            | Action::Add(t)
            | Action::Swap(t)
            | Action::Cas(t)
            | Action::Post(t)
            | Action::Wait(t)
            | Action::Flush(t) => Some(t),
            _ => None,
        }
    }

    /// Whether the step writes its target's line, so that other CPUs lose their copies.
    pub fn writes(&self) -> bool {
        matches!(
            self,
            Action::Store(_)
                | Action::Bump(_)
                | Action::Add(_)
                | Action::Swap(_)
                | Action::Cas(_)
                | Action::Post(_)
                | Action::Flush(_)
        )
    }
}

/// Which element of which field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Index into [`Case::fields`](crate::Case::fields).
    pub field: usize,
    /// The element.
    pub element: Element,
}

/// Which element of a field.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Element {
    /// The only one of a field without brackets.
    Only,
    /// The worker's own index.
    Me,
    /// The next worker's, wrapping at the field's count.
    Next,
    /// One at random, seeded, drawn anew each pass.
    Any,
    /// Each in turn within the pass.
    All,
    /// This one.
    At(u32),
}
