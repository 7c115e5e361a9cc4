//! What `topology` found: the JSON contract of `coordinator topology --json`.

use crate::costs::CostProbe;
use serde::{Deserialize, Serialize};

/// The CPUs of a machine, what they share, and with `--measure` how far they are from each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Topology {
    /// [`crate::SCHEMA_VERSION`]; always the first key.
    pub schema_version: u32,
    /// CPU model as `/proc/cpuinfo` names it.
    pub cpu_model: String,
    /// Hypervisor, where there is one: then all of this is what it chose to describe.
    pub hypervisor: Option<String>,
    /// Every CPU that is online, ascending.
    pub cpus: Vec<CpuRow>,
    /// Every cache that holds data, nearest first, then by its first CPU.
    pub caches: Vec<CacheRow>,
    /// Pairs of CPUs that were measured, ascending; empty without `--measure`.
    pub latency_ns: Vec<PairLatency>,
    /// What the pairs of each distance have in common, nearest first.
    pub distances: Vec<DistanceRow>,
    /// Which pairs were measured and why these; `None` without `--measure`.
    pub sample: Option<PairSample>,
    /// What operations cost, medians over the measured CPUs.
    pub costs: Option<CostProbe>,
    /// Whether two lines of a 128-byte pair disturb each other; `None` where that was not measured.
    pub adjacent_line: Option<AdjacentLine>,
}

/// One CPU and the groups it belongs to. Group numbers only mean equality.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuRow {
    /// Linux's number.
    pub id: u32,
    /// Physical core, unique over the machine.
    pub core: u32,
    /// Last-level cache group.
    pub llc: u32,
    /// NUMA node.
    pub node: u32,
    /// Socket.
    pub socket: u32,
    /// False where this process may not run there.
    pub usable: bool,
}

impl CpuRow {
    /// The row of a CPU.
    pub fn of(cpu: &plan::Cpu) -> CpuRow {
        CpuRow { id: cpu.id.0, core: cpu.core, llc: cpu.llc, node: cpu.node, socket: cpu.socket, usable: cpu.usable }
    }
}

/// What two CPUs have in common, nearest first.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// They are threads of one core.
    Core,
    /// Their cores share the last level.
    Cluster,
    /// Their last levels share the socket.
    Socket,
    /// Their sockets share the machine.
    Machine,
}

impl Reach {
    /// All, nearest first.
    pub const ALL: [Reach; 4] = [Reach::Core, Reach::Cluster, Reach::Socket, Reach::Machine];

    /// Of two CPUs, each by its groups; of a CPU and itself [`Reach::Core`].
    pub fn between(a: &CpuRow, b: &CpuRow) -> Reach {
        match () {
            () if a.core == b.core => Reach::Core,
            () if a.llc == b.llc => Reach::Cluster,
            () if a.socket == b.socket => Reach::Socket,
            () => Reach::Machine,
        }
    }

    /// As [`PairLatency::distance`] and [`DistanceRow::distance`] have it.
    pub fn name(self) -> &'static str {
        match self {
            Reach::Core => "core",
            Reach::Cluster => "cluster",
            Reach::Socket => "socket",
            Reach::Machine => "machine",
        }
    }
}

/// One cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheRow {
    /// 1 is nearest to the core.
    pub level: u32,
    /// Its size; `None` where the kernel does not say.
    pub bytes: Option<u64>,
    /// Lines a set; `None` likewise.
    pub ways: Option<u32>,
    /// Bytes of a line; `None` likewise.
    pub line_bytes: Option<u32>,
    /// The CPUs that share it, as the kernel writes lists: `0-3,8`.
    pub cpus: String,
}

/// How long a line takes between two CPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairLatency {
    /// The lower CPU.
    pub from: u32,
    /// The higher one.
    pub to: u32,
    /// What they share: the name of a [`Reach`].
    pub distance: String,
    /// One way of a line thrown to and fro by two processes, nanoseconds: the median reading.
    pub median: f64,
    /// The least reading.
    pub min: f64,
    /// The greatest.
    pub max: f64,
    /// Readings: two a repetition, each the median of blocks of round trips.
    pub readings: u32,
    /// A pass of two CPUs that count up words of one line, nanoseconds: the median of the readings whose one-way time
    /// is near the median. `None` where evictions left none.
    pub contended_ns: Option<f64>,
    /// A fetch of the line from the other CPU, worked out from the two; `None` likewise.
    pub fetch_ns: Option<f64>,
    /// How long a CPU keeps the line while the other one's request waits, likewise.
    pub tenure_ns: Option<f64>,
}

/// What the measured pairs of one distance have in common: medians over them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DistanceRow {
    /// As [`PairLatency::distance`].
    pub distance: String,
    /// Measured pairs.
    pub pairs: u32,
    /// One way, nanoseconds.
    pub transfer_ns: f64,
    /// A contended pass; `None` where no pair has one.
    pub contended_ns: Option<f64>,
    /// A fetch, worked out from the two.
    pub fetch_ns: Option<f64>,
    /// A tenure, likewise.
    pub tenure_ns: Option<f64>,
}

/// Which pairs were measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairSample {
    /// The CPUs whose pairs were measured, as the kernel writes lists.
    pub cpus: String,
    /// Pairs measured.
    pub pairs: u32,
    /// Pairs that this process could measure.
    pub of: u32,
    /// Times each was.
    pub repetitions: u32,
    /// How they were chosen.
    pub why: String,
}

/// Two workers that each `bump` and `flush` a line of their own: where a miss fetches the other line of a 128-byte pair
/// as well, they disturb each other on the lines of one pair and not on neighbouring lines of two.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdjacentLine {
    /// A pass on the two lines of one pair, nanoseconds.
    pub pair_ns: f64,
    /// On neighbouring lines of two pairs.
    pub across_ns: f64,
    /// 256 bytes apart.
    pub apart_ns: f64,
    /// Whether the first takes more than 1.2 times as long as either of the others.
    pub matters: bool,
}

#[cfg(test)]
mod tests {
    use super::{CpuRow, Reach};

    #[test]
    fn the_nearest_thing_that_two_cpus_share_names_their_distance() {
        let cpu = |id, core, llc, socket| CpuRow { id, core, llc, node: 0, socket, usable: true };
        let of = |other| Reach::between(&cpu(0, 0, 0, 0), &other).name();
        let names = [of(cpu(1, 0, 0, 0)), of(cpu(2, 1, 0, 0)), of(cpu(3, 2, 1, 0)), of(cpu(4, 3, 2, 1))];
        assert_eq!(names, Reach::ALL.map(Reach::name));
        assert_eq!(names, ["core", "cluster", "socket", "machine"]);
    }
}
