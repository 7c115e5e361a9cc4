//! Settings of the kernel that decide how evenly a CPU runs and how memory is laid out under a process.

use crate::cpu_list::parse_cpu_list;
use crate::root::Root;
use std::collections::BTreeSet;

/// What is known of one setting.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Setting<T> {
    /// It stands so.
    Is(T),
    /// This kernel has no such setting: those beside it can be seen.
    Absent,
    /// Its folder is hidden or empty, or its file cannot be read: nothing is known.
    #[default]
    Hidden,
}

impl<T> Setting<T> {
    /// Where nothing was read, `absent` says whether that is an answer.
    fn of(read: Option<T>, absent: bool) -> Setting<T> {
        match read {
            Some(value) => Setting::Is(value),
            None if absent => Setting::Absent,
            None => Setting::Hidden,
        }
    }

    fn map<U>(self, to: impl FnOnce(T) -> U) -> Setting<U> {
        match self {
            Setting::Is(value) => Setting::Is(to(value)),
            Setting::Absent => Setting::Absent,
            Setting::Hidden => Setting::Hidden,
        }
    }
}

/// The settings as they stand; an `Option` is `None` where the kernel has no such setting or does not show it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelSettings {
    /// `/sys/kernel/mm/transparent_hugepage/enabled`: the word chosen.
    pub huge_pages: Setting<String>,
    /// The same of `defrag`.
    pub huge_pages_defrag: Option<String>,
    /// The same of `shmem_enabled`.
    pub huge_pages_shmem: Option<String>,
    /// `/proc/sys/kernel/numa_balancing`: bits; the first is balancing between nodes, the second tiering.
    pub numa_balancing: Setting<u32>,
    /// `/proc/sys/kernel/soft_watchdog`, where the `watchdog` over it is on too.
    pub soft_watchdog: Setting<bool>,
    /// `/proc/sys/kernel/watchdog_cpumask`: the CPUs it watches.
    pub watchdog_cpus: Option<BTreeSet<u32>>,
    /// `/proc/sys/kernel/watchdog_thresh`, seconds: it looks five times in twice as long.
    pub watchdog_threshold_s: Option<u32>,
    /// `/proc/sys/vm/stat_interval`, seconds.
    pub vm_stat_interval_s: Setting<u32>,
    /// `/proc/sys/kernel/timer_migration`.
    pub timer_migration: Setting<bool>,
    /// `/sys/kernel/mm/ksm/run`: 0 stopped, 1 running, 2 stopped and all pages unmerged.
    pub same_page_merging: Setting<u32>,
}

/// Reads them.
///
/// # References
/// `Documentation/admin-guide/mm/transhuge.rst`, `ksm.rst`; `Documentation/admin-guide/sysctl/kernel.rst`, `vm.rst`;
/// `Documentation/admin-guide/lockup-watchdogs.rst`.
pub fn kernel_settings(root: &Root) -> KernelSettings {
    const KERNEL: &str = "proc/sys/kernel";
    const MEMORY: &str = "sys/kernel/mm";
    let huge = |file: &str| root.text(&format!("{MEMORY}/transparent_hugepage/{file}")).and_then(chosen);
    let number = |folder: &str, name: &str| {
        Setting::of(root.number::<u32>(&format!("{folder}/{name}")), root.lacks(folder, name))
    };
    let watchdog: u32 = root.number("proc/sys/kernel/watchdog").unwrap_or(1);
    KernelSettings {
        huge_pages: Setting::of(huge("enabled"), root.lacks(MEMORY, "transparent_hugepage")),
        huge_pages_defrag: huge("defrag"),
        huge_pages_shmem: huge("shmem_enabled"),
        numa_balancing: number(KERNEL, "numa_balancing"),
        soft_watchdog: number(KERNEL, "soft_watchdog").map(|on| on != 0 && watchdog != 0),
        watchdog_cpus: root.text("proc/sys/kernel/watchdog_cpumask").and_then(|text| parse_cpu_list(&text)),
        watchdog_threshold_s: root.number("proc/sys/kernel/watchdog_thresh"),
        vm_stat_interval_s: number("proc/sys/vm", "stat_interval"),
        timer_migration: number(KERNEL, "timer_migration").map(|on| on != 0),
        same_page_merging: Setting::of(root.number("sys/kernel/mm/ksm/run"), root.lacks(MEMORY, "ksm")),
    }
}

/// The word in brackets of `always [madvise] never`.
fn chosen(text: String) -> Option<String> {
    text.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']')).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::{KernelSettings, Setting, kernel_settings};
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
            huge_pages: Setting::Is("madvise".to_owned()),
            huge_pages_defrag: word("madvise"),
            huge_pages_shmem: word("never"),
            numa_balancing: Setting::Is(1),
            soft_watchdog: Setting::Is(true),
            watchdog_cpus: Some([0, 1].into()),
            watchdog_threshold_s: Some(10),
            vm_stat_interval_s: Setting::Is(1),
            timer_migration: Setting::Is(false),
            same_page_merging: Setting::Is(1),
        };
        assert_eq!(kernel_settings(&fixture.root()), expected);
        let off = fixture.file("proc/sys/kernel/watchdog", "0\n");
        assert_eq!(kernel_settings(&off.root()).soft_watchdog, Setting::Is(false));
    }

    #[test]
    fn what_a_kernel_does_not_have_differs_from_what_is_hidden() {
        assert_eq!(kernel_settings(&Fixture::new().root()), KernelSettings::default(), "all of it hidden");
        let bare = Fixture::new()
            .file("proc/sys/kernel/osrelease", "6.1\n")
            .file("proc/sys/vm/swappiness", "60\n")
            .file("sys/kernel/mm/swap/vma_ra_enabled", "true\n");
        let expected = KernelSettings {
            huge_pages: Setting::Absent,
            numa_balancing: Setting::Absent,
            soft_watchdog: Setting::Absent,
            vm_stat_interval_s: Setting::Absent,
            timer_migration: Setting::Absent,
            same_page_merging: Setting::Absent,
            ..KernelSettings::default()
        };
        assert_eq!(kernel_settings(&bare.root()), expected);
        let masked = bare.file("proc/sys/kernel/numa_balancing", "").file("sys/kernel/mm/ksm/run", "");
        let seen = kernel_settings(&masked.root());
        assert_eq!((seen.numa_balancing, seen.same_page_merging), (Setting::Hidden, Setting::Hidden));
    }
}
