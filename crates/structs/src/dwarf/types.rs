//! What the types of DWARF are made of: names, sizes, alignments and members.

mod members;
mod names;

use super::scan::{self, Hit};
use super::spaces::{At, Parsed, Spaces};
use crate::elf::Slice;
use crate::error::Error;
use crate::layout::{Keyword, Kind, Language, Source, Struct};
use crate::parts::{Aggregate, Budget, DEPTH_MAX, Type, natural_align, sound_align};
use gimli::constants as dw;
use gimli::{Attribute, AttributeValue, DebuggingInformationEntry, DwAt};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

type Entry<'a> = DebuggingInformationEntry<Slice<'a>>;

/// Searches for the definition of a type that is only declared where it is used. Each goes through all there is.
const SEARCHES_MAX: usize = 16;

/// Types, each made once.
pub(super) struct Types<'s, 'a> {
    spaces: &'s Spaces<'a>,
    path: &'s Path,
    /// `None` while it is being made: a struct cannot hold itself.
    made: RefCell<HashMap<At, Option<Rc<Aggregate>>>>,
    defined: RefCell<HashMap<At, Option<At>>>,
    budget: Budget,
    /// The unit of the last hit.
    last: Cell<(usize, usize)>,
}

/// Size, alignment and kind, before a name is put to them.
struct Shape {
    bytes: u64,
    align: u64,
    kind: Kind,
    aggregate: Option<Rc<Aggregate>>,
}

impl<'s, 'a> Types<'s, 'a> {
    pub(super) fn new(spaces: &'s Spaces<'a>, path: &'s Path) -> Types<'s, 'a> {
        Types {
            spaces,
            path,
            made: RefCell::default(),
            defined: RefCell::default(),
            budget: Budget::default(),
            last: Cell::default(),
        }
    }

    /// The struct of a hit; `None` where it is a typedef of something else.
    pub(super) fn found(&self, hit: Hit) -> Result<Option<Struct>, Error> {
        self.budget.renew();
        // What was made for another unit's hit is of no more use, and may be much.
        if self.last.replace((hit.at.space, hit.at.unit)) != (hit.at.space, hit.at.unit) {
            self.made.borrow_mut().clear();
        }
        let Some(at) = self.behind_aliases(hit.at)? else { return Ok(None) };
        let entry = self.entry(at)?;
        let own_name = self.text(at, &entry, dw::DW_AT_name)?;
        let name = if at == hit.at { hit.name } else { own_name.unwrap_or(hit.name) };
        let aggregate = self.aggregate(at, &name, 0)?;
        Ok(Some(Struct {
            name,
            keyword: aggregate.keyword,
            language: self.unit(at)?.language,
            bytes: aggregate.bytes,
            align: aggregate.align,
            align_declared: aggregate.align_declared,
            packed: aggregate.packed,
            source: self.source(at, &entry)?,
            members: aggregate.members.clone(),
            virtual_bases: aggregate.virtual_bases.clone(),
        }))
    }

    /// What typedefs and qualifiers lead to, where it is a struct.
    fn behind_aliases(&self, mut at: At) -> Result<Option<At>, Error> {
        for _ in 0..DEPTH_MAX {
            let entry = self.entry(at)?;
            match entry.tag() {
                _ if entry.has_attr(dw::DW_AT_signature) => match self.referred(at, &entry, dw::DW_AT_signature) {
                    Some(next) => at = next,
                    None => return Ok(None),
                },
                dw::DW_TAG_structure_type | dw::DW_TAG_class_type | dw::DW_TAG_union_type => return Ok(Some(at)),
                tag if is_alias(tag) => match self.referred(at, &entry, dw::DW_AT_type) {
                    Some(next) => at = next,
                    None => return Ok(None),
                },
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    fn source(&self, at: At, entry: &Entry<'a>) -> Result<Option<Source>, Error> {
        let file = match entry.attr_value(dw::DW_AT_decl_file) {
            Some(AttributeValue::FileIndex(file)) => file,
            Some(other) => match other.udata_value() {
                Some(file) => file,
                None => return Ok(None),
            },
            None => return Ok(None),
        };
        let Some(line) = number(entry, dw::DW_AT_decl_line) else { return Ok(None) };
        self.spaces.source(at, file, line)
    }

    fn unit(&self, at: At) -> Result<Rc<Parsed<'a>>, Error> {
        self.spaces.unit(at.space, at.unit)
    }

    fn entry(&self, at: At) -> Result<Entry<'a>, Error> {
        self.unit(at)?.unit.entry(at.offset).map_err(|error| self.spaces.damaged(at.space, at.unit, error))
    }

    fn text(&self, at: At, entry: &Entry<'a>, name: DwAt) -> Result<Option<String>, Error> {
        let Some(value) = entry.attr_value(name) else { return Ok(None) };
        let parsed = self.unit(at)?;
        let text = self.spaces.all[at.space].dwarf.attr_string(&parsed.unit, value);
        let text = text.map_err(|error| self.spaces.damaged(at.space, at.unit, error))?;
        Ok(Some(text.to_string_lossy().into_owned()))
    }

    fn referred(&self, at: At, entry: &Entry<'a>, name: DwAt) -> Option<At> {
        self.spaces.target(at, entry.attr_value(name)?)
    }

    fn damaged(&self, at: At, what: &str) -> Error {
        let elf = &self.spaces.all[at.space].elf;
        Error::Damaged { file: elf.path.clone(), what: format!("the type at {:#x} of its unit {what}", at.offset.0) }
    }

    /// The type of a member or element; `None` stands for void.
    fn type_at(&self, at: Option<At>, depth: usize) -> Result<Type, Error> {
        let name = self.name(at, 0)?;
        let shape = match at {
            Some(at) => self.shape(at, depth)?,
            None => scalar(0, 1),
        };
        Ok(Type { name, bytes: shape.bytes, align: shape.align, kind: shape.kind, aggregate: shape.aggregate })
    }

    fn shape(&self, at: At, depth: usize) -> Result<Shape, Error> {
        if depth > DEPTH_MAX {
            return Err(self.damaged(at, "is made of itself"));
        }
        let entry = self.entry(at)?;
        let elf = self.spaces.all[at.space].elf;
        let bytes = number(&entry, dw::DW_AT_byte_size);
        let declared = number(&entry, dw::DW_AT_alignment).and_then(sound_align);
        let mut shape = match entry.tag() {
            dw::DW_TAG_pointer_type | dw::DW_TAG_reference_type | dw::DW_TAG_rvalue_reference_type => {
                let bytes = bytes.unwrap_or(elf.pointer_bytes);
                Shape { kind: Kind::Pointer, ..scalar(bytes, natural_align(bytes, elf.align_max)) }
            }
            dw::DW_TAG_ptr_to_member_type => {
                let bytes = bytes.map_or_else(|| self.pointer_to_member(at, &entry), Ok)?;
                Shape { kind: Kind::Pointer, ..scalar(bytes, elf.pointer_bytes) }
            }
            dw::DW_TAG_array_type => self.array(at, &entry, depth)?,
            dw::DW_TAG_structure_type | dw::DW_TAG_class_type | dw::DW_TAG_union_type => {
                let name = self.text(at, &entry, dw::DW_AT_name)?.unwrap_or_default();
                let aggregate = self.aggregate(at, &name, depth)?;
                let kind = Kind::Nested(aggregate.keyword);
                Shape { bytes: aggregate.bytes, align: aggregate.align, kind, aggregate: Some(aggregate) }
            }
            tag if is_alias(tag) || (bytes.is_none() && tag == dw::DW_TAG_enumeration_type) => {
                match self.referred(at, &entry, dw::DW_AT_type) {
                    Some(inner) => self.shape(inner, depth + 1)?,
                    None => scalar(0, 1),
                }
            }
            _ => {
                let bytes = bytes.unwrap_or(0);
                scalar(bytes, natural_align(bytes, elf.align_max))
            }
        };
        if let Some(declared) = declared {
            shape.align = declared;
        }
        Ok(shape)
    }

    /// A pointer to a member function has the function and what to add to `this`; one to data has an offset (Itanium
    /// C++ ABI, 2.3).
    fn pointer_to_member(&self, at: At, entry: &Entry<'a>) -> Result<u64, Error> {
        let word = self.spaces.all[at.space].elf.pointer_bytes;
        let Some(to) = self.referred(at, entry, dw::DW_AT_type) else { return Ok(word) };
        Ok(if self.entry(to)?.tag() == dw::DW_TAG_subroutine_type { 2 * word } else { word })
    }

    fn array(&self, at: At, entry: &Entry<'a>, depth: usize) -> Result<Shape, Error> {
        let element = self.type_at(self.referred(at, entry, dw::DW_AT_type), depth + 1)?;
        let dimensions = self.dimensions(at)?;
        let count = dimensions.iter().try_fold(1_u64, |all, one| all.checked_mul(one.unwrap_or(0)));
        let bytes = number(entry, dw::DW_AT_byte_size).or(count.and_then(|n| n.checked_mul(element.bytes)));
        let (Some(count), Some(bytes)) = (count, bytes) else { return Err(self.damaged(at, "is larger than memory")) };
        // A vector is aligned as a whole (GCC manual, "Vector Extensions").
        let align = if entry.has_attr(dw::DW_AT_GNU_vector) { natural_align(bytes, 1 << 12) } else { element.align };
        // An array of arrays is one of all elements.
        let kind = match element.kind {
            Kind::Array { element, element_bytes, count: inner } => {
                Kind::Array { element, element_bytes, count: count.saturating_mul(inner) }
            }
            _ => Kind::Array { element: element.name, element_bytes: element.bytes, count },
        };
        Ok(Shape { bytes, align, kind, aggregate: None })
    }

    /// Elements in each dimension; `None` of a flexible array.
    fn dimensions(&self, at: At) -> Result<Vec<Option<u64>>, Error> {
        let parsed = self.unit(at)?;
        let wrong = |error| self.spaces.damaged(at.space, at.unit, error);
        let mut dimensions = Vec::new();
        let mut entries = parsed.unit.entries_raw(Some(at.offset)).map_err(wrong)?;
        let mut entry = Entry::null();
        entries.read_entry(&mut entry).map_err(wrong)?;
        while entries.next_depth() > 0 && !entries.is_empty() {
            let depth = entries.next_depth();
            if !entries.read_entry(&mut entry).map_err(wrong)? || depth != 1 || entry.tag() != dw::DW_TAG_subrange_type
            {
                continue;
            }
            let first = number(&entry, dw::DW_AT_lower_bound).unwrap_or(0);
            // An upper bound of -1 is how some compilers write an empty array.
            let by_bound =
                signed(&entry, dw::DW_AT_upper_bound).and_then(|last| u64::try_from(last + 1).ok()?.checked_sub(first));
            dimensions.push(number(&entry, dw::DW_AT_count).or(by_bound));
        }
        Ok(dimensions)
    }

    /// A struct, made once.
    fn aggregate(&self, at: At, name: &str, depth: usize) -> Result<Rc<Aggregate>, Error> {
        match self.made.borrow().get(&at) {
            Some(Some(made)) => return Ok(Rc::clone(made)),
            Some(None) => return Err(self.damaged(at, "holds itself")),
            None => {}
        }
        let entry = self.entry(at)?;
        if entry.has_attr(dw::DW_AT_declaration) || entry.has_attr(dw::DW_AT_signature) {
            return self.defined_elsewhere(at, &entry, name, depth);
        }
        self.made.borrow_mut().insert(at, None);
        let made = Rc::new(self.make(at, &entry, depth)?);
        self.made.borrow_mut().insert(at, Some(Rc::clone(&made)));
        Ok(made)
    }

    fn make(&self, at: At, entry: &Entry<'a>, depth: usize) -> Result<Aggregate, Error> {
        let parts = self.members(at, depth)?;
        let keyword = match entry.tag() {
            _ if parts.has_variants => Keyword::Enum,
            dw::DW_TAG_union_type => Keyword::Union,
            dw::DW_TAG_class_type => Keyword::Class,
            _ => Keyword::Struct,
        };
        let bytes = number(entry, dw::DW_AT_byte_size).unwrap_or(0);
        let declared = number(entry, dw::DW_AT_alignment).and_then(sound_align);
        Ok(Aggregate::new(keyword, bytes, declared, parts.members, parts.virtual_bases))
    }

    /// The definition of a struct that is only declared at `at`: by its signature, or by its name in another unit.
    fn defined_elsewhere(&self, at: At, entry: &Entry<'a>, name: &str, depth: usize) -> Result<Rc<Aggregate>, Error> {
        let only_declared = || Error::OnlyDeclared { file: self.path.to_owned(), name: name.to_owned() };
        if depth > DEPTH_MAX {
            return Err(only_declared());
        }
        let by_signature = self.referred(at, entry, dw::DW_AT_signature);
        let found = match by_signature {
            Some(found) => Some(found),
            None => self.definition(at)?,
        };
        match found.filter(|found| *found != at) {
            Some(found) => self.aggregate(found, name, depth + 1),
            None => Err(only_declared()),
        }
    }

    fn definition(&self, declared: At) -> Result<Option<At>, Error> {
        if let Some(known) = self.defined.borrow().get(&declared) {
            return Ok(*known);
        }
        if self.defined.borrow().len() >= SEARCHES_MAX {
            return Ok(None);
        }
        let found = scan::definition(self.spaces, declared)?;
        self.defined.borrow_mut().insert(declared, found);
        Ok(found)
    }

    fn language(&self, at: At) -> Result<Language, Error> {
        Ok(self.unit(at)?.language)
    }
}

fn scalar(bytes: u64, align: u64) -> Shape {
    Shape { bytes, align, kind: Kind::Scalar, aggregate: None }
}

fn number(entry: &Entry<'_>, name: DwAt) -> Option<u64> {
    entry.attr(name).and_then(Attribute::udata_value)
}

/// A number that may be below 0, which a form of its own tells; a byte of 199 is not -57.
fn signed(entry: &Entry<'_>, name: DwAt) -> Option<i128> {
    match entry.attr(name)?.value() {
        AttributeValue::Sdata(value) => Some(i128::from(value)),
        value => value.udata_value().map(i128::from),
    }
}

/// Types that stand for another.
fn is_alias(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        dw::DW_TAG_typedef
            | dw::DW_TAG_template_alias
            | dw::DW_TAG_const_type
            | dw::DW_TAG_volatile_type
            | dw::DW_TAG_restrict_type
            | dw::DW_TAG_atomic_type
            | dw::DW_TAG_immutable_type
            | dw::DW_TAG_packed_type
            | dw::DW_TAG_shared_type
    )
}
