//! What is placed as a whole: a value, a lock, an array that must stay one, or an array with an element for each
//! worker, whose elements may lie apart but evenly, since code reaches them by index.

use crate::cost::{NEGLIGIBLE, Rates};
use plan::Usage;

/// One of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    /// Index of its first item; the others follow.
    pub(crate) first: usize,
    /// How many items it has.
    pub(crate) items: usize,
    /// Rows of which it has one each: 1 but for an array whose elements disturb each other, which has one for each
    /// element.
    pub(crate) rows: usize,
    /// Bytes of a row.
    pub(crate) bytes: u64,
    /// Its alignment.
    pub(crate) align: u64,
    /// Whether it is a lock.
    pub(crate) lock: bool,
}

impl Unit {
    /// The items of a row.
    pub(crate) fn row(&self, row: usize) -> std::ops::Range<usize> {
        match self.rows {
            1 => self.first..self.first + self.items,
            _ => self.first + row..self.first + row + 1,
        }
    }
}

/// The units of the items that are kept, in declaration order.
pub(crate) fn units(usage: &Usage, rates: &Rates, kept: &[bool]) -> Vec<Unit> {
    let mut units = Vec::new();
    let mut first = 0;
    for field in usage.items.chunk_by(|one, next| one.name == next.name && one.lock == next.lock) {
        if kept[first] {
            units.push(unit(field, first, rates));
        }
        first += field.len();
    }
    units
}

fn unit(field: &[plan::Item], first: usize, rates: &Rates) -> Unit {
    let items: Vec<usize> = (first..first + field.len()).collect();
    let apart: f64 = items.iter().map(|&item| rates.line(&[item])).sum();
    let disturb = field.len() > 1 && rates.line(&items) - apart > NEGLIGIBLE;
    let element = field[0].bytes;
    Unit {
        first,
        items: field.len(),
        rows: if disturb { field.len() } else { 1 },
        bytes: if disturb { element } else { element * field.len() as u64 },
        align: field[0].align,
        lock: field[0].lock,
    }
}

/// A row of several units: their items.
pub(crate) fn row_of(units: &[Unit], group: &[usize], row: usize) -> Vec<usize> {
    group.iter().flat_map(|&unit| units[unit].row(row)).collect()
}

/// By how much more is lost when two groups of equal rows share lines, summed over the rows.
pub(crate) fn excess(units: &[Unit], rates: &Rates, one: &[usize], other: &[usize]) -> f64 {
    let rows = one.first().map_or(1, |&unit| units[unit].rows);
    (0..rows).map(|row| rates.excess(&row_of(units, one, row), &row_of(units, other, row))).sum()
}

/// Whether nobody uses any of it often enough to matter.
pub(crate) fn is_cold(unit: &Unit, rates: &Rates) -> bool {
    (unit.first..unit.first + unit.items).all(|item| rates.users(item).is_empty())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The first arm of a scenario's text.
    pub(crate) fn arm_of(text: &str) -> plan::Arm {
        scenario::parse("case.toml", text).unwrap_or_else(|refusal| panic!("{refusal}")).plan.arms.remove(0)
    }

    pub(crate) fn usage_of(text: &str) -> Usage {
        plan::usage(&arm_of(text).case).unwrap()
    }

    #[test]
    fn an_array_of_one_element_a_worker_has_rows_and_one_that_all_read_has_none() {
        let usage = usage_of(
            r#"
[field.hits]
type = "u64"
each = "worker"
[field.table]
type = "u32"
count = 4
[[role]]
name = "counter"
workers = 2
loop = ["bump hits[me]", "load table[any]"]
"#,
        );
        let units = units(&usage, &Rates::of(&usage), &[true; 6]);
        let shape: Vec<_> = units.iter().map(|u| (u.first, u.items, u.rows, u.bytes, u.align)).collect();
        assert_eq!(shape, [(0, 2, 2, 8, 8), (2, 4, 1, 16, 4)]);
        assert_eq!((units[0].row(1), units[1].row(0)), (1..2, 2..6));
    }

    #[test]
    fn what_is_used_once_a_second_is_cold() {
        let usage = usage_of(
            "[field.a]\ntype = \"u64\"\n[field.b]\ntype = \"u64\"\n[[role]]\nname = \"r\"\nloop = [\"add a\", \"work 1ms\"]\n[[role]]\nname = \"s\"\nloop = [\"load b\"]",
        );
        let rates = Rates::of(&usage);
        let cold: Vec<bool> = units(&usage, &rates, &[true; 2]).iter().map(|unit| is_cold(unit, &rates)).collect();
        assert_eq!(cold, [true, false]);
    }
}
