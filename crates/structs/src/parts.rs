//! What types are made of, whichever kind of debug information tells: sizes, alignments, members inside members.

use crate::error::Error;
use crate::layout::{Bits, Keyword, Kind, Member, VirtualBase};
use std::cell::Cell;
use std::rc::Rc;

/// Members that a struct may have, those of nested structs counted: the kernel's largest has some thousands. A damaged
/// file could nest structs so that their number doubles with each.
const MEMBERS_MAX: usize = 100_000;

/// Types inside types: a damaged file could have them without end.
pub(crate) const DEPTH_MAX: usize = 100;

/// A type as a member sees it.
#[derive(Clone, Debug)]
pub(crate) struct Type {
    pub(crate) name: String,
    pub(crate) bytes: u64,
    pub(crate) align: u64,
    pub(crate) kind: Kind,
    /// Of a nested struct.
    pub(crate) aggregate: Option<Rc<Aggregate>>,
}

/// A struct, class or union; its members' offsets are from its own start.
#[derive(Clone, Debug)]
pub(crate) struct Aggregate {
    pub(crate) keyword: Keyword,
    pub(crate) bytes: u64,
    pub(crate) align: u64,
    pub(crate) align_declared: bool,
    pub(crate) packed: bool,
    pub(crate) members: Vec<Member>,
    pub(crate) virtual_bases: Vec<VirtualBase>,
}

impl Aggregate {
    /// With the alignment that the declaration names, or else the one that the members ask for.
    pub(crate) fn new(
        keyword: Keyword,
        bytes: u64,
        declared: Option<u64>,
        members: Vec<Member>,
        virtual_bases: Vec<VirtualBase>,
    ) -> Aggregate {
        let own = members.iter().filter(|m| m.bits.is_none());
        let asked = own.map(|m| m.align).max().unwrap_or(1).max(words(&members));
        let out_of_place = members.iter().any(|m| m.bits.is_none() && m.align > 1 && !m.offset.is_multiple_of(m.align));
        let packed = out_of_place || (virtual_bases.is_empty() && !bytes.is_multiple_of(asked));
        let align = declared.unwrap_or(if packed { 1 } else { asked });
        Aggregate { keyword, bytes, align, align_declared: declared.is_some(), packed, members, virtual_bases }
    }
}

/// Alignment that bit-fields ask for: that of their word, on x86 and Arm.
fn words(members: &[Member]) -> u64 {
    members.iter().filter(|m| m.bits.is_some()).map(|m| m.align).max().unwrap_or(1)
}

/// The alignment of a number of so many bytes, where none is larger than `most`.
pub(crate) fn natural_align(bytes: u64, most: u64) -> u64 {
    match bytes {
        0 => 1,
        bytes => bytes.checked_next_power_of_two().map_or(most, |align| align.min(most)),
    }
}

/// What a declared alignment must be to be believed.
pub(crate) fn sound_align(align: u64) -> Option<u64> {
    (align.is_power_of_two() && align <= 1 << 32).then_some(align)
}

/// Bytes that the names of a struct's types may take, the steps to make them counted: in a damaged file functions could
/// take functions, so that a name doubles with each.
const NAME_BYTES_MAX: usize = 64 << 20;

/// Counts what a struct takes to make.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    members: Cell<usize>,
    name_bytes: Cell<usize>,
}

impl Budget {
    /// A member of that type at `offset`, with members of its own where the type has some.
    pub(crate) fn member(&self, name: String, of: &Type, offset: u64, bits: Option<Bits>) -> Result<Member, Error> {
        let members = match &of.aggregate {
            Some(aggregate) => self.shifted(&aggregate.members, offset, &of.name)?,
            None => Vec::new(),
        };
        self.take(1, &of.name)?;
        Ok(Member {
            name,
            type_name: of.name.clone(),
            offset,
            bytes: of.bytes,
            align: of.align,
            bits,
            kind: of.kind.clone(),
            members,
        })
    }

    fn shifted(&self, members: &[Member], by: u64, name: &str) -> Result<Vec<Member>, Error> {
        self.take(members.len(), name)?;
        let shift = |member: &Member| {
            Ok(Member {
                offset: member.offset.saturating_add(by),
                members: self.shifted(&member.members, by, name)?,
                ..shallow(member)
            })
        };
        members.iter().map(shift).collect()
    }

    fn take(&self, members: usize, name: &str) -> Result<(), Error> {
        self.members.set(self.members.get().saturating_add(members));
        match self.members.get() > MEMBERS_MAX {
            true => Err(Error::TooManyMembers { name: name.to_owned(), most: MEMBERS_MAX }),
            false => Ok(()),
        }
    }

    /// Begins to count anew.
    pub(crate) fn renew(&self) {
        self.members.set(0);
        self.name_bytes.set(0);
    }

    /// Counts a name that was made; false where there are too many.
    pub(crate) fn named(&self, name: &str) -> bool {
        self.name_bytes.set(self.name_bytes.get().saturating_add(name.len() + 16));
        self.name_bytes.get() <= NAME_BYTES_MAX
    }
}

fn shallow(member: &Member) -> Member {
    Member {
        name: member.name.clone(),
        type_name: member.type_name.clone(),
        kind: member.kind.clone(),
        members: Vec::new(),
        ..*member
    }
}

/// Offset and bits of a bit-field that begins so many bits from the start, in a word of `word_bytes`: the word, aligned
/// to its size, that holds it, or the bytes that it touches where it lies across two.
pub(crate) fn bit_field(first_bit: u64, count: u64, word_bytes: u64) -> (u64, u64, Bits) {
    let word_bits = word_bytes.saturating_mul(8).max(8);
    let (offset, within) = (first_bit / word_bits * (word_bits / 8), first_bit % word_bits);
    if within.saturating_add(count) <= word_bits {
        return (offset, word_bits / 8, Bits { offset: within, count });
    }
    let within = first_bit % 8;
    (first_bit / 8, within.saturating_add(count).div_ceil(8), Bits { offset: within, count })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_field_lies_in_its_word_and_a_packed_one_across_two() {
        assert_eq!(bit_field(3, 5, 4), (0, 4, Bits { offset: 3, count: 5 }));
        assert_eq!(bit_field(37, 5, 4), (4, 4, Bits { offset: 5, count: 5 }));
        assert_eq!(bit_field(30, 5, 4), (3, 2, Bits { offset: 6, count: 5 }));
        assert_eq!(bit_field(u64::MAX, u64::MAX, 8).2.offset, 7);
    }

    #[test]
    fn numbers_are_aligned_to_their_size_up_to_a_bound() {
        let aligns = [0, 1, 2, 3, 8, 10, 16, 32, u64::MAX].map(|bytes| natural_align(bytes, 16));
        assert_eq!(aligns, [1, 1, 2, 4, 8, 16, 16, 16, 16]);
        assert_eq!((sound_align(64), sound_align(48), sound_align(0)), (Some(64), None, None));
    }
}
