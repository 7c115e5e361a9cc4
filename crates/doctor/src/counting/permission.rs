//! Who may count, and what stands in the way.

use super::asked::Kind;
use super::events::{core_units, perf_counts};
use crate::{Finding, Spoils};
use host::{PARANOID_KERNEL, PARANOID_USER, Root, Seccomp, Tracefs};

/// What the level is for.
const LEVEL: &str = "the level decides what a process without the capability CAP_PERFMON may count";

/// Where no level can be read: the kernel has no perf events, or a sandbox hides its settings, and then what counted is
/// what is known.
fn without_level(root: &Root, name: &str, kinds: &[Kind]) -> Finding {
    let counts = perf_counts(kinds);
    if counts != Some(true) && root.lacks("proc/sys/kernel", name) {
        let why = "a kernel without this setting has no perf events: nothing is counted";
        return Finding::missing(name, "no perf events", why).spoiling(Spoils::HardwareCounts);
    }
    let why = format!("{LEVEL}; a sandbox hides it here");
    match counts {
        Some(true) => Finding::missing(name, "not said; perf events count nonetheless", why),
        Some(false) => Finding::missing(name, "not said, and nothing counts", why).spoiling(Spoils::HardwareCounts),
        None => Finding::missing(name, "not said; whether anything counts was not tried", why),
    }
}

/// The kernel's rule on who may count. What `kinds` counted says whether levels above 2 have a meaning here.
pub(super) fn perf_event_paranoid(root: &Root, kinds: &[Kind]) -> Finding {
    let name = "perf_event_paranoid";
    let Some(level) = host::perf_event_paranoid(root) else {
        return without_level(root, name, kinds);
    };
    let why = LEVEL;
    if level <= PARANOID_KERNEL {
        return Finding::ok(name, format!("{level}: every event of its own"), why);
    }
    let host::Privileges { may_ignore_paranoid, user_namespace, .. } = host::privileges(root);
    if may_ignore_paranoid {
        return Finding::ok(name, format!("{level}, which this process may ignore"), why);
    }
    let sysctl = format!("sudo sysctl kernel.perf_event_paranoid={PARANOID_KERNEL}");
    let (whose, cure) = match user_namespace {
        true => (", and in a user namespace none has it", format!("outside of the container: {sysctl}")),
        false => ("", format!("{sysctl}, or sudo setcap cap_perfmon+ep PROGRAM")),
    };
    let user_mode = format!("{why}{whose}; context switches and tracepoints need {PARANOID_KERNEL} or less");
    let found = match perf_counts(kinds) {
        // Mainline kernels take higher levels for 2.
        _ if level <= PARANOID_USER => {
            Finding::warn(name, format!("{level}: not what happens in the kernel"), user_mode)
        }
        Some(true) => {
            Finding::warn(name, format!("{level}, which counts as {PARANOID_USER} in this kernel"), user_mode)
        }
        Some(false) => Finding::warn(name, format!("{level}: this process may count nothing"), format!("{why}{whose}"))
            .spoiling(Spoils::HardwareCounts),
        None => Finding::warn(name, format!("{level}; whether anything counts was not tried"), format!("{why}{whose}")),
    };
    found.cured_by(cure)
}

/// A filter on system calls, which may keep perf's from being made.
pub(super) fn seccomp(root: &Root, kinds: &[Kind]) -> Finding {
    let why = "a filter, as containers have one, may refuse perf_event_open before the paranoid level is looked at";
    match (host::seccomp(root), perf_counts(kinds)) {
        (None, _) => Finding::missing("seccomp", "not said", why),
        (Some(Seccomp::Off), _) => Finding::idle("seccomp", "no filter", why),
        (Some(_), Some(true)) => Finding::ok("seccomp", "a filter, which lets perf_event_open through", why),
        (Some(_), None) => Finding::missing("seccomp", "a filter; perf_event_open was not tried", why),
        (Some(_), Some(false)) => Finding::warn("seccomp", "a filter, and perf_event_open counts nothing", why)
            .cured_by("docker run --cap-add PERFMON, or a seccomp profile that allows perf_event_open"),
    }
}

/// The list of the kernel's tracepoints.
pub(super) fn tracefs(root: &Root) -> Finding {
    let why = "futex calls, TLB flushes and a user's own tracepoints are found by their numbers there";
    let state = host::tracefs(root);
    let found = match state {
        Tracefs::Readable(_) => return Finding::ok("tracefs", state.to_string(), why),
        Tracefs::Closed(_) | Tracefs::NotMounted { .. } | Tracefs::Absent => {
            Finding::missing("tracefs", state.to_string(), why)
        }
    };
    match state.cure() {
        Some(cure) => found.cured_by(cure),
        None => found,
    }
}

/// The kernel's own user of a counter.
pub(super) fn nmi_watchdog(root: &Root) -> Finding {
    let why = "the watchdog takes one counter of each CPU, so events take turns sooner or never get theirs";
    let has_pmu = !core_units(root).is_empty();
    match host::nmi_watchdog(root) {
        None => Finding::missing("nmi_watchdog", "not said", why),
        Some(false) => Finding::idle("nmi_watchdog", "off", why),
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

    fn level(level: &str, capabilities: &str) -> Fixture {
        Fixture::new()
            .file("proc/sys/kernel/perf_event_paranoid", level)
            .file("proc/self/status", &format!("CapEff:\t{capabilities}\n"))
    }

    fn paranoid(fixture: &Fixture, kinds: &[Kind]) -> Finding {
        fixture.check(|patient| vec![perf_event_paranoid(patient.root, kinds)], "perf_event_paranoid")
    }

    /// One counter with this reading.
    fn kinds(reading: Reading) -> [Kind; 1] {
        [super::super::events::test_kind("0", &[("task_clock", plan::CountedBy::Kernel, reading)], 0)]
    }

    fn counts() -> [Kind; 1] {
        kinds(Reading::Counted { value: 1 })
    }

    fn denied() -> [Kind; 1] {
        kinds(Reading::Denied { why: "w".into(), cure: "c".into() })
    }

    #[test]
    fn the_level_binds_those_without_the_capability() {
        for known in ["-1\n", "0\n", "1\n"] {
            assert_eq!(paranoid(&level(known, "0"), &counts()).check.state, Ok, "{known}");
        }
        for known in ["2\n", "4\n"] {
            let privileged = paranoid(&level(known, "0000004000000000"), &counts());
            assert_eq!((privileged.check.state, privileged.check.cure), (Ok, None));
        }
        let user_mode = paranoid(&level("2\n", "0"), &counts());
        assert_eq!((user_mode.check.state, &user_mode.spoils), (Warn, &Spoils::Nothing));
        assert!(user_mode.check.cure.unwrap().contains("perf_event_paranoid=1"));
    }

    #[test]
    fn what_a_level_above_two_means_is_told_by_what_counted() {
        for high in ["3\n", "4\n"] {
            let nothing = paranoid(&level(high, "0"), &denied());
            assert_eq!((nothing.check.state, &nothing.spoils), (Warn, &Spoils::HardwareCounts));
            assert!(nothing.check.seen.ends_with("may count nothing"), "{nothing:?}");
            let as_two = paranoid(&level(high, "0"), &counts());
            assert_eq!((as_two.check.state, &as_two.spoils), (Warn, &Spoils::Nothing));
            assert!(as_two.check.seen.ends_with("counts as 2 in this kernel"), "{as_two:?}");
            assert!(as_two.check.cure.unwrap().contains("perf_event_paranoid=1"));
            let untried = paranoid(&level(high, "0"), &[]);
            assert_eq!((untried.check.state, &untried.spoils), (Warn, &Spoils::Nothing), "{untried:?}");
        }
    }

    #[test]
    fn in_a_user_namespace_capabilities_lift_no_level_and_cure_none() {
        let rootless = level("2\n", "000001ffffffffff").file("proc/self/uid_map", "         0       1000          1\n");
        let found = paranoid(&rootless, &counts()).check;
        assert!(found.state == Warn && found.why.contains("user namespace"), "{found:?}");
        let cure = found.cure.unwrap();
        assert!(cure.starts_with("outside of the container: sudo sysctl") && !cure.contains("setcap"), "{cure}");
    }

    #[test]
    fn a_kernel_without_perf_events_counts_nothing() {
        let without = Fixture::new().file("proc/sys/kernel/osrelease", "6.1\n");
        let found = paranoid(&without, &denied());
        assert_eq!((found.check.state, found.check.seen.as_str()), (Missing, "no perf events"));
        assert_eq!(found.spoils, Spoils::HardwareCounts);
    }

    #[test]
    fn a_hidden_level_is_no_kernel_without_perf_events() {
        let of = |kinds: &[Kind]| {
            let found = paranoid(&Fixture::new(), kinds);
            assert!(found.check.state == Missing && found.check.seen.starts_with("not said"), "{found:?}");
            found.spoils
        };
        assert_eq!((of(&counts()), of(&denied()), of(&[])), (Spoils::Nothing, Spoils::HardwareCounts, Spoils::Nothing));
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
        assert_eq!((filtered(Some("2"), &counts()), filtered(Some("2"), &denied())), (Ok, Warn));
        assert_eq!((filtered(Some("0"), &denied()), filtered(None, &counts())), (Ok, Missing));
        assert_eq!(filtered(Some("2"), &[]), Missing);
        let mut noted = denied();
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
        assert!(unmounted.state == Missing && unmounted.cure.unwrap().ends_with("and run as root"));
        let to_root =
            Fixture::new().file("sys/kernel/tracing/.keep", "").file("proc/self/status", "Uid:\t0\t0\t0\t0\n");
        assert_eq!(of(to_root).cure.unwrap(), "sudo mount -t tracefs tracefs /sys/kernel/tracing");
        let mounted = Fixture::new().file("sys/kernel/tracing/.keep", "");
        let closed = of(mounted.file("proc/self/mounts", "tracefs /sys/kernel/tracing tracefs rw 0 0\n"));
        assert!(closed.state == Missing && closed.cure.unwrap().contains("mode=750,gid=GROUP"));
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
