//! Who comes and goes while the segment is watched: processes that begin to map it, end, execute another program, or unmap
//! it. A thread of its own looks twenty times a second, so that who stays for less may be missed.

use crate::counts::{Chosen, ProcessCounts, Totals};
use crate::segment::Key;
use crate::target::{Looked, Target, look, of_segment};
use crate::{access, cpu_clock, pidfd};
use host::{Image, Root};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use record::{AttachNote, AttachedProcess, ProcessEnd};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Between two looks, milliseconds: each reads the maps of those who are watched, which stops none of them but can make an
/// mmap of theirs wait for some microseconds.
const TICK_MS: u8 = 50;

/// Between two looks at all processes, and not only at those watched and those just born; and how much longer than such a
/// look itself, so that on a machine of thousands of processes it takes no more than a fiftieth of a CPU.
const BETWEEN_CENSUSES: Duration = Duration::from_secs(1);
const CENSUSES_A_REST: u32 = 50;

/// What is asked of the lookout.
pub(crate) struct Lookout<'a> {
    root: &'a Root,
    key: Key,
    chosen: &'a Chosen,
    /// These alone, where a user named processes.
    pids: &'a [u32],
    began: Instant,
    tell: &'a (dyn Fn(News<'_>) + Sync),
    seen: Mutex<Seen>,
}

/// What happens while a watch goes on.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum News<'a> {
    /// A phase begins, and how long it may take.
    Phase(Phase, Duration),
    /// A process began to map the segment: its number and its name.
    Joined(u32, &'a str),
    /// A process left.
    Left(u32, &'a str, ProcessEnd),
}

/// What a watch is doing.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Counting alone, before anything costs.
    Baseline,
    /// Finding out who touches what: samples first.
    Touch,
    /// Proving it by breakpoints.
    Proof,
    /// Watching who waits for whom.
    Waits,
    /// Counting every acquisition, where that was asked for.
    Probe,
    /// Counting alone again.
    After,
}

#[derive(Default)]
struct Seen {
    watched: Vec<Watched>,
    /// Numbers of all processes at the last look.
    known: BTreeSet<u32>,
    /// The phase that runs: the last edge that was marked.
    phase: usize,
    notes: Vec<AttachNote>,
}

/// One process, from when it was first seen to map the segment.
struct Watched {
    target: Target,
    image: Image,
    command: String,
    executable: Option<String>,
    pid_inside: Option<u32>,
    threads: BTreeSet<u32>,
    counts: ProcessCounts,
    joined: Option<Instant>,
    ended: Option<(ProcessEnd, Instant)>,
    /// By phase: how it stood when that phase began, or when it joined in it.
    edges: BTreeMap<usize, Edge>,
}

/// How a process stood at one moment.
#[derive(Clone)]
struct Edge {
    at: Instant,
    cpu_ns: Option<u64>,
    totals: Totals,
}

impl<'a> Lookout<'a> {
    /// Opens counters on the targets and marks the first edge.
    pub(crate) fn begin(
        root: &'a Root,
        chosen: &'a Chosen,
        pids: &'a [u32],
        key: Key,
        targets: Vec<Target>,
        tell: &'a (dyn Fn(News<'_>) + Sync),
    ) -> Lookout<'a> {
        let known = host::process_numbers(root).into_iter().collect();
        let seen = Mutex::new(Seen { known, ..Seen::default() });
        let lookout = Lookout { root, key, chosen, pids, began: Instant::now(), tell, seen };
        for target in targets {
            // What runs there now, read again: the target was found a moment ago.
            if let Looked::Maps(target, maps) = look(root, target.pid, key) {
                lookout.add(&mut lookout.seen(), *target, maps.image(), None);
            }
        }
        lookout
    }

    /// When it began.
    pub(crate) fn began(&self) -> Instant {
        self.began
    }

    /// Looks until `stop` is closed at its other end. For a thread of its own.
    pub(crate) fn run(&self, stop: impl AsFd) {
        let mut next_census = Instant::now() + BETWEEN_CENSUSES;
        let mut fds = [PollFd::new(stop.as_fd(), PollFlags::empty())];
        while poll(&mut fds, PollTimeout::from(TICK_MS)) != Ok(1) {
            let now = Instant::now();
            let all = now >= next_census;
            self.look(all);
            if all {
                next_census = Instant::now() + BETWEEN_CENSUSES.max(now.elapsed() * CENSUSES_A_REST);
            }
        }
    }

    /// Looks once: at those watched and at newcomers; where `all`, at every process.
    pub(crate) fn look(&self, all: bool) {
        let mut seen = self.seen();
        seen.watched.iter_mut().for_each(|one| self.look_at(one));
        if !self.pids.is_empty() {
            return;
        }
        let now: BTreeSet<u32> = host::process_numbers(self.root).into_iter().collect();
        let new: Vec<u32> = now.iter().copied().filter(|pid| all || !seen.known.contains(pid)).collect();
        seen.known = now;
        for pid in new {
            let is_watched = |one: &Watched| one.target.pid == pid && one.is_same_program();
            if seen.watched.iter().any(is_watched) {
                continue;
            }
            if let Looked::Maps(target, maps) = look(self.root, pid, self.key) {
                self.add(&mut seen, *target, maps.image(), Some(Instant::now()));
            }
        }
    }

    fn add(&self, seen: &mut Seen, target: Target, image: Image, joined: Option<Instant>) {
        let pid = target.pid;
        let counts = ProcessCounts::open(self.root, self.chosen, &target);
        seen.notes.extend(self.note_on(pid, &counts));
        let mut one = Watched {
            image,
            command: host::command_of(self.root, pid).unwrap_or_default(),
            executable: host::executable_of(self.root, pid),
            pid_inside: host::pid_inside(self.root, pid),
            threads: target.threads.iter().copied().collect(),
            target,
            counts,
            joined,
            ended: None,
            edges: BTreeMap::new(),
        };
        one.mark(seen.phase, self.chosen);
        if joined.is_some() {
            (self.tell)(News::Joined(pid, &one.command));
        }
        // It may have left while its counters were being opened.
        self.look_at(&mut one);
        seen.watched.push(one);
    }

    fn look_at(&self, one: &mut Watched) {
        let before = one.ended.map(|(end, _)| end);
        one.look(self.root, self.key);
        match one.ended.map(|(end, _)| end) {
            Some(end) if before != Some(end) => (self.tell)(News::Left(one.target.pid, &one.command, end)),
            None if before.is_some() => (self.tell)(News::Joined(one.target.pid, &one.command)),
            _ => {}
        }
    }

    fn note_on(&self, pid: u32, counts: &ProcessCounts) -> Option<AttachNote> {
        let text = || {
            format!(
                "{} began {} thread(s) while its counters were being opened, which may be missing from its counts",
                access::named(self.root, pid),
                counts.unclear
            )
        };
        let cure = Some("watch again".to_owned());
        (counts.unclear > 0).then(|| AttachNote { id: "threads_born".to_owned(), pid: Some(pid), text: text(), cure })
    }

    /// Marks that phase `phase` begins.
    pub(crate) fn mark(&self, phase: usize) {
        self.look(true);
        let mut seen = self.seen();
        seen.phase = phase;
        seen.watched.iter_mut().for_each(|one| one.mark(phase, self.chosen));
    }

    /// Those that map the segment now, for a step that watches them.
    pub(crate) fn targets(&self) -> Vec<Target> {
        let seen = self.seen();
        let present = seen.watched.iter().filter(|one| one.ended.is_none());
        let mut targets: Vec<Target> = present.filter_map(|one| one.target.try_clone().ok()).collect();
        targets.sort_by_key(|target| target.pid);
        targets
    }

    /// Whether nobody is left who maps it.
    pub(crate) fn is_deserted(&self) -> bool {
        self.seen().watched.iter().all(|one| one.ended.is_some())
    }

    /// Nanoseconds of CPU time that all together took in one phase.
    pub(crate) fn cpu_ns(&self, phase: usize) -> u64 {
        self.seen().watched.iter().filter_map(|one| one.cpu_in(phase)).map(|(ns, _)| ns).sum()
    }

    /// What was seen, ascending by pid, and what is to be said of it.
    pub(crate) fn into_processes(self) -> (Vec<AttachedProcess>, Vec<AttachNote>) {
        let Seen { mut watched, notes, .. } = self.seen.into_inner().unwrap_or_else(PoisonError::into_inner);
        watched.sort_by_key(|one| (one.target.pid, one.joined));
        (watched.into_iter().map(|one| one.record(self.chosen, self.began)).collect(), notes)
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        // A look that panicked has lost at most what it was about to note.
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watched {
    fn is_same_program(&self) -> bool {
        self.ended.is_none_or(|(end, _)| end == ProcessEnd::Unmapped)
    }

    /// Looks whether it still maps the segment, and where.
    fn look(&mut self, root: &Root, key: Key) {
        if !self.is_same_program() {
            return;
        }
        let now = host::mappings(root, self.target.pid);
        if pidfd::has_ended(&self.target.pidfd) {
            return self.end(ProcessEnd::Exited);
        }
        let Ok(now) = now else { return };
        // Between an execve's taking down of the old program and its putting up of the new one there is neither.
        if now.address_bits().is_none() || (now.image() == Image::default() && self.image != Image::default()) {
            return;
        }
        if now.image() != self.image {
            return self.end(ProcessEnd::Executed);
        }
        self.threads.extend(host::thread_numbers(root, self.target.pid));
        let mappings = of_segment(&now, key);
        if mappings.is_empty() {
            return self.end(ProcessEnd::Unmapped);
        }
        self.ended = None;
        self.target.threads = host::thread_numbers(root, self.target.pid);
        self.target.mappings = mappings;
    }

    fn end(&mut self, end: ProcessEnd) {
        if self.ended.is_none_or(|(known, _)| known != end) {
            self.ended = Some((end, Instant::now()));
        }
    }

    fn mark(&mut self, phase: usize, chosen: &Chosen) {
        let cpu_ns = cpu_clock::used_ns(self.target.pid).filter(|_| !pidfd::has_ended(&self.target.pidfd));
        let cpu_ns = cpu_ns.filter(|_| self.is_same_program());
        let totals = self.counts.totals(chosen);
        self.edges.entry(phase).or_insert(Edge { at: Instant::now(), cpu_ns, totals });
    }

    /// A phase's two ends, where it was there for some of it.
    fn span(&self, phase: usize) -> Option<(&Edge, &Edge, f64)> {
        let (from, to) = (self.edges.get(&phase)?, self.edges.get(&(phase + 1))?);
        let until = self.ended.map_or(to.at, |(_, at)| at.min(to.at));
        let seconds = until.saturating_duration_since(from.at).as_secs_f64();
        (seconds > 0.0).then_some((from, to, seconds))
    }

    /// CPU time in a phase and the phase's length, seconds.
    fn cpu_in(&self, phase: usize) -> Option<(u64, f64)> {
        let (from, to, seconds) = self.span(phase)?;
        Some((to.cpu_ns?.saturating_sub(from.cpu_ns?), seconds))
    }

    fn record(self, chosen: &Chosen, began: Instant) -> AttachedProcess {
        let first = self.edges.values().next();
        let last = self.edges.values().next_back();
        let none = Totals::new();
        let (from, to) = (first.map_or(&none, |edge| &edge.totals), last.map_or(&none, |edge| &edge.totals));
        let counters = self.counts.readings(chosen, from, to);
        let until = |edge: &Edge| self.ended.map_or(edge.at, |(_, at)| at.min(edge.at));
        let counted = first.zip(last).map(|(first, last)| until(last).saturating_duration_since(first.at));
        let per_second = counters.iter().filter(|(_, reading)| reading.value().is_some());
        let per_second = per_second.map(|(name, _)| (name.clone(), [0, 1, 2].map(|phase| self.rate(name, phase))));
        AttachedProcess {
            pid: self.target.pid,
            pid_inside: self.pid_inside,
            command: self.command.clone(),
            executable: self.executable.clone(),
            address_bits: self.target.address_bits,
            mappings: self.target.mappings.clone(),
            threads: u32::try_from(self.threads.len()).unwrap_or(u32::MAX),
            joined_ns: self.joined.map(|at| nanoseconds(at.saturating_duration_since(began))),
            ended: self.ended.map(|(end, _)| end),
            unwatched: self.counts.refused(chosen).and_then(|reading| reading.why().map(str::to_owned)),
            per_second: per_second.collect(),
            counted_ns: counted.map_or(0, nanoseconds),
            cpu: [0, 1, 2].map(|phase| self.cpu_in(phase).map(|(ns, seconds)| ns as f64 / 1e9 / seconds)),
            counters,
        }
    }

    fn rate(&self, name: &str, phase: usize) -> Option<f64> {
        let (from, to, seconds) = self.span(phase)?;
        let counted = to.totals.get(name)?.since(*from.totals.get(name)?).value()?;
        Some(counted as f64 / seconds)
    }
}

pub(crate) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
