//! `topology`: the CPUs and what they share; with `--measure` how far they are from each other; with `--write` all of
//! it as a machine file.

use crate::cli::TopologyOptions;
use crate::distances::{self, Measured};
use crate::exit::{CommandError, Ending};
use crate::host_machine;
use crate::machine::Machine;
use crate::report::data;
use crate::report::new_file;
use crate::report::style::{ColourChoice, Style};
use crate::report::text::shown;
use crate::report::topology as screen;
use crate::report::window;
use host::Root;
use plan::Topology;
use record::{CacheRow, CpuRow, SCHEMA_VERSION};
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
    let measured = options.measure.then(|| distances::measure(&topology, options)).transpose()?;
    let record = record_of(&root, &topology, measured.as_ref());
    if let (Some(path), Some(measured)) = (options.write.as_deref(), &measured) {
        let machine = host_machine::of(&root, &topology, measured, SystemTime::now());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_machine::tests::two_sockets;

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
}
