//! Classes of readings that scatter: sorted values part where neighbours differ by more than a factor, and stray values
//! between two classes do not chain them. `regime` says why each part of the rule is there.

/// Fewest pooled values with which lone values are kept from linking classes; below, "lone" means little.
const ENOUGH_FOR_COMPANY: usize = 20;

/// Share of all values that must lie around one for it to found or link classes.
const COMPANY_SHARE: f64 = 0.05;

/// Classes of positive values: the points that part them, ascending.
pub(crate) struct Classes {
    cuts: Vec<f64>,
}

impl Classes {
    /// Of these values, split where neighbours differ by more than `split` times.
    pub(crate) fn of(mut values: Vec<f64>, split: f64) -> Classes {
        values.sort_unstable_by(f64::total_cmp);
        let labels = labels(&values, split);
        let parted = |i: &usize| match (labels[*i], labels[i + 1]) {
            (None, None) => values[i + 1] > split * values[*i],
            (left, right) => left != right,
        };
        let between = (0..values.len().saturating_sub(1)).filter(parted);
        Classes { cuts: between.map(|i| (values[i] * values[i + 1]).sqrt()).collect() }
    }

    /// The class of a value, from 0 for the smallest.
    pub(crate) fn class(&self, value: f64) -> usize {
        self.cuts.partition_point(|cut| *cut < value)
    }
}

/// For each of the ascending values the class it founds or joins; `None` for a lone one far from all classes.
fn labels(values: &[f64], split: f64) -> Vec<Option<usize>> {
    let founding = founders(values, split);
    let mut found: Vec<(f64, usize)> = Vec::new();
    for value in values.iter().zip(&founding).filter(|(_, founds)| **founds).map(|(v, _)| *v) {
        let class = found.last().map_or(0, |(last, class)| class + usize::from(value > split * last));
        found.push((value, class));
    }
    let nearest = |value: f64| {
        let distance = |other: f64| (other / value).max(value / other);
        let near = found.iter().min_by(|a, b| distance(a.0).total_cmp(&distance(b.0)))?;
        (distance(near.0) <= split).then_some(near.1)
    };
    values.iter().map(|v| nearest(*v)).collect()
}

/// Which of the ascending values have company enough to found or link classes.
fn founders(values: &[f64], split: f64) -> Vec<bool> {
    let all = vec![true; values.len()];
    if values.len() < ENOUGH_FOR_COMPANY {
        return all;
    }
    let enough = ((COMPANY_SHARE * values.len() as f64).ceil() as usize).max(2);
    let company = |value: f64| {
        let reach = split.sqrt();
        values.partition_point(|v| *v <= value * reach) - values.partition_point(|v| *v < value / reach)
    };
    let founding: Vec<bool> = values.iter().map(|v| company(*v) >= enough).collect();
    if founding.contains(&true) { founding } else { all }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(values: &[f64]) -> Vec<usize> {
        let classes = Classes::of(values.to_vec(), 1.4);
        values.iter().map(|v| classes.class(*v)).collect()
    }

    #[test]
    fn sorted_values_split_where_neighbours_differ_by_over_the_factor() {
        assert_eq!(classes(&[215.0, 54.0, 190.0, 40.0]), [1, 0, 1, 0]);
        assert_eq!(classes(&[10.0, 14.0, 19.5]), [0, 0, 0], "exactly 1.4 does not split");
        assert_eq!(classes(&[10.0, 14.1]), [0, 1]);
        assert_eq!(classes(&[]), Vec::<usize>::new());
    }

    #[test]
    fn stray_values_do_not_chain_two_classes() {
        let mut values: Vec<f64> = (0..40).map(|i| 50.0 + f64::from(i % 8)).collect();
        values.extend((0..40).map(|i| 200.0 + f64::from(i % 16)));
        values.extend([75.0, 104.0, 145.0]);
        let seen = classes(&values);
        assert!(seen[..40].iter().all(|c| *c == 0));
        let far = seen[40];
        assert!(far > 0 && seen[40..80].iter().all(|c| *c == far));
        assert_eq!(seen[80], 0, "75 is within the factor of the near class");
        assert!(seen[81] > 0 && seen[81] < far, "104 is near neither");
        assert_eq!(seen[82], far, "145 is within the factor of the far class");
    }
}
