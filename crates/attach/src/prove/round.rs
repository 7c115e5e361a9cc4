//! One round: some words armed in all threads at once, for a few hits each.

use super::lives::Lives;
use crate::cpu_clock;
use crate::notes::Notes;
use crate::perf::{Access, Event, Fields, Order, Record, Ring, Source, Whom};
use crate::{Target, registers};
use nix::errno::Errno;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

/// Data breakpoints that a processor has for a thread: x86 has four, Arm up to sixteen.
const SLOTS: usize = 4;
/// Pages of a thread's ring: 32 KiB, some 150 hits. A round has a few at each of four breakpoints.
const PAGES: usize = 8;
/// Between two readings of the rings.
const READ_EVERY: Duration = Duration::from_millis(2);
/// Tries to get a breakpoint where none is free, and the time between two.
const TRIES: u32 = 6;
const BETWEEN_TRIES: Duration = Duration::from_millis(4);
/// A thread that wants to run and has had less of its CPU than this is waited for, but not for ever: machines are busy.
const RUN_LEAST_NS: u64 = 1_000_000;
const WAIT_MOST: Duration = Duration::from_millis(150);

const PLAIN: Fields = Fields::IDENTIFIER.and(Fields::IP).and(Fields::THREAD).and(Fields::TIME);
const FIELDS: Fields = if registers::ASKED == 0 { PLAIN } else { PLAIN.and(Fields::REGISTERS) };

/// A word to arm in every thread of a process.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) pid: u32,
    pub(super) offset: u64,
    pub(super) address: u64,
    pub(super) access: Access,
}

/// A trap.
#[derive(Clone, Debug)]
pub(crate) struct Hit {
    pub(super) pid: u32,
    pub(super) tid: u32,
    /// Of the word.
    pub(super) offset: u64,
    /// Of the word in that process.
    pub(super) address: u64,
    pub(super) access: Access,
    /// The instruction that was next.
    pub(super) ip: u64,
    pub(super) registers: Vec<u64>,
    /// Whether it was in user mode; else the kernel touched the word for the thread.
    pub(super) user: bool,
    time_ns: u64,
}

/// How often a thread touched a word while it was armed.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) struct Stint {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) offset: u64,
    pub(crate) access: Access,
    pub(crate) hits: u32,
    /// Accesses that `time_ns` had room for: all hits, or one less where it is counted from the first to the last.
    pub(crate) accesses: u32,
    /// The time they took, without that of the traps.
    pub(crate) time_ns: f64,
}

/// What a round saw.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) hits: Vec<Hit>,
    pub(super) stints: Vec<Stint>,
    /// By thread, nanoseconds of its CPU time while all was armed.
    pub(super) ran_ns: BTreeMap<u32, u64>,
}

/// The threads that can be watched.
#[derive(Default)]
pub(super) struct Crew {
    members: BTreeMap<u32, Member>,
    lives: Lives,
}

struct Member {
    pid: u32,
    /// Breakpoints that are free.
    room: usize,
    /// Owns the ring, and counts the thread's CPU time.
    owner: Event,
    /// That when all was armed.
    ran_ns: u64,
    ring: Ring,
}

struct Armed {
    point: Point,
    tid: u32,
    event: Event,
    at: Instant,
}

impl Crew {
    /// Takes in the threads that a process has now, and lets go of those it has no more.
    pub(super) fn enlist(&mut self, target: &Target, notes: &mut Notes) {
        let now = host::thread_numbers(&host::Root::system(), target.pid);
        self.members.retain(|tid, member| member.pid != target.pid || now.contains(tid));
        let moment = Instant::now();
        now.iter().for_each(|tid| self.lives.see(target.pid, *tid, moment));
        let Some(address) = target.mappings.first().map(|mapping| mapping.address) else { return };
        for tid in now {
            if self.members.contains_key(&tid) {
                continue;
            }
            match Member::new(target.pid, tid, address) {
                Ok((member, full)) => {
                    if full {
                        notes.refused(target.pid, "watching words", Errno::ENOSPC);
                    }
                    self.members.insert(tid, member);
                }
                Err(errno) => notes.refused(target.pid, "watching words", errno),
            }
        }
    }

    /// Who stands for whom: see [`Lives::stand_ins`].
    pub(super) fn stand_ins(&self) -> BTreeMap<(u32, u32), u32> {
        self.lives.stand_ins()
    }

    /// Words that every thread of the process can have armed at once; threads that can have none do not count.
    pub(super) fn room(&self, pid: u32) -> usize {
        self.of(pid).map(|member| member.room).filter(|room| *room > 0).min().unwrap_or(0)
    }

    /// Whether any thread of the process can be watched.
    pub(super) fn can_watch(&self, pid: u32) -> bool {
        self.room(pid) > 0
    }

    fn of(&self, pid: u32) -> impl Iterator<Item = &Member> {
        self.members.values().filter(move |member| member.pid == pid)
    }

    /// Arms the points, waits, and tells what was hit.
    pub(super) fn round(
        &mut self,
        points: &[Point],
        armed_for: Duration,
        hits: i32,
        trap_ns: f64,
        stop: &dyn Fn() -> bool,
        notes: &mut Notes,
    ) -> Seen {
        let armed = self.arm(points, hits, notes);
        for member in self.members.values_mut() {
            member.ran_ns = member.owner.count().unwrap_or(0);
        }
        let by_id: HashMap<u64, usize> = armed.iter().enumerate().map(|(at, one)| (one.event.id(), at)).collect();
        let mut taken: Vec<Vec<Hit>> = vec![Vec::new(); armed.len()];
        let began = Instant::now();
        loop {
            std::thread::sleep(READ_EVERY);
            self.read(&armed, &by_id, &mut taken);
            let is_full = |hits_of: &Vec<Hit>| hits_of.len() >= hits as usize;
            let is_long_enough = || began.elapsed() >= armed_for + WAIT_MOST || !self.somebody_waits(&armed);
            if taken.iter().all(is_full) || stop() || began.elapsed() >= armed_for && is_long_enough() {
                break;
            }
        }
        let ended = Instant::now();
        let ran_ns = self.members.iter().map(|(tid, one)| (*tid, one.has_run_ns())).collect();
        let times: Vec<(u32, u64)> = taken.iter().flatten().map(|hit| (hit.tid, hit.time_ns)).collect();
        let traps_in = |tid, after, until| {
            times.iter().filter(|(of, at)| *of == tid && (after + 1..=until).contains(at)).count() as f64
        };
        let stints = armed.iter().zip(&taken).map(|(one, hits_of)| {
            let (accesses, time_ns) = match (hits_of.first(), hits_of.last()) {
                (Some(first), Some(last)) if hits_of.len() >= hits as usize => {
                    let traps = traps_in(one.tid, first.time_ns, last.time_ns);
                    (hits_of.len() - 1, (last.time_ns - first.time_ns) as f64 - traps * trap_ns)
                }
                _ => {
                    let traps = times.iter().filter(|(tid, _)| *tid == one.tid).count() as f64;
                    (hits_of.len(), (ended - one.at).as_nanos() as f64 - traps * trap_ns)
                }
            };
            let Point { pid, offset, access, .. } = one.point;
            let (hits, accesses) = (hits_of.len() as u32, accesses as u32);
            Stint { pid, tid: one.tid, offset, access, hits, accesses, time_ns }
        });
        let stints = stints.collect();
        Seen { stints, hits: taken.into_iter().flatten().collect(), ran_ns }
    }

    /// Whether a thread of those wants to run and hardly could.
    fn somebody_waits(&self, armed: &[Armed]) -> bool {
        let tids: BTreeSet<u32> = armed.iter().map(|one| one.tid).collect();
        tids.into_iter().filter(|tid| wants_to_run(*tid)).any(|tid| {
            let Some(member) = self.members.get(&tid) else { return false };
            member.owner.count().is_ok_and(|ran_ns| ran_ns < member.ran_ns + RUN_LEAST_NS)
        })
    }

    fn arm(&self, points: &[Point], hits: i32, notes: &mut Notes) -> Vec<Armed> {
        let mut armed = Vec::new();
        for (tid, member) in self.members.iter().filter(|(_, member)| member.room > 0) {
            for point in points.iter().filter(|point| point.pid == member.pid) {
                match member.arm(*tid, *point, hits) {
                    Ok(event) => armed.push(Armed { point: *point, tid: *tid, event, at: Instant::now() }),
                    Err(errno) => notes.refused(member.pid, "watching words", errno),
                }
            }
        }
        armed
    }

    fn read(&mut self, armed: &[Armed], by_id: &HashMap<u64, usize>, taken: &mut [Vec<Hit>]) {
        for member in self.members.values_mut() {
            member.ring.drain(|record| {
                let Record::Sample(sample) = record else { return };
                // A record of an earlier round may come late.
                let Some(&at) = by_id.get(&sample.id) else { return };
                let Point { pid, offset, address, access } = armed[at].point;
                taken[at].push(Hit {
                    pid,
                    tid: sample.tid,
                    offset,
                    address,
                    access,
                    ip: sample.ip,
                    registers: sample.registers,
                    user: sample.user,
                    time_ns: sample.time_ns,
                });
            });
        }
    }
}

impl Member {
    /// With how many breakpoints are free, which are tried out and not switched on; and whether some are not.
    fn new(pid: u32, tid: u32, address: u64) -> Result<(Member, bool), Errno> {
        let clock = Order { source: cpu_clock::OF_THREAD, period: 0, kernel: false, ..order(0, Access::Write) };
        let owner = Event::open(&clock, Whom::Thread(tid))?;
        owner.enable()?;
        let ring = Ring::map(&owner, PAGES, FIELDS, registers::ASKED).map_err(crate::notes::not_lent)?;
        let mut held = Vec::new();
        let mut full = false;
        while held.len() < SLOTS {
            match patiently(|| open(tid, address, Access::ReadWrite)) {
                Ok(event) => held.push(event),
                Err(Errno::ENOSPC) => {
                    full = true;
                    break;
                }
                Err(errno) => return Err(errno),
            }
        }
        Ok((Member { pid, room: held.len(), owner, ran_ns: 0, ring }, full))
    }

    /// Since all was armed.
    fn has_run_ns(&self) -> u64 {
        self.owner.count().unwrap_or(0).saturating_sub(self.ran_ns)
    }

    fn arm(&self, tid: u32, point: Point, hits: i32) -> Result<Event, Errno> {
        let event = patiently(|| open(tid, point.address, point.access))?;
        event.write_to(&self.owner)?;
        event.refresh(hits)?;
        Ok(event)
    }
}

/// Whether a thread is on a CPU or would like to be (state R of proc_pid_stat(5)); threads have such a file as
/// processes do.
fn wants_to_run(tid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{tid}/stat")).unwrap_or_default();
    // Its name comes before, in brackets, and may have brackets of its own.
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('R'))
}

/// Breakpoints that were closed may be free a moment later: a program that is being started has copies of this
/// process's descriptors until it executes.
fn patiently(open: impl Fn() -> Result<Event, Errno>) -> Result<Event, Errno> {
    for _ in 1..TRIES {
        match open() {
            Err(Errno::ENOSPC) => std::thread::sleep(BETWEEN_TRIES),
            result => return result,
        }
    }
    open()
}

/// With the kernel's own accesses where that is permitted: they trap in any case, and counted they are bounded too.
fn open(tid: u32, address: u64, access: Access) -> Result<Event, Errno> {
    let with_kernel = order(address, access);
    match Event::open(&with_kernel, Whom::Thread(tid)) {
        Err(Errno::EACCES | Errno::EPERM) => Event::open(&Order { kernel: false, ..with_kernel }, Whom::Thread(tid)),
        result => result,
    }
}

fn order(address: u64, access: Access) -> Order {
    Order {
        source: Source::Breakpoint { address, bytes: super::WORD_BYTES, access },
        period: 1,
        fields: FIELDS,
        registers: registers::ASKED,
        inherit: false,
        kernel: true,
    }
}
