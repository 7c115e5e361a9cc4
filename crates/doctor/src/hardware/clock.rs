//! The clocks that times are read from.

use crate::{Finding, Spoils};
use host::Root;

/// Clocks that a process reads without entering the kernel, by the vDSO (`arch/x86/include/asm/vdso/clocksource.h`,
/// `drivers/clocksource/arm_arch_timer.c`).
const READ_WITHOUT_KERNEL: [&str; 4] = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];

/// Clocks that Linux takes on x86 where it has found the TSC of its CPUs to disagree or to stand still, if `tsc` is not
/// even offered (`Documentation/admin-guide/kernel-parameters.txt`, tsc=).
const INSTEAD_OF_TSC: [&str; 4] = ["hpet", "acpi_pm", "jiffies", "refined-jiffies"];

/// Which clock the kernel uses.
pub(super) fn clock_source(root: &Root) -> Finding {
    let name = "clock_source";
    let Some(source) = host::clock_source(root) else {
        return Finding::missing(
            name,
            "not said",
            "a clock that is read by entering the kernel costs a microsecond each time",
        );
    };
    let current = source.current.as_str();
    if READ_WITHOUT_KERNEL.contains(&current) {
        return Finding::ok(name, current, "read without entering the kernel, in tens of nanoseconds");
    }
    let why =
        "each reading enters the kernel and takes about a microsecond, so what is timed piece by piece looks slow";
    if source.available.iter().any(|other| other == "tsc") {
        return Finding::warn(name, format!("{current}, though tsc is there"), why)
            .cured_by("echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource");
    }
    if INSTEAD_OF_TSC.contains(&current) && !source.available.is_empty() {
        let why = "the kernel has found that the TSC of the CPUs disagree or stand still, and workers time their \
                   slices by it";
        return Finding::warn(name, format!("{current}; the kernel rejected tsc"), why)
            .cured_by("sudo dmesg | grep -i -e tsc -e clocksource says why; another machine or firmware is the cure")
            .spoiling(Spoils::EveryRun);
    }
    Finding::warn(name, current, why)
}

/// Whether the counter that workers read ticks at one rate.
pub(super) fn invariant_tsc(root: &Root) -> Finding {
    let name = "invariant_tsc";
    let why = "workers read this counter at the ends of each slice; where its rate follows the core's frequency or \
               it stops in sleep, its ticks are no measure of time";
    match host::facts(root).invariant_clock {
        Some(true) => Finding::ok(name, "one rate in every power state", why),
        Some(false) => Finding::warn(name, "its rate changes, or it stops in sleep", why)
            .cured_by(
                "measure on another machine; in a virtual one: a CPU model that passes invtsc on (-cpu host,+invtsc)",
            )
            .spoiling(Spoils::EveryRun),
        None => Finding::missing(name, "not said", why),
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::Fixture;
    use crate::hardware::findings;
    use crate::{Finding, Spoils};
    use record::CheckState::{Missing, Ok, Warn};

    fn source(current: &str, available: &str) -> Finding {
        let folder = "sys/devices/system/clocksource/clocksource0";
        let fixture = Fixture::new()
            .file(&format!("{folder}/current_clocksource"), current)
            .file(&format!("{folder}/available_clocksource"), available);
        fixture.check(findings, "clock_source")
    }

    #[test]
    fn a_slow_clock_is_a_warning_and_a_rejected_tsc_spoils() {
        for fast in ["tsc\n", "kvm-clock\n", "arch_sys_counter\n"] {
            assert_eq!(source(fast, fast).check.state, Ok);
        }
        let chosen = source("hpet\n", "tsc hpet acpi_pm\n");
        assert_eq!((chosen.check.state, chosen.spoils), (Warn, Spoils::Nothing));
        assert!(chosen.check.cure.unwrap().starts_with("echo tsc"));
        let rejected = source("hpet\n", "hpet acpi_pm\n");
        assert_eq!((rejected.check.state, rejected.spoils), (Warn, Spoils::EveryRun));
        let other = source("timebase\n", "timebase\n");
        assert_eq!((other.check.state, other.spoils, other.check.cure), (Warn, Spoils::Nothing, None));
        assert_eq!(Fixture::new().check(findings, "clock_source").check.state, Missing);
    }

    #[test]
    fn a_counter_that_changes_its_rate_spoils_every_run() {
        let of = |text| Fixture::new().file("proc/cpuinfo", text).check(findings, "invariant_tsc");
        assert_eq!(of("flags : constant_tsc nonstop_tsc\n").check.state, Ok);
        let changing = of("flags : constant_tsc\n");
        assert_eq!((changing.check.state, changing.spoils), (Warn, Spoils::EveryRun));
        assert_eq!(Fixture::new().check(findings, "invariant_tsc").check.state, Missing);
    }
}
