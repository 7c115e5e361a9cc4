//! One of the two measuring processes: slices in lockstep with the other.

use crate::contest::arena::Arena;
use crate::contest::evictions::Seen;
use crate::contest::run_queue::RunQueue;
use crate::contest::{Side, Sides};
use crate::schedule::Quad;
use plan::TickRate;
use shm_layout::ticks;
use std::sync::atomic::{AtomicU64, Ordering};

/// Time between the last arrival and a slice's beginning: both see the number of the slice by then.
const LEAD_NS: u64 = 3_000;
/// Aimed distance of two clock reads.
const CHUNK_NS: f64 = 20_000.0;
/// Round trips of a transfer probe; the first third only warms up.
const RALLY: u64 = 150;

/// A process in its batch.
pub(crate) struct Runner<'a> {
    /// What both share.
    pub(crate) arena: &'a Arena,
    /// The parent's calibration.
    pub(crate) rate: TickRate,
    /// 0 or 1.
    pub(crate) process: usize,
    /// Length of a slice.
    pub(crate) slice_ns: u64,
    /// What runs in it.
    pub(crate) sides: &'a mut dyn Sides,
    /// What is asked around it.
    pub(crate) run_queue: RunQueue,
    /// Slices and rallies that both processes have begun together; at first 0.
    pub(crate) met: u64,
}

impl Runner<'_> {
    /// Runs the batch and leaves its records in the arena.
    ///
    /// # Errors
    /// What a side said.
    pub(crate) fn whole(mut self, quads: &[Quad]) -> Result<(), String> {
        self.choose_chunks()?;
        for (number, quad) in quads.iter().enumerate() {
            let transfer = self.rally();
            if self.process == 0 {
                self.arena.transfer(number).store((transfer * 1e3) as u64, Ordering::Relaxed);
            }
            for (place, side) in quad.sides().into_iter().enumerate() {
                let seen = self.slice(side)?;
                self.arena.record(self.process, number * 4 + place).set(&seen);
            }
        }
        Ok(())
    }

    /// Both processes warm up on both sides; meanwhile process 0 sets the passes between two clock reads of each for
    /// all.
    fn choose_chunks(&mut self) -> Result<(), String> {
        let chunks = &self.arena.control().chunks;
        if self.process == 0 {
            // Where a lock is waited for, a pass may take 10 µs: the first slices must not take for ever.
            chunks.iter().for_each(|chunk| chunk.store(8, Ordering::Release));
        }
        for _ in 0..5 {
            for side in [Side::Contestant, Side::Reference] {
                let chunk = &chunks[side as usize];
                let before = chunk.load(Ordering::Acquire);
                let seen = self.slice(side)?;
                // Its own passes: where both take one lock, `passes` are those of both.
                let pass_ns = self.rate.ns(seen.ticks) / (seen.chunks * before).max(1) as f64;
                if self.process == 0 && seen.chunks > 0 {
                    let passes = (CHUNK_NS / pass_ns) as u64 / 8 * 8;
                    chunk.store(passes.clamp(8, 1 << 20), Ordering::Release);
                }
            }
        }
        Ok(())
    }

    /// Waits until both are here; returns the common beginning in ticks.
    fn meet(&mut self) -> u64 {
        self.met += 1;
        let control = self.arena.control();
        // AcqRel: the last to arrive sees what the other wrote before; its `slice` store pairs with the load below.
        if control.arrived.fetch_add(1, Ordering::AcqRel) + 1 == 2 * self.met {
            control.begin.store(ticks() + self.rate.ticks(LEAD_NS), Ordering::Relaxed);
            control.slice.store(self.met, Ordering::Release);
        }
        while control.slice.load(Ordering::Acquire) < self.met {
            std::hint::spin_loop();
        }
        control.begin.load(Ordering::Relaxed)
    }

    /// One slice: both processes run the same side from `begin` on, and only chunks that end before the common end
    /// count, so that whatever counts was made while both were running.
    fn slice(&mut self, side: Side) -> Result<Seen, String> {
        self.sides.begin(side);
        let waited_ns = self.run_queue.waited_ns();
        let seen = self.passes(side)?;
        let queued_ns = self.run_queue.waited_ns().saturating_sub(waited_ns);
        self.sides.end(side);
        Ok(Seen { queued_ns, ..seen })
    }

    fn passes(&mut self, side: Side) -> Result<Seen, String> {
        let begin = self.meet();
        let end = begin + self.rate.ticks(self.slice_ns);
        let chunk = self.arena.control().chunks[side as usize].load(Ordering::Acquire);
        while ticks() < begin {}
        self.sides.run(side, chunk)?;
        let (made, first) = (self.sides.made(side), ticks());
        let mut seen = Seen { side, passes: 0, ticks: 0, longest: first - begin, chunks: 0, queued_ns: 0 };
        let mut last = first;
        loop {
            self.sides.run(side, chunk)?;
            let (made_by_now, now) = (self.sides.made(side), ticks());
            seen.longest = seen.longest.max(now - last);
            if now >= end {
                return Ok(seen);
            }
            last = now;
            seen.passes = made_by_now - made;
            seen.chunks += 1;
            seen.ticks = now - first;
        }
    }

    /// The one-way time of a line between the two processes, ticks; meaningful in process 0.
    fn rally(&mut self) -> f64 {
        let base = (self.met + 1) << 32;
        self.meet();
        let ball: &AtomicU64 = self.arena.ball();
        let mut start = 0;
        for round in 0..RALLY {
            if round == RALLY / 3 {
                start = ticks();
            }
            // Release pairs with the Acquire in `wait_for`, as a lock's handover would.
            let thrown = base + 2 * round + 1;
            if self.process == 0 {
                ball.store(thrown, Ordering::Release);
                wait_for(ball, thrown + 1);
            } else {
                wait_for(ball, thrown);
                ball.store(thrown + 1, Ordering::Release);
            }
        }
        (ticks() - start) as f64 / (RALLY - RALLY / 3) as f64 / 2.0
    }
}

fn wait_for(ball: &AtomicU64, value: u64) {
    while ball.load(Ordering::Acquire) < value {
        std::hint::spin_loop();
    }
}
