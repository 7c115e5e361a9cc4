//! The table of types in a file of BTF, each found by its number, and their names.

use crate::error::Error;
use crate::layout::Keyword;
use std::borrow::Cow;
use std::path::Path;

/// `BTF_MAGIC`.
const MAGIC: u16 = 0xeb9f;

/// Kinds of types, as the kernel numbers them (`include/uapi/linux/btf.h`).
pub(super) mod kind {
    pub(crate) const INT: u32 = 1;
    pub(crate) const PTR: u32 = 2;
    pub(crate) const ARRAY: u32 = 3;
    pub(crate) const STRUCT: u32 = 4;
    pub(crate) const UNION: u32 = 5;
    pub(crate) const ENUM: u32 = 6;
    pub(crate) const FWD: u32 = 7;
    pub(crate) const TYPEDEF: u32 = 8;
    pub(crate) const VOLATILE: u32 = 9;
    pub(crate) const CONST: u32 = 10;
    pub(crate) const RESTRICT: u32 = 11;
    pub(crate) const FUNC: u32 = 12;
    pub(crate) const FUNC_PROTO: u32 = 13;
    pub(crate) const VAR: u32 = 14;
    pub(crate) const DATASEC: u32 = 15;
    pub(crate) const FLOAT: u32 = 16;
    pub(crate) const DECL_TAG: u32 = 17;
    pub(crate) const TYPE_TAG: u32 = 18;
    pub(crate) const ENUM64: u32 = 19;
}

/// Bytes of `struct btf_type`.
const TYPE_BYTES: usize = 12;

/// Types and the names they refer to.
pub(super) struct Table<'a> {
    little: bool,
    /// Where each type's bytes begin, those of the base first; number 0 is void.
    types: Vec<&'a [u8]>,
    strings: &'a [u8],
    base_strings: &'a [u8],
}

/// One type's fixed part.
#[derive(Copy, Clone, Debug)]
pub(super) struct Raw<'a> {
    name: u32,
    pub(super) kind: u32,
    /// Whether offsets of members hold the sizes of bit-fields too.
    pub(super) flag: bool,
    pub(super) members: u32,
    /// Its size, or the number of the type that it refers to.
    pub(super) size_or_type: u32,
    /// What follows the fixed part.
    pub(super) rest: &'a [u8],
}

/// One member's bytes.
#[derive(Copy, Clone, Debug)]
pub(super) struct RawMember {
    pub(super) name: u32,
    pub(super) of: u32,
    pub(super) offset: u32,
}

/// A header's parts.
struct Header<'a> {
    little: bool,
    types: &'a [u8],
    strings: &'a [u8],
}

impl<'a> Header<'a> {
    fn of(path: &Path, bytes: &'a [u8]) -> Result<Header<'a>, Error> {
        let not = |seen: String| Error::NotBtf { file: path.to_owned(), seen };
        let damaged = |what: &str| Error::Damaged { file: path.to_owned(), what: what.to_owned() };
        let little = match bytes.first_chunk() {
            Some(magic) if u16::from_le_bytes(*magic) == MAGIC => true,
            Some(magic) if u16::from_be_bytes(*magic) == MAGIC => false,
            _ => return Err(not(format!("it begins with {:02x?}", &bytes[..bytes.len().min(4)]))),
        };
        let number = |at: usize| u32_at(bytes, at, little).ok_or_else(|| damaged("its header is cut short"));
        if bytes.get(2) != Some(&1) {
            return Err(not(format!("it is of version {:?}, and 1 is known", bytes.get(2))));
        }
        let [header, types_at, types_bytes, strings_at, strings_bytes] = [4, 8, 12, 16, 20].map(number);
        let header = header? as usize;
        let part = |at: u32, length: u32, what: &str| {
            let from = header.checked_add(at as usize);
            let part = from.and_then(|from| bytes.get(from..from.checked_add(length as usize)?));
            part.ok_or_else(|| damaged(&format!("its {what} end behind the file's end, at byte {}", bytes.len())))
        };
        Ok(Header {
            little,
            types: part(types_at?, types_bytes?, "types")?,
            strings: part(strings_at?, strings_bytes?, "names")?,
        })
    }
}

impl<'a> Table<'a> {
    /// Reads where each type begins. `base` is what the file builds on.
    pub(super) fn of(path: &Path, bytes: &'a [u8], base: Option<&'a [u8]>) -> Result<Table<'a>, Error> {
        let own = Header::of(path, bytes)?;
        let base = base.map(|base| Header::of(path, base)).transpose()?;
        let base_strings = base.as_ref().map_or(&[][..], |base| base.strings);
        let mut table = Table { little: own.little, types: Vec::new(), strings: own.strings, base_strings };
        for part in base.iter().chain([&own]) {
            table.add(path, part.types)?;
        }
        Ok(table)
    }

    fn add(&mut self, path: &Path, mut types: &'a [u8]) -> Result<(), Error> {
        while !types.is_empty() {
            let number = self.types.len() + 1;
            let damaged =
                |what: String| Error::Damaged { file: path.to_owned(), what: format!("type {number} {what}") };
            let raw = self.raw(types).ok_or_else(|| damaged("is cut short".to_owned()))?;
            let rest =
                rest_bytes(&raw).ok_or_else(|| damaged(format!("is of kind {}, which is not known", raw.kind)))?;
            self.types.push(types);
            types = raw.rest.get(rest..).ok_or_else(|| damaged("is cut short".to_owned()))?;
        }
        Ok(())
    }

    fn raw(&self, bytes: &'a [u8]) -> Option<Raw<'a>> {
        let info = u32_at(bytes, 4, self.little)?;
        Some(Raw {
            name: u32_at(bytes, 0, self.little)?,
            kind: info >> 24 & 0x1f,
            flag: info >> 31 == 1,
            members: info & 0xffff,
            size_or_type: u32_at(bytes, 8, self.little)?,
            rest: bytes.get(TYPE_BYTES..)?,
        })
    }

    /// A type by its number; `None` for void, and for a number that no type has.
    pub(super) fn get(&self, id: u32) -> Option<Raw<'a>> {
        self.raw(self.types.get((id as usize).checked_sub(1)?)?)
    }

    /// A number among what follows a type's fixed part.
    pub(super) fn number(&self, raw: &Raw<'a>, index: usize) -> u32 {
        u32_at(raw.rest, index * 4, self.little).unwrap_or(0)
    }

    /// The members of a struct or union.
    pub(super) fn members(&self, raw: &Raw<'a>) -> impl Iterator<Item = RawMember> {
        let number = |index| self.number(raw, index);
        let member =
            move |i: usize| RawMember { name: number(3 * i), of: number(3 * i + 1), offset: number(3 * i + 2) };
        (0..raw.members as usize).map(member)
    }

    /// A name by where it lies; empty where there is none.
    pub(super) fn text(&self, at: u32) -> Cow<'a, str> {
        let at = at as usize;
        let text = match at.checked_sub(self.base_strings.len()) {
            Some(own) => self.strings.get(own..),
            None => self.base_strings.get(at..),
        };
        let text = text.unwrap_or(&[]).split(|byte| *byte == 0).next().unwrap_or(&[]);
        String::from_utf8_lossy(text)
    }

    /// A type's own name.
    pub(super) fn name(&self, raw: &Raw<'a>) -> Cow<'a, str> {
        self.text(raw.name)
    }

    /// Every struct and union that has a name, by its own or a typedef's.
    pub(super) fn structs(&self) -> impl Iterator<Item = (u32, String)> {
        let ids = 1..=u32::try_from(self.types.len()).unwrap_or(u32::MAX);
        ids.filter_map(|id| {
            let raw = self.get(id)?;
            let name = self.name(&raw).into_owned();
            match raw.kind {
                _ if name.is_empty() => None,
                kind::STRUCT | kind::UNION => Some((id, name)),
                kind::TYPEDEF => {
                    let behind = self.get(raw.size_or_type)?;
                    let nameless = matches!(behind.kind, kind::STRUCT | kind::UNION) && self.name(&behind).is_empty();
                    nameless.then_some((raw.size_or_type, name))
                }
                _ => None,
            }
        })
    }

    /// Names that are declared and not defined.
    pub(super) fn declared(&self) -> impl Iterator<Item = Cow<'a, str>> {
        self.types
            .iter()
            .filter_map(|bytes| self.raw(bytes))
            .filter(|raw| raw.kind == kind::FWD)
            .map(|raw| self.name(&raw))
    }
}

/// What a struct or union is called.
pub(super) fn keyword(raw: &Raw<'_>) -> Keyword {
    if raw.kind == kind::UNION { Keyword::Union } else { Keyword::Struct }
}

/// Bytes behind the fixed part; `None` of an unknown kind.
fn rest_bytes(raw: &Raw<'_>) -> Option<usize> {
    let members = raw.members as usize;
    Some(match raw.kind {
        kind::INT | kind::VAR | kind::DECL_TAG => 4,
        kind::ARRAY => 12,
        kind::STRUCT | kind::UNION | kind::DATASEC | kind::ENUM64 => 12 * members,
        kind::ENUM | kind::FUNC_PROTO => 8 * members,
        kind::PTR | kind::FWD | kind::TYPEDEF | kind::VOLATILE | kind::CONST => 0,
        kind::RESTRICT | kind::FUNC | kind::FLOAT | kind::TYPE_TAG => 0,
        _ => return None,
    })
}

fn u32_at(bytes: &[u8], at: usize, little: bool) -> Option<u32> {
    let bytes = *bytes.get(at..)?.first_chunk()?;
    Some(if little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
}
