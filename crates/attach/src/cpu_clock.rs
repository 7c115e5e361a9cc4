//! The CPU time that another process has used, all its threads, those that ended too. Everybody may ask for it.

use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

/// Nanoseconds that process `pid` has run; `None` where it has ended. Who asks makes sure by a pidfd that it is still the
/// process that is meant.
///
/// # References
/// clock_getcpuclockid(3).
pub(crate) fn used_ns(pid: u32) -> Option<u64> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?);
    let time = clock_gettime(clock_getcpuclockid(pid).ok()?).ok()?;
    Some(u64::try_from(time.tv_sec()).ok()? * 1_000_000_000 + u64::try_from(time.tv_nsec()).ok()?)
}

#[cfg(test)]
mod tests {
    use super::used_ns;

    #[test]
    fn this_process_uses_time_and_no_process_uses_none() {
        let before = used_ns(std::process::id()).expect("it runs");
        while used_ns(std::process::id()).expect("it runs") == before {
            std::hint::spin_loop();
        }
        assert_eq!(used_ns(u32::MAX), None);
    }
}
