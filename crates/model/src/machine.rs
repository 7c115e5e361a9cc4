//! A modelled machine: its CPUs, caches, distances and costs.

mod builtin;
mod cores;
mod host;
mod read;
mod write;

pub use builtin::names;
pub use cores::CoreFacts;
pub use host::{Geometry, HOST, HostFigures, Unmeasured};

use crate::protocol::Protocol;
use plan::{Cpu, CpuId, Topology};
use std::collections::{BTreeMap, BTreeSet};
use toml_text::Refusal;

/// A machine on paper. Every figure has a public source, which stands beside it in its file, or was measured here.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// As `--machine` spells it.
    pub name: String,
    /// What it is.
    pub title: String,
    /// How its caches are kept coherent.
    pub protocol: Protocol,
    /// Its CPUs.
    pub shape: Shape,
    /// Its caches and memory.
    pub caches: Caches,
    /// How far cores are from each other.
    pub distances: Distances,
    /// What operations cost.
    pub costs: Costs,
    /// Where the figures come from, ascending by what they are of.
    pub sources: Vec<Source>,
}

/// Where figures of a machine come from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Source {
    /// A table of the machine's file (`caches.l2`), a figure of one (`costs.wake_ns`), or empty: what stands at its
    /// top.
    pub of: String,
    /// Where it is published, or how it was had.
    pub text: String,
}

impl Machine {
    /// The machine that a file's text describes; `name` is the path to show in messages.
    ///
    /// # Errors
    /// [`Refusal`] with every problem: line, column and cure.
    pub fn parse(name: &str, text: &str) -> Result<Machine, Refusal> {
        read::parse(name, text)
    }

    /// The machine of that name among those that come with the lab, or of the file at that path.
    ///
    /// # Errors
    /// [`Refusal`] where there is neither, or the file describes none.
    pub fn find(name_or_path: &str) -> Result<Machine, Refusal> {
        builtin::find(name_or_path)
    }

    /// Where a figure comes from: its own source, or that of its table. `None` for what is no figure.
    #[cfg(test)]
    pub(crate) fn source_of(&self, figure: &str) -> Option<&str> {
        let table = figure.rsplit_once('.').map_or("", |(table, _)| table);
        let of = |wanted: &str| self.sources.iter().find(|source| source.of == wanted);
        of(figure).or_else(|| of(table)).map(|source| source.text.as_str())
    }
}

/// How the CPUs of a regular machine hang together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Sockets.
    pub sockets: u32,
    /// Last-level caches a socket.
    pub clusters: u32,
    /// Cores that share a last-level cache.
    pub cores: u32,
    /// Hardware threads a core.
    pub threads: u32,
}

impl Shape {
    /// The smallest regular shape that holds `topology`, and whether that has no CPUs beyond.
    pub fn of(topology: &Topology) -> (Shape, bool) {
        fn most<K: Ord, V: Ord>(pairs: impl Iterator<Item = (K, V)>) -> u32 {
            let mut groups: BTreeMap<K, BTreeSet<V>> = BTreeMap::new();
            pairs.for_each(|(group, member)| {
                groups.entry(group).or_default().insert(member);
            });
            groups.values().map(|members| members.len() as u32).max().unwrap_or(1)
        }
        let cpus = &topology.cpus;
        let shape = Shape {
            sockets: most(cpus.iter().map(|cpu| ((), cpu.socket))),
            clusters: most(cpus.iter().map(|cpu| (cpu.socket, cpu.llc))),
            cores: most(cpus.iter().map(|cpu| (cpu.llc, cpu.core))),
            threads: most(cpus.iter().map(|cpu| (cpu.core, cpu.id))),
        };
        let is_regular = cpus.len() as u32 == shape.sockets * shape.clusters * shape.cores * shape.threads;
        (shape, is_regular)
    }

    /// Which of the three distances lie between some two cores, nearest first.
    pub fn distances(&self) -> [bool; 3] {
        [self.cores > 1, self.clusters > 1, self.sockets > 1]
    }

    /// The CPUs, numbered as Linux does: first one thread of every core, then the second ones.
    pub fn topology(&self) -> Topology {
        let cores = self.sockets * self.clusters * self.cores;
        let cpu = |id: u32| {
            let core = id % cores;
            let llc = core / self.cores;
            let socket = llc / self.clusters;
            Cpu { id: CpuId(id), core, llc, node: socket, socket, usable: true }
        };
        Topology { cpus: (0..cores * self.threads).map(cpu).collect() }
    }
}

/// The levels.
#[derive(Clone, Debug, PartialEq)]
pub struct Caches {
    /// A core's first-level data cache.
    pub l1: CacheShape,
    /// A core's second level; holds all of the first.
    pub l2: CacheShape,
    /// A cluster's last level.
    pub llc: CacheShape,
    /// Whether the last level holds all that its cores hold; else only what they have evicted or shared.
    pub llc_is_inclusive: bool,
    /// A load that memory serves, nanoseconds.
    pub memory_ns: f64,
    /// Whether a miss of the second level fetches the other line of the 128-byte pair as well.
    pub fetches_pairs: bool,
}

/// One cache.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct CacheShape {
    /// Its size.
    pub bytes: u64,
    /// Lines a set.
    pub ways: u32,
    /// A load that it serves, nanoseconds beyond one served by the first level.
    pub ns: f64,
}

impl CacheShape {
    /// How many sets it has.
    pub fn sets(&self) -> u64 {
        self.bytes / (plan::CACHE_LINE_BYTES * u64::from(self.ways))
    }
}

/// What lies between two cores, by what they share.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Distances {
    /// They share the last level.
    pub cluster: Distance,
    /// They share the socket.
    pub socket: Distance,
    /// They share the machine.
    pub machine: Distance,
}

impl Distances {
    /// Nearest first; one that the shape has not, and that no request so travels, is the next one that is known. `None`
    /// where none is.
    pub fn filled(known: [Option<Distance>; 3]) -> Option<Distances> {
        let [cluster, socket, machine] = known;
        let any = cluster.or(socket).or(machine)?;
        Some(Distances {
            cluster: any,
            socket: socket.or(machine).unwrap_or(any),
            machine: machine.or(socket).unwrap_or(any),
        })
    }
}

/// One distance.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Distance {
    /// From asking for a line that the other core has modified to having it, nanoseconds, when nobody else asks.
    pub fetch_ns: f64,
    /// How long a core keeps a line that it has just been given while another's request waits, nanoseconds.
    pub tenure_ns: f64,
    /// How far single fetches lie from `fetch_ns`: half of the distance between their quartiles, as a share of it. At
    /// most [`Distance::MOST_SPREAD`]; what is beyond is taken for that.
    pub spread: f64,
}

/// What operations cost that miss nothing, and the core's buffers.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Costs {
    /// A load, in a loop of loads.
    pub load_ns: f64,
    /// A plain store, in a loop of stores; also what committing one takes.
    pub store_ns: f64,
    /// A plain load and store of one word, in a loop of these.
    pub bump_ns: f64,
    /// An atomic read-modify-write.
    pub atomic_ns: f64,
    /// A full fence.
    pub fence_ns: f64,
    /// A spin-loop hint.
    pub pause_ns: f64,
    /// Writing a line back and dropping it.
    pub flush_ns: f64,
    /// An instruction of straight code.
    pub instruction_ns: f64,
    /// A read of the clock with which contended waits are timed.
    pub clock_ns: f64,
    /// A short system call.
    pub syscall_ns: f64,
    /// A futex call that finds nobody to wake, or no reason to sleep.
    pub futex_ns: f64,
    /// From a wake-up call to the sleeper's first instruction.
    pub wake_ns: f64,
    /// Stores that wait for their line while the core goes on.
    pub store_buffer: u32,
    /// Instructions that a core works on at once: it goes on behind a load that misses for so many.
    pub window: u32,
}

/// Parts of a round of the line-transfer probe, in fetches: the thrower's line is taken back for writing, which is one,
/// and the catcher, whose copy ended half-way through that, has asked again by then and waits for the thrower's tenure
/// and the data's half.
const FETCHES_A_TRANSFER: f64 = 1.5;

/// A tenure beyond so many fetches is none that the contended probe resolves: then the line hardly moves.
const LONGEST_TENURE_FETCHES: f64 = 100.0;

impl Distance {
    /// The spread of a distance of which only a median is known. Without any, workers whose loops are equally long fall
    /// into a pattern that no machine keeps to. Published core-to-core tables show a few percent between rounds of one
    /// pair (`core-to-core-latency` prints ± 0.1 to 1.5 ns on 20 to 60 ns); what is chosen in this range changes
    /// little.
    pub const USUAL_SPREAD: f64 = 0.03;

    /// More than this leaves no fetch that is surely longer than nothing: half a fetch is what others can count on.
    pub const MOST_SPREAD: f64 = 0.2;

    /// From what the two probes of a run measured: one way of a line thrown to and fro, and a pass of two CPUs that
    /// count up words of one line, where a pass alone takes `bump_ns`; nanoseconds all.
    ///
    /// A tenure of length T holds T / `bump_ns` passes, at least one. Two contenders take turns of T and half a fetch,
    /// so that a pass takes (fetch + 2 T) / passes; one way of the thrown line takes 1.5 fetches and T.
    pub fn from_probes(transfer_ns: f64, contended_ns: f64, bump_ns: f64) -> Distance {
        let passes_lost = contended_ns / bump_ns - 2.0;
        let tenure_fetches =
            if passes_lost > 1.0 / LONGEST_TENURE_FETCHES { 1.0 / passes_lost } else { LONGEST_TENURE_FETCHES };
        let fetch_ns = transfer_ns / (FETCHES_A_TRANSFER + tenure_fetches);
        Distance { fetch_ns, tenure_ns: tenure_fetches * fetch_ns, spread: Distance::USUAL_SPREAD }
    }
}
