//! The protocol of a repetition (`control.rs`, `slot.rs`, `header.rs`) under loom, which runs a few threads in every order
//! that matters and shows each load every value that the memory orderings allow. No thread waits: each looks once, at every
//! moment, and what it sees must be right.

use crate::control::{Control, Gate, Phase, WindowTicks};
use crate::header::{Header, HeaderError};
use crate::map::SegmentMap;
use crate::modelled::{Model, Modelled, unmissed};
use crate::slot::{Slot, WorkerState};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, AtomicU64};
use loom::thread::{JoinHandle, spawn};
use plan::TickRate;
use std::sync::atomic::Ordering;

type Word = Modelled<AtomicU32>;
type LongWord = Modelled<AtomicU64>;

/// A control block, and a word of each worker's that nothing but the block's orderings publishes.
#[derive(Default)]
struct Repetition {
    control: Control<Word, LongWord>,
    done: [AtomicU32; WORKERS as usize],
}

const WORKERS: u32 = 2;
const WARM_UP: u64 = 20;
const WINDOW: u64 = 100;

impl Repetition {
    fn does(&self, worker: u32) {
        self.done[worker as usize].store(1, Ordering::Relaxed);
    }

    fn assert_all_is_done(&self, who: &str) {
        assert!(self.done.iter().all(|done| done.load(Ordering::Relaxed) == 1), "{who} does not see what another did");
    }
}

fn together(threads: impl IntoIterator<Item = JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// What the coordinator did before it released the workers is there for who is released: the gates are closed.
fn release() {
    let repetition = Arc::new(Repetition::default());
    let worker = repetition.clone();
    let worker = spawn(move || {
        if worker.control.phase() == Phase::Released {
            assert!(worker.control.is_closed(Gate::BeforeWarmUp), "released, and the gate is open still");
            assert!(worker.control.is_closed(Gate::AfterWindow));
        }
    });
    repetition.control.close_gates();
    repetition.control.release();
    together([worker]);
}

/// The last to arrive has seen what the others did, and so has whoever sees the window, which is whole.
fn arrival() {
    let repetition = Arc::new(Repetition::default());
    let worker = |index: u32| {
        let repetition = repetition.clone();
        move || {
            repetition.does(index);
            let last = repetition.control.arrive_ready(WORKERS, 1_000 + u64::from(index), WARM_UP, WINDOW);
            let window = repetition.control.window();
            assert!(!last || window.is_some());
            if last {
                repetition.assert_all_is_done("the last to arrive");
            }
            if let Some(WindowTicks { open, close }) = window {
                assert!((1_000 + WARM_UP..1_000 + WARM_UP + u64::from(WORKERS)).contains(&open), "{open}");
                assert_eq!(close, open + WINDOW, "half a window");
                repetition.assert_all_is_done("who sees the window");
            }
        }
    };
    let others: Vec<_> = (1..WORKERS).map(|index| spawn(worker(index))).collect();
    worker(0)();
    together(others);
}

/// The last to leave has seen what the others did in their windows, and so has whoever sees that all have left.
fn departure() {
    let repetition = Arc::new(Repetition::default());
    let worker = |index: u32| {
        let repetition = repetition.clone();
        move || {
            repetition.does(index);
            if repetition.control.arrive_left(WORKERS) {
                repetition.assert_all_is_done("the last to leave");
                assert!(repetition.control.must_stop());
            }
            if repetition.control.phase() == Phase::Stopped {
                repetition.assert_all_is_done("who sees all leave");
            }
        }
    };
    let others: Vec<_> = (1..WORKERS).map(|index| spawn(worker(index))).collect();
    worker(0)();
    together(others);
    assert_eq!(repetition.control.phase(), Phase::Stopped);
}

/// An abort wins over the stop that comes at the same time, and no phase is ever taken back.
fn abort() {
    let repetition = Arc::new(Repetition::default());
    repetition.control.release();
    let acts: [fn(&Control<Word, LongWord>); 2] = [Control::abort, |control| _ = control.arrive_left(1)];
    let others = acts.map(|act| {
        let repetition = repetition.clone();
        spawn(move || act(&repetition.control))
    });
    let first = repetition.control.phase();
    let second = repetition.control.phase();
    assert!(Phase::Released <= first && first <= second, "{first:?}, then {second:?}");
    together(others);
    assert_eq!(repetition.control.phase(), Phase::Aborted);
}

/// Who sees how far a worker has come sees what that worker noted before.
fn state() {
    let slot = Arc::new(Slot::<Word, LongWord>::default());
    let worker = slot.clone();
    let worker = spawn(move || {
        worker.set_thread(4711);
        worker.set_state(WorkerState::Attached);
        worker.set_waits_for(Some(3));
        worker.set_took_over(3);
        worker.set_seen(99);
        worker.set_state(WorkerState::Left);
    });
    let seen = slot.state();
    if seen != WorkerState::Starting {
        assert_eq!(slot.thread(), Some(4711), "{seen:?}");
    }
    if seen == WorkerState::Left {
        assert_eq!((slot.waits_for(), slot.took_over(), slot.seen()), (Some(3), Some(3), 99));
    }
    together([worker]);
}

/// A header that is looked at while it is written is either none yet or whole.
fn header() {
    let map = SegmentMap::new(2, 1, 128).unwrap();
    let header = Arc::new(Header::<Word, LongWord>::default());
    let reader = header.clone();
    let reader = spawn(move || match reader.check(&map, 7) {
        Ok(()) => assert_eq!(reader.tick_rate(), Ok(TickRate { ticks_per_ns: 2.5 })),
        Err(HeaderError::Mismatch { field: "magic", .. }) => {}
        Err(error) => panic!("half a header: {error}"),
    });
    header.write(&map, 7, TickRate { ticks_per_ns: 2.5 });
    together([reader]);
}

/// Each half of each ordering of the protocol is needed: without it some model fails.
#[test]
fn the_protocol_holds_in_every_order_and_with_no_ordering_less() {
    for (name, run) in [
        ("release", release as fn()),
        ("arrival", arrival),
        ("departure", departure),
        ("state", state),
        ("header", header),
    ] {
        assert_eq!(unmissed(&[Model::new(3, run)]), [""; 0], "{name}");
    }
}

#[test]
fn an_abort_wins_and_no_phase_is_taken_back() {
    Model::new(3, abort).explore();
}
