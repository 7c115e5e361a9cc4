//! The watch: counts before, the steps that touch the targets, counts behind, and what all of it amounts to.

use crate::access::Closed;
use crate::cost;
use crate::counts::Chosen;
use crate::find::Found;
use crate::lookout::{Lookout, nanoseconds};
use crate::target::{Target, Targets};
use host::Root;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use record::{
    Attach, AttachNote, AttachedProcess, AttachedSegment, SCHEMA_VERSION, TouchedLine, WatchCost, WatchedLock,
};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// When each phase ends, as a share of the time given: counts alone, who touches what, who waits for whom, and counts alone
/// again. The two at the ends are compared, so they are as long as each other.
const BASELINE_ENDS: f64 = 0.15;
const TOUCH_ENDS: f64 = 0.60;
const WAITS_END: f64 = 0.85;

/// How often a phase in which nothing is done looks whether anybody is left to watch.
const NAP: Duration = Duration::from_millis(20);

/// What a watch is asked for.
#[derive(Debug)]
pub struct WatchOptions<'a> {
    /// How long it takes in all.
    pub time: Duration,
    /// These processes alone, as they were given to [`crate::find()`]; empty for all that map the segment.
    pub pids: &'a [u32],
}

/// What a watch is doing.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Counting alone, before anything costs.
    Baseline,
    /// Finding out who touches what.
    Touch,
    /// Watching who waits for whom.
    Waits,
    /// Counting alone again.
    After,
}

/// Watches what was found, and tells `progress` of each phase as it begins and how long it may take. It changes nothing in
/// the targets, and when this process ends, be it by a signal, the kernel closes all that was opened on them.
pub fn watch(
    root: &Root,
    found: Found,
    options: &WatchOptions<'_>,
    progress: &mut dyn FnMut(Phase, Duration),
) -> Attach {
    raise_open_files();
    let Found { targets: Targets { segment, processes }, closed, mut notes } = found;
    notes.extend(processes.iter().filter_map(foreign_addresses));
    let chosen = Chosen::here(root);
    let lookout = Lookout::begin(root, &chosen, options.pids, (segment.device, segment.inode), processes);
    let mut seen = beside(&lookout, || steps(&lookout, &segment, options, progress));
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
    let Seen { lines, locks, cost, .. } = seen;
    Attach { schema_version: SCHEMA_VERSION, segment, watched_ns, processes, lines, locks, cost, notes }
}

/// What the steps saw.
#[derive(Default)]
struct Seen {
    lines: Vec<TouchedLine>,
    locks: Vec<WatchedLock>,
    notes: Vec<AttachNote>,
    cost: WatchCost,
}

/// Runs `work` while the lookout looks in a thread of its own.
fn beside<T>(lookout: &Lookout<'_>, work: impl FnOnce() -> T) -> T {
    let Ok((stopped, stop)) = std::io::pipe() else { return work() }; // no descriptor left: looked at each edge alone
    std::thread::scope(|scope| {
        scope.spawn(|| lookout.run(stopped));
        let _stop = stop; // closed at the end, be it a panic's
        work()
    })
}

/// The phases, one behind the other.
fn steps(
    lookout: &Lookout<'_>,
    segment: &AttachedSegment,
    options: &WatchOptions<'_>,
    progress: &mut dyn FnMut(Phase, Duration),
) -> Seen {
    let until = |share: f64| lookout.began() + options.time.mul_f64(share);
    let mut begin = |phase, end: Instant| {
        let time = end.saturating_duration_since(Instant::now());
        progress(phase, time);
        time
    };
    begin(Phase::Baseline, until(BASELINE_ENDS));
    rest(lookout, until(BASELINE_ENDS));
    lookout.mark(1);
    let targets = || Targets { segment: segment.clone(), processes: lookout.targets() };
    let mut seen = Seen::default();
    let time = begin(Phase::Touch, until(TOUCH_ENDS));
    touch(&targets(), time, &mut seen);
    let time = begin(Phase::Waits, until(WAITS_END));
    waits(&targets(), time, &mut seen);
    lookout.mark(2);
    begin(Phase::After, until(1.0));
    rest(lookout, until(1.0));
    lookout.mark(3);
    seen
}

/// Waits, as long as anybody maps the segment.
fn rest(lookout: &Lookout<'_>, until: Instant) {
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        if lookout.is_deserted() {
            return;
        }
        std::thread::sleep(left.min(NAP));
    }
}

fn touch(targets: &Targets, time: Duration, seen: &mut Seen) {
    let _ = (targets, time, seen);
}

fn waits(targets: &Targets, time: Duration, seen: &mut Seen) {
    let _ = (targets, time, seen);
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
