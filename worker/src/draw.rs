//! What a seed gives each worker: numbers that differ from worker to worker, and are the same again for the same seed.

/// For what a number is drawn: numbers that are drawn for different things do not go together.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Purpose {
    /// The generator of `[any]` starts from it.
    Elements,
    /// When in its period an open loop begins.
    Phase,
}

/// 64 random bits for a worker, by its index: the finaliser of SplitMix64 (Steele, Lea, Flood 2014) over a sequence whose
/// step is odd, and another for each purpose.
pub(crate) fn bits(seed: u64, worker: u32, purpose: Purpose) -> u64 {
    let step: u64 = match purpose {
        Purpose::Elements => 0x9e37_79b9_7f4a_7c15, // SplitMix64's own: 2^64 over the golden ratio
        Purpose::Phase => 0xd134_2543_de82_ef95,
    };
    let mut state = seed.wrapping_add((u64::from(worker) + 1).wrapping_mul(step));
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_worker_seed_and_purpose_has_bits_of_its_own() {
        let all: BTreeSet<u64> = (0..64u64)
            .flat_map(|seed| (0..64).map(move |worker| (seed, worker)))
            .flat_map(|(seed, worker)| [Purpose::Elements, Purpose::Phase].map(|purpose| bits(seed, worker, purpose)))
            .collect();
        assert_eq!(all.len(), 64 * 64 * 2);
        assert_eq!(bits(7, 3, Purpose::Phase), bits(7, 3, Purpose::Phase));
    }

    /// The first numbers of SplitMix64 from 0, as its authors' program prints them.
    #[test]
    fn the_bits_are_splitmix64_s() {
        let first = [0, 1].map(|worker| bits(0, worker, Purpose::Elements));
        assert_eq!(first, [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
    }
}
