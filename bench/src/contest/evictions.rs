//! Which slices a process ran all through: the others were evicted, and say nothing.

use crate::contest::Side;
use plan::TickRate;

/// Unexplained time that an interrupt and the work behind it may take: the lab's floor.
const FLOOR_NS: u64 = 50_000;

/// One process's slice, as it was recorded.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Who ran.
    pub(crate) side: Side,
    /// Passes between the first and the last clock read: of both processes, where they take one lock.
    pub(crate) passes: u64,
    /// Ticks between those two.
    pub(crate) ticks: u64,
    /// Longest distance of two neighbouring reads, ticks.
    pub(crate) longest: u64,
    /// Clock reads, the first not counted.
    pub(crate) chunks: u64,
    /// Time that the process was ready to run and did not, nanoseconds; 0 where the kernel does not say.
    pub(crate) queued_ns: u64,
}

/// What tells an eviction.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Nobody sleeps by itself: two clock reads further apart than 50 µs and three times their usual distance in the
    /// slice. The lab's own rule for loops that do not block.
    AnyGap,
    /// A process may sleep in a wait that is the lock's own doing, for longer than 50 µs, and what C does in it is
    /// timed by nobody. So a slice is held against its fellows: where its longest distance of two reads, or its time on
    /// the run queue, is over 50 µs and three times what is usual of both (the median over the batch's slices of that
    /// side and process). Each waking has some microseconds on the run queue, so what is usual there is not 0.
    UnlikeFellows,
}

impl Rule {
    /// For each of a process's slices of a batch, whether it ran all through it.
    pub(crate) fn ran_through(self, seen: &[Seen], rate: TickRate) -> Vec<bool> {
        let floor = rate.ticks(FLOOR_NS);
        let usual_of = |side: Side| {
            let of = |figure: fn(&Seen) -> u64| median(seen.iter().filter(|s| s.side == side).map(figure));
            (of(|s| s.longest), of(|s| s.queued_ns))
        };
        let (contestant, reference) = (usual_of(Side::Contestant), usual_of(Side::Reference));
        let ran = |s: &Seen| match self {
            Rule::AnyGap => s.ticks.checked_div(s.chunks).is_some_and(|usual| s.longest <= floor + 3 * usual),
            Rule::UnlikeFellows => {
                let (longest, queued_ns) = if s.side == Side::Contestant { contestant } else { reference };
                s.longest <= floor + 3 * longest && s.queued_ns <= FLOOR_NS + 3 * queued_ns
            }
        };
        seen.iter().map(ran).collect()
    }
}

/// 0 of nothing.
fn median(values: impl Iterator<Item = u64>) -> u64 {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One tick a nanosecond.
    const RATE: TickRate = TickRate { ticks_per_ns: 1.0 };

    /// A slice of 25 chunks, 20 µs each but for one.
    fn seen(side: Side, longest_us: u64, queued_us: u64) -> Seen {
        Seen {
            side,
            passes: 1_000,
            ticks: 500_000,
            longest: longest_us * 1_000,
            chunks: 25,
            queued_ns: queued_us * 1_000,
        }
    }

    #[test]
    fn a_gap_is_an_eviction_where_nobody_sleeps() {
        let slices = [20, 109, 111].map(|longest| seen(Side::Reference, longest, 0));
        assert_eq!(Rule::AnyGap.ran_through(&slices, RATE), [true, true, false]);
        let nothing = Seen { passes: 0, ticks: 0, chunks: 0, ..slices[0] };
        assert_eq!(Rule::AnyGap.ran_through(&[nothing], RATE), [false], "no chunk within the slice");
    }

    #[test]
    fn sleepers_are_held_against_their_fellows_of_the_same_side() {
        let contestant = |longest, queued| seen(Side::Contestant, longest, queued);
        let reference = |longest, queued| seen(Side::Reference, longest, queued);
        let slices = [
            contestant(100, 10),
            contestant(120, 12),
            contestant(110, 11),
            contestant(379, 82), // 50 + 3 × 110, and 50 + 3 × 11
            contestant(381, 11),
            contestant(100, 84),
            contestant(100, 2),
            reference(20, 0),
            reference(20, 0),
            reference(20, 0),
            reference(109, 49),
            reference(111, 0),
        ];
        let ran = Rule::UnlikeFellows.ran_through(&slices, RATE);
        assert_eq!(ran, [true, true, true, true, false, false, true, true, true, true, true, false]);
    }

    #[test]
    fn a_sleeper_that_made_no_chunk_may_have_slept() {
        let slept = Seen { passes: 0, ticks: 0, chunks: 0, ..seen(Side::Reference, 150, 0) };
        let fellows = [slept, seen(Side::Reference, 100, 0), seen(Side::Reference, 100, 0)];
        assert_eq!(Rule::UnlikeFellows.ran_through(&fellows, RATE), [true; 3]);
    }
}
