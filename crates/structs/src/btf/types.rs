//! What the types of BTF are made of.

use super::table::{Raw, RawMember, Table, keyword, kind};
use crate::error::Error;
use crate::layout::{Kind, Language, Member, Struct};
use crate::parts::{Aggregate, Budget, DEPTH_MAX, Type, bit_field, natural_align};
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

/// BTF does not tell how long a pointer is; kernels that have it have 64 bits.
const POINTER_BYTES: u64 = 8;

/// Largest alignment of a number, of x86-64 and Arm.
const ALIGN_MAX: u64 = 16;

/// Types, each made once.
pub(super) struct Types<'t, 'a> {
    table: &'t Table<'a>,
    path: &'t Path,
    /// `None` while it is being made: a struct cannot hold itself.
    made: RefCell<HashMap<u32, Option<Rc<Aggregate>>>>,
    budget: Budget,
}

impl<'t, 'a> Types<'t, 'a> {
    pub(super) fn new(table: &'t Table<'a>, path: &'t Path) -> Types<'t, 'a> {
        Types { table, path, made: RefCell::default(), budget: Budget::default() }
    }

    /// The struct of that number.
    pub(super) fn found(&self, id: u32, name: String) -> Result<Struct, Error> {
        self.budget.renew();
        let aggregate = self.aggregate(id, 0)?;
        Ok(Struct {
            name,
            keyword: aggregate.keyword,
            language: Language::C,
            bytes: aggregate.bytes,
            align: aggregate.align,
            align_declared: aggregate.align_declared,
            packed: aggregate.packed,
            source: None,
            members: aggregate.members.clone(),
            virtual_bases: Vec::new(),
        })
    }

    fn damaged(&self, id: u32, what: &str) -> Error {
        Error::Damaged { file: self.path.to_owned(), what: format!("type {id} {what}") }
    }

    fn aggregate(&self, id: u32, depth: usize) -> Result<Rc<Aggregate>, Error> {
        match self.made.borrow().get(&id) {
            Some(Some(made)) => return Ok(Rc::clone(made)),
            Some(None) => return Err(self.damaged(id, "holds itself")),
            None => {}
        }
        let raw = self.table.get(id).ok_or_else(|| self.damaged(id, "is not there"))?;
        self.made.borrow_mut().insert(id, None);
        let members: Vec<Member> =
            self.table.members(&raw).map(|member| self.member(raw.flag, member, depth)).collect::<Result<_, _>>()?;
        let aggregate = Aggregate::new(keyword(&raw), u64::from(raw.size_or_type), None, members, Vec::new());
        let made = Rc::new(aggregate);
        self.made.borrow_mut().insert(id, Some(Rc::clone(&made)));
        Ok(made)
    }

    fn member(&self, flag: bool, raw: RawMember, depth: usize) -> Result<Member, Error> {
        let of = self.type_at(raw.of, depth + 1)?;
        let name = self.table.text(raw.name).into_owned();
        // With the flag the upper 8 bits are a bit-field's size, else the integer's own encoding has it.
        let (first_bit, count) = match flag {
            true => (u64::from(raw.offset & 0x00ff_ffff), u64::from(raw.offset >> 24)),
            false => self.encoded_bits(raw, of.bytes),
        };
        if count == 0 {
            return self.budget.member(name, &of, first_bit / 8, None);
        }
        let (offset, bytes, bits) = bit_field(first_bit, count, of.bytes);
        Ok(Member { bytes, ..self.budget.member(name, &of, offset, Some(bits))? })
    }

    /// First bit, and the number of bits where they do not fill the type.
    fn encoded_bits(&self, raw: RawMember, type_bytes: u64) -> (u64, u64) {
        let first = u64::from(raw.offset);
        match self.table.get(raw.of) {
            Some(of) if of.kind == kind::INT => {
                let encoding = self.table.number(&of, 0);
                let (count, shift) = (u64::from(encoding & 0xff), u64::from(encoding >> 16 & 0xff));
                (first + shift, if count < type_bytes * 8 { count } else { 0 })
            }
            _ => (first, 0),
        }
    }

    fn type_at(&self, id: u32, depth: usize) -> Result<Type, Error> {
        if depth > DEPTH_MAX {
            return Err(self.damaged(id, "is made of itself"));
        }
        let of = |bytes, align, kind| Ok(Type { name: self.name(id, 0)?, bytes, align, kind, aggregate: None });
        let Some(raw) = self.table.get(id) else { return of(0, 1, Kind::Scalar) };
        let size = u64::from(raw.size_or_type);
        match raw.kind {
            kind::PTR => of(POINTER_BYTES, POINTER_BYTES, Kind::Pointer),
            kind::ARRAY => self.array(id, &raw, depth),
            kind::STRUCT | kind::UNION => {
                let aggregate = self.aggregate(id, depth)?;
                let made = of(aggregate.bytes, aggregate.align, Kind::Nested(aggregate.keyword))?;
                Ok(Type { aggregate: Some(aggregate), ..made })
            }
            kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG => {
                Ok(Type { name: self.name(id, 0)?, ..self.type_at(raw.size_or_type, depth + 1)? })
            }
            kind::INT | kind::ENUM | kind::FLOAT | kind::ENUM64 => {
                of(size, natural_align(size, ALIGN_MAX), Kind::Scalar)
            }
            _ => of(0, 1, Kind::Scalar),
        }
    }

    fn array(&self, id: u32, raw: &Raw<'a>, depth: usize) -> Result<Type, Error> {
        let element = self.type_at(self.table.number(raw, 0), depth + 1)?;
        let count = u64::from(self.table.number(raw, 2));
        // An array of arrays is one of all elements.
        let (element_name, element_bytes, inner) = match element.kind {
            Kind::Array { element, element_bytes, count } => (element, element_bytes, count),
            _ => (element.name, element.bytes, 1),
        };
        let all = count.checked_mul(inner).zip(count.checked_mul(element.bytes));
        let (count, bytes) = all.ok_or_else(|| self.damaged(id, "is larger than memory"))?;
        let kind = Kind::Array { element: element_name, element_bytes, count };
        Ok(Type { name: self.name(id, 0)?, bytes, align: element.align, kind, aggregate: None })
    }

    fn name(&self, id: u32, depth: usize) -> Result<String, Error> {
        if depth > DEPTH_MAX {
            return Err(self.damaged(id, "is named by itself"));
        }
        let Some(raw) = self.table.get(id) else { return Ok("void".to_owned()) };
        let inner = || self.name(raw.size_or_type, depth + 1);
        let tagged = |keyword: &str| match self.table.name(&raw) {
            name if name.is_empty() => format!("{keyword} {{...}}"),
            name => format!("{keyword} {name}"),
        };
        let before = |word: &str, inner: String| match inner.ends_with('*') {
            true => format!("{inner} {word}"),
            false => format!("{word} {inner}"),
        };
        let name = match raw.kind {
            kind::STRUCT => tagged("struct"),
            kind::UNION => tagged("union"),
            kind::FWD => tagged(if raw.flag { "union" } else { "struct" }),
            kind::ENUM | kind::ENUM64 => tagged("enum"),
            kind::PTR => self.pointer_name(&raw, depth)?,
            kind::ARRAY => self.array_name(&raw, depth)?,
            kind::CONST => before("const", inner()?),
            kind::VOLATILE => before("volatile", inner()?),
            kind::RESTRICT => before("restrict", inner()?),
            kind::TYPE_TAG => inner()?,
            kind::FUNC_PROTO => self.function_name(&raw, "()", depth)?,
            _ => self.table.name(&raw).into_owned(),
        };
        match self.budget.named(&name) {
            true => Ok(name),
            false => Err(self.damaged(id, "has a name without end")),
        }
    }

    fn pointer_name(&self, raw: &Raw<'a>, depth: usize) -> Result<String, Error> {
        if let Some(to) = self.table.get(raw.size_or_type)
            && to.kind == kind::FUNC_PROTO
        {
            return self.function_name(&to, "(*)", depth);
        }
        let to = self.name(raw.size_or_type, depth + 1)?;
        Ok(if to.ends_with('*') { format!("{to}*") } else { format!("{to} *") })
    }

    /// Dimensions stand from the outermost to the innermost, behind the element.
    fn array_name(&self, raw: &Raw<'a>, depth: usize) -> Result<String, Error> {
        let mut dimensions = format!("[{}]", self.table.number(raw, 2));
        let mut element = self.table.number(raw, 0);
        for _ in 0..DEPTH_MAX {
            match self.table.get(element) {
                Some(inner) if inner.kind == kind::ARRAY => {
                    dimensions.push_str(&format!("[{}]", self.table.number(&inner, 2)));
                    element = self.table.number(&inner, 0);
                }
                _ => break,
            }
        }
        Ok(format!("{}{dimensions}", self.name(element, depth + 1)?))
    }

    /// A function's type with `middle` where its name would stand.
    fn function_name(&self, raw: &Raw<'a>, middle: &str, depth: usize) -> Result<String, Error> {
        let returned = self.name(raw.size_or_type, depth + 1)?;
        let mut taken = Vec::new();
        for index in 0..raw.members as usize {
            let (name, of) = (self.table.number(raw, 2 * index), self.table.number(raw, 2 * index + 1));
            taken.push(if (name, of) == (0, 0) { "...".to_owned() } else { self.name(of, depth + 1)? });
        }
        let taken = if taken.is_empty() { "void".to_owned() } else { taken.join(", ") };
        Ok(format!("{returned} {middle}({taken})"))
    }
}
