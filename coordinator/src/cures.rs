//! What to do about a system call that failed: by its errno, so that no message sends a reader after the wrong limit.

use nix::errno::Errno;

/// The cure of a failed call that wanted a descriptor, a process or memory. Where none of these was lacking, it names
/// what else keeps such calls away.
pub(crate) fn of(errno: Errno) -> &'static str {
    match errno {
        Errno::EMFILE => "this process has all the open files it may have: raise the limit with `ulimit -n 4096`",
        Errno::ENFILE => "the system has all the open files it may have: raise `sysctl fs.file-max`",
        Errno::EAGAIN => {
            "no more processes are allowed: see `ulimit -u`, the cgroup's `pids.max` and `sysctl kernel.pid_max`"
        }
        Errno::ENOMEM => "memory is short or limited: see `free -m`, `ulimit -v` and the memory cgroup's `memory.max`",
        Errno::ENOSYS | Errno::EPERM | Errno::EACCES => {
            "the kernel or a filter refuses this call: see the container's seccomp profile (`docker run --security-opt \
             seccomp=…`) and the kernel's version; `coordinator doctor` says what is allowed here"
        }
        _ => "`coordinator doctor` says what this machine lacks",
    }
}
