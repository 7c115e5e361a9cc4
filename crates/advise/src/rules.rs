//! The rules that make layouts: which units lie together.

use crate::arrange::{Offsets, apart, put, tight};
use crate::cost::{NEGLIGIBLE, Rates, lines_of};
use crate::units::{Unit, excess, is_cold, row_of};
use plan::{CACHE_LINE_BYTES, LINE_PAIR_BYTES};
use std::collections::{BTreeMap, BTreeSet};

/// Most units among which pairs are weighed: the effort grows with their cube, and a struct with more fields than this
/// is placed by the other rules.
const MOST_WEIGHED: usize = 96;

/// A rule's outcome.
pub(crate) struct Ruled {
    /// Its name.
    pub(crate) name: &'static str,
    /// What it does, in a phrase.
    pub(crate) what: &'static str,
    /// Alignment of the struct.
    pub(crate) align: u64,
    pub(crate) offsets: Offsets,
}

/// What rules work on.
pub(crate) struct Ground<'a> {
    pub(crate) units: &'a [Unit],
    pub(crate) rates: &'a Rates,
    /// Items, placed or not.
    pub(crate) items: usize,
    /// Which units are used only while a lock is held, by the lock's unit.
    pub(crate) guarded: &'a BTreeMap<usize, Vec<usize>>,
}

/// Every layout that some rule makes, in the order in which equals are named.
pub(crate) fn all(ground: &Ground<'_>) -> Vec<Ruled> {
    let Ground { units, rates, items, .. } = *ground;
    let far = |groups: &[Vec<usize>], gap| apart(units, &filled(ground, groups, gap), gap, items);
    let line = CACHE_LINE_BYTES;
    let ruled = |name, what, align, offsets| Ruled { name, what, align, offsets };
    let everything: Vec<usize> = (0..units.len()).collect();
    let natural = units.iter().map(|unit| unit.align).max().unwrap_or(1);
    let alone = each_alone(ground);
    let writers = by(ground, |item| rates.writers(item));
    let users = by(ground, |item| (rates.writers(item), rates.users(item)));
    let pair = LINE_PAIR_BYTES;
    let mut made = vec![
        ruled("packed", "in order, without a gap", natural, tight(units, std::slice::from_ref(&everything), items)),
        ruled("padded-64", "each field that is used often on a line of its own", line, far(&alone, line)),
        ruled("padded-128", "each field that is used often on a pair of lines of its own", pair, far(&alone, pair)),
        ruled("by-writer-64", "what the same workers write, together", line, far(&writers, line)),
        ruled("by-writer-128", "what the same workers write, together, on pairs of lines", pair, far(&writers, pair)),
        ruled("by-users", "what the same workers use, together", line, far(&users, line)),
    ];
    if units.len() <= MOST_WEIGHED {
        let groups = weighed(ground);
        let what = "what costs least together, together, on lines of 64 bytes";
        made.push(ruled("grouped-64", what, line, far(&groups, line)));
        made.push(ruled(
            "grouped-128",
            "what costs least together, together, on pairs of lines",
            pair,
            far(&groups, pair),
        ));
    }
    made.push(ruled("in-order", "in order, a new line wherever one would disturb the other", line, in_order(ground)));
    let hot = split(ground, |unit| !is_cold(&units[unit], rates));
    made.push(ruled(
        "hot-cold",
        "what is used often together, the rest on other lines",
        line,
        tight(units, &hot, items),
    ));
    let read_mostly = split(ground, |unit| {
        units[unit].row(0).chain(units[unit].row(units[unit].rows - 1)).any(|item| !rates.writers(item).is_empty())
    });
    made.push(ruled(
        "read-mostly-apart",
        "what is hardly ever written on lines of its own",
        line,
        tight(units, &read_mostly, items),
    ));
    made.extend(lock_with_data(ground).map(|offsets| {
        ruled("lock-with-data", "each lock behind the fields that it guards, the rest grouped", line, offsets)
    }));
    made
}

/// Units by what `key` says of their items, cold ones last and together; groups in the order of their first units.
fn by<K: Ord>(ground: &Ground<'_>, key: impl Fn(usize) -> K) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut known: BTreeMap<(usize, Vec<K>), usize> = BTreeMap::new();
    let mut cold = Vec::new();
    for (index, unit) in ground.units.iter().enumerate() {
        if is_cold(unit, ground.rates) && unit.rows == 1 {
            cold.push(index);
            continue;
        }
        let of_rows = (0..unit.rows).map(|row| key(unit.row(row).start)).collect();
        let next = groups.len();
        let group = *known.entry((unit.rows, of_rows)).or_insert(next);
        if group == next {
            groups.push(Vec::new());
        }
        groups[group].push(index);
    }
    groups.extend((!cold.is_empty()).then_some(cold));
    groups
}

/// Cold units in the room that groups leave at the end of their last line, the largest first; what finds none stays
/// behind.
fn filled(ground: &Ground<'_>, groups: &[Vec<usize>], gap: u64) -> Vec<Vec<usize>> {
    let Ground { units, rates, .. } = *ground;
    let fills = |&unit: &usize| units[unit].rows == 1 && !units[unit].lock && is_cold(&units[unit], rates);
    let mut cold: Vec<usize> = groups.iter().flatten().copied().filter(fills).collect();
    cold.sort_by_key(|&unit| std::cmp::Reverse(units[unit].bytes));
    let mut filled: Vec<Vec<usize>> =
        groups.iter().map(|group| group.iter().copied().filter(|unit| !fills(unit)).collect()).collect();
    filled.retain(|group| !group.is_empty());
    let mut behind = Vec::new();
    for unit in cold {
        // With the largest alignment first nothing is lost between units whose sizes are multiples of theirs.
        let bytes = |group: &Vec<usize>| group.iter().map(|&unit| units[unit].bytes).sum::<u64>();
        let has_room = |group: &&mut Vec<usize>| {
            let used = bytes(group);
            units[group[0]].rows == 1 && used + units[unit].bytes <= used.next_multiple_of(gap)
        };
        match filled.iter_mut().find(has_room) {
            Some(group) => group.push(unit),
            None => behind.push(unit),
        }
    }
    behind.sort_unstable();
    filled.extend((!behind.is_empty()).then_some(behind));
    filled
}

fn each_alone(ground: &Ground<'_>) -> Vec<Vec<usize>> {
    let (cold, used): (Vec<usize>, Vec<usize>) =
        (0..ground.units.len()).partition(|&unit| is_cold(&ground.units[unit], ground.rates));
    let mut groups: Vec<Vec<usize>> = used.into_iter().map(|unit| vec![unit]).collect();
    groups.extend((!cold.is_empty()).then_some(cold));
    groups
}

/// Units of which `first` says yes, then the others.
fn split(ground: &Ground<'_>, first: impl Fn(usize) -> bool) -> Vec<Vec<usize>> {
    let (yes, no): (Vec<usize>, Vec<usize>) = (0..ground.units.len()).partition(|&unit| first(unit));
    [yes, no].into_iter().filter(|group| !group.is_empty()).collect()
}

/// Groups by cost: two are joined while that loses fewer lines; then whatever fits a line and disturbs nobody is joined
/// as well, so that the struct stays small.
fn weighed(ground: &Ground<'_>) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = (0..ground.units.len()).map(|unit| vec![unit]).collect();
    while let Some(pair) = best_pair(ground, &groups, |excess, _| (excess < 0.0).then_some(-excess)) {
        join(&mut groups, pair);
    }
    while let Some(pair) = best_pair(ground, &groups, |excess, bytes| (excess <= NEGLIGIBLE).then_some(bytes as f64)) {
        join(&mut groups, pair);
    }
    groups
}

/// The pair of groups that fit one line together and that `worth` values most, the first of equals.
fn best_pair(
    ground: &Ground<'_>,
    groups: &[Vec<usize>],
    worth: impl Fn(f64, u64) -> Option<f64>,
) -> Option<(usize, usize)> {
    let mut best: Option<(f64, (usize, usize))> = None;
    for one in 0..groups.len() {
        for other in one + 1..groups.len() {
            let Some(bytes) = bytes_together(ground.units, &groups[one], &groups[other]) else { continue };
            let excess = excess(ground.units, ground.rates, &groups[one], &groups[other]);
            let Some(value) = worth(excess, bytes) else { continue };
            if best.is_none_or(|(known, _)| value > known) {
                best = Some((value, (one, other)));
            }
        }
    }
    best.map(|(_, pair)| pair)
}

/// Bytes of a row of both; `None` where they do not fit a line, or have different rows. With the largest alignment
/// first nothing is lost between units whose sizes are multiples of their alignments.
fn bytes_together(units: &[Unit], one: &[usize], other: &[usize]) -> Option<u64> {
    let rows = units[one[0]].rows;
    let bytes = one.iter().chain(other).map(|&unit| units[unit].bytes).sum();
    (units[other[0]].rows == rows && bytes <= CACHE_LINE_BYTES).then_some(bytes)
}

fn join(groups: &mut Vec<Vec<usize>>, (one, other): (usize, usize)) {
    let moved = groups.remove(other);
    groups[one].extend(moved);
    groups[one].sort_unstable();
}

/// Units in declaration order, each at its alignment, or at the next line's start where it would disturb what lies on
/// the line that it would come to.
fn in_order(ground: &Ground<'_>) -> Offsets {
    let Ground { units, rates, items, .. } = *ground;
    let mut offsets = vec![None; items];
    let mut on_line: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    let mut end = 0u64;
    for (index, unit) in units.iter().enumerate() {
        for row in 0..unit.rows {
            let here = row_of(units, &[index], row);
            let mut at = end.next_multiple_of(unit.align);
            let there: BTreeSet<usize> =
                lines_of(at, unit.bytes).flat_map(|line| on_line.get(&line).into_iter().flatten().copied()).collect();
            let there: Vec<usize> = there.into_iter().collect();
            if !there.is_empty() && rates.excess(&there, &here) > NEGLIGIBLE {
                at = end.next_multiple_of(CACHE_LINE_BYTES);
            }
            put(unit, row, at, &mut offsets);
            lines_of(at, unit.bytes).for_each(|line| on_line.entry(line).or_default().extend(&here));
            end = at + unit.bytes;
        }
        // Rows lie evenly only where each begins a line.
        if unit.rows > 1 {
            end = evenly(unit, &mut offsets, &mut on_line);
        }
    }
    offsets
}

/// Gives the rows of a unit one distance, the first one's place unchanged if that is a line's start; gives where they
/// end.
fn evenly(unit: &Unit, offsets: &mut Offsets, on_line: &mut BTreeMap<u64, Vec<usize>>) -> u64 {
    let rows: BTreeSet<usize> = (unit.first..unit.first + unit.items).collect();
    on_line.values_mut().for_each(|items| items.retain(|item| !rows.contains(item)));
    let first = offsets[unit.first].unwrap_or(0);
    let stride = unit.bytes.next_multiple_of(CACHE_LINE_BYTES);
    for row in 0..unit.rows {
        let at = first + row as u64 * stride;
        put(unit, row, at, offsets);
        lines_of(at, unit.bytes).for_each(|line| on_line.entry(line).or_default().extend(unit.row(row)));
    }
    first + (unit.rows as u64 - 1) * stride + unit.bytes
}

/// Each lock with what it guards on the line of its first bytes, which its takers touch anyway; everything else
/// grouped. `None` where no lock guards a field.
fn lock_with_data(ground: &Ground<'_>) -> Option<Offsets> {
    let Ground { units, items, guarded, .. } = *ground;
    if guarded.is_empty() {
        return None;
    }
    let taken: BTreeSet<usize> = guarded.iter().flat_map(|(lock, data)| data.iter().copied().chain([*lock])).collect();
    let mut offsets = vec![None; items];
    let mut end = 0u64;
    for (&lock, data) in guarded {
        end = end.next_multiple_of(CACHE_LINE_BYTES);
        let bytes: u64 = data.iter().map(|&unit| units[unit].bytes).sum();
        // What does not leave the lock's first words on the line goes behind it.
        let data_first = bytes + units[lock].align <= CACHE_LINE_BYTES;
        let order = if data_first { [data.as_slice(), &[lock]].concat() } else { [&[lock], data.as_slice()].concat() };
        for &unit in &order {
            end = end.next_multiple_of(units[unit].align);
            put(&units[unit], 0, end, &mut offsets);
            end += units[unit].bytes;
        }
    }
    let others: Vec<Vec<usize>> = match units.len() <= MOST_WEIGHED {
        true => weighed(ground),
        false => each_alone(ground),
    };
    let others: Vec<Vec<usize>> = others
        .into_iter()
        .map(|group| group.into_iter().filter(|unit| !taken.contains(unit)).collect::<Vec<_>>())
        .filter(|group| !group.is_empty())
        .collect();
    let base = end.next_multiple_of(CACHE_LINE_BYTES);
    for (item, offset) in apart(units, &others, CACHE_LINE_BYTES, items).into_iter().enumerate() {
        if let Some(offset) = offset {
            offsets[item] = Some(base + offset);
        }
    }
    Some(offsets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::{tests::usage_of, units};

    const QUEUE: &str = r#"
[field.head]
type = "u64"
[field.tail]
type = "u64"
[field.mask]
type = "u64"
[field.produced]
type = "u64"
[[role]]
name = "producer"
loop = ["bump tail", "load mask", "bump produced"]
[[role]]
name = "consumer"
loop = ["bump head", "load mask"]
"#;

    fn made(text: &str) -> Vec<(&'static str, Vec<u64>)> {
        let usage = usage_of(text);
        let rates = Rates::of(&usage);
        let units = units(&usage, &rates, &vec![true; usage.items.len()]);
        let ground = Ground { units: &units, rates: &rates, items: usage.items.len(), guarded: &BTreeMap::new() };
        all(&ground).into_iter().map(|r| (r.name, r.offsets.into_iter().map(Option::unwrap).collect())).collect()
    }

    fn offsets(made: &[(&'static str, Vec<u64>)], name: &str) -> Vec<u64> {
        made.iter().find(|(known, _)| *known == name).unwrap().1.clone()
    }

    #[test]
    fn what_one_worker_uses_alone_lies_together_and_what_two_use_apart() {
        let made = made(QUEUE);
        assert_eq!(offsets(&made, "packed"), [0, 8, 16, 24]);
        assert_eq!(offsets(&made, "grouped-64"), [0, 64, 128, 72]);
        assert_eq!(offsets(&made, "grouped-128"), [0, 128, 256, 136]);
        assert_eq!(offsets(&made, "by-writer-64"), [0, 64, 128, 72]);
        assert_eq!(offsets(&made, "padded-64"), [0, 64, 128, 192]);
        assert_eq!(offsets(&made, "in-order"), [0, 64, 128, 192]);
        assert_eq!(offsets(&made, "read-mostly-apart"), [0, 8, 64, 16]);
    }

    #[test]
    fn elements_of_one_array_lie_evenly() {
        let made = made(
            "[field.hits]\ntype = \"u64\"\neach = \"worker\"\n[field.sum]\ntype = \"u32\"\neach = \"worker\"\n[[role]]\nname = \"r\"\nworkers = 3\nloop = [\"bump hits[me]\", \"bump sum[me]\"]",
        );
        assert_eq!(offsets(&made, "grouped-64"), [0, 64, 128, 8, 72, 136]);
        assert_eq!(offsets(&made, "in-order"), [0, 64, 128, 192, 256, 320]);
        assert_eq!(offsets(&made, "packed"), [0, 8, 16, 24, 28, 32]);
    }

    #[test]
    fn two_counters_of_the_same_two_workers_share_a_line() {
        let made = made(
            "[field.a]\ntype = \"u64\"\n[field.b]\ntype = \"u64\"\n[[role]]\nname = \"r\"\nworkers = 2\nloop = [\"add a\", \"add b\"]",
        );
        assert_eq!(offsets(&made, "grouped-64"), [0, 8]);
        assert_eq!(offsets(&made, "padded-64"), [0, 64]);
    }

    #[test]
    fn cold_fields_fill_the_gaps_of_every_rule_that_leaves_some() {
        let made = made(
            r#"
placement = "declared"
[field.a]
type = "u64"
[field.cold]
type = "u32"
count = 6
[field.b]
type = "u64"
[[role]]
name = "x"
loop = ["bump a"]
[[role]]
name = "y"
loop = ["bump b"]
"#,
        );
        for rule in ["grouped-64", "padded-64", "by-writer-64"] {
            let filled = offsets(&made, rule);
            assert_eq!(filled.iter().max(), Some(&64), "{rule}: {filled:?}");
        }
        let grouped = offsets(&made, "grouped-64");
        assert_eq!(grouped[1..7].windows(2).map(|w| w[1] - w[0]).collect::<Vec<_>>(), [4; 5]);
    }
}
