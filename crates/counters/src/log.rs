//! The log of what the kernel did to a worker's translations: each flush and each function-call interrupt, with its
//! time.

mod records;
mod ring;

use crate::event::{Attr, Event, Family};
use crate::names::TRACEPOINT;
use crate::refusal::{self, Setting};
use record::{KernelTrace, Reading};
use records::Parsed;
use ring::Ring;
use serde::{Deserialize, Serialize};

/// What a logged tracepoint tells of.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogKind {
    /// The translations of the CPU were flushed, or others asked to flush theirs.
    Flush,
    /// A function-call interrupt began.
    Interrupt,
}

/// What is logged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LogOrder {
    /// What it tells of, its name and its number.
    pub tracepoints: Vec<(LogKind, String, u64)>,
    /// Why some tracepoint is not among them.
    pub missing: Option<Reading>,
    /// Whether the kernel's stack is kept at each event.
    pub stacks: bool,
}

/// A worker's clock and the kernel's, read together.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Together {
    /// The worker's.
    pub(crate) ticks: u64,
    /// The kernel's, nanoseconds of CLOCK_MONOTONIC_RAW.
    pub(crate) raw_ns: u64,
}

/// A log on the calling thread; nothing is written to it outside `enable` .. `disable`.
pub(crate) struct Log {
    order: LogOrder,
    ring: Option<Ring>,
    missing: Option<Reading>,
    clock: Option<fn() -> u64>,
    edges: (Option<Together>, Option<Together>),
}

impl Log {
    /// Opens what can be opened; reserves its memory.
    pub(crate) fn open(order: &LogOrder, setting: &Setting) -> Log {
        let mut missing = order.missing.clone();
        let events: Vec<Event> = order.tracepoints.iter().map(|(_, name, id)| event(name, *id)).collect();
        let ring = match Ring::open(&events, order.stacks) {
            Ok(ring) => ring,
            Err(refused) => {
                missing = Some(refusal::of_log(&events[refused.at], refused.errno, refused.bytes, setting));
                None
            }
        };
        Log { order: order.clone(), ring, missing, clock: None, edges: (None, None) }
    }

    /// Tells times by this clock.
    pub(crate) fn by(&mut self, clock: fn() -> u64) {
        self.clock = Some(clock);
    }

    /// The window opens.
    pub(crate) fn enable(&mut self) {
        let Some((ring, clock)) = self.ring.as_mut().zip(self.clock) else { return };
        if let Err(errno) = ring.switch(true) {
            self.missing = Some(refusal::lost(errno));
        }
        self.edges.0 = self.edges.0.or_else(|| ring::together(clock));
    }

    /// The window closes.
    pub(crate) fn disable(&mut self) {
        let Some((ring, clock)) = self.ring.as_mut().zip(self.clock) else { return };
        self.edges.1 = ring::together(clock);
        if let Err(errno) = ring.switch(false) {
            self.missing = Some(refusal::lost(errno));
        }
    }

    /// What was logged, once the window has closed.
    pub(crate) fn trace(&self) -> KernelTrace {
        let nothing = |missing| KernelTrace { missing, ..KernelTrace::default() };
        let Some(ring) = &self.ring else { return nothing(self.missing.clone()) };
        let (Some(first), Some(last)) = self.edges else {
            let why = "no window was opened, or the two clocks could not be read at its edges".to_owned();
            return nothing(self.missing.clone().or(Some(Reading::Unsupported { why })));
        };
        let bytes = ring.bytes();
        let kinds = self.order.tracepoints.iter().map(|(kind, _, id)| (*id, *kind)).collect::<Vec<_>>();
        let Parsed { events, stacks, .. } =
            records::parse(&bytes, &kinds, self.order.stacks, |ns| between(first, last, ns));
        let counted = ring.counted();
        // An event's own count goes on where the log is full.
        let lost = counted.map_or(0, |counted| counted.saturating_sub(events.len() as u64));
        let missing = match counted {
            Err(errno) => Some(refusal::lost(errno)),
            Ok(_) => self.missing.clone(),
        };
        KernelTrace { events, lost, stacks, missing }
    }
}

fn event(name: &str, id: u64) -> Event {
    let attr = Attr::user(TRACEPOINT, id).with_kernel();
    Event { name: name.to_owned(), family: Family::Software, attr, filter: None }
}

/// The worker's time at a time of the kernel's: the line through both readings.
fn between(first: Together, last: Together, raw_ns: u64) -> u64 {
    let slope = (last.ticks as f64 - first.ticks as f64) / (last.raw_ns as f64 - first.raw_ns as f64).max(1.0);
    let distance = raw_ns as f64 - first.raw_ns as f64;
    first.ticks.saturating_add_signed((distance * slope) as i64)
}

#[cfg(test)]
mod tests {
    use super::{Together, between};

    #[test]
    fn the_kernel_s_times_lie_on_the_line_through_both_edges() {
        let (first, last) = (Together { ticks: 3_000, raw_ns: 100 }, Together { ticks: 6_000, raw_ns: 1_100 });
        assert_eq!([100, 600, 1_100, 1_200].map(|ns| between(first, last, ns)), [3_000, 4_500, 6_000, 6_300]);
        assert_eq!(between(first, last, 50), 2_850, "an event between being switched on and the first reading");
        assert_eq!(between(first, first, 150), 3_000, "a window of no length");
    }
}
