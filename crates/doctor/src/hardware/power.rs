//! What changes a core's speed and how fast it wakes: frequency, turbo, sleeping states.

use super::list;
use crate::{Finding, Patient};
use host::{Driver, IdleState, Root, Scaling};
use plan::CpuId;
use std::collections::BTreeMap;

/// A time to wake, µs, that shows beside a futex hand-over, which takes some microseconds by itself.
const SLOW_TO_WAKE_US: u64 = 10;

/// How a governor's choice moves during a run.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Pace {
    /// It does not, as far as the kernel decides.
    Steady,
    /// It follows the load.
    FollowsLoad,
    /// It follows the load, as the processor sees fit, with a leaning to saving power.
    LeansToSaving,
    /// It is the lowest there is.
    Lowest,
}

/// Who sets the clock rate of the CPUs in question.
pub(super) fn frequency(patient: &Patient<'_>) -> Finding {
    let mut kinds: BTreeMap<Scaling, Vec<CpuId>> = BTreeMap::new();
    for cpu in patient.cpus {
        if let Some(scaling) = host::scaling(patient.root, *cpu) {
            kinds.entry(scaling).or_default().push(*cpu);
        }
    }
    let Some(worst) = kinds.keys().map(pace).max() else {
        let why = "who sets the clock rate is not to be seen; runs time a fixed loop beside each repetition, which shows \
                   a core change speed";
        return match host::hypervisor(patient.root) {
            Some(_) => Finding::ok("frequency", "no governor, as in most guests: the host sets it", why),
            None => Finding::missing("frequency", "no governor shows", why),
        };
    };
    let several = kinds.len() > 1;
    let seen = |(scaling, cpus): (&Scaling, &Vec<CpuId>)| match several {
        true => format!("{} on CPUs {}", scaling.governor, list(cpus.iter().copied())),
        false => described(scaling),
    };
    let seen = kinds.iter().map(seen).collect::<Vec<_>>().join(", ");
    let why = match worst {
        Pace::Steady => {
            "the clock rate does not follow the load, so a slow variant is not one that ran at a lower rate"
        }
        Pace::FollowsLoad => {
            "the clock rate follows the load: the first milliseconds of work, and work that blocks, run \
                              slower"
        }
        Pace::LeansToSaving => {
            "with this driver the name does not mean the lowest rate: the processor chooses by load, \
                                leaning to saving, so the first milliseconds of work, and work that blocks, run slower"
        }
        Pace::Lowest => "the governor holds the lowest rate: steady, and unlike anything the program will meet in use",
    };
    match worst {
        Pace::Steady => Finding::ok("frequency", seen, why),
        _ => Finding::warn("frequency", seen, why).cured_by("sudo cpupower frequency-set -g performance"),
    }
}

/// # References
/// `Documentation/admin-guide/pm/cpufreq.rst`, "Generic Scaling Governors"; intel_pstate.rst beside it,
/// "Active Mode", where `powersave` is another algorithm than the generic governor of that name.
fn pace(scaling: &Scaling) -> Pace {
    if scaling.lowest_khz.is_some() && scaling.lowest_khz == scaling.highest_khz {
        return Pace::Steady;
    }
    match (scaling.governor.as_str(), &scaling.driver) {
        ("performance" | "userspace", _) => Pace::Steady,
        ("powersave", Driver::Autonomous(_)) => Pace::LeansToSaving,
        ("powersave", Driver::Governed(_) | Driver::Unknown) => Pace::Lowest,
        _ => Pace::FollowsLoad,
    }
}

/// `performance by acpi-cpufreq, 1.5-3.4 GHz`.
fn described(scaling: &Scaling) -> String {
    let driver = match &scaling.driver {
        Driver::Autonomous(name) | Driver::Governed(name) => format!(" by {name}"),
        Driver::Unknown => String::new(),
    };
    let ghz = |khz: u64| khz as f64 / 1e6;
    let range = match (scaling.lowest_khz, scaling.highest_khz) {
        (Some(lowest), Some(highest)) => format!(", {:.1}-{:.1} GHz", ghz(lowest), ghz(highest)),
        _ => String::new(),
    };
    format!("{}{driver}{range}", scaling.governor)
}

/// Clock rates above the nominal one.
pub(super) fn turbo(root: &Root) -> Finding {
    let why = "with turbo one worker alone runs faster than beside others: compare with the unshared baseline, not the \
               solo one";
    match host::turbo(root) {
        None if host::hypervisor(root).is_some() => Finding::ok("turbo", "no switch: the host may have it on", why),
        None => Finding::missing("turbo", "no switch shows", why),
        Some(turbo) if turbo.on => Finding::warn("turbo", "on: the rate depends on how many cores work", why)
            .cured_by(format!("echo {} | sudo tee /{}", turbo.off, turbo.file)),
        Some(_) => Finding::ok("turbo", "off", why),
    }
}

/// How long an idle CPU needs to wake.
pub(super) fn c_states(patient: &Patient<'_>) -> Finding {
    let why = "a worker that blocks leaves its CPU idle, and the time to wake it is part of each hand-over (longer \
               than the driver says where an idle virtual CPU goes back to its host); loops that spin are not \
               concerned";
    let driver = host::idle_driver(patient.root);
    let enabled = |cpu: &CpuId| host::idle_states(patient.root, *cpu).into_iter().filter(|state| !state.disabled);
    let deepest = patient.cpus.iter().flat_map(enabled).max_by_key(|state| state.exit_us);
    match (driver, deepest) {
        (None, _) => Finding::missing("c_states", "no idle driver", why),
        (Some(driver), None) => Finding::missing("c_states", format!("{driver}, which shows no states"), why),
        (Some(driver), Some(IdleState { name, exit_us, .. })) => {
            let seen = format!("{driver}: deepest {name}, {exit_us} µs to wake");
            if exit_us <= SLOW_TO_WAKE_US {
                return Finding::ok("c_states", seen, why);
            }
            // cpupower-idle-set(1): -D switches off the states that need as long or longer.
            let latency = SLOW_TO_WAKE_US + 1;
            let cure = format!("sudo cpupower idle-set -D {latency} (and -E to undo it)");
            Finding::warn("c_states", seen, why).cured_by(cure)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture::Fixture;
    use crate::hardware::findings;
    use record::Check;
    use record::CheckState::{Missing, Ok, Warn};

    fn governed(fixture: Fixture, cpu: u32, governor: &str, driver: &str) -> Fixture {
        let folder = format!("sys/devices/system/cpu/cpu{cpu}/cpufreq");
        fixture
            .file(&format!("{folder}/scaling_governor"), governor)
            .file(&format!("{folder}/scaling_driver"), driver)
            .file(&format!("{folder}/scaling_min_freq"), "800000\n")
            .file(&format!("{folder}/scaling_max_freq"), "3400000\n")
    }

    fn both(governor: &str, driver: &str) -> Check {
        governed(governed(Fixture::new(), 0, governor, driver), 1, governor, driver).check(findings, "frequency").check
    }

    #[test]
    fn powersave_means_two_things() {
        let classic = both("powersave\n", "acpi-cpufreq\n");
        assert!(classic.state == Warn && classic.why.contains("holds the lowest rate"), "{classic:?}");
        for driver in ["intel_pstate\n", "amd-pstate-epp\n"] {
            let active = both("powersave\n", driver);
            assert!(active.state == Warn && active.why.contains("does not mean the lowest rate"), "{active:?}");
        }
        assert!(classic.cure.unwrap().contains("-g performance"));
    }

    #[test]
    fn a_rate_that_follows_the_load_is_told_from_a_steady_one() {
        for governor in ["performance\n", "userspace\n"] {
            assert_eq!(both(governor, "acpi-cpufreq\n").state, Ok);
        }
        for governor in ["schedutil\n", "ondemand\n", "conservative\n"] {
            let check = both(governor, "acpi-cpufreq\n");
            assert!(check.state == Warn && check.why.contains("follows the load"), "{check:?}");
        }
        assert_eq!(both("performance\n", "acpi-cpufreq\n").seen, "performance by acpi-cpufreq, 0.8-3.4 GHz");
        let held = governed(Fixture::new(), 0, "schedutil\n", "x\n")
            .file("sys/devices/system/cpu/cpu0/cpufreq/scaling_min_freq", "3400000\n");
        assert_eq!(held.check(findings, "frequency").check.state, Ok, "its bounds leave no choice");
    }

    #[test]
    fn one_slow_cpu_among_those_in_question_is_enough() {
        let mixed = governed(governed(Fixture::new(), 0, "performance", "x"), 1, "powersave", "x");
        let check = mixed.check(findings, "frequency").check;
        assert_eq!((check.state, check.seen.as_str()), (Warn, "performance on CPUs 0, powersave on CPUs 1"));
        assert_eq!(mixed.in_question(&[0]).check(findings, "frequency").check.state, Ok);
        assert_eq!(Fixture::new().check(findings, "frequency").check.state, Missing);
    }

    #[test]
    fn turbo_is_switched_off_where_it_is_switched() {
        let of = |file: &str, text: &str| Fixture::new().file(file, text).check(findings, "turbo").check;
        let intel = of("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n");
        let wanted = "echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo";
        assert_eq!((intel.state, intel.cure.as_deref()), (Warn, Some(wanted)));
        let amd = of("sys/devices/system/cpu/cpufreq/boost", "1\n");
        assert_eq!(amd.cure.as_deref(), Some("echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost"));
        assert_eq!(of("sys/devices/system/cpu/cpufreq/boost", "0\n").state, Ok);
        assert_eq!(Fixture::new().check(findings, "turbo").check.state, Missing);
    }

    #[test]
    fn what_only_the_host_can_set_is_no_fault_of_a_guest_s() {
        let guest = Fixture::new().file("sys/hypervisor/type", "xen\n");
        for name in ["frequency", "turbo"] {
            let check = guest.check(findings, name).check;
            assert!(check.state == Ok && check.seen.contains("the host"), "{check:?}");
        }
    }

    fn idle(fixture: Fixture, states: &[(&str, u32, u32)]) -> Fixture {
        let fixture = fixture.file("sys/devices/system/cpu/cpuidle/current_driver", "intel_idle\n");
        let folder = "sys/devices/system/cpu/cpu1/cpuidle";
        states.iter().enumerate().fold(fixture, |fixture, (number, (name, us, disabled))| {
            fixture
                .file(&format!("{folder}/state{number}/name"), name)
                .file(&format!("{folder}/state{number}/latency"), &us.to_string())
                .file(&format!("{folder}/state{number}/disable"), &disabled.to_string())
        })
    }

    #[test]
    fn the_deepest_state_that_is_on_counts() {
        let deep = idle(Fixture::new(), &[("POLL", 0, 0), ("C1", 2, 0), ("C6", 133, 0)]).check(findings, "c_states");
        assert_eq!((deep.check.state, deep.check.seen.as_str()), (Warn, "intel_idle: deepest C6, 133 µs to wake"));
        assert!(deep.check.cure.unwrap().contains("idle-set -D 11"));
        let off = idle(Fixture::new(), &[("POLL", 0, 0), ("C1", 2, 0), ("C6", 133, 1)]).check(findings, "c_states");
        assert_eq!((off.check.state, off.check.seen.as_str()), (Ok, "intel_idle: deepest C1, 2 µs to wake"));
        assert_eq!(idle(Fixture::new(), &[]).check(findings, "c_states").check.state, Missing);
        assert_eq!(Fixture::new().check(findings, "c_states").check.state, Missing);
    }
}
