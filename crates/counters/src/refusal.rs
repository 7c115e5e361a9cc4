//! Why an event is not counted, in plain words, and what would change that.

use crate::event::Event;
use crate::names::{self, Generic, TRACEPOINT};
use host::{Hypervisor, PARANOID_KERNEL, PARANOID_USER, Privileges, Root, TracepointError};
use nix::errno::Errno;
use record::{NO_PMU, Reading};

/// The one tracepoint that the kernel counts by tracing all its functions, and its level (perf_trace_event_perm in
/// `kernel/trace/trace_event_perf.c`).
const FUNCTION_TRACER: &str = "ftrace:function";
const PARANOID_FUNCTION_TRACER: i32 = -1;
/// The level at which a tracepoint's data may be read (perf_paranoid_tracepoint_raw).
const PARANOID_RAW: i32 = -1;

/// What on this machine decides whether an event opens; the default is a machine that says nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Setting {
    paranoid_level: Option<i32>,
    may_ignore_paranoid: bool,
    user_namespace: bool,
    seccomp_filter: bool,
    hypervisor: Option<Hypervisor>,
}

impl Setting {
    /// Reads what it needs and no more: every worker of every repetition asks.
    pub(crate) fn of(root: &Root) -> Setting {
        let Privileges { may_ignore_paranoid, user_namespace, seccomp_filter } = host::privileges(root);
        let (paranoid_level, hypervisor) = (host::perf_event_paranoid(root), host::hypervisor(root));
        Setting { paranoid_level, may_ignore_paranoid, user_namespace, seccomp_filter, hypervisor }
    }

    /// The level and the level that `event` needs, where the first is what stands in the way.
    fn too_paranoid_for(&self, event: &Event) -> Option<(i32, i32)> {
        let allowed = match event.attr.exclude_kernel {
            _ if is_function_tracer(event) => PARANOID_FUNCTION_TRACER,
            false => PARANOID_KERNEL,
            true => PARANOID_USER,
        };
        self.paranoid_level.filter(|level| *level > allowed && !self.may_ignore_paranoid).map(|level| (level, allowed))
    }
}

fn is_function_tracer(event: &Event) -> bool {
    event.attr.kind == TRACEPOINT && event.name.starts_with(FUNCTION_TRACER)
}

/// Whether the kernel said that nobody on this machine counts the event.
pub(crate) fn is_missing(errno: Errno) -> bool {
    matches!(errno, Errno::ENOENT | Errno::EOPNOTSUPP | Errno::ENODEV | Errno::ENXIO)
}

/// The reading of an event that perf_event_open refused. `has_pmu`: other hardware events are counted here.
pub(crate) fn reading(event: &Event, errno: Errno, has_pmu: bool, setting: &Setting) -> Reading {
    let said = format!("perf_event_open: {}", name(errno));
    match errno {
        _ if is_missing(errno) => Reading::Unsupported { why: missing(event, has_pmu, &said, setting) },
        Errno::EACCES | Errno::EPERM => denied(event, errno, &said, setting),
        Errno::ENOSYS => hidden(&said, setting),
        Errno::EINVAL | Errno::E2BIG => {
            unsupported(format!("this kernel or processor does not know the event ({said})"))
        }
        Errno::EMFILE | Errno::ENFILE => no_descriptor(&said),
        Errno::EBUSY => Reading::Denied {
            why: format!("another program holds the counters for itself alone ({said})"),
            cure: "end the other profiler (perf, VTune, uProf), and free the watchdog's counter: sudo sysctl \
                   kernel.nmi_watchdog=0"
                .to_owned(),
        },
        _ => unsupported(format!("the kernel refused the event ({said}: {})", errno.desc())),
    }
}

/// The reading of a log that was refused at `event`; where `bytes`, for want of that much memory to lock.
pub(crate) fn of_log(event: &Event, errno: Errno, bytes: Option<usize>, setting: &Setting) -> Reading {
    if let Some(bytes) = bytes {
        return Reading::Denied {
            why: format!("the kernel lends no {} KiB for the log of its events (mmap: {})", bytes / 1024, name(errno)),
            cure: "raise what it lends to each user: sudo sysctl kernel.perf_event_mlock_kb=16384".to_owned(),
        };
    }
    let level = setting.paranoid_level.filter(|level| *level > PARANOID_RAW && !setting.may_ignore_paranoid);
    match (errno, level) {
        (Errno::EACCES | Errno::EPERM, Some(level)) if !setting.seccomp_filter => Reading::Denied {
            why: format!(
                "kernel.perf_event_paranoid is {level}, and logging a tracepoint needs {PARANOID_RAW} or less \
                 (perf_event_open: {})",
                name(errno)
            ),
            cure: format!("run as root, or sudo sysctl kernel.perf_event_paranoid={PARANOID_RAW}"),
        },
        _ => reading(event, errno, true, setting),
    }
}

/// The reading of a tracepoint whose number is not known.
pub(crate) fn no_tracepoint(error: &TracepointError) -> Reading {
    match error.cure() {
        Some(cure) => Reading::Denied { why: error.to_string(), cure: cure.to_owned() },
        None => Reading::Unsupported { why: error.to_string() },
    }
}

fn no_descriptor(said: &str) -> Reading {
    Reading::Denied {
        why: format!("no file descriptor was left for it ({said})"),
        cure: "raise the limit before the run: ulimit -n 4096".to_owned(),
    }
}

/// The reading of what stands in the file of that path, where it was not found there: `absent` says so, but a process
/// that has no descriptor left to open the file with has not looked.
pub(crate) fn not_in_file(root: &Root, file: &str, absent: String) -> Reading {
    let errno = root.closed(file).and_then(|error| error.raw_os_error()).map(Errno::from_raw);
    match errno {
        Some(errno @ (Errno::EMFILE | Errno::ENFILE)) => no_descriptor(&format!("open of /{file}: {}", name(errno))),
        _ => unsupported(absent),
    }
}

/// The reading of an event that was open and then failed at the window's edge or in reading.
pub(crate) fn lost(errno: Errno) -> Reading {
    unsupported(format!("{}; a run again may have it", failed("the open counter", errno)))
}

/// What failed, with the error's name and meaning.
pub(crate) fn failed(what: &str, errno: Errno) -> String {
    format!("{what} failed ({}: {})", name(errno), errno.desc())
}

pub(crate) fn unsupported(why: String) -> Reading {
    Reading::Unsupported { why }
}

/// `ENOENT`, as manuals spell it.
fn name(errno: Errno) -> String {
    format!("{errno:?}")
}

fn missing(event: &Event, has_pmu: bool, said: &str, setting: &Setting) -> String {
    if !event.is_hardware() {
        return format!("this kernel has no such event of its own ({said})");
    }
    if has_pmu {
        return format!(
            "this processor's PMU has no such event ({said}), as AMD's Zen has none for the last-level cache; \
             docs/counters.md lists who has which"
        );
    }
    no_pmu(said, setting.hypervisor.as_ref())
}

/// That no core has a PMU here: what showed it, and who keeps it back.
pub(crate) fn no_pmu(seen: &str, hypervisor: Option<&Hypervisor>) -> String {
    let by = hypervisor.map_or(String::new(), |hypervisor| format!(": {}", hypervisor.passes_no_pmu()));
    format!("{NO_PMU} ({seen}){by}")
}

fn denied(event: &Event, errno: Errno, said: &str, setting: &Setting) -> Reading {
    // The level is answered with EACCES; a filter answers before the kernel looks, usually with EPERM.
    let filtered = setting.seccomp_filter && errno == Errno::EPERM;
    if let Some((level, allowed)) = setting.too_paranoid_for(event).filter(|_| !filtered) {
        let what = if !event.attr.exclude_kernel { "counting what happens in the kernel" } else { "counting" };
        let user_mode = match user_mode_would_do(event, level) {
            true => "write the event with :u, to count user mode alone; or ",
            false => "",
        };
        let sysctl = format!("sudo sysctl kernel.perf_event_paranoid={allowed}");
        let why = format!("kernel.perf_event_paranoid is {level}, and {what} needs {allowed} or less ({said})");
        return match setting.user_namespace {
            true => Reading::Denied {
                why: format!("{why}; this process lives in a user namespace, whose capabilities are void for perf"),
                cure: format!("{user_mode}outside of the container: {sysctl}"),
            },
            false => Reading::Denied {
                why,
                cure: format!(
                    "{user_mode}{sysctl}, or give the program the capability: sudo setcap cap_perfmon+ep PROGRAM"
                ),
            },
        };
    }
    if setting.seccomp_filter {
        return filtered_out(said);
    }
    if is_function_tracer(event) {
        return unsupported(format!(
            "the kernel does not let its function tracer count for a process here ({said}): {FUNCTION_TRACER} is a \
             record of that tracer's, and no place in the code that is passed"
        ));
    }
    let level = setting.paranoid_level.map_or("unknown".to_owned(), |level| level.to_string());
    Reading::Denied {
        why: format!("a security module or the kernel's lockdown refuses it, paranoid level {level} ({said})"),
        cure: "the audit log names who refused: sudo ausearch -m AVC, or sudo dmesg | grep -i -e denied -e lockdown"
            .to_owned(),
    }
}

/// Whether the event is refused only for what it counts in the kernel, and happens in user mode too.
fn user_mode_would_do(event: &Event, level: i32) -> bool {
    let attr = event.attr;
    let both = !attr.exclude_kernel && !attr.exclude_user;
    let in_kernel =
        attr.kind == TRACEPOINT || names::is_in_kernel_alone(Generic { kind: attr.kind, config: attr.config });
    both && !in_kernel && level <= PARANOID_USER
}

/// The call itself is unknown. A kernel with perf events has the file that tells the level (perf_event_open(2)), so
/// there it is something before the kernel that answers so.
fn hidden(said: &str, setting: &Setting) -> Reading {
    match setting.paranoid_level {
        None => unsupported(format!("this kernel has no perf events, or a sandbox hides them ({said})")),
        Some(_) if setting.seccomp_filter => filtered_out(said),
        Some(_) => unsupported(format!("this kernel has perf events, but a sandbox hides them ({said})")),
    }
}

fn filtered_out(said: &str) -> Reading {
    Reading::Denied {
        why: format!("a seccomp filter, as containers have one, stops perf_event_open ({said})"),
        cure: "let the container count: docker run --cap-add PERFMON, or a seccomp profile that allows \
               perf_event_open"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Setting, lost, reading};
    use crate::event::Event;
    use crate::fake::events;
    use nix::errno::Errno;
    use record::Reading;

    fn event(name: &str) -> Event {
        events().into_iter().find(|event| event.name == name).unwrap()
    }

    fn unprivileged(level: i32) -> Setting {
        Setting { paranoid_level: Some(level), ..Setting::default() }
    }

    fn why_and_cure(name: &str, errno: Errno, setting: &Setting) -> (String, String) {
        match reading(&event(name), errno, true, setting) {
            Reading::Denied { why, cure } => (why, cure),
            other => panic!("{name}: {other:?}"),
        }
    }

    #[test]
    fn at_level_two_the_cure_for_kernel_events_is_level_one() {
        let (why, cure) = why_and_cure("context_switches", Errno::EACCES, &unprivileged(2));
        assert!(why.contains("kernel.perf_event_paranoid is 2") && why.contains("EACCES"), "{why}");
        assert!(cure.contains("sysctl kernel.perf_event_paranoid=1") && cure.contains("cap_perfmon"), "{cure}");
    }

    #[test]
    fn a_user_s_event_of_both_modes_may_be_counted_in_one() {
        let both = |name: &str| Event { attr: event(name).attr.with_kernel(), ..event(name) };
        let cure = |event: &Event, level| match reading(event, Errno::EACCES, true, &unprivileged(level)) {
            Reading::Denied { cure, .. } => cure,
            other => panic!("{other:?}"),
        };
        assert!(cure(&both("cache_misses"), 2).contains(":u") && cure(&both("page_faults"), 2).contains("paranoid=1"));
        assert!(!cure(&both("cache_misses"), 3).contains(":u"), "at this level user mode is closed too");
        for in_the_kernel in ["context_switches", "futex_calls"] {
            assert!(!cure(&both(in_the_kernel), 2).contains(":u"), "{in_the_kernel} would read 0");
        }
    }

    #[test]
    fn at_level_three_user_events_need_level_two() {
        let (why, cure) = why_and_cure("cycles", Errno::EACCES, &unprivileged(3));
        assert!(why.contains("is 3") && cure.contains("kernel.perf_event_paranoid=2"), "{why} / {cure}");
    }

    #[test]
    fn a_container_s_filter_is_named_where_it_and_not_the_level_refuses() {
        let container = Setting { seccomp_filter: true, ..unprivileged(2) };
        for (name, errno) in [("cycles", Errno::EPERM), ("cycles", Errno::EACCES), ("context_switches", Errno::EPERM)] {
            let (why, cure) = why_and_cure(name, errno, &container);
            assert!(why.contains("seccomp") && cure.contains("PERFMON"), "{name} {errno}: {why} / {cure}");
        }
        let (why, _) = why_and_cure("context_switches", Errno::EACCES, &container);
        assert!(why.contains("paranoid"), "{why}");
    }

    #[test]
    fn with_the_capability_and_no_filter_a_security_module_is_left() {
        let root = Setting { may_ignore_paranoid: true, ..unprivileged(4) };
        let (why, cure) = why_and_cure("cycles", Errno::EACCES, &root);
        assert!(why.contains("security module") && cure.contains("dmesg"), "{why} / {cure}");
    }

    #[test]
    fn the_function_tracer_has_a_level_of_its_own_and_blames_no_security_module() {
        let tracer = Event { name: "ftrace:function".to_owned(), ..event("futex_calls") };
        let of = |setting: &Setting| reading(&tracer, Errno::EPERM, false, setting);
        let seen = of(&unprivileged(1));
        assert!(matches!(&seen, Reading::Denied { why, cure } if why.contains("needs -1") && cure.contains("=-1")));
        let seen = of(&Setting { may_ignore_paranoid: true, ..unprivileged(2) });
        assert!(matches!(&seen, Reading::Unsupported { why } if why.contains("function tracer")), "{seen:?}");
    }

    #[test]
    fn in_a_user_namespace_no_capability_is_the_cure() {
        let rootless = Setting { user_namespace: true, ..unprivileged(2) };
        let (why, cure) = why_and_cure("context_switches", Errno::EACCES, &rootless);
        assert!(why.contains("kernel.perf_event_paranoid is 2") && why.contains("user namespace"), "{why}");
        assert!(cure.contains("outside") && cure.contains("paranoid=1") && !cure.contains("setcap"), "{cure}");
    }

    #[test]
    fn exhaustion_has_a_cure_and_ignorance_has_none() {
        assert!(why_and_cure("cycles", Errno::EMFILE, &unprivileged(2)).1.contains("ulimit"));
        assert!(why_and_cure("cycles", Errno::EBUSY, &unprivileged(2)).1.contains("nmi_watchdog"));
        for errno in [Errno::ENOENT, Errno::EOPNOTSUPP, Errno::ENODEV, Errno::EINVAL, Errno::ENOSYS, Errno::ENOMEM] {
            for has_pmu in [true, false] {
                let seen = reading(&event("cycles"), errno, has_pmu, &Setting::default());
                let Reading::Unsupported { why } = seen else { panic!("{errno}: {seen:?}") };
                assert!(why.contains(&format!("{errno:?}")), "{why}");
            }
        }
    }

    #[test]
    fn a_missing_pmu_is_known_by_its_reason_and_nothing_else_is_taken_for_it() {
        let told = |errno, has_pmu| reading(&event("cycles"), errno, has_pmu, &Setting::default()).lacks_pmu();
        assert!(told(Errno::ENOENT, false));
        assert!(!told(Errno::ENOENT, true) && !told(Errno::ENOSYS, false) && !lost(Errno::EIO).lacks_pmu());
    }

    #[test]
    fn a_filter_that_plays_an_old_kernel_is_found_out_by_the_level_s_file() {
        let container = Setting { seccomp_filter: true, ..unprivileged(2) };
        let (why, cure) = why_and_cure("cycles", Errno::ENOSYS, &container);
        assert!(why.contains("seccomp") && why.contains("ENOSYS") && cure.contains("PERFMON"), "{why} / {cure}");
        for (setting, says) in [(unprivileged(2), "a sandbox hides them"), (Setting::default(), "has no perf events")] {
            let seen = reading(&event("cycles"), Errno::ENOSYS, true, &setting);
            assert!(matches!(&seen, Reading::Unsupported { why } if why.contains(says)), "{seen:?}");
        }
    }

    #[test]
    fn a_virtual_machine_without_a_pmu_names_its_hypervisor() {
        let under_kvm = Setting { hypervisor: Some(host::Hypervisor::Named("KVM".to_owned())), ..Setting::default() };
        let seen = reading(&event("cycles"), Errno::ENOENT, false, &under_kvm);
        assert!(matches!(&seen, Reading::Unsupported { why } if why.contains("KVM")), "{seen:?}");
    }
}
