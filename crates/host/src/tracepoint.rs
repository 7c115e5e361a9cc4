//! The number under which perf_event_open knows a tracepoint of the kernel's.

use crate::root::Root;
use crate::tracefs::{Tracefs, tracefs};
use std::io::{self, ErrorKind};
use std::path::PathBuf;

/// Why a tracepoint's number is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TracepointError {
    /// This process cannot read tracefs.
    #[error("tracefs, which holds the tracepoints' numbers, is {0}")]
    Tracefs(Tracefs),
    /// Tracefs is readable, and there is no such tracepoint: this kernel was built without it.
    #[error("this kernel has no tracepoint {0}:{1}")]
    Missing(String, String),
    /// The file is there and does not hold a number.
    #[error("{path} does not tell the tracepoint's number: {what}", path = .path.display())]
    Garbled {
        /// The file.
        path: PathBuf,
        /// What reading it gave instead.
        what: String,
    },
}

impl TracepointError {
    /// The command that changes it; `None` where none does.
    pub fn cure(&self) -> Option<&'static str> {
        match self {
            TracepointError::Tracefs(state) => state.cure(),
            TracepointError::Missing(..) | TracepointError::Garbled { .. } => None,
        }
    }
}

/// The number of the tracepoint `system:event` (`syscalls`, `sys_enter_futex`): the `config` of a perf event of type 2.
/// It is given anew at each boot.
///
/// # Errors
/// [`TracepointError`]: tracefs absent, not mounted or closed to this process, or no such tracepoint.
/// [`TracepointError::cure`] has the command that helps, where one does.
///
/// # References
/// perf_event_open(2), PERF_TYPE_TRACEPOINT; `Documentation/trace/events.rst`.
pub fn tracepoint_id(root: &Root, system: &str, event: &str) -> Result<u64, TracepointError> {
    let missing = || TracepointError::Missing(system.to_owned(), event.to_owned());
    let is_name = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.contains('/');
    if !is_name(system) || !is_name(event) {
        return Err(missing());
    }
    let folder = match tracefs(root) {
        Tracefs::Readable(folder) => folder,
        other => return Err(TracepointError::Tracefs(other)),
    };
    let path = root.path(&format!("{folder}/events/{system}/{event}/id"));
    match std::fs::read_to_string(&path) {
        Ok(text) => {
            let garbled = |_| TracepointError::Garbled { path, what: format!("{:?}", text.trim()) };
            text.trim().parse().map_err(garbled)
        }
        Err(error) if is_absent(&error) => Err(missing()),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            Err(TracepointError::Tracefs(Tracefs::Closed(folder)))
        }
        Err(error) => Err(TracepointError::Garbled { path, what: error.to_string() }),
    }
}

/// The names that tracefs lists: of systems, or of one system's tracepoints. Sorted; empty where there are none to be
/// read.
pub fn tracepoints(root: &Root, system: Option<&str>) -> Vec<String> {
    let Tracefs::Readable(mount) = tracefs(root) else { return Vec::new() };
    let folder = system.map_or(format!("{mount}/events"), |system| format!("{mount}/events/{system}"));
    // Beside the folders lie switches such as `enable`.
    let is_folder = |name: &String| root.path(&format!("{folder}/{name}")).is_dir();
    root.names(&folder).into_iter().filter(is_folder).collect()
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::{TracepointError, tracepoint_id, tracepoints};
    use crate::fixture::Fixture;
    use crate::tracefs::Tracefs;

    const FUTEX: &str = "events/syscalls/sys_enter_futex/id";

    #[test]
    fn the_number_is_read_from_either_place() {
        for place in ["sys/kernel/tracing", "sys/kernel/debug/tracing"] {
            let fixture = Fixture::new().file(&format!("{place}/{FUTEX}"), "522\n");
            assert_eq!(tracepoint_id(&fixture.root(), "syscalls", "sys_enter_futex"), Ok(522), "{place}");
        }
        let both = Fixture::new()
            .file(&format!("sys/kernel/debug/tracing/{FUTEX}"), "522\n")
            .file("sys/kernel/tracing/README", "");
        assert_eq!(tracepoint_id(&both.root(), "syscalls", "sys_enter_futex"), Ok(522));
    }

    #[test]
    fn an_unmounted_tracefs_is_told_from_a_missing_tracepoint() {
        let unmounted = Fixture::new().file("sys/kernel/tracing/.keep", "");
        let seen = tracepoint_id(&unmounted.root(), "tlb", "tlb_flush").unwrap_err();
        assert_eq!(seen, TracepointError::Tracefs(Tracefs::NotMounted { as_root: false }));
        assert!(seen.to_string().ends_with("is not mounted at /sys/kernel/tracing"), "{seen}");
        assert!(seen.cure().unwrap().contains("mount -t tracefs"));

        let mounted = Fixture::new().file(&format!("sys/kernel/tracing/{FUTEX}"), "522\n");
        let seen = tracepoint_id(&mounted.root(), "tlb", "tlb_flush").unwrap_err();
        assert_eq!(seen.to_string(), "this kernel has no tracepoint tlb:tlb_flush");
        assert_eq!(seen.cure(), None);
    }

    #[test]
    fn what_is_no_number_is_quoted() {
        let fixture = Fixture::new().file(&format!("sys/kernel/tracing/{FUTEX}"), "many\n");
        let seen = tracepoint_id(&fixture.root(), "syscalls", "sys_enter_futex").unwrap_err();
        assert!(matches!(&seen, TracepointError::Garbled { what, .. } if what == "\"many\""), "{seen:?}");
    }

    #[test]
    fn a_name_is_no_path() {
        let fixture = Fixture::new().file("sys/kernel/tracing/events/a/id", "1\n").file("id", "2\n");
        for (system, event) in [("..", "x"), ("a", ".."), ("", "a"), ("a/b", "c"), ("a", "")] {
            let seen = tracepoint_id(&fixture.root(), system, event);
            assert!(matches!(seen, Err(TracepointError::Missing(..))), "{system}:{event} {seen:?}");
        }
    }

    #[test]
    fn what_there_is_is_listed_without_the_switches_beside_it() {
        for place in ["sys/kernel/tracing", "sys/kernel/debug/tracing"] {
            let fixture = Fixture::new()
                .file(&format!("{place}/events/enable"), "0\n")
                .file(&format!("{place}/events/sched/filter"), "none\n")
                .file(&format!("{place}/events/sched/sched_waking/id"), "373\n")
                .file(&format!("{place}/events/sched/sched_switch/id"), "372\n")
                .file(&format!("{place}/events/irq/irq_handler_exit/id"), "120\n");
            assert_eq!(tracepoints(&fixture.root(), None), ["irq", "sched"], "{place}");
            assert_eq!(tracepoints(&fixture.root(), Some("sched")), ["sched_switch", "sched_waking"], "{place}");
        }
        assert_eq!(tracepoints(&Fixture::new().root(), None), [""; 0]);
    }
}
