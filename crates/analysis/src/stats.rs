//! Medians and quantiles of plain numbers.

/// The median; the mean of the middle two for an even number. `None` of nothing. Reorders `values`.
pub(crate) fn median(values: &mut [f64]) -> Option<f64> {
    let n = values.len();
    if n == 0 {
        return None;
    }
    let (below, &mut upper, _) = values.select_nth_unstable_by(n / 2, f64::total_cmp);
    if n % 2 == 1 {
        return Some(upper);
    }
    let lower = below.iter().copied().max_by(f64::total_cmp)?;
    Some((lower + upper) / 2.0)
}

/// The median of values that must stay as they are.
pub(crate) fn median_of(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    median(&mut values.into_iter().collect::<Vec<_>>())
}

/// The `q`-quantile (0 to 1) of ascending values, by the nearest rank. `None` of nothing.
pub(crate) fn quantile(ascending: &[f64], q: f64) -> Option<f64> {
    let rank = (q * ascending.len() as f64).ceil() as usize;
    ascending.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_middle_value_or_the_mean_of_the_middle_two() {
        assert_eq!(median_of([]), None);
        assert_eq!(median_of([3.0]), Some(3.0));
        assert_eq!(median_of([9.0, 1.0, 3.0]), Some(3.0));
        assert_eq!(median_of([9.0, 1.0, 3.0, 5.0]), Some(4.0));
    }

    #[test]
    fn quantiles_are_values_that_were_seen() {
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        assert_eq!([0.0, 0.1, 0.5, 0.9, 1.0].map(|q| quantile(&values, q)), [1.0, 1.0, 5.0, 9.0, 10.0].map(Some));
        assert_eq!(quantile(&[], 0.5), None);
    }
}
