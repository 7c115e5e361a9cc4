//! The machines that come with the lab.

use super::{Machine, read};
use plan::nearest;
use std::path::Path;
use toml_text::Refusal;
use toml_text::refusal::Problem;
use toml_text::{file, words};

/// A machine file that is part of the program: its path in the sources, and its text.
macro_rules! machine {
    ($name:literal) => {
        (
            $name,
            concat!("crates/model/machines/", $name, ".toml"),
            include_str!(concat!("../../machines/", $name, ".toml")),
        )
    };
}

/// Name, path and text; a machine's name is its file's stem.
const MACHINES: [(&str, &str, &str); 4] =
    [machine!("ryzen-5950x"), machine!("epyc-7r13"), machine!("xeon-8375c-2s"), machine!("graviton2")];

/// The names of the machines that come with the lab.
pub fn names() -> impl Iterator<Item = &'static str> {
    MACHINES.iter().map(|(name, ..)| *name)
}

pub(super) fn find(name_or_path: &str) -> Result<Machine, Refusal> {
    if let Some((_, path, text)) = MACHINES.iter().find(|(name, ..)| *name == name_or_path) {
        return read::parse(path, text);
    }
    let path = Path::new(name_or_path);
    // A word that is no file is a misspelt name; what looks like a path is one.
    if path.exists() || path.components().count() > 1 || path.extension().is_some() {
        return read::parse(name_or_path, &file::read(&read::KIND, path)?);
    }
    let known: Vec<&str> = names().collect();
    let problem = Problem::nowhere(format!("no machine is called `{}`", words::shown(name_or_path)));
    let problem = match nearest(name_or_path, &known) {
        Some(near) => problem.cure(format!("did you mean `{near}`?")),
        None => problem,
    };
    let cure = format!("name one of {}, or the path of a machine file", words::listed(&known));
    Err(Refusal::without_text(name_or_path, problem.cure(cure)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Distance;
    use crate::machine::host::DISTANCES;

    #[test]
    fn every_machine_loads_under_its_name_and_reads_back_as_written() {
        for name in names() {
            let machine = Machine::find(name).unwrap_or_else(|refusal| panic!("{refusal}"));
            assert_eq!(machine.name, name);
            let text = machine.to_toml();
            assert_eq!(
                Machine::parse("written.toml", &text).unwrap_or_else(|refusal| panic!("{refusal}\n{text}")),
                machine
            );
        }
    }

    #[test]
    fn every_machine_is_plausible() {
        for name in names() {
            let Machine { shape, caches, distances, costs, .. } = Machine::find(name).unwrap();
            assert!(shape.topology().cpus.len() >= 16, "{name}");
            assert!(caches.l1.bytes < caches.l2.bytes && caches.l2.bytes < caches.llc.bytes, "{name}: {caches:?}");
            assert!(caches.l2.ns > 0.5 && caches.l2.ns < caches.llc.ns && caches.llc.ns < caches.memory_ns, "{name}");
            let needed: Vec<Distance> = [distances.cluster, distances.socket, distances.machine]
                .into_iter()
                .zip(shape.distances())
                .filter_map(|(distance, has)| has.then_some(distance))
                .collect();
            assert!(needed.is_sorted_by(|near, far| near.fetch_ns < far.fetch_ns), "{name}: {distances:?}");
            for distance in needed {
                // A line that another core has comes from no nearer than the last level, and is kept for a short while.
                assert!(distance.fetch_ns > caches.l2.ns && distance.fetch_ns < 300.0, "{name}: {distance:?}");
                assert!(distance.tenure_ns >= costs.atomic_ns / 2.0, "{name}: {distance:?}");
                assert!(distance.tenure_ns < 2.0 * distance.fetch_ns, "{name}: {distance:?}");
            }
            assert!(costs.load_ns <= costs.bump_ns && costs.bump_ns <= costs.atomic_ns, "{name}: {costs:?}");
            assert!(costs.syscall_ns > 10.0 * costs.atomic_ns && costs.wake_ns > costs.syscall_ns, "{name}: {costs:?}");
            assert!(costs.window >= 128 && costs.store_buffer >= 20 && costs.store_buffer < costs.window, "{name}");
        }
    }

    #[test]
    fn every_figure_has_a_source_that_names_one() {
        for name in names() {
            let machine = Machine::find(name).unwrap();
            for source in &machine.sources {
                let says = ["http", "none published", "Manual", "manual", "Guide", "worked out", "report"];
                assert!(says.iter().any(|word| source.text.contains(word)), "{name}: {source:?}");
            }
            let figures = ["protocol", "shape.cores", "caches.l1.kib", "caches.memory_ns", "costs.wake_ns"];
            for figure in figures.into_iter().map(str::to_owned).chain(
                DISTANCES
                    .iter()
                    .zip(machine.shape.distances())
                    .filter(|(_, has)| *has)
                    .map(|(name, _)| format!("distance.{name}.fetch_ns")),
            ) {
                assert!(machine.source_of(&figure).is_some(), "{name}: {figure}");
            }
            assert_eq!(machine.source_of("nothing.at_all"), None);
        }
    }

    #[test]
    fn a_misspelt_name_is_mended_and_a_path_is_opened() {
        let refusal = Machine::find("ryzen-5590x").unwrap_err().to_string();
        assert!(refusal.contains("did you mean `ryzen-5950x`?") && refusal.contains("`graviton2`"), "{refusal}");
        let refusal = Machine::find("nowhere/host.toml").unwrap_err().to_string();
        assert!(
            refusal.contains("cannot read the machine file") && refusal.contains("topology --measure"),
            "{refusal}"
        );
    }
}
