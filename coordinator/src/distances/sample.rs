//! Which CPUs are measured: all where they are few, else some of each distance.

use plan::{Cpu, CpuId, Topology};
use std::collections::BTreeMap;

/// CPUs whose pairs are measured unless all are asked for: 16 make 120 pairs in eight rings.
const CPUS_MAX: usize = 16;

/// The CPUs to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    /// Measured in rings, each pair of them.
    pub(super) cpus: Vec<CpuId>,
    /// Two threads of one core, measured by themselves: in a ring they would slow each other.
    pub(super) siblings: Option<[CpuId; 2]>,
    /// How these were chosen.
    pub(super) why: String,
}

/// The usable CPUs where `all` are asked for; else one thread a core, of at most [`CPUS_MAX`] cores, two neighbours of
/// each last level as far as that goes.
pub(super) fn choose(topology: &Topology, all: bool) -> Sample {
    let usable: Vec<&Cpu> = topology.cpus.iter().filter(|cpu| cpu.usable).collect();
    if all {
        return Sample {
            cpus: usable.iter().map(|cpu| cpu.id).collect(),
            siblings: None,
            why: "every CPU that this process may use".to_owned(),
        };
    }
    let mut cores: BTreeMap<u32, Vec<&Cpu>> = BTreeMap::new();
    usable.iter().for_each(|cpu| cores.entry(cpu.core).or_default().push(cpu));
    let siblings = cores.values().find_map(|threads| match threads[..] {
        [a, b, ..] => Some([a.id, b.id]),
        _ => None,
    });
    let firsts: Vec<&Cpu> = cores.values().filter_map(|threads| threads.first().copied()).collect();
    let beside = if siblings.is_some() { ", and two threads of one core" } else { "" };
    if firsts.len() <= CPUS_MAX {
        let cpus = sorted(firsts.iter().map(|cpu| cpu.id));
        return Sample { cpus, siblings, why: format!("one thread of every core{beside}") };
    }
    let mut groups: BTreeMap<(u32, u32), Vec<CpuId>> = BTreeMap::new();
    firsts.iter().for_each(|cpu| groups.entry((cpu.socket, cpu.llc)).or_default().push(cpu.id));
    let groups: Vec<Vec<CpuId>> = groups.into_values().collect();
    let wanted = groups.len().min(CPUS_MAX / 2);
    let each = CPUS_MAX / wanted;
    let chosen = evenly(&groups, wanted).flat_map(|group| evenly(group, each).copied().collect::<Vec<_>>());
    Sample {
        cpus: sorted(chosen),
        siblings,
        why: format!("a sample: one thread of some cores of {wanted} last levels{beside}; `--all-pairs` measures all"),
    }
}

fn sorted(cpus: impl Iterator<Item = CpuId>) -> Vec<CpuId> {
    let mut cpus: Vec<CpuId> = cpus.collect();
    cpus.sort_unstable();
    cpus
}

/// `count` of the items, or all of them, at even distances from the first to the last.
fn evenly<T>(items: &[T], count: usize) -> impl Iterator<Item = &T> {
    let count = count.min(items.len());
    let at = move |n: usize| if count > 1 { n * (items.len() - 1) / (count - 1) } else { 0 };
    (0..count).map(move |n| &items[at(n)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Shape;
    use std::collections::BTreeSet;

    fn topology(sockets: u32, clusters: u32, cores: u32, threads: u32) -> Topology {
        Shape { sockets, clusters, cores, threads }.topology()
    }

    #[test]
    fn few_cores_are_all_measured_by_one_thread_each() {
        let sample = choose(&topology(1, 2, 4, 2), false);
        assert_eq!(sample.cpus, (0..8).map(CpuId).collect::<Vec<_>>());
        assert_eq!(sample.siblings, Some([CpuId(0), CpuId(8)]));
        assert_eq!(choose(&topology(1, 1, 2, 1), false).siblings, None);
        let all = choose(&topology(1, 2, 4, 2), true);
        assert_eq!((all.cpus.len(), all.siblings), (16, None));
    }

    #[test]
    fn of_many_cores_some_of_each_distance_are() {
        for shape in [(2, 4, 8, 2), (1, 12, 8, 2), (2, 1, 32, 2), (1, 1, 64, 1), (4, 16, 4, 1)] {
            let topology = topology(shape.0, shape.1, shape.2, shape.3);
            let sample = choose(&topology, false);
            assert_eq!(sample.cpus.iter().collect::<BTreeSet<_>>().len(), CPUS_MAX, "{shape:?}");
            let cpu = |id: &CpuId| topology.cpu(*id).unwrap();
            let pairs = || sample.cpus.iter().flat_map(|a| sample.cpus.iter().map(move |b| (cpu(a), cpu(b))));
            assert!(pairs().any(|(a, b)| a.core != b.core && a.llc == b.llc), "{shape:?}");
            assert_eq!(pairs().any(|(a, b)| a.llc != b.llc && a.socket == b.socket), shape.1 > 1, "{shape:?}");
            assert_eq!(pairs().any(|(a, b)| a.socket != b.socket), shape.0 > 1, "{shape:?}");
            assert!(sample.why.contains("--all-pairs"));
        }
    }

    #[test]
    fn a_cpu_that_may_not_be_used_is_not_measured() {
        let mut topology = topology(1, 1, 4, 1);
        topology.cpus[2].usable = false;
        assert_eq!(choose(&topology, false).cpus, [CpuId(0), CpuId(1), CpuId(3)]);
        assert_eq!(choose(&topology, true).cpus, [CpuId(0), CpuId(1), CpuId(3)]);
    }
}
