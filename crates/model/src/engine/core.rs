//! One core: its private caches, and where it stands.

use crate::cache::{Cache, Shadow};
use crate::machine::Caches;

/// A core that runs workers: one, or one for each of its threads.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) first: Cache,
    pub(super) second: Cache,
    /// What a fully associative first level would hold.
    pub(super) shadow: Shadow,
    pub(super) workers: Vec<u32>,
    pub(super) cluster: usize,
    socket: u32,
    /// The line used last, which needs no note of being used again.
    pub(super) last_line: u32,
}

impl Core {
    pub(super) fn new(caches: &Caches, cluster: usize, socket: u32) -> Core {
        Core {
            first: Cache::new(&caches.l1),
            second: Cache::new(&caches.l2),
            shadow: Shadow::new(&caches.l1),
            workers: Vec::new(),
            cluster,
            socket,
            last_line: u32::MAX,
        }
    }

    /// How far another core is: 0 in the cluster, 1 in the socket, 2 beyond.
    pub(super) fn distance(&self, other: &Core) -> usize {
        match () {
            () if self.cluster == other.cluster => 0,
            () if self.socket == other.socket => 1,
            () => 2,
        }
    }
}
