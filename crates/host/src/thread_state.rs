//! What `/proc` tells of one thread: its number inside, whether it lives, and the system call that it is in.

use crate::named_rows::row;
use crate::root::Root;

/// A thread's number in its own namespace of pids, by which it knows itself; `None` where it has ended and nobody remembers it.
///
/// # References
/// proc_pid_status(5), NSpid: from the namespace of procfs's mount inwards.
pub fn tid_inside(root: &Root, pid: u32, tid: u32) -> Option<u32> {
    row(&status(root, pid, tid)?, "NSpid")?.split_whitespace().last()?.parse().ok()
}

/// Whether a thread is there and has not ended; one that has waits for its parent to hear of it, a zombie.
///
/// # References
/// proc_pid_status(5), State.
pub fn thread_lives(root: &Root, pid: u32, tid: u32) -> bool {
    let status = status(root, pid, tid);
    status.as_deref().and_then(|status| row(status, "State")).is_some_and(|state| !state.starts_with(['Z', 'X']))
}

/// Whether some thread or process has this number here.
pub fn number_is_taken(root: &Root, number: u32) -> bool {
    root.path(&format!("proc/{number}")).exists()
}

/// A system call that a thread sleeps in.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SleepingCall {
    /// Its number, as the thread's own architecture numbers them.
    pub number: u64,
    /// What it was called with.
    pub arguments: [u64; 6],
}

/// The system call that a thread sleeps in now; `None` where it runs, sleeps elsewhere, or this process may not know.
///
/// # References
/// proc_pid_syscall(5); ptrace(2), PTRACE_MODE_ATTACH.
pub fn sleeping_call(root: &Root, pid: u32, tid: u32) -> Option<SleepingCall> {
    let text = root.text(&format!("proc/{pid}/task/{tid}/syscall"))?;
    let mut words = text.split_whitespace();
    let number = words.next()?.parse().ok()?;
    let mut arguments = [0; 6];
    for argument in &mut arguments {
        *argument = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
    }
    Some(SleepingCall { number, arguments })
}

fn status(root: &Root, pid: u32, tid: u32) -> Option<String> {
    root.text(&format!("proc/{pid}/task/{tid}/status"))
}

#[cfg(test)]
mod tests {
    use super::{number_is_taken, sleeping_call, thread_lives, tid_inside};
    use crate::fixture::Fixture;

    #[test]
    fn a_thread_has_the_innermost_of_its_numbers() {
        let status = "Name:\tserver\nState:\tS (sleeping)\nPid:\t101\nNSpid:\t101\t7\t3\n";
        let fixture = Fixture::new().file("proc/100/task/101/status", status);
        assert_eq!(tid_inside(&fixture.root(), 100, 101), Some(3));
        assert_eq!(tid_inside(&fixture.root(), 100, 102), None);
        assert!(number_is_taken(&fixture.root(), 100) && !number_is_taken(&fixture.root(), 99));
    }

    #[test]
    fn a_zombie_does_not_live() {
        for (state, lives) in
            [("R (running)", true), ("D (disk sleep)", true), ("Z (zombie)", false), ("X (dead)", false)]
        {
            let fixture = Fixture::new().file("proc/5/task/5/status", &format!("State:\t{state}\n"));
            assert_eq!(thread_lives(&fixture.root(), 5, 5), lives, "{state}");
        }
        assert!(!thread_lives(&Fixture::new().root(), 5, 5));
    }

    #[test]
    fn a_call_is_told_of_one_who_sleeps_in_it() {
        let of = |text: &str| sleeping_call(&Fixture::new().file("proc/5/task/6/syscall", text).root(), 5, 6);
        let call = of("202 0x7f00 0x80 0x2 0x0 0x0 0xffffffff 0x7ffe 0x7fab\n").unwrap();
        assert_eq!((call.number, call.arguments), (202, [0x7f00, 0x80, 2, 0, 0, 0xffff_ffff]));
        assert_eq!(["running\n", "-1 0x7ffe 0x7fab\n", ""].map(of), [None; 3]);
    }
}
