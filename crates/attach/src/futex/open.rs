//! The events by which futex calls are seen: on each thread of each target, and on what they start meanwhile.
//!
//! An inherited event can write to a ring only where it is on one CPU; so each thread has its events once for each CPU, and
//! all events of a CPU share a ring. They write each call's two ends, and beside them where threads begin, end, and execute
//! another program.

use super::call::Syscall;
use crate::perf::{Event, Fields, Order, Ring, Source, Whom};
use crate::{Target, Targets, pidfd};
use host::{Root, TracepointError, tracepoint_id};
use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use record::AttachNote;
use std::collections::{BTreeMap, BTreeSet};

/// What stands in each record.
pub(super) const FIELDS: Fields = Fields::IDENTIFIER.and(Fields::THREAD).and(Fields::TIME).and(Fields::RAW);
/// Of 180 bytes a call: room for 5,800 between two looks.
const RING_PAGES: usize = 256;
/// A ring smaller than this is not worth having.
const LEAST_PAGES: usize = 8;
/// Looks for threads that were born while events were opened on their siblings.
const LOOKS: usize = 8;
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
    pub(super) fn on(root: &Root, targets: &Targets, mut tracepoints: Tracepoints) -> (Opened, Vec<AttachNote>) {
        let cpus = online(root);
        let mut notes = Vec::new();
        if !fit(root, targets, cpus.len(), tracepoints.wide.len()) {
            tracepoints.old_call_alone();
        }
        let mut opened = Opened::default();
        for target in &targets.processes {
            if target.address_bits == 32 && tracepoints.narrow.is_empty() {
                notes.push(no_narrow(target));
            } else if let Err(errno) = opened.process(root, target, tracepoints.of(target), &cpus) {
                notes.push(refused(root, target, errno));
            }
        }
        (opened, notes)
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
        for cpu in cpus {
            let life = self.event(Source::Life, tid, *cpu)?;
            self.kinds.insert(life, Kind::Life);
            for (kind, number) in wanted {
                let id = self.event(Source::Tracepoint(*number), tid, *cpu)?;
                self.kinds.insert(id, *kind);
            }
        }
        Ok(())
    }

    /// Opens one event, has it write to its CPU's ring, and switches it on; its identifier.
    fn event(&mut self, source: Source, tid: u32, cpu: u32) -> Result<u64, Errno> {
        let order = Order { source, period: 1, fields: FIELDS, registers: 0, inherit: true, kernel: true };
        let mut event = Event::open(&order, Whom::ThreadOn(tid, cpu))?;
        match self.owners.get(&cpu) {
            Some(owner) => event.write_to(&self.events[*owner])?,
            None => {
                self.rings.push(map(&event)?);
                self.owners.insert(cpu, self.events.len());
            }
        }
        event.enable()?;
        let id = event.id();
        self.events.push(event);
        Ok(id)
    }
}

/// The largest ring that this process may lock.
fn map(owner: &Event) -> Result<Ring, Errno> {
    let mut pages = RING_PAGES;
    loop {
        match Ring::map(owner, pages, FIELDS, 0) {
            Err(Errno::EPERM | Errno::ENOMEM) if pages > LEAST_PAGES => pages /= 2,
            mapped => return mapped,
        }
    }
}

/// The CPUs on which a thread may come to run.
fn online(root: &Root) -> Vec<u32> {
    let listed = root.text("sys/devices/system/cpu/online").and_then(|text| host::parse_cpu_list(&text));
    listed.map_or_else(|| vec![0], |cpus| cpus.into_iter().collect())
}

/// Whether this process may have so many descriptors, its limit raised as far as it may raise it.
fn fit(root: &Root, targets: &Targets, cpus: usize, tracepoints: usize) -> bool {
    let threads: usize = targets.processes.iter().map(|target| target.threads.len()).sum();
    let wanted = (threads * cpus * (tracepoints + 1)) as u64 + host::open_files(root) + KEPT_FREE;
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return true };
    if wanted > soft && hard > soft {
        // Where it is refused the old limit is the one that counts.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, wanted.min(hard), hard);
    }
    getrlimit(Resource::RLIMIT_NOFILE).is_ok_and(|(soft, _)| wanted <= soft)
}

fn no_narrow(target: &Target) -> AttachNote {
    AttachNote {
        id: "foreign_architecture".to_owned(),
        pid: Some(target.pid),
        text: "its futex calls are not seen: it is a 32-bit program, and this kernel has no tracepoint that shows those"
            .to_owned(),
        cure: None,
    }
}

/// Why a process's calls are not seen, or not those of all its threads.
fn refused(root: &Root, target: &Target, errno: Errno) -> AttachNote {
    let level = host::perf_event_paranoid(root).map_or("unknown".to_owned(), |level| level.to_string());
    let (id, text, cure) = match errno {
        Errno::EACCES | Errno::EPERM => (
            "not_permitted",
            format!(
                "its futex calls are not seen: seeing what another process asks of the kernel takes its user and \
                 kernel.perf_event_paranoid of 1 or less (it is {level}), or CAP_PERFMON (perf_event_open: {errno:?})"
            ),
            "run as root; or sudo setcap cap_sys_ptrace,cap_perfmon+ep PROGRAM",
        ),
        Errno::EMFILE | Errno::ENFILE => (
            "descriptors",
            format!(
                "not all of its threads' futex calls are seen: no file descriptor was left; each thread takes some for each \
                 CPU (perf_event_open: {errno:?})"
            ),
            "raise the limit: ulimit -n 1048576",
        ),
        Errno::ENOMEM => (
            "locked_memory",
            format!("its futex calls are not seen: the kernel lends no memory for them (mmap: {errno:?})"),
            "sudo sysctl kernel.perf_event_mlock_kb=16384",
        ),
        _ => {
            let text = format!("its futex calls are not seen: the kernel refused the tracepoint ({errno:?}: {})", errno.desc());
            return AttachNote { id: "no_tracepoint".to_owned(), pid: Some(target.pid), text, cure: None };
        }
    };
    AttachNote { id: id.to_owned(), pid: Some(target.pid), text, cure: Some(cure.to_owned()) }
}

/// Nothing can be seen at all.
pub(super) fn no_tracepoints(error: &TracepointError) -> AttachNote {
    AttachNote {
        id: "no_tracefs".to_owned(),
        pid: None,
        text: format!("who waits for whom in the kernel is not seen: {error}"),
        cure: error.cure().map(str::to_owned),
    }
}
