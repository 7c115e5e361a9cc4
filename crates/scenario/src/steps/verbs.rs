//! The verbs of steps, and what stands behind each.

use crate::schema;
use plan::{Action, MemoryVerb, Nanos, Target};

/// What stands behind a verb.
#[derive(Copy, Clone, Debug)]
pub enum Operand {
    /// A field's element, or several: `hits[all]`.
    Elements(fn(Target) -> Action),
    /// Exactly one element of a field.
    OneElement(fn(Target) -> Action),
    /// A lock to take, and perhaps `timeout` and a duration.
    Acquire(fn(usize, Option<Nanos>) -> Action),
    /// A lock to release.
    Release(fn(usize) -> Action),
    /// A region, and perhaps a size, `chunk` and a size, `pause` and a duration.
    Region(MemoryVerb),
    /// A duration within bounds.
    Duration((Nanos, Nanos), fn(Nanos) -> Action),
    /// Nothing.
    Nothing(fn() -> Action),
}

/// A verb of the steps.
#[derive(Copy, Clone, Debug)]
pub struct Verb {
    /// As written.
    pub name: &'static str,
    /// What stands behind it.
    pub operand: Operand,
}

const fn verb(name: &'static str, operand: Operand) -> Verb {
    Verb { name, operand }
}

/// Every verb, in the order in which messages list them.
pub const VERBS: &[Verb] = &[
    verb("load", Operand::Elements(Action::Load)),
    verb("store", Operand::Elements(Action::Store)),
    verb("bump", Operand::Elements(Action::Bump)),
    verb("add", Operand::Elements(Action::Add)),
    verb("swap", Operand::Elements(Action::Swap)),
    verb("cas", Operand::Elements(Action::Cas)),
    verb("post", Operand::OneElement(Action::Post)),
    verb("wait", Operand::OneElement(Action::Wait)),
    verb("flush", Operand::Elements(Action::Flush)),
    verb("lock", Operand::Acquire(|lock, timeout| Action::Lock { lock, shared: false, timeout })),
    verb("unlock", Operand::Release(|lock| Action::Unlock { lock, shared: false })),
    verb("rlock", Operand::Acquire(|lock, timeout| Action::Lock { lock, shared: true, timeout })),
    verb("runlock", Operand::Release(|lock| Action::Unlock { lock, shared: true })),
    verb("touch", Operand::Region(MemoryVerb::Touch)),
    verb("reuse", Operand::Region(MemoryVerb::Reuse)),
    verb("punch", Operand::Region(MemoryVerb::Punch)),
    verb("remove", Operand::Region(MemoryVerb::Remove)),
    verb("dontneed", Operand::Region(MemoryVerb::DontNeed)),
    verb("protect", Operand::Region(MemoryVerb::Protect)),
    verb("map", Operand::Region(MemoryVerb::Map)),
    verb("unmap", Operand::Region(MemoryVerb::Unmap)),
    verb("free", Operand::Region(MemoryVerb::Free)),
    verb("work", Operand::Duration(schema::WORK, Action::Work)),
    verb("sleep", Operand::Duration(schema::SLEEP, Action::Sleep)),
    verb("pause", Operand::Nothing(|| Action::Pause)),
    verb("fence", Operand::Nothing(|| Action::Fence)),
    verb("yield", Operand::Nothing(|| Action::Yield)),
    verb("die", Operand::Nothing(|| Action::Die)),
];

/// Their names, for messages.
pub(super) fn listed() -> String {
    let names: Vec<&str> = VERBS.iter().map(|verb| verb.name).collect();
    names.join(", ")
}
