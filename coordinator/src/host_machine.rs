//! This machine as the model takes it: what the kernel says of it, with what was measured on it.

use crate::cli::TopologyOptions;
use crate::distances::{self, Measured};
use crate::exit::CommandError;
use crate::machine::Machine;
use host::Root;
use model::{Geometry, HostFigures, Unmeasured};
use plan::{CpuId, Topology};
use record::CostProbe;
use std::time::SystemTime;

/// The machine at hand, as `topology --measure` saw it.
///
/// # Errors
/// [`Unmeasured`]: the figures that are missing.
pub(crate) fn of(
    root: &Root,
    topology: &Topology,
    measured: &Measured,
    now: SystemTime,
) -> Result<model::Machine, Unmeasured> {
    let date = humantime::format_rfc3339_seconds(now).to_string();
    let date = date.split('T').next().unwrap_or(&date);
    let figures = HostFigures {
        measured: format!("measured by `coordinator topology --measure` on {}, {date}", host::facts(root).cpu_model),
        distances: measured.probed(),
        costs: measured.costs,
        fetches_pairs: measured.adjacent_line.map(|adjacent| adjacent.matters),
        ..described(root, topology)
    };
    figures.machine()
}

/// The machine at hand without a measured figure.
pub(crate) fn described<'a>(root: &Root, topology: &'a Topology) -> HostFigures<'a> {
    let facts = host::facts(root);
    let first = topology.cpus.iter().find(|cpu| cpu.usable).map_or(CpuId(0), |cpu| cpu.id);
    HostFigures {
        title: match &facts.hypervisor {
            Some(hypervisor) => format!("{} under {hypervisor}", facts.cpu_model),
            None => facts.cpu_model.clone(),
        },
        measured: String::new(),
        topology,
        processor: host::cpu_identity(root, first),
        caches: geometry(root, first),
        distances: [None; 3],
        costs: CostProbe::default(),
        fetches_pairs: None,
    }
}

/// The machine at hand, measured now.
///
/// # Errors
/// [`CommandError`] where it has one CPU to measure on, a repetition failed, or a figure could not be had.
pub(crate) fn measured() -> Result<(model::Machine, Topology), CommandError> {
    let root = Root::system();
    let topology = Machine::topology().map_err(CommandError::Failed)?;
    if topology.cpus.iter().filter(|cpu| cpu.usable).count() < 2 {
        return Err(CommandError::HostCannot(format!(
            "this process may use one CPU, so that no distance can be measured here; name a machine with `--machine`: \
             {}; for this process, {}",
            model::names().collect::<Vec<_>>().join(", "),
            Machine::cpu_limits()
        )));
    }
    let options = TopologyOptions { measure: true, ..TopologyOptions::default() };
    let measured = distances::measure(&topology, &options)?;
    let machine = of(&root, &topology, &measured, SystemTime::now());
    let machine = machine.map_err(|error| CommandError::Failed(format!("this machine: {error}")))?;
    Ok((machine, topology))
}

/// First, second and last level of a CPU.
fn geometry(root: &Root, cpu: CpuId) -> [Option<Geometry>; 3] {
    let caches = host::data_caches(root, cpu);
    let last = caches.iter().filter(|cache| cache.level > 2).max_by_key(|cache| cache.level);
    let level = |level: u32| caches.iter().find(|cache| cache.level == level);
    [level(1), level(2), last].map(|cache| cache.and_then(|c| Some(Geometry { bytes: c.bytes?, ways: c.ways })))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A `sys` and `proc` tree: two sockets of two cores with two threads each, numbered as Linux does.
    pub(crate) fn two_sockets() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let file = |path: String, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("{text}\n")).unwrap();
        };
        file("sys/devices/system/cpu/online".into(), "0-7");
        file(
            "proc/cpuinfo".into(),
            "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 106\nmodel name\t: Intel Xeon",
        );
        for socket in 0..2 {
            let (a, b) = (2 * socket, 2 * socket + 1);
            let list = format!("{a}-{b},{}-{}", a + 4, b + 4);
            file(format!("sys/devices/system/node/node{socket}/cpulist"), &list);
            for cpu in [a, b, a + 4, b + 4] {
                let folder = format!("sys/devices/system/cpu/cpu{cpu}");
                file(format!("{folder}/topology/physical_package_id"), &socket.to_string());
                file(format!("{folder}/topology/core_id"), &(cpu % 2).to_string());
                let threads = format!("{},{}", cpu % 4, cpu % 4 + 4);
                let levels =
                    [("1", "48K", "12", &threads), ("2", "1280K", "20", &threads), ("3", "55296K", "12", &list)];
                for (n, (level, size, ways, shared)) in levels.into_iter().enumerate() {
                    let index = format!("{folder}/cache/index{n}");
                    file(format!("{index}/level"), level);
                    file(format!("{index}/type"), if n == 0 { "Data" } else { "Unified" });
                    file(format!("{index}/size"), size);
                    file(format!("{index}/ways_of_associativity"), ways);
                    file(format!("{index}/coherency_line_size"), "64");
                    file(format!("{index}/shared_cpu_list"), shared);
                }
            }
        }
        folder
    }

    #[test]
    fn a_machine_file_of_it_reads_back_the_same_and_says_what_was_rounded() {
        let folder = two_sockets();
        let root = Root::at(folder.path());
        let topology = host::topology(&root).unwrap();
        let ns = |ns| Some(ns);
        let costs = record::CostProbe {
            load_ns: ns(0.14),
            store_ns: ns(0.28),
            bump_ns: ns(1.1),
            atomic_ns: ns(5.7),
            fence_ns: ns(10.0),
            pause_ns: ns(40.0),
            flush_ns: ns(60.0),
            instruction_ns: ns(0.14),
            clock_ns: ns(13.0),
            syscall_ns: ns(150.0),
            futex_ns: ns(310.0),
            wake_ns: ns(4_000.0),
            l1_ns: ns(1.4),
            l2_ns: ns(4.0),
            llc_ns: ns(20.0),
            memory_ns: ns(95.0),
        };
        let row = |distance: &str, transfer_ns| record::DistanceRow {
            distance: distance.to_owned(),
            pairs: 1,
            transfer_ns,
            contended_ns: Some(20.0),
            fetch_ns: None,
            tenure_ns: None,
        };
        let mut measured = Measured {
            pairs: vec![],
            distances: vec![row("core", 8.0), row("cluster", 51.0), row("machine", 108.0)],
            sample: record::PairSample { cpus: String::new(), pairs: 3, of: 28, repetitions: 1, why: String::new() },
            costs,
            adjacent_line: None,
        };
        let machine = of(&root, &topology, &measured, SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(machine.shape, model::Shape { sockets: 2, clusters: 1, cores: 2, threads: 2 });
        assert_eq!((machine.protocol.name(), machine.costs.window), ("MESIF", 352));
        assert_eq!(machine.caches.llc.bytes, 48 << 20);
        let source =
            |of: &str| machine.sources.iter().find(|source| source.of == of).map(|source| source.text.as_str());
        assert!(source("caches.llc").unwrap().contains("rounded down"));
        let dated = "measured by `coordinator topology --measure` on Intel Xeon, 1970-01-01";
        assert_eq!(source("costs"), Some(dated));
        let read = model::Machine::parse("host.toml", &machine.to_toml()).unwrap_or_else(|refusal| panic!("{refusal}"));
        assert_eq!(read, machine);

        measured.distances.pop();
        let refused = of(&root, &topology, &measured, SystemTime::UNIX_EPOCH).unwrap_err();
        assert_eq!(refused.figures, ["distance.machine"]);
    }
}
