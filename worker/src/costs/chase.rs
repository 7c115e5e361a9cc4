//! How long a load takes that each level of this CPU's caches serves: loads that depend on each other, in random order.
#![allow(unsafe_code)] // loads by address, written out

use super::Loop;
use host::Root;
use plan::{CACHE_LINE_BYTES, CpuId, TickRate};
use record::CostProbe;
use shm_layout::ticks;
use std::cell::Cell;

/// Tries of which the shortest counts: other tenants of a last level disturb most of them on a busy machine.
const TRIES: usize = 12;
/// Tries of memory, each of which flushes its lines first, and of the last level, each of which pushes them out.
const MEMORY_TRIES: usize = 3;
const EVICTED_TRIES: usize = 4;
/// Loads of one try: 0.3 us in the first level, 30 us in memory.
const LOADS: usize = 256;
/// Loads that are written out one behind the other.
const UNROLLED: usize = 8;
/// Words of a line, and of the room that each line of the far chains has: no prefetcher of neighbours or pairs finds
/// the next one.
const LINE_WORDS: usize = CACHE_LINE_BYTES as usize / 8;
const SPREAD_WORDS: usize = 4 * LINE_WORDS;
/// Lines of the chain that stays in the first level: 4 KiB of it.
const NEAR_LINES: usize = 64;
/// Second levels larger than this are left out: there is none, and a wrong answer of the system must not cost memory.
const SECOND_LEVEL_MAX: u64 = 64 << 20;

/// Ticks a load.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub(super) struct Chased {
    l1: Option<f64>,
    l2: Option<f64>,
    llc: Option<f64>,
    memory: Option<f64>,
}

impl Chased {
    pub(super) fn probe(&self, rate: TickRate) -> CostProbe {
        let ns = |ticks: Option<f64>| ticks.map(|ticks| ticks / rate.ticks_per_ns);
        CostProbe {
            l1_ns: ns(self.l1),
            l2_ns: ns(self.l2),
            llc_ns: ns(self.llc),
            memory_ns: ns(self.memory),
            ..CostProbe::default()
        }
    }
}

/// Times the levels of `cpu`, on which this thread runs; `flush` is the compiled loop of one flush. A level that the
/// system does not describe is left open: where its lines would have to be put is not known.
pub(super) fn chase(cpu: CpuId, flush: &mut Loop) -> Chased {
    let caches = host::data_caches(&Root::system(), cpu);
    let bytes = |level: u32| caches.iter().find(|cache| cache.level == level).and_then(|cache| cache.bytes);
    let second = bytes(2).filter(|bytes| *bytes <= SECOND_LEVEL_MAX);
    let has_third = caches.iter().any(|cache| cache.level > 2);
    Chased {
        l1: Some(near(NEAR_LINES, LINE_WORDS)),
        // Four times the first level or more: in a cyclic order hardly a line of it is still there when it comes again.
        l2: second.map(|bytes| near(bytes as usize / 4 / CACHE_LINE_BYTES as usize, LINE_WORDS)),
        llc: second.filter(|_| has_third).map(|bytes| evicted(bytes as usize)),
        memory: Some(flushed(flush)),
    }
}

/// A chain that is loaded twice: the second time each line is where the first left it.
fn near(lines: usize, line_words: usize) -> f64 {
    let chain = Chain::new(lines.max(2), line_words);
    let mut at = chain.follow(chain.address(0), lines.next_multiple_of(UNROLLED));
    shortest(|| {
        at = chain.follow(at, LOADS);
        at
    })
}

/// Parts of a chain of four times the second level's `bytes`. Each is touched, then so many lines behind it that it is
/// pushed out of the second level, then timed. The lines are touched in the chain's order: what comes in ascending
/// order some caches take for a stream, and keep what they have.
fn evicted(bytes: usize) -> f64 {
    let lines = (4 * bytes / CACHE_LINE_BYTES as usize).max(2 * EVICTED_TRIES * LOADS);
    let chain = Chain::new(lines, LINE_WORDS);
    let one_try = |nth: usize| {
        let first = nth * lines / EVICTED_TRIES;
        for n in first..first + LOADS + lines / 2 {
            std::hint::black_box(chain.word(n % lines).get());
        }
        let at = chain.address(first);
        timed(|| std::hint::black_box(chain.follow(at, LOADS)))
    };
    (0..EVICTED_TRIES).map(one_try).fold(f64::INFINITY, f64::min)
}

/// A chain whose lines were flushed.
fn flushed(flush: &mut Loop) -> f64 {
    let chain = Chain::new(LOADS, SPREAD_WORDS);
    let mut tries = [0.0; MEMORY_TRIES];
    for one in &mut tries {
        for line in chain.words.chunks(SPREAD_WORDS) {
            // SAFETY: the line's first eight bytes, cells that the chain owns; a flush changes nothing in them.
            unsafe { flush.run_on(line[0].as_ptr().cast(), 1) };
        }
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        *one = timed(|| std::hint::black_box(chain.follow(chain.address(0), LOADS)));
    }
    tries.into_iter().fold(f64::INFINITY, f64::min)
}

fn shortest(mut body: impl FnMut() -> *const u8) -> f64 {
    let tries = (0..TRIES).map(|_| timed(|| std::hint::black_box(body())));
    tries.fold(f64::INFINITY, f64::min)
}

/// Ticks a load of a body of [`LOADS`].
fn timed<T>(body: impl FnOnce() -> T) -> f64 {
    let start = ticks();
    body();
    (ticks() - start) as f64 / LOADS as f64
}

/// Lines in one circle: the first word of each is the next one's address.
struct Chain {
    words: Vec<Cell<*const u8>>,
    /// Words from one line to the next.
    apart: usize,
    /// The lines as they follow each other.
    order: Vec<usize>,
}

impl Chain {
    /// `lines` lines, `apart` words from one to the next, in an order that no prefetcher guesses.
    fn new(lines: usize, apart: usize) -> Chain {
        let mut order: Vec<usize> = (0..lines).collect();
        // Any order serves that is one circle and has no pattern: Fisher and Yates with Marsaglia's xorshift64.
        let mut random = 0x9e37_79b9_7f4a_7c15u64;
        for last in (1..lines).rev() {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            order.swap(last, (random % (last as u64 + 1)) as usize);
        }
        let chain = Chain { words: vec![Cell::new(std::ptr::null()); lines * apart], apart, order };
        for nth in 0..lines {
            chain.word(nth).set(chain.address((nth + 1) % lines));
        }
        chain
    }

    /// The first word of the `nth` line of the chain.
    fn word(&self, nth: usize) -> &Cell<*const u8> {
        &self.words[self.order[nth] * self.apart]
    }

    /// Where that line is.
    fn address(&self, nth: usize) -> *const u8 {
        std::ptr::from_ref(self.word(nth)).cast()
    }

    /// Where `loads` loads, a multiple of [`UNROLLED`], lead from the line `at` of this chain. The loads are written
    /// out, so that nothing else is timed, whatever the compiler was told.
    #[inline(never)]
    fn follow(&self, mut at: *const u8, loads: usize) -> *const u8 {
        for _ in 0..loads / UNROLLED {
            // SAFETY: each load reads the first word of a line of the chain, which is the address of another: `at` is
            // one by the caller's word, which only this module's functions are, and self keeps the lines.
            unsafe {
                #[cfg(target_arch = "x86_64")]
                std::arch::asm!(
                    "mov {at}, [{at}]", "mov {at}, [{at}]", "mov {at}, [{at}]", "mov {at}, [{at}]",
                    "mov {at}, [{at}]", "mov {at}, [{at}]", "mov {at}, [{at}]", "mov {at}, [{at}]",
                    at = inout(reg) at, options(readonly, nostack, preserves_flags)
                );
                #[cfg(target_arch = "aarch64")]
                std::arch::asm!(
                    "ldr {at}, [{at}]", "ldr {at}, [{at}]", "ldr {at}, [{at}]", "ldr {at}, [{at}]",
                    "ldr {at}, [{at}]", "ldr {at}, [{at}]", "ldr {at}, [{at}]", "ldr {at}, [{at}]",
                    at = inout(reg) at, options(readonly, nostack, preserves_flags)
                );
            }
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_one_circle_over_all_its_lines() {
        for lines in [2, 3, 64, 1_000] {
            let chain = Chain::new(lines, SPREAD_WORDS);
            let mut seen = vec![false; lines];
            let mut at = chain.address(0);
            for _ in 0..lines {
                let line = (at as usize - chain.words.as_ptr() as usize) / 8 / SPREAD_WORDS;
                seen[line] = true;
                at = chain.words[line * SPREAD_WORDS].get();
            }
            assert!(at == chain.address(0) && seen.iter().all(|seen| *seen), "{lines}");
            let around = lines * UNROLLED;
            assert_eq!(chain.follow(at, around), at, "so many loads lead around and around");
        }
    }

    #[test]
    fn the_levels_are_timed_on_this_cpu() {
        let mut flush = Loop::compile(plan::OpKind::Flush { at: plan::Address::Fixed(0) }).unwrap();
        let rate = shm_layout::calibrate(std::time::Duration::from_millis(5));
        let seen = chase(CpuId(0), &mut flush).probe(rate);
        let (l1, memory) = (seen.l1_ns.unwrap(), seen.memory_ns.unwrap());
        // Even the slowest machine loads from its first level sooner than from memory: by a factor of ten and more.
        assert!(l1 > 0.1 && memory > 2.0 * l1, "{seen:?}");
        assert_eq!(seen.load_ns, None, "no business of the chase");
    }
}
