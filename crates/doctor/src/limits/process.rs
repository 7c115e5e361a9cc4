//! What this process may open, start and make executable.

use crate::{Finding, Patient, Spoils};
use host::{ThreadLimit, ThreadRoom};

/// Room for threads under which a machine is short of it: a run of as many workers as most machines have CPUs.
const ENOUGH_THREADS: u64 = 128;

/// Open files that a run of a hundred workers needs: two a worker, the run's own, some tens of events, the standard
/// ones.
const ENOUGH_FILES: u64 = 256;

/// The limit on open files.
pub(super) fn open_files(patient: &Patient<'_>) -> Finding {
    const NAME: &str = "open_files";
    const WHY: &str = "the coordinator holds two for each process, one for each event of the kernel's and some of its \
                       own; a process holds one for each event that a thread of it counts; `ulimit -n` raises the limit";
    match host::open_files_limit(patient.root) {
        None => Finding::missing(NAME, "the kernel does not say (/proc/self/limits)", WHY),
        Some(u64::MAX) => Finding::ok(NAME, "no limit", WHY),
        Some(limit) if limit < ENOUGH_FILES => Finding::warn(NAME, format!("at most {limit}"), WHY)
            .cured_by("`ulimit -n 1024` in this shell")
            .spoiling(Spoils::MoreFilesThan(limit)),
        Some(limit) => Finding::ok(NAME, format!("at most {limit}"), WHY).spoiling(Spoils::MoreFilesThan(limit)),
    }
}

/// The limits on processes and threads.
pub(super) fn threads(patient: &Patient<'_>) -> Finding {
    const NAME: &str = "threads";
    const WHY: &str = "each worker is a process or a thread of one, and the kernel counts threads; a `pids.max` of a \
                       cgroup counts everybody's in it";
    let Some(ThreadRoom { left, limit }) = host::thread_room(patient.root) else {
        return Finding::idle(NAME, "no limit", WHY);
    };
    let (whose, cure) = match limit {
        ThreadLimit::User(most) => (format!("{most} of this user's"), "`ulimit -u 4096` in this shell".to_owned()),
        ThreadLimit::Cgroup(most, file) => (
            format!("{most} of the cgroup's"),
            format!(
                "raise it where it was set (`docker run --pids-limit`, systemd's TasksMax=), or `echo max | sudo tee \
                 {file}`"
            ),
        ),
    };
    let seen = format!("room for {left} more, of {whose}");
    let found = match left < ENOUGH_THREADS {
        true => Finding::warn(NAME, seen, WHY).cured_by(cure),
        false => Finding::ok(NAME, seen, WHY),
    };
    found.spoiling(Spoils::MoreThreadsThan(left))
}

/// Whether a worker could compile its loop; nothing where there is no process to ask.
pub(super) fn executable_memory(patient: &Patient<'_>) -> Option<Finding> {
    const NAME: &str = "executable_memory";
    const WHY: &str = "each worker compiles its loop to machine code and needs memory that may hold it";
    Some(match host::executable_memory(patient.root)? {
        Ok(()) => Finding::ok(NAME, "allowed", WHY),
        Err(errno) => Finding::missing(NAME, format!("denied ({})", errno.desc()), WHY)
            .cured_by(
                "run outside of that confinement, or allow it: systemd MemoryDenyWriteExecute=no, SELinux's `execmem`, \
                 a seccomp profile that lets mprotect set PROT_EXEC",
            )
            .spoiling(Spoils::EveryRun),
    })
}

#[cfg(test)]
mod tests {
    use super::{executable_memory, open_files, threads};
    use crate::fixture::{Fixture, assert_well_formed};
    use crate::{Patient, Spoils};
    use host::Root;
    use plan::Topology;
    use record::CheckState::{self, Missing, Ok, Warn};

    #[test]
    fn few_open_files_are_warned_of() {
        let state = |limit: &str| -> CheckState {
            let fixture = Fixture::new().file("proc/self/limits", &format!("Max open files  {limit}  524288  files\n"));
            let found = fixture.findings(|patient| vec![open_files(patient)]).remove(0);
            assert_well_formed(&found);
            if let Result::Ok(limit) = limit.parse() {
                assert_eq!(found.spoils, Spoils::MoreFilesThan(limit), "enough for most may be too little for one");
            }
            found.check.state
        };
        assert_eq!((state("64"), state("1024"), state("unlimited"), state("?")), (Warn, Ok, Ok, Missing));
    }

    #[test]
    fn little_room_for_threads_is_warned_of() {
        let found = |limit: &str| {
            let fixture = Fixture::new()
                .file("proc/self/status", "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0\n")
                .file("proc/7/status", "Uid:\t1000\t1000\t1000\t1000\nThreads:\t10\n")
                .file("proc/self/limits", &format!("Max processes  {limit}  63432  processes\n"));
            let found = fixture.findings(|patient| vec![threads(patient)]).remove(0);
            assert_well_formed(&found);
            found
        };
        let little = found("50");
        assert_eq!((little.check.state, little.check.seen.as_str()), (Warn, "room for 40 more, of 50 of this user's"));
        assert_eq!(little.spoils, Spoils::MoreThreadsThan(40));
        assert_eq!((found("4000").check.state, found("unlimited").check.seen.as_str()), (Ok, "no limit"));
        let cgroup = Fixture::new()
            .file("proc/self/cgroup", "0::/jobs\n")
            .file("sys/fs/cgroup/jobs/pids.max", "20\n")
            .file("sys/fs/cgroup/jobs/pids.current", "19\n");
        let found = cgroup.findings(|patient| vec![threads(patient)]).remove(0);
        assert_well_formed(&found);
        assert_eq!(found.spoils, Spoils::MoreThreadsThan(1));
        assert!(found.check.cure.unwrap().contains("sys/fs/cgroup/jobs/pids.max"));
    }

    #[test]
    fn a_denial_spoils_every_run_and_a_fixture_is_not_asked() {
        assert_eq!(Fixture::new().findings(|patient| executable_memory(patient).into_iter().collect()), []);
        let here = Patient { root: &Root::system(), topology: &Topology { cpus: vec![] }, cpus: &[] };
        let found = executable_memory(&here).unwrap();
        assert_well_formed(&found);
        assert_eq!(found.check.state == Ok, found.spoils == Spoils::Nothing);
    }
}
