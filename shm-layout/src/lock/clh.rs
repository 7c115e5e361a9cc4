//! The queue lock of Craig, Landin and Hagersten: each waits on its predecessor's node, and takes that node over when
//! it releases.
//!
//! T. S. Craig, "Building FIFO and Priority-Queuing Spin Locks from Atomic Swap", University of Washington 1993; P.
//! Magnusson, A. Landin and E. Hagersten, "Queue Locks on Cache Coherent Multiprocessors", IPPS 1994. Nodes are named
//! by where they end, in bytes from the first one's begin, where the papers have pointers: compiled code adds a name to
//! an address and is there.

use super::NODE_BYTES;
use super::algorithm::{Algorithm, Outcome, Released, Waiting};
use super::error::LockError;
use super::fast_path::clh_names;
use super::word::Word;
use crate::SharedMemory;
use std::mem::size_of;
use std::sync::atomic::{AtomicU32, Ordering};

/// A place in the queue.
#[repr(C, align(128))]
#[derive(Debug, Default)]
pub(super) struct Node<W> {
    /// 1 from when its worker queues until it releases.
    pub(super) taken: W,
}

impl<W: Word> Node<W> {
    #[inline]
    fn is_taken(&self) -> bool {
        // Acquire; pairs with the Release in `release` (and in compiled code).
        self.taken.load(Ordering::Acquire) != 0
    }
}

const _: () = assert!(size_of::<Node<AtomicU32>>() as u64 == NODE_BYTES);

// SAFETY: repr(C), one fixed-width atomic and padding; any bit pattern is valid.
#[allow(unsafe_code)]
unsafe impl SharedMemory for Node<AtomicU32> {}

/// The name of the node of that index. The segment's map holds no nodes beyond the reach of 32 bits.
pub(super) const fn name(index: u32) -> u32 {
    (index + 1) * NODE_BYTES as u32
}

/// The name of the node that is in the queue of a new lock: the one behind all workers' own.
pub(super) const fn first_dummy(slots: u32) -> u32 {
    name(slots)
}

/// The node that `name`, read from `word`, names.
fn node<'n, W>(nodes: &'n [Node<W>], word: &'static str, name: u32) -> Result<&'n Node<W>, LockError> {
    let node_bytes = NODE_BYTES as u32;
    let index = if name.is_multiple_of(node_bytes) { (name / node_bytes).wrapping_sub(1) } else { u32::MAX };
    nodes.get(index as usize).ok_or(LockError::Corrupt { word, found: name })
}

/// A CLH lock as one worker uses it.
pub(super) struct Clh<'a, W> {
    /// The queue's last node, by name.
    tail: &'a W,
    nodes: &'a [Node<W>],
    /// The node to queue with, by name: at first the one of the worker's index.
    mine: u32,
    /// The node waited on, by name: mine from the release on.
    before: u32,
    /// Behind another in the queue.
    waits: bool,
}

impl<'a, W: Word> Clh<'a, W> {
    /// For worker `worker`.
    pub(super) fn new(tail: &'a W, nodes: &'a [Node<W>], worker: u32) -> Clh<'a, W> {
        Clh { tail, nodes, mine: name(worker), before: 0, waits: false }
    }

    /// The node of the one before.
    #[inline]
    fn predecessor(&self) -> Result<&'a Node<W>, LockError> {
        node(self.nodes, "tail", self.before)
    }
}

impl<W: Word> Algorithm for Clh<'_, W> {
    fn attempt(&mut self, _shared: bool) -> Result<Outcome, LockError> {
        if self.waits {
            return Err(LockError::HeldAlready);
        }
        // Relaxed: the exchange below publishes it to whoever waits on this node.
        node(self.nodes, "own node", self.mine)?.taken.store(1, Ordering::Relaxed);
        // Release; pairs with the Acquire here in the next to come, who then reads `taken` as 1 or as released.
        // Acquire: the same with the one before.
        self.before = self.tail.swap(self.mine, Ordering::AcqRel);
        self.waits = self.predecessor()?.is_taken();
        Ok(if self.waits { Outcome::Busy } else { Outcome::Owned })
    }

    fn settle(&mut self, shared: bool, told: i64) -> Result<Outcome, LockError> {
        self.adopt(shared, told);
        self.waits = true;
        Ok(Outcome::Busy)
    }

    fn adopt(&mut self, _shared: bool, told: i64) {
        (self.mine, self.before) = clh_names(told);
    }

    fn wait(&mut self, shared: bool, waiting: &mut Waiting<'_>) -> Result<Outcome, LockError> {
        if !self.waits && self.attempt(shared)? == Outcome::Owned {
            return Ok(Outcome::Owned);
        }
        let predecessor = self.predecessor()?;
        while predecessor.is_taken() {
            waiting.turn()?;
            predecessor.taken.pause(1, 1);
        }
        self.waits = false;
        Ok(Outcome::Owned)
    }

    fn release(&mut self, _shared: bool, _waiting: &mut Waiting<'_>) -> Result<Released, LockError> {
        let node = node(self.nodes, "own node", self.mine)?;
        // Relaxed: only its worker writes it while it is its own.
        if self.waits || node.taken.load(Ordering::Relaxed) == 0 {
            return Err(LockError::NotHeld);
        }
        // Release; pairs with the Acquire in `is_taken` (and in compiled code).
        node.taken.store(0, Ordering::Release);
        self.mine = self.before;
        Ok(Released::Done)
    }

    fn is_held(&self) -> bool {
        // Relaxed, no partner: see the trait. A tail that names no node is no free lock's either.
        let last = node(self.nodes, "tail", self.tail.load(Ordering::Relaxed));
        last.map_or(true, |node| node.taken.load(Ordering::Relaxed) != 0)
    }
}
