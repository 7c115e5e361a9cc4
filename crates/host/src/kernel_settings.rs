//! Settings of the kernel that decide how evenly a CPU runs and how memory is laid out under a process.

use crate::cpu_list::parse_cpu_list;
use crate::root::Root;
use std::collections::BTreeSet;

/// The settings as they stand; `None` where this kernel has no such setting or does not show it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelSettings {
    /// `/sys/kernel/mm/transparent_hugepage/enabled`: the word chosen.
    pub huge_pages: Option<String>,
    /// The same of `defrag`.
    pub huge_pages_defrag: Option<String>,
    /// The same of `shmem_enabled`.
    pub huge_pages_shmem: Option<String>,
    /// `/proc/sys/kernel/numa_balancing`: bits; the first is balancing between nodes, the second tiering.
    pub numa_balancing: Option<u32>,
    /// `/proc/sys/kernel/soft_watchdog`, where the `watchdog` over it is on too.
    pub soft_watchdog: Option<bool>,
    /// `/proc/sys/kernel/watchdog_cpumask`: the CPUs it watches.
    pub watchdog_cpus: Option<BTreeSet<u32>>,
    /// `/proc/sys/kernel/watchdog_thresh`, seconds: it looks five times in twice as long.
    pub watchdog_threshold_s: Option<u32>,
    /// `/proc/sys/vm/stat_interval`, seconds.
    pub vm_stat_interval_s: Option<u32>,
    /// `/proc/sys/kernel/timer_migration`.
    pub timer_migration: Option<bool>,
    /// `/sys/kernel/mm/ksm/run`: 0 stopped, 1 running, 2 stopped and all pages unmerged.
    pub same_page_merging: Option<u32>,
}

/// Reads them.
///
/// # References
/// `Documentation/admin-guide/mm/transhuge.rst`, `ksm.rst`; `Documentation/admin-guide/sysctl/kernel.rst`, `vm.rst`;
/// `Documentation/admin-guide/lockup-watchdogs.rst`.
pub fn kernel_settings(root: &Root) -> KernelSettings {
    let huge = |file: &str| root.text(&format!("sys/kernel/mm/transparent_hugepage/{file}")).and_then(chosen);
    let kernel = |name: &str| root.number::<u32>(&format!("proc/sys/kernel/{name}"));
    let watchdog = kernel("watchdog").unwrap_or(1);
    KernelSettings {
        huge_pages: huge("enabled"),
        huge_pages_defrag: huge("defrag"),
        huge_pages_shmem: huge("shmem_enabled"),
        numa_balancing: kernel("numa_balancing"),
        soft_watchdog: kernel("soft_watchdog").map(|on| on != 0 && watchdog != 0),
        watchdog_cpus: root.text("proc/sys/kernel/watchdog_cpumask").and_then(|text| parse_cpu_list(&text)),
        watchdog_threshold_s: kernel("watchdog_thresh"),
        vm_stat_interval_s: root.number("proc/sys/vm/stat_interval"),
        timer_migration: kernel("timer_migration").map(|on| on != 0),
        same_page_merging: root.number("sys/kernel/mm/ksm/run"),
    }
}

/// The word in brackets of `always [madvise] never`.
fn chosen(text: String) -> Option<String> {
    text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']')).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::{KernelSettings, kernel_settings};
    use crate::fixture::Fixture;

    #[test]
    fn settings_are_read_where_they_are() {
        let huge = "sys/kernel/mm/transparent_hugepage";
        let fixture = Fixture::new()
            .file(&format!("{huge}/enabled"), "always [madvise] never\n")
            .file(&format!("{huge}/defrag"), "always defer defer+madvise [madvise] never\n")
            .file(&format!("{huge}/shmem_enabled"), "always within_size advise [never] deny force\n")
            .file("proc/sys/kernel/numa_balancing", "1\n")
            .file("proc/sys/kernel/watchdog", "1\n")
            .file("proc/sys/kernel/soft_watchdog", "1\n")
            .file("proc/sys/kernel/watchdog_cpumask", "0-1\n")
            .file("proc/sys/kernel/watchdog_thresh", "10\n")
            .file("proc/sys/vm/stat_interval", "1\n")
            .file("proc/sys/kernel/timer_migration", "0\n")
            .file("sys/kernel/mm/ksm/run", "1\n");
        let word = |text: &str| Some(text.to_owned());
        let expected = KernelSettings {
            huge_pages: word("madvise"),
            huge_pages_defrag: word("madvise"),
            huge_pages_shmem: word("never"),
            numa_balancing: Some(1),
            soft_watchdog: Some(true),
            watchdog_cpus: Some([0, 1].into()),
            watchdog_threshold_s: Some(10),
            vm_stat_interval_s: Some(1),
            timer_migration: Some(false),
            same_page_merging: Some(1),
        };
        assert_eq!(kernel_settings(&fixture.root()), expected);
        let off = fixture.file("proc/sys/kernel/watchdog", "0\n");
        assert_eq!(kernel_settings(&off.root()).soft_watchdog, Some(false));
    }

    #[test]
    fn what_a_kernel_does_not_have_is_no_setting() {
        assert_eq!(kernel_settings(&Fixture::new().root()), KernelSettings::default());
    }
}
