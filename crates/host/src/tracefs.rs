//! The kernel's tracepoints, as tracefs lists them.

use crate::root::Root;
use std::io::ErrorKind;

/// Where tracefs is mounted: its own place, and the older one within debugfs, which mounts it on first use.
const FOLDERS: [&str; 2] = ["sys/kernel/tracing", "sys/kernel/debug/tracing"];

/// Why a tracepoint has no number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoTracepoint {
    /// This kernel has no tracefs, or a container hides it.
    NoTracefs,
    /// It could be mounted and is not.
    NotMounted,
    /// It is mounted, and this process may not read it.
    Closed {
        /// Where it is mounted.
        folder: String,
    },
    /// tracefs lists no such system (`sched`), but these, sorted.
    NoSystem(Vec<String>),
    /// The system has no such event, but these, sorted.
    NoEvent(Vec<String>),
}

/// The number of the tracepoint `system:event` on the running kernel: `config` of an event of type 2.
///
/// # Errors
/// [`NoTracepoint`] where the kernel has none of that name, or does not say.
///
/// # References
/// `Documentation/trace/events.rst`; perf_event_open(2), PERF_TYPE_TRACEPOINT.
pub fn tracepoint(root: &Root, system: &str, event: &str) -> Result<u64, NoTracepoint> {
    let mut closed = None;
    for folder in FOLDERS {
        match within(root, folder, system, event) {
            Ok(number) => return Ok(number),
            Err(NoTracepoint::Closed { folder }) => _ = closed.get_or_insert(folder),
            Err(NoTracepoint::NotMounted) => {}
            Err(unlisted) => return Err(unlisted),
        }
    }
    match closed {
        Some(folder) => Err(NoTracepoint::Closed { folder }),
        None if root.path(FOLDERS[0]).is_dir() => Err(NoTracepoint::NotMounted),
        None => Err(NoTracepoint::NoTracefs),
    }
}

fn within(root: &Root, folder: &str, system: &str, event: &str) -> Result<u64, NoTracepoint> {
    let events = format!("{folder}/events");
    let id = format!("{events}/{system}/{event}/id");
    match std::fs::read_to_string(root.path(&id)) {
        Ok(text) => text.trim().parse().map_err(|_| NoTracepoint::NotMounted),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            Err(NoTracepoint::Closed { folder: root.path(folder).display().to_string() })
        }
        Err(_) => {
            let systems = folders(root, &events);
            match systems.iter().any(|known| known == system) {
                _ if systems.is_empty() => Err(NoTracepoint::NotMounted),
                true => Err(NoTracepoint::NoEvent(folders(root, &format!("{events}/{system}")))),
                false => Err(NoTracepoint::NoSystem(systems)),
            }
        }
    }
}

/// The folders in a folder; beside them lie switches such as `enable`.
fn folders(root: &Root, folder: &str) -> Vec<String> {
    let is_folder = |name: &String| root.path(&format!("{folder}/{name}")).is_dir();
    root.names(folder).into_iter().filter(is_folder).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;

    fn mounted(folder: &str) -> Fixture {
        Fixture::new()
            .file(&format!("{folder}/events/enable"), "0\n")
            .file(&format!("{folder}/events/sched/sched_switch/id"), "372\n")
            .file(&format!("{folder}/events/sched/sched_waking/id"), "373\n")
            .file(&format!("{folder}/events/sched/filter"), "none\n")
            .file(&format!("{folder}/events/irq/softirq_entry/id"), "120\n")
    }

    #[test]
    fn a_number_is_found_in_either_place() {
        for folder in FOLDERS {
            assert_eq!(tracepoint(&mounted(folder).root(), "sched", "sched_switch"), Ok(372), "{folder}");
        }
    }

    #[test]
    fn what_is_not_listed_comes_with_what_is() {
        let root = mounted(FOLDERS[0]);
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let of = |system, event| tracepoint(&root.root(), system, event).unwrap_err();
        assert_eq!(of("shed", "sched_switch"), NoTracepoint::NoSystem(names(&["irq", "sched"])));
        assert_eq!(of("sched", "switch"), NoTracepoint::NoEvent(names(&["sched_switch", "sched_waking"])));
    }

    #[test]
    fn a_missing_mount_is_told_from_a_missing_tracefs() {
        let unmounted = Fixture::new().file("sys/kernel/tracing/.keep", "");
        assert_eq!(tracepoint(&unmounted.root(), "sched", "sched_switch"), Err(NoTracepoint::NotMounted));
        assert_eq!(tracepoint(&Fixture::new().root(), "sched", "sched_switch"), Err(NoTracepoint::NoTracefs));
    }

    #[test]
    fn a_closed_one_says_where_it_is() {
        use std::os::unix::fs::PermissionsExt;
        let fixture = mounted(FOLDERS[0]);
        let root = fixture.root();
        let folder = root.path(FOLDERS[0]);
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o000)).expect("own folder");
        // Permissions do not stop root: so the look-up is by a thread to which files show themselves as to nobody.
        let seen = std::thread::scope(|scope| {
            let look = || {
                nix::unistd::setfsuid(nix::unistd::Uid::from_raw(65_534));
                tracepoint(&root, "sched", "sched_switch")
            };
            scope.spawn(look).join().expect("a look-up that ends")
        });
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).expect("own folder");
        assert_eq!(seen, Err(NoTracepoint::Closed { folder: folder.display().to_string() }));
    }
}
