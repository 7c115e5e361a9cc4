//! What no layout may do: overlap, split an atomic access, reach too far.

use super::{Item, MAX_LAYOUT_BYTES, PlacementError, Subject};
use std::collections::BTreeMap;

/// How many elements each name has, so that messages write an index only where there are several.
pub(super) struct Names<'a>(BTreeMap<&'a str, usize>);

impl<'a> Names<'a> {
    pub(super) fn of(items: &'a [Item]) -> Self {
        let mut counts = BTreeMap::new();
        for item in items {
            *counts.entry(item.name.as_str()).or_default() += 1;
        }
        Names(counts)
    }

    pub(super) fn elements(&self, name: &str) -> usize {
        self.0.get(name).copied().unwrap_or(0)
    }

    pub(super) fn all(&self) -> Vec<String> {
        self.0.keys().map(|name| (*name).to_owned()).collect()
    }

    fn subject(&self, item: &Item) -> Subject {
        let several = self.elements(&item.name) > 1;
        Subject { name: item.name.clone(), element: several.then_some(item.element), lock: item.lock }
    }
}

/// Refuses an offset so far away that sums with it could overflow.
pub(super) fn far_offset(item: &Item, offset: u64, names: &Names<'_>) -> Result<(), PlacementError> {
    if offset <= MAX_LAYOUT_BYTES {
        return Ok(());
    }
    Err(PlacementError::TooLarge { item: names.subject(item), end: offset.saturating_add(item.bytes) })
}

pub(super) fn overlaps(items: &[&Item], offsets: &[u64], names: &Names<'_>) -> Result<(), PlacementError> {
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|&i| offsets[i]);
    for pair in order.windows(2) {
        let (first, second) = (pair[0], pair[1]);
        if offsets[first] + items[first].bytes > offsets[second] {
            return Err(PlacementError::Overlap {
                first: names.subject(items[first]),
                first_offset: offsets[first],
                first_last: offsets[first] + items[first].bytes - 1,
                second: names.subject(items[second]),
                second_offset: offsets[second],
            });
        }
    }
    Ok(())
}

pub(super) fn misaligned(items: &[&Item], offsets: &[u64], names: &Names<'_>) -> Result<(), PlacementError> {
    let split = items.iter().zip(offsets).find(|(item, offset)| item.atomic && !offset.is_multiple_of(item.align));
    match split {
        None => Ok(()),
        Some((item, &offset)) => {
            Err(PlacementError::Misaligned { item: names.subject(item), offset, align: item.align })
        }
    }
}

/// Wants offsets that [`misaligned`] has passed: then the good shifts are the multiples of the largest alignment.
pub(super) fn misaligning_shift(items: &[&Item], shift: u64, names: &Names<'_>) -> Result<(), PlacementError> {
    let atomic = || items.iter().filter(|item| item.atomic);
    let Some(item) = atomic().find(|item| !shift.is_multiple_of(item.align)) else { return Ok(()) };
    let unit = atomic().map(|item| item.align).max().unwrap_or(1);
    let below = shift / unit * unit;
    let nearest = if shift - below <= unit / 2 { below } else { below.saturating_add(unit) };
    Err(PlacementError::ShiftMisaligns { item: names.subject(item), shift, align: item.align, nearest })
}

/// `end` is where the layout does, shifted.
pub(super) fn too_large(items: &[&Item], offsets: &[u64], end: u64, names: &Names<'_>) -> Result<(), PlacementError> {
    let last = items.iter().zip(offsets).max_by_key(|(_, offset)| **offset);
    match last {
        Some((item, _)) if end > MAX_LAYOUT_BYTES => Err(PlacementError::TooLarge { item: names.subject(item), end }),
        _ => Ok(()),
    }
}
