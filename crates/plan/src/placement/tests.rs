//! Each rule on a few items whose offsets can be counted by hand, and each refusal.

use super::{Item, Layout, Placement, PlacementError, Strategy, place};
use crate::units::WorkerIndex;
use std::collections::{BTreeMap, BTreeSet};

/// A touched scalar, plainly written by worker 0.
fn item(name: &str, bytes: u64) -> Item {
    Item {
        name: name.to_owned(),
        element: 0,
        bytes,
        align: bytes,
        at: None,
        lock: false,
        atomic: false,
        touched: true,
        writers: BTreeSet::from([WorkerIndex(0)]),
        readers: BTreeSet::new(),
        accesses_per_second: 1e6,
    }
}

fn lock(name: &str) -> Item {
    Item { align: 8, lock: true, atomic: true, ..item(name, crate::LockKind::BYTES) }
}

fn array(name: &str, bytes: u64, count: u32) -> Vec<Item> {
    (0..count).map(|element| Item { element, ..item(name, bytes) }).collect()
}

fn written_by(item: Item, writers: &[u32]) -> Item {
    Item { writers: writers.iter().copied().map(WorkerIndex).collect(), ..item }
}

fn placed(items: &[Item], strategy: Strategy, shift: u64) -> Result<Layout, PlacementError> {
    place(items, &Placement { strategy, shift })
}

fn offsets(items: &[Item], strategy: Strategy) -> (Vec<(String, u64)>, u64) {
    let layout = placed(items, strategy, 0).unwrap();
    (layout.placed.iter().map(|p| (format!("{}{}", p.field, p.element), p.offset)).collect(), layout.bytes)
}

fn at(list: &[(&str, u64)]) -> Vec<(String, u64)> {
    list.iter().map(|(name, offset)| ((*name).to_owned(), *offset)).collect()
}

fn explicit(list: &[(&str, &[u64])]) -> Strategy {
    Strategy::Explicit(list.iter().map(|(name, offsets)| ((*name).to_owned(), offsets.to_vec())).collect())
}

#[test]
fn packed_puts_elements_back_to_back_and_locks_behind_the_fields() {
    let mut items = vec![lock("m"), item("a", 1)];
    items.extend(array("b", 4, 2));
    items.push(item("c", 8));
    let expected = at(&[("a0", 0), ("b0", 4), ("b1", 8), ("c0", 16), ("m0", 24)]);
    assert_eq!(offsets(&items, Strategy::Packed), (expected, 88));
}

#[test]
fn untouched_fields_are_placed_under_declared_alone() {
    let items = [Item { touched: false, ..item("cold", 8) }, item("hot", 8)];
    assert_eq!(offsets(&items, Strategy::Packed), (at(&[("hot0", 0)]), 8));
    assert_eq!(offsets(&items, Strategy::Declared), (at(&[("cold0", 0), ("hot0", 8)]), 16));
}

#[test]
fn declared_follows_c_and_the_offsets_given() {
    let items = [item("a", 8), Item { at: Some(24), ..item("b", 2) }, item("c", 4)];
    assert_eq!(offsets(&items, Strategy::Declared), (at(&[("a0", 0), ("b0", 24), ("c0", 28)]), 32));
    assert_eq!(offsets(&[item("a", 8), item("b", 1)], Strategy::Declared), (at(&[("a0", 0), ("b0", 8)]), 16));
}

#[test]
fn pad_gives_each_element_whole_multiples() {
    let mut items = array("a", 8, 2);
    items.push(lock("m"));
    assert_eq!(offsets(&items, Strategy::Pad(64)), (at(&[("a0", 0), ("a1", 64), ("m0", 128)]), 192));
    assert_eq!(offsets(&items, Strategy::Pad(32)), (at(&[("a0", 0), ("a1", 32), ("m0", 64)]), 128));
    assert_eq!(offsets(&items, Strategy::Pad(1)), (at(&[("a0", 0), ("a1", 8), ("m0", 16)]), 80));
}

#[test]
fn by_writer_groups_sets_in_order_of_first_appearance() {
    let items = [
        written_by(item("a", 8), &[0]),
        written_by(item("b", 8), &[1]),
        written_by(item("c", 8), &[0]),
        written_by(item("read", 8), &[]),
        written_by(item("both", 8), &[0, 1]),
    ];
    let expected = at(&[("a0", 0), ("c0", 8), ("b0", 64), ("read0", 128), ("both0", 192)]);
    assert_eq!(offsets(&items, Strategy::ByWriter), (expected, 256));
}

#[test]
fn hot_cold_moves_the_rarely_used_behind() {
    let rate = |name: &str, accesses_per_second: f64| Item { accesses_per_second, ..item(name, 8) };
    let items = [rate("cold", 4.9e6), rate("hot", 1e8), rate("warm", 5.1e6), rate("idle", 0.0)];
    let expected = at(&[("hot0", 0), ("warm0", 8), ("cold0", 64), ("idle0", 72)]);
    assert_eq!(offsets(&items, Strategy::HotCold), (expected, 128));
}

#[test]
fn explicit_offsets_stand_as_given() {
    let mut items = array("a", 8, 2);
    items.push(item("b", 4));
    let strategy = explicit(&[("a", &[64, 0]), ("b", &[8])]);
    assert_eq!(offsets(&items, strategy), (at(&[("a1", 0), ("b0", 8), ("a0", 64)]), 72));
}

#[test]
fn explicit_offsets_must_fit_the_fields() {
    let items = array("a", 8, 2);
    let refused = |list: &[(&str, &[u64])]| placed(&items, explicit(list), 0).unwrap_err();
    assert_eq!(refused(&[("a", &[0])]), PlacementError::OffsetCount { name: "a".to_owned(), elements: 2, given: 1 });
    assert_eq!(refused(&[]), PlacementError::OffsetsMissing { name: "a".to_owned(), elements: 2 });
    let unknown = refused(&[("a", &[0, 8]), ("z", &[0])]);
    assert_eq!(unknown, PlacementError::OffsetsUnknown { name: "z".to_owned(), known: vec!["a".to_owned()] });
    assert_eq!(unknown.cure(), "fields and locks are `a`");
}

#[test]
fn overlaps_name_both() {
    let error = placed(&array("a", 8, 2), explicit(&[("a", &[4, 0])]), 0).unwrap_err();
    assert_eq!(error.to_string(), "`a[0]` at offset 4 overlaps `a[1]`, which takes bytes 0 to 7");
    assert_eq!(error.cure(), "move `a[0]` to offset 8 or beyond");
    let items = [item("a", 8), Item { at: Some(7), ..item("b", 1) }];
    let error = placed(&items, Strategy::Declared, 0).unwrap_err();
    assert_eq!(error.to_string(), "`b` at offset 7 overlaps `a`, which takes bytes 0 to 7");
}

#[test]
fn a_misaligned_offset_is_refused_where_it_would_split_an_atomic_step() {
    let plain = [item("a", 8)];
    assert_eq!(offsets(&plain, explicit(&[("a", &[60])])), (at(&[("a0", 60)]), 68));
    let atomic = [Item { atomic: true, ..item("a", 8) }];
    let error = placed(&atomic, explicit(&[("a", &[60])]), 0).unwrap_err();
    assert!(error.to_string().contains("must be a multiple of 8; 60 is not"), "{error}");
    assert!(error.cure().starts_with("use 56 or 64"), "{}", error.cure());
    assert!(placed(&[lock("m")], explicit(&[("m", &[4])]), 0).is_err());
}

#[test]
fn a_shift_moves_everything_and_keeps_atomics_aligned() {
    let items = [Item { atomic: true, ..item("a", 8) }, item("b", 8)];
    let layout = placed(&items, Strategy::Packed, 56).unwrap();
    assert_eq!(layout.placed.iter().map(|p| p.offset).collect::<Vec<_>>(), [56, 64]);
    assert_eq!(layout.bytes, 16);
    for (shift, nearest) in [(57, 56), (60, 56), (61, 64), (3, 0)] {
        let error = placed(&items, Strategy::Packed, shift).unwrap_err();
        assert!(error.to_string().contains(&format!("shift of {shift} bytes misaligns `a`")), "{error}");
        assert_eq!(error.cure(), format!("the nearest shift that keeps it is {nearest}"));
    }
    assert!(placed(&items[1..], Strategy::Packed, 57).is_ok(), "nothing atomic, nothing to split");
}

#[test]
fn numbers_too_large_to_address_are_refused_without_overflow() {
    let far = Item { at: Some(u64::MAX), ..item("a", 8) };
    for (item, strategy, shift) in [
        (far, Strategy::Declared, 0),
        (item("a", 8), explicit(&[("a", &[u64::MAX])]), 0),
        (item("a", 8), Strategy::Packed, u64::MAX),
        (item("a", 8), Strategy::Pad(super::MAX_LAYOUT_BYTES), 8),
    ] {
        let error = placed(&[item], strategy, shift).unwrap_err();
        assert!(matches!(error, PlacementError::TooLarge { .. }), "{error}");
    }
    for pad in [0, 3, 96, 1 << 40] {
        let error = placed(&[item("a", 8)], Strategy::Pad(pad), 0).unwrap_err();
        assert_eq!(error, PlacementError::Pad { bytes: pad });
    }
}

#[test]
fn nothing_to_place_takes_no_bytes() {
    for strategy in [Strategy::Packed, Strategy::Declared, Strategy::HotCold, Strategy::Explicit(BTreeMap::new())] {
        assert_eq!(placed(&[], strategy, 0).unwrap(), Layout { placed: Vec::new(), bytes: 0 });
    }
}
