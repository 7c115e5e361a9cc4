//! The number under which perf_event_open knows a tracepoint of the kernel's.

use crate::root::Root;
use std::io::{self, ErrorKind};
use std::path::PathBuf;

/// Where tracefs is mounted: its own place since Linux 4.1, and where debugfs shows it.
const TRACEFS: [&str; 2] = ["sys/kernel/tracing", "sys/kernel/debug/tracing"];

/// Why a tracepoint's number is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TracepointError {
    /// No tracefs is mounted where the kernel offers it; or only debugfs holds one, which this process may not enter.
    #[error("tracefs, which holds the tracepoints' numbers, is not mounted at /sys/kernel/tracing")]
    NotMounted,
    /// It is mounted, and this process may not read it. Only root may unless its owner allows more.
    #[error("this user may not read tracefs, which holds tracepoints' numbers ({path}: EACCES)", path = .0.display())]
    Denied(PathBuf),
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
    ///
    /// # References
    /// `Documentation/trace/ftrace.rst`; mount options `gid` and `mode` of tracefs in `fs/tracefs/inode.c`.
    pub fn cure(&self) -> Option<&'static str> {
        match self {
            TracepointError::NotMounted => Some("sudo mount -t tracefs tracefs /sys/kernel/tracing, and run as root"),
            TracepointError::Denied(_) => Some(
                "run as root, or let a group read it: sudo mount -o remount,mode=750,gid=GROUP /sys/kernel/tracing",
            ),
            TracepointError::Missing(..) | TracepointError::Garbled { .. } => None,
        }
    }
}

/// The number of the tracepoint `system:event` (`syscalls`, `sys_enter_futex`): the `config` of a perf event of type 2.
/// It is given anew at each boot.
///
/// # Errors
/// [`TracepointError`]: tracefs absent or closed to this process, or no such tracepoint. [`TracepointError::cure`] has
/// the command that helps, where one does.
///
/// # References
/// perf_event_open(2), PERF_TYPE_TRACEPOINT; `Documentation/trace/events.rst`.
pub fn tracepoint_id(root: &Root, system: &str, event: &str) -> Result<u64, TracepointError> {
    let missing = || TracepointError::Missing(system.to_owned(), event.to_owned());
    let is_name = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.contains('/');
    if !is_name(system) || !is_name(event) {
        return Err(missing());
    }
    for folder in TRACEFS {
        let path = root.path(&format!("{folder}/events/{system}/{event}/id"));
        match std::fs::read_to_string(&path) {
            Ok(text) => {
                let garbled = |_| TracepointError::Garbled { path, what: format!("{:?}", text.trim()) };
                return text.trim().parse().map_err(garbled);
            }
            // An unmounted place is an empty folder; one that holds events lacks this one.
            Err(error) if is_absent(&error) && root.path(&format!("{folder}/events")).is_dir() => return Err(missing()),
            Err(error) if is_absent(&error) => {}
            // All may enter the first place's mount point, so a refusal means a mount behind it. Debugfs is closed to
            // all but root, whatever it holds.
            Err(error) if error.kind() == ErrorKind::PermissionDenied && folder == TRACEFS[0] => {
                return Err(TracepointError::Denied(root.path(folder)));
            }
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {}
            Err(error) => return Err(TracepointError::Garbled { path, what: error.to_string() }),
        }
    }
    Err(TracepointError::NotMounted)
}

/// The names that tracefs lists: of systems, or of one system's tracepoints. Sorted; empty where there are none to be
/// read.
pub fn tracepoints(root: &Root, system: Option<&str>) -> Vec<String> {
    let within = |mount: &str| {
        let folder = system.map_or(format!("{mount}/events"), |system| format!("{mount}/events/{system}"));
        // Beside the folders lie switches such as `enable`.
        let is_folder = |name: &String| root.path(&format!("{folder}/{name}")).is_dir();
        root.names(&folder).into_iter().filter(is_folder).collect::<Vec<_>>()
    };
    TRACEFS.iter().map(|mount| within(mount)).find(|names| !names.is_empty()).unwrap_or_default()
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

#[cfg(test)]
mod tests {
    use super::{TracepointError, tracepoint_id, tracepoints};
    use crate::fixture::Fixture;

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
        let unmounted = Fixture::new().file("sys/kernel/notes", "");
        let seen = tracepoint_id(&unmounted.root(), "tlb", "tlb_flush").unwrap_err();
        assert_eq!(seen, TracepointError::NotMounted);
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
