//! What this process may do to others.

use crate::named_rows::row;
use crate::root::Root;

/// Bits of capabilities(7), `linux/capability.h`.
const CAP_KILL: u64 = 1 << 5;
const CAP_SYS_NICE: u64 = 1 << 23;

/// What `/proc/PID/status` says of whose a process is.
struct Owner {
    real: u32,
    effective: u32,
    saved: u32,
    capabilities: u64,
}

/// Whether this process may stop process `pid`, as far as users and capabilities decide; false where that is not to be
/// seen.
///
/// # References
/// kill(2): the sender's real or effective user is the target's real or saved one, or CAP_KILL.
pub fn may_signal(root: &Root, pid: u32) -> bool {
    let rule = |own: &Owner, target: &Owner| {
        own.capabilities & CAP_KILL != 0
            || [own.real, own.effective].iter().any(|user| [target.real, target.saved].contains(user))
    };
    allowed(root, pid, rule)
}

/// Whether this process may choose the CPUs of process `pid`, in the same way.
///
/// # References
/// sched_setaffinity(2): the caller's effective user is the target's real or effective one, or CAP_SYS_NICE.
pub fn may_move(root: &Root, pid: u32) -> bool {
    let rule = |own: &Owner, target: &Owner| {
        own.capabilities & CAP_SYS_NICE != 0 || [target.real, target.effective].contains(&own.effective)
    };
    allowed(root, pid, rule)
}

fn allowed(root: &Root, pid: u32, rule: impl Fn(&Owner, &Owner) -> bool) -> bool {
    owner(root, "self").zip(owner(root, &pid.to_string())).is_some_and(|(own, target)| rule(&own, &target))
}

/// # References
/// proc_pid_status(5), Uid (real, effective, saved, file system) and CapEff.
fn owner(root: &Root, process: &str) -> Option<Owner> {
    let status = root.text(&format!("proc/{process}/status"))?;
    let users: Vec<u32> = row(&status, "Uid")?.split_whitespace().filter_map(|user| user.parse().ok()).collect();
    let &[real, effective, saved, ..] = &users[..] else { return None };
    let capabilities = row(&status, "CapEff").and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or(0);
    Some(Owner { real, effective, saved, capabilities })
}

#[cfg(test)]
mod tests {
    use super::{may_move, may_signal};
    use crate::fixture::Fixture;

    /// Whether the first may signal and move the second.
    fn may(own: &str, target: &str) -> (bool, bool) {
        let fixture = Fixture::new().file("proc/self/status", own).file("proc/7/status", target);
        (may_signal(&fixture.root(), 7), may_move(&fixture.root(), 7))
    }

    #[test]
    fn one_s_own_processes_may_be_stopped_and_moved_and_others_only_with_the_capability() {
        let plain = "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\n";
        let other = "Uid:\t1001\t1001\t1001\t1001\n";
        let root = "Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n";
        assert_eq!(
            (may(plain, plain), may(plain, other), may(plain, root)),
            ((true, true), (false, false), (false, false))
        );
        assert_eq!(may(root, other), (true, true));
        assert_eq!(may("Uid:\t0\t0\t0\t0\nCapEff:\t0000000000000020\n", other), (true, false), "CAP_KILL alone");
        assert_eq!(may(plain, "Uid:\t1000\t0\t0\t0\n"), (true, true), "a set-user-id program of one's own");
        assert_eq!(may(plain, "Uid:\t1001\t1001\t1000\t1001\n"), (true, false));
    }

    #[test]
    fn what_is_not_to_be_seen_is_not_allowed() {
        assert_eq!(
            (may("", "Uid:\t0\t0\t0\t0\n"), may("Uid:\t0\t0\t0\t0\n", "Uid:\t0\n")),
            ((false, false), (false, false))
        );
    }
}
