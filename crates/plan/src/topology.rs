//! The CPUs of a machine and what they share; read by `host`, or written by hand for a modelled machine.

use crate::units::CpuId;

/// A machine's CPUs, ascending by id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Every CPU that is online.
    pub cpus: Vec<Cpu>,
}

/// One logical CPU and the groups it belongs to. Group numbers only mean equality: two CPUs with the same `llc` share
/// a last-level cache.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Linux's number.
    pub id: CpuId,
    /// Physical core, unique over the machine.
    pub core: u32,
    /// Last-level cache group.
    pub llc: u32,
    /// NUMA node.
    pub node: u32,
    /// Socket.
    pub socket: u32,
    /// False where this process may not run there (affinity mask, cpuset).
    pub usable: bool,
}

impl Topology {
    /// The CPU of that number, if it is online.
    pub fn cpu(&self, id: CpuId) -> Option<&Cpu> {
        self.cpus.iter().find(|c| c.id == id)
    }

    /// Last-level groups among the usable CPUs.
    pub fn llc_groups(&self) -> usize {
        distinct(self.cpus.iter().filter(|c| c.usable).map(|c| c.llc))
    }

    /// Sockets among the usable CPUs.
    pub fn sockets(&self) -> usize {
        distinct(self.cpus.iter().filter(|c| c.usable).map(|c| c.socket))
    }

    /// NUMA nodes among the usable CPUs.
    pub fn nodes(&self) -> usize {
        distinct(self.cpus.iter().filter(|c| c.usable).map(|c| c.node))
    }
}

fn distinct(groups: impl Iterator<Item = u32>) -> usize {
    groups.collect::<std::collections::BTreeSet<_>>().len()
}
