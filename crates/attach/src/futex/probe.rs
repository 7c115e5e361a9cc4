//! Every acquisition, at a price: a probe on the function that takes a lock, and on the markers of the lab's own workers.
//!
//! The tracepoints of futex calls see who waits in the kernel and nobody else. A probe stands in the program's own code and so
//! sees each call; but each call takes a trap then, which costs a hundred times what taking a free lock does. So this is a
//! step of its own, for who asks for it and has been told what it costs ([`cost_ns`]), and never runs beside the others.
//!
//! # References
//! `Documentation/trace/uprobetracer.rst`; `kernel/trace/trace_event_perf.c`, perf_uprobe_init; `docs/tracing.md`.

use super::places::Places;
use super::watch::now;
use crate::maps::{self, Mapping};
use crate::notes::Notes;
use crate::perf::{Event, Fields, Order, Record, Ring, Sample, Source, Whom};
use crate::registers::ASKED;
use crate::symbols::{self, Spot, SymbolParser, What};
use crate::{Target, Targets, pidfd};
use host::Root;
use nix::errno::Errno;
use record::{AttachNote, ProbedLock, WaitTimes, WatchCost, WatchedLock};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::rc::Rc;
use std::time::Duration;

mod own;

pub use own::cost_ns;

/// What stands in each record.
const FIELDS: Fields = Fields::IDENTIFIER.and(Fields::THREAD).and(Fields::TIME).and(Fields::REGISTERS);
/// Of some 200 bytes a hit: more than a thread can take between two looks.
const RING_PAGES: usize = 64;
/// Between two looks at what was written.
const TICK: Duration = Duration::from_millis(5);
/// The register of a function's first argument, by the kernel's number: rdi, x0.
const FIRST_ARGUMENT: u32 = if cfg!(target_arch = "x86_64") { 5 } else { 0 };

/// What the probes have counted.
#[derive(Debug, Default)]
pub struct Probed {
    /// By the lock's offset in the segment.
    pub locks: BTreeMap<u64, ProbedLock>,
    /// What could not be probed.
    pub notes: Vec<AttachNote>,
    /// What it has cost the watched: at most, since a marker's probe costs less than a function's and is charged as one.
    pub cost: WatchCost,
}

impl Probed {
    /// Enters what was counted at the locks that were watched; a lock that nobody waited for is added behind them.
    pub fn enter(&self, locks: &mut Vec<WatchedLock>) {
        for (offset, probed) in &self.locks {
            match locks.iter_mut().find(|lock| lock.offset == *offset) {
                Some(lock) => lock.probed = Some(*probed),
                None => locks.push(never_waited_for(*offset, *probed)),
            }
        }
    }
}

fn never_waited_for(offset: u64, probed: ProbedLock) -> WatchedLock {
    WatchedLock {
        offset,
        field: None,
        owner_pid: None,
        waits: 0,
        refused: 0,
        unended: 0,
        begun_before: 0,
        wait_ns: WaitTimes::default(),
        waiters: Vec::new(),
        wakers: Vec::new(),
        spinners: Vec::new(),
        findings: Vec::new(),
        lost: 0,
        probed: Some(probed),
    }
}

/// Counts, until all targets have ended or `is_over` says so, how often they take the segment's locks: `pthread_mutex_lock` of
/// a shared C library or of the program itself, and the lab's markers. `is_over` is asked for the first time when everything is
/// probed. Threads that are begun later are not.
pub fn probe(root: &Root, targets: &Targets, parser: &SymbolParser, mut is_over: impl FnMut() -> bool) -> Probed {
    let mut notes = Notes::default();
    let Some(unit) = host::pmu(root, "uprobe").map(|unit| unit.kind) else {
        let text = "acquisitions are not counted: this kernel has no probes of user code (CONFIG_UPROBE_EVENTS)";
        notes.add("no_uprobes", None, text, None);
        return Probed { notes: notes.into_list(), ..Probed::default() };
    };
    let mut files = Files { parser, read: BTreeMap::new() };
    let mut probes = Vec::new();
    for target in &targets.processes {
        let read = files.of(target, &mut notes);
        match on(unit, target, &read) {
            Ok(opened) => probes.extend(opened),
            Err(errno) => notes.refused(target.pid, "counting the acquisitions", errno),
        }
    }
    let mut counted = Counted::new(root, targets, &probes);
    if !probes.is_empty() {
        while !is_over() && !targets.processes.iter().all(|target| pidfd::has_ended(&target.pidfd)) {
            std::thread::sleep(TICK);
            probes.iter_mut().for_each(|one| counted.drain(one));
        }
        for one in &mut probes {
            // What is still written until it is dropped is not read any more.
            one.events.iter_mut().for_each(|event| _ = event.disable());
            counted.drain(one);
        }
    }
    drop(probes);
    counted.told(cost_ns(root), notes)
}

/// A file with its places, open while events are put on them.
struct Spots {
    file: File,
    spots: BTreeSet<Spot>,
}

/// The files that are mapped, each read once whichever processes map it.
struct Files<'a> {
    parser: &'a SymbolParser,
    read: BTreeMap<((u32, u32), u64), Rc<Spots>>,
}

impl Files<'_> {
    /// The files of a process that may have places: its program and its C library.
    fn of(&mut self, target: &Target, notes: &mut Notes) -> Vec<Rc<Spots>> {
        let mapped = maps::of(target.pid);
        let program = std::fs::read_link(format!("/proc/{}/exe", target.pid)).ok();
        let program = program.as_deref().and_then(|path| path.to_str());
        let may = |path: &str| is_c_library(path) || Some(path) == program;
        let mapped = mapped.iter().filter(|one| one.executable && one.path.as_deref().is_some_and(may));
        let files: BTreeMap<_, &Mapping> = mapped.map(|one| ((one.device, one.inode), one)).collect();
        files.into_iter().filter_map(|(key, mapping)| self.read(key, target.pid, mapping, notes)).collect()
    }

    fn read(&mut self, key: ((u32, u32), u64), pid: u32, mapping: &Mapping, notes: &mut Notes) -> Option<Rc<Spots>> {
        if let Some(read) = self.read.get(&key) {
            return Some(Rc::clone(read));
        }
        let file = symbols::open(pid, mapping)?;
        let spots = match symbols::spots(self.parser, &file) {
            Ok(spots) => spots,
            Err(why) => {
                let path = mapping.path.as_deref().unwrap_or_default();
                notes.add("no_symbols", Some(pid), format!("acquisitions by {path} are not counted: {why}"), None);
                BTreeSet::new()
            }
        };
        let read = Rc::new(Spots { file, spots });
        self.read.insert(key, Rc::clone(&read));
        Some(read)
    }
}

/// Whether a file is a C library by its name: `libc.so.6`, `libc-2.31.so`, `libpthread.so.0`, `ld-musl-x86_64.so.1`.
fn is_c_library(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    ["libc.so", "libc-", "libpthread", "ld-musl", "libc.musl"].iter().any(|begin| name.starts_with(begin))
}

/// The probes on one thread.
struct OnThread {
    ring: Ring,
    events: Vec<Event>,
    whats: BTreeMap<u64, What>,
}

/// Puts probes on all threads of a process. One of them that ends meanwhile is left out.
fn on(unit: u32, target: &Target, files: &[Rc<Spots>]) -> Result<Vec<OnThread>, Errno> {
    let is_known = |spot: &Spot| target.address_bits == 64 || spot.what != What::Locks; // its argument lies on the stack
    let spots = files.iter().flat_map(|of| of.spots.iter().map(|spot| (&of.file, *spot)));
    let spots: Vec<(&File, Spot)> = spots.filter(|(_, spot)| is_known(spot)).collect();
    let mut probes = Vec::new();
    for tid in host::thread_numbers(&Root::system(), target.pid) {
        // What was just listed is of this process, if it still lives.
        if spots.is_empty() || pidfd::has_ended(&target.pidfd) {
            break;
        }
        match OnThread::open(unit, tid, &spots) {
            Ok(one) => probes.push(one),
            Err(Errno::ESRCH) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(probes)
}

impl OnThread {
    fn open(unit: u32, tid: u32, spots: &[(&File, Spot)]) -> Result<OnThread, Errno> {
        let order =
            |source| Order { source, period: 1, fields: FIELDS, registers: ASKED, inherit: false, kernel: false };
        let owner = Event::open(&order(Source::Nothing), Whom::Thread(tid))?;
        let ring = Ring::map(&owner, RING_PAGES, FIELDS, ASKED)?;
        let (mut events, mut whats) = (Vec::new(), BTreeMap::new());
        for (file, spot) in spots {
            let source = Source::Instruction { unit, file: file.as_raw_fd(), offset: spot.offset };
            let event = Event::open(&order(source), Whom::Thread(tid))?;
            event.write_to(&owner)?;
            event.enable()?;
            whats.insert(event.id(), spot.what);
            events.push(event);
        }
        events.push(owner);
        Ok(OnThread { ring, events, whats })
    }
}

/// Hits by the lock that they were about.
struct Counted {
    places: Places,
    /// What is counted of each lock: nothing yet, and what nobody has a place for not at all.
    none: ProbedLock,
    locks: BTreeMap<u64, ProbedLock>,
    hits: u64,
    lost: u64,
}

impl Counted {
    fn new(root: &Root, targets: &Targets, probes: &[OnThread]) -> Counted {
        let has = |wanted: fn(&What) -> bool| probes.iter().any(|one| one.whats.values().any(wanted)).then_some(0);
        let none = ProbedLock {
            calls: has(|what| *what == What::Locks),
            contended: has(|what| matches!(what, What::Contended(_))),
            acquired: has(|what| matches!(what, What::Acquired(_))),
        };
        Counted { places: Places::new(root, targets, now()), none, locks: BTreeMap::new(), hits: 0, lost: 0 }
    }

    fn drain(&mut self, probes: &mut OnThread) {
        let OnThread { ring, whats, .. } = probes;
        ring.drain(|record| match record {
            Record::Sample(sample) => {
                self.hits += 1;
                if let Some(what) = whats.get(&sample.id) {
                    self.hit(*what, &sample);
                }
            }
            Record::Lost(records) => self.lost += records,
            Record::Born { .. } | Record::Ended { .. } | Record::Executed { .. } => {}
        });
    }

    fn hit(&mut self, what: What, sample: &Sample) {
        let register = match what {
            What::Locks => FIRST_ARGUMENT,
            What::Contended(register) | What::Acquired(register) => register,
        };
        let Some(address) = value(sample, register) else { return };
        let Some(offset) = self.places.offset(sample.pid, address, sample.time_ns, false) else { return };
        let lock = self.locks.entry(offset).or_insert(self.none);
        let count = match what {
            What::Locks => &mut lock.calls,
            What::Contended(_) => &mut lock.contended,
            What::Acquired(_) => &mut lock.acquired,
        };
        *count.get_or_insert(0) += 1;
    }

    fn told(self, cost_ns: Option<f64>, mut notes: Notes) -> Probed {
        if self.lost > 0 {
            let text = format!("{} acquisitions found the log full and are not counted", self.lost);
            notes.add("events_lost", None, text, Some("watch fewer processes at once (--pid)"));
        }
        let stolen_ns = (self.hits as f64 * cost_ns.unwrap_or(0.0)) as u64;
        let cost = WatchCost { events: self.hits, stolen_ns, ..WatchCost::default() };
        Probed { locks: self.locks, notes: notes.into_list(), cost }
    }
}

/// A register by the kernel's number: those that were asked for follow each other.
fn value(sample: &Sample, register: u32) -> Option<u64> {
    let below = ASKED & ((1u64 << register) - 1);
    let asked = ASKED >> register & 1 == 1;
    sample.registers.get(below.count_ones() as usize).copied().filter(|_| asked)
}
