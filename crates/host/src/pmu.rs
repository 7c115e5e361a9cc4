//! The performance-monitoring units that the kernel offers, as they describe themselves below
//! `/sys/bus/event_source/devices`.

use crate::cpu_list::parse_cpu_list;
use crate::root::Root;
use plan::CpuId;
use std::collections::{BTreeMap, BTreeSet};

/// One unit that counts events: a core's, or one beside the cores, or one of the kernel's own (`software`, `msr`).
///
/// # References
/// `Documentation/ABI/testing/sysfs-bus-event_source-devices` and its neighbours `-format` and `-events`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pmu {
    /// Its folder's name, by which perf knows it.
    pub name: String,
    /// `type` for perf_event_open.
    pub kind: u32,
    /// The terms of its events, and the bits in which each lies.
    pub formats: BTreeMap<String, Format>,
    /// Events that it names itself, with their terms as text: `event=0xcd,umask=0x1,ldlat=3`.
    pub events: BTreeMap<String, String>,
    /// The CPUs that it serves, where it says so: a core PMU of a machine with several kinds of core, or of an Arm
    /// machine.
    pub cpus: Option<BTreeSet<u32>>,
    /// The CPUs on which a unit beside the cores must be opened. Such a unit counts what whole CPUs do and can tell no
    /// process from another.
    pub cpumask: Option<BTreeSet<u32>>,
}

/// Where the value of a term goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// Its lowest bit goes to the lowest bit of the ranges, and so on upwards.
    Bits {
        /// The field of `struct perf_event_attr`.
        word: Word,
        /// First and last bit of each range, both included, 63 at most; ascending, and no bit in two of them.
        ranges: Vec<(u8, u8)>,
    },
    /// The file's text: in a notation or for a field that is not known here (`config3:0-63`), or with ranges that
    /// overlap.
    Unknown(String),
}

/// A field of `struct perf_event_attr` into which terms go.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// `config`.
    Config,
    /// `config1`.
    Config1,
    /// `config2`.
    Config2,
}

const FOLDER: &str = "sys/bus/event_source/devices";

/// The names of all units that the kernel offers here. A machine without a core PMU still has a few of the kernel's
/// own; none at all means that sysfs is hidden.
pub fn pmu_names(root: &Root) -> Vec<String> {
    root.names(FOLDER)
}

/// The unit of that name; `None` where there is none.
pub fn pmu(root: &Root, name: &str) -> Option<Pmu> {
    let folder = format!("{FOLDER}/{name}");
    let cpus = |file: &str| root.text(&format!("{folder}/{file}")).and_then(|text| parse_cpu_list(&text));
    Some(Pmu {
        name: name.to_owned(),
        kind: root.number(&format!("{folder}/type"))?,
        formats: texts(root, &format!("{folder}/format")).map(|(name, text)| (name, format(&text))).collect(),
        // Beside an event's own file lie its unit, its scale and the like, named with a dot.
        events: texts(root, &format!("{folder}/events")).filter(|(name, _)| !name.contains('.')).collect(),
        cpus: cpus("cpus"),
        cpumask: cpus("cpumask"),
    })
}

/// The units of the cores: one a kind of core, so two or more on a hybrid machine and none where a hypervisor passes
/// none through.
///
/// # References
/// `is_pmu_core` in `tools/perf/util/pmu.c`; `Documentation/arch/arm64/perf.rst`.
pub fn core_pmus(root: &Root) -> Vec<Pmu> {
    let names = pmu_names(root);
    let named: Vec<Pmu> = names.iter().filter(|name| is_core_pmu(name)).filter_map(|name| pmu(root, name)).collect();
    named.into_iter().filter(|pmu| pmu.name == "cpu" || pmu.cpus.is_some()).collect()
}

/// Whether a unit of that name would be a core's, on any machine: `cpu`, `cpu_core`, `armv8_pmuv3_0`.
pub fn is_core_pmu(name: &str) -> bool {
    name == "cpu" || name.starts_with("cpu_") || name.starts_with("armv")
}

/// The unit of the kind of core that `cpu` is: `cpu`, `cpu_core`, `cpu_atom`, `armv8_pmuv3_0`; `None` where it has
/// none.
pub fn core_pmu(root: &Root, cpu: CpuId) -> Option<Pmu> {
    core_pmus(root).into_iter().find(|pmu| pmu.serves(cpu))
}

impl Pmu {
    /// Whether it counts for processes on `cpu`: a unit that does not say for which CPUs it is serves all.
    pub fn serves(&self, cpu: CpuId) -> bool {
        self.cpus.as_ref().is_none_or(|cpus| cpus.contains(&cpu.0))
    }
}

impl Format {
    /// How many bits the term's value can have; 0 for what is unknown here.
    pub fn width(&self) -> u32 {
        match self {
            Format::Bits { ranges, .. } => ranges.iter().map(|(first, last)| u32::from(last - first) + 1).sum(),
            Format::Unknown(_) => 0,
        }
    }
}

/// Names and texts of a folder's files.
fn texts<'r>(root: &'r Root, folder: &str) -> impl Iterator<Item = (String, String)> + use<'r> {
    let folder = folder.to_owned();
    root.names(&folder).into_iter().filter_map(move |name| {
        let text = root.text(&format!("{folder}/{name}"))?;
        Some((name, text))
    })
}

/// Reads `config:0-7,32-35`, `config1:18`.
fn format(text: &str) -> Format {
    let known = || {
        let (word, ranges) = text.split_once(':')?;
        let word = match word.trim() {
            "config" => Word::Config,
            "config1" => Word::Config1,
            "config2" => Word::Config2,
            _ => return None,
        };
        let mut ranges: Vec<(u8, u8)> = ranges.split(',').map(range).collect::<Option<_>>()?;
        ranges.sort_unstable();
        // A bit that is named twice would take two bits of the value.
        let overlap = ranges.windows(2).any(|pair| pair[0].1 >= pair[1].0);
        (!overlap).then_some(Format::Bits { word, ranges })
    };
    known().unwrap_or_else(|| Format::Unknown(text.to_owned()))
}

fn range(text: &str) -> Option<(u8, u8)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (first <= last && last < 64).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;

    fn with(fixture: Fixture, pmu: &str, files: &[(&str, &str)]) -> Fixture {
        files.iter().fold(fixture, |fixture, (file, text)| fixture.file(&format!("{FOLDER}/{pmu}/{file}"), text))
    }

    fn hybrid() -> Fixture {
        let fixture = with(Fixture::new(), "cpu_core", &[("type", "4\n"), ("cpus", "0-3\n")]);
        let fixture = with(fixture, "cpu_atom", &[("type", "10\n"), ("cpus", "4-7\n")]);
        with(fixture, "msr", &[("type", "11\n")])
    }

    #[test]
    fn a_unit_is_read_as_it_describes_itself() {
        let files = [
            ("type", "4\n"),
            ("format/event", "config:32-35,0-7\n"),
            ("format/edge", "config:18\n"),
            ("format/ldlat", "config1:0-15\n"),
            ("format/threshold", "config2:0-63\n"),
            ("format/hbm", "config3:0-63\n"),
            ("format/odd", "config:9-2\n"),
            ("format/twice", "config:0-63,0-63\n"),
            ("format/shared", "config:8-11,0-8\n"),
            ("format/beside", "config:9-11,0-8\n"),
            ("events/mem-loads", "event=0xcd,umask=0x1,ldlat=3\n"),
            ("events/mem-loads.scale", "1\n"),
            ("cpumask", "0,64\n"),
        ];
        let pmu = pmu(&with(Fixture::new(), "cpu", &files).root(), "cpu").unwrap();
        let bits = |word, ranges: &[(u8, u8)]| Format::Bits { word, ranges: ranges.to_vec() };
        assert_eq!((pmu.name.as_str(), pmu.kind), ("cpu", 4));
        assert_eq!(pmu.formats["event"], bits(Word::Config, &[(0, 7), (32, 35)]));
        assert_eq!(pmu.formats["edge"], bits(Word::Config, &[(18, 18)]));
        assert_eq!(pmu.formats["ldlat"], bits(Word::Config1, &[(0, 15)]));
        assert_eq!(pmu.formats["threshold"], bits(Word::Config2, &[(0, 63)]));
        assert_eq!(pmu.formats["hbm"], Format::Unknown("config3:0-63".into()));
        assert_eq!(pmu.formats["odd"], Format::Unknown("config:9-2".into()));
        assert_eq!(pmu.formats["twice"], Format::Unknown("config:0-63,0-63".into()));
        assert_eq!(pmu.formats["shared"], Format::Unknown("config:8-11,0-8".into()));
        assert_eq!(pmu.formats["beside"], bits(Word::Config, &[(0, 8), (9, 11)]));
        let widths = ["event", "edge", "threshold", "hbm"].map(|name| pmu.formats[name].width());
        assert_eq!(widths, [12, 1, 64, 0]);
        assert_eq!(pmu.events, BTreeMap::from([("mem-loads".into(), "event=0xcd,umask=0x1,ldlat=3".into())]));
        assert_eq!((pmu.cpus, pmu.cpumask), (None, Some(BTreeSet::from([0, 64]))));
    }

    #[test]
    fn hybrid_machines_have_a_unit_for_each_kind_of_core() {
        let fixture = hybrid();
        let of = |cpu| core_pmu(&fixture.root(), CpuId(cpu)).map(|pmu| pmu.kind);
        assert_eq!((of(3), of(4), of(9)), (Some(4), Some(10), None));
        assert_eq!(core_pmus(&fixture.root()).len(), 2);
        assert_eq!(pmu_names(&fixture.root()), ["cpu_atom", "cpu_core", "msr"]);
    }

    #[test]
    fn one_kind_of_core_serves_every_cpu() {
        let fixture = with(Fixture::new(), "cpu", &[("type", "4\n")]);
        let fixture = with(fixture, "armv9_odd", &[("type", "9\n")]);
        let of = |cpu| core_pmu(&fixture.root(), CpuId(cpu)).map(|pmu| pmu.name);
        assert_eq!((of(0), of(511)), (Some("cpu".into()), Some("cpu".into())));
    }

    #[test]
    fn arm_names_its_units_by_architecture() {
        for name in ["armv8_pmuv3", "armv8_pmuv3_0", "armv9_neoverse_v2"] {
            let fixture = with(Fixture::new(), name, &[("type", "8\n"), ("cpus", "0-63\n")]);
            assert_eq!(core_pmu(&fixture.root(), CpuId(5)).map(|pmu| pmu.name), Some(name.to_owned()));
        }
    }

    #[test]
    fn a_machine_that_shows_none_has_none() {
        let fixture = with(Fixture::new(), "cpu", &[("type", "four\n")]);
        assert_eq!((pmu(&fixture.root(), "cpu"), core_pmu(&fixture.root(), CpuId(0))), (None, None));
    }
}
