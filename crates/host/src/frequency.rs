//! Who sets a CPU's clock rate, and between which bounds.

use crate::root::Root;
use plan::CpuId;

/// How the kernel scales one CPU's frequency.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scaling {
    /// `performance`, `powersave`, `schedutil`, ….
    pub governor: String,
    /// The driver and, where it has several, its mode: see [`Driver`].
    pub driver: Driver,
    /// The lowest rate that the governor may choose, kHz.
    pub lowest_khz: Option<u64>,
    /// The highest rate that the governor may choose, kHz; turbo may exceed it.
    pub highest_khz: Option<u64>,
}

/// Who the governor talks to: the same governor's name means different things.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Driver {
    /// The processor chooses the rate by itself between the bounds, and `performance` and `powersave` are only hints to
    /// it: `intel_pstate` in its active mode, `amd-pstate-epp`.
    Autonomous(String),
    /// The governor chooses the rate: `acpi-cpufreq`, `intel_cpufreq`, `amd-pstate`, `cppc_cpufreq`, ….
    Governed(String),
    /// Not named.
    Unknown,
}

/// How `cpu`'s frequency is scaled; `None` where the kernel does not scale it, as in most virtual machines, where the
/// host does.
///
/// # References
/// `Documentation/admin-guide/pm/cpufreq.rst`; `Documentation/admin-guide/pm/intel_pstate.rst`, "Active Mode" (the
/// driver is then named `intel_pstate`, else `intel_cpufreq`); `Documentation/admin-guide/pm/amd-pstate.rst`.
pub fn scaling(root: &Root, cpu: CpuId) -> Option<Scaling> {
    let folder = format!("sys/devices/system/cpu/cpu{}/cpufreq", cpu.0);
    let file = |name: &str| root.text(&format!("{folder}/{name}")).filter(|text| !text.is_empty());
    let driver = match file("scaling_driver") {
        None => Driver::Unknown,
        Some(name) if name == "intel_pstate" || name == "amd-pstate-epp" => Driver::Autonomous(name),
        Some(name) => Driver::Governed(name),
    };
    let khz = |name| file(name).and_then(|text| text.parse().ok());
    let (lowest_khz, highest_khz) = (khz("scaling_min_freq"), khz("scaling_max_freq"));
    Some(Scaling { governor: file("scaling_governor")?, driver, lowest_khz, highest_khz })
}

/// The switch of the clock rates above the nominal one.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Turbo {
    /// Whether the processor may use them.
    pub on: bool,
    /// The file that switches them, below `/`.
    pub file: &'static str,
    /// What is to be written there to switch them off.
    pub off: u8,
}

/// Reads whether turbo is on; `None` where the kernel has no switch for it, as in most virtual machines.
///
/// # References
/// `Documentation/ABI/testing/sysfs-devices-system-cpu`, cpufreq/boost and intel_pstate/no_turbo.
pub fn turbo(root: &Root) -> Option<Turbo> {
    const NO_TURBO: &str = "sys/devices/system/cpu/intel_pstate/no_turbo";
    const BOOST: &str = "sys/devices/system/cpu/cpufreq/boost";
    let intel = root.number::<u8>(NO_TURBO).map(|no_turbo| Turbo { on: no_turbo == 0, file: NO_TURBO, off: 1 });
    intel.or_else(|| root.number::<u8>(BOOST).map(|boost| Turbo { on: boost != 0, file: BOOST, off: 0 }))
}

#[cfg(test)]
mod tests {
    use super::{Driver, scaling, turbo};
    use crate::fixture::Fixture;
    use plan::CpuId;

    fn cpufreq(files: &[(&str, &str)]) -> Fixture {
        let folder = "sys/devices/system/cpu/cpu2/cpufreq";
        files.iter().fold(Fixture::new(), |fixture, (name, text)| fixture.file(&format!("{folder}/{name}"), text))
    }

    #[test]
    fn the_driver_decides_who_chooses_the_rate() {
        let driver = |name: &str| {
            let fixture = cpufreq(&[("scaling_governor", "powersave\n"), ("scaling_driver", name)]);
            scaling(&fixture.root(), CpuId(2)).unwrap().driver
        };
        assert_eq!(driver("intel_pstate\n"), Driver::Autonomous("intel_pstate".to_owned()));
        assert_eq!(driver("amd-pstate-epp\n"), Driver::Autonomous("amd-pstate-epp".to_owned()));
        assert_eq!(driver("intel_cpufreq\n"), Driver::Governed("intel_cpufreq".to_owned()));
        assert_eq!(driver("\n"), Driver::Unknown);
    }

    #[test]
    fn bounds_are_read_where_they_are_said() {
        let fixture = cpufreq(&[("scaling_governor", "performance\n"), ("scaling_min_freq", "800000\n")]);
        let seen = scaling(&fixture.root(), CpuId(2)).unwrap();
        assert_eq!((seen.governor.as_str(), seen.lowest_khz, seen.highest_khz), ("performance", Some(800_000), None));
        assert_eq!(scaling(&fixture.root(), CpuId(0)), None);
    }

    #[test]
    fn turbo_has_two_switches_of_opposite_sense() {
        let intel = |text| turbo(&Fixture::new().file("sys/devices/system/cpu/intel_pstate/no_turbo", text).root());
        let other = |text| turbo(&Fixture::new().file("sys/devices/system/cpu/cpufreq/boost", text).root());
        assert!(intel("0\n").unwrap().on && !intel("1\n").unwrap().on);
        assert!(other("1\n").unwrap().on && !other("0\n").unwrap().on);
        assert_eq!((intel("0\n").unwrap().off, other("1\n").unwrap().off), (1, 0));
        assert_eq!(turbo(&Fixture::new().root()), None);
    }
}
