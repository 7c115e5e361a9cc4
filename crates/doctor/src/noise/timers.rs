//! What the kernel does on a CPU by the clock.

use crate::patient::named;
use crate::{Finding, Patient};
use host::{KernelSettings, QuietCpus, Setting};
use std::collections::BTreeSet;

/// Watchdog, ticks, counters of memory, timers of others.
pub(super) fn findings(patient: &Patient<'_>, quiet: &QuietCpus, settings: &KernelSettings) -> Vec<Finding> {
    vec![watchdogs(patient, quiet, settings), skew_tick(patient), vm_stat_interval(settings), timer_migration(settings)]
}

fn watchdogs(patient: &Patient<'_>, quiet: &QuietCpus, settings: &KernelSettings) -> Finding {
    const NAME: &str = "watchdogs";
    const WHY: &str = "the soft-lockup watchdog wakes a thread of the highest priority on each CPU that it watches, every \
                       few seconds for microseconds: it is nothing, except where the tick was meant to stop";
    let on = match settings.soft_watchdog {
        Setting::Absent => return Finding::idle(NAME, "none: a kernel without them", WHY),
        Setting::Hidden => return Finding::missing(NAME, "not said: /proc/sys/kernel is hidden", WHY),
        Setting::Is(false) => return Finding::idle(NAME, "off", WHY),
        Setting::Is(true) => settings.watchdog_cpus.clone().unwrap_or_else(|| patient.in_question()),
    };
    let watched: BTreeSet<u32> = on.intersection(&patient.in_question()).copied().collect();
    if watched.is_empty() {
        return Finding::ok(NAME, format!("on {}, not {}", named(&on), named(&patient.in_question())), WHY);
    }
    let each =
        settings.watchdog_threshold_s.map_or(String::new(), |limit| format!(", each {} s", f64::from(limit) * 0.4));
    let tickless: BTreeSet<u32> =
        quiet.nohz_full.iter().flatten().copied().filter(|cpu| watched.contains(cpu)).collect();
    if tickless.is_empty() {
        return Finding::ok(NAME, format!("on {}{each}", named(&watched)), WHY);
    }
    let rest = host::format_cpu_list(&on.difference(&tickless).copied().collect());
    Finding::warn(NAME, format!("on {}{each}, which should have no tick", named(&tickless)), WHY).cured_by(
        match rest.as_str() {
            "none" => "`sudo sysctl -w kernel.soft_watchdog=0`".to_owned(),
            cpus => format!("`sudo sysctl -w kernel.watchdog_cpumask={cpus}`"),
        },
    )
}

fn skew_tick(patient: &Patient<'_>) -> Finding {
    const WHY: &str = "where the ticks of all CPUs come at one moment they queue for the kernel's locks, which tens of CPUs \
                       feel; `skew_tick=1` at boot spreads them";
    const NAME: &str = "skew_tick";
    match host::kernel_parameter(patient.root, NAME).as_deref() {
        Some("1") => Finding::ok(NAME, "1: ticks are spread", WHY),
        None if !host::command_line_is_shown(patient.root) => {
            Finding::missing(NAME, "not said: /proc/cmdline is hidden", WHY)
        }
        _ => Finding::ok(NAME, "not set: all CPUs may tick at one moment", WHY),
    }
}

fn vm_stat_interval(settings: &KernelSettings) -> Finding {
    const WHY: &str = "so often a kernel thread adds up memory counters on each CPU that has changed some; a longer \
                       `vm.stat_interval` wakes it less";
    const NAME: &str = "vm_stat_interval";
    match settings.vm_stat_interval_s {
        Setting::Is(seconds) => Finding::ok(NAME, format!("{seconds} s"), WHY),
        Setting::Absent => Finding::ok(NAME, "the kernel has none", WHY),
        Setting::Hidden => Finding::missing(NAME, "not said: /proc/sys/vm is hidden", WHY),
    }
}

fn timer_migration(settings: &KernelSettings) -> Finding {
    const WHY: &str = "timers that idle CPUs have set may expire on busy ones, so on a worker's; \
                       `kernel.timer_migration=0` keeps them at home";
    const NAME: &str = "timer_migration";
    match settings.timer_migration {
        Setting::Is(true) => Finding::ok(NAME, "on: idle CPUs' timers expire on busy ones", WHY),
        Setting::Is(false) => Finding::ok(NAME, "off", WHY),
        Setting::Absent => Finding::ok(NAME, "none: a kernel without it", WHY),
        Setting::Hidden => Finding::missing(NAME, "not said: /proc/sys/kernel is hidden", WHY),
    }
}

#[cfg(test)]
mod tests {
    use super::findings;
    use crate::fixture::{Fixture, assert_well_formed};
    use crate::{Finding, Patient};
    use record::Check;
    use record::CheckState::{Missing, Ok, Warn};

    fn check(fixture: &Fixture, name: &str) -> Check {
        let found = fixture.findings(|patient: &Patient<'_>| {
            findings(patient, &host::quiet_cpus(patient.root), &host::kernel_settings(patient.root))
        });
        found.iter().for_each(assert_well_formed);
        let Finding { check, .. } = found.into_iter().find(|finding| finding.check.name == name).unwrap();
        check
    }

    /// A kernel that shows its settings and has none of these.
    fn bare() -> Fixture {
        Fixture::new()
            .file("proc/cmdline", "quiet")
            .file("proc/sys/kernel/osrelease", "6.1\n")
            .file("proc/sys/vm/swappiness", "60\n")
    }

    #[test]
    fn what_is_hidden_is_not_called_none() {
        for name in ["watchdogs", "skew_tick", "vm_stat_interval", "timer_migration"] {
            let (hidden, shown) = (check(&Fixture::new(), name), check(&bare(), name));
            assert_eq!((hidden.state, shown.state), (Missing, Ok), "{hidden:?}");
            assert!(hidden.seen.starts_with("not said: ") && hidden.seen.ends_with(" is hidden"), "{hidden:?}");
        }
    }

    fn watched(cpus: &str) -> Fixture {
        let fixture = Fixture::new().cores(4).in_question(&[2, 3]).file("proc/sys/kernel/soft_watchdog", "1");
        fixture.file("proc/sys/kernel/watchdog_cpumask", cpus).file("proc/sys/kernel/watchdog_thresh", "10")
    }

    #[test]
    fn a_watchdog_is_told_and_warned_of_only_where_the_tick_should_stop() {
        let seen = |fixture: &Fixture| {
            let check = check(fixture, "watchdogs");
            (check.state, check.seen)
        };
        assert_eq!(seen(&watched("0-3")), (Ok, "on 2-3, each 4 s".to_owned()));
        assert_eq!(seen(&watched("0-1")), (Ok, "on 0-1, not 2-3".to_owned()));
        assert_eq!(seen(&watched("0-3").file("proc/sys/kernel/watchdog", "0")), (Ok, "off".to_owned()));
        assert_eq!(seen(&bare()), (Ok, "none: a kernel without them".to_owned()));

        let tickless = |mask| check(&watched(mask).file("sys/devices/system/cpu/nohz_full", "3"), "watchdogs");
        let warned = tickless("0-3");
        assert_eq!((warned.state, warned.seen.as_str()), (Warn, "on 3, each 4 s, which should have no tick"));
        assert_eq!(warned.cure.as_deref(), Some("`sudo sysctl -w kernel.watchdog_cpumask=0-2`"));
        assert_eq!(tickless("3").cure.as_deref(), Some("`sudo sysctl -w kernel.soft_watchdog=0`"));
    }

    #[test]
    fn what_comes_by_the_clock_is_told() {
        let bare = bare();
        assert!(check(&bare, "skew_tick").seen.starts_with("not set"));
        let set = Fixture::new()
            .file("proc/cmdline", "quiet skew_tick=1")
            .file("proc/sys/vm/stat_interval", "120")
            .file("proc/sys/kernel/timer_migration", "1");
        assert_eq!(check(&set, "skew_tick").seen, "1: ticks are spread");
        assert_eq!(check(&set, "vm_stat_interval").seen, "120 s");
        assert!(check(&set, "timer_migration").seen.starts_with("on"));
        assert_eq!(check(&set.file("proc/sys/kernel/timer_migration", "0"), "timer_migration").seen, "off");
        assert_eq!(check(&bare, "vm_stat_interval").state, Ok);
    }
}
