//! The queue lock of Mellor-Crummey and Scott: a list of waiters, each waiting on a word in its own node, which its
//! predecessor writes.
//!
//! J. M. Mellor-Crummey and M. L. Scott, "Algorithms for Scalable Synchronization on Shared-Memory Multiprocessors",
//! ACM TOCS 1991, figure 5. Nodes are named by index where the paper has pointers.

use super::algorithm::{Algorithm, Outcome, Released, Waiting};
use super::error::LockError;
use super::queue::{NOBODY, named};
use super::word::Word;
use crate::SharedMemory;
use std::mem::size_of;
use std::sync::atomic::{AtomicU32, Ordering};

/// A worker's place in the queue.
#[repr(C, align(128))]
#[derive(Debug, Default)]
pub(super) struct Node<W> {
    /// Who stands behind, by name; [`NOBODY`] until that one wrote itself in.
    pub(super) next: W,
    /// 1 while its worker waits.
    pub(super) waits: W,
}

const _: () = assert!(size_of::<Node<AtomicU32>>() as u64 == super::NODE_BYTES);

// SAFETY: repr(C), fixed-width atomics and padding; any bit pattern is valid.
#[allow(unsafe_code)]
unsafe impl SharedMemory for Node<AtomicU32> {}

/// An MCS lock as one worker uses it.
pub(super) struct Mcs<'a, W> {
    /// The queue's last, by name; [`NOBODY`] while the lock is free.
    tail: &'a W,
    nodes: &'a [Node<W>],
    me: u32,
    /// Behind another in the queue.
    waits: bool,
}

impl<'a, W: Word> Mcs<'a, W> {
    /// For worker `worker`, whose node is that of the same index.
    pub(super) fn new(tail: &'a W, nodes: &'a [Node<W>], worker: u32) -> Mcs<'a, W> {
        Mcs { tail, nodes, me: worker + 1, waits: false }
    }

    fn node(&self) -> Result<&'a Node<W>, LockError> {
        named(self.nodes, "own node", self.me)
    }

    /// The name of the successor, who has entered the queue and may not yet have written itself in.
    fn successor(&self, node: &Node<W>, waiting: &mut Waiting<'_>) -> Result<u32, LockError> {
        loop {
            // Acquire; pairs with the Release in `settle`: the successor's node is ready for the hand-over.
            match node.next.load(Ordering::Acquire) {
                NOBODY => waiting.turn()?,
                successor => return Ok(successor),
            };
            node.next.pause(NOBODY, 1);
        }
    }
}

impl<W: Word> Algorithm for Mcs<'_, W> {
    fn attempt(&mut self, shared: bool) -> Result<Outcome, LockError> {
        if self.waits {
            return Err(LockError::HeldAlready);
        }
        // Relaxed: the exchange below publishes it to whoever comes next.
        self.node()?.next.store(NOBODY, Ordering::Relaxed);
        // Acquire; pairs with the Release of the exchange in `release` (and in compiled code): behind a free lock, its
        // last owner's section comes first. Release; pairs with the Acquire here in the next to come, who writes to
        // this node.
        match self.tail.swap(self.me, Ordering::AcqRel) {
            NOBODY => Ok(Outcome::Owned),
            before => self.settle(shared, before.into()),
        }
    }

    fn settle(&mut self, _shared: bool, told: i64) -> Result<Outcome, LockError> {
        // Relaxed: the store to `next` publishes it to the predecessor, who alone writes it from then on.
        self.node()?.waits.store(1, Ordering::Relaxed);
        // Release; pairs with the Acquire in `successor`.
        named(self.nodes, "tail", told as u32)?.next.store(self.me, Ordering::Release);
        self.waits = true;
        Ok(Outcome::Busy)
    }

    fn wait(&mut self, shared: bool, waiting: &mut Waiting<'_>) -> Result<Outcome, LockError> {
        if !self.waits && self.attempt(shared)? == Outcome::Owned {
            return Ok(Outcome::Owned);
        }
        let node = self.node()?;
        // Acquire; pairs with the Release of the store in `release`.
        while node.waits.load(Ordering::Acquire) != 0 {
            waiting.turn()?;
            node.waits.pause(1, 1);
        }
        self.waits = false;
        Ok(Outcome::Owned)
    }

    fn release(&mut self, _shared: bool, waiting: &mut Waiting<'_>) -> Result<Released, LockError> {
        let node = self.node()?;
        // Relaxed: only whether the exchange is worth trying; `successor` reads it again.
        if node.next.load(Ordering::Relaxed) == NOBODY {
            // Release; pairs with the Acquire of the exchange in `attempt` (and in compiled code). Relaxed where it
            // fails: nothing is read by it.
            match self.tail.compare_exchange(self.me, NOBODY, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return Ok(Released::Done),
                Err(NOBODY) => return Err(LockError::NotHeld),
                Err(_) => {}
            }
        }
        let successor = self.successor(node, waiting)?;
        // Release; pairs with the Acquire in `wait`.
        named(self.nodes, "next", successor)?.waits.store(0, Ordering::Release);
        Ok(Released::Done)
    }

    fn is_held(&self) -> bool {
        // Relaxed, no partner: see the trait.
        self.tail.load(Ordering::Relaxed) != NOBODY
    }
}
