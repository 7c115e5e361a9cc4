//! What was not watched and why, each said once.

use nix::errno::Errno;
use record::AttachNote;

/// Notes in the order in which they came; one of an identifier and a process.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    list: Vec<AttachNote>,
}

impl Notes {
    /// Adds a note, unless one of that identifier was made of that process.
    pub(crate) fn add(&mut self, id: &str, pid: Option<u32>, text: impl Into<String>, cure: Option<&str>) {
        if !self.list.iter().any(|one| one.id == id && one.pid == pid) {
            let cure = cure.map(str::to_owned);
            self.list.push(AttachNote { id: id.to_owned(), pid, text: text.into(), cure });
        }
    }

    /// An event that was refused on a thread of `pid`; `what` it was to be. A thread that ended is none.
    pub(crate) fn refused(&mut self, pid: u32, what: &str, errno: Errno) {
        match errno {
            Errno::ESRCH => {}
            Errno::ENOSPC => self.add(
                "breakpoints_taken",
                Some(pid),
                "the processor's breakpoints are in use in this process, all or some: a debugger or another watch has them",
                Some("end the debugger's watchpoints (gdb: `delete`), or detach it"),
            ),
            Errno::EACCES | Errno::EPERM => self.add(
                "not_permitted",
                Some(pid),
                format!("{what} of this process is not permitted (perf_event_open: {errno:?})"),
                Some("run as root or as the process's owner, or with CAP_PERFMON and CAP_SYS_PTRACE (setcap)"),
            ),
            Errno::EMFILE | Errno::ENFILE => self.add(
                "too_many_threads",
                Some(pid),
                format!("{what} of some threads was left out: no file descriptor was left for them ({errno:?})"),
                Some("raise the limit: ulimit -n 65536"),
            ),
            Errno::ENOMEM => self.add(
                "no_memory",
                Some(pid),
                format!("{what} of some threads was left out: the kernel had no memory to lend (ENOMEM)"),
                Some("raise what it lends: sudo sysctl kernel.perf_event_mlock_kb=16384"),
            ),
            errno => self.add(
                "not_watched",
                Some(pid),
                format!("{what} of this process failed ({errno:?}: {})", errno.desc()),
                None,
            ),
        }
    }

    /// All of them.
    pub(crate) fn into_list(self) -> Vec<AttachNote> {
        self.list
    }
}

/// The kernel refuses to lend more memory to a user with EPERM, which elsewhere is a matter of permission.
pub(crate) fn not_lent(errno: Errno) -> Errno {
    if errno == Errno::EPERM { Errno::ENOMEM } else { errno }
}

#[cfg(test)]
mod tests {
    use super::Notes;
    use nix::errno::Errno;

    #[test]
    fn a_refusal_is_said_once_a_process_and_an_end_not_at_all() {
        let mut notes = Notes::default();
        for errno in [Errno::ESRCH, Errno::ENOSPC, Errno::ENOSPC, Errno::EACCES] {
            notes.refused(7, "sampling", errno);
        }
        notes.refused(8, "sampling", Errno::ENOSPC);
        let said: Vec<_> = notes.into_list().into_iter().map(|note| (note.id, note.pid, note.cure.is_some())).collect();
        let taken = |pid| ("breakpoints_taken".to_owned(), Some(pid), true);
        assert_eq!(said, [taken(7), ("not_permitted".to_owned(), Some(7), true), taken(8)]);
    }
}
