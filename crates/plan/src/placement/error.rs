//! What a placement can refuse, and the cure of each.

use super::MAX_LAYOUT_BYTES;
use std::fmt;

/// The element or lock an error is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The field's or lock's name.
    pub name: String,
    /// The element, where the field has several.
    pub element: Option<u32>,
    /// Whether it is a lock.
    pub lock: bool,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.element {
            Some(element) => write!(f, "`{}[{element}]`", self.name),
            None => write!(f, "`{}`", self.name),
        }
    }
}

/// Why items cannot be placed as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// Two items would take the same bytes.
    #[error("{second} at offset {second_offset} overlaps {first}, which takes bytes {first_offset} to {first_last}")]
    Overlap {
        /// The one at the lower offset.
        first: Subject,
        /// Its offset.
        first_offset: u64,
        /// Its last byte.
        first_last: u64,
        /// The other.
        second: Subject,
        /// Its offset.
        second_offset: u64,
    },
    /// An atomic element or a lock would lie across its alignment.
    #[error("{item} is used atomically, so its offset must be a multiple of {align}; {offset} is not")]
    Misaligned {
        /// The item.
        item: Subject,
        /// The offset asked for.
        offset: u64,
        /// Its alignment.
        align: u64,
    },
    /// The shift would do the same.
    #[error("a shift of {shift} bytes misaligns {item}, which is used atomically and needs a multiple of {align}")]
    ShiftMisaligns {
        /// The first item it misaligns.
        item: Subject,
        /// The shift asked for.
        shift: u64,
        /// The item's alignment.
        align: u64,
        /// The nearest shift that misaligns none.
        nearest: u64,
    },
    /// The list of offsets has another length than the field.
    #[error("`{name}` has {elements} elements, but {given} offsets are given")]
    OffsetCount {
        /// The field or lock.
        name: String,
        /// Its elements.
        elements: usize,
        /// Offsets given.
        given: usize,
    },
    /// Explicit offsets leave out something that a role touches.
    #[error("a role uses `{name}`, but no offset is given for it")]
    OffsetsMissing {
        /// The field or lock.
        name: String,
        /// Its elements.
        elements: usize,
    },
    /// Explicit offsets name something that does not exist.
    #[error("offsets are given for `{name}`, which is no field or lock")]
    OffsetsUnknown {
        /// The name.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// The padding is no power of two, or larger than a layout may be.
    #[error("elements cannot be padded to {bytes} bytes")]
    Pad {
        /// What was asked for.
        bytes: u64,
    },
    /// The layout would reach too far.
    #[error("{item} would end at byte {end}; a layout may reach to byte {MAX_LAYOUT_BYTES}")]
    TooLarge {
        /// The item that ends last.
        item: Subject,
        /// Where it would end, shift and padding included.
        end: u64,
    },
}

impl PlacementError {
    /// What to do about it.
    pub fn cure(&self) -> String {
        match self {
            PlacementError::Overlap { first_last, second, .. } => {
                format!("move {second} to offset {} or beyond", first_last + 1)
            }
            PlacementError::Misaligned { offset, align, .. } => {
                let below = offset / align * align;
                format!("use {below} or {}, or touch it with plain `load`, `store` and `bump` alone", below + align)
            }
            PlacementError::ShiftMisaligns { nearest, .. } => format!("the nearest shift that keeps it is {nearest}"),
            PlacementError::OffsetCount { name, elements, .. }
            | PlacementError::OffsetsMissing { name, elements, .. } => {
                format!("give `{name}` exactly {elements} offset{}", if *elements == 1 { "" } else { "s" })
            }
            PlacementError::OffsetsUnknown { known, .. } => {
                let known: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
                format!("fields and locks are {}", known.join(", "))
            }
            PlacementError::Pad { .. } => {
                format!("use a power of two from 1 to {MAX_LAYOUT_BYTES}: 64 is a cache line, 128 a pair of them")
            }
            PlacementError::TooLarge { .. } => "use smaller offsets, padding, shift or counts".to_owned(),
        }
    }
}
