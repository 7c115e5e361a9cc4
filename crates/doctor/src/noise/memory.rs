//! What the kernel does to memory behind a running process's back.

use crate::{Finding, Patient};
use host::{KernelSettings, Setting};

/// Huge pages, moves between nodes, merging.
pub(super) fn findings(patient: &Patient<'_>, settings: &KernelSettings) -> Vec<Finding> {
    vec![huge_pages(patient, settings), numa_balancing(patient, settings), same_page_merging(settings)]
}

fn huge_pages(patient: &Patient<'_>, settings: &KernelSettings) -> Finding {
    const NAME: &str = "transparent_huge_pages";
    const WHY: &str = "a segment over 2 MiB that gets huge pages only when some are free has another TLB cost in the next \
                       repetition";
    let enabled = match &settings.huge_pages {
        Setting::Is(word) => word,
        Setting::Absent => return Finding::idle(NAME, "none: a kernel without them", WHY),
        Setting::Hidden => return Finding::missing(NAME, "not said: /sys/kernel/mm is hidden", WHY),
    };
    let word = |word: &Option<String>| word.clone().unwrap_or_else(|| "?".to_owned());
    let (defrag, shmem) = (word(&settings.huge_pages_defrag), word(&settings.huge_pages_shmem));
    let mount = host::shared_memory(patient.root).map_or_else(|| "never".to_owned(), |mount| mount.huge().to_owned());
    let of_mount = if mount == "never" { String::new() } else { format!(", /dev/shm {mount}") };
    let seen = format!("{enabled}, defrag {defrag}, shmem {shmem}{of_mount}");
    // `force` and `deny` go over what the mount says, Documentation/admin-guide/mm/transhuge.rst.
    let on_their_own = |word: &str| matches!(word, "always" | "within_size");
    match shmem.as_str() {
        "force" => Finding::warn(NAME, seen, WHY)
            .cured_by("`echo never | sudo tee /sys/kernel/mm/transparent_hugepage/shmem_enabled`"),
        "deny" => Finding::ok(NAME, seen, WHY),
        _ if on_their_own(&mount) => {
            Finding::warn(NAME, seen, WHY).cured_by("`sudo mount -o remount,huge=never /dev/shm`")
        }
        _ => Finding::ok(NAME, seen, WHY),
    }
}

fn numa_balancing(patient: &Patient<'_>, settings: &KernelSettings) -> Finding {
    const NAME: &str = "numa_balancing";
    const WHY: &str = "to learn who uses a page the kernel takes away access to it, again and again: faults and moved pages \
                       in the middle of a window";
    match (settings.numa_balancing, patient.topology.nodes()) {
        (Setting::Absent, _) => Finding::idle(NAME, "none: a kernel without it", WHY),
        (Setting::Hidden, _) => Finding::missing(NAME, "not said: /proc/sys/kernel is hidden", WHY),
        (_, 0 | 1) => Finding::idle(NAME, "one NUMA node, nothing to balance", WHY),
        (Setting::Is(0), nodes) => Finding::idle(NAME, format!("off, {nodes} nodes"), WHY),
        (Setting::Is(mode), nodes) => Finding::warn(NAME, format!("on (mode {mode}), {nodes} nodes"), WHY)
            .cured_by("`sudo sysctl -w kernel.numa_balancing=0`"),
    }
}

fn same_page_merging(settings: &KernelSettings) -> Finding {
    const NAME: &str = "ksm";
    const WHY: &str = "the thread that looks for equal pages reads all memory offered to it, which empties caches, and a \
                       merged page costs a fault at the next write";
    match settings.same_page_merging {
        Setting::Absent => Finding::idle(NAME, "none: a kernel without it", WHY),
        Setting::Hidden => Finding::missing(NAME, "not said: /sys/kernel/mm is hidden", WHY),
        Setting::Is(1) => Finding::warn(NAME, "running", WHY).cured_by("`echo 0 | sudo tee /sys/kernel/mm/ksm/run`"),
        Setting::Is(_) => Finding::idle(NAME, "stopped", WHY),
    }
}

#[cfg(test)]
mod tests {
    use super::findings;
    use crate::fixture::{Fixture, assert_well_formed};
    use crate::{Finding, Patient};
    use plan::{Cpu, CpuId};
    use record::CheckState::{self, Missing, Ok, Warn};

    fn check(fixture: &Fixture, name: &str) -> (CheckState, String) {
        let found = fixture.findings(|patient: &Patient<'_>| findings(patient, &host::kernel_settings(patient.root)));
        found.iter().for_each(assert_well_formed);
        let Finding { check, .. } = found.into_iter().find(|finding| finding.check.name == name).unwrap();
        assert_eq!(check.state == Warn, check.cure.is_some(), "what is warned of here has a cure");
        (check.state, check.seen)
    }

    fn huge(shmem: &str, mount: &str) -> CheckState {
        let folder = "sys/kernel/mm/transparent_hugepage";
        let fixture = Fixture::new()
            .file(&format!("{folder}/enabled"), "[always] madvise never")
            .file(&format!("{folder}/shmem_enabled"), &format!("x [{shmem}] y"))
            .file("dev/shm/nothing", "")
            .file("proc/self/mounts", &format!("tmpfs /dev/shm tmpfs rw{mount} 0 0\n"));
        let (state, seen) = check(&fixture, "transparent_huge_pages");
        assert!(seen.starts_with("always, defrag ?, shmem "), "{seen}");
        state
    }

    #[test]
    fn huge_pages_matter_where_the_segment_would_get_them_by_chance() {
        assert_eq!((huge("never", ""), huge("always", "")), (Ok, Ok), "the mount decides, and says never by default");
        assert_eq!((huge("never", ",huge=always"), huge("never", ",huge=within_size")), (Warn, Warn));
        assert_eq!((huge("force", ""), huge("deny", ",huge=always"), huge("never", ",huge=advise")), (Warn, Ok, Ok));
    }

    #[test]
    fn balancing_matters_between_nodes() {
        let on = |nodes: u32| {
            let cpu = |id| Cpu { id: CpuId(id), core: id, llc: 0, node: id % nodes, socket: 0, usable: true };
            Fixture::new().topology((0..4).map(cpu).collect()).file("proc/sys/kernel/numa_balancing", "1")
        };
        assert_eq!(check(&on(1), "numa_balancing").0, Ok);
        assert_eq!(check(&on(2), "numa_balancing"), (Warn, "on (mode 1), 2 nodes".to_owned()));
        let off = on(2).file("proc/sys/kernel/numa_balancing", "0");
        assert_eq!(check(&off, "numa_balancing"), (Ok, "off, 2 nodes".to_owned()));
    }

    #[test]
    fn merging_matters_while_it_runs() {
        let with = |run: &str| check(&Fixture::new().file("sys/kernel/mm/ksm/run", run), "ksm").0;
        assert_eq!((with("0"), with("1"), with("2")), (Ok, Warn, Ok));
    }

    #[test]
    fn a_kernel_that_has_none_of_it_is_well_and_one_that_hides_it_does_not_say() {
        let bare =
            Fixture::new().file("proc/sys/kernel/osrelease", "6.1").file("sys/kernel/mm/swap/vma_ra_enabled", "true");
        for name in ["transparent_huge_pages", "numa_balancing", "ksm"] {
            let (none, hidden) = (check(&bare, name), check(&Fixture::new(), name));
            assert!(none.0 == Ok && none.1.starts_with("none"), "{none:?}");
            assert!(hidden.0 == Missing && hidden.1.starts_with("not said: "), "{hidden:?}");
        }
    }
}
