//! Watching one repetition: until all have attached, have come to a gate, have ended, or until something says stop. In
//! the window this sleeps on pidfds and does nothing else: on two CPUs, more would evict a worker.

use crate::hold::{GATES, HeldArm, Input};
use crate::launch::Child;
use crate::provision::Provision;
use crate::signals::Signals;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::wait::WaitStatus;
use nix::unistd::read;
use plan::{Program, WorkerProgram};
use shm_layout::Segment;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// From the start of the workers until all have attached. With [`SLACK`] 25 s beyond the window, warm-up and two of the
/// longest passes; a worker's own timer, which starts with it, allows 30 s beyond the same (`worker`'s lifeline). So
/// the coordinator acts first, and says who was where; the timers are for when it cannot.
const ATTACH_TIME: Duration = Duration::from_secs(15);
/// From the release until all have ended, beyond the window, warm-up and two of the longest passes.
const SLACK: Duration = Duration::from_secs(10);
/// Workers that a message names one by one.
const MOST_NAMED: usize = 4;
/// What workers get to leave by themselves when the repetition is given up, before they are killed.
const LEAVE_TIME: Duration = Duration::from_millis(300);
/// After an owner died: what the others get to run into its lock, so that they can be named.
const ORPHAN_TIME: Duration = Duration::from_millis(500);

/// Why a repetition ended early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A request to end.
    Interrupted,
    /// A worker ended before its time: its position in the Program.
    Ended {
        /// Position.
        nth: usize,
        /// How it ended.
        how: String,
    },
    /// The deadline passed: who was where.
    Stuck(String),
    /// A worker died holding a lock that nobody can take over: which, who, and who waits.
    Orphaned(String),
}

/// Lets the workers attach, removes the segment's name, releases them, and waits until all have ended well. Held ones
/// stop at each gate until a line comes on standard input; its end is a request to end the run.
pub(crate) fn supervise(
    program: &Program,
    provision: &mut Provision,
    children: &mut [Child],
    signals: &Signals,
    held: Option<HeldArm<'_>>,
) -> Result<(), Stop> {
    let outcome = Watch { program, provision, children, signals, departed: 0 }.watch(held);
    if outcome.is_err() {
        provision.segment.control().abort();
        let deadline = Instant::now() + LEAVE_TIME;
        while children.iter_mut().any(|c| c.poll_status().is_none()) && Instant::now() < deadline {
            wait_for_change(children, None, None, Some(deadline));
        }
        children.iter().for_each(Child::kill);
    }
    outcome
}

/// What is watched, and who may say stop.
struct Watch<'a> {
    program: &'a Program,
    provision: &'a mut Provision,
    children: &'a mut [Child],
    signals: &'a Signals,
    /// Workers that died as planned, so far.
    departed: usize,
}

impl Watch<'_> {
    fn watch(&mut self, held: Option<HeldArm<'_>>) -> Result<(), Stop> {
        self.all_say_so(self.within(ATTACH_TIME))?;
        self.provision.segment.unlink();
        let control = self.provision.segment.control();
        if held.is_some() {
            control.close_gates();
        }
        control.release();
        let program = self.program;
        let lengths = program.warm_up.duration() + program.window.duration() + 2 * program.longest_pass().duration();
        let mut deadline = self.within(lengths + SLACK);
        for (held, gate) in held.iter().flat_map(|held| GATES.map(|gate| (held, gate))) {
            self.all_say_so(deadline)?;
            held.announce(gate, self.children);
            self.wait_for_line(held)?;
            self.provision.segment.control().open_gate(gate);
            deadline = self.within(lengths + SLACK);
        }
        while self.children.iter_mut().any(|c| c.poll_status().is_none()) {
            wait_for_change(self.children, Some(self.signals), None, Some(deadline));
            self.check(Some(deadline))?;
        }
        self.check(None)
    }

    /// So much time from now on, for each worker that takes its turn on a CPU.
    fn within(&self, time: Duration) -> Instant {
        Instant::now() + time * self.program.workers_a_cpu()
    }

    /// Waits until each worker has written its byte: that it has attached, or stands at a gate.
    fn all_say_so(&mut self, deadline: Instant) -> Result<(), Stop> {
        let mut said = 0;
        while said < self.children.len() {
            let mut bytes = [0u8; 64];
            let ready = self.provision.ready_read.as_fd();
            let readable = wait_for_change(self.children, Some(self.signals), Some(ready), Some(deadline));
            self.check(Some(deadline))?;
            if readable && let Ok(count) = read(&self.provision.ready_read, &mut bytes) {
                said += count;
            }
        }
        Ok(())
    }

    /// Waits for a line, as long as it takes: nobody runs, and no deadline holds.
    fn wait_for_line(&mut self, held: &HeldArm<'_>) -> Result<(), Stop> {
        loop {
            let input = held.hold.to_wait_for();
            let readable = input.is_none() || wait_for_change(self.children, Some(self.signals), input, None);
            self.check(None)?;
            match readable.then(|| held.hold.take()) {
                Some(Input::Line) => return Ok(()),
                Some(Input::End) => return Err(Stop::Interrupted),
                Some(Input::Nothing) | None => {}
            }
        }
    }

    /// Whether anything says stop, the deadline last.
    fn check(&mut self, deadline: Option<Instant>) -> Result<(), Stop> {
        // First: a death that was planned may be why another worker ended.
        self.note_departures()?;
        check(self.children, self.signals)?;
        match deadline {
            Some(deadline) if Instant::now() >= deadline => {
                Err(Stop::Stuck(describe(self.program, &self.provision.segment, self.children)))
            }
            _ => Ok(()),
        }
    }
}

impl Watch<'_> {
    /// A worker that died as planned never leaves the window by itself: it is counted as having left. If it held a lock
    /// that only its owner can give back, the run is over.
    fn note_departures(&mut self) -> Result<(), Stop> {
        let has_died = |c: &mut Child| {
            c.poll_status();
            c.died_as_planned().then_some(c.index)
        };
        let died: Vec<u32> = self.children.iter_mut().filter_map(has_died).collect();
        let control = self.provision.segment.control();
        for _ in self.departed..died.len() {
            control.arrive_left(self.program.workers.len() as u32);
        }
        if died.len() > self.departed {
            self.departed = died.len();
            let locks = &self.program.locks;
            let lost = |index: &u32| locks.get(*index as usize).is_some_and(|lock| !lock.kind.is_robust());
            let orphan = |owner: &u32| Some((*owner, self.provision.segment.holds(*owner).into_iter().find(lost)?));
            if let Some((owner, lock)) = died.iter().find_map(orphan) {
                return self.orphaned(owner, lock);
            }
        }
        Ok(())
    }

    fn orphaned(&mut self, owner: u32, lock: u32) -> Result<(), Stop> {
        let deadline = Instant::now() + ORPHAN_TIME;
        while Instant::now() < deadline {
            wait_for_change(self.children, Some(self.signals), None, Some(deadline));
            if self.signals.pending() {
                return Err(Stop::Interrupted);
            }
        }
        // A lock that was changing hands just then is with its new owner by now.
        if !self.provision.segment.holds(owner).contains(&lock) {
            return Ok(());
        }
        let named = |index: u32| self.children.iter().find(|c| c.index == index).map_or("?", |c| c.name.as_str());
        // Also those that ended meanwhile: glibc aborts who waits for a priority-inheriting mutex whose owner died.
        let waits = |c: &&Child| !c.died_as_planned() && self.provision.segment.slot(c.index).waits_for() == Some(lock);
        let waiters: Vec<&str> = self.children.iter().filter(waits).map(|c| c.name.as_str()).collect();
        let placed = &self.program.locks[lock as usize];
        Err(Stop::Orphaned(format!(
            "{} died holding lock `{}` of kind {}, which nobody can take over; {}: use `kind = \"pthread-robust\"`, \
             whose next owner is told and goes on",
            named(owner),
            placed.name,
            placed.kind.name(),
            match waiters.is_empty() {
                true => "nobody was waiting for it yet".to_owned(),
                false => format!("waiting for it: {}", waiters.join(", ")),
            }
        )))
    }
}

/// Sleeps until a living child ends, a signal comes, `input` has bytes or ends (then true), or the deadline passes.
fn wait_for_change(
    children: &[Child],
    signals: Option<&Signals>,
    input: Option<BorrowedFd<'_>>,
    deadline: Option<Instant>,
) -> bool {
    let mut fds: Vec<PollFd<'_>> = Vec::with_capacity(children.len() + 2);
    fds.extend(input.map(|input| PollFd::new(input, PollFlags::POLLIN)));
    fds.extend(signals.map(|s| PollFd::new(s.as_fd(), PollFlags::POLLIN)));
    let living = children.iter().filter(|c| c.status.is_none());
    fds.extend(living.map(|c| PollFd::new(c.pidfd.as_fd(), PollFlags::POLLIN)));
    let timeout = deadline.map_or(PollTimeout::NONE, |deadline| {
        let left = deadline.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
        PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)
    });
    match poll(&mut fds, timeout) {
        Ok(0) | Err(Errno::EINTR) => false,
        Ok(_) => input.is_some() && fds[0].any().unwrap_or(false),
        Err(_) => {
            // ENOMEM alone is left: try again, without spinning.
            std::thread::sleep(Duration::from_millis(10));
            false
        }
    }
}

/// Whether anything says stop. A worker that failed by itself is named before one that only left with it.
fn check(children: &mut [Child], signals: &Signals) -> Result<(), Stop> {
    if signals.pending() {
        return Err(Stop::Interrupted);
    }
    let ended: Vec<(usize, WaitStatus)> =
        children.iter_mut().enumerate().filter_map(|(nth, c)| Some((nth, c.poll_status()?))).collect();
    let ended: Vec<(usize, WaitStatus)> =
        ended.into_iter().filter(|(nth, _)| !children[*nth].died_as_planned()).collect();
    let killed = ended.iter().find(|(_, status)| matches!(status, WaitStatus::Signaled(..)));
    let failed = ended.iter().find(|(_, status)| !matches!(status, WaitStatus::Exited(_, 0)));
    match killed.or(failed) {
        Some(&(nth, status)) => Err(Stop::Ended { nth, how: words(status) }),
        None => Ok(()),
    }
}

fn words(status: WaitStatus) -> String {
    match status {
        WaitStatus::Signaled(_, signal, _) => format!("was killed by {signal}"),
        WaitStatus::Exited(_, code) => format!("exited with status {code}"),
        other => format!("ended: {other:?}"),
    }
}

/// What each living worker was doing.
fn describe(program: &Program, segment: &Segment, children: &mut [Child]) -> String {
    let living = children.iter_mut().filter_map(|child| match child.poll_status() {
        None => Some(format!("{} was {}", child.name, state_of(program, segment, child.index))),
        Some(_) => None,
    });
    let living: Vec<String> = living.collect();
    let more = living.len().saturating_sub(MOST_NAMED);
    let named = living[..living.len() - more].join("; ");
    let why = match program.locks.is_empty() && !program.workers.iter().any(WorkerProgram::can_block) {
        true => "is a worker stopped (`ps`, state T), or the machine overloaded?",
        false => {
            "does a step wait for what no other role does, do locks form a circle, or is a worker stopped (`ps`, state T)?"
        }
    };
    match more {
        0 => format!("{named}; {why}"),
        more => format!("{named}; and {more} more; {why}"),
    }
}

/// Where a worker stood, and which locks it held or waited for, from its slot.
pub(crate) fn state_of(program: &Program, segment: &Segment, worker: u32) -> String {
    let slot = segment.slot(worker);
    let lock = |index: u32| program.locks.get(index as usize).map_or("?".to_owned(), |lock| format!("`{}`", lock.name));
    let mut text = slot.state().words().to_owned();
    let holds: Vec<String> = segment.holds(worker).into_iter().map(lock).collect();
    if !holds.is_empty() {
        text.push_str(&format!(", holding lock {}", holds.join(", ")));
    }
    if let Some(waits_for) = slot.waits_for() {
        text.push_str(&format!(", waiting for lock {}", lock(waits_for)));
    }
    text
}
