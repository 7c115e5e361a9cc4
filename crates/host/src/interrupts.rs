//! Interrupts: how many each CPU takes, and where those of devices may go.

use crate::cpu_list::parse_cpu_list;
use crate::root::Root;
use plan::CpuId;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

/// Counts since boot, by source and CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interrupts {
    at: Instant,
    sources: BTreeMap<String, Source>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Source {
    name: String,
    counts: BTreeMap<u32, u64>,
}

/// How often one source interrupted one CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct InterruptRate {
    /// The device as its driver is called, or the kernel's words for the kind: `nvme0q3`, `TLB shootdowns`.
    pub source: String,
    /// Interrupts a second.
    pub per_second: f64,
}

impl Interrupts {
    /// Reads `/proc/interrupts`; `None` where it is absent or has another form.
    ///
    /// # References
    /// proc_interrupts(5); `Documentation/filesystems/proc.rst`: a column a CPU that is online, named in the first
    /// line.
    pub fn read(root: &Root) -> Option<Interrupts> {
        let text = root.text("proc/interrupts")?;
        let at = Instant::now();
        let mut lines = text.lines();
        let cpus: Vec<u32> = lines
            .next()?
            .split_whitespace()
            .map(|name| name.strip_prefix("CPU")?.parse().ok())
            .collect::<Option<_>>()?;
        let sources: BTreeMap<String, Source> = lines.filter_map(|line| source(line, &cpus)).collect();
        (!sources.is_empty()).then_some(Interrupts { at, sources })
    }

    /// What interrupted `cpu` since `earlier`, most frequent first, without the sources that did not; empty also where
    /// no time has passed.
    pub fn since(&self, earlier: &Interrupts, cpu: CpuId) -> Vec<InterruptRate> {
        let seconds = self.at.saturating_duration_since(earlier.at).as_secs_f64();
        let rate = |(key, source): (&String, &Source)| {
            let before = earlier.sources.get(key)?.counts.get(&cpu.0)?;
            let more = source.counts.get(&cpu.0)?.checked_sub(*before)?;
            let per_second = more as f64 / seconds;
            (more > 0 && per_second.is_finite()).then(|| InterruptRate { source: source.name.clone(), per_second })
        };
        let mut rates: Vec<InterruptRate> = self.sources.iter().filter_map(rate).collect();
        rates.sort_by(|a, b| b.per_second.total_cmp(&a.per_second));
        rates
    }

    /// The same counts, read so long later.
    #[cfg(test)]
    fn later(mut self, by: std::time::Duration) -> Interrupts {
        self.at += by;
        self
    }
}

/// A row with a count for every CPU. `ERR` and `MIS` have one for all, and are left out.
fn source(line: &str, cpus: &[u32]) -> Option<(String, Source)> {
    let (key, rest) = line.split_once(':')?;
    let key = key.trim();
    let mut words = rest.split_whitespace();
    let counts: Vec<u64> = words.by_ref().take(cpus.len()).map_while(|word| word.parse().ok()).collect();
    if counts.len() != cpus.len() {
        return None;
    }
    // Numbered sources end in two blanks and their drivers; the others are described in words.
    let numbered = key.chars().all(|c| c.is_ascii_digit());
    let described = words.collect::<Vec<_>>().join(" ");
    let name = match rest.trim().rsplit_once("  ") {
        Some((_, drivers)) if numbered => drivers.to_owned(),
        _ if described.is_empty() => key.to_owned(),
        _ => described.trim_end_matches(" interrupts").to_owned(),
    };
    Some((key.to_owned(), Source { name, counts: cpus.iter().copied().zip(counts).collect() }))
}

/// One interrupt of a device that has a driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInterrupt {
    /// Its number, a folder of `/proc/irq`.
    pub number: u32,
    /// The CPUs on which it may fire: those that the interrupt controller was given where the kernel tells, else those
    /// that its affinity allows.
    pub cpus: BTreeSet<u32>,
}

/// The interrupts that devices' drivers have asked for, ascending; empty where `/proc/irq` cannot be read.
///
/// # References
/// `Documentation/core-api/irq/irq-affinity.rst`; `Documentation/filesystems/proc.rst`, effective_affinity.
pub fn device_interrupts(root: &Root) -> Vec<DeviceInterrupt> {
    let mut found: Vec<DeviceInterrupt> =
        root.names("proc/irq").iter().filter_map(|name| device_interrupt(root, name)).collect();
    found.sort_by_key(|interrupt| interrupt.number);
    found
}

/// Whether `/proc/irq` shows any number at all, of devices or merely reserved: where it does not, it is hidden.
pub fn lists_interrupts(root: &Root) -> bool {
    root.names("proc/irq").iter().any(|name| name.parse::<u32>().is_ok())
}

fn device_interrupt(root: &Root, name: &str) -> Option<DeviceInterrupt> {
    let number = name.parse().ok()?;
    let folder = format!("proc/irq/{name}");
    let list = |file: &str| parse_cpu_list(&root.text(&format!("{folder}/{file}"))?).filter(|cpus| !cpus.is_empty());
    let cpus = list("effective_affinity_list").or_else(|| list("smp_affinity_list"))?;
    // A driver's folder below it is what tells an interrupt that can fire from a number that is merely reserved.
    let has_driver = root.names(&folder).iter().any(|entry| root.path(&format!("{folder}/{entry}")).is_dir());
    has_driver.then_some(DeviceInterrupt { number, cpus })
}

#[cfg(test)]
mod tests {
    use super::{DeviceInterrupt, InterruptRate, Interrupts, device_interrupts, lists_interrupts};
    use crate::fixture::Fixture;
    use crate::root::Root;
    use plan::CpuId;
    use std::time::Duration;

    const HEAD: &str = "           CPU0       CPU2       \n";

    fn read(rows: &str) -> Interrupts {
        Interrupts::read(&Fixture::new().file("proc/interrupts", &format!("{HEAD}{rows}")).root()).unwrap()
    }

    #[test]
    fn rates_are_by_source_and_cpu_most_frequent_first() {
        let before = read(
            " 24:          5          7 PCI-MSIX-0000:00:02.0   1-edge      nvme0q1, nvme0q2\n\
             LOC:        100        200  Local timer interrupts\n\
             TLB:          1          1  TLB shootdowns\n\
             IPI0:         1          1       Rescheduling interrupts\n\
             ERR:          0\n",
        );
        let after = read(
            " 24:          5        507 PCI-MSIX-0000:00:02.0   1-edge      nvme0q1, nvme0q2\n\
             LOC:        100        300  Local timer interrupts\n\
             TLB:          1         51  TLB shootdowns\n\
             IPI0:         2          1       Rescheduling interrupts\n\
             ERR:          9\n",
        );
        let at = before.at;
        let after = Interrupts { at, ..after }.later(Duration::from_millis(500));
        let rate = |source: &str, per_second| InterruptRate { source: source.to_owned(), per_second };
        let on_2 = [rate("nvme0q1, nvme0q2", 1_000.0), rate("Local timer", 200.0), rate("TLB shootdowns", 100.0)];
        assert_eq!(after.since(&before, CpuId(2)), on_2);
        assert_eq!(after.since(&before, CpuId(0)), [rate("Rescheduling", 2.0)]);
        assert_eq!(after.since(&before, CpuId(1)), [], "not in the table");
        assert_eq!(Interrupts { at, ..after }.since(&before, CpuId(2)), [], "no time has passed");
    }

    #[test]
    fn what_is_no_table_is_not_read() {
        for text in ["", "nothing here\n", HEAD] {
            assert_eq!(Interrupts::read(&Fixture::new().file("proc/interrupts", text).root()), None, "{text:?}");
        }
        assert_eq!(Interrupts::read(&Fixture::new().root()), None);
    }

    #[test]
    fn interrupts_with_a_driver_say_where_they_may_fire() {
        let fixture = Fixture::new()
            .file("proc/irq/30/effective_affinity_list", "1\n")
            .file("proc/irq/30/smp_affinity_list", "0-3\n")
            .file("proc/irq/30/nvme0q1/nothing", "")
            .file("proc/irq/9/smp_affinity_list", "0-1\n")
            .file("proc/irq/9/acpi/nothing", "")
            .file("proc/irq/3/smp_affinity_list", "0-1\n")
            .file("proc/irq/default_smp_affinity", "f\n");
        let of = |number, cpus: &[u32]| DeviceInterrupt { number, cpus: cpus.iter().copied().collect() };
        assert_eq!(device_interrupts(&fixture.root()), [of(9, &[0, 1]), of(30, &[1])]);
        assert_eq!(device_interrupts(&Fixture::new().root()), []);
        let reserved = Fixture::new().file("proc/irq/3/smp_affinity_list", "0-1\n");
        assert_eq!((device_interrupts(&reserved.root()), lists_interrupts(&reserved.root())), (vec![], true));
        assert!(!lists_interrupts(&Fixture::new().file("proc/irq/default_smp_affinity", "f\n").root()));
    }

    #[test]
    fn this_machine_s_table_is_read() {
        let Some(before) = Interrupts::read(&Root::system()) else {
            return testing::skip("there is no /proc/interrupts");
        };
        let after = Interrupts::read(&Root::system()).unwrap();
        assert!(after.sources.keys().eq(before.sources.keys()) && after.at > before.at);
    }
}
