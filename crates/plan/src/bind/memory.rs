//! From an arm's fields and locks to offsets, for one copy or several.

use super::{BindError, Seat, accesses, seats};
use crate::lock::LockKind;
use crate::placement::{Layout, PlacementError, Strategy, Subject, place};
use crate::program::PlacedLock;
use crate::scenario::{Arm, Case};
use crate::step::{Action, Step};
use crate::units::{PAGE_BYTES, WorkerIndex};
use std::collections::BTreeSet;

/// Most elements of one arm: each is a row of the results and an address of each worker's `[any]`, and with more a
/// Program would no longer be a small message.
const MAX_ELEMENTS: u64 = 65_536;

/// Lays out the arm's fields and locks as all its workers touch them.
pub(super) fn lay_out(arm: &Arm) -> Result<Layout, BindError> {
    count_elements(&arm.case)?;
    let items = accesses::items(&arm.case)?;
    let mut layout = place(&items, &arm.case.placement)
        .map_err(|error| BindError::new(path_of(&error, arm), error.to_string(), error.cure()))?;
    name_silent_readers(&arm.case, &mut layout);
    Ok(layout)
}

/// Who takes a lock writes it, but for the readers of a sequence lock. They are told apart when everything is placed,
/// so that no rule gives a lock another place for its kind.
fn name_silent_readers(case: &Case, layout: &mut Layout) {
    for (index, lock) in case.locks.iter().enumerate().filter(|(_, lock)| lock.kind == LockKind::Seqlock) {
        let takes = |step: &Step| matches!(step.action, Action::Lock { lock, shared: false, .. } if lock == index);
        let owns = |seat: Seat| case.roles[seat.role].steps.iter().any(takes);
        let owners: BTreeSet<WorkerIndex> = seats(case).filter(|seat| owns(*seat)).map(|seat| seat.index).collect();
        for placed in layout.placed.iter_mut().filter(|placed| placed.lock && placed.field == lock.name) {
            (placed.writers, placed.readers) = placed.writers.iter().partition(|worker| owners.contains(worker));
        }
    }
}

fn count_elements(case: &Case) -> Result<(), BindError> {
    let count = |field: &crate::Field| u64::from(field.count.elements(case.worker_count()));
    let elements: u64 = case.fields.iter().map(count).sum();
    match case.fields.iter().max_by_key(|field| count(field)) {
        Some(field) if elements > MAX_ELEMENTS => Err(BindError::new(
            format!("field.{}.count", field.name),
            format!("the fields have {elements} elements together; an arm may have {MAX_ELEMENTS}"),
            "use fewer elements",
        )),
        _ => Ok(()),
    }
}

/// The scenario's key that a placement error is about.
fn path_of(error: &PlacementError, arm: &Arm) -> String {
    let swept = |key: &str| arm.sweep.iter().any(|(path, _)| path == key).then(|| format!("sweep.{key}"));
    let placement = swept("placement").unwrap_or_else(|| format!("variant.{}.placement", arm.variant));
    let declared = |items: &[&Subject]| {
        let case = &arm.case;
        let given = items.iter().find(|item| case.placement.strategy == Strategy::Declared && has_at(case, item));
        given.map(|item| format!("{}.{}.at", if item.lock { "lock" } else { "field" }, item.name))
    };
    match error {
        PlacementError::Overlap { first, second, .. } => declared(&[second, first]),
        PlacementError::Misaligned { item, .. } => declared(&[item]),
        PlacementError::TooLarge { item, .. } => declared(&[item]).or_else(|| swept("shift")),
        PlacementError::ShiftMisaligns { .. } => swept("shift"),
        PlacementError::OffsetCount { .. }
        | PlacementError::OffsetsMissing { .. }
        | PlacementError::OffsetsUnknown { .. }
        | PlacementError::Pad { .. } => None,
    }
    .unwrap_or(placement)
}

fn has_at(case: &Case, item: &Subject) -> bool {
    if item.lock {
        case.locks.iter().any(|lock| lock.name == item.name && lock.at.is_some())
    } else {
        case.fields.iter().any(|field| field.name == item.name && field.at.is_some())
    }
}

/// Offsets of one copy, by field and lock, and the distance from one copy to the next.
pub(super) struct Memory {
    /// By field, by element; empty for a field that is not placed.
    fields: Vec<Vec<u64>>,
    /// By lock; `None` for one that is not placed.
    locks: Vec<Option<u64>>,
    /// Where a copy ends.
    end: u64,
}

impl Memory {
    pub(super) fn of(case: &Case, layout: &Layout) -> Memory {
        let of = |lock: bool, name: &str| {
            let mut found: Vec<_> = layout.placed.iter().filter(|p| p.lock == lock && p.field == name).collect();
            found.sort_by_key(|placed| placed.element);
            found.into_iter().map(|placed| placed.offset).collect::<Vec<u64>>()
        };
        Memory {
            fields: case.fields.iter().map(|field| of(false, &field.name)).collect(),
            locks: case.locks.iter().map(|lock| of(true, &lock.name).first().copied()).collect(),
            end: if layout.placed.is_empty() { 0 } else { case.placement.shift + layout.bytes },
        }
    }

    /// Distance of copies: whole pages, so that no two share a pair of lines and each offset keeps its place within a
    /// page, and with it the L1 set it would take if shared.
    fn stride(&self) -> u64 {
        self.end.next_multiple_of(PAGE_BYTES)
    }

    /// Bytes that `copies` copies need.
    pub(super) fn area_bytes(&self, copies: u64) -> u64 {
        copies.saturating_sub(1) * self.stride() + self.end
    }

    /// Offset of a placed field's element in the given copy.
    pub(super) fn offset(&self, field: usize, element: u32, copy: u64) -> u64 {
        copy * self.stride() + self.fields[field][element as usize]
    }

    /// Index of a placed lock in the Program's list, which holds the locks of copy 0, then those of copy 1, ….
    pub(super) fn lock_index(&self, lock: usize, copy: u64) -> u32 {
        let placed = |locks: &[Option<u64>]| locks.iter().flatten().count() as u32;
        copy as u32 * placed(&self.locks) + placed(&self.locks[..lock])
    }

    /// The placed locks of one copy, in declaration order.
    pub(super) fn locks<'a>(&'a self, case: &'a Case, copy: u64) -> impl Iterator<Item = PlacedLock> + 'a {
        case.locks.iter().zip(&self.locks).filter_map(move |(lock, offset)| {
            let offset = copy * self.stride() + (*offset)?;
            Some(PlacedLock { name: lock.name.clone(), kind: lock.kind, offset })
        })
    }
}
