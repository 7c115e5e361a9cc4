//! What holds for every layout, for random fields, counts, strategies and shifts.

use super::{HOT_SHARE, Item, Layout, Placed, Placement, PlacementError, Strategy, place};
use crate::units::{CACHE_LINE_BYTES, WorkerIndex};
use proptest::prelude::{Just, ProptestConfig, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::strategy::Strategy as Generator;
use proptest::test_runner::TestCaseError;
use std::collections::{BTreeMap, BTreeSet};

/// One field's or lock's elements, named by the caller.
fn family() -> impl Generator<Value = Vec<Item>> {
    let element = (prop::collection::btree_set(0u32..4, 0..3), prop_oneof![Just(0.0), 1.0..1e9f64], any::<bool>());
    let kind = (0u32..4, prop::bool::weighted(0.2), prop::bool::weighted(0.8));
    (kind, prop::collection::vec(element, 1..6)).prop_map(|((width, lock, touched), elements)| {
        let (bytes, align) =
            if lock { (crate::LockKind::BYTES, crate::LockKind::ALIGN) } else { (1 << width, 1 << width) };
        let wanted = if lock { 1 } else { elements.len() };
        let items = elements.into_iter().take(wanted).zip(0..);
        items
            .map(|((writers, rate, atomic), element)| Item {
                name: String::new(),
                element,
                bytes,
                align,
                at: None,
                lock,
                atomic: atomic || lock,
                touched,
                writers: writers.into_iter().map(WorkerIndex).collect(),
                readers: BTreeSet::from([WorkerIndex(3)]),
                accesses_per_second: rate,
            })
            .collect()
    })
}

fn items() -> impl Generator<Value = Vec<Item>> {
    prop::collection::vec(family(), 0..7).prop_map(|families| {
        let named = families.into_iter().enumerate();
        named
            .flat_map(|(f, family)| family.into_iter().map(move |item| Item { name: format!("f{f}"), ..item }))
            .collect()
    })
}

fn rule() -> impl Generator<Value = Strategy> {
    prop_oneof![
        Just(Strategy::Packed),
        Just(Strategy::Declared),
        (0u32..13).prop_map(|power| Strategy::Pad(1 << power)),
        Just(Strategy::ByWriter),
        Just(Strategy::HotCold),
    ]
}

fn kept<'a>(items: &'a [Item], strategy: &Strategy) -> Vec<&'a Item> {
    let wanted = items.iter().filter(|item| item.touched || *strategy == Strategy::Declared);
    let (locks, fields): (Vec<&Item>, Vec<&Item>) = wanted.partition(|item| item.lock);
    fields.into_iter().chain(locks).collect()
}

fn of<'a>(layout: &'a Layout, item: &Item) -> &'a Placed {
    let found = layout.placed.iter().find(|p| p.field == item.name && p.element == item.element);
    found.expect("an item that is kept has its place")
}

/// Lines that an item touches, counted from the shifted base.
fn lines(layout: &Layout, item: &Item, shift: u64) -> std::ops::RangeInclusive<u64> {
    let start = of(layout, item).offset - shift;
    start / CACHE_LINE_BYTES..=(start + item.bytes - 1) / CACHE_LINE_BYTES
}

fn share_a_line(layout: &Layout, a: &Item, b: &Item, shift: u64) -> bool {
    let (a, b) = (lines(layout, a, shift), lines(layout, b, shift));
    a.start() <= b.end() && b.start() <= a.end()
}

/// Each kept item once, ascending, none over another, all within the bytes, all at their alignment.
fn is_sound(layout: &Layout, kept: &[&Item], shift: u64) -> Result<(), TestCaseError> {
    prop_assert_eq!(layout.placed.len(), kept.len());
    for pair in layout.placed.windows(2) {
        prop_assert!(pair[0].offset + pair[0].bytes <= pair[1].offset);
    }
    for item in kept {
        let place = of(layout, item);
        prop_assert_eq!((place.bytes, place.lock), (item.bytes, item.lock));
        prop_assert!(place.offset >= shift && place.offset + place.bytes <= shift + layout.bytes);
        prop_assert!((place.offset - shift).is_multiple_of(item.align));
        prop_assert!(!item.atomic || place.offset.is_multiple_of(item.align));
    }
    Ok(())
}

fn keeps_its_promise(layout: &Layout, kept: &[&Item], placement: &Placement) -> Result<(), TestCaseError> {
    let Placement { strategy, shift } = placement;
    let start = |item: &Item| of(layout, item).offset - shift;
    match strategy {
        Strategy::Packed | Strategy::Declared => {
            let mut end: u64 = 0;
            for item in kept {
                prop_assert_eq!(start(item), end.next_multiple_of(item.align));
                end = start(item) + item.bytes;
            }
            let size_align = kept.iter().map(|item| item.align).max().unwrap_or(1);
            let unit = if *strategy == Strategy::Packed { 1 } else { size_align };
            prop_assert_eq!(layout.bytes, end.next_multiple_of(unit));
        }
        Strategy::Pad(pad) => {
            let mut blocks = BTreeSet::new();
            for item in kept {
                prop_assert!(start(item).is_multiple_of(*pad.max(&item.align)));
                for block in start(item) / pad..=(start(item) + item.bytes - 1) / pad {
                    prop_assert!(blocks.insert(block), "two elements in one block of {pad}");
                }
            }
            prop_assert!(layout.bytes.is_multiple_of(*pad));
        }
        Strategy::ByWriter => {
            groups_have_own_lines(layout, kept, *shift, |item| format!("{:?}", item.writers))?;
        }
        Strategy::HotCold => {
            let hottest = kept.iter().map(|item| item.accesses_per_second).fold(0.0, f64::max);
            let is_cold = |item: &Item| item.accesses_per_second < HOT_SHARE * hottest;
            groups_have_own_lines(layout, kept, *shift, |item| is_cold(item).to_string())?;
            for (a, b) in kept.iter().flat_map(|a| kept.iter().map(move |b| (a, b))) {
                prop_assert!(is_cold(a) <= is_cold(b) || start(a) > start(b), "hot comes first");
            }
        }
        Strategy::Explicit(_) => unreachable!("explicit offsets have a property of their own"),
    }
    Ok(())
}

/// Groups share no line, lie in one piece each and are packed inside.
fn groups_have_own_lines(
    layout: &Layout,
    kept: &[&Item],
    shift: u64,
    group: impl Fn(&Item) -> String,
) -> Result<(), TestCaseError> {
    let mut groups: BTreeMap<String, Vec<&Item>> = BTreeMap::new();
    for item in kept {
        groups.entry(group(item)).or_default().push(item);
    }
    for (a, b) in kept.iter().flat_map(|a| kept.iter().map(move |b| (a, b))) {
        prop_assert!(group(a) == group(b) || !share_a_line(layout, a, b, shift));
    }
    for members in groups.values() {
        let first = of(layout, members[0]).offset;
        prop_assert!((first - shift).is_multiple_of(CACHE_LINE_BYTES));
        let mut end = first;
        for item in members {
            prop_assert_eq!(of(layout, item).offset - shift, (end - shift).next_multiple_of(item.align));
            end = of(layout, item).offset + item.bytes;
        }
    }
    prop_assert!(layout.bytes.is_multiple_of(CACHE_LINE_BYTES));
    Ok(())
}

/// True where no atomic item would be misaligned.
fn is_good_shift(kept: &[&Item], shift: u64) -> bool {
    kept.iter().all(|item| !item.atomic || shift.is_multiple_of(item.align))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_rule_is_sound_keeps_its_promise_and_is_repeatable(
        items in items(), strategy in rule(), shift in 0u64..300,
    ) {
        let placement = Placement { strategy, shift };
        let kept = kept(&items, &placement.strategy);
        let placed = place(&items, &placement);
        prop_assert_eq!(&placed, &place(&items, &placement));
        match placed {
            Ok(layout) => {
                prop_assert!(is_good_shift(&kept, shift));
                is_sound(&layout, &kept, shift)?;
                keeps_its_promise(&layout, &kept, &placement)?;
            }
            Err(PlacementError::ShiftMisaligns { nearest, .. }) => {
                prop_assert!(!is_good_shift(&kept, shift));
                prop_assert!(is_good_shift(&kept, nearest));
                let nearer = (0..600u64).filter(|s| s.abs_diff(shift) < nearest.abs_diff(shift));
                prop_assert!(nearer.into_iter().all(|s| !is_good_shift(&kept, s)), "a nearer shift is good");
            }
            Err(other) => prop_assert!(false, "{}", other),
        }
    }

    #[test]
    fn explicit_offsets_stand_unless_they_overlap_or_split(
        items in items(), seeds in prop::collection::vec(0u64..600, 40),
    ) {
        let mut offsets: BTreeMap<String, Vec<u64>> = BTreeMap::new();
        for (item, offset) in items.iter().zip(&seeds) {
            offsets.entry(item.name.clone()).or_default().push(*offset);
        }
        let strategy = Strategy::Explicit(offsets.clone());
        let kept = kept(&items, &strategy);
        let given = |item: &Item| offsets[&item.name][item.element as usize];
        let overlap = |a: &Item, b: &Item| {
            given(a) < given(b) + b.bytes && given(b) < given(a) + a.bytes
                && (&a.name, a.element) != (&b.name, b.element)
        };
        let overlaps = kept.iter().any(|a| kept.iter().any(|b| overlap(a, b)));
        let splits = kept.iter().any(|item| item.atomic && !given(item).is_multiple_of(item.align));
        match place(&items, &Placement { strategy, shift: 0 }) {
            Ok(layout) => {
                prop_assert!(!overlaps && !splits);
                for item in &kept {
                    prop_assert_eq!(of(&layout, item).offset, given(item));
                }
            }
            Err(PlacementError::Overlap { .. }) => prop_assert!(overlaps),
            Err(PlacementError::Misaligned { .. }) => prop_assert!(splits && !overlaps),
            Err(other) => prop_assert!(false, "{}", other),
        }
    }

    #[test]
    fn declared_offsets_stand_unless_they_overlap_or_split(
        items in items(), ats in prop::collection::vec(prop::option::weighted(0.2, 0u64..200), 40),
    ) {
        let mut items = items;
        items.iter_mut().zip(ats).for_each(|(item, at)| item.at = at);
        let kept = kept(&items, &Strategy::Declared);
        let mut spans: Vec<(u64, u64)> = Vec::new();
        for item in &kept {
            let end = spans.last().map_or(0, |(_, end)| *end);
            let start = item.at.unwrap_or_else(|| end.next_multiple_of(item.align));
            spans.push((start, start + item.bytes));
        }
        let meet = |i: usize, j: usize| spans[i].0 < spans[j].1 && spans[j].0 < spans[i].1;
        let overlaps = (0..kept.len()).any(|i| (0..i).any(|j| meet(i, j)));
        let splits = kept.iter().zip(&spans).any(|(item, span)| item.atomic && !span.0.is_multiple_of(item.align));
        match place(&items, &Placement { strategy: Strategy::Declared, shift: 0 }) {
            Ok(layout) => {
                prop_assert!(!overlaps && !splits);
                for (item, span) in kept.iter().zip(&spans) {
                    prop_assert_eq!(of(&layout, item).offset, span.0);
                }
            }
            Err(PlacementError::Overlap { .. }) => prop_assert!(overlaps),
            Err(PlacementError::Misaligned { .. }) => prop_assert!(splits && !overlaps),
            Err(other) => prop_assert!(false, "{}", other),
        }
    }
}
