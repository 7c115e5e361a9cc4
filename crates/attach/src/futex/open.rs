//! The events by which futex calls are seen: on each thread of each target, and on what they start meanwhile.
//!
//! An inherited event can write to a ring only where it is on one CPU; so each thread has its events once for each CPU, and
//! all events of a CPU share a ring. They write each call's two ends, and beside them where threads begin, end, and execute
//! another program.

use super::call::Syscall;
use crate::notes::Notes;
use crate::perf::{Event, Fields, Order, Ring, Source, Whom};
use crate::{Target, Targets, pidfd};
use host::{Root, TracepointError, tracepoint_id};
use nix::errno::Errno;
use std::collections::{BTreeMap, BTreeSet};

/// What stands in each record.
pub(super) const FIELDS: Fields = Fields::IDENTIFIER.and(Fields::THREAD).and(Fields::TIME).and(Fields::RAW);
/// Of all rings together: of 180 bytes a call, on two CPUs room for 90,000 until the watcher is let run.
const ALL_PAGES: usize = 4096;
/// A ring is not larger than this,
const MOST_PAGES: usize = 2048;
/// and where there are many CPUs, or little may be locked, not smaller than this.
const LEAST_PAGES: usize = 32;
/// Looks for threads that were born while events were opened on their siblings.
const LOOKS: usize = 8;
/// Why nothing is seen of a 32-bit program.
const NO_NARROW: &str = "it is a 32-bit program, and this kernel has no tracepoint that shows the futex calls of those";
/// Descriptors that are left for everything else.
const KEPT_FREE: u64 = 64;

/// What an event tells of.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A call begins.
    Enter(Syscall),
    /// A call returns.
    Exit(Syscall),
    /// Any call of a 32-bit process begins: such calls pass the tracepoints of the single ones by.
    EnterAny,
    /// Any call of a 32-bit process returns.
    ExitAny,
    /// Threads begin, end, execute.
    Life,
}

/// The tracepoints' numbers.
#[derive(Clone, Debug)]
pub(super) struct Tracepoints {
    /// Of 64-bit processes: those that this kernel has.
    wide: Vec<(Kind, u64)>,
    /// Of 32-bit ones.
    narrow: Vec<(Kind, u64)>,
}

impl Tracepoints {
    /// Looks them up.
    ///
    /// # Errors
    /// Where not even the old call has any: no tracefs, or none that this process may read.
    pub(super) fn look_up(root: &Root) -> Result<Tracepoints, TracepointError> {
        let id = |end: &str, name: &str| tracepoint_id(root, "syscalls", &format!("sys_{end}_{name}"));
        let mut wide = Vec::new();
        for call in Syscall::ALL {
            match (id("enter", call.name()), id("exit", call.name())) {
                (Ok(enter), Ok(exit)) => wide.extend([(Kind::Enter(call), enter), (Kind::Exit(call), exit)]),
                (Err(error), _) | (_, Err(error)) if call == Syscall::Futex => return Err(error),
                // Newer than this kernel.
                _ => {}
            }
        }
        let any = |end: &str| tracepoint_id(root, "raw_syscalls", &format!("sys_{end}"));
        let narrow = match (any("enter"), any("exit")) {
            (Ok(enter), Ok(exit)) => vec![(Kind::EnterAny, enter), (Kind::ExitAny, exit)],
            _ => Vec::new(),
        };
        Ok(Tracepoints { wide, narrow })
    }

    /// Those of the old call alone, where descriptors are scarce.
    fn old_call_alone(&mut self) {
        self.wide.retain(|(kind, _)| matches!(kind, Kind::Enter(Syscall::Futex) | Kind::Exit(Syscall::Futex)));
    }

    fn of(&self, target: &Target) -> &[(Kind, u64)] {
        if target.address_bits == 32 { &self.narrow } else { &self.wide }
    }
}

/// Open events and the memory that they write to; nothing is left of them when they are dropped.
#[derive(Debug, Default)]
pub(super) struct Opened {
    events: Vec<Event>,
    pub(super) kinds: BTreeMap<u64, Kind>,
    pub(super) rings: Vec<Ring>,
    /// Where each CPU's ring is: the index of the event that owns it.
    owners: BTreeMap<u32, usize>,
    /// Threads that have events of their own.
    threads: BTreeSet<(u32, u32)>,
}

impl Opened {
    /// Switches all off.
    pub(super) fn stop(&mut self) {
        for event in &mut self.events {
            // It goes on until it is dropped: what it writes is not read any more.
            let _ = event.disable();
        }
    }

    /// Whether nobody is watched.
    pub(super) fn is_empty(&self) -> bool {
        self.threads.is_empty()
    }

    /// Opens events on all threads of the targets. What is refused is noted, and the rest watched.
    pub(super) fn on(root: &Root, targets: &Targets, mut tracepoints: Tracepoints, notes: &mut Notes) -> Opened {
        let cpus = online(root);
        if !fit(root, targets, cpus.len(), tracepoints.wide.len()) {
            tracepoints.old_call_alone();
        }
        let mut opened = Opened::default();
        for target in &targets.processes {
            if target.address_bits == 32 && tracepoints.narrow.is_empty() {
                notes.add("calls_not_seen", Some(target.pid), NO_NARROW, None);
            } else if let Err(errno) = opened.process(root, target, tracepoints.of(target), &cpus) {
                notes.refused(target.pid, "following the futex calls", errno);
            }
        }
        opened
    }

    /// Opens events on the calling thread and on nothing else; `None` where they are refused.
    pub(super) fn on_own_thread(root: &Root, tracepoints: &Tracepoints) -> Option<Opened> {
        let mut opened = Opened::default();
        let tid = nix::unistd::gettid().as_raw().unsigned_abs();
        opened.thread(tid, &tracepoints.wide, &online(root)).ok().map(|()| opened)
    }

    /// Opens events on all threads of a process, until none is new.
    fn process(&mut self, root: &Root, target: &Target, wanted: &[(Kind, u64)], cpus: &[u32]) -> Result<(), Errno> {
        for _ in 0..LOOKS {
            let threads = host::thread_numbers(root, target.pid);
            let new: Vec<u32> = threads.into_iter().filter(|tid| !self.threads.contains(&(target.pid, *tid))).collect();
            // What was just listed is of this process, if it still lives.
            if new.is_empty() || pidfd::has_ended(&target.pidfd) {
                return Ok(());
            }
            for tid in new {
                match self.thread(tid, wanted, cpus) {
                    Ok(()) | Err(Errno::ESRCH) => drop(self.threads.insert((target.pid, tid))),
                    Err(errno) => return Err(errno),
                }
            }
        }
        Ok(())
    }

    fn thread(&mut self, tid: u32, wanted: &[(Kind, u64)], cpus: &[u32]) -> Result<(), Errno> {
        let pages = (ALL_PAGES / cpus.len().max(1)).clamp(LEAST_PAGES, MOST_PAGES);
        for cpu in cpus {
            let life = self.event(Source::Life, tid, *cpu, pages)?;
            self.kinds.insert(life, Kind::Life);
            for (kind, number) in wanted {
                let id = self.event(Source::Tracepoint(*number), tid, *cpu, pages)?;
                self.kinds.insert(id, *kind);
            }
        }
        Ok(())
    }

    /// Opens one event, has it write to its CPU's ring, and switches it on; its identifier.
    fn event(&mut self, source: Source, tid: u32, cpu: u32, pages: usize) -> Result<u64, Errno> {
        let order = Order { source, period: 1, fields: FIELDS, registers: 0, inherit: true, kernel: true };
        let event = Event::open(&order, Whom::ThreadOn(tid, cpu))?;
        match self.owners.get(&cpu) {
            Some(owner) => event.write_to(&self.events[*owner])?,
            None => {
                self.rings.push(map(&event, pages)?);
                self.owners.insert(cpu, self.events.len());
            }
        }
        event.enable()?;
        let id = event.id();
        self.events.push(event);
        Ok(id)
    }
}

/// A ring of so many pages, or the largest that this process may lock.
fn map(owner: &Event, mut pages: usize) -> Result<Ring, Errno> {
    loop {
        match Ring::map(owner, pages, FIELDS, 0) {
            Err(Errno::EPERM | Errno::ENOMEM) if pages > LEAST_PAGES => pages /= 2,
            mapped => return mapped,
        }
    }
}

/// The CPUs on which a thread may come to run.
fn online(root: &Root) -> Vec<u32> {
    host::topology(root).map_or_else(|_| vec![0], |topology| topology.cpus.iter().map(|cpu| cpu.id.0).collect())
}

/// Whether this process may have so many descriptors as all calls take.
fn fit(root: &Root, targets: &Targets, cpus: usize, tracepoints: usize) -> bool {
    let threads: usize = targets.processes.iter().map(|target| target.threads.len()).sum();
    let wanted = (threads * cpus * (tracepoints + 1)) as u64 + host::open_files(root) + KEPT_FREE;
    host::open_files_limit(root).is_none_or(|limit| wanted <= limit)
}

/// Nothing can be seen at all.
pub(super) fn no_tracepoints(notes: &mut Notes, error: &TracepointError) {
    let text = format!("who waits for whom in the kernel is not seen: {error}");
    notes.add("no_tracefs", None, text, error.cure());
}
