//! Who touches what on which line: the geometry that the rules look at.

use plan::{CACHE_LINE_BYTES, Placed, Program, WorkerIndex};
use std::collections::{BTreeMap, BTreeSet};

/// An element across layouts.
pub(super) type Id<'a> = (&'a str, u32);

pub(super) fn id(element: &Placed) -> Id<'_> {
    (&element.field, element.element)
}

/// Elements that some worker touches, locks left out.
pub(super) fn data(program: &Program) -> impl Iterator<Item = &Placed> {
    program.layout.placed.iter().filter(|p| !p.lock && !touchers(p).is_empty())
}

pub(super) fn touchers(element: &Placed) -> BTreeSet<WorkerIndex> {
    element.writers.iter().chain(&element.readers).copied().collect()
}

/// One worker writes it and another touches it.
pub(super) fn truly_shared(element: &Placed) -> bool {
    !element.writers.is_empty() && touchers(element).len() > 1
}

/// Whether a write to one of the two elements disturbs another worker at the other, if they share a line.
pub(super) fn in_conflict(a: &Placed, b: &Placed) -> bool {
    let disturbs = |from: &Placed, to: &Placed| {
        let hit = touchers(to);
        from.writers.iter().any(|w| hit.iter().any(|h| h != w))
    };
    id(a) != id(b) && (disturbs(a, b) || disturbs(b, a))
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

/// The lines on which workers disturb each other though no element of theirs is shared: each with its elements.
pub(super) fn falsely_shared(program: &Program) -> Vec<Vec<&Placed>> {
    let mut lines: BTreeMap<u64, Vec<&Placed>> = BTreeMap::new();
    for element in data(program) {
        blocks(element, CACHE_LINE_BYTES).for_each(|line| lines.entry(line).or_default().push(element));
    }
    let false_only = |line: &Vec<&Placed>| {
        !line.iter().any(|e| truly_shared(e)) && line.iter().any(|a| line.iter().any(|b| in_conflict(a, b)))
    };
    lines.into_values().filter(false_only).collect()
}

/// Pairs of elements in conflict that have an aligned block of `granule` bytes in common.
pub(super) fn conflicts(program: &Program, granule: u64) -> BTreeSet<(Id<'_>, Id<'_>)> {
    let all: Vec<&Placed> = data(program).collect();
    let mut pairs = BTreeSet::new();
    for a in &all {
        let with = all.iter().filter(|b| id(a) < id(b) && meet(a, b, granule) && in_conflict(a, b));
        pairs.extend(with.map(|b| (id(a), id(b))));
    }
    pairs
}

/// Whether `program` holds all these elements, and none in conflict with another on one block of `granule` bytes.
pub(super) fn apart(program: &Program, elements: &[&Placed], granule: u64) -> bool {
    let there: Option<Vec<&Placed>> = elements.iter().map(|e| data(program).find(|p| id(p) == id(e))).collect();
    there.is_some_and(|there| !there.iter().any(|a| there.iter().any(|b| meet(a, b, granule) && in_conflict(a, b))))
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
