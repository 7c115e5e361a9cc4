//! `topology`: the CPUs and what they share; with `--measure` how far they are from each other; with `--write` all of
//! it as a machine file.

mod measure;
mod readings;
mod rings;
mod sample;

use crate::cli::TopologyOptions;
use crate::exit::{CommandError, Ending};
use crate::machine::Machine;
use crate::report::data;
use crate::report::new_file;
use crate::report::style::{ColourChoice, Style};
use crate::report::text::shown;
use crate::report::topology as screen;
use crate::report::window;
use host::Root;
use measure::Measured;
use model::{Geometry, HostFigures};
use plan::{CpuId, Topology};
use record::{CacheRow, CostProbe, CpuRow, SCHEMA_VERSION};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::time::SystemTime;

pub(crate) fn topology(options: &TopologyOptions, colour: ColourChoice) -> Result<Ending, CommandError> {
    let root = Root::system();
    let topology = Machine::topology().map_err(CommandError::Failed)?;
    let usable = topology.cpus.iter().filter(|cpu| cpu.usable).count();
    if options.measure && usable < 2 {
        return Err(CommandError::HostCannot(format!(
            "this process may use one CPU, and a distance lies between two: measure where there are more; for this \
             process, {}",
            Machine::cpu_limits()
        )));
    }
    if let Some(path) = options.write.as_deref() {
        // Told before anything is measured, which takes a while.
        new_file::check("--write", path)?;
    }
    let measured = options.measure.then(|| measure::measure(&topology, options)).transpose()?;
    let record = record_of(&root, &topology, measured.as_ref());
    if let (Some(path), Some(measured)) = (options.write.as_deref(), &measured) {
        let machine = machine(&root, &topology, &record, measured, SystemTime::now());
        let machine = machine.map_err(|error| CommandError::Failed(format!("{}: {error}", shown(path))))?;
        new_file::write("--write", path, &machine.to_toml())?;
    }
    let mut out = std::io::stdout().lock();
    if options.json {
        data::json(&record)?;
    } else {
        let style = Style::for_stdout(colour, window::columns(std::io::stdout()));
        out.write_all(screen::render(&record, options.write.as_deref(), &style).as_bytes())?;
    }
    out.flush()?;
    Ok(Ending::Done)
}

/// What `--json` prints.
fn record_of(root: &Root, topology: &Topology, measured: Option<&Measured>) -> record::Topology {
    let facts = host::facts(root);
    record::Topology {
        schema_version: SCHEMA_VERSION,
        cpu_model: facts.cpu_model,
        hypervisor: facts.hypervisor.map(|hypervisor| hypervisor.to_string()),
        cpus: topology.cpus.iter().map(CpuRow::of).collect(),
        caches: caches(root, topology),
        latency_ns: measured.map(|m| m.pairs.clone()).unwrap_or_default(),
        distances: measured.map(|m| m.distances.clone()).unwrap_or_default(),
        sample: measured.map(|m| m.sample.clone()),
        costs: measured.map(|m| m.costs),
        adjacent_line: measured.and_then(|m| m.adjacent_line),
    }
}

/// Each cache once, though every CPU that shares it describes it.
fn caches(root: &Root, topology: &Topology) -> Vec<CacheRow> {
    let mut rows: BTreeMap<(u32, BTreeSet<u32>), CacheRow> = BTreeMap::new();
    for cpu in &topology.cpus {
        for mut cache in host::data_caches(root, cpu.id) {
            // A cache that names no sharers is at least this CPU's.
            cache.shared_by.insert(cpu.id.0);
            let row = CacheRow {
                level: cache.level,
                bytes: cache.bytes,
                ways: cache.ways,
                line_bytes: cache.line_bytes,
                cpus: host::format_cpu_list(&cache.shared_by),
            };
            rows.entry((cache.level, cache.shared_by)).or_insert(row);
        }
    }
    rows.into_values().collect()
}

/// The machine at hand, as `topology --measure` saw it.
fn machine(
    root: &Root,
    topology: &Topology,
    record: &record::Topology,
    measured: &Measured,
    now: SystemTime,
) -> Result<model::Machine, model::Unmeasured> {
    let date = humantime::format_rfc3339_seconds(now).to_string();
    let date = date.split('T').next().unwrap_or(&date);
    let figures = HostFigures {
        measured: format!("measured by `coordinator topology --measure` on {}, {date}", record.cpu_model),
        distances: readings::REACHES.map(|reach| measured.probed(reach)),
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
pub(crate) fn host_machine() -> Result<(model::Machine, Topology), CommandError> {
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
    let measured = measure::measure(&topology, &options)?;
    let record = record_of(&root, &topology, Some(&measured));
    let machine = machine(&root, &topology, &record, &measured, SystemTime::now());
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
mod tests {
    use super::*;

    /// A `sys` and `proc` tree: two sockets of two cores with two threads each, numbered as Linux does.
    fn two_sockets() -> tempfile::TempDir {
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
    fn a_described_machine_becomes_rows_and_a_tree() {
        let folder = two_sockets();
        let root = Root::at(folder.path());
        let topology = host::topology(&root).unwrap();
        let record = record_of(&root, &topology, None);
        assert_eq!(record.cpus[6], CpuRow { id: 6, core: 2, llc: 1, node: 1, socket: 1, usable: true });
        let caches: Vec<_> = record.caches.iter().map(|c| (c.level, c.bytes.unwrap() >> 10, c.cpus.as_str())).collect();
        let expected = [
            (1, 48, "0,4"),
            (1, 48, "1,5"),
            (1, 48, "2,6"),
            (1, 48, "3,7"),
            (2, 1280, "0,4"),
            (2, 1280, "1,5"),
            (2, 1280, "2,6"),
            (2, 1280, "3,7"),
            (3, 55_296, "0-1,4-5"),
            (3, 55_296, "2-3,6-7"),
        ];
        assert_eq!(caches, expected);
        let half = |socket: u32, list: &str| {
            let (a, b) = (2 * socket, 2 * socket + 1);
            format!(
                "socket {socket}: CPUs {list}\n  NUMA node {socket}: CPUs {list}\n    L3 54 MiB 12 ways: CPUs {list}\n      \
                 core {a}: CPUs {a},{} (L1 48 KiB 12 ways, L2 1.25 MiB 20 ways)\n      \
                 core {b}: CPUs {b},{} (L1 48 KiB 12 ways, L2 1.25 MiB 20 ways)\n",
                a + 4,
                b + 4
            )
        };
        let tree = format!("Intel Xeon: 8 CPUs\n{}{}", half(0, "0-1,4-5"), half(1, "2-3,6-7"));
        let style = Style::decide(ColourChoice::Never, Some(80), |_| None, false);
        assert_eq!(screen::render(&record, None, &style).replace('\u{a0}', " "), tree);
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
        let record = record_of(&root, &topology, Some(&measured));
        let machine = machine(&root, &topology, &record, &measured, SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(machine.shape, model::Shape { sockets: 2, clusters: 1, cores: 2, threads: 2 });
        assert_eq!((machine.protocol.name(), machine.costs.window), ("MESIF", 352));
        assert_eq!(machine.caches.llc.bytes, 48 << 20);
        assert!(machine.source_of("caches.llc.kib").unwrap().contains("rounded down"));
        let dated = "measured by `coordinator topology --measure` on Intel Xeon, 1970-01-01";
        assert_eq!(machine.source_of("costs.wake_ns"), Some(dated));
        let read = model::Machine::parse("host.toml", &machine.to_toml()).unwrap_or_else(|refusal| panic!("{refusal}"));
        assert_eq!(read, machine);

        measured.distances.pop();
        let refused = super::machine(&root, &topology, &record, &measured, SystemTime::UNIX_EPOCH).unwrap_err();
        assert_eq!(refused.figures, ["distance.machine"]);
    }
}
