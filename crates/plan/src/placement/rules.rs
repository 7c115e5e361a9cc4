//! The placement rules, each from items to offsets that are not yet shifted.

use super::{HOT_SHARE, Item, MAX_LAYOUT_BYTES, PlacementError, refuse};
use crate::units::{CACHE_LINE_BYTES, WorkerIndex};
use std::collections::{BTreeMap, BTreeSet};

/// Offsets parallel to the items, and the bytes they take from offset 0 on.
pub(super) struct Laid {
    pub(super) offsets: Vec<u64>,
    pub(super) bytes: u64,
}

pub(super) fn packed(items: &[&Item]) -> Laid {
    let mut end = 0;
    let offsets = items.iter().map(|item| append(&mut end, item)).collect();
    Laid { offsets, bytes: end }
}

pub(super) fn declared(items: &[&Item], names: &refuse::Names<'_>) -> Result<Laid, PlacementError> {
    let mut cursor = 0;
    let mut offsets = Vec::with_capacity(items.len());
    for item in items {
        if let Some(at) = item.at {
            refuse::far_offset(item, at, names)?;
            offsets.push(at);
            cursor = at + item.bytes;
        } else {
            offsets.push(append(&mut cursor, item));
        }
    }
    let align = items.iter().map(|item| item.align).max().unwrap_or(1);
    let bytes = end_of(items, &offsets).next_multiple_of(align);
    Ok(Laid { offsets, bytes })
}

pub(super) fn padded(items: &[&Item], pad: u64) -> Result<Laid, PlacementError> {
    if !pad.is_power_of_two() || pad > MAX_LAYOUT_BYTES {
        return Err(PlacementError::Pad { bytes: pad });
    }
    let mut cursor: u64 = 0;
    let mut offsets = Vec::with_capacity(items.len());
    for item in items {
        let unit = pad.max(item.align);
        cursor = cursor.next_multiple_of(unit);
        offsets.push(cursor);
        cursor += item.bytes.next_multiple_of(unit);
    }
    Ok(Laid { offsets, bytes: cursor })
}

pub(super) fn by_writer(items: &[&Item]) -> Laid {
    let mut seen: BTreeMap<&BTreeSet<WorkerIndex>, usize> = BTreeMap::new();
    let group: Vec<usize> = items
        .iter()
        .map(|item| {
            let next = seen.len();
            *seen.entry(&item.writers).or_insert(next)
        })
        .collect();
    on_own_lines(items, &group)
}

pub(super) fn hot_cold(items: &[&Item]) -> Laid {
    let hottest = items.iter().map(|item| item.accesses_per_second).fold(0.0, f64::max);
    let cold = |item: &&Item| usize::from(item.accesses_per_second < HOT_SHARE * hottest);
    let group: Vec<usize> = items.iter().map(cold).collect();
    on_own_lines(items, &group)
}

pub(super) fn explicit(
    kept: &[&Item],
    given: &BTreeMap<String, Vec<u64>>,
    names: &refuse::Names<'_>,
) -> Result<Laid, PlacementError> {
    for (name, offsets) in given {
        match names.elements(name) {
            0 => return Err(PlacementError::OffsetsUnknown { name: name.clone(), known: names.all() }),
            elements if elements != offsets.len() => {
                return Err(PlacementError::OffsetCount { name: name.clone(), elements, given: offsets.len() });
            }
            _ => {}
        }
    }
    let mut offsets = Vec::with_capacity(kept.len());
    for item in kept {
        let offset = *given.get(&item.name).and_then(|list| list.get(item.element as usize)).ok_or_else(|| {
            PlacementError::OffsetsMissing { name: item.name.clone(), elements: names.elements(&item.name) }
        })?;
        refuse::far_offset(item, offset, names)?;
        offsets.push(offset);
    }
    let bytes = end_of(kept, &offsets);
    Ok(Laid { offsets, bytes })
}

/// Puts `item` behind `end` at its alignment.
fn append(end: &mut u64, item: &Item) -> u64 {
    let offset = end.next_multiple_of(item.align);
    *end = offset + item.bytes;
    offset
}

/// Groups in ascending order, each packed in item order from a line's start, none sharing a line with another.
fn on_own_lines(items: &[&Item], group: &[usize]) -> Laid {
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|&i| group[i]);
    let mut offsets = vec![0; items.len()];
    let mut end: u64 = 0;
    let mut last = None;
    for i in order {
        if last != Some(group[i]) {
            end = end.next_multiple_of(CACHE_LINE_BYTES);
            last = Some(group[i]);
        }
        offsets[i] = append(&mut end, items[i]);
    }
    Laid { offsets, bytes: end.next_multiple_of(CACHE_LINE_BYTES) }
}

fn end_of(items: &[&Item], offsets: &[u64]) -> u64 {
    items.iter().zip(offsets).map(|(item, offset)| offset + item.bytes).max().unwrap_or(0)
}
