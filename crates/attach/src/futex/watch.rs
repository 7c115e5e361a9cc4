//! The watch: from opened events to locks with their waits, owners and findings.

use super::call::{Call, LISTED_BYTES, Place, Purpose, listed};
use super::follow::{Began, Follower, Thread, WordSeen};
use super::open::{Opened, Tracepoints, no_tracepoints};
use super::owners::{Looks, Numbers};
use super::places::Places;
use super::stream::{Moment, Stream, What};
use super::{begun, cost, judge, word};
use crate::memory::Memory;
use crate::notes::Notes;
use crate::{Target, Targets, pidfd};
use hdrhistogram::Histogram;
use host::Root;
use nix::time::{ClockId, clock_gettime};
use record::{AttachNote, LockUser, WaitTimes, WatchCost, WatchedLock};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Between two looks at what was written and at the words that are waited for.
const TICK: Duration = Duration::from_millis(5);
/// Words that are looked at each time, those waited for longest first: a look takes about a microsecond.
const MOST_LOOKS: usize = 64;

/// What was seen of the waits for a segment's words.
#[derive(Debug, Default)]
pub struct Waits {
    /// The words that somebody waited for, the longest waits first.
    pub locks: Vec<WatchedLock>,
    /// What could not be seen.
    pub notes: Vec<AttachNote>,
    /// What seeing it has cost the watched.
    pub cost: WatchCost,
}

/// Watches who waits at the segment's words and who wakes them, until all targets have ended or `is_over` says so: it is asked
/// some two hundred times a second, for the first time when everything is seen. `field` is left for others to fill in, and so
/// is `spinners`: what never gets to the kernel is not seen here.
///
/// Threads and processes that the targets start meanwhile are watched with them. Nothing is left in the targets when it ends,
/// be it by a signal.
pub fn watch(root: &Root, targets: &Targets, mut is_over: impl FnMut() -> bool) -> Waits {
    let mut notes = Notes::default();
    let tracepoints = match Tracepoints::look_up(root) {
        Ok(tracepoints) => tracepoints,
        Err(error) => {
            no_tracepoints(&mut notes, &error);
            return Waits { notes: notes.into_list(), ..Waits::default() };
        }
    };
    let from_ns = now();
    let mut opened = Opened::on(root, targets, tracepoints.clone(), &mut notes);
    if opened.is_empty() {
        return Waits { notes: notes.into_list(), ..Waits::default() };
    }
    let mut watcher = Watcher::new(root, targets, from_ns, &mut notes);
    while !is_over() && !targets.processes.iter().all(|target| pidfd::has_ended(&target.pidfd)) {
        std::thread::sleep(TICK);
        let moments = watcher.stream.drain(&mut opened, now());
        watcher.follow(moments);
        watcher.look_at_waited();
    }
    opened.stop();
    let until_ns = now();
    let moments = watcher.stream.finish(&mut opened);
    watcher.follow(moments);
    let per_event_ns = cost::per_event_ns(root, &tracepoints);
    drop(opened);
    watcher.told(until_ns, per_event_ns, notes)
}

/// CLOCK_MONOTONIC, nanoseconds, as the kernel's records have it.
pub(super) fn now() -> u64 {
    let time = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(Duration::ZERO, Duration::from);
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

struct Watcher<'a> {
    targets: &'a Targets,
    from_ns: u64,
    memories: BTreeMap<u32, Memory>,
    places: Places,
    numbers: Numbers,
    stream: Stream,
    follower: Follower,
    looks: BTreeMap<u64, Looks>,
}

impl<'a> Watcher<'a> {
    /// To be made once the events are on: it asks who waits already.
    fn new(root: &Root, targets: &'a Targets, from_ns: u64, notes: &mut Notes) -> Watcher<'a> {
        let mut watcher = Watcher {
            targets,
            from_ns,
            memories: BTreeMap::new(),
            places: Places::new(root, targets, from_ns),
            numbers: Numbers::new(root),
            stream: Stream::default(),
            follower: Follower::new(from_ns),
            looks: BTreeMap::new(),
        };
        for target in &targets.processes {
            watcher.take_up(root, target, notes);
        }
        watcher
    }

    fn take_up(&mut self, root: &Root, target: &Target, notes: &mut Notes) {
        let memory = Memory::of(target.pid);
        if let Some(closed) = crate::access::closed_memory(root, target.pid) {
            let text = format!("who owns the locks is not read in it: {}", closed.why);
            notes.add("memory_closed", Some(target.pid), text, Some(&closed.cure));
        }
        let threads: BTreeSet<u32> =
            target.threads.iter().copied().chain(host::thread_numbers(root, target.pid)).collect();
        for tid in threads {
            let thread = Thread { pid: target.pid, tid };
            self.numbers.add(thread);
            if let Some((word, private)) = begun::waits_at(root, target, tid) {
                // After the look: it may have begun just before that, and then its beginning is recorded.
                self.stream.add(Moment { at: now(), thread, what: What::Found { word, private } });
            }
        }
        // Asked behind the opening: what was opened is this process's, if it has not ended.
        if !pidfd::has_ended(&target.pidfd) {
            self.memories.insert(target.pid, memory);
        }
    }

    fn follow(&mut self, moments: Vec<Moment>) {
        for Moment { at, thread, what } in moments {
            match what {
                What::Enter(call) => {
                    let began = call.map_or(Began::Elsewhere, |call| self.located(thread, at, call));
                    self.follower.began(thread, at, began);
                }
                What::Exit(value) => self.follower.returned(thread, at, value),
                What::Found { word, private } => self.follower.waits_already(thread, word, private),
                What::Born { parent } => {
                    self.places.born(thread, parent);
                    self.numbers.add(thread);
                }
                What::Ended => self.follower.gone(thread, at, true),
                What::Executed => {
                    self.places.executed(thread.pid);
                    self.follower.gone(thread, at, false);
                }
            }
        }
    }

    /// A call with its words as offsets; those elsewhere are left out.
    fn located(&mut self, thread: Thread, at: u64, call: Call) -> Began {
        let Call { purpose, place, inherits_priority, private } = call;
        let addresses = match place {
            Place::At(first, also) => [Some(first), also].into_iter().flatten().collect(),
            // Read behind its beginning: the caller keeps the list until the call returns, and rarely changes it.
            Place::Listed { array, count } => self.listed(thread.pid, array, count),
        };
        let offset = |address| self.places.offset(thread.pid, address, at, !private);
        let words: Vec<u64> = addresses.into_iter().filter_map(offset).collect();
        match purpose {
            _ if words.is_empty() => Began::Elsewhere,
            Purpose::Wait => Began::Waiting { words, private, inherits_priority },
            Purpose::Wake { moves } => Began::Waking { words, moves, inherits_priority },
        }
    }

    fn listed(&self, pid: u32, array: u64, count: u32) -> Vec<u64> {
        let mut bytes = vec![0; count as usize * LISTED_BYTES];
        let read = self.memories.get(&pid).is_some_and(|memory| memory.now(array, &mut bytes));
        if read { listed(&bytes) } else { Vec::new() }
    }

    fn look_at_waited(&mut self) {
        let mut waited: Vec<(u64, u64)> =
            self.follower.words.iter().filter_map(|(offset, seen)| waits_since(*offset, seen)).collect();
        waited.sort_unstable();
        for (_, offset) in waited.into_iter().take(MOST_LOOKS) {
            self.look(offset);
        }
    }

    fn look(&mut self, offset: u64) {
        let (inherits, waited) = self
            .follower
            .words
            .get(&offset)
            .map_or((false, false), |seen| (seen.inherits_priority, !seen.waiting.is_empty()));
        if let Some(word) = self.read(offset, inherits) {
            self.looks.entry(offset).or_default().note(now(), word, waited);
        }
    }

    /// What a word is now, by the first process in which it can be read.
    fn read(&self, offset: u64, inherits_priority: bool) -> Option<word::Word> {
        self.bytes(offset).map(|(bytes, address_bits)| word::read(&bytes, address_bits, inherits_priority))
    }

    /// What stands there, with the bits of an address of who has it there.
    fn bytes(&self, offset: u64) -> Option<(Vec<u8>, u32)> {
        self.targets.processes.iter().find_map(|target| {
            let (memory, address) = (self.memories.get(&target.pid)?, target.addresses(offset).next()?);
            let mut bytes = vec![0; word::READ_BYTES];
            // At the end of the segment there may be no more than the word.
            let length = [word::READ_BYTES, 4].into_iter().find(|length| memory.now(address, &mut bytes[..*length]))?;
            bytes.truncate(length);
            Some((bytes, target.address_bits))
        })
    }

    /// The kind of lock that a word is, as scenarios spell it.
    fn kind(&self, offset: u64, seen: &WordSeen, looks: &Looks) -> Option<String> {
        let mutex = || self.bytes(offset).and_then(|(bytes, address_bits)| word::kind(&bytes, address_bits));
        let kind = match () {
            () if seen.inherits_priority => Some("pthread-pi"),
            () => mutex().or_else(|| looks.is_lock().then_some("futex")),
        };
        kind.map(str::to_owned)
    }

    fn told(mut self, until_ns: u64, per_event_ns: f64, mut notes: Notes) -> Waits {
        let offsets: Vec<u64> = self.follower.words.keys().copied().collect();
        for offset in &offsets {
            self.look(*offset);
            let owner = self.looks.get(offset).and_then(|looks| judge::owner(&self.numbers, looks));
            if let (Some(owner), Some(seen)) = (owner, self.follower.words.get_mut(offset)) {
                seen.still_kept_by(owner, until_ns);
            }
        }
        let Stream { events, lost, .. } = self.stream;
        if lost > 0 {
            let text = format!(
                "{lost} records of futex calls found the log full: so many ends of waits and wakes are missing"
            );
            notes.add("events_lost", None, text, Some("watch fewer processes at once (--pid)"));
        }
        let watch = judge::Watch { from_ns: self.from_ns, until_ns, follower: &self.follower, numbers: &self.numbers };
        let none = Looks::default();
        let seen = self
            .follower
            .words
            .iter()
            .filter(|(_, seen)| seen.waits + seen.begun_before > 0 || !seen.waiting.is_empty());
        let told = seen.map(|(offset, seen)| {
            let looks = self.looks.get(offset).unwrap_or(&none);
            WatchedLock { kind: self.kind(*offset, seen, looks), ..lock(&watch, *offset, seen, looks, lost) }
        });
        let mut locks: Vec<WatchedLock> = told.collect();
        locks.sort_by_key(|lock| (Reverse(lock.wait_ns.sum), Reverse(lock.unended), lock.offset));
        let stolen_ns = (events as f64 * per_event_ns) as u64;
        Waits { locks, notes: notes.into_list(), cost: WatchCost { events, stolen_ns, ..WatchCost::default() } }
    }
}

/// Since when a word is waited for, and its offset; `None` where it is not.
fn waits_since(offset: u64, seen: &WordSeen) -> Option<(u64, u64)> {
    seen.waiting.values().min().map(|since| (*since, offset))
}

fn lock(watch: &judge::Watch, offset: u64, seen: &WordSeen, looks: &Looks, lost: u64) -> WatchedLock {
    WatchedLock {
        offset,
        field: None,
        kind: None,
        owner_pid: judge::owner(watch.numbers, looks).map(|owner| owner.pid),
        waits: seen.waits,
        refused: seen.refused,
        unended: seen.waiting.len() as u64,
        begun_before: seen.begun_before,
        wait_ns: times(&seen.wait_ns, seen.waited_ns),
        waiters: users(&seen.waiters),
        wakers: users(&seen.wakers),
        spinners: Vec::new(),
        findings: judge::findings(watch, seen, looks),
        lost,
        probed: None,
    }
}

fn times(waits: &Histogram<u64>, sum: u64) -> WaitTimes {
    if waits.is_empty() {
        return WaitTimes::default();
    }
    let at = |quantile| waits.value_at_quantile(quantile);
    WaitTimes { min: waits.min(), p50: at(0.5), p90: at(0.9), p99: at(0.99), p999: at(0.999), max: waits.max(), sum }
}

fn users(of: &BTreeMap<u32, (u64, u64)>) -> Vec<LockUser> {
    let mut users: Vec<LockUser> =
        of.iter().map(|(pid, (calls, amount))| LockUser { pid: *pid, calls: *calls, amount: *amount }).collect();
    users.sort_by_key(|user| (Reverse(user.calls), user.pid));
    users
}
