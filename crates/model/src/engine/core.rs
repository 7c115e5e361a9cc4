//! One core: its private caches, and where it stands.

use crate::cache::{Cache, Shadow};
use crate::machine::Caches;
use crate::set::Set;

/// A core that runs workers: one, or one for each of its threads.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) first: Cache,
    pub(super) second: Cache,
    /// What a fully associative first level would hold; `None` where it would hold all lines there are.
    pub(super) shadow: Option<Shadow>,
    pub(super) workers: Vec<u32>,
    pub(super) cluster: usize,
    pub(super) socket: u32,
    /// The cores of its cluster, and of its socket, itself among them.
    pub(super) in_cluster: Set,
    pub(super) in_socket: Set,
    /// The line used last, which needs no note of being used again.
    pub(super) last_line: u32,
}

impl Core {
    pub(super) fn new(caches: &Caches, has_shadow: bool, cluster: usize, socket: u32) -> Core {
        Core {
            first: Cache::new(&caches.l1),
            second: Cache::new(&caches.l2),
            shadow: has_shadow.then(|| Shadow::new(&caches.l1)),
            workers: Vec::new(),
            cluster,
            socket,
            in_cluster: Set::EMPTY,
            in_socket: Set::EMPTY,
            last_line: u32::MAX,
        }
    }

    /// How far the farthest of other cores is: 0 in the cluster, 1 in the socket, 2 beyond.
    #[inline(always)]
    pub(super) fn distance(&self, others: Set) -> usize {
        usize::from(!others.without(self.in_cluster).is_empty())
            + usize::from(!others.without(self.in_socket).is_empty())
    }

    /// Whether threads of it run more than one worker.
    #[inline(always)]
    pub(super) fn has_siblings(&self) -> bool {
        self.workers.len() > 1
    }
}
