//! Pages that regions ask for and this host may not have: an arm that needs them is then not applicable, and says why.

use host::{FREE_HUGE_PAGES, HugePages, Root, Setting, kernel_settings};
use plan::{Bound, HUGE_PAGE_BYTES, MemoryVerb, NotApplicable, Pages, Program, WorkerProgram};

/// Marks each arm whose huge pages this host does not have, explicit ones or transparent ones.
pub(crate) fn withdraw_unpaged(bound: &mut Bound, root: &Root) {
    let (pool, transparent) = (host::huge_pages(root), kernel_settings(root).huge_pages);
    for arm in &mut bound.arms {
        let Ok(program) = &arm.program else { continue };
        if let Some(why) = lack(program, pool, &transparent) {
            arm.program = Err(NotApplicable { why });
        }
    }
}

/// What a program's regions need and do not get.
fn lack(program: &Program, pool: Option<HugePages>, transparent: &Setting<String>) -> Option<String> {
    let needed = huge_pages(program);
    let HugePages { total, free } = pool.unwrap_or_default();
    if needed > free {
        let has = pool.map_or("says of none".to_owned(), |_| format!("has {free} free"));
        return Some(format!(
            "its regions need {needed} huge page{s} of 2 MiB, and this host {has} ({FREE_HUGE_PAGES}); as root, `sysctl \
             vm.nr_hugepages={}` sets so many apart in all, and leaves enough of them free",
            total.saturating_add(needed - free),
            s = if needed == 1 { "" } else { "s" },
        ));
    }
    let given = !matches!(transparent, Setting::Absent) && *transparent != Setting::Is("never".to_owned());
    (!given && asks_for_transparent(program)).then(|| {
        "a region's pages are transparent huge ones, and this host gives none \
         (/sys/kernel/mm/transparent_hugepage/enabled); as root, write `madvise` to that file"
            .to_owned()
    })
}

/// Huge pages that are taken at once: of shared regions once, of private ones by each process, and by each `map`.
fn huge_pages(program: &Program) -> u64 {
    let of = |region: u32| &program.regions[region as usize];
    let huge = |region: &u32| of(*region).pages == Pages::Huge;
    let private = program.processes().flat_map(|process| {
        let regions = (0..program.regions.len() as u32).filter(huge).filter(|region| !of(*region).shared);
        let mapped = move |region: &u32| process.iter().any(|worker| program.maps(worker, *region));
        regions.filter(mapped).map(|region| of(region).bytes)
    });
    let maps = program.workers.iter().flat_map(WorkerProgram::memory_steps).map(|(_, step)| step);
    let made = maps.filter(|step| step.verb == MemoryVerb::Map && huge(&step.region)).map(|step| step.bytes);
    (program.shared_file(Pages::Huge).1 + private.sum::<u64>() + made.sum::<u64>()) / HUGE_PAGE_BYTES
}

fn asks_for_transparent(program: &Program) -> bool {
    let named = |worker: &WorkerProgram, region: u32| {
        program.maps(worker, region) || worker.memory_steps().any(|(_, step)| step.region == region)
    };
    let transparent = program.regions.iter().zip(0..).filter(|(region, _)| region.pages == Pages::Transparent);
    transparent.map(|(_, index)| index).any(|index| program.workers.iter().any(|worker| named(worker, index)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::{Cpu, CpuId, Topology};

    fn bound(regions: &str, steps: &str) -> Bound {
        let text = format!("{regions}[[role]]\nname = 'r'\nworkers = 2\nthreads = 2\nloop = [{steps}]\n");
        let plan =
            scenario::parse("case.toml", &text).unwrap_or_else(|refusal| panic!("{}", refusal.render(false))).plan;
        let cpu = |id| Cpu { id: CpuId(id), core: id, llc: 0, node: 0, socket: 0, usable: true };
        plan::bind(&plan, &Topology { cpus: (0..2).map(cpu).collect() }, 0).unwrap()
    }

    /// What is lacking where so many pages are set apart, and so many of them free.
    fn why(regions: &str, steps: &str, pool: Option<(u64, u64)>, transparent: &str) -> Option<String> {
        let bound = bound(regions, steps);
        let pool = pool.map(|(total, free)| HugePages { total, free });
        lack(bound.arms[0].program.as_ref().unwrap(), pool, &Setting::Is(transparent.to_owned()))
    }

    const SHARED: &str = "[region.seg]\nsize = '6MiB'\nshared = true\npages = '2MiB'\n";
    const OWN: &str = "[region.heap]\nsize = '4MiB'\npages = '2MiB'\n";

    #[test]
    fn huge_pages_are_counted_for_each_process_and_each_map() {
        let huge = |regions: &str, steps: &str| huge_pages(bound(regions, steps).arms[0].program.as_ref().unwrap());
        assert_eq!(huge(SHARED, "'touch seg'"), 3);
        assert_eq!(huge(OWN, "'touch heap'"), 2, "two threads of one process have one");
        assert_eq!(huge(OWN, "'map heap 2MiB', 'unmap heap 2MiB'"), 2, "each of the two maps one");
        assert_eq!(huge(&format!("{SHARED}{OWN}"), "'touch heap', 'punch seg'"), 5);
        assert_eq!(huge(&SHARED.replace("pages = '2MiB'\n", ""), "'touch seg'"), 0);
    }

    #[test]
    fn what_this_host_lacks_is_said_with_its_numbers_and_the_cure() {
        assert_eq!(why(SHARED, "'touch seg'", Some((100, 3)), "never"), None);
        let text = why(SHARED, "'touch seg'", Some((100, 2)), "never").unwrap();
        assert!(text.contains("need 3 huge pages") && text.contains("has 2 free"), "{text}");
        assert!(text.contains("`sysctl vm.nr_hugepages=101` "), "98 are in use, and stay so: {text}");
        let none = why(OWN, "'touch heap'", None, "always").unwrap();
        assert!(none.contains("says of none") && none.contains("`sysctl vm.nr_hugepages=2` "), "{none}");
        let transparent = OWN.replace("2MiB", "transparent");
        assert_eq!(why(&transparent, "'touch heap'", None, "madvise"), None);
        assert!(why(&transparent, "'touch heap'", None, "never").unwrap().contains("gives none"));
    }

    #[test]
    fn an_arm_without_its_pages_is_withdrawn_and_the_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let text = format!(
            "{OWN}[[variant]]\nname = 'huge'\n[[variant]]\nname = 'small'\n[variant.set]\n'region.heap.pages' = '4KiB'\n"
        );
        let mut bound = bound(&text, "'touch heap'");
        withdraw_unpaged(&mut bound, &Root::at(folder.path()));
        let placed: Vec<(&str, bool)> =
            bound.arms.iter().map(|arm| (arm.arm.name.as_str(), arm.program.is_ok())).collect();
        assert_eq!(placed[..2], [("huge", false), ("small", true)]);
    }
}
