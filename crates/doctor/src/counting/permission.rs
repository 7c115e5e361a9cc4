//! Who may count, and what stands in the way.

use super::asked::Kind;
use super::events::{core_units, perf_counts};
use crate::{Finding, Spoils};
use host::{PARANOID_KERNEL, PARANOID_USER, Root, Seccomp, Tracing};

/// The kernel's rule on who may count.
pub(super) fn perf_event_paranoid(root: &Root) -> Finding {
    let name = "perf_event_paranoid";
    let Some(level) = host::perf_event_paranoid(root) else {
        return Finding::missing(
            name,
            "no perf events",
            "this kernel has none, or a sandbox hides them: nothing is counted",
        )
        .spoiling(Spoils::HardwareCounts);
    };
    let why = "the level decides what a process without the capability CAP_PERFMON may count";
    let lower_to =
        |level: i32| format!("sudo sysctl kernel.perf_event_paranoid={level}, or sudo setcap cap_perfmon+ep PROGRAM");
    if level <= PARANOID_KERNEL {
        return Finding::ok(name, format!("{level}: every event of its own"), why);
    }
    if host::privileges(root).may_ignore_paranoid {
        return Finding::ok(name, format!("{level}, which this process may ignore"), why);
    }
    if level <= PARANOID_USER {
        let seen = format!("{level}: not what happens in the kernel");
        let why = format!("{why}; context switches, migrations and tracepoints need {PARANOID_KERNEL} or less");
        return Finding::warn(name, seen, why).cured_by(lower_to(PARANOID_KERNEL));
    }
    Finding::warn(name, format!("{level}: this process may count nothing"), why)
        .cured_by(lower_to(PARANOID_KERNEL))
        .spoiling(Spoils::HardwareCounts)
}

/// A filter on system calls, which may keep perf's from being made.
pub(super) fn seccomp(root: &Root, kinds: &[Kind]) -> Finding {
    let why = "a filter, as containers have one, may refuse perf_event_open before the paranoid level is looked at";
    match (host::seccomp(root), perf_counts(kinds)) {
        (None, _) => Finding::missing("seccomp", "not said", why),
        (Some(Seccomp::Off), _) => Finding::ok("seccomp", "no filter", why),
        (Some(_), Some(true)) => Finding::ok("seccomp", "a filter, which lets perf_event_open through", why),
        (Some(_), None) => Finding::missing("seccomp", "a filter; perf_event_open was not tried", why),
        (Some(_), Some(false)) => Finding::warn("seccomp", "a filter, and perf_event_open counts nothing", why)
            .cured_by("docker run --cap-add PERFMON, or a seccomp profile that allows perf_event_open"),
    }
}

/// The list of the kernel's tracepoints.
pub(super) fn tracefs(root: &Root) -> Finding {
    let why = "futex calls, TLB flushes and a user's own tracepoints are found by their numbers there";
    match host::tracing(root) {
        Tracing::Readable(folder) => Finding::ok("tracefs", format!("readable at /{folder}"), why),
        Tracing::Closed(folder) => {
            Finding::missing("tracefs", format!("mounted at /{folder}, closed to this process"), why)
                .cured_by(format!("sudo mount -o remount,mode=755 /{folder}"))
        }
        Tracing::NotMounted => Finding::missing("tracefs", "not mounted", why)
            .cured_by("sudo mount -t tracefs tracefs /sys/kernel/tracing"),
        Tracing::Absent => Finding::missing("tracefs", "not in this kernel, or hidden by a container", why),
    }
}

/// The kernel's own user of a counter.
pub(super) fn nmi_watchdog(root: &Root) -> Finding {
    let why = "the watchdog takes one counter of each CPU, so events take turns sooner or never get theirs";
    let has_pmu = !core_units(root).is_empty();
    match host::nmi_watchdog(root) {
        None => Finding::missing("nmi_watchdog", "not said", why),
        Some(false) => Finding::ok("nmi_watchdog", "off", why),
        Some(true) if !has_pmu => Finding::ok("nmi_watchdog", "on, and no PMU whose counter it could take", why),
        Some(true) => Finding::warn("nmi_watchdog", "on: takes one counter of each CPU", why)
            .cured_by("sudo sysctl kernel.nmi_watchdog=0"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;
    use record::CheckState::{Missing, Ok, Warn};
    use record::{CheckState, Reading};

    fn paranoid(level: &str, capabilities: &str) -> Finding {
        let fixture = Fixture::new()
            .file("proc/sys/kernel/perf_event_paranoid", level)
            .file("proc/self/status", &format!("CapEff:\t{capabilities}\n"));
        fixture.check(|patient| vec![perf_event_paranoid(patient.root)], "perf_event_paranoid")
    }

    #[test]
    fn the_level_binds_those_without_the_capability() {
        for level in ["-1\n", "0\n", "1\n"] {
            assert_eq!(paranoid(level, "0").check.state, Ok, "{level}");
        }
        for level in ["2\n", "4\n"] {
            let privileged = paranoid(level, "0000004000000000");
            assert_eq!((privileged.check.state, privileged.check.cure), (Ok, None));
        }
        let user_mode = paranoid("2\n", "0");
        assert_eq!((user_mode.check.state, &user_mode.spoils), (Warn, &Spoils::Nothing));
        assert!(user_mode.check.cure.unwrap().contains("perf_event_paranoid=1"));
        let nothing = paranoid("3\n", "0");
        assert_eq!((nothing.check.state, nothing.spoils), (Warn, Spoils::HardwareCounts));
    }

    #[test]
    fn a_kernel_without_perf_events_counts_nothing() {
        let found = Fixture::new().check(|patient| vec![perf_event_paranoid(patient.root)], "perf_event_paranoid");
        assert_eq!((found.check.state, found.spoils), (Missing, Spoils::HardwareCounts));
    }

    fn filtered(mode: Option<&str>, kinds: &[Kind]) -> CheckState {
        let fixture = match mode {
            Some(mode) => Fixture::new().file("proc/self/status", &format!("Seccomp:\t{mode}\n")),
            None => Fixture::new(),
        };
        fixture.check(|patient| vec![seccomp(patient.root, kinds)], "seccomp").check.state
    }

    #[test]
    fn a_filter_matters_where_nothing_counts() {
        let with = |reading: Reading| {
            vec![super::super::events::test_kind("0", &[("task_clock", plan::CountedBy::Kernel, reading)], 0)]
        };
        let counts = with(Reading::Counted { value: 1 });
        let denied = with(Reading::Denied { why: "w".into(), cure: "c".into() });
        assert_eq!((filtered(Some("2"), &counts), filtered(Some("2"), &denied)), (Ok, Warn));
        assert_eq!((filtered(Some("0"), &denied), filtered(None, &counts)), (Ok, Missing));
        assert_eq!(filtered(Some("2"), &[]), Missing);
        let mut noted = denied;
        let answers = noted[0].answers.as_mut().expect("answers");
        answers.readings.insert("stolen_ns".into(), Reading::Counted { value: 0 });
        assert_eq!(filtered(Some("2"), &noted), Warn, "what is only noted needs no perf");
    }

    #[test]
    fn tracefs_says_how_to_open_it() {
        let of = |fixture: Fixture| fixture.check(|patient| vec![tracefs(patient.root)], "tracefs").check;
        let readable = of(Fixture::new().file("sys/kernel/tracing/events/sched/enable", "0"));
        assert_eq!((readable.state, readable.seen.as_str()), (Ok, "readable at /sys/kernel/tracing"));
        let unmounted = of(Fixture::new().file("sys/kernel/tracing/.keep", ""));
        assert!(unmounted.state == Missing && unmounted.cure.unwrap().contains("mount -t tracefs"));
        let closed = of(Fixture::new().file("proc/self/mounts", "tracefs /sys/kernel/tracing tracefs rw 0 0\n"));
        assert!(closed.state == Missing && closed.cure.unwrap().contains("mode=755"));
        assert_eq!(of(Fixture::new()).cure, None);
    }

    #[test]
    fn the_watchdog_matters_where_there_is_a_counter_to_take() {
        let of =
            |fixture: Fixture| fixture.check(|patient| vec![nmi_watchdog(patient.root)], "nmi_watchdog").check.state;
        let on = || Fixture::new().file("proc/sys/kernel/nmi_watchdog", "1\n");
        assert_eq!(of(on().file("sys/bus/event_source/devices/cpu/type", "4\n")), Warn);
        assert_eq!(of(on()), Ok);
        assert_eq!(of(Fixture::new().file("proc/sys/kernel/nmi_watchdog", "0\n")), Ok);
        assert_eq!(of(Fixture::new()), Missing);
    }
}
