//! Which side runs when: quads of four neighbouring slices, `ABBA` or `BAAB` at random, so that a drift of the machine
//! weighs on both alike. Every second quad compares the reference with itself.

use crate::contest::Side;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// What a quad compares.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// The contestant with its reference.
    Contest,
    /// The reference with itself: what a difference of nothing looks like here.
    Control,
}

/// Four slices in a row, two for each contestant.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Quad {
    /// What it compares.
    pub(crate) comparison: Comparison,
    /// Whether the contestant (not the reference it is compared with) comes first: `ABBA`.
    pub(crate) contestant_first: bool,
}

impl Quad {
    /// For each slice, whether it is the contestant's.
    pub(crate) fn order(self) -> [bool; 4] {
        let first = self.contestant_first;
        [first, !first, !first, first]
    }

    /// Who runs each slice.
    pub(crate) fn sides(self) -> [Side; 4] {
        self.order().map(|contestant| match self.comparison {
            Comparison::Contest if contestant => Side::Contestant,
            _ => Side::Reference,
        })
    }
}

/// A batch of `length` quads of each comparison, in turn.
pub(crate) fn batch(length: usize, seed: u64) -> Vec<Quad> {
    let mut random = SmallRng::seed_from_u64(seed);
    let both = [Comparison::Contest, Comparison::Control];
    let quads = (0..length).flat_map(|_| both);
    quads.map(|comparison| Quad { comparison, contestant_first: random.random() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quad_gives_each_contestant_the_same_mean_time() {
        for quad in batch(50, 3) {
            let mean = |contestant| {
                let places = quad.order().into_iter().zip(0..).filter(|(c, _)| *c == contestant).map(|(_, i)| i);
                places.sum::<i32>()
            };
            assert_eq!(mean(true), mean(false));
            let contestant = quad.sides().iter().filter(|s| **s == Side::Contestant).count();
            assert_eq!(contestant, if quad.comparison == Comparison::Control { 0 } else { 2 });
        }
    }

    #[test]
    fn both_orders_occur() {
        let batch = batch(50, 3);
        assert!(batch.iter().any(|q| q.contestant_first) && batch.iter().any(|q| !q.contestant_first));
    }
}
