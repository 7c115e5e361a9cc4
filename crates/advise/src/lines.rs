//! How many cache lines a pass touches.

use crate::cost::lines_of;
use plan::Usage;
use std::collections::BTreeMap;

/// Lines that a pass of a worker of the role touches, on average over its workers: one that is touched in one pass of
/// four counts a quarter. `places` are offset and size of each item, `None` for one that is not placed.
pub fn lines_per_op(usage: &Usage, role: usize, places: &[Option<(u64, u64)>]) -> f64 {
    let mut touched: BTreeMap<(u32, u64), f64> = BTreeMap::new();
    let mut workers: Vec<u32> = Vec::new();
    for touch in usage.touches.iter().filter(|touch| touch.role == role) {
        if !workers.contains(&touch.worker.0) {
            workers.push(touch.worker.0);
        }
        let Some((offset, bytes)) = places[touch.item] else { continue };
        for line in lines_of(offset, bytes) {
            let often = touched.entry((touch.worker.0, line)).or_default();
            *often = often.max(touch.per_pass);
        }
    }
    if workers.is_empty() { 0.0 } else { touched.values().sum::<f64>() / workers.len() as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::tests::usage_of;

    #[test]
    fn lines_count_once_a_pass_and_rare_ones_in_part() {
        let usage = usage_of(
            "[field.a]\ntype = \"u64\"\n[field.b]\ntype = \"u64\"\n[field.c]\ntype = \"u64\"\n[[role]]\nname = \"r\"\nworkers = 2\nloop = [\"add a\", \"load b\", \"every 4 add c\"]",
        );
        let at = |places: [u64; 3]| lines_per_op(&usage, 0, &places.map(|offset| Some((offset, 8))));
        assert_eq!(at([0, 8, 16]), 1.0);
        assert_eq!(at([0, 64, 128]), 2.25);
        assert_eq!(at([0, 60, 128]), 2.25, "b lies on two lines, one of them a's");
    }
}
