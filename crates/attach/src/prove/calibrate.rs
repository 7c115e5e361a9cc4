//! What watching costs a thread on this machine, found out on a thread of the watcher's own: that of a trap, of a
//! sample, and of arming a breakpoint.

use crate::perf::{Access, Event, Fields, Order, Record, Ring, Source, Whom};
use crate::sample;
use nix::errno::Errno;
use nix::time::ClockId;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Traps of which the median time counts.
const TRAPS: i32 = 120;
/// Longest time for them: they take two milliseconds where the thread runs.
const TRAPS_TIME: Duration = Duration::from_millis(60);
/// How long the thread is looked at undisturbed, and then sampled, each time.
const STRETCH: Duration = Duration::from_millis(2);
/// Times, of which the median counts: on a busy machine a thread does not always run as fast.
const TIMES: usize = 5;
/// Between samples then, nanoseconds of its time.
const DENSE_PERIOD_NS: u64 = 40_000;
/// Breakpoints armed on it that nothing hits, each time.
const ARMINGS: u32 = 20;
/// What the same things took on a virtual machine with Zen 5 processors: where the thread hardly ran, these are taken.
const TRAP_NS: f64 = 14_000.0;
const SAMPLE_NS: f64 = 4_000.0;
const ARMING_NS: f64 = 20_000.0;

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

/// Tries it out, in some 30 ms. What cannot be tried, as without permission, is put at what it took elsewhere.
pub(crate) fn calibrate() -> Costs {
    let rest = Costs { trap_ns: TRAP_NS, sample_ns: SAMPLE_NS, arming_ns: ARMING_NS };
    let shared = Shared::default();
    std::thread::scope(|scope| {
        scope.spawn(|| shared.count());
        let costs = shared.measure(rest);
        shared.stop.store(true, Ordering::Relaxed);
        costs
    })
}

/// What the counting thread and its watcher both see. A line each, so that watching does not slow the counting.
#[derive(Default)]
struct Shared {
    passes: Line<AtomicU64>,
    idle: Line<AtomicU64>,
    tid: Line<AtomicU64>,
    stop: AtomicBool,
}

#[repr(align(128))]
#[derive(Default)]
struct Line<T>(T);

impl Shared {
    fn count(&self) {
        self.tid.0.store(nix::unistd::gettid().as_raw() as u64, Ordering::Release); // pairs with the load in `measure`
        while !self.stop.load(Ordering::Relaxed) {
            self.passes.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn measure(&self, rest: Costs) -> Costs {
        let tid = loop {
            match self.tid.0.load(Ordering::Acquire) {
                0 => std::thread::sleep(Duration::from_micros(100)),
                tid => break tid as u32,
            }
        };
        let (mut samples, mut armings) = (Vec::new(), Vec::new());
        for _ in 0..TIMES {
            let Some(pass_ns) = self.pass_ns(tid, || std::thread::sleep(STRETCH)) else { continue };
            samples.extend(self.sampling(tid, pass_ns));
            armings.extend(self.arming(tid, pass_ns));
        }
        Costs {
            // A pass takes some nanoseconds beside the microseconds of a trap.
            trap_ns: self.trap(tid).ok().flatten().unwrap_or(rest.trap_ns),
            sample_ns: median(samples).unwrap_or(rest.sample_ns),
            arming_ns: median(armings).unwrap_or(rest.arming_ns),
        }
    }

    /// The thread's CPU time over its passes meanwhile.
    fn pass_ns(&self, tid: u32, during: impl FnOnce()) -> Option<f64> {
        let (passes, time) = self.during(tid, during)?;
        (passes > 0.0).then(|| time / passes)
    }

    fn during(&self, tid: u32, during: impl FnOnce()) -> Option<(f64, f64)> {
        let (time, passes) = (cpu_ns(tid)?, self.passes.0.load(Ordering::Relaxed));
        during();
        let (time, passes) = (cpu_ns(tid)? - time, self.passes.0.load(Ordering::Relaxed) - passes);
        Some((passes as f64, time as f64))
    }

    /// Time that the passes do not account for, over `count` of what took it.
    fn lost(&self, tid: u32, pass_ns: f64, during: impl FnOnce() -> Option<f64>) -> Option<f64> {
        let mut count = None;
        let (passes, time) = self.during(tid, || count = during())?;
        let count = count.filter(|count| *count >= 1.0)?;
        Some(((time - passes * pass_ns) / count).max(0.0))
    }

    /// The median time from one trap to the next.
    fn trap(&self, tid: u32) -> Result<Option<f64>, Errno> {
        let address = std::ptr::from_ref(&self.passes.0) as u64;
        let fields = Fields::IDENTIFIER.and(Fields::TIME);
        let event = Event::open(&breakpoint(address, fields), Whom::Thread(tid))?;
        let mut ring = Ring::map(&event, 4, fields, 0)?;
        event.refresh(TRAPS)?;
        let since = Instant::now();
        while event.count()? < TRAPS as u64 && since.elapsed() < TRAPS_TIME {
            std::thread::sleep(Duration::from_micros(500));
        }
        let mut times = Vec::new();
        ring.drain(|record| {
            if let Record::Sample(sample) = record {
                times.push(sample.time_ns);
            }
        });
        let mut gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        gaps.sort_unstable();
        Ok(gaps.get(gaps.len() / 2).map(|gap| *gap as f64))
    }

    fn sampling(&self, tid: u32, pass_ns: f64) -> Option<f64> {
        let order = sample::order(DENSE_PERIOD_NS);
        let event = Event::open(&order, Whom::Thread(tid)).ok()?;
        let mut ring = Ring::map(&event, 16, order.fields, order.registers).ok()?;
        self.lost(tid, pass_ns, || {
            event.enable().ok()?;
            std::thread::sleep(STRETCH);
            event.disable().ok()?;
            let mut count = 0.0;
            ring.drain(|_| count += 1.0);
            Some(count)
        })
    }

    fn arming(&self, tid: u32, pass_ns: f64) -> Option<f64> {
        let order = breakpoint(std::ptr::from_ref(&self.idle.0) as u64, Fields::IDENTIFIER);
        self.lost(tid, pass_ns, || {
            for _ in 0..ARMINGS {
                let event = Event::open(&order, Whom::Thread(tid)).ok()?;
                event.refresh(1).ok()?;
            }
            Some(f64::from(ARMINGS))
        })
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn breakpoint(address: u64, fields: Fields) -> Order {
    let source = Source::Breakpoint { address, bytes: 8, access: Access::ReadWrite };
    Order { source, period: 1, fields, registers: 0, inherit: false, kernel: false }
}

/// CPU time of a thread of this process.
///
/// # References
/// `include/linux/posix-timers_types.h`: MAKE_THREAD_CPUCLOCK with CPUCLOCK_SCHED. Another number is another clock.
fn cpu_ns(tid: u32) -> Option<u64> {
    let time = ClockId::from_raw(((!(tid as i32)) << 3) | 6).now().ok()?;
    Some(u64::try_from(time.tv_sec()).ok()? * 1_000_000_000 + u64::try_from(time.tv_nsec()).ok()?)
}

#[cfg(test)]
mod tests {
    use super::calibrate;

    #[test]
    fn each_cost_is_some_time_and_less_than_a_millisecond() {
        let costs = calibrate();
        assert!(costs.trap_ns > 100.0 && costs.trap_ns < 1e6, "{costs:?}");
        assert!(costs.sample_ns >= 0.0 && costs.arming_ns >= 0.0, "{costs:?}");
    }
}
