//! `run --hold`: workers stand at a gate, and whoever sits at the terminal looks at them before letting them go.

use crate::launch::{Child, Member};
use nix::errno::Errno;
use nix::unistd::{Pid, read};
use shm_layout::{Gate, Segment};
use std::cell::Cell;
use std::io::Write;
use std::os::fd::BorrowedFd;

/// Both gates, in the order in which a repetition comes to them.
pub(crate) const GATES: [Gate; 2] = [Gate::BeforeWarmUp, Gate::AfterWindow];

/// Standard input as a stream of lines, each of which opens one gate. One for a whole run.
#[derive(Default)]
pub(crate) struct Hold {
    /// Lines that were read and not yet used. What they say does not matter, so nothing of it is kept.
    lines: Cell<usize>,
}

/// One repetition that is held, and what is said of it.
#[derive(Copy, Clone)]
pub(crate) struct HeldArm<'a> {
    pub(crate) hold: &'a Hold,
    pub(crate) arm: &'a str,
    pub(crate) block: u32,
}

/// What standard input had.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// A line.
    Line,
    /// Its end.
    End,
    /// Nothing yet: a read that was interrupted, or the first part of a line.
    Nothing,
}

impl Hold {
    /// A descriptor to sleep on until there may be a line; none where one was read already.
    pub(crate) fn to_wait_for(&self) -> Option<BorrowedFd<'static>> {
        (self.lines.get() == 0).then(descriptor)
    }

    /// Takes a line that was read already, or reads once. To be called when [`Hold::to_wait_for`] is readable.
    pub(crate) fn take(&self) -> Input {
        self.take_from(descriptor())
    }

    fn take_from(&self, input: BorrowedFd<'_>) -> Input {
        if self.take_line() {
            return Input::Line;
        }
        let mut bytes = [0; 256];
        match read(input, &mut bytes) {
            Ok(0) => Input::End,
            Ok(count) => {
                let ends = bytes[..count].iter().filter(|byte| **byte == b'\n').count();
                self.lines.set(self.lines.get() + ends);
                if self.take_line() { Input::Line } else { Input::Nothing }
            }
            Err(Errno::EINTR | Errno::EAGAIN) => Input::Nothing,
            // Nobody can say "go on" any more.
            Err(_) => Input::End,
        }
    }

    fn take_line(&self) -> bool {
        let Some(rest) = self.lines.get().checked_sub(1) else { return false };
        self.lines.set(rest);
        true
    }
}

impl HeldArm<'_> {
    /// Says on standard error who stands at `gate`: who has died does not.
    pub(crate) fn announce(&self, gate: Gate, children: &[Child], segment: &Segment) {
        let of = |child: &'_ Child, member: &Member| {
            // Of a process with one thread the two numbers are one.
            let tid = if child.workers.len() > 1 { segment.slot(member.index).thread() } else { None };
            (member.name.clone(), child.pid, tid)
        };
        let living = children.iter().filter(|child| child.status.is_none());
        let members = living.flat_map(|child| child.workers.iter().map(move |member| of(child, member)));
        let workers: Vec<(String, Pid, Option<i32>)> = members.collect();
        // Nobody is left to tell where standard error is closed.
        let _ = std::io::stderr().write_all(announcement(self, gate, &workers).as_bytes());
    }
}

fn announcement(held: &HeldArm<'_>, gate: Gate, workers: &[(String, Pid, Option<i32>)]) -> String {
    let at = match gate {
        Gate::BeforeWarmUp => "before the warm-up",
        Gate::AfterWindow => "after the window",
    };
    let mut text = format!("held {at}: arm `{}`, block {}\n", held.arm, held.block);
    for (name, pid, tid) in workers {
        let tid = tid.map_or(String::new(), |tid| format!(", tid {tid}"));
        text.push_str(&format!("  {name}: pid {pid}{tid}\n"));
    }
    text.push_str("Enter goes on, Ctrl-C ends the run\n");
    text
}

/// Standard input.
fn descriptor() -> BorrowedFd<'static> {
    #[allow(unsafe_code)]
    // SAFETY: the runtime opens descriptor 0 before `main` if it is closed, and nothing here ever closes it.
    unsafe {
        BorrowedFd::borrow_raw(nix::libc::STDIN_FILENO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::{pipe, write};
    use std::os::fd::AsFd;

    #[test]
    fn each_line_is_taken_once_and_half_a_line_at_the_end_is_none() {
        let (input, end) = pipe().unwrap();
        let hold = Hold::default();
        let put = |text: &str| assert_eq!(write(&end, text.as_bytes()), Ok(text.len()));
        put("go");
        assert_eq!(hold.take_from(input.as_fd()), Input::Nothing);
        assert!(hold.to_wait_for().is_some());
        // However long it is, what stands before a line's end is not kept.
        for _ in 0..10 {
            put(&"x".repeat(200));
            assert_eq!(hold.take_from(input.as_fd()), Input::Nothing);
        }
        put("\n\nhal");
        assert_eq!(hold.take_from(input.as_fd()), Input::Line);
        assert!(hold.to_wait_for().is_none(), "the second line is there already");
        assert_eq!(hold.take_from(input.as_fd()), Input::Line);
        drop(end);
        assert_eq!(hold.take_from(input.as_fd()), Input::End);
    }

    #[test]
    fn an_announcement_names_arm_block_and_every_worker() {
        let held = HeldArm { hold: &Hold::default(), arm: "packed", block: 3 };
        let worker = |name: &str, pid, tid| (name.to_owned(), Pid::from_raw(pid), tid);
        let workers =
            [worker("worker 0 (role `a`, CPU 1)", 12, None), worker("worker 1 (role `b`, CPU 0)", 13, Some(14))];
        assert_eq!(
            announcement(&held, Gate::AfterWindow, &workers),
            "held after the window: arm `packed`, block 3\n  worker 0 (role `a`, CPU 1): pid 12\n  \
             worker 1 (role `b`, CPU 0): pid 13, tid 14\nEnter goes on, Ctrl-C ends the run\n"
        );
        assert!(announcement(&held, Gate::BeforeWarmUp, &[]).starts_with("held before the warm-up: "));
    }
}
