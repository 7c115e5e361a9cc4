//! How long a load takes that each level of this CPU's caches serves: loads that depend on each other, in random order.

use super::Loop;
use host::Root;
use plan::{CACHE_LINE_BYTES, CpuId, TickRate};
use record::CostProbe;
use shm_layout::ticks;

/// Tries of which the shortest counts: other tenants of a last level disturb most of them on a busy machine.
const TRIES: usize = 12;
/// Tries of memory, each of which flushes its lines first.
const MEMORY_TRIES: usize = 3;
/// Loads of one try: 0.3 us in the first level, 30 us in memory.
const LOADS: usize = 256;
/// Words of a line, and of the room that each line of the far chains has: no prefetcher of neighbours or pairs finds the
/// next one.
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
    let mut at = chain.follow(0, lines);
    shortest(|| {
        at = chain.follow(at, LOADS);
        at
    })
}

/// A part of a chain of four times the second level's `bytes`, which was written once, in the chain's order: from its
/// middle on, since a cache may keep the first lines it was given as well as the last ones.
fn evicted(bytes: usize) -> f64 {
    let lines = 4 * bytes / CACHE_LINE_BYTES as usize;
    let (chain, mut at) = Chain::with_middle(lines.max(4 * LOADS * TRIES), LINE_WORDS);
    shortest(|| {
        at = chain.follow(at, LOADS);
        at
    })
}

/// A chain whose lines were flushed.
#[allow(unsafe_code)]
fn flushed(flush: &mut Loop) -> f64 {
    let mut chain = Chain::new(LOADS, SPREAD_WORDS);
    let mut tries = [0.0; MEMORY_TRIES];
    for one in &mut tries {
        for line in chain.next.chunks_mut(SPREAD_WORDS) {
            // SAFETY: the line's first eight bytes, which the chain owns; a flush changes nothing in them.
            unsafe { flush.run_on(line.as_mut_ptr().cast(), 1) };
        }
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        *one = timed(|| std::hint::black_box(chain.follow(0, LOADS)));
    }
    tries.into_iter().fold(f64::INFINITY, f64::min)
}

fn shortest(mut body: impl FnMut() -> usize) -> f64 {
    let tries = (0..TRIES).map(|_| timed(|| std::hint::black_box(body())));
    tries.fold(f64::INFINITY, f64::min)
}

/// Ticks a load of a body of [`LOADS`].
fn timed<T>(body: impl FnOnce() -> T) -> f64 {
    let start = ticks();
    body();
    (ticks() - start) as f64 / LOADS as f64
}

/// Lines in one circle: the first word of each says where the next one is.
struct Chain {
    next: Vec<usize>,
}

impl Chain {
    /// `lines` lines, `words` words from one to the next, in an order that no prefetcher guesses.
    fn new(lines: usize, words: usize) -> Chain {
        Chain::with_middle(lines, words).0
    }

    /// The same, and the line that was written when half of them were.
    fn with_middle(lines: usize, words: usize) -> (Chain, usize) {
        let mut order: Vec<usize> = (0..lines).collect();
        // Any order serves that is one circle and has no pattern: Fisher and Yates with Marsaglia's xorshift64.
        let mut random = 0x9e37_79b9_7f4a_7c15u64;
        for last in (1..lines).rev() {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            order.swap(last, (random % (last as u64 + 1)) as usize);
        }
        let mut next = vec![0; lines * words];
        for (here, there) in order.iter().zip(order.iter().cycle().skip(1)) {
            next[here * words] = there * words;
        }
        (Chain { next }, order[lines / 2] * words)
    }

    /// Where `loads` loads from `at` on lead.
    #[inline(never)]
    fn follow(&self, mut at: usize, loads: usize) -> usize {
        for _ in 0..loads {
            at = self.next[at];
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
            let mut at = 0;
            for _ in 0..lines {
                seen[at / SPREAD_WORDS] = true;
                at = chain.follow(at, 1);
            }
            assert!(at == 0 && seen.iter().all(|seen| *seen), "{lines}");
        }
    }

    #[test]
    fn the_levels_are_timed_on_this_cpu() {
        let mut flush =
            Loop::compile(&crate::costs::tests::someone(), plan::OpKind::Flush { at: plan::Address::Fixed(0) })
                .unwrap();
        let rate = shm_layout::calibrate(std::time::Duration::from_millis(5));
        let seen = chase(CpuId(0), &mut flush).probe(rate);
        let (l1, memory) = (seen.l1_ns.unwrap(), seen.memory_ns.unwrap());
        // Even the slowest machine loads from its first level sooner than from memory: by a factor of ten and more.
        assert!(l1 > 0.1 && memory > 2.0 * l1, "{seen:?}");
        assert_eq!(seen.load_ns, None, "no business of the chase");
    }
}
