//! What a run records about its machine.

use crate::hypervisor::{Hypervisor, hypervisor};
use crate::named_rows::row;
use crate::root::Root;
use plan::CACHE_LINE_BYTES;

/// The parts of the record's host section that hold before, during and after a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Host name; `unknown` where the kernel does not say.
    pub hostname: String,
    /// Kernel release, as `uname -r`; `unknown` where the kernel does not say.
    pub kernel: String,
    /// CPU model as `/proc/cpuinfo` names it; on Arm, which names none, the implementer and part numbers.
    pub cpu_model: String,
    /// The hypervisor this machine runs under, where there is one. A hypervisor that hides itself is not seen.
    pub hypervisor: Option<Hypervisor>,
    /// The largest line of any CPU's caches, bytes; 64 where no cache says.
    pub line_bytes: u32,
    /// `/proc/sys/kernel/perf_event_paranoid`; `None` where this kernel has no perf events or does not
    /// show the level.
    pub perf_event_paranoid: Option<i32>,
    /// Whether the clock that a worker reads ticks at one rate in every power state: on x86 where the processor has
    /// both `constant_tsc` and `nonstop_tsc`, on Arm always. `None` where the kernel says neither.
    pub invariant_clock: Option<bool>,
}

/// Reads the facts. What cannot be read has the value that its field names; nothing here can fail.
pub fn facts(root: &Root) -> Facts {
    let said = |file| root.text(file).filter(|text| !text.is_empty()).unwrap_or_else(|| "unknown".to_owned());
    let cpuinfo = root.text("proc/cpuinfo").unwrap_or_default();
    Facts {
        hostname: said("proc/sys/kernel/hostname"),
        kernel: said("proc/sys/kernel/osrelease"),
        cpu_model: cpu_model(&cpuinfo),
        hypervisor: hypervisor(root),
        line_bytes: line_bytes(root),
        perf_event_paranoid: perf_event_paranoid(root),
        invariant_clock: invariant_clock(&cpuinfo),
    }
}

/// The highest [`perf_event_paranoid`] level at which a process without privilege may count itself in user mode.
/// Higher levels exist in some distributions' kernels only; others take them for this one.
///
/// # References
/// `Documentation/admin-guide/sysctl/kernel.rst`, perf_event_paranoid.
pub const PARANOID_USER: i32 = 2;

/// The highest level at which it may count what happens in the kernel too.
pub const PARANOID_KERNEL: i32 = 1;

/// [`Facts::perf_event_paranoid`] alone: one file.
pub fn perf_event_paranoid(root: &Root) -> Option<i32> {
    root.number("proc/sys/kernel/perf_event_paranoid")
}

fn cpu_model(cpuinfo: &str) -> String {
    if let Some(name) = row(cpuinfo, "model name").or_else(|| row(cpuinfo, "Model")) {
        return name.to_owned();
    }
    match (row(cpuinfo, "CPU implementer"), row(cpuinfo, "CPU part")) {
        (Some(implementer), Some(part)) => format!("Arm implementer {implementer} part {part}"),
        _ => "unknown".to_owned(),
    }
}

/// # References
/// Intel SDM 3B, 19.17.1 "Invariant TSC" (cpuid 0x8000_0007, EDX bit 8, which Linux shows as `nonstop_tsc`); Arm ARM,
/// D12 "The Generic Timer": the count's frequency is fixed.
fn invariant_clock(cpuinfo: &str) -> Option<bool> {
    if let Some(flags) = row(cpuinfo, "flags") {
        let has = |wanted| flags.split_whitespace().any(|flag| flag == wanted);
        return Some(has("constant_tsc") && has("nonstop_tsc"));
    }
    row(cpuinfo, "CPU implementer").map(|_| true)
}

fn line_bytes(root: &Root) -> u32 {
    let cpus = root.names("sys/devices/system/cpu");
    let sizes = cpus.iter().filter(|name| name.starts_with("cpu")).flat_map(|cpu| {
        let folder = format!("sys/devices/system/cpu/{cpu}/cache");
        let of_index = |index: String| root.number::<u32>(&format!("{folder}/{index}/coherency_line_size"));
        root.names(&folder).into_iter().filter_map(of_index).collect::<Vec<_>>()
    });
    sizes.filter(|bytes| *bytes > 0).max().unwrap_or(CACHE_LINE_BYTES as u32)
}

#[cfg(test)]
mod tests {
    use super::facts;
    use crate::Hypervisor;
    use crate::fixture::Fixture;
    use crate::root::Root;

    #[test]
    fn a_described_machine_is_recorded_as_it_says() {
        let fixture = Fixture::new()
            .file("proc/sys/kernel/hostname", "bench7\n")
            .file("proc/sys/kernel/osrelease", "6.1.0-9-amd64\n")
            .file("proc/sys/kernel/perf_event_paranoid", "-1\n")
            .file("proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU @ 2.0GHz\nflags\t\t: fpu hypervisor sse\n")
            .file("sys/devices/system/cpu/cpu0/cache/index0/coherency_line_size", "128\n");
        let seen = facts(&fixture.root());
        assert_eq!((seen.hostname.as_str(), seen.kernel.as_str()), ("bench7", "6.1.0-9-amd64"));
        assert_eq!((seen.cpu_model.as_str(), seen.line_bytes), ("Some CPU @ 2.0GHz", 128));
        assert_eq!((seen.hypervisor, seen.perf_event_paranoid), (Some(Hypervisor::Unnamed), Some(-1)));
    }

    #[test]
    fn a_machine_that_says_nothing_has_no_invented_facts() {
        let seen = facts(&Fixture::new().root());
        assert_eq!((seen.hostname.as_str(), seen.cpu_model.as_str()), ("unknown", "unknown"));
        assert_eq!((seen.hypervisor, seen.perf_event_paranoid, seen.line_bytes), (None, None, 64));
    }

    #[test]
    fn arm_is_named_by_its_part_number() {
        let fixture = Fixture::new().file("proc/cpuinfo", "processor : 0\nCPU implementer : 0x41\nCPU part : 0xd49\n");
        assert_eq!(facts(&fixture.root()).cpu_model, "Arm implementer 0x41 part 0xd49");
    }

    #[test]
    fn a_clock_is_invariant_where_both_flags_or_the_architecture_say_so() {
        let of = |text: &str| facts(&Fixture::new().file("proc/cpuinfo", text).root()).invariant_clock;
        assert_eq!(of("flags : fpu constant_tsc rdtscp nonstop_tsc\n"), Some(true));
        assert_eq!(of("flags : fpu constant_tsc rdtscp\n"), Some(false), "it stops in deep idle");
        assert_eq!(of("flags : fpu nonstop_tsc_s3 constant_tsc\n"), Some(false), "another flag");
        assert_eq!(of("CPU implementer : 0x41\nFeatures : fp asimd\n"), Some(true));
        assert_eq!(of(""), None);
    }

    #[test]
    fn this_machine_says_who_it_is() {
        let seen = facts(&Root::system());
        assert!(seen.line_bytes.is_power_of_two(), "{seen:?}");
        assert!(!seen.hostname.is_empty() && !seen.kernel.is_empty() && !seen.cpu_model.is_empty(), "{seen:?}");
    }
}
