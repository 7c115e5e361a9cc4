//! Pinning: the affinity is set, then read back.

use crate::failure::Failure;
use nix::errno::Errno;
use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::unistd::Pid;
use plan::CpuId;

/// Pins this thread and returns the CPU that its affinity names when read back.
///
/// # Errors
/// [`Failure`] where the CPU is not to be had: taken away by a cpuset or offline.
pub(crate) fn pin(cpu: CpuId) -> Result<u32, Failure> {
    let this_thread = Pid::from_raw(0);
    let taken_away = |how: String| {
        Failure::new(
            format!("CPU {cpu} was taken away: {how}"),
            "see `cat /sys/fs/cgroup/cpuset.cpus.effective`, `taskset -p $$` and `cat /sys/devices/system/cpu/online`; \
             choose other CPUs with `--cpus`",
        )
    };
    let mut wanted = CpuSet::new();
    wanted.set(cpu.0 as usize).map_err(|_| taken_away(format!("its number is above {}", CpuSet::count())))?;
    sched_setaffinity(this_thread, &wanted).map_err(|errno| match errno {
        Errno::EINVAL => taken_away("the kernel refuses it (sched_setaffinity: EINVAL)".into()),
        errno => Failure::system("sched_setaffinity", errno),
    })?;
    let seen = sched_getaffinity(this_thread).map_err(|errno| Failure::system("sched_getaffinity", errno))?;
    let runs_on = sched_getcpu().map_err(|errno| Failure::system("sched_getcpu", errno))?;
    if seen == wanted && runs_on == cpu.0 as usize {
        Ok(cpu.0)
    } else {
        Err(taken_away(format!("after pinning, the worker runs on CPU {runs_on}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_that_is_not_there_is_named_with_a_cure() {
        std::thread::spawn(|| {
            let failure = pin(CpuId(1_000)).unwrap_err();
            assert!(failure.what.contains("CPU 1000") && failure.cure.contains("--cpus"), "{failure:?}");
        })
        .join()
        .unwrap();
    }
}
