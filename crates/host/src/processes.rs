//! What `/proc` tells everybody of a process: its name, its program, its threads, its numbers in namespaces, whose it is.

use crate::named_rows::row;
use crate::root::Root;
use std::os::unix::fs::MetadataExt;

/// The numbers of all processes that this one can see, ascending.
pub fn process_numbers(root: &Root) -> Vec<u32> {
    numbers(root, "proc")
}

/// The numbers of a process's threads, ascending; empty where it has ended.
pub fn thread_numbers(root: &Root, pid: u32) -> Vec<u32> {
    numbers(root, &format!("proc/{pid}/task"))
}

fn numbers(root: &Root, folder: &str) -> Vec<u32> {
    let mut numbers: Vec<u32> = root.names(folder).into_iter().filter_map(|name| name.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// Whether it is a thread of that process.
pub fn is_thread_of(root: &Root, pid: u32, tid: u32) -> bool {
    root.path(&format!("proc/{pid}/task/{tid}")).is_dir()
}

/// Its short name, `comm`, which it chooses itself; `None` where it has ended.
pub fn command_of(root: &Root, pid: u32) -> Option<String> {
    root.text(&format!("proc/{pid}/comm"))
}

/// Its program's path, ` (deleted)` behind it where the file is gone; `None` where this process may not look, or there is
/// none.
pub fn executable_of(root: &Root, pid: u32) -> Option<String> {
    let link = std::fs::read_link(root.path(&format!("proc/{pid}/exe"))).ok()?;
    Some(link.to_string_lossy().into_owned())
}

/// Its number in its own namespace of pids; `None` where that is this one's, or it has ended.
///
/// # References
/// proc_pid_status(5), NSpid: from the namespace of procfs's mount inwards.
pub fn pid_inside(root: &Root, pid: u32) -> Option<u32> {
    let status = root.text(&format!("proc/{pid}/status"))?;
    let numbers: Vec<&str> = row(&status, "NSpid")?.split_whitespace().collect();
    if numbers.len() < 2 { None } else { numbers.last()?.parse().ok() }
}

/// Why a process may be closed to another one.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Ownership {
    /// Its effective user.
    pub user: u32,
    /// Whether it shows itself to its own user: one that gained privileges at its execve, or asked for it
    /// (PR_SET_DUMPABLE), belongs to root in `/proc`.
    pub dumpable: bool,
}

/// Whose a process is; `None` where it has ended.
///
/// # References
/// proc_pid_status(5), Uid; proc(5), "the ownership of files inside /proc/PID".
pub fn ownership(root: &Root, pid: u32) -> Option<Ownership> {
    let status = root.text(&format!("proc/{pid}/status"))?;
    let user = row(&status, "Uid")?.split_whitespace().nth(1)?.parse().ok()?;
    let shown = std::fs::metadata(root.path(&format!("proc/{pid}"))).ok()?.uid();
    Some(Ownership { user, dumpable: shown == user })
}

/// CAP_SYS_PTRACE of capabilities(7).
const CAP_SYS_PTRACE: u64 = 1 << 19;

/// Whether this process holds CAP_SYS_PTRACE, and so may look at every process of its user namespace; false where that is
/// not to be seen.
pub fn may_look_at_all(root: &Root) -> bool {
    let status = root.text("proc/self/status").unwrap_or_default();
    let effective = row(&status, "CapEff").and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or(0);
    effective & CAP_SYS_PTRACE != 0
}

/// `kernel.yama.ptrace_scope`: from 1 on a user's own processes are closed to each other's memory; `None` where the kernel
/// has no Yama.
///
/// # References
/// `Documentation/admin-guide/LSM/Yama.rst`.
pub fn ptrace_scope(root: &Root) -> Option<u32> {
    root.number("proc/sys/kernel/yama/ptrace_scope")
}

#[cfg(test)]
mod tests {
    use super::{command_of, is_thread_of, may_look_at_all, ownership, pid_inside, process_numbers, thread_numbers};
    use crate::fixture::Fixture;
    use crate::root::Root;

    #[test]
    fn processes_and_threads_are_numbers_in_their_order() {
        let fixture = Fixture::new()
            .file("proc/11/task/11/comm", "server\n")
            .file("proc/11/task/102/comm", "helper\n")
            .file("proc/9/comm", "a b\n")
            .file("proc/sys/kernel/x", "");
        assert_eq!(process_numbers(&fixture.root()), [9, 11]);
        assert_eq!(thread_numbers(&fixture.root(), 11), [11, 102]);
        assert_eq!(thread_numbers(&fixture.root(), 12), [0; 0]);
        assert!(is_thread_of(&fixture.root(), 11, 102) && !is_thread_of(&fixture.root(), 9, 102));
        assert_eq!(command_of(&fixture.root(), 9).as_deref(), Some("a b"));
    }

    #[test]
    fn the_number_inside_is_the_last_where_there_are_several() {
        let of = |row: &str| pid_inside(&Fixture::new().file("proc/7/status", &format!("{row}\n")).root(), 7);
        assert_eq!(
            (of("NSpid:\t7\t1"), of("NSpid:\t7\t40\t3"), of("NSpid:\t7"), of("Name:\tx")),
            (Some(1), Some(3), None, None)
        );
    }

    #[test]
    fn the_capability_is_one_bit_of_them() {
        let with =
            |set: &str| may_look_at_all(&Fixture::new().file("proc/self/status", &format!("CapEff:\t{set}\n")).root());
        assert!(with("0000000000080000") && with("000001ffffffffff"));
        assert!(!with("0000000000000000") && !with("000001fffff7ffff") && !may_look_at_all(&Fixture::new().root()));
    }

    #[test]
    fn this_process_is_its_user_s() {
        let own = ownership(&Root::system(), std::process::id()).expect("it runs");
        assert_eq!(own.user, nix::unistd::geteuid().as_raw());
        assert_eq!(ownership(&Fixture::new().root(), 7), None);
    }
}
