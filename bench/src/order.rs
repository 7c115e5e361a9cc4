//! The median of a few figures, and its interval by order statistics, which needs no resampling and no idea of how they
//! scatter (David and Nagaraja, *Order Statistics*, 3rd edition, section 7.1).

use record::Interval;

/// At most this part of intervals lies wholly above, and this part wholly below what they are of: 95 % hold it.
const TAIL: f64 = 0.025;

/// The median and its interval at 95 % at least; `None` of fewer than six, of which none has that.
pub(crate) fn interval(mut values: Vec<f64>) -> Option<Interval> {
    values.sort_by(f64::total_cmp);
    let below = left_out(values.len())?;
    let (low, high) = (values[below], values[values.len() - 1 - below]);
    Some(Interval { median: median(values)?, low, high })
}

/// How many of the smallest, and of the largest, of so many lie outside the interval.
fn left_out(count: usize) -> Option<usize> {
    // P(at most k of `count` lie below the median) is the sum of binomial terms up to k.
    let mut term = 0.5_f64.powi(i32::try_from(count).ok()?);
    let (mut sum, mut k) = (term, 0);
    let mut most = None;
    while sum <= TAIL {
        most = Some(k);
        term *= (count - k) as f64 / (k + 1) as f64;
        k += 1;
        sum += term;
    }
    most
}

/// The middle one, or between the two; `None` of nothing.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    let length = values.len();
    if length == 0 {
        return None;
    }
    let (below, &mut middle, _) = values.select_nth_unstable_by(length / 2, f64::total_cmp);
    let next = below.iter().copied().max_by(f64::total_cmp).filter(|_| length.is_multiple_of(2));
    Some(next.map_or(middle, |next| (next + middle) / 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_lie_outside_as_the_tables_say() {
        // Ranks r and n - r + 1 of the sign test at 95 %, n from 6 to 20: r - 1 lie outside at either end.
        let tables = [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 4, 4, 5];
        assert_eq!((6..=20).map(|count| left_out(count).expect("enough")).collect::<Vec<_>>(), tables);
        assert_eq!((0..6).map(left_out).collect::<Vec<_>>(), [None; 6]);
    }

    #[test]
    fn an_interval_is_of_the_median() {
        let interval = interval((1..=9).map(f64::from).collect()).expect("enough");
        assert_eq!((interval.low, interval.median, interval.high), (2.0, 5.0, 8.0));
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
    }
}
