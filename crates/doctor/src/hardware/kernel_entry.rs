//! What entering the kernel and changing the address space cost: every system call, fault and interrupt pays it.

use crate::Finding;
use host::{Root, SpaceIds};

/// Words in the kernel's reports that stand for work at each entry to the kernel, or each return from it.
///
/// # References
/// `Documentation/admin-guide/hw-vuln/`: mds.rst, processor_mmio_stale_data.rst ("Clear CPU buffers"), spectre.rst
/// ("IBRS" as the first word; "Enhanced" and "Automatic" IBRS cost nothing at entry), srso.rst ("Safe RET", "IBPB"),
/// and retbleed in `arch/x86/kernel/cpu/bugs.c` ("untrained return thunk", "IBPB", "IBRS").
const AT_EACH_ENTRY: [&str; 5] =
    ["Clear CPU buffers", "Mitigation: IBRS", "Mitigation: IBPB", "Safe RET", "untrained return thunk"];

/// The report where stores may not be forwarded to loads before their addresses are known, in user mode too
/// (`Documentation/userspace-api/spec_ctrl.rst`); "via prctl" concerns those alone who ask.
const STORES_WAIT: &str = "Speculative Store Bypass disabled";

/// Whether translations outlive a change of the address space.
pub(super) fn pcid(root: &Root) -> Finding {
    let why = "without them each switch between two processes empties the TLB, so workers that share a CPU, or \
               block, refill it each time";
    match host::space_ids(root) {
        Some(SpaceIds::Pcid { invpcid: true }) => Finding::ok("pcid", "pcid and invpcid", why),
        Some(SpaceIds::Pcid { invpcid: false }) => Finding::ok("pcid", "pcid, without invpcid", why),
        Some(SpaceIds::Arm) => Finding::ok("pcid", "ASIDs, as every Arm has them", why),
        Some(SpaceIds::None) => Finding::missing("pcid", "none: each process switch empties the TLB", why),
        None => Finding::missing("pcid", "not said", why),
    }
}

/// Whether each entry to the kernel changes page tables.
///
/// # References
/// `Documentation/arch/x86/pti.rst`.
pub(super) fn page_table_isolation(root: &Root) -> Finding {
    let name = "page_table_isolation";
    let why = "each system call, fault and interrupt then changes page tables twice: locks that sleep look dearer \
               than on a processor without Meltdown";
    let meltdown = host::vulnerabilities(root).into_iter().find(|known| known.name == "meltdown");
    match meltdown.as_ref().map(|known| known.status.as_str()) {
        Some(status) if status.contains("PTI") => Finding::warn(name, "on", why)
            .cured_by("boot with pti=off (x86) or kpti=0 (Arm), where no code is distrusted"),
        Some("Not affected") => Finding::idle(name, "off: not affected by Meltdown", why),
        Some(status) if status.starts_with("Vulnerable") => Finding::ok(name, "off, though affected by Meltdown", why),
        Some(_) | None => Finding::missing(name, "not said", why),
    }
}

/// What the kernel does against the processor's other weaknesses.
pub(super) fn mitigations(root: &Root) -> Finding {
    let name = "mitigations";
    let known = host::vulnerabilities(root);
    let why = "futex calls, faults and interrupts pay for them, user-mode loops do not: compare lock waits only where \
               they agree";
    if known.is_empty() {
        return Finding::missing(name, "not said", why);
    }
    let off = match host::kernel_parameter(root, name) {
        Some(value) if value.split(',').any(|part| part == "off") => "; booted with mitigations=off",
        _ => "",
    };
    if known.iter().any(|one| one.status.contains(STORES_WAIT) && !one.status.contains("via prctl")) {
        let why = "loads wait for the addresses of earlier stores, in workers' own loops too: field accesses look \
                   slower than on a machine without it";
        return Finding::warn(name, "spec_store_bypass: loads wait for earlier stores", why)
            .cured_by("boot with spec_store_bypass_disable=prctl");
    }
    let dear = |status: &str| AT_EACH_ENTRY.iter().any(|words| status.contains(words));
    let dear: Vec<&str> = known.iter().filter(|one| dear(&one.status)).map(|one| one.name.as_str()).collect();
    if dear.is_empty() {
        let active = known.iter().filter(|one| one.status.starts_with("Mitigation")).count();
        return Finding::ok(name, format!("{active} active, none of them dear{off}"), why);
    }
    let (seen, why) = match dear[..] {
        [one] => (format!("dear at each kernel entry: {one}{off}"), why.to_owned()),
        _ => (
            format!("{} mitigations cost at each kernel entry{off}", dear.len()),
            format!("{why}; here: {}", dear.join(", ")),
        ),
    };
    Finding::warn(name, seen, why).cured_by("boot with mitigations=off, where no code is distrusted")
}

#[cfg(test)]
mod tests {
    use crate::fixture::Fixture;
    use crate::hardware::findings;
    use record::Check;
    use record::CheckState::{Missing, Ok, Warn};

    fn with(reports: &[(&str, &str)]) -> Fixture {
        let folder = "sys/devices/system/cpu/vulnerabilities";
        reports.iter().fold(Fixture::new(), |fixture, (name, text)| fixture.file(&format!("{folder}/{name}"), text))
    }

    #[test]
    fn address_space_numbers_are_there_or_not() {
        let of = |text| Fixture::new().file("proc/cpuinfo", text).check(findings, "pcid").check;
        assert_eq!(of("flags : pcid invpcid\n").seen, "pcid and invpcid");
        assert_eq!(of("flags : pcid\n").state, Ok);
        assert_eq!(of("flags : fpu\n").state, Missing);
        assert_eq!(of("CPU implementer : 0x41\n").state, Ok);
        assert_eq!(Fixture::new().check(findings, "pcid").check.seen, "not said");
    }

    #[test]
    fn isolation_follows_the_kernel_s_word_on_meltdown() {
        let of = |text| with(&[("meltdown", text)]).check(findings, "page_table_isolation").check;
        let on = of("Mitigation: PTI\n");
        assert!(on.state == Warn && on.cure.unwrap().contains("pti=off"));
        assert_eq!((of("Not affected\n").state, of("Vulnerable\n").state), (Ok, Ok));
        assert_eq!(of("Unknown (XEN PV detected, hypervisor mitigation required)\n").state, Missing);
        assert_eq!(Fixture::new().check(findings, "page_table_isolation").check.state, Missing);
    }

    fn mitigations(reports: &[(&str, &str)], cmdline: &str) -> Check {
        with(reports).file("proc/cmdline", cmdline).check(findings, "mitigations").check
    }

    #[test]
    fn only_what_costs_at_each_entry_is_a_warning() {
        let cheap = [
            ("spectre_v1", "Mitigation: usercopy/swapgs barriers and __user pointer sanitization\n"),
            ("spectre_v2", "Mitigation: Enhanced / Automatic IBRS; IBPB: conditional; RSB filling\n"),
            ("spec_store_bypass", "Mitigation: Speculative Store Bypass disabled via prctl\n"),
            ("mds", "Not affected\n"),
        ];
        let check = mitigations(&cheap, "quiet\n");
        assert_eq!((check.state, check.seen.as_str()), (Ok, "3 active, none of them dear"));
        let one = mitigations(&[("spec_rstack_overflow", "Vulnerable: Safe RET, no microcode\n")], "");
        assert_eq!((one.state, one.seen.as_str()), (Warn, "dear at each kernel entry: spec_rstack_overflow"));
        let two = [("mds", "Mitigation: Clear CPU buffers; SMT vulnerable\n"), ("retbleed", "Mitigation: IBRS\n")];
        let two = mitigations(&two, "");
        assert_eq!((two.state, two.seen.as_str()), (Warn, "2 mitigations cost at each kernel entry"));
        assert!(two.why.ends_with("mds, retbleed") && two.cure.unwrap().contains("mitigations=off"));
    }

    #[test]
    fn stores_that_loads_wait_for_concern_the_workers_own_loops() {
        let check = mitigations(&[("spec_store_bypass", "Mitigation: Speculative Store Bypass disabled\n")], "");
        assert!(check.state == Warn && check.why.contains("workers' own loops"), "{check:?}");
        assert!(check.cure.unwrap().contains("spec_store_bypass_disable"));
    }

    #[test]
    fn the_boot_parameter_is_told() {
        let check = mitigations(&[("mds", "Vulnerable\n")], "ro mitigations=off\n");
        assert_eq!(
            (check.state, check.seen.as_str()),
            (Ok, "0 active, none of them dear; booted with mitigations=off")
        );
        assert_eq!(Fixture::new().check(findings, "mitigations").check.state, Missing);
    }
}
