//! Conditions that take turns: each once a round, in an order of the round's own, so that a drift of the machine weighs on
//! all alike. A figure is a ratio within a round; what is compared with itself, as the control, is a condition too.

use crate::order;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use record::Interval;

/// So many rounds; what `each` gave, by round, in the order of `conditions`, whatever the order in which they ran.
///
/// # Errors
/// The first that `each` returned.
pub(crate) fn take_turns<C: Copy, T, E>(
    conditions: &[C],
    rounds: u32,
    seed: u64,
    mut each: impl FnMut(C, u32) -> Result<T, E>,
) -> Result<Vec<Vec<T>>, E> {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut round = |round: u32| {
        let mut order: Vec<usize> = (0..conditions.len()).collect();
        order.shuffle(&mut random);
        let mut seen = Vec::with_capacity(order.len());
        for nth in order {
            seen.push((nth, each(conditions[nth], round)?));
        }
        seen.sort_by_key(|(nth, _)| *nth);
        Ok(seen.into_iter().map(|(_, seen)| seen).collect())
    };
    (1..=rounds).map(&mut round).collect()
}

/// One condition's figure over another's, by their places: the median over the rounds that have both, and its interval.
pub(crate) fn ratio<T>(
    rounds: &[Vec<T>],
    [over, under]: [usize; 2],
    figure: impl Fn(&T) -> Option<f64>,
) -> Option<Interval> {
    let of = |round: &Vec<T>| Some(figure(&round[over])? / figure(&round[under])?);
    order::interval(rounds.iter().filter_map(of).filter(|ratio| ratio.is_finite()).collect())
}

/// The median of one condition's figure; `None` where no round has it.
pub(crate) fn median<T>(rounds: &[Vec<T>], place: usize, figure: impl Fn(&T) -> Option<f64>) -> Option<f64> {
    order::median(rounds.iter().filter_map(|round| figure(&round[place])).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_turn_in_every_round_in_changing_order() {
        let mut ran = Vec::new();
        let rounds = take_turns(&['a', 'b', 'c'], 40, 7, |condition, round| {
            ran.push((round, condition));
            Ok::<_, ()>(condition)
        });
        assert_eq!(rounds, Ok(vec![vec!['a', 'b', 'c']; 40]));
        let orders: std::collections::BTreeSet<String> =
            ran.chunks(3).map(|round| round.iter().map(|(_, condition)| *condition).collect()).collect();
        assert_eq!(orders.len(), 6, "every order occurs: {orders:?}");
        assert_eq!(take_turns(&[1, 2], 3, 1, |nth, _| if nth == 2 { Err("no") } else { Ok(nth) }), Err("no"));
    }

    #[test]
    fn a_drift_is_no_difference_and_a_round_without_a_figure_does_not_count() {
        let mut at = 0.0;
        let rounds = take_turns(&[2.0, 1.0, 1.0], 12, 3, |factor, round| {
            at += 1.0;
            Ok::<_, ()>((round > 1).then_some(factor * (1.0 + 0.001 * at)))
        });
        let rounds = rounds.unwrap();
        let [twice, control] = [[0, 1], [2, 1]].map(|pair| ratio(&rounds, pair, |seen| *seen).unwrap());
        assert!(twice.low <= 2.0 && 2.0 <= twice.high && twice.high - twice.low < 0.02, "{twice:?}");
        assert!(control.low <= 1.0 && 1.0 <= control.high, "{control:?}");
        assert!(ratio(&rounds[..6], [0, 1], |seen| *seen).is_none(), "five are too few");
        assert!(median(&rounds, 0, |seen| *seen).is_some_and(|median| (2.0..2.1).contains(&median)));
        assert!(median(&rounds[..1], 0, |seen| *seen).is_none());
    }
}
