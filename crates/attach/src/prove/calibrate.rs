//! What watching costs a thread on this machine, found out on a thread of the watcher's own: that of a trap, of a
//! sample, and of arming a breakpoint.

use crate::perf::{Access, Event, Fields, Order, Record, Ring, Source, Whom};
use crate::sample;
use nix::errno::Errno;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// Traps of which the median time counts.
const TRAPS: i32 = 120;
/// Samples of which the median time counts, at the least.
const SAMPLES: u64 = 60;
/// Longest time for traps, for samples, and for armings.
const TIME_MAX: Duration = Duration::from_millis(60);
/// Between samples then, nanoseconds of its time.
const DENSE_PERIOD_NS: u64 = 40_000;
/// Breakpoints armed on it that nothing hits.
const ARMINGS: u64 = 80;
/// Behind each: what it did to the thread is over by then.
const SETTLES: Duration = Duration::from_micros(50);
/// A pass takes some 50 ns. What takes longer than this was taken from the thread.
const GAP_NS: u64 = 1_000;
/// Of fewer there is no median that a stop of the thread's for other reasons could not be.
const ENOUGH: usize = 12;
/// What the same things took on a virtual machine with Zen 5 processors: where the thread hardly ran, these are taken.
const TRAP_NS: f64 = 10_000.0;
const SAMPLE_NS: f64 = 14_000.0;
const ARMING_NS: f64 = 28_000.0;

/// What the watched lose, nanoseconds of their time each.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) struct Costs {
    /// A breakpoint's trap.
    pub(crate) trap_ns: f64,
    /// A sample.
    pub(crate) sample_ns: f64,
    /// Opening, switching on and closing a breakpoint on a thread that runs.
    pub(crate) arming_ns: f64,
}

/// Tries it out, in some 20 ms. What cannot be tried, as without permission, is put at what it took elsewhere.
///
/// The thread itself notes for how long it was stopped, each time, and medians count: on a busy machine it is stopped for
/// other reasons too, for much longer and much less often.
pub(crate) fn calibrate() -> Costs {
    let shared = Shared::default();
    std::thread::scope(|scope| {
        // Without a thread to try it on, nothing can be tried.
        let counting = Builder::new().spawn_scoped(scope, || shared.count()).ok();
        let trap = counting.as_ref().and_then(|_| shared.trial());
        shared.stop.store(true, Ordering::Relaxed);
        let stops = counting.and_then(|counting| counting.join().ok()).unwrap_or_default();
        Costs {
            // A pass takes some nanoseconds beside the microseconds of a trap.
            trap_ns: trap.unwrap_or(TRAP_NS),
            sample_ns: median(of_samples(&stops)).unwrap_or(SAMPLE_NS),
            arming_ns: median(of_armings(&stops)).unwrap_or(ARMING_NS),
        }
    })
}

/// What the counting thread and its watcher both see. A line each, so that watching does not slow the counting.
#[derive(Default)]
struct Shared {
    passes: Line<AtomicU64>,
    idle: Line<AtomicU64>,
    tid: Line<AtomicU64>,
    /// What is done to the thread: nothing at 0, samples at [`SAMPLING`], an arming at each number behind it.
    round: Line<AtomicU64>,
    stop: AtomicBool,
}

#[repr(align(128))]
#[derive(Default)]
struct Line<T>(T);

const SAMPLING: u64 = 1;

/// A round that the counting thread came to: each time that it was stopped in it, nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
struct Stops {
    round: u64,
    /// Whether it ran from one round into the next, without a stop in between that could be of both.
    whole: bool,
    ns: Vec<u64>,
}

impl Shared {
    /// Counts, and notes when it could not.
    fn count(&self) -> Vec<Stops> {
        let mut stops = vec![Stops { whole: true, ..Stops::default() }];
        let mut last = Instant::now();
        self.tid.0.store(nix::unistd::gettid().as_raw() as u64, Ordering::Release); // pairs with the load in `trial`
        while !self.stop.load(Ordering::Relaxed) {
            self.passes.0.fetch_add(1, Ordering::Relaxed);
            let round = self.round.0.load(Ordering::Relaxed);
            let now = Instant::now();
            let gap = (now - last).as_nanos() as u64;
            last = now;
            note(&mut stops, round, gap);
        }
        stops
    }

    /// What a trap takes; samples and armings the thread notes.
    fn trial(&self) -> Option<f64> {
        let tid = loop {
            match self.tid.0.load(Ordering::Acquire) {
                0 => std::thread::sleep(Duration::from_micros(100)),
                tid => break tid as u32,
            }
        };
        let _ = self.sample(tid);
        let _ = self.arm(tid);
        self.round.0.store(0, Ordering::Relaxed);
        self.trap(tid).ok().flatten()
    }

    /// The median time from one trap to the next.
    fn trap(&self, tid: u32) -> Result<Option<f64>, Errno> {
        let address = std::ptr::from_ref(&self.passes.0) as u64;
        let fields = Fields::IDENTIFIER.and(Fields::TIME);
        let event = Event::open(&breakpoint(address, fields), Whom::Thread(tid))?;
        let mut ring = Ring::map(&event, 4, fields, 0)?;
        event.refresh(TRAPS)?;
        let since = Instant::now();
        while event.count()? < TRAPS as u64 && since.elapsed() < TIME_MAX {
            std::thread::sleep(Duration::from_micros(500));
        }
        let mut times = Vec::new();
        ring.drain(|record| {
            if let Record::Sample(sample) = record {
                times.push(sample.time_ns);
            }
        });
        Ok(median(times.windows(2).map(|pair| pair[1] - pair[0]).collect()))
    }

    fn sample(&self, tid: u32) -> Result<(), Errno> {
        let order = sample::order(DENSE_PERIOD_NS);
        let event = Event::open(&order, Whom::Thread(tid))?;
        let mut ring = Ring::map(&event, 16, order.fields, order.registers)?;
        self.round.0.store(SAMPLING, Ordering::Relaxed);
        event.enable()?;
        let since = Instant::now();
        let mut count = 0;
        while count < SAMPLES && since.elapsed() < TIME_MAX {
            std::thread::sleep(Duration::from_micros(500));
            ring.drain(|_| count += 1);
        }
        event.disable()
    }

    fn arm(&self, tid: u32) -> Result<(), Errno> {
        let order = breakpoint(std::ptr::from_ref(&self.idle.0) as u64, Fields::IDENTIFIER);
        let since = Instant::now();
        for nth in (1..=ARMINGS).take_while(|_| since.elapsed() < TIME_MAX) {
            self.round.0.store(SAMPLING + nth, Ordering::Relaxed);
            let event = Event::open(&order, Whom::Thread(tid))?;
            event.refresh(1)?;
            drop(event); // takes of the thread's time, too
            std::thread::sleep(SETTLES);
        }
        Ok(())
    }
}

/// Enters a pass: how long it took, and the round that it met.
fn note(stops: &mut Vec<Stops>, round: u64, gap: u64) {
    let stopped = gap > GAP_NS;
    match stops.last_mut() {
        Some(now) if now.round == round => now.ns.extend(stopped.then_some(gap)),
        _ => stops.push(Stops { round, whole: !stopped, ns: Vec::new() }),
    }
}

/// Each stop while it was sampled: hardly any is anything else's.
fn of_samples(stops: &[Stops]) -> Vec<u64> {
    stops.iter().filter(|one| one.round == SAMPLING).flat_map(|one| one.ns.clone()).collect()
}

/// What each arming took, of those that the thread ran into and out of.
fn of_armings(stops: &[Stops]) -> Vec<u64> {
    let whole = |pair: &&[Stops]| {
        let [this, next] = pair else { return false };
        this.round > SAMPLING && this.whole && next.whole && !this.ns.is_empty()
    };
    stops.windows(2).filter(whole).map(|pair| pair[0].ns.iter().sum()).collect()
}

/// `None` of too few.
fn median(mut values: Vec<u64>) -> Option<f64> {
    values.sort_unstable();
    (values.len() >= ENOUGH).then(|| values[values.len() / 2] as f64)
}

fn breakpoint(address: u64, fields: Fields) -> Order {
    let source = Source::Breakpoint { address, bytes: 8, access: Access::ReadWrite };
    Order { source, period: 1, fields, registers: 0, inherit: false, kernel: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cost_is_some_time_and_less_than_a_millisecond() {
        let costs = calibrate();
        for cost in [costs.trap_ns, costs.sample_ns, costs.arming_ns] {
            assert!(cost > 100.0 && cost < 1e6, "{costs:?}");
        }
    }

    /// A machine with other work stops the thread for milliseconds, which are no sample's and no arming's.
    #[test]
    fn stops_for_other_reasons_do_not_show() {
        let mut stops = vec![Stops { whole: true, ..Stops::default() }];
        for nth in 0..40 {
            note(&mut stops, SAMPLING, if nth % 5 == 4 { 3_000_000 } else { 4_000 });
            note(&mut stops, SAMPLING, 60);
        }
        for nth in 1..=40 {
            // Here it came late, and what it lost is in no round.
            note(&mut stops, SAMPLING + nth, if nth % 4 == 0 { 5_000_000 } else { 60 });
            note(&mut stops, SAMPLING + nth, 12_000);
            note(&mut stops, SAMPLING + nth, if nth % 7 == 0 { 2_000_000 } else { 3_000 });
        }
        note(&mut stops, 0, 60);
        assert_eq!(median(of_samples(&stops)), Some(4_000.0));
        let armings = of_armings(&stops);
        assert_eq!((armings.len(), median(armings)), (20, Some(15_000.0)));
    }

    #[test]
    fn a_thread_that_hardly_ran_tells_nothing() {
        assert_eq!(median(vec![5_000_000; ENOUGH - 1]), None);
        assert!(of_armings(&[]).is_empty());
        let slept = [Stops { round: 2, whole: true, ns: vec![] }, Stops { round: 3, whole: true, ns: vec![] }];
        assert!(of_armings(&slept).is_empty(), "no stop, no arming");
    }
}
