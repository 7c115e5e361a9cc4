//! Where the threads of the watched are, at moments of their own CPU time: instruction and registers.

use crate::notes::{Notes, not_lent};
use crate::perf::{Event, Fields, Order, Record, Ring, Source, Whom};
use crate::{Target, pidfd, registers};
use nix::errno::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// A thread's CPU time between two samples, nanoseconds: not a round number, so that no loop keeps step with it. A
/// sample takes a few microseconds, so that a thread loses less than one part in a hundred.
pub(crate) const PERIOD_NS: u64 = 997_000;
/// Between two readings. A ring holds three times as many samples.
const READ_EVERY: Duration = Duration::from_millis(50);
/// Pages of a ring: 64 KiB, some 300 samples.
const PAGES: usize = 16;

const FIELDS: Fields = Fields::IP.and(Fields::THREAD).and(Fields::CPU);
/// A processor whose registers are not known here gives the instruction alone.
const WITH_REGISTERS: Fields = if registers::ASKED == 0 { FIELDS } else { FIELDS.and(Fields::REGISTERS) };

/// A thread at a moment.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    pub(crate) pid: u32,
    pub(crate) tid: u32,
    pub(crate) cpu: u32,
    /// The instruction that was next.
    pub(crate) ip: u64,
    /// As the kernel has them: see [`registers::ASKED`].
    pub(crate) registers: Vec<u64>,
}

/// What sampling saw.
#[derive(Debug, Default)]
pub(crate) struct Moments {
    pub(crate) list: Vec<Moment>,
    /// Samples that found a ring full.
    pub(crate) lost: u64,
}

impl Moments {
    /// On which CPUs each thread was seen.
    pub(crate) fn cpus(&self) -> BTreeMap<(u32, u32), BTreeSet<u32>> {
        let mut cpus: BTreeMap<(u32, u32), BTreeSet<u32>> = BTreeMap::new();
        for moment in &self.list {
            cpus.entry((moment.pid, moment.tid)).or_default().insert(moment.cpu);
        }
        cpus
    }
}

/// Samples every thread of the targets for that long, those born meanwhile too; ends early where `stop` says so or all
/// have ended.
pub(crate) fn sample(targets: &[Target], duration: Duration, stop: &dyn Fn() -> bool, notes: &mut Notes) -> Moments {
    let mut seen = Moments::default();
    let mut sampled: Vec<Sampled> = Vec::new();
    let mut known = BTreeSet::new();
    let deadline = Instant::now() + duration;
    loop {
        for target in targets.iter().filter(|target| !pidfd::has_ended(&target.pidfd)) {
            for tid in
                host::thread_numbers(&host::Root::system(), target.pid).into_iter().filter(|tid| known.insert(*tid))
            {
                match Sampled::start(target.pid, tid) {
                    Ok(one) => sampled.push(one),
                    Err(errno) => notes.refused(target.pid, "sampling", errno),
                }
            }
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || stop() || sampled.is_empty() {
            break;
        }
        std::thread::sleep(left.min(READ_EVERY));
        sampled.iter_mut().for_each(|one| one.read(&mut seen));
    }
    seen
}

/// One thread.
struct Sampled {
    pid: u32,
    ring: Ring,
    _event: Event,
}

impl Sampled {
    fn start(pid: u32, tid: u32) -> Result<Sampled, Errno> {
        let order = order(PERIOD_NS);
        let event = Event::open(&order, Whom::Thread(tid))?;
        let ring = Ring::map(&event, PAGES, order.fields, order.registers).map_err(not_lent)?;
        event.enable()?;
        Ok(Sampled { pid, ring, _event: event })
    }

    fn read(&mut self, seen: &mut Moments) {
        let pid = self.pid;
        self.ring.drain(|record| match record {
            Record::Sample(sample) => {
                let (tid, cpu, ip) = (sample.tid, sample.cpu, sample.ip);
                seen.list.push(Moment { pid, tid, cpu, ip, registers: sample.registers });
            }
            Record::Lost(count) => seen.lost += count,
            Record::Born { .. } | Record::Ended { .. } | Record::Executed { .. } => {}
        });
    }
}

/// Samples of user mode by CPU time.
pub(crate) fn order(period_ns: u64) -> Order {
    Order {
        source: Source::CpuClock,
        period: period_ns,
        fields: WITH_REGISTERS,
        registers: registers::ASKED,
        inherit: false,
        kernel: false,
    }
}
