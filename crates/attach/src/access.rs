//! Whether this process may look at another one, and what is missing where it may not.

use host::Root;
use nix::unistd::geteuid;

/// Why a process is closed to this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// What stands in the way, in a sentence without its full stop.
    pub why: String,
    /// What helps.
    pub cure: String,
}

/// Which capability is missing to read where process `pid` maps what (`/proc/PID/maps`), once the kernel has refused it.
///
/// # References
/// ptrace(2), "Ptrace access mode checking", PTRACE_MODE_READ; perf_event_open(2) asks for the same, or CAP_PERFMON.
pub(crate) fn closed_maps(root: &Root, pid: u32) -> Closed {
    let who = named(root, pid);
    if host::may_look_at_all(root) {
        let why = format!(
            "{who} is closed to this one in spite of its CAP_SYS_PTRACE: it lives in an outer user namespace, or a security \
             module closes it"
        );
        return Closed { why, cure: WHO_REFUSED.to_owned() };
    }
    let own = geteuid().as_raw();
    let (why, or) = match host::ownership(root, pid) {
        Some(owner) if owner.user != own => (
            format!("{who} belongs to user {}, and this one runs as user {own} without CAP_SYS_PTRACE", owner.user),
            format!(", or as user {}", owner.user),
        ),
        Some(owner) if !owner.dumpable => (
            format!(
                "{who} hides from its own user, as a program does that gained privileges at its start or asked for it \
                 (PR_SET_DUMPABLE), and this one has no CAP_SYS_PTRACE"
            ),
            String::new(),
        ),
        _ => (
            format!(
                "{who} holds capabilities that this process lacks, lives in another user namespace, or a security module \
                 closes it; CAP_SYS_PTRACE is missing"
            ),
            String::new(),
        ),
    };
    Closed { why, cure: format!("run as root{or}; or {WITH_CAPABILITIES}") }
}

const WITH_CAPABILITIES: &str = "sudo setcap cap_sys_ptrace,cap_perfmon+ep PROGRAM";
const WHO_REFUSED: &str = "look from outside of the container; sudo ausearch -m AVC, or sudo dmesg, says who refused";

/// What it means that some processes could not be looked at, where all were asked for; `None` of none.
pub fn closed_processes(root: &Root, pids: &[u32]) -> Option<Closed> {
    let (who, they) = match pids {
        [] => return None,
        [pid] => (format!("{} is", named(root, *pid)), "it"),
        _ => (format!("{} processes are", pids.len()), "they"),
    };
    Some(match host::may_look_at_all(root) {
        true => Closed {
            why: format!(
                "{who} closed to this one in spite of its CAP_SYS_PTRACE, and what {they} may map is not known"
            ),
            cure: WHO_REFUSED.to_owned(),
        },
        false => Closed {
            why: format!("{who} closed to this one, without CAP_SYS_PTRACE, and what {they} may map is not known"),
            cure: format!("run as root, or {WITH_CAPABILITIES}"),
        },
    })
}

/// Why the memory of process `pid` is closed to this one (`/proc/PID/mem`), although its mappings may be seen; `None` where
/// it is open, or the process has ended.
///
/// # References
/// ptrace(2), PTRACE_MODE_ATTACH; `Documentation/admin-guide/LSM/Yama.rst`.
pub(crate) fn closed_memory(root: &Root, pid: u32) -> Option<Closed> {
    let error = root.closed(&format!("proc/{pid}/mem"))?;
    if error.kind() != std::io::ErrorKind::PermissionDenied {
        return None;
    }
    let who = named(root, pid);
    Some(match host::ptrace_scope(root) {
        Some(scope @ 1..=2) => Closed {
            why: format!("kernel.yama.ptrace_scope is {scope}, which closes the memory of {who} to this one"),
            cure: "sudo sysctl kernel.yama.ptrace_scope=0; or run as root".to_owned(),
        },
        Some(scope @ 3..) => Closed {
            why: format!("kernel.yama.ptrace_scope is {scope}, which closes the memory of {who} to everybody"),
            cure: "it stays so until the next boot: boot with another setting in /etc/sysctl.d".to_owned(),
        },
        _ => closed_maps(root, pid),
    })
}

/// `process 4711 (server)`.
pub(crate) fn named(root: &Root, pid: u32) -> String {
    match host::command_of(root, pid) {
        Some(command) => format!("process {pid} ({command})"),
        None => format!("process {pid}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{closed_maps, closed_memory, closed_processes};
    use host::Root;
    use nix::unistd::geteuid;

    /// A machine with process 7 of a user.
    fn machine(user: u32) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        let process = folder.path().join("proc/7");
        std::fs::create_dir_all(&process).expect("a folder");
        std::fs::write(process.join("comm"), "server\n").expect("a file");
        std::fs::write(process.join("status"), format!("Uid:\t{user}\t{user}\t{user}\t{user}\n")).expect("a file");
        folder
    }

    #[test]
    fn another_user_s_process_asks_for_that_user_or_the_capability() {
        let other = geteuid().as_raw() + 1;
        let closed = closed_maps(&Root::at(machine(other).path()), 7);
        assert!(closed.why.contains("process 7 (server)") && closed.why.contains("CAP_SYS_PTRACE"), "{closed:?}");
        assert!(closed.why.contains(&format!("user {other}")), "{closed:?}");
        assert!(
            closed.cure.contains("run as root") && closed.cure.contains("cap_sys_ptrace,cap_perfmon"),
            "{closed:?}"
        );
    }

    #[test]
    fn one_s_own_process_that_is_closed_is_not_blamed_on_users() {
        let own = closed_maps(&Root::at(machine(geteuid().as_raw()).path()), 7);
        assert!(!own.why.contains("belongs to user"), "{own:?}");
        assert!(own.why.contains("security module"), "{own:?}");
    }

    #[test]
    fn who_has_the_capability_is_not_told_to_get_it() {
        let folder = machine(0);
        let own = folder.path().join("proc/self");
        std::fs::create_dir_all(&own).expect("a folder");
        std::fs::write(own.join("status"), "CapEff:\t000001ffffffffff\n").expect("a file");
        let root = Root::at(folder.path());
        for closed in [
            closed_maps(&root, 7),
            closed_processes(&root, &[7]).expect("one"),
            closed_processes(&root, &[7, 8]).expect("two"),
        ] {
            assert!(closed.why.contains("in spite of its CAP_SYS_PTRACE"), "{closed:?}");
            assert!(!closed.cure.contains("setcap") && !closed.cure.contains("as root"), "{closed:?}");
        }
        assert_eq!(closed_processes(&root, &[]), None);
    }

    #[test]
    fn an_ended_process_is_not_closed() {
        assert_eq!(closed_memory(&Root::at(machine(0).path()), 7), None);
        assert_eq!(closed_memory(&Root::system(), std::process::id()), None, "one's own memory is open");
    }
}
