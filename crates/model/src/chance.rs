//! Seeded chance. Not `rand`'s: it is drawn from at each step of the engine, and dependencies are compiled unoptimised.

/// A generator of numbers that look random: G. Marsaglia, "Xorshift RNGs", Journal of Statistical Software 8 (14), 2003.
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    /// Seeds that differ give two sequences, but for neighbours that differ in their lowest bit alone.
    pub(crate) fn new(seed: u64) -> Chance {
        // The state must not be 0.
        let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..8 {
            chance.next();
        }
        chance
    }

    #[inline(always)]
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `below`, all alike; 0 where that is 0.
    #[inline(always)]
    pub(crate) fn below(&mut self, below: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(below)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_below_the_bound_comes_about_equally_often_and_seeds_differ() {
        let mut chance = Chance::new(1);
        let mut often = [0_u32; 5];
        for _ in 0..50_000 {
            often[chance.below(5) as usize] += 1;
        }
        assert!(often.iter().all(|&times| (9_500..10_500).contains(&times)), "{often:?}");
        let drawn = |seed: u64| {
            let mut chance = Chance::new(seed);
            (0..4).map(|_| chance.below(1 << 32)).collect::<Vec<_>>()
        };
        assert_ne!(drawn(1), drawn(3));
        assert_eq!(drawn(7), drawn(7));
        assert_eq!(chance.below(0), 0);
    }
}
