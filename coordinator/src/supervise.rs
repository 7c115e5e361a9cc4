//! Watching one repetition: until all have attached, have come to a gate, have ended, or until something says stop. In
//! the window this sleeps on pidfds and does nothing else: on two CPUs, more would evict a worker.

use crate::hold::{GATES, HeldArm, Input};
use crate::launch::{Child, Member};
use crate::provision::Provision;
use crate::signals::Signals;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::wait::WaitStatus;
use nix::unistd::read;
use plan::{Program, WorkerProgram};
use shm_layout::{Segment, WorkerState};
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
    /// A process ended before its time: its position in the Program.
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
    /// Processes that died as planned, so far.
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
            held.announce(gate, self.children, &self.provision.segment);
            self.wait_for_line(held)?;
            self.provision.segment.control().open_gate(gate);
            deadline = self.within(lengths + SLACK);
        }
        // Who has ended is looked up in `check` alone: an end that was seen elsewhere would wake nobody.
        while self.children.iter().any(|child| child.status.is_none()) {
            wait_for_change(self.children, Some(self.signals), None, Some(deadline));
            self.check(Some(deadline))?;
        }
        self.check(None)
    }

    /// So much time from now on, for each worker that takes its turn on a CPU.
    fn within(&self, time: Duration) -> Instant {
        Instant::now() + time * self.program.workers_a_cpu()
    }

    /// Waits until each worker has written its byte: that it has attached, or stands at a gate. Not for the dead.
    fn all_say_so(&mut self, deadline: Instant) -> Result<(), Stop> {
        let mut said = 0;
        while said + self.silent() < self.program.workers.len() {
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

    /// Workers that died as planned before they came to a gate.
    fn silent(&self) -> usize {
        let dead = self.children.iter().filter(|child| child.died_as_planned()).flat_map(Child::indices);
        dead.filter(|worker| self.provision.segment.slot(*worker).state() != WorkerState::Held).count()
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
        self.children.iter_mut().for_each(|child| _ = child.poll_status());
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
    /// Workers of a process that died as planned never leave the window by themselves: those that had not yet are
    /// counted as having left. If one held a lock that only its owner can give back, the run is over.
    fn note_departures(&mut self) -> Result<(), Stop> {
        let died = || self.children.iter().filter(|child| child.died_as_planned());
        let count = died().count();
        if count > self.departed {
            self.departed = count;
            self.leave_for_the_dead();
            let died: Vec<u32> = died().flat_map(Child::indices).collect();
            let locks = &self.program.locks;
            let lost = |index: &u32| locks.get(*index as usize).is_some_and(|lock| !lock.kind.is_robust());
            let orphan =
                |owner: &u32| Some((*owner, self.provision.segment.slot(*owner).holds().into_iter().find(lost)?));
            if let Some((owner, lock)) = died.iter().find_map(orphan) {
                return self.orphaned(owner, lock);
            }
        }
        Ok(())
    }

    /// Arrives at the window's end for each worker that will not, once.
    fn leave_for_the_dead(&self) {
        let segment = &self.provision.segment;
        for worker in self.children.iter().filter(|child| child.died_as_planned()).flat_map(Child::indices) {
            if segment.slot(worker).state() == WorkerState::Running {
                segment.slot(worker).set_state(WorkerState::Left);
                segment.control().arrive_left(self.program.workers.len() as u32);
            }
        }
    }

    fn orphaned(&mut self, owner: u32, lock: u32) -> Result<(), Stop> {
        let deadline = Instant::now() + ORPHAN_TIME;
        while Instant::now() < deadline {
            wait_for_change(self.children, Some(self.signals), None, Some(deadline));
            if self.signals.pending() {
                return Err(Stop::Interrupted);
            }
        }
        let members = || self.children.iter().flat_map(|child| &child.workers);
        let named = |index: u32| members().find(|member| member.index == index).map_or("?", |member| &member.name);
        // Also those that ended meanwhile: glibc aborts who waits for a priority-inheriting mutex whose owner died.
        let others = self.children.iter().filter(|child| !child.died_as_planned()).flat_map(|child| &child.workers);
        let waits = |member: &&Member| self.provision.segment.slot(member.index).waits_for() == Some(lock);
        let waiters: Vec<&str> = others.filter(waits).map(|member| member.name.as_str()).collect();
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
fn check(children: &[Child], signals: &Signals) -> Result<(), Stop> {
    if signals.pending() {
        return Err(Stop::Interrupted);
    }
    let unplanned = children.iter().enumerate().filter(|(_, child)| !child.died_as_planned());
    let ended: Vec<(usize, WaitStatus)> = unplanned.filter_map(|(nth, child)| Some((nth, child.status?))).collect();
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
    children.iter_mut().for_each(|child| _ = child.poll_status());
    let members = children.iter().filter(|child| child.status.is_none()).flat_map(|child| &child.workers);
    let said = |member: &Member| format!("{} was {}", member.name, state_of_worker(program, segment, member.index));
    let living: Vec<String> = members.map(said).collect();
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

/// Where the workers of a process stood, to follow "while".
pub(crate) fn state_of(program: &Program, segment: &Segment, child: &Child) -> String {
    let state = |member: &Member| state_of_worker(program, segment, member.index);
    match child.workers.as_slice() {
        [only] => state(only),
        several => {
            let more = several.len().saturating_sub(MOST_NAMED);
            let named = several[..several.len() - more].iter();
            let named: Vec<String> = named.map(|one| format!("worker {} was {}", one.index, state(one))).collect();
            let more = if more > 0 { format!(" and {more} more were with them") } else { String::new() };
            format!("{}{more}", named.join("; "))
        }
    }
}

/// Where a worker stood, and which locks it held or waited for, from its slot.
fn state_of_worker(program: &Program, segment: &Segment, worker: u32) -> String {
    let slot = segment.slot(worker);
    let lock = |index: u32| program.locks.get(index as usize).map_or("?".to_owned(), |lock| format!("`{}`", lock.name));
    let mut text = slot.state().words().to_owned();
    let holds: Vec<String> = slot.holds().into_iter().map(lock).collect();
    if !holds.is_empty() {
        text.push_str(&format!(", holding lock {}", holds.join(", ")));
    }
    if let Some(waits_for) = slot.waits_for() {
        text.push_str(&format!(", waiting for lock {}", lock(waits_for)));
    }
    text
}
