//! The control block: the phases of one repetition.
//!
//! ```text
//! coordinator                         workers
//! create, spawn                       attach, pin, compile, touch
//!                    <- attached -    one byte each on the ready pipe
//! unlink the name
//! release() ------------------------> probe the line transfer, time the core loop, run passes
//!                                     arrive_ready(): the last one publishes the window's instants
//!                                     warm-up ... window ... arrive_left(): the last one stops all
//!                                     probe again, write the trace, exit
//! ```
//!
//! Each word stands on a line pair of its own. The coordinator writes twice at most (release, abort) and reads nothing
//! in a window: it sleeps on pidfds.

use crate::SharedMemory;
use crossbeam_utils::CachePadded;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The control block of one repetition. Zeroed memory is its initial state.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Control {
    /// Read by all, written a few times: the phase and the window's instants.
    pub(crate) published: CachePadded<Published>,
    pub(crate) ready: CachePadded<AtomicU32>,
    pub(crate) left: CachePadded<AtomicU32>,
    pub(crate) attached: CachePadded<AtomicU32>,
}

#[repr(C)]
#[derive(Debug, Default)]
pub(crate) struct Published {
    pub(crate) phase: AtomicU32,
    reserved: AtomicU32,
    pub(crate) open_ticks: AtomicU64,
    pub(crate) close_ticks: AtomicU64,
}

// SAFETY: repr(C), fixed-width atomics only; discriminants are checked when read.
#[allow(unsafe_code)]
unsafe impl SharedMemory for Control {}

/// Where a repetition stands. Only ever grows.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Phase {
    /// Workers are attaching.
    Attaching = 0,
    /// All have attached and the name is gone: go.
    Released = 1,
    /// All have left the window: stop.
    Stopped = 2,
    /// Something failed: leave at once.
    Aborted = 3,
}

/// When the window opens and closes, ticks.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct WindowTicks {
    /// Opening.
    pub open: u64,
    /// Closing.
    pub close: u64,
}

impl Control {
    /// The phase. An unknown discriminant, which only a foreign writer can leave, reads as [`Phase::Aborted`].
    #[inline]
    pub fn phase(&self) -> Phase {
        // Acquire; pairs with the Releases in `release`, `arrive_left` and `abort`.
        match self.published.phase.load(Ordering::Acquire) {
            0 => Phase::Attaching,
            1 => Phase::Released,
            2 => Phase::Stopped,
            _ => Phase::Aborted,
        }
    }

    /// Whether workers must stop. Cheap: one load of a line that is shared unmodified during the window.
    #[inline(always)]
    pub fn must_stop(&self) -> bool {
        self.published.phase.load(Ordering::Relaxed) >= Phase::Stopped as u32
    }

    /// Notes that a worker has attached; returns how many have.
    pub fn arrive_attached(&self) -> u32 {
        self.attached.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// How many workers have attached.
    pub fn attached(&self) -> u32 {
        self.attached.load(Ordering::Acquire)
    }

    /// Lets the workers go. Coordinator only, when all have attached.
    pub fn release(&self) {
        // Release; pairs with the Acquire in `phase`.
        self.raise(Phase::Released);
    }

    /// Makes every worker leave at its next look. Anyone, at any time.
    pub fn abort(&self) {
        self.raise(Phase::Aborted);
    }

    /// A worker is at the start line and goes on running passes. The last of `workers` publishes the window: it opens
    /// `warm_up` ticks after `now` (read by the caller just before) and lasts `window` ticks.
    pub fn arrive_ready(&self, workers: u32, now: u64, warm_up: u64, window: u64) -> bool {
        // AcqRel: the last to arrive has seen everything that the others did before they arrived.
        let last = self.ready.fetch_add(1, Ordering::AcqRel) + 1 == workers;
        if last {
            let open = now.saturating_add(warm_up);
            self.published.close_ticks.store(open.saturating_add(window), Ordering::Relaxed);
            // Release; pairs with the Acquire in `window`: who sees the opening sees the closing.
            self.published.open_ticks.store(open, Ordering::Release);
        }
        last
    }

    /// The window, once it is published.
    #[inline(always)]
    pub fn window(&self) -> Option<WindowTicks> {
        // Acquire; pairs with the Release in `arrive_ready`.
        let open = self.published.open_ticks.load(Ordering::Acquire);
        (open != 0).then(|| WindowTicks { open, close: self.published.close_ticks.load(Ordering::Relaxed) })
    }

    /// A worker has left the window, and goes on running passes until all have. The last of `workers` stops all.
    pub fn arrive_left(&self, workers: u32) -> bool {
        let last = self.left.fetch_add(1, Ordering::AcqRel) + 1 == workers;
        if last {
            // Release; pairs with the Acquire in `phase`.
            self.raise(Phase::Stopped);
        }
        last
    }

    fn raise(&self, phase: Phase) {
        self.published.phase.fetch_max(phase as u32, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every order in which `n` workers can arrive at a barrier.
    fn orders(n: usize) -> Vec<Vec<usize>> {
        if n == 0 {
            return vec![Vec::new()];
        }
        orders(n - 1)
            .into_iter()
            .flat_map(|order| {
                (0..n).map(move |at| {
                    let mut order = order.clone();
                    order.insert(at, n - 1);
                    order
                })
            })
            .collect()
    }

    #[test]
    fn in_every_order_the_last_to_arrive_publishes_and_the_last_to_leave_stops() {
        for arriving in orders(4) {
            for leaving in orders(4) {
                let control = Control::default();
                for _ in 0..4 {
                    control.arrive_attached();
                }
                assert_eq!((control.attached(), control.phase()), (4, Phase::Attaching));
                control.release();
                for (nth, &worker) in arriving.iter().enumerate() {
                    assert_eq!(control.window(), None);
                    let now = 1_000 + worker as u64;
                    assert_eq!(control.arrive_ready(4, now, 20, 100), nth == 3);
                }
                let open = 1_020 + *arriving.last().unwrap() as u64;
                assert_eq!(control.window(), Some(WindowTicks { open, close: open + 100 }));
                for (nth, _) in leaving.iter().enumerate() {
                    assert!(!control.must_stop());
                    assert_eq!(control.phase(), Phase::Released);
                    assert_eq!(control.arrive_left(4), nth == 3);
                }
                assert!(control.must_stop());
                assert_eq!(control.phase(), Phase::Stopped);
            }
        }
    }

    #[test]
    fn an_abort_wins_at_every_point_and_nothing_undoes_it() {
        for abort_at in 0..6 {
            let control = Control::default();
            let steps: [&dyn Fn(&Control); 5] = [
                &|c| c.release(),
                &|c| assert!(!c.arrive_ready(2, 1, 1, 1)),
                &|c| assert!(c.arrive_ready(2, 1, 1, 1)),
                &|c| assert!(!c.arrive_left(2)),
                &|c| assert!(c.arrive_left(2)),
            ];
            for (at, step) in steps.iter().enumerate() {
                if at == abort_at {
                    control.abort();
                }
                step(&control);
            }
            control.abort();
            assert_eq!(control.phase(), Phase::Aborted);
            assert!(control.must_stop());
        }
    }

    #[test]
    fn threads_that_race_to_the_barrier_agree_on_one_window() {
        for _ in 0..200 {
            let control = Control::default();
            let seen: Vec<(bool, WindowTicks)> = std::thread::scope(|scope| {
                let workers: Vec<_> = (0..3u64)
                    .map(|worker| {
                        let control = &control;
                        scope.spawn(move || {
                            let last = control.arrive_ready(3, 500 + worker, 10, 40);
                            loop {
                                if let Some(window) = control.window() {
                                    return (last, window);
                                }
                                std::hint::spin_loop();
                            }
                        })
                    })
                    .collect();
                workers.into_iter().map(|w| w.join().unwrap()).collect()
            });
            assert_eq!(seen.iter().filter(|(last, _)| *last).count(), 1);
            assert!(seen.iter().all(|(_, window)| *window == seen[0].1 && window.close - window.open == 40));
        }
    }

    #[test]
    fn a_foreign_phase_reads_as_aborted() {
        let control = Control::default();
        control.published.phase.store(77, Ordering::Relaxed);
        assert_eq!(control.phase(), Phase::Aborted);
    }
}
