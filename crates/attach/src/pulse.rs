//! How words change while nobody is disturbed: read from outside, again and again, in the last part of a watch.

use crate::cpu_clock::Clock;
use crate::memory::Memory;
use crate::target::{Target, Targets};
use plan::CACHE_LINE_BYTES;
use record::{Interval, LineVerdict, TouchedLine, TouchedWord, WatchedLock, WordPace};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// A rate is made of the growth over such a piece of time: long beside the reading of some words, and short enough that
/// the last part of a short watch holds a score of them.
const PIECE: Duration = Duration::from_millis(20);
/// Between two looks at words of locks: a look takes about a microsecond, and waking up for it some ten.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);
/// What was read in more than that may lie on both sides of a time in which this process did not run: no moment.
const MOMENT: Duration = Duration::from_micros(200);
/// Pieces, and looks at a lock, that there must be for anything to be said.
const PIECES_LEAST: usize = 5;
const LOOKS_LEAST: u32 = 20;
/// In a piece in which its writers ran for less, a word may stand still.
const RAN_LEAST_NS: u64 = 1_000_000;
/// Words that are followed, those of the dearest lines first.
const MOST_WORDS: usize = 256;
/// A piece in 40 lies below the interval and one above.
const TAIL: f64 = 0.025;

/// The words that are followed.
#[derive(Default)]
pub(crate) struct Pulse {
    places: Vec<Place>,
    counters: Vec<Counter>,
    locks: Vec<Lock>,
    /// When the piece began that runs.
    began: Option<Instant>,
}

/// A process through which words are read.
struct Place {
    memory: Memory,
    /// Where it has which words.
    addresses: BTreeMap<u64, u64>,
}

/// A word that may count something.
struct Counter {
    offset: u64,
    bytes: usize,
    step: u64,
    writers: Vec<Rc<Clock>>,
    last: Option<Stand>,
    rates: Vec<Rate>,
    /// Whether it was seen to fall, or to stand still while its writers ran: it counts nothing.
    is_none: bool,
}

/// A word at one moment.
#[derive(Copy, Clone, Debug)]
struct Stand {
    at: Instant,
    value: u64,
    /// CPU time of its writers.
    cpu_ns: Option<u64>,
}

/// Times that it was written, a second and a second of its writers' CPU time.
#[derive(Copy, Clone, Debug, PartialEq)]
struct Rate {
    per_second: f64,
    per_cpu_second: Option<f64>,
}

/// A word of a lock.
struct Lock {
    offset: u64,
    looks: u32,
    held: u32,
}

impl Pulse {
    /// Follows words of these lines: those that somebody writes, and those of locks.
    pub(crate) fn new(targets: &Targets, lines: &[TouchedLine], waited: &[WatchedLock]) -> Pulse {
        let words = || lines.iter().flat_map(|line| line.words.iter().map(move |word| (line, word)));
        let mut clocks = Clocks { targets, of_threads: BTreeMap::new() };
        let counters = words().filter(|(_, word)| Counter::is_any(word)).take(MOST_WORDS);
        let counters: Vec<Counter> = counters.map(|(_, word)| Counter::of(word, clocks.of(word))).collect();
        let waited: BTreeSet<u64> = waited.iter().map(|lock| lock.offset).collect();
        let is_lock = |line: &TouchedLine, word: &TouchedWord| {
            line.verdict == LineVerdict::LockWord && !word.writers.is_empty() || waited.contains(&word.offset)
        };
        let locks = words().filter(|(line, word)| is_lock(line, word)).take(MOST_WORDS);
        let locks: Vec<Lock> = locks.map(|(_, word)| Lock { offset: word.offset, looks: 0, held: 0 }).collect();
        let offsets = counters.iter().map(|one| one.offset).chain(locks.iter().map(|one| one.offset));
        let offsets: BTreeSet<u64> = offsets.collect();
        let place = |target: &Target| {
            let address = |offset: &u64| Some((*offset, target.addresses(*offset).next()?));
            Place { memory: Memory::of(target.pid), addresses: offsets.iter().filter_map(address).collect() }
        };
        Pulse { places: targets.processes.iter().map(place).collect(), counters, locks, began: None }
    }

    /// How long nothing is to be looked at.
    pub(crate) fn rest(&self) -> Duration {
        if self.locks.is_empty() { PIECE } else { BETWEEN_LOOKS }
    }

    /// Looks at what there is to be looked at now.
    pub(crate) fn look(&mut self) {
        for lock in &mut self.locks {
            if let Some(value) = read(&self.places, lock.offset, 4) {
                lock.looks += 1;
                lock.held += u32::from(value != 0);
            }
        }
        if self.began.is_some_and(|began| began.elapsed() < PIECE) {
            return;
        }
        self.began = Some(Instant::now());
        for counter in self.counters.iter_mut().filter(|one| !one.is_none) {
            let at = Instant::now();
            let value = read(&self.places, counter.offset, counter.bytes);
            let cpu_ns = counter.writers.iter().map(|clock| clock.used_ns()).sum();
            let stand = value.filter(|_| at.elapsed() <= MOMENT).map(|value| Stand { at, value, cpu_ns });
            counter.enter(stand);
        }
    }

    /// Writes what was seen into the lines.
    pub(crate) fn tell(self, lines: &mut [TouchedLine]) {
        let mut words: BTreeMap<u64, &mut TouchedWord> =
            lines.iter_mut().flat_map(|line| &mut line.words).map(|word| (word.offset, word)).collect();
        for counter in self.counters {
            if let Some(word) = words.get_mut(&counter.offset) {
                word.pace = counter.pace();
            }
        }
        for lock in self.locks.into_iter().filter(|lock| lock.looks >= LOOKS_LEAST) {
            if let Some(word) = words.get_mut(&lock.offset) {
                word.held = Some(f64::from(lock.held) / f64::from(lock.looks));
            }
        }
    }
}

/// A number of that many bytes, by the first process in which it can be read: any may end.
fn read(places: &[Place], offset: u64, bytes: usize) -> Option<u64> {
    places.iter().find_map(|place| {
        let mut number = [0; 8];
        let wanted = number.get_mut(..bytes)?;
        place.memory.now(*place.addresses.get(&offset)?, wanted).then(|| u64::from_ne_bytes(number))
    })
}

/// The clocks of those who write words.
struct Clocks<'a> {
    targets: &'a Targets,
    /// One a thread, whichever words it writes.
    of_threads: BTreeMap<u32, Rc<Clock>>,
}

impl Clocks<'_> {
    /// Of the threads that write a word. Of a process with one thread, or whose threads cannot be told or have no clock, that
    /// of the process.
    fn of(&mut self, word: &TouchedWord) -> Vec<Rc<Clock>> {
        let mut clocks = Vec::new();
        for pid in &word.writers {
            match self.of_threads(*pid, word) {
                Some(of_threads) => clocks.extend(of_threads),
                None => clocks.push(Rc::new(Clock::Process(*pid))),
            }
        }
        clocks
    }

    fn of_threads(&mut self, pid: u32, word: &TouchedWord) -> Option<Vec<Rc<Clock>>> {
        let has_several = |target: &&Target| target.pid == pid && target.threads.len() > 1;
        self.targets.processes.iter().find(has_several)?;
        let writes = word.instructions.iter().filter(|at| at.pid == pid && at.writes);
        let tids: BTreeSet<u32> = writes.flat_map(|at| &at.tids).copied().collect();
        let clocks = tids.into_iter().map(|tid| self.of_thread(tid)).collect::<Option<Vec<_>>>()?;
        (!clocks.is_empty()).then_some(clocks)
    }

    fn of_thread(&mut self, tid: u32) -> Option<Rc<Clock>> {
        if let Some(known) = self.of_threads.get(&tid) {
            return Some(Rc::clone(known));
        }
        let clock = Rc::new(Clock::of_thread(tid).ok()?);
        self.of_threads.insert(tid, Rc::clone(&clock));
        Some(clock)
    }
}

impl Counter {
    /// Whether a word may count something.
    fn is_any(word: &TouchedWord) -> bool {
        let within = word.offset % CACHE_LINE_BYTES + u64::from(word.bytes) <= CACHE_LINE_BYTES;
        matches!(word.bytes, 4 | 8) && within && !word.writers.is_empty()
    }

    fn of(word: &TouchedWord, writers: Vec<Rc<Clock>>) -> Counter {
        Counter {
            offset: word.offset,
            bytes: word.bytes as usize,
            step: word.adds.unwrap_or(1).max(1),
            writers,
            last: None,
            rates: Vec::new(),
            is_none: false,
        }
    }

    /// Goes on to how it stands now; `None` is no moment, and the piece that ended with it none either.
    fn enter(&mut self, now: Option<Stand>) {
        let Some((last, now)) = std::mem::replace(&mut self.last, now).zip(now) else { return };
        let bits = self.bytes as u32 * 8;
        let grown = now.value.wrapping_sub(last.value) & (u64::MAX >> (64 - bits));
        let ran_ns = now.cpu_ns.zip(last.cpu_ns).map(|(now, last)| now.saturating_sub(last));
        if grown == 0 && ran_ns.is_some_and(|ns| ns < RAN_LEAST_NS) {
            return;
        }
        // More than half of what it can hold is a value that fell.
        if grown == 0 || grown >> (bits - 1) != 0 {
            self.is_none = true;
            return;
        }
        let times = grown as f64 / self.step as f64;
        let ran_ns = ran_ns.filter(|ns| *ns >= RAN_LEAST_NS);
        self.rates.push(Rate {
            per_second: times / (now.at - last.at).as_secs_f64(),
            per_cpu_second: ran_ns.map(|ns| times / ns as f64 * 1e9),
        });
    }

    fn pace(self) -> Option<WordPace> {
        let per_second = spread(self.rates.iter().map(|rate| rate.per_second).collect()).filter(|_| !self.is_none)?;
        let per_cpu_second = spread(self.rates.iter().filter_map(|rate| rate.per_cpu_second).collect());
        Some(WordPace { per_second, per_cpu_second, pieces: self.rates.len() as u32 })
    }
}

/// The median, and between which values 19 of 20 lie.
fn spread(mut rates: Vec<f64>) -> Option<Interval> {
    if rates.len() < PIECES_LEAST {
        return None;
    }
    rates.sort_by(f64::total_cmp);
    let last = rates.len() - 1;
    let at = |share: f64| rates[(share * last as f64).round() as usize];
    // Outwards, so that few pieces tell no narrower an interval than many.
    let cut = (TAIL * last as f64).floor() as usize;
    Some(Interval { median: at(0.5), low: rates[cut], high: rates[last - cut] })
}

#[cfg(test)]
mod tests {
    use super::{Counter, PIECE, Stand, spread};
    use std::time::Instant;

    fn counter(bytes: usize, step: u64) -> Counter {
        Counter { offset: 0, bytes, step, writers: Vec::new(), last: None, rates: vec![], is_none: false }
    }

    /// Its values one piece apart, its writer running half of the time; `None` is no moment.
    fn followed(mut counter: Counter, values: &[Option<u64>]) -> Counter {
        let began = Instant::now();
        for (nth, value) in values.iter().enumerate() {
            let at = began + PIECE * nth as u32;
            let cpu_ns = Some(nth as u64 * 10_000_000);
            counter.enter(value.map(|value| Stand { at, value, cpu_ns }));
        }
        counter
    }

    #[test]
    fn what_grows_by_its_step_has_a_rate_of_the_clock_and_one_of_cpu_time() {
        let values: Vec<Option<u64>> = (0..8).map(|nth| Some(nth * 4_000)).collect();
        let pace = followed(counter(8, 2), &values).pace().expect("it grows");
        let near = |rate: f64, wanted: f64| (rate / wanted - 1.0).abs() < 1e-6;
        assert!(near(pace.per_second.median, 100_000.0), "{pace:?}");
        assert!(pace.pieces == 7 && near(pace.per_cpu_second.expect("it ran").median, 200_000.0), "{pace:?}");
    }

    #[test]
    fn a_counter_that_goes_round_counts_and_a_value_that_falls_or_stands_still_does_not() {
        let round: Vec<Option<u64>> =
            (0..8).map(|nth| Some((u64::from(u32::MAX) - 2_500 + nth * 1_000) & 0xffff_ffff)).collect();
        assert!(followed(counter(4, 1), &round).pace().is_some());
        let falls = [1, 2, 3, 4, 5, 6, 5, 7].map(Some);
        assert!(followed(counter(8, 1), &falls).pace().is_none());
        let stands = [1, 2, 3, 4, 5, 6, 6, 7].map(Some);
        assert!(followed(counter(8, 1), &stands).pace().is_none());
    }

    #[test]
    fn a_moment_that_was_none_spoils_the_pieces_at_its_sides_and_no_others() {
        let values = [Some(0), Some(10), None, Some(30), Some(40), Some(50), Some(60), Some(70)];
        assert_eq!(followed(counter(8, 1), &values).pace().expect("five are left").pieces, 5);
        let values = [Some(0), Some(10), None, Some(30), Some(40), Some(50)];
        assert!(followed(counter(8, 1), &values).pace().is_none(), "three are too few");
    }

    #[test]
    fn of_many_pieces_the_outermost_are_left_out() {
        let of = |count: u32| spread((1..=count).map(f64::from).collect());
        let all = of(5).expect("enough");
        assert_eq!((all.low, all.median, all.high), (1.0, 3.0, 5.0));
        let many = of(101).expect("enough");
        assert_eq!((many.low, many.median, many.high), (3.0, 51.0, 99.0));
        assert!(of(4).is_none());
    }
}
