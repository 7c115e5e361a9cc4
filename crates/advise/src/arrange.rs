//! From groups of units to offsets.

use crate::units::Unit;
use plan::CACHE_LINE_BYTES;

/// Offsets by item; `None` for one that is not placed.
pub(crate) type Offsets = Vec<Option<u64>>;

/// Each group from a multiple of `gap` bytes on, which nothing else reaches into. Within a group the largest alignment
/// comes first, so that no bytes are lost between its units. Units of a group have the same number of rows, and each
/// row takes whole multiples of `gap`.
pub(crate) fn apart(units: &[Unit], groups: &[Vec<usize>], gap: u64, items: usize) -> Offsets {
    let mut offsets = vec![None; items];
    let mut end = 0u64;
    for group in groups {
        let mut order = group.clone();
        order.sort_by_key(|&unit| std::cmp::Reverse(units[unit].align));
        end = row_by_row(units, &order, end.next_multiple_of(gap), gap, &mut offsets);
    }
    offsets
}

/// One group from `base` on; gives where it ends.
fn row_by_row(units: &[Unit], order: &[usize], base: u64, gap: u64, offsets: &mut Offsets) -> u64 {
    let rows = order.first().map_or(1, |&unit| units[unit].rows);
    let mut inner = 0u64;
    let starts: Vec<u64> = order
        .iter()
        .map(|&unit| {
            let start = inner.next_multiple_of(units[unit].align);
            inner = start + units[unit].bytes;
            start
        })
        .collect();
    let stride = inner.next_multiple_of(gap);
    for row in 0..rows as u64 {
        for (&unit, &start) in order.iter().zip(&starts) {
            put(&units[unit], row as usize, base + row * stride + start, offsets);
        }
    }
    base + (rows as u64 - 1) * stride + inner
}

/// A row of a unit from `at` on, its items back to back.
pub(crate) fn put(unit: &Unit, row: usize, at: u64, offsets: &mut Offsets) {
    let items = unit.row(row);
    let bytes = unit.bytes / items.len() as u64;
    for (nth, item) in items.enumerate() {
        offsets[item] = Some(at + nth as u64 * bytes);
    }
}

/// Whole units back to back from a line's start, group by group; rows lie close together.
pub(crate) fn tight(units: &[Unit], groups: &[Vec<usize>], items: usize) -> Offsets {
    let mut offsets = vec![None; items];
    let mut end = 0u64;
    for group in groups {
        end = end.next_multiple_of(CACHE_LINE_BYTES);
        for &unit in group {
            let unit = &units[unit];
            for row in 0..unit.rows {
                end = end.next_multiple_of(unit.align);
                put(unit, row, end, &mut offsets);
                end += unit.bytes;
            }
        }
    }
    offsets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(first: usize, rows: usize, bytes: u64) -> Unit {
        Unit { first, items: rows, rows, bytes, align: bytes.min(8), lock: false }
    }

    #[test]
    fn groups_lie_apart_and_rows_evenly() {
        let units = [unit(0, 1, 4), unit(1, 1, 8), unit(2, 3, 8)];
        let offsets = apart(&units, &[vec![0, 1], vec![2]], 64, 5);
        let expected = [8, 0, 64, 128, 192].map(Some);
        assert_eq!(offsets, expected);
        assert_eq!(apart(&units, &[vec![2]], 128, 5)[2..], [Some(0), Some(128), Some(256)]);
    }

    #[test]
    fn tight_groups_begin_on_lines() {
        let units = [unit(0, 1, 4), unit(1, 1, 8), unit(2, 3, 8)];
        assert_eq!(tight(&units, &[vec![0, 1], vec![2]], 5), [0, 8, 64, 72, 80].map(Some));
    }
}
