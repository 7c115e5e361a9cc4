//! The hypervisor, where there is one, and what it takes.

use crate::{Finding, Spoils};
use host::{CpuTicks, Hypervisor, Root};
use std::time::Duration;

/// For how long stolen time is watched. The kernel counts in ticks of 10 ms, so less sees nothing.
const WATCHED: Duration = Duration::from_millis(50);

/// Ticks that are needed to call time stolen now: one can have been carried over from before.
const TICKS_ENOUGH: u64 = 2;

/// A stolen share since boot that is worth a warning: with less, most repetitions see none.
const SHARE_SINCE_BOOT: f64 = 0.01;

/// A stolen share at present that keeps whole windows from being quiet.
const SHARE_NOW: f64 = 0.1;

/// Whether this is a virtual machine.
pub(super) fn hypervisor(root: &Root) -> Finding {
    let facts = host::facts(root);
    match facts.hypervisor {
        Some(hypervisor) => {
            let why = "transfer times and core speed change within minutes as the host moves CPUs; runs record both \
                       and keep such regimes apart";
            let name = match hypervisor {
                Hypervisor::Named(name) => name,
                Hypervisor::Unnamed => "a hypervisor without a name".to_owned(),
            };
            Finding::warn("hypervisor", format!("{name}: the host may move CPUs at any time"), why)
        }
        None if facts.cpu_model == "unknown" => Finding::missing(
            "hypervisor",
            "not said",
            "on a virtual machine, CPUs move and caches may be other than described",
        ),
        None => Finding::ok(
            "hypervisor",
            "none shows itself",
            "on bare metal a CPU stays where it is, and nobody unseen shares its core",
        ),
    }
}

/// How much CPU time the host gave to others.
pub(super) fn stolen_time(root: &Root) -> Finding {
    let before = host::stolen_ticks(root);
    // A described machine does not change.
    let after = before.filter(|_| root.is_system()).and_then(|_| {
        std::thread::sleep(WATCHED);
        host::stolen_ticks(root)
    });
    judged(before, after)
}

fn judged(before: Option<CpuTicks>, after: Option<CpuTicks>) -> Finding {
    let why = "a CPU that the host gives to others stands still in mid-loop; only CPUs that have work are stolen \
               from, so the share while a run works may be higher; the host alone changes it";
    let Some(before) = before else { return Finding::missing("stolen_time", "not said", why) };
    let since_boot = before.stolen_share_since(CpuTicks { steal: 0, total: 0 }).unwrap_or(0.0);
    let now = after.and_then(|after| Some((after.steal.checked_sub(before.steal)?, after.stolen_share_since(before)?)));
    let boot = format!("{} since boot", percent(since_boot));
    let seen = match now {
        Some((_, share)) => format!("{boot}, {} now", percent(share)),
        None => boot,
    };
    match now {
        Some((ticks, share)) if ticks >= TICKS_ENOUGH && share >= SHARE_NOW => {
            Finding::warn("stolen_time", seen, why).spoiling(Spoils::EveryRun)
        }
        _ if since_boot >= SHARE_SINCE_BOOT => Finding::warn("stolen_time", seen, why),
        _ => Finding::ok("stolen_time", seen, why),
    }
}

/// `0 %`, `0.04 %`, `12 %`: never 0 for something.
fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        percent if percent < 0.01 => "under 0.01 %".to_owned(),
        percent if percent < 1.0 => format!("{percent:.2} %"),
        percent => format!("{percent:.0} %"),
    }
}

#[cfg(test)]
mod tests {
    use super::{judged, percent};
    use crate::Spoils;
    use crate::fixture::{Fixture, assert_well_formed};
    use crate::hardware::findings;
    use host::CpuTicks;
    use record::CheckState::{Missing, Ok, Warn};

    #[test]
    fn a_virtual_machine_is_a_warning_that_spoils_nothing() {
        let guest = Fixture::new().file("sys/hypervisor/type", "xen\n").check(findings, "hypervisor");
        assert_eq!((guest.check.state, guest.spoils), (Warn, Spoils::Nothing));
        assert!(guest.check.seen.starts_with("xen"));
        let unnamed = Fixture::new().file("proc/cpuinfo", "flags : hypervisor\n").check(findings, "hypervisor");
        assert!(unnamed.check.seen.starts_with("a hypervisor without a name"));
        let metal = Fixture::new().file("proc/cpuinfo", "model name : Some CPU\nflags : fpu\n");
        assert_eq!(metal.check(findings, "hypervisor").check.state, Ok);
        assert_eq!(Fixture::new().check(findings, "hypervisor").check.state, Missing);
    }

    #[test]
    fn stolen_time_is_judged_since_boot_and_now() {
        let ticks = |steal, total| Some(CpuTicks { steal, total });
        let of = |before, after| {
            let found = judged(before, after);
            assert_well_formed(&found);
            (found.check.state, found.check.seen, found.spoils)
        };
        let is = |state, seen: &str, spoils| (state, seen.to_owned(), spoils);
        assert_eq!(of(ticks(3, 10_000), ticks(3, 10_010)), is(Ok, "0.03 % since boot, 0 % now", Spoils::Nothing));
        assert_eq!(of(ticks(300, 10_000), None), is(Warn, "3 % since boot", Spoils::Nothing));
        assert_eq!(of(ticks(3, 10_000), ticks(6, 10_010)), is(Warn, "0.03 % since boot, 30 % now", Spoils::EveryRun));
        assert_eq!(of(ticks(3, 10_000), ticks(4, 10_010)).0, Ok, "one tick may be an old one");
        assert_eq!(of(None, None).0, Missing);
        let described = Fixture::new().file("proc/stat", "cpu  100 1 50 800 9 3 7 30 90 2\n");
        assert_eq!(described.check(findings, "stolen_time").check.seen, "3 % since boot");
    }

    #[test]
    fn something_is_never_written_as_nothing() {
        assert_eq!([0.0, 0.000_01, 0.000_4, 0.123].map(percent), ["0 %", "under 0.01 %", "0.04 %", "12 %"]);
    }
}
