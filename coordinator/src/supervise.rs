//! Watching one repetition: until all have attached, have come to a gate, have ended, or until something says stop. In
//! the window this sleeps on pidfds and does nothing else: on two CPUs, more would evict a worker.

use crate::aftermath::{self, Legacy};
use crate::circle;
use crate::hold::{GATES, HeldArm, Input};
use crate::launch::{Child, Member, name_among};
use crate::provision::Provision;
use crate::signals::Signals;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::wait::WaitStatus;
use nix::unistd::read;
use plan::{Program, WorkerProgram};
use shm_layout::{Segment, WorkerState};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// From the start of the workers until all have attached, beyond what they populate. With [`SLACK`] 35 s beyond the window,
/// warm-up and two of the longest passes; a worker's own timer, which starts with it, allows 40 s beyond the same
/// (`worker`'s lifeline). So the coordinator acts first, and says who was where; the timers are for when it cannot.
const ATTACH_TIME: Duration = Duration::from_secs(15);
/// From the release until all have ended, beyond the window, warm-up and two of the longest passes. The probes take a tenth
/// of a second; with four others' busy threads on each CPU they take several, since two workers have to meet.
const SLACK: Duration = Duration::from_secs(20);
/// Workers that a message names one by one.
const MOST_NAMED: usize = 4;
/// What workers get to leave by themselves when the repetition is given up, before they are killed.
const LEAVE_TIME: Duration = Duration::from_millis(300);
/// From the release until it is first asked why not all have ended, beyond the same; and from then on again.
const LATE_TIME: Duration = Duration::from_secs(1);
/// A circle of waiting workers that is seen twice, so far apart, stands: whoever was just handed a lock has said so.
const CIRCLE_TIME: Duration = Duration::from_millis(100);
/// Who waits for a mutex may be aborted for its owner's death, and be gone before that owner: so long one is awaited that
/// died otherwise.
const CAUSE_TIME: Duration = Duration::from_millis(100);

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
        /// How far it had come, what it held and waited for, and what became of that.
        state: String,
        /// What may have been the reason, as a question.
        why: &'static str,
        /// Whether the others wait for what nobody can get any more.
        lost: bool,
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
    if let Err(stop) = &outcome {
        provision.segment.control().abort();
        // Who waits in a call of the C library for a lock that is lost cannot leave, and has nothing to say.
        let leave_time = match stop {
            Stop::Orphaned(_) | Stop::Ended { lost: true, .. } => Duration::ZERO,
            _ => LEAVE_TIME,
        };
        let deadline = Instant::now() + leave_time;
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
        self.all_say_so(self.within(ATTACH_TIME + self.program.longest_populate().duration()))?;
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
        let mut late = self.within(lengths + LATE_TIME);
        // Who has ended is looked up in `check` alone: an end that was seen elsewhere would wake nobody.
        while self.children.iter().any(|child| child.status.is_none()) {
            wait_for_change(self.children, Some(self.signals), None, Some(deadline.min(late)));
            self.check(Some(deadline))?;
            if Instant::now() >= late {
                self.check_circle()?;
                late = Instant::now() + LATE_TIME;
            }
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
            if readable && let Ok(count) = read(&self.provision.ready_read, &mut bytes) {
                // They have said so in time, however late this process, which may have been stopped, comes to read it.
                said += count;
                self.check(None)?;
            } else {
                self.check(Some(deadline))?;
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
        if self.signals.pending() {
            return Err(Stop::Interrupted);
        }
        if let Some(first) = failed(self.children) {
            return Err(self.ended(first).unwrap_or_else(|stop| stop));
        }
        // Who has ended is not late, however late this process, which may have been stopped, comes to see it.
        let awaited = self.children.iter().any(|child| child.status.is_none());
        match deadline {
            Some(deadline) if awaited && Instant::now() >= deadline => {
                Err(Stop::Stuck(describe(self.program, &self.provision.segment, self.children)))
            }
            _ => Ok(()),
        }
    }

    /// Ends a repetition that nothing else can: workers that wait for each other.
    fn check_circle(&mut self) -> Result<(), Stop> {
        let find = |watch: &mut Watch<'_>| circle::find(watch.program, &watch.provision.segment, watch.children);
        let Some(first) = find(self) else { return Ok(()) };
        pause(self.children, self.signals, Instant::now() + CIRCLE_TIME)?;
        match find(self).filter(|again| *again == first) {
            Some(circle) => Err(Stop::Stuck(circle.words(self.program, self.children))),
            None => Ok(()),
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
            let is_lost = |lock: &u32| locks.get(*lock as usize).is_some_and(|lock| !lock.kind.is_robust());
            if died.iter().any(|owner| self.provision.segment.holds(*owner).iter().any(is_lost)) {
                let lost = self.legacies(&died)?.into_iter().find(|legacy| legacy.lost);
                return lost.map_or(Ok(()), |lost| Err(self.orphaned(&lost)));
            }
        }
        Ok(())
    }

    /// What became of the locks of workers that have died.
    fn legacies(&mut self, dead: &[u32]) -> Result<Vec<Legacy>, Stop> {
        let Watch { program, provision, children, signals, .. } = self;
        aftermath::look(program, &provision.segment, children, dead, |children, until| pause(children, signals, until))
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

    fn orphaned(&self, lost: &Legacy) -> Stop {
        let named = name_among(self.children, lost.dead);
        Stop::Orphaned(format!(
            "{named} died {}: use `kind = \"pthread-robust\"`, whose next owner is told and goes on",
            lost.words
        ))
    }

    /// A worker has ended that was not to, as seen `first`: which one is the cause, and what became of what it held.
    ///
    /// # Errors
    /// What says stop for another reason meanwhile.
    fn ended(&mut self, first: (usize, WaitStatus)) -> Result<Stop, Stop> {
        let aborted = |status: WaitStatus| matches!(status, WaitStatus::Signaled(_, Signal::SIGABRT, _));
        let deadline = Instant::now() + CAUSE_TIME;
        while failed(self.children).is_some_and(|(_, status)| aborted(status)) && Instant::now() < deadline {
            pause(self.children, self.signals, deadline)?;
            self.note_departures()?;
        }
        let (nth, status) = failed(self.children).unwrap_or(first);
        let dead: Vec<u32> = self.children[nth].indices().collect();
        let legacies = self.legacies(&dead)?;
        let lost = legacies.iter().any(|legacy| legacy.lost);
        let states: Vec<String> = dead
            .iter()
            .map(|index| {
                let mut parts = vec![self.provision.segment.slot(*index).state().words().to_owned()];
                parts.extend(legacies.iter().filter(|of| of.dead == *index).map(|legacy| legacy.words.clone()));
                parts.join(", ")
            })
            .collect();
        Ok(Stop::Ended { nth, how: words(status), state: of_each(&dead, states), why: reason(status), lost })
    }
}

/// Passes the time until then, and notes who ends; a signal to the run ends it at once.
fn pause(children: &mut [Child], signals: &Signals, until: Instant) -> Result<(), Stop> {
    wait_for_change(children, Some(signals), None, Some(until));
    for child in children {
        child.poll_status();
    }
    if signals.pending() { Err(Stop::Interrupted) } else { Ok(()) }
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

/// The worker that ended and was not to, by its position: of several the one that is most likely the cause. One that was
/// killed comes before one that glibc aborted, as it does to those who wait for some mutexes of the dead, and both before
/// one that failed by itself, which has left word of it.
fn failed(children: &mut [Child]) -> Option<(usize, WaitStatus)> {
    let ended = children.iter_mut().enumerate().filter_map(|(nth, c)| Some((nth, c.poll_status()?)));
    let ended: Vec<(usize, WaitStatus)> = ended.collect();
    let rank = |status: &WaitStatus| match status {
        WaitStatus::Exited(_, 0) => None,
        WaitStatus::Signaled(_, Signal::SIGABRT, _) => Some(1),
        WaitStatus::Signaled(..) => Some(0),
        _ => Some(2),
    };
    let unplanned = ended.into_iter().filter(|(nth, _)| !children[*nth].died_as_planned());
    let ranked = unplanned.filter_map(|(nth, status)| Some((rank(&status)?, nth, status)));
    ranked.min_by_key(|(rank, nth, _)| (*rank, *nth)).map(|(_, nth, status)| (nth, status))
}

/// What is said of each worker of a process, to follow "while".
fn of_each(workers: &[u32], said: Vec<String>) -> String {
    if workers.len() == 1 {
        return said.join("");
    }
    let more = workers.len().saturating_sub(MOST_NAMED);
    let named = workers.iter().zip(said).take(MOST_NAMED);
    let named: Vec<String> = named.map(|(worker, state)| format!("worker {worker} was {state}")).collect();
    let more = if more > 0 { format!(" and {more} more were with them") } else { String::new() };
    format!("{}{more}", named.join("; "))
}

fn words(status: WaitStatus) -> String {
    match status {
        WaitStatus::Signaled(_, Signal::SIGALRM, _) => "was ended by its own timer (SIGALRM)".to_owned(),
        WaitStatus::Signaled(_, signal, _) => format!("was killed by {signal}"),
        WaitStatus::Exited(_, code) => format!("exited with status {code}"),
        other => format!("ended: {other:?}"),
    }
}

/// What a worker may have ended of, as a question.
fn reason(status: WaitStatus) -> &'static str {
    match status {
        // It rings after the coordinator's own deadline.
        WaitStatus::Signaled(_, Signal::SIGALRM, _) => {
            "was the run stopped (Ctrl-Z, a debugger, a frozen cgroup), so that nobody could end it in time?"
        }
        _ => "was it killed by hand, by a limit, or for lack of memory (`dmesg`)?",
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
    let workers: Vec<u32> = child.indices().collect();
    of_each(&workers, workers.iter().map(|worker| state_of_worker(program, segment, *worker)).collect())
}

/// Where a worker stood, and which locks it held or waited for, from its slot.
fn state_of_worker(program: &Program, segment: &Segment, worker: u32) -> String {
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
