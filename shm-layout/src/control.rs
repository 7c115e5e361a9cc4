//! The control block: the phases of one repetition.
//!
//! ```text
//! coordinator                         workers
//! create, spawn                       attach, pin, compile, touch
//!                    <- attached -    one byte each on the ready pipe
//! unlink the name
//! release() ------------------------> probe the line transfer, time the core loop
//!                                     the gate before the warm-up, then run passes
//!                                     arrive_ready(): the last one publishes the window's instants
//!                                     warm-up ... window ... arrive_left(): the last one stops all
//!                                     the gate after the window
//!                                     probe again, write the trace, exit
//! ```
//!
//! The gates are open, unless someone asked to look at the workers there: see [`Gate`].
//!
//! Each line pair has one purpose: see `map`. Within a window the coordinator writes nothing but an abort and reads
//! nothing: it sleeps on pidfds.

use crate::SharedMemory;
use crate::atom::Atom;
use crossbeam_utils::CachePadded;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The control block of one repetition. Zeroed memory is its initial state.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Control<A = AtomicU32, B = AtomicU64> {
    /// Read by all, written a few times: the phase, the gates and the window's instants.
    pub(crate) published: CachePadded<Published<A, B>>,
    pub(crate) ready: CachePadded<A>,
    pub(crate) left: CachePadded<A>,
}

#[repr(C)]
#[derive(Debug, Default)]
pub(crate) struct Published<A = AtomicU32, B = AtomicU64> {
    pub(crate) phase: A,
    /// 0: nobody is held. Else the first gate that is closed, by its number; those behind it are closed too.
    pub(crate) closed_from: A,
    pub(crate) open_ticks: B,
    pub(crate) close_ticks: B,
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

/// Where workers stop if they are held, so that a tool can be attached to them. Never within a window.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Gate {
    /// Before the first pass.
    BeforeWarmUp = 1,
    /// When all have left the window and nothing counts any more.
    AfterWindow = 2,
}

/// When the window opens and closes, ticks.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct WindowTicks {
    /// Opening.
    pub open: u64,
    /// Closing.
    pub close: u64,
}

impl<A: Atom<u32>, B: Atom<u64>> Control<A, B> {
    /// The phase. An unknown discriminant, which only a foreign writer can leave, reads as [`Phase::Aborted`].
    #[inline]
    pub fn phase(&self) -> Phase {
        // Acquire; pairs with the Release in `raise`, through which `release`, `arrive_left` and `abort` go.
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
        // Relaxed, no partner: it only ends a loop. Who goes on to read what others wrote asks `phase`.
        self.published.phase.load(Ordering::Relaxed) >= Phase::Stopped as u32
    }

    /// Lets the workers go. Coordinator only, when all have attached.
    pub fn release(&self) {
        self.raise(Phase::Released);
    }

    /// Closes all gates. Coordinator only, before [`release`](Control::release).
    pub fn close_gates(&self) {
        // Relaxed: published by the Release of the phase, before which no worker looks at a gate.
        self.published.closed_from.store(Gate::BeforeWarmUp as u32, Ordering::Relaxed);
    }

    /// Opens `gate`, all before it being open. Coordinator only, after [`close_gates`](Control::close_gates), when all
    /// workers have come to the gate.
    pub fn open_gate(&self, gate: Gate) {
        // Relaxed, no partner: it only lets workers go on.
        self.published.closed_from.store(gate as u32 + 1, Ordering::Relaxed);
    }

    /// Whether a worker that comes to `gate` must wait there.
    pub fn is_closed(&self, gate: Gate) -> bool {
        // Relaxed, no partner: see `open_gate`; the first closing is published by the release.
        let closed_from = self.published.closed_from.load(Ordering::Relaxed);
        closed_from != 0 && gate as u32 >= closed_from
    }

    /// Makes every worker leave at its next look. Anyone, at any time.
    pub fn abort(&self) {
        self.raise(Phase::Aborted);
    }

    /// A worker is at the start line and goes on running passes. The last of `workers` publishes the window: it opens
    /// `warm_up` ticks after `now` (read by the caller just before) and lasts `window` ticks.
    pub fn arrive_ready(&self, workers: u32, now: u64, warm_up: u64, window: u64) -> bool {
        // AcqRel; the Release half pairs with the Acquire half of the arrivals after it: the last to arrive has seen
        // everything that the others did before they arrived, and hands it on with the window.
        let last = self.ready.fetch_add(1, Ordering::AcqRel).wrapping_add(1) == workers;
        if last {
            let open = now.saturating_add(warm_up);
            // Relaxed: published by the Release below.
            self.published.close_ticks.store(open.saturating_add(window), Ordering::Relaxed);
            // Release; pairs with the Acquire in `window`: who sees the opening sees the closing.
            self.published.open_ticks.store(open, Ordering::Release);
        }
        last
    }

    /// The window, once it is published.
    #[inline(always)]
    pub fn window(&self) -> Option<WindowTicks> {
        // Acquire; pairs with the Release in `arrive_ready`. The closing was stored before that: Relaxed is enough for
        // it.
        let open = self.published.open_ticks.load(Ordering::Acquire);
        (open != 0).then(|| WindowTicks { open, close: self.published.close_ticks.load(Ordering::Relaxed) })
    }

    /// A worker has left the window, and goes on running passes until all have. The last of `workers` stops all.
    pub fn arrive_left(&self, workers: u32) -> bool {
        // AcqRel; the Release half pairs with the Acquire half of the departures after it: the last to leave has seen
        // everything that the others did in their windows, and hands it on with the phase.
        let last = self.left.fetch_add(1, Ordering::AcqRel).wrapping_add(1) == workers;
        if last {
            self.raise(Phase::Stopped);
        }
        last
    }

    fn raise(&self, phase: Phase) {
        // Release; pairs with the Acquire in `phase`. A maximum, so that a release or a stop never undoes an abort.
        self.published.phase.fetch_max(phase as u32, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread::Scope;

    #[test]
    fn counts_that_a_stranger_wrote_are_counted_on_from() {
        let control = <Control>::default();
        control.ready.store(u32::MAX, Ordering::Relaxed);
        control.left.store(u32::MAX, Ordering::Relaxed);
        assert!(!control.arrive_ready(2, 10, 20, 100) && !control.arrive_left(2));
        assert_eq!((control.window(), control.must_stop()), (None, false), "nobody was the last");
    }

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

    /// What a worker is told to do, one thing at a time.
    #[derive(Copy, Clone, Debug)]
    enum Turn {
        Arrive { now: u64 },
        Leave,
        Look,
    }

    /// What a worker sees: whether it was the last, and the words as they stand to it.
    #[derive(Copy, Clone, Debug, PartialEq, Eq)]
    struct Seen {
        last: bool,
        window: Option<WindowTicks>,
        phase: Phase,
        must_stop: bool,
    }

    const WORKERS: usize = 3;

    /// Does one turn as a worker does it.
    fn take(control: &Control, turn: Turn) -> Seen {
        let last = match turn {
            Turn::Arrive { now } => control.arrive_ready(WORKERS as u32, now, 20, 100),
            Turn::Leave => control.arrive_left(WORKERS as u32),
            Turn::Look => false,
        };
        Seen { last, window: control.window(), phase: control.phase(), must_stop: control.must_stop() }
    }

    /// Threads that stand for workers, each doing what it is told when it is told, so that a test sets their order.
    struct Troop {
        workers: Vec<(Sender<Turn>, Receiver<Seen>)>,
    }

    impl Troop {
        fn new<'s>(scope: &'s Scope<'s, '_>, control: &'s Control) -> Troop {
            let start = |_| {
                let (turns, told) = channel();
                let (tell, seen) = channel();
                scope.spawn(move || told.iter().try_for_each(|turn| tell.send(take(control, turn))));
                (turns, seen)
            };
            Troop { workers: (0..WORKERS).map(start).collect() }
        }

        fn tell(&self, worker: usize, turn: Turn) -> Seen {
            let (turns, seen) = &self.workers[worker];
            turns.send(turn).unwrap();
            seen.recv().unwrap()
        }

        /// Asserts that every worker, whatever it did before, sees the same now.
        fn all_see(&self, window: Option<WindowTicks>, phase: Phase, must_stop: bool) {
            for worker in 0..WORKERS {
                assert_eq!(self.tell(worker, Turn::Look), Seen { last: false, window, phase, must_stop });
            }
        }
    }

    fn goes_through(arriving: &[usize], leaving: &[usize]) {
        let control = <Control>::default();
        std::thread::scope(|scope| {
            let troop = Troop::new(scope, &control);
            troop.all_see(None, Phase::Attaching, false);
            control.release();
            for (nth, &worker) in arriving.iter().enumerate() {
                troop.all_see(None, Phase::Released, false);
                let seen = troop.tell(worker, Turn::Arrive { now: 1_000 + worker as u64 });
                assert_eq!(seen.last, nth + 1 == WORKERS, "arriving {arriving:?}: {worker}");
            }
            let open = 1_020 + *arriving.last().unwrap() as u64;
            let window = Some(WindowTicks { open, close: open + 100 });
            for (nth, &worker) in leaving.iter().enumerate() {
                troop.all_see(window, Phase::Released, false);
                let seen = troop.tell(worker, Turn::Leave);
                assert_eq!(seen.last, nth + 1 == WORKERS, "leaving {leaving:?}: {worker}");
            }
            troop.all_see(window, Phase::Stopped, true);
        });
    }

    #[test]
    fn in_every_order_the_last_to_arrive_publishes_and_the_last_to_leave_stops() {
        for arriving in orders(WORKERS) {
            for leaving in orders(WORKERS) {
                goes_through(&arriving, &leaving);
            }
        }
    }

    #[test]
    fn an_abort_wins_at_every_point_and_nothing_undoes_it() {
        for abort_at in 0..6 {
            let control = <Control>::default();
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

    /// Runs `worker` on three threads at once, many times over, each time on a control block of its own and with three
    /// words that only the block's orderings publish.
    fn race<T: Send>(worker: impl Fn(&Control, &[AtomicU32; 3], usize) -> T + Sync, check: impl Fn(Vec<T>)) {
        for _ in 0..if cfg!(miri) { 5 } else { 500 } {
            let (control, words) = (<Control>::default(), [const { AtomicU32::new(0) }; 3]);
            control.release();
            let start = Barrier::new(WORKERS);
            let run = |me| {
                start.wait();
                worker(&control, &words, me)
            };
            let run = &run;
            check(std::thread::scope(|scope| {
                let threads: Vec<_> = (0..WORKERS).map(|me| scope.spawn(move || run(me))).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            }));
        }
    }

    fn wait_until(done: impl Fn() -> bool) {
        testing::within(testing::A_LONG_TIME, "what another worker does", || done().then_some(()));
    }

    #[test]
    fn workers_that_race_to_arrive_agree_on_one_window_and_see_what_all_did_before() {
        race(
            |control, words, me| {
                words[me].store(1, Ordering::Relaxed);
                let last = control.arrive_ready(WORKERS as u32, 500 + me as u64, 10, 40);
                wait_until(|| control.window().is_some());
                (last, control.window().unwrap(), words.each_ref().map(|word| word.load(Ordering::Relaxed)))
            },
            |seen| {
                let last: Vec<usize> = (0..WORKERS).filter(|&worker| seen[worker].0).collect();
                let [last] = last[..] else { panic!("last: {last:?}") };
                let open = 510 + last as u64;
                let expected = (WindowTicks { open, close: open + 40 }, [1; 3]);
                assert!(seen.iter().all(|(_, window, words)| (*window, *words) == expected), "{seen:?}");
            },
        );
    }

    #[test]
    fn workers_that_race_to_leave_go_on_until_all_have_and_see_what_all_did_before() {
        race(
            |control, words, me| {
                let early = control.must_stop();
                words[me].store(1, Ordering::Relaxed);
                let last = control.arrive_left(WORKERS as u32);
                wait_until(|| control.must_stop());
                (last, early, control.phase(), words.each_ref().map(|word| word.load(Ordering::Relaxed)))
            },
            |seen| {
                assert_eq!(seen.iter().filter(|(last, ..)| *last).count(), 1, "{seen:?}");
                let expected = (false, Phase::Stopped, [1; 3]);
                assert!(seen.iter().all(|&(_, early, phase, words)| (early, phase, words) == expected), "{seen:?}");
            },
        );
    }

    #[test]
    fn gates_are_open_unless_closed_and_open_one_after_the_other() {
        let control = <Control>::default();
        let closed = || [Gate::BeforeWarmUp, Gate::AfterWindow].map(|gate| control.is_closed(gate));
        assert_eq!(closed(), [false, false]);
        control.close_gates();
        assert_eq!(closed(), [true, true]);
        control.open_gate(Gate::BeforeWarmUp);
        assert_eq!(closed(), [false, true]);
        control.open_gate(Gate::AfterWindow);
        assert_eq!(closed(), [false, false]);
    }

    #[test]
    fn a_foreign_phase_reads_as_aborted() {
        let control = <Control>::default();
        control.published.phase.store(77, Ordering::Relaxed);
        assert_eq!(control.phase(), Phase::Aborted);
    }
}
