//! The members of a struct: its fields, what it inherits, and the variants of an enum of Rust.

use super::{Entry, Types, number, signed};
use crate::dwarf::spaces::At;
use crate::elf::Slice;
use crate::error::Error;
use crate::layout::{Kind, Member, VirtualBase};
use crate::parts::{bit_field, sound_align};
use gimli::constants as dw;
use gimli::{AttributeValue, DwTag, EndianSlice, Reader};

/// What a struct is made of.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) members: Vec<Member>,
    pub(super) virtual_bases: Vec<VirtualBase>,
    pub(super) has_variants: bool,
}

/// Where a member is said to lie.
enum Location {
    Bytes(u64),
    /// Only an object tells.
    AtRunTime,
}

impl<'a> Types<'_, 'a> {
    pub(super) fn members(&self, at: At, depth: usize) -> Result<Parts, Error> {
        let parsed = self.unit(at)?;
        let wrong = |error| self.spaces.damaged(at.space, at.unit, error);
        let mut parts = Parts::default();
        let mut entries = parsed.unit.entries_raw(Some(at.offset)).map_err(wrong)?;
        let mut entry = Entry::null();
        entries.read_entry(&mut entry).map_err(wrong)?;
        // The tags from the struct down to where the reader is.
        let mut around = vec![entry.tag()];
        while entries.next_depth() > 0 && !entries.is_empty() {
            let level = usize::try_from(entries.next_depth()).unwrap_or(0);
            if !entries.read_entry(&mut entry).map_err(wrong)? {
                continue;
            }
            around.truncate(level);
            self.take(at, &entry, &around, &mut parts, depth)?;
            around.push(entry.tag());
        }
        Ok(parts)
    }

    fn take(&self, at: At, entry: &Entry<'a>, around: &[DwTag], parts: &mut Parts, depth: usize) -> Result<(), Error> {
        match (around, entry.tag()) {
            ([_], dw::DW_TAG_inheritance) => self.base(at, entry, parts, depth),
            // A static member lies elsewhere.
            ([_], dw::DW_TAG_member) if is_static(entry) => Ok(()),
            ([_], dw::DW_TAG_member) => {
                parts.members.push(self.member(at, entry, None, depth)?);
                Ok(())
            }
            ([_, dw::DW_TAG_variant_part], dw::DW_TAG_member) => {
                parts.has_variants = true;
                parts.members.push(self.member(at, entry, Some(Kind::Discriminant), depth)?);
                Ok(())
            }
            ([_, dw::DW_TAG_variant_part, dw::DW_TAG_variant], dw::DW_TAG_member) => {
                parts.has_variants = true;
                parts.members.push(self.member(at, entry, Some(Kind::Variant), depth)?);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn base(&self, at: At, entry: &Entry<'a>, parts: &mut Parts, depth: usize) -> Result<(), Error> {
        let of = self.type_at(self.referred(at, entry, dw::DW_AT_type), depth + 1)?;
        let is_virtual = match entry.attr_value(dw::DW_AT_virtuality) {
            Some(AttributeValue::Virtuality(kind)) => kind != dw::DW_VIRTUALITY_none,
            _ => false,
        };
        match location(entry) {
            Location::Bytes(offset) if !is_virtual => {
                let name = of.name.clone();
                let member = self.budget.member(name, &of, offset, None)?;
                parts.members.push(Member { kind: Kind::Base, ..member });
            }
            _ => {
                parts.virtual_bases.push(VirtualBase { type_name: of.name.clone(), bytes: of.bytes });
                // A virtual base may have virtual bases of its own, which are the heir's too.
                parts.virtual_bases.extend(of.aggregate.iter().flat_map(|base| base.virtual_bases.iter().cloned()));
            }
        }
        let inherited = of.aggregate.iter().filter(|_| !is_virtual).flat_map(|base| base.virtual_bases.iter().cloned());
        parts.virtual_bases.extend(inherited);
        let mut seen = std::collections::HashSet::new();
        parts.virtual_bases.retain(|base| seen.insert(base.clone()));
        Ok(())
    }

    fn member(&self, at: At, entry: &Entry<'a>, kind: Option<Kind>, depth: usize) -> Result<Member, Error> {
        let name = self.text(at, entry, dw::DW_AT_name)?.unwrap_or_default();
        let of = self.type_at(self.referred(at, entry, dw::DW_AT_type), depth + 1)?;
        let Location::Bytes(offset) = location(entry) else {
            return Err(self.damaged(at, "has a member whose place it does not tell"));
        };
        let name = match kind {
            Some(Kind::Discriminant) if name.is_empty() => "discriminant".to_owned(),
            _ => name,
        };
        let mut member = match number(entry, dw::DW_AT_bit_size) {
            None => self.budget.member(name, &of, offset, None)?,
            Some(count) => {
                let big = self.spaces.all[at.space].elf.endian == gimli::RunTimeEndian::Big;
                let first = first_bit(entry, offset, of.bytes, count, big);
                let Some(first) = first else { return Err(self.damaged(at, "has a bit-field outside of its word")) };
                let (offset, bytes, bits) = bit_field(first, count, of.bytes);
                Member { bytes, ..self.budget.member(name, &of, offset, Some(bits))? }
            }
        };
        if let Some(align) = number(entry, dw::DW_AT_alignment).and_then(sound_align) {
            member.align = align;
        }
        member.kind = kind.unwrap_or(member.kind);
        Ok(member)
    }
}

fn is_static(entry: &Entry<'_>) -> bool {
    entry.has_attr(dw::DW_AT_external) || entry.has_attr(dw::DW_AT_declaration)
}

/// From the struct's start to the member. Absent, it is 0: of union members, and of the first bit-field.
fn location(entry: &Entry<'_>) -> Location {
    let Some(attribute) = entry.attr(dw::DW_AT_data_member_location) else { return Location::Bytes(0) };
    match attribute.value() {
        AttributeValue::Exprloc(expression) => offset_added(expression.0),
        AttributeValue::Block(expression) => offset_added(expression),
        value => value.udata_value().map_or(Location::AtRunTime, Location::Bytes),
    }
}

/// Older compilers write the offset as an expression that adds it. Those of virtual bases look into the object.
fn offset_added(mut expression: Slice<'_>) -> Location {
    let Ok(operation) = Reader::read_u8(&mut expression) else { return Location::AtRunTime };
    match (gimli::DwOp(operation), Reader::read_uleb128(&mut expression)) {
        (dw::DW_OP_plus_uconst, Ok(offset)) if EndianSlice::is_empty(&expression) => Location::Bytes(offset),
        _ => Location::AtRunTime,
    }
}

/// First bit of a bit-field from the struct's start. Since DWARF 4 it is told; before, it was counted from the high end
/// of a word (DWARF 3, 5.6.6).
fn first_bit(entry: &Entry<'_>, offset: u64, type_bytes: u64, count: u64, big: bool) -> Option<u64> {
    if let Some(first) = number(entry, dw::DW_AT_data_bit_offset) {
        return Some(first);
    }
    let start = i128::from(offset) * 8;
    let Some(from_high) = signed(entry, dw::DW_AT_bit_offset) else {
        return u64::try_from(start).ok();
    };
    let word_bits = i128::from(number(entry, dw::DW_AT_byte_size).unwrap_or(type_bytes)) * 8;
    let from_low = if big { from_high } else { word_bits - from_high - i128::from(count) };
    u64::try_from(start + from_low).ok()
}
