//! What lies between a core and the memory: caches, their lines, translations.

use crate::{Finding, Patient};
use host::{Cache, DataTlb, Entries, Root};
use plan::{CACHE_LINE_BYTES, CpuId};
use std::collections::BTreeSet;

/// Sizes of the data caches and who shares them.
pub(super) fn caches(patient: &Patient<'_>) -> Finding {
    let why = "a working set beyond a level, or a level that two workers share, decides which misses there are to \
               see; a virtual machine has what its hypervisor chose to describe";
    let of_each: Vec<Vec<Cache>> = patient.cpus.iter().map(|cpu| host::data_caches(patient.root, *cpu)).collect();
    let levels: BTreeSet<u32> = of_each.iter().flatten().map(|cache| cache.level).collect();
    if levels.is_empty() {
        return Finding::missing("caches", "not described", why);
    }
    let seen = levels.into_iter().map(|level| level_of(level, &of_each)).collect::<Vec<_>>().join(", ");
    // Numbers of CPUs end the line only where the last level is shared.
    let unit = if seen.ends_with(|last: char| last.is_ascii_digit()) { " CPUs" } else { "" };
    Finding::ok("caches", format!("{seen}{unit}"), why)
}

/// `L2 1 MiB` where each CPU has its own, `L3 32 MiB for 8`, with the range where the CPUs in question differ.
fn level_of(level: u32, of_each: &[Vec<Cache>]) -> String {
    let caches = || of_each.iter().flatten().filter(|cache| cache.level == level);
    let sizes: BTreeSet<u64> = caches().filter_map(|cache| cache.bytes).collect();
    let size = match (sizes.first(), sizes.last()) {
        (Some(least), Some(most)) if least == most => bytes(*least),
        (Some(least), Some(most)) => range(&bytes(*least), &bytes(*most)),
        _ => "of unknown size".to_owned(),
    };
    let sharers = caches().map(|cache| cache.shared_by.len()).max().unwrap_or(0);
    let shared = match sharers {
        0 | 1 => String::new(),
        _ => format!(" for {sharers}"),
    };
    let data = if level == 1 { "d" } else { "" };
    format!("L{level}{data} {size}{shared}")
}

/// `32-48 KiB`, `512 KiB-1 MiB`.
fn range(least: &str, most: &str) -> String {
    match (least.split_once(' '), most.split_once(' ')) {
        (Some((number, unit)), Some((_, of_most))) if unit == of_most => format!("{number}-{most}"),
        _ => format!("{least}-{most}"),
    }
}

/// `48 KiB`, `1.25 MiB`.
fn bytes(bytes: u64) -> String {
    const MIB: u64 = 1 << 20;
    if bytes < MIB { format!("{} KiB", bytes >> 10) } else { format!("{} MiB", bytes as f64 / MIB as f64) }
}

/// The unit in which caches exchange data.
pub(super) fn line_bytes(patient: &Patient<'_>) -> Finding {
    let why = "two fields share falsely where they share a line; padding that is narrower does not part them";
    let lines = |cpu: &CpuId| host::data_caches(patient.root, *cpu).into_iter().filter_map(|cache| cache.line_bytes);
    let sizes: BTreeSet<u32> = patient.cpus.iter().flat_map(lines).collect();
    match sizes.last() {
        None => Finding::missing("line_bytes", format!("not said; {CACHE_LINE_BYTES} assumed"), why),
        Some(most) if u64::from(*most) > CACHE_LINE_BYTES => {
            let seen = format!("{most} bytes: padding by {CACHE_LINE_BYTES} parts nothing");
            Finding::warn("line_bytes", seen, why).cured_by(format!("placement = {{ pad = {most} }} in the scenario"))
        }
        Some(most) => Finding::ok("line_bytes", format!("{most} bytes"), why),
    }
}

/// How much memory the core can address without looking up page tables.
pub(super) fn tlb(root: &Root) -> Finding {
    judged_tlb(host::data_tlb(root), host::hypervisor(root).is_some())
}

/// Hypervisors were seen to pass a Zen 5's small numbers on without the bit that gives their unit (`host::data_tlb`).
const IN_A_GUEST: &str = "; a hypervisor may have changed what cpuid says: on AMD from Zen 5 on, a second level of a \
                          hundred or so stands for 32 times as many";

fn judged_tlb(tlb: Option<DataTlb>, in_a_guest: bool) -> Finding {
    let why = "memory beyond the TLB's reach costs a walk through the page tables at each new page, so a large \
               segment looks slow for that reason; pages of 2 MiB reach 512 times as far";
    let Some(tlb) = tlb else { return Finding::missing("tlb", "not said by cpuid", why) };
    let levels = |entries: Entries| match (entries.first, entries.second) {
        (Some(first), Some(second)) => Some(format!("{first} + {second}")),
        (Some(first), None) => Some(first.to_string()),
        (None, Some(second)) => Some(format!("second level {second}")),
        (None, None) => None,
    };
    let sizes = [("4 KiB", tlb.small), ("2 MiB", tlb.huge)];
    let said = sizes.into_iter().filter_map(|(page, entries)| Some(format!("{} for {page}", levels(entries)?)));
    let seen = format!("entries: {}", said.collect::<Vec<_>>().join(", "));
    let in_a_guest = if in_a_guest { IN_A_GUEST } else { "" };
    let why = format!("{why}{in_a_guest}");
    Finding::ok("tlb", seen, why)
}

#[cfg(test)]
mod tests {
    use super::{bytes, judged_tlb, range};
    use crate::fixture::{Fixture, assert_well_formed};
    use crate::hardware::findings;
    use host::{DataTlb, Entries};
    use record::CheckState::{Missing, Ok, Warn};

    /// A cache of one CPU: index, level, size, who shares it, bytes of a line.
    fn cache(fixture: Fixture, cpu: u32, at: (u32, u32), size: &str, shared: &str, line: u32) -> Fixture {
        let folder = format!("sys/devices/system/cpu/cpu{cpu}/cache/index{}", at.0);
        fixture
            .file(&format!("{folder}/level"), &at.1.to_string())
            .file(&format!("{folder}/type"), "Unified\n")
            .file(&format!("{folder}/size"), size)
            .file(&format!("{folder}/shared_cpu_list"), shared)
            .file(&format!("{folder}/coherency_line_size"), &line.to_string())
    }

    #[test]
    fn caches_say_their_size_and_for_how_many() {
        let mut fixture = Fixture::new();
        for cpu in [0, 1] {
            fixture = cache(fixture, cpu, (0, 1), "48K\n", &cpu.to_string(), 64);
            fixture = cache(fixture, cpu, (1, 2), ["1024K\n", "1280K\n"][cpu as usize], &cpu.to_string(), 64);
            fixture = cache(fixture, cpu, (2, 3), "32768K\n", "0-7", 64);
        }
        let check = fixture.check(findings, "caches").check;
        assert_eq!(check.seen, "L1d 48 KiB, L2 1-1.25 MiB, L3 32 MiB for 8 CPUs");
        assert_eq!(check.state, Ok);
        assert_eq!(fixture.check(findings, "line_bytes").check.seen, "64 bytes");
        let silent = cache(Fixture::new(), 0, (0, 2), "", "", 0).check(findings, "caches").check;
        assert_eq!(silent.seen, "L2 of unknown size");
        assert_eq!(Fixture::new().check(findings, "caches").check.state, Missing);
    }

    #[test]
    fn wide_lines_need_wide_padding() {
        let wide = cache(Fixture::new(), 1, (0, 2), "1024K", "0-1", 128).check(findings, "line_bytes").check;
        assert_eq!((wide.state, wide.cure.as_deref()), (Warn, Some("placement = { pad = 128 } in the scenario")));
        let silent = Fixture::new().check(findings, "line_bytes").check;
        assert_eq!((silent.state, silent.seen.as_str()), (Missing, "not said; 64 assumed"));
    }

    #[test]
    fn the_tlb_s_levels_are_told_as_far_as_known() {
        let entries = |first, second| Entries { first, second };
        let both = DataTlb { small: entries(Some(96), Some(4096)), huge: entries(Some(96), None) };
        let found = judged_tlb(Some(both), true);
        assert_well_formed(&found);
        assert_eq!(found.check.seen, "entries: 96 + 4096 for 4 KiB, 96 for 2 MiB");
        assert!(found.check.why.contains("hypervisor"));
        let second = DataTlb { small: entries(None, Some(512)), huge: entries(None, None) };
        let found = judged_tlb(Some(second), false).check;
        assert_eq!((found.state, found.seen.as_str()), (Ok, "entries: second level 512 for 4 KiB"));
        assert!(!found.why.contains("hypervisor"));
        assert_eq!(judged_tlb(None, false).check.state, Missing);
    }

    #[test]
    fn sizes_are_written_in_the_unit_that_fits() {
        assert_eq!(range("32 KiB", "48 KiB"), "32-48 KiB");
        assert_eq!(range("512 KiB", "1 MiB"), "512 KiB-1 MiB");
        assert_eq!(
            (bytes(32 << 10), bytes(5 << 18), bytes(36 << 20)),
            ("32 KiB".into(), "1.25 MiB".into(), "36 MiB".into())
        );
    }
}
