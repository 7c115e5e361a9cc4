//! The watch: counts before, the steps that touch the targets, counts behind, and what all of it amounts to.

use crate::Fields;
use crate::access::Closed;
use crate::cost;
use crate::counts::Chosen;
use crate::find::Found;
use crate::futex::{self, Probed, Waits};
use crate::lookout::{Lookout, News, Phase, nanoseconds};
use crate::pulse::Pulse;
use crate::symbols::SymbolParser;
use crate::target::{Target, Targets};
use crate::touch::{self, TouchOptions, Touched};
use host::Root;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use record::{
    Attach, AttachNote, AttachedProcess, AttachedSegment, Interval, SCHEMA_VERSION, TouchedLine, WatchCost, WatchedLock,
};
use std::collections::BTreeMap;
use std::thread::Builder;
use std::time::{Duration, Instant};

/// When each phase ends, as a share of the time given: counts alone, who touches what, who waits for whom, and counts alone
/// again. The two at the ends are compared, so they are about as long as each other: reading symbols, and pricing and
/// closing what was opened, takes some of the last quarter.
const BASELINE_ENDS: f64 = 0.15;
const TOUCH_ENDS: f64 = 0.55;
const WAITS_END: f64 = 0.77;
/// Where every acquisition is to be counted, that takes the second half of the third.
const WAITS_END_BEFORE_PROBES: f64 = 0.66;

/// What the last phase has at the least, as a share of the time, however late the others ended: rates of less would be of a
/// moment.
const AFTER_LEAST: f64 = 0.1;

/// How often a phase in which nothing is done looks whether anybody is left to watch.
const NAP: Duration = Duration::from_millis(20);

/// What a watch is asked for.
pub struct WatchOptions<'a> {
    /// How long it takes in all; reading symbols comes on top.
    pub time: Duration,
    /// These processes alone, as they were given to [`crate::find()`]; empty for all that map the segment.
    pub pids: &'a [u32],
    /// [`TouchOptions::penalty`].
    pub penalty: &'a dyn Fn(u32, u32) -> Option<Interval>,
    /// [`TouchOptions::parser`].
    pub parser: Option<&'a SymbolParser>,
    /// The struct that lies in the segment.
    pub fields: Option<&'a Fields>,
    /// Whether every acquisition is counted ([`futex::probe()`]); for this, too, the parser is needed.
    pub uprobes: bool,
    /// Whether to end now, with what was seen until then. Asked from the thread that watches, some fifty times a second but
    /// while it reads symbols.
    pub stop: &'a dyn Fn() -> bool,
}

/// Watches what was found, and tells what happens as it happens, from two threads. It changes nothing in the targets, and
/// when this process ends, be it by a signal, the kernel closes all that was opened on them.
pub fn watch(root: &Root, found: Found, options: &WatchOptions<'_>, tell: &(dyn Fn(News<'_>) + Sync)) -> Attach {
    raise_open_files();
    let Found { targets: Targets { segment, processes }, closed, mut notes } = found;
    notes.extend(processes.iter().filter_map(foreign_addresses));
    let chosen = Chosen::here(root);
    let lookout = Lookout::begin(root, &chosen, options.pids, (segment.device, segment.inode), processes, tell);
    let steps = Steps { root, lookout: &lookout, segment: &segment, options, tell };
    let mut seen = beside(&lookout, || steps.all());
    let watched_ns = nanoseconds(lookout.began().elapsed());
    seen.cost = cost::over(seen.cost, lookout.cpu_ns(1));
    let (mut processes, noted) = lookout.into_processes();
    notes.extend(noted);
    notes.append(&mut seen.notes);
    notes.extend(processes.iter().filter_map(came_late));
    for (pid, closed) in closed {
        processes.push(unseen(root, pid, &closed));
        notes.push(AttachNote {
            id: "not_permitted".to_owned(),
            pid: Some(pid),
            text: closed.why,
            cure: Some(closed.cure),
        });
    }
    processes.sort_by_key(|one| one.pid);
    let Seen { lines, locks, cost, ended_in, .. } = seen;
    let ended_early = ended_in.is_some();
    notes.extend(ended_in.map(|phase| ended(phase, watched_ns, options.time)));
    Attach {
        schema_version: SCHEMA_VERSION,
        segment,
        watched_ns,
        ended_early,
        processes,
        lines,
        locks,
        cost,
        notes,
        scenario: None,
    }
}

/// What the steps saw.
#[derive(Default)]
struct Seen {
    lines: Vec<TouchedLine>,
    locks: Vec<WatchedLock>,
    notes: Vec<AttachNote>,
    cost: WatchCost,
    /// The phase in which it was ended, where it was before its time.
    ended_in: Option<Phase>,
}

/// Runs `work` while the lookout looks in a thread of its own.
fn beside<T>(lookout: &Lookout<'_>, work: impl FnOnce() -> T) -> T {
    let Ok((stopped, stop)) = std::io::pipe() else { return work() }; // no descriptor left: looked at each edge alone
    std::thread::scope(|scope| {
        // No thread more, or no memory for one: as without a descriptor.
        let _ = Builder::new().spawn_scoped(scope, || lookout.run(stopped));
        let _stop = stop; // closed at the end, be it a panic's
        work()
    })
}

/// What the phases work with.
struct Steps<'a> {
    root: &'a Root,
    lookout: &'a Lookout<'a>,
    segment: &'a AttachedSegment,
    options: &'a WatchOptions<'a>,
    tell: &'a (dyn Fn(News<'_>) + Sync),
}

impl Steps<'_> {
    /// The phases, one behind the other, until it is to end.
    fn all(&self) -> Seen {
        self.begin(Phase::Baseline, self.until(BASELINE_ENDS));
        self.rest(self.until(BASELINE_ENDS));
        self.lookout.mark(1);
        if self.is_to_end() {
            return Seen { ended_in: Some(Phase::Baseline), ..Seen::default() };
        }
        let mut seen = self.closely();
        self.lookout.mark(2);
        if seen.ended_in.is_some() {
            return seen;
        }
        let least = self.options.time.mul_f64(AFTER_LEAST);
        let end = self.until(1.0).max(Instant::now() + least);
        self.begin(Phase::After, end);
        let pulse = self.pulse(end, &seen);
        self.lookout.mark(3);
        pulse.tell(&mut seen.lines);
        seen.ended_in = self.ended_in(Phase::After);
        seen
    }

    /// The phases that cost the targets something.
    fn closely(&self) -> Seen {
        let time = self.begin(Phase::Touch, self.until(TOUCH_ENDS));
        let touched = self.touch(time);
        let mut ended_in = self.ended_in(Phase::Touch);
        let (mut waited, mut probed) = (Waits::default(), Probed::default());
        if ended_in.is_none() {
            let until = self.until(if self.options.uprobes { WAITS_END_BEFORE_PROBES } else { WAITS_END });
            self.begin(Phase::Waits, until);
            waited = futex::watch(self.root, &self.targets(), || Instant::now() >= until || self.is_to_end());
            ended_in = self.ended_in(Phase::Waits);
        }
        if ended_in.is_none() {
            probed = self.probe();
            ended_in = self.ended_in(Phase::Probe);
        }
        Seen { ended_in, ..self.seen(touched, waited, probed) }
    }

    fn is_to_end(&self) -> bool {
        (self.options.stop)()
    }

    /// That phase, where the watch is to end in it.
    fn ended_in(&self, phase: Phase) -> Option<Phase> {
        self.is_to_end().then_some(phase)
    }

    fn until(&self, share: f64) -> Instant {
        self.lookout.began() + self.options.time.mul_f64(share)
    }

    /// Says that a phase begins, and how long it has.
    fn begin(&self, phase: Phase, until: Instant) -> Duration {
        let time = until.saturating_duration_since(Instant::now());
        (self.tell)(News::Phase(phase, time));
        time
    }

    /// Waits, as long as anybody maps the segment and it is not to end.
    fn rest(&self, until: Instant) {
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            if self.lookout.is_deserted() || self.is_to_end() {
                return;
            }
            std::thread::sleep(left.min(NAP));
        }
    }

    /// The same, and looks meanwhile at what the words say.
    fn pulse(&self, until: Instant, seen: &Seen) -> Pulse {
        let mut pulse = Pulse::new(&self.targets(), &seen.lines, &seen.locks);
        while let Some(left) = until.checked_duration_since(Instant::now()) {
            if self.lookout.is_deserted() || self.is_to_end() {
                break;
            }
            pulse.look();
            std::thread::sleep(left.min(pulse.rest()));
        }
        pulse
    }

    fn targets(&self) -> Targets {
        Targets { segment: self.segment.clone(), processes: self.lookout.targets() }
    }

    fn touch(&self, time: Duration) -> Touched {
        let targets = self.targets();
        if targets.processes.is_empty() {
            return Touched::default();
        }
        let WatchOptions { penalty, parser, fields, .. } = *self.options;
        let stop = || self.lookout.is_deserted() || self.is_to_end();
        let proving = |time| (self.tell)(News::Phase(Phase::Proof, time));
        touch::watch(&targets, &TouchOptions { time, penalty, parser, fields, stop: &stop, proving: &proving })
    }

    fn probe(&self) -> Probed {
        let Some(parser) = self.options.parser.filter(|_| self.options.uprobes) else { return Probed::default() };
        let until = self.until(WAITS_END);
        self.begin(Phase::Probe, until);
        futex::probe(self.root, &self.targets(), parser, || Instant::now() >= until || self.is_to_end())
    }

    /// What the steps saw, each made whole by the other's: a word that is waited for is a lock, and who spins on it does not
    /// show in the kernel.
    fn seen(&self, mut touched: Touched, mut waited: Waits, probed: Probed) -> Seen {
        probed.enter(&mut waited.locks);
        touched.mark_locks(&waited.locks.iter().map(|lock| lock.offset).collect());
        let mut seen = Seen { lines: touched.lines, locks: waited.locks, ..Seen::default() };
        for lock in &mut seen.locks {
            lock.field = self.options.fields.and_then(|fields| fields.name(lock.offset));
            lock.spinners = touched.spinners.remove(&lock.offset).unwrap_or_default();
        }
        for (notes, cost) in [(touched.notes, touched.cost), (waited.notes, waited.cost), (probed.notes, probed.cost)] {
            seen.notes.extend(notes);
            cost::add(&mut seen.cost, &cost);
        }
        seen
    }
}

/// Every counter on every thread takes a descriptor: as many as this process may have without asking anybody. Where that is
/// refused, readings say what was missing.
fn raise_open_files() {
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

fn foreign_addresses(target: &Target) -> Option<AttachNote> {
    let bits = target.address_bits;
    (bits != usize::BITS).then(|| AttachNote {
        id: "address_bits".to_owned(),
        pid: Some(target.pid),
        text: format!("process {} has addresses of {bits} bits: it is counted and proved as others are", target.pid),
        cure: None,
    })
}

/// A watch that was ended before its time: what it lacks for that.
fn ended(phase: Phase, watched_ns: u64, time: Duration) -> AttachNote {
    let lacks = match phase {
        Phase::Baseline => "nothing was looked at but what the processes count",
        Phase::Touch | Phase::Proof => {
            "who touches what was looked at for a part of its time, and who waits for whom not at all"
        }
        Phase::Waits => "who waits for whom was looked at for a part of its time",
        Phase::Probe => "acquisitions were counted for a part of their time",
        Phase::After => "the rates of the last part are of a shorter time",
    };
    AttachNote {
        id: "ended_early".to_owned(),
        pid: None,
        text: format!(
            "ended early after {:.1} s of {:.1} s, as it was asked to: {lacks}",
            watched_ns as f64 / 1e9,
            time.as_secs_f64()
        ),
        cure: None,
    }
}

/// Who joined while the steps ran was counted from then on, and its accesses were not all seen.
fn came_late(one: &AttachedProcess) -> Option<AttachNote> {
    let joined = Duration::from_nanos(one.joined_ns?);
    Some(AttachNote {
        id: "joined".to_owned(),
        pid: Some(one.pid),
        text: format!(
            "process {} ({}) began to map the segment {:.1} s after the watch began; it is counted from then on, and \
             watched from the next step on",
            one.pid,
            one.command,
            joined.as_secs_f64()
        ),
        cure: Some("watch again to see all of it".to_owned()),
    })
}

/// A named process that is closed to this one.
fn unseen(root: &Root, pid: u32, closed: &Closed) -> AttachedProcess {
    AttachedProcess {
        pid,
        pid_inside: host::pid_inside(root, pid),
        command: host::command_of(root, pid).unwrap_or_default(),
        executable: None,
        address_bits: usize::BITS,
        mappings: Vec::new(),
        threads: u32::try_from(host::thread_numbers(root, pid).len()).unwrap_or(u32::MAX),
        joined_ns: None,
        ended: None,
        unwatched: Some(closed.why.clone()),
        counters: BTreeMap::new(),
        counted_ns: 0,
        per_second: BTreeMap::new(),
        cpu: [None; 3],
    }
}
