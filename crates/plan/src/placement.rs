//! Where each element and lock lies: a pure function of the items and the strategy.

use crate::units::WorkerIndex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A strategy and the shift of its base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The rule.
    pub strategy: Strategy,
    /// Bytes added to the base, which is otherwise aligned to a page: shows what an unlucky base does to a layout.
    pub shift: u64,
}

/// The placement rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Declaration order, elements back to back at their natural alignment.
    Packed,
    /// As C would: declaration order, natural alignment; `at` where given. The only rule that places untouched fields.
    Declared,
    /// Each element and lock at a multiple of so many bytes (a power of two), each taking whole multiples.
    Pad(u64),
    /// Elements of one writer set together, each set on lines of its own.
    ByWriter,
    /// Hot elements (by accesses a second) together, cold ones on other lines.
    HotCold,
    /// Offsets by name, one an element.
    Explicit(BTreeMap<String, Vec<u64>>),
}

/// Where everything lies, relative to the start of the fields area.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    /// Elements and locks, ascending by offset.
    pub placed: Vec<Placed>,
    /// Bytes the layout takes, from the (shifted) base, padding behind the last element included.
    pub bytes: u64,
}

/// One element or lock and where it lies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    /// The field's or lock's name.
    pub field: String,
    /// The element's index; 0 for a scalar or a lock.
    pub element: u32,
    /// Offset from the start of the fields area, bytes.
    pub offset: u64,
    /// Size, bytes.
    pub bytes: u64,
    /// Whether it is a lock.
    pub lock: bool,
    /// Workers that write it, ascending.
    pub writers: Vec<WorkerIndex>,
    /// Workers that read it, ascending; a read-modify-write counts as a write alone.
    pub readers: Vec<WorkerIndex>,
}
