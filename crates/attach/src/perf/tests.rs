use super::records::{HEADER_BYTES, next};
use super::{Access, Event, Fields, Order, Record, Ring, Source, Whom};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use testing::{A_LONG_TIME, within};

const HIT: Fields = Fields::IDENTIFIER.and(Fields::IP).and(Fields::THREAD).and(Fields::TIME).and(Fields::ADDRESS);

fn order(source: Source) -> Order {
    Order { source, period: 1, fields: HIT, registers: 0, inherit: false, kernel: false }
}

fn record(kind: u32, misc: u16, words: &[u64]) -> Vec<u8> {
    let mut bytes = kind.to_ne_bytes().to_vec();
    bytes.extend(misc.to_ne_bytes());
    bytes.extend(((words.len() * 8 + HEADER_BYTES) as u16).to_ne_bytes());
    bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
    bytes
}

#[test]
fn a_sample_comes_apart_in_the_kernels_order() {
    let fields = HIT.and(Fields::CPU).and(Fields::RAW).and(Fields::REGISTERS);
    let raw = 12u64 | 7 << 32; // twelve bytes, the first of which are a 7
    let words = [1, 0x400000, 5 | 6 << 32, 77, 0x1000, 3, raw, 9, 2, 10, 20];
    let bytes = [record(9, 2, &words), record(2, 0, &[1, 40]), record(13, 0, &[0; 3])].concat();
    let mut log = &bytes[..];
    let Some(Some(Record::Sample(sample))) = next(&mut log, fields, 0b101) else { panic!("no sample") };
    assert_eq!((sample.id, sample.ip, sample.pid, sample.tid), (1, 0x400000, 5, 6));
    assert_eq!((sample.time_ns, sample.address, sample.cpu, sample.user), (77, 0x1000, 3, true));
    assert_eq!((sample.raw.len(), sample.raw[0], sample.registers), (12, 7, vec![10, 20]));
    assert_eq!(next(&mut log, fields, 0b101), Some(Some(Record::Lost(40))));
    assert_eq!(next(&mut log, fields, 0b101), Some(None), "a record of another kind");
    assert_eq!((log.len(), next(&mut log, fields, 0b101)), (0, None));
    assert_eq!(next(&mut &record(9, 2, &words[..3])[..], fields, 0b101), Some(None), "a sample that is cut off");
}

#[test]
fn what_became_of_a_thread_is_a_record_with_its_time() {
    let fields = HIT.and(Fields::RAW);
    let halves = |low: u64, high: u64| low | high << 32;
    let born = record(7, 0, &[halves(11, 10), halves(12, 10), 77]);
    let ended = record(4, 0, &[halves(11, 10), halves(12, 10), 88]);
    // A name of 16 bytes, and then thread, time and identifier.
    let name = |misc| record(3, misc, &[halves(11, 11), 0x006d_616e, 0, halves(11, 11), 99, 1]);
    let bytes = [born, ended, name(1 << 13), name(0)].concat();
    let mut log = &bytes[..];
    let mut taken = || next(&mut log, fields, 0);
    assert_eq!(taken(), Some(Some(Record::Born { pid: 11, tid: 12, parent: 10, time_ns: 77 })));
    assert_eq!(taken(), Some(Some(Record::Ended { pid: 11, tid: 12, time_ns: 88 })));
    assert_eq!(taken(), Some(Some(Record::Executed { pid: 11, tid: 11, time_ns: 99 })));
    assert_eq!(taken(), Some(None), "a thread that gives itself another name");
}

/// A thread that adds to a word until it is dropped, and its number.
struct Adder {
    stop: &'static AtomicBool,
    thread: Option<std::thread::JoinHandle<()>>,
    tid: u32,
}

impl Adder {
    fn start(word: &'static AtomicU64) -> Adder {
        let stop: &'static AtomicBool = Box::leak(Box::default());
        let (tell, told) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            tell.send(nix::unistd::gettid().as_raw()).unwrap();
            while !stop.load(Ordering::Relaxed) {
                word.fetch_add(1, Ordering::Relaxed);
            }
        });
        Adder { stop, thread: Some(thread), tid: told.recv().unwrap() as u32 }
    }
}

impl Drop for Adder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

#[test]
fn a_breakpoint_on_another_thread_stops_by_itself_after_its_hits() {
    let word: &'static AtomicU64 = Box::leak(Box::default());
    let adder = Adder::start(word);
    let owner = Event::open(&order(Source::Nothing), Whom::Thread(adder.tid)).unwrap();
    let mut ring = Ring::map(&owner, 8, HIT, 0).unwrap();
    let address = std::ptr::from_ref(word) as u64;
    let source = Source::Breakpoint { address, bytes: 8, access: Access::Write };
    for _ in 0..3 {
        let event = Event::open(&order(source), Whom::Thread(adder.tid)).unwrap();
        event.write_to(&owner).unwrap();
        event.refresh(5).unwrap();
        within(A_LONG_TIME, "its hits", || (event.count().unwrap() >= 5).then_some(()));
        let from = word.load(Ordering::Relaxed);
        let has_gone_on = || word.load(Ordering::Relaxed) >= from + 10_000;
        within(A_LONG_TIME, "many more additions", || has_gone_on().then_some(()));
        assert_eq!(event.count().unwrap(), 5, "it went on");
        let mut hits = 0;
        ring.drain(|record| {
            let Record::Sample(sample) = record else { panic!("{record:?}") };
            assert_eq!((sample.id, sample.tid, sample.address, sample.user), (event.id(), adder.tid, address, true));
            hits += 1;
        });
        assert_eq!(hits, 5);
    }
}

#[test]
fn a_thread_that_has_ended_is_esrch() {
    let tid = Adder::start(Box::leak(Box::default())).tid;
    let open = Event::open(&order(Source::CpuClock), Whom::Thread(tid));
    assert_eq!(open.map(drop), Err(nix::errno::Errno::ESRCH));
}
