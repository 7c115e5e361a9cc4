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
pub fn closed_maps(root: &Root, pid: u32) -> Closed {
    let who = named(root, pid);
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
    Closed { why, cure: format!("run as root{or}; or sudo setcap cap_sys_ptrace,cap_perfmon+ep PROGRAM") }
}

/// Why the memory of process `pid` is closed to this one (`/proc/PID/mem`), although its mappings may be seen; `None` where
/// it is open, or the process has ended.
///
/// # References
/// ptrace(2), PTRACE_MODE_ATTACH; `Documentation/admin-guide/LSM/Yama.rst`.
pub fn closed_memory(root: &Root, pid: u32) -> Option<Closed> {
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
    use super::{closed_maps, closed_memory};
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
        assert!(closed.cure.contains("run as root") && closed.cure.contains("cap_sys_ptrace,cap_perfmon"), "{closed:?}");
    }

    #[test]
    fn one_s_own_process_that_is_closed_is_not_blamed_on_users() {
        let own = closed_maps(&Root::at(machine(geteuid().as_raw()).path()), 7);
        assert!(!own.why.contains("belongs to user"), "{own:?}");
        assert!(own.why.contains("security module"), "{own:?}");
    }

    #[test]
    fn an_ended_process_is_not_closed() {
        assert_eq!(closed_memory(&Root::at(machine(0).path()), 7), None);
        assert_eq!(closed_memory(&Root::system(), std::process::id()), None, "one's own memory is open");
    }
}
