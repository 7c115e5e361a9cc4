//! Where each element and lock lies: a pure function of the items and the strategy.

mod error;
#[cfg(test)]
mod properties;
mod refuse;
mod rules;

pub use error::{PlacementError, Subject};

use crate::units::WorkerIndex;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes a layout may reach to, shift included. An operation's offset is the signed 32-bit displacement of a memory
/// operand (Intel SDM vol. 1, 3.7.5); half of that reach leaves room for the copies of an `unshared` arm. With a larger
/// bound the worker's code could not name the offset.
pub const MAX_LAYOUT_BYTES: u64 = 1 << 30;

/// Share of the hottest element's accesses a second from which an element is hot under [`Strategy::HotCold`]. An
/// element below it adds less than 5 % to the accesses of a line of hot ones, the precision a run aims at by default; a
/// step under `every 64` beside one in each pass is cold. With a larger share hot elements would be torn apart, with a
/// much smaller one nothing would be cold.
pub const HOT_SHARE: f64 = 0.05;

/// A strategy and the shift of its base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The rule.
    pub strategy: Strategy,
    /// Bytes added to the base, which is otherwise aligned to a page: shows what an unlucky base does to a layout. The
    /// rule's promises about lines hold relative to the shifted base alone.
    pub shift: u64,
}

/// The placement rules. Fields come before locks in each; otherwise declaration order decides where the rule does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Declaration order, elements back to back at their natural alignment.
    Packed,
    /// As C would: declaration order, natural alignment, size rounded up to the largest alignment; `at` where given.
    /// The only rule that places untouched fields.
    Declared,
    /// Each element and lock at a multiple of so many bytes (a power of two), each taking whole multiples; its own
    /// alignment where that is larger.
    Pad(u64),
    /// Elements of one writer set together, each set on lines of its own; those that nobody writes are one set.
    ByWriter,
    /// Hot elements ([`HOT_SHARE`]) together first, cold ones on other lines.
    HotCold,
    /// Offsets by name, one an element.
    Explicit(BTreeMap<String, Vec<u64>>),
}

/// One element or lock that wants a place.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// The field's or lock's name.
    pub name: String,
    /// The element's index; 0 for a scalar or a lock.
    pub element: u32,
    /// Size, bytes, at least 1.
    pub bytes: u64,
    /// Natural alignment, bytes, a power of two.
    pub align: u64,
    /// Offset asked for under [`Strategy::Declared`].
    pub at: Option<u64>,
    /// Whether it is a lock.
    pub lock: bool,
    /// Whether it is a lock or a step touches it atomically (`add swap cas post wait`): then it must be aligned, since
    /// a locked access across two lines is split (Linux `Documentation/arch/x86/buslock.rst`).
    pub atomic: bool,
    /// Whether any role touches its field, this element or another.
    pub touched: bool,
    /// Workers that write it.
    pub writers: BTreeSet<WorkerIndex>,
    /// Workers that read it; a read-modify-write counts as a write alone.
    pub readers: BTreeSet<WorkerIndex>,
    /// Accesses a second by all workers, estimated; finite. Only ratios between items count.
    pub accesses_per_second: f64,
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

/// Places `items`, given in declaration order. The same input gives the same layout.
///
/// # Errors
/// [`PlacementError`] where offsets given by hand overlap, do not fit the elements or break the alignment of an atomic
/// one, where the shift does so, or where the layout outgrows [`MAX_LAYOUT_BYTES`]; each has its cure.
pub fn place(items: &[Item], placement: &Placement) -> Result<Layout, PlacementError> {
    let keeps_all = placement.strategy == Strategy::Declared;
    let mut kept: Vec<&Item> = items.iter().filter(|item| keeps_all || item.touched).collect();
    kept.sort_by_key(|item| item.lock);
    let names = refuse::Names::of(items);
    let laid = match &placement.strategy {
        Strategy::Packed => rules::packed(&kept),
        Strategy::Declared => rules::declared(&kept, &names)?,
        Strategy::Pad(bytes) => rules::padded(&kept, *bytes)?,
        Strategy::ByWriter => rules::by_writer(&kept),
        Strategy::HotCold => rules::hot_cold(&kept),
        Strategy::Explicit(offsets) => rules::explicit(&kept, offsets, &names)?,
    };
    refuse::overlaps(&kept, &laid.offsets, &names)?;
    refuse::misaligned(&kept, &laid.offsets, &names)?;
    refuse::misaligning_shift(&kept, placement.shift, &names)?;
    refuse::too_large(&kept, &laid.offsets, laid.bytes.saturating_add(placement.shift), &names)?;
    let mut placed: Vec<Placed> =
        kept.iter().zip(&laid.offsets).map(|(item, offset)| placed(item, offset + placement.shift)).collect();
    placed.sort_by_key(|p| p.offset);
    Ok(Layout { placed, bytes: laid.bytes })
}

fn placed(item: &Item, offset: u64) -> Placed {
    Placed {
        field: item.name.clone(),
        element: item.element,
        offset,
        bytes: item.bytes,
        lock: item.lock,
        writers: item.writers.iter().copied().collect(),
        readers: item.readers.iter().copied().collect(),
    }
}

#[cfg(test)]
mod tests;
