//! Who touches what on which line: the geometry that the rules look at.

use plan::{CACHE_LINE_BYTES, LINE_PAIR_BYTES, Placed, Program, WorkerIndex};
use std::collections::{BTreeMap, BTreeSet};

/// An element across layouts.
pub(super) type Id<'a> = (&'a str, u32);

pub(super) fn id(element: &Placed) -> Id<'_> {
    (&element.field, element.element)
}

/// Elements that some worker touches, locks left out.
pub(super) fn data(program: &Program) -> impl Iterator<Item = &Placed> {
    program.layout.placed.iter().filter(|p| !p.lock && (!p.writers.is_empty() || !p.readers.is_empty()))
}

pub(super) fn touchers(element: &Placed) -> BTreeSet<WorkerIndex> {
    element.writers.iter().chain(&element.readers).copied().collect()
}

/// One worker writes it and another touches it.
pub(super) fn truly_shared(element: &Placed) -> bool {
    in_reach(element, element)
}

/// Whether one worker writes `from` and another touches `to`. Free of sets: it is asked for every pair on a line.
fn in_reach(from: &Placed, to: &Placed) -> bool {
    from.writers.iter().any(|w| to.writers.iter().chain(&to.readers).any(|other| other != w))
}

/// Whether a write to one of the two elements disturbs another worker at the other, if they share a line.
pub(super) fn in_conflict(a: &Placed, b: &Placed) -> bool {
    id(a) != id(b) && (in_reach(a, b) || in_reach(b, a))
}

/// The aligned blocks of `granule` bytes that an element lies on.
fn blocks(element: &Placed, granule: u64) -> std::ops::RangeInclusive<u64> {
    element.offset / granule..=(element.offset + element.bytes.max(1) - 1) / granule
}

/// Whether two elements have an aligned block of `granule` bytes in common.
pub(super) fn meet(a: &Placed, b: &Placed, granule: u64) -> bool {
    let (a, b) = (blocks(a, granule), blocks(b, granule));
    a.start() <= b.end() && b.start() <= a.end()
}

/// Elements by the aligned blocks of `granule` bytes that they lie on: only those of one block need be compared, and
/// a layout may hold tens of thousands.
fn by_block<'a>(elements: impl Iterator<Item = &'a Placed>, granule: u64) -> BTreeMap<u64, Vec<&'a Placed>> {
    let mut found: BTreeMap<u64, Vec<&Placed>> = BTreeMap::new();
    for element in elements {
        blocks(element, granule).for_each(|block| found.entry(block).or_default().push(element));
    }
    found
}

/// The lines on which workers disturb each other though no element of theirs is shared: each with its elements.
pub(super) fn falsely_shared(program: &Program) -> Vec<Vec<&Placed>> {
    let false_only = |line: &Vec<&Placed>| {
        !line.iter().any(|e| truly_shared(e)) && line.iter().any(|a| line.iter().any(|b| in_conflict(a, b)))
    };
    by_block(data(program), CACHE_LINE_BYTES).into_values().filter(false_only).collect()
}

/// Of those lines, one of each kind: lines that hold the same fields of the same roles cost those roles the same.
pub(super) fn kinds_of_falsely_shared(program: &Program) -> Vec<Vec<&Placed>> {
    let mut kinds = BTreeSet::new();
    let kind = |line: &[&Placed]| {
        let fields: BTreeSet<String> = line.iter().map(|e| e.field.clone()).collect();
        (fields, writing_roles(program, line), roles(program, line))
    };
    falsely_shared(program).into_iter().filter(|line| kinds.insert(kind(line))).collect()
}

/// Pairs of elements in conflict that have an aligned block of `granule` bytes in common.
pub(super) fn conflicts(program: &Program, granule: u64) -> BTreeSet<(Id<'_>, Id<'_>)> {
    let mut pairs = BTreeSet::new();
    for block in by_block(data(program), granule).values() {
        for a in block {
            let with = block.iter().filter(|b| id(a) < id(b) && in_conflict(a, b));
            pairs.extend(with.map(|b| (id(a), id(b))));
        }
    }
    pairs
}

/// Elements in conflict across the two lines of a pair, none of them truly shared: those lines move anyway.
pub(super) fn paired(program: &Program) -> Vec<&Placed> {
    let untangled = data(program).filter(|e| !truly_shared(e));
    let mut found: BTreeMap<u64, &Placed> = BTreeMap::new();
    for pair in by_block(untangled, LINE_PAIR_BYTES).values() {
        let across = |a: &Placed, b: &Placed| !meet(a, b, CACHE_LINE_BYTES) && in_conflict(a, b);
        let hit = pair.iter().filter(|a| pair.iter().any(|b| across(a, b)));
        found.extend(hit.map(|e| (e.offset, *e)));
    }
    found.into_values().collect()
}

/// Whether `program` holds all these elements, and none in conflict with another on one block of `granule` bytes.
pub(super) fn apart(program: &Program, elements: &[&Placed], granule: u64) -> bool {
    let wanted: BTreeSet<Id<'_>> = elements.iter().map(|e| id(e)).collect();
    let there: Vec<&Placed> = data(program).filter(|e| wanted.contains(&id(e))).collect();
    let conflict = |block: &Vec<&Placed>| block.iter().any(|a| block.iter().any(|b| in_conflict(a, b)));
    there.len() == wanted.len() && !by_block(there.into_iter(), granule).values().any(conflict)
}

/// The roles whose workers touch the elements, in the order of the workers.
pub(super) fn roles(program: &Program, elements: &[&Placed]) -> Vec<String> {
    roles_of(program, &elements.iter().flat_map(|e| touchers(e)).collect())
}

/// The roles whose workers write one of the elements.
pub(super) fn writing_roles(program: &Program, elements: &[&Placed]) -> Vec<String> {
    roles_of(program, &elements.iter().flat_map(|e| e.writers.iter().copied()).collect())
}

fn roles_of(program: &Program, workers: &BTreeSet<WorkerIndex>) -> Vec<String> {
    let mut roles: Vec<String> = Vec::new();
    for worker in program.workers.iter().filter(|w| workers.contains(&w.index)) {
        if !roles.contains(&worker.role_name) {
            roles.push(worker.role_name.clone());
        }
    }
    roles
}

/// Elements as sentences name them: `hits[0]`, and `total` where the field has no other element.
pub(super) fn element_names(program: &Program, elements: &[&Placed]) -> Vec<String> {
    let array = |field: &str| program.layout.placed.iter().filter(|p| p.field == field).count() > 1;
    let name = |e: &&Placed| match array(&e.field) {
        true => format!("{}[{}]", e.field, e.element),
        false => e.field.clone(),
    };
    elements.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testkit::{Spot, program};

    #[test]
    fn elements_conflict_where_a_write_hits_another_workers_line() {
        let placed = |w: &[u32], r: &[u32], field: &str| Spot::data(field, 0, w, r).placed();
        let conflict = |a, b| in_conflict(&a, &b);
        assert!(conflict(placed(&[0], &[], "a"), placed(&[1], &[], "b")));
        assert!(conflict(placed(&[], &[1], "a"), placed(&[0], &[], "b")));
        assert!(!conflict(placed(&[0], &[], "a"), placed(&[0], &[], "b")), "one worker");
        assert!(!conflict(placed(&[], &[0], "a"), placed(&[], &[1], "b")), "nobody writes");
        assert!(!conflict(placed(&[0], &[], "a"), placed(&[0], &[], "a")), "one element");
    }

    #[test]
    fn a_straddling_element_lies_on_both_lines() {
        let mut wide = Spot::data("wide", 60, &[0], &[]).placed();
        wide.bytes = 8;
        let next = Spot::data("next", 120, &[1], &[]).placed();
        assert!(meet(&wide, &next, 64));
        let program =
            program(vec![Spot::data("wide", 60, &[0], &[]), Spot::data("next", 120, &[1], &[])], &["counter"; 2]);
        assert_eq!(falsely_shared(&program).len(), 1);
    }

    /// Every pair of a large array was compared once: a run of 65,000 elements never ended.
    #[test]
    fn a_large_array_is_looked_through_line_by_line() {
        let spots = (0..60_000).map(|i| Spot::data("big", u64::from(i) * 8, &[i % 2], &[]).nth(i)).collect();
        let program = program(spots, &["counter"; 2]);
        assert_eq!(falsely_shared(&program).len(), 7_500);
        assert_eq!(kinds_of_falsely_shared(&program).len(), 1);
        assert_eq!(conflicts(&program, 64).len(), 7_500 * 16);
        assert_eq!(paired(&program).len(), 60_000);
        let all: Vec<&Placed> = data(&program).collect();
        assert!(!apart(&program, &all, 64));
    }

    #[test]
    fn elements_are_apart_by_the_granule_asked_for() {
        let program = program(vec![Spot::data("a", 0, &[0], &[]), Spot::data("b", 64, &[1], &[])], &["counter"; 2]);
        let elements: Vec<&Placed> = data(&program).collect();
        assert!(apart(&program, &elements, 64));
        assert!(!apart(&program, &elements, 128));
        assert_eq!(conflicts(&program, 128).len(), 1);
        let stranger = Spot::data("c", 0, &[0], &[]).placed();
        assert!(!apart(&program, &[&stranger], 64), "an element that is not there is nowhere apart");
    }
}
