//! The CPUs of this machine and what they share, from `/sys/devices/system`.

use crate::cpu_list::{format_cpu_list, parse_cpu_list};
use crate::root::Root;
use nix::sched::{CpuSet, sched_getaffinity};
use nix::unistd::Pid;
use plan::{Cpu, CpuId, Topology};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Why the machine's CPUs could not be learned.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// Neither sysfs nor procfs lists a CPU.
    #[error(
        "no list of CPUs: {} and {} are missing or hold none; mount sysfs and procfs (a container may hide both)",
        sysfs.display(), procfs.display()
    )]
    NoCpus {
        /// The list of online CPUs that was looked for.
        sysfs: PathBuf,
        /// The fallback.
        procfs: PathBuf,
    },
    /// A list of CPUs is in no notation of the kernel's.
    #[error("{}: `{text}` is no list of CPUs such as `0-3,8`; the file is not the kernel's", path.display())]
    NotACpuList {
        /// The file.
        path: PathBuf,
        /// What it holds.
        text: String,
    },
    /// The kernel refused to say where this process may run.
    #[error(
        "sched_getaffinity failed: {errno}; on a machine of over {} possible CPUs the lab's CPU mask is too small",
        CpuSet::count()
    )]
    Affinity {
        /// The refusal.
        errno: nix::errno::Errno,
    },
    /// This process may run on none of the CPUs that are online.
    #[error("this process may run on CPUs {usable}, of which none is online ({online} are); change its cpuset")]
    NoUsableCpu {
        /// Where it may run.
        usable: String,
        /// What is online.
        online: String,
    },
}

/// The online CPUs, ascending, with their core, last-level cache, NUMA node and socket.
///
/// On [`Root::system`] a CPU is usable where this thread's affinity mask names it, so call it before pinning. A fixture
/// has no affinity: all its CPUs are usable.
///
/// Files that are missing make groups coarser, never an error: no core number makes each CPU a core of its own, no
/// socket or node number makes it 0, and without cache files a socket counts as one last-level group. Such a group is
/// an assumption; the line-transfer probe is what measures.
///
/// # Errors
/// [`HostError`], each variant with its cure.
///
/// # References
/// `Documentation/admin-guide/cputopology.rst`, `Documentation/ABI/testing/sysfs-devices-system-cpu`.
pub fn topology(root: &Root) -> Result<Topology, HostError> {
    let online = online_cpus(root)?;
    if !root.is_system() {
        return described(root, &online, &online);
    }
    let usable = affinity()?;
    // A container may show a list of its own (lxcfs); where the kernel lets us run is online whatever that list says.
    described(root, &online.union(&usable).copied().collect(), &usable)
}

fn described(root: &Root, online: &BTreeSet<u32>, usable: &BTreeSet<u32>) -> Result<Topology, HostError> {
    if online.is_disjoint(usable) {
        return Err(HostError::NoUsableCpu { usable: format_cpu_list(usable), online: format_cpu_list(online) });
    }
    let nodes = node_of_each_cpu(root)?;
    let (mut cores, mut groups) = (Numbering::default(), Numbering::default());
    let mut cpus = Vec::with_capacity(online.len());
    for &id in online {
        let socket = topology_number(root, id, "physical_package_id").unwrap_or(0);
        let llc = last_level(root, id)?.unwrap_or(LastLevel::Socket(socket));
        cpus.push(Cpu {
            id: CpuId(id),
            core: cores.of(core(root, id, socket)),
            llc: groups.of(llc),
            node: nodes.get(&id).copied().unwrap_or(0),
            socket,
            usable: usable.contains(&id),
        });
    }
    Ok(Topology { cpus })
}

fn online_cpus(root: &Root) -> Result<BTreeSet<u32>, HostError> {
    let sysfs = "sys/devices/system/cpu/online";
    let cpus = match cpu_list(root, sysfs)? {
        Some(cpus) => cpus,
        None => cpus_in_stat(root),
    };
    if cpus.is_empty() {
        return Err(HostError::NoCpus { sysfs: root.path(sysfs), procfs: root.path("proc/stat") });
    }
    Ok(cpus)
}

/// `/proc/stat` has a row for each CPU that is online.
fn cpus_in_stat(root: &Root) -> BTreeSet<u32> {
    let stat = root.text("proc/stat").unwrap_or_default();
    stat.lines().filter_map(|row| row.split_whitespace().next()?.strip_prefix("cpu")?.parse().ok()).collect()
}

fn affinity() -> Result<BTreeSet<u32>, HostError> {
    let mask = sched_getaffinity(Pid::from_raw(0)).map_err(|errno| HostError::Affinity { errno })?;
    let in_mask = |cpu: &usize| mask.is_set(*cpu).unwrap_or(false);
    Ok((0..CpuSet::count()).filter(in_mask).map(|cpu| cpu as u32).collect())
}

fn cpu_list(root: &Root, file: &str) -> Result<Option<BTreeSet<u32>>, HostError> {
    let Some(text) = root.text(file) else { return Ok(None) };
    match parse_cpu_list(&text) {
        Some(cpus) => Ok(Some(cpus)),
        None => Err(HostError::NotACpuList { path: root.path(file), text }),
    }
}

/// A number from a CPU's `topology` folder; -1, with which the kernel says that it does not know, is `None`.
fn topology_number(root: &Root, cpu: u32, name: &str) -> Option<u32> {
    root.number(&format!("sys/devices/system/cpu/cpu{cpu}/topology/{name}"))
}

/// What makes two logical CPUs one core: `core_id` is unique only within a die of a socket.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Core {
    Known { socket: u32, die: u32, core: u32 },
    OfCpu(u32),
}

fn core(root: &Root, cpu: u32, socket: u32) -> Core {
    match topology_number(root, cpu, "core_id") {
        Some(core) => Core::Known { socket, die: topology_number(root, cpu, "die_id").unwrap_or(0), core },
        None => Core::OfCpu(cpu),
    }
}

/// What makes two CPUs share a last-level cache.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum LastLevel {
    Cache { level: u32, shared_by: BTreeSet<u32> },
    Socket(u32),
}

/// The highest level of cache that holds data and says who shares it.
fn last_level(root: &Root, cpu: u32) -> Result<Option<LastLevel>, HostError> {
    let folder = format!("sys/devices/system/cpu/cpu{cpu}/cache");
    let mut found: Option<(u32, BTreeSet<u32>)> = None;
    for index in root.names(&folder).iter().filter(|name| name.starts_with("index")) {
        let index = format!("{folder}/{index}");
        let Some(level) = root.number(&format!("{index}/level")) else { continue };
        if root.text(&format!("{index}/type")).as_deref() == Some("Instruction") {
            continue;
        }
        let Some(shared_by) = cpu_list(root, &format!("{index}/shared_cpu_list"))? else { continue };
        if shared_by.contains(&cpu) && found.as_ref().is_none_or(|(highest, _)| level > *highest) {
            found = Some((level, shared_by));
        }
    }
    Ok(found.map(|(level, shared_by)| LastLevel::Cache { level, shared_by }))
}

fn node_of_each_cpu(root: &Root) -> Result<BTreeMap<u32, u32>, HostError> {
    let folder = "sys/devices/system/node";
    let mut nodes = BTreeMap::new();
    for name in root.names(folder) {
        let Some(node) = name.strip_prefix("node").and_then(|n| n.parse().ok()) else { continue };
        for cpu in cpu_list(root, &format!("{folder}/{name}/cpulist"))?.unwrap_or_default() {
            nodes.insert(cpu, node);
        }
    }
    Ok(nodes)
}

/// Numbers groups from 0 in the order in which their first CPU comes.
struct Numbering<K>(BTreeMap<K, u32>);

impl<K> Default for Numbering<K> {
    fn default() -> Self {
        Numbering(BTreeMap::new())
    }
}

impl<K: Ord> Numbering<K> {
    fn of(&mut self, key: K) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(key).or_insert(next)
    }
}

#[cfg(test)]
mod tests {
    use super::{HostError, described, online_cpus, topology};
    use crate::fixture::Fixture;
    use crate::root::Root;
    use plan::{Cpu, CpuId, Topology};

    /// (core, llc, node, socket) of each CPU.
    fn groups(topology: &Topology) -> Vec<(u32, u32, u32, u32)> {
        topology.cpus.iter().map(|c| (c.core, c.llc, c.node, c.socket)).collect()
    }

    /// The topology for a process that may run on these CPUs alone.
    fn usable_alone<const N: usize>(root: &Root, cpus: [u32; N]) -> Result<Topology, HostError> {
        described(root, &online_cpus(root)?, &cpus.into())
    }

    fn ids(topology: &Topology) -> Vec<u32> {
        topology.cpus.iter().map(|c| c.id.0).collect()
    }

    #[test]
    fn a_virtual_machine_of_two_cpus_shares_its_l3() {
        let fixture = Fixture::new().online("0-1").node(0, "0-1");
        let fixture = fixture.cpu(0, 0, 0).cpu(1, 0, 1);
        let fixture =
            fixture.caches(0, &[(1, "Data", "0"), (1, "Instruction", "0"), (2, "Unified", "0"), (3, "Unified", "0-1")]);
        let fixture = fixture.caches(1, &[(1, "Data", "1"), (2, "Unified", "1"), (3, "Unified", "0-1")]);
        let seen = topology(&fixture.root()).unwrap();
        let cpu = |id| Cpu { id: CpuId(id), core: id, llc: 0, node: 0, socket: 0, usable: true };
        assert_eq!(seen.cpus, [cpu(0), cpu(1)]);
    }

    #[test]
    fn two_sockets_with_siblings_number_cores_over_the_machine() {
        // Linux's usual order: first threads of every core, then their siblings; core ids repeat on each socket.
        let mut fixture = Fixture::new().online("0-7").node(0, "0-1,4-5").node(1, "2-3,6-7");
        for (cpu, socket, core) in [0, 1, 2, 3, 4, 5, 6, 7].map(|c| (c, (c / 2) % 2, c % 2)) {
            let shared = ["0-1,4-5", "2-3,6-7"][socket as usize];
            fixture = fixture.cpu(cpu, socket, core).caches(cpu, &[(3, "Unified", shared)]);
        }
        let seen = topology(&fixture.root()).unwrap();
        let once = [(0, 0, 0, 0), (1, 0, 0, 0), (2, 1, 1, 1), (3, 1, 1, 1)];
        assert_eq!(groups(&seen), [once, once].concat());
        assert_eq!((seen.sockets(), seen.nodes(), seen.llc_groups()), (2, 2, 2));
    }

    #[test]
    fn dies_of_one_socket_do_not_share_core_numbers() {
        let fixture = Fixture::new().online("0-1").cpu(0, 0, 0).cpu(1, 0, 0).die(0, 0).die(1, 1);
        assert_eq!(topology(&fixture.root()).unwrap().cpus.iter().map(|c| c.core).collect::<Vec<_>>(), [0, 1]);
    }

    #[test]
    fn an_offline_cpu_is_not_there_and_is_not_usable() {
        let fixture = Fixture::new().online("0,2-3").node(0, "0,2-3");
        let fixture = fixture.cpu(0, 0, 0).cpu(2, 0, 2).cpu(3, 0, 3);
        let seen = usable_alone(&fixture.root(), [1, 2]).unwrap();
        assert_eq!(ids(&seen), [0, 2, 3]);
        assert_eq!(seen.cpus.iter().map(|c| c.usable).collect::<Vec<_>>(), [false, true, false]);
        assert!(seen.cpu(CpuId(1)).is_none());
    }

    #[test]
    fn without_cache_files_a_socket_is_one_group() {
        let fixture = Fixture::new().online("0-2").cpu(0, 0, 0).cpu(1, 0, 1).cpu(2, 1, 0);
        assert_eq!(groups(&topology(&fixture.root()).unwrap()), [(0, 0, 0, 0), (1, 0, 0, 0), (2, 1, 0, 1)]);
    }

    #[test]
    fn a_cache_that_names_no_sharers_is_passed_over() {
        let fixture = Fixture::new().online("0-1").cpu(0, 0, 0).cpu(1, 0, 1);
        let fixture = fixture.caches(0, &[(2, "Unified", "0")]).caches(1, &[(2, "Unified", "1")]);
        let fixture = fixture.file("sys/devices/system/cpu/cpu0/cache/index1/level", "3");
        let fixture = fixture.file("sys/devices/system/cpu/cpu1/cache/index1/level", "3");
        assert_eq!(topology(&fixture.root()).unwrap().llc_groups(), 2);
    }

    #[test]
    fn hybrid_cores_group_by_the_cache_they_have() {
        // A performance core with two threads, and a cluster of two efficient cores without a way into the L3.
        let mut fixture = Fixture::new().online("0-3");
        for (cpu, core, top) in [(0, 0, (3, "0-1")), (1, 0, (3, "0-1")), (2, 4, (2, "2-3")), (3, 5, (2, "2-3"))] {
            fixture = fixture.cpu(cpu, 0, core).caches(cpu, &[(top.0, "Unified", top.1)]);
        }
        assert_eq!(
            groups(&topology(&fixture.root()).unwrap()),
            [(0, 0, 0, 0), (0, 0, 0, 0), (1, 1, 0, 0), (2, 1, 0, 0)]
        );
    }

    #[test]
    fn bare_procfs_is_enough() {
        let fixture = Fixture::new().file("proc/stat", "cpu  1 2 3\ncpu0 1 2 3\ncpu3 1 2 3\nintr 5\n");
        let seen = topology(&fixture.root()).unwrap();
        assert_eq!((ids(&seen), groups(&seen)), (vec![0, 3], vec![(0, 0, 0, 0), (1, 0, 0, 0)]));
    }

    #[test]
    fn unknown_numbers_of_the_kernel_are_not_numbers() {
        let fixture = Fixture::new().online("0-1");
        let fixture = fixture.file("sys/devices/system/cpu/cpu0/topology/core_id", "-1");
        let fixture = fixture.file("sys/devices/system/cpu/cpu0/topology/physical_package_id", "-1");
        assert_eq!(groups(&topology(&fixture.root()).unwrap()), [(0, 0, 0, 0), (1, 0, 0, 0)]);
    }

    #[test]
    fn errors_name_the_file_and_what_to_do() {
        let empty = Fixture::new();
        let text = topology(&empty.root()).unwrap_err().to_string();
        assert!(text.contains("sys/devices/system/cpu/online") && text.contains("mount"), "{text}");

        let damaged = Fixture::new().online("all of them");
        assert!(matches!(topology(&damaged.root()), Err(HostError::NotACpuList { text, .. }) if text == "all of them"));

        let elsewhere = Fixture::new().online("0-1");
        let text = usable_alone(&elsewhere.root(), [7]).unwrap_err().to_string();
        assert!(text.contains("CPUs 7") && text.contains("0-1"), "{text}");
    }

    #[test]
    fn this_machine_has_a_cpu_for_this_process() {
        let seen = topology(&Root::system()).unwrap();
        assert!(seen.cpus.is_sorted_by_key(|c| c.id));
        assert!(seen.cpus.iter().any(|c| c.usable));
        assert!(seen.llc_groups() >= 1 && seen.sockets() >= 1 && seen.nodes() >= 1);
    }
}
