//! The names of types, as their languages write them.

use super::{Entry, Types};
use crate::dwarf::spaces::At;
use crate::error::Error;
use crate::layout::Language;
use crate::parts::DEPTH_MAX;
use gimli::constants as dw;

impl<'a> Types<'_, 'a> {
    /// A type's name; `None` stands for void.
    pub(super) fn name(&self, at: Option<At>, depth: usize) -> Result<String, Error> {
        let Some(at) = at else { return Ok("void".to_owned()) };
        if depth > DEPTH_MAX {
            return Err(self.damaged(at, "is named by itself"));
        }
        let entry = self.entry(at)?;
        let language = self.language(at)?;
        let own = self.text(at, &entry, dw::DW_AT_name)?;
        let inner = |depth| self.name(self.referred(at, &entry, dw::DW_AT_type), depth + 1);
        let name = match entry.tag() {
            // A type in a unit of its own is named there.
            _ if own.is_none() && entry.has_attr(dw::DW_AT_signature) => {
                self.name(self.referred(at, &entry, dw::DW_AT_signature), depth + 1)?
            }
            dw::DW_TAG_structure_type => tagged("struct", own, language),
            dw::DW_TAG_class_type => tagged("class", own, language),
            dw::DW_TAG_union_type => tagged("union", own, language),
            dw::DW_TAG_enumeration_type => tagged("enum", own, language),
            dw::DW_TAG_array_type => self.array_name(at, &inner(depth)?, language)?,
            dw::DW_TAG_subroutine_type => self.function_name(at, "()", depth)?,
            _ if own.is_some() => own.unwrap_or_default(),
            dw::DW_TAG_pointer_type => self.pointer_name(at, &entry, depth)?,
            dw::DW_TAG_reference_type => format!("{} &", inner(depth)?),
            dw::DW_TAG_rvalue_reference_type => format!("{} &&", inner(depth)?),
            dw::DW_TAG_ptr_to_member_type => self.member_pointer_name(at, &entry, depth)?,
            dw::DW_TAG_const_type => qualified("const", &inner(depth)?),
            dw::DW_TAG_volatile_type => qualified("volatile", &inner(depth)?),
            dw::DW_TAG_restrict_type => qualified("restrict", &inner(depth)?),
            dw::DW_TAG_atomic_type => qualified("_Atomic", &inner(depth)?),
            _ if super::is_alias(entry.tag()) => inner(depth)?,
            _ => "unnamed".to_owned(),
        };
        match self.budget.named(&name) {
            true => Ok(name),
            false => Err(self.damaged(at, "has a name without end")),
        }
    }

    fn pointer_name(&self, at: At, entry: &Entry<'a>, depth: usize) -> Result<String, Error> {
        let to = self.referred(at, entry, dw::DW_AT_type);
        if let Some(to) = to
            && self.entry(to)?.tag() == dw::DW_TAG_subroutine_type
        {
            return self.function_name(to, "(*)", depth);
        }
        let to = self.name(to, depth + 1)?;
        Ok(if to.ends_with('*') { format!("{to}*") } else { format!("{to} *") })
    }

    fn member_pointer_name(&self, at: At, entry: &Entry<'a>, depth: usize) -> Result<String, Error> {
        let of = self.name(self.referred(at, entry, dw::DW_AT_containing_type), depth + 1)?;
        let to = self.referred(at, entry, dw::DW_AT_type);
        if let Some(to) = to
            && self.entry(to)?.tag() == dw::DW_TAG_subroutine_type
        {
            return self.function_name(to, &format!("({of}::*)"), depth);
        }
        Ok(format!("{} {of}::*", self.name(to, depth + 1)?))
    }

    /// A function's type with `middle` where its name would stand.
    fn function_name(&self, at: At, middle: &str, depth: usize) -> Result<String, Error> {
        let parsed = self.unit(at)?;
        let wrong = |error| self.spaces.damaged(at.space, at.unit, error);
        let returned = self.name(self.referred(at, &self.entry(at)?, dw::DW_AT_type), depth + 1)?;
        let mut taken = Vec::new();
        let mut entries = parsed.unit.entries_raw(Some(at.offset)).map_err(wrong)?;
        let mut entry = Entry::null();
        entries.read_entry(&mut entry).map_err(wrong)?;
        while entries.next_depth() > 0 && !entries.is_empty() {
            let outer = entries.next_depth() == 1;
            if !entries.read_entry(&mut entry).map_err(wrong)? || !outer {
                continue;
            }
            match entry.tag() {
                // The object that a member function is called on is no parameter to the eye.
                dw::DW_TAG_formal_parameter if !entry.has_attr(dw::DW_AT_artificial) => {
                    taken.push(self.name(self.referred(at, &entry, dw::DW_AT_type), depth + 1)?);
                }
                dw::DW_TAG_unspecified_parameters => taken.push("...".to_owned()),
                _ => {}
            }
        }
        let taken = if taken.is_empty() { "void".to_owned() } else { taken.join(", ") };
        Ok(format!("{returned} {middle}({taken})"))
    }

    fn array_name(&self, at: At, element: &str, language: Language) -> Result<String, Error> {
        let mut name = element.to_owned();
        let dimensions = self.dimensions(at)?;
        if language == Language::Rust {
            for count in dimensions.iter().rev() {
                name = format!("[{name}; {}]", count.unwrap_or(0));
            }
            return Ok(name);
        }
        for count in dimensions {
            name.push_str(&count.map_or_else(|| "[]".to_owned(), |count| format!("[{count}]")));
        }
        Ok(name)
    }
}

/// C names a struct with its keyword; C++ and Rust do not.
fn tagged(keyword: &str, own: Option<String>, language: Language) -> String {
    match (own, language) {
        (Some(name), Language::C) => format!("{keyword} {name}"),
        (Some(name), _) => name,
        (None, _) => format!("{keyword} {{...}}"),
    }
}

/// A qualifier stands before what it qualifies, and behind a pointer.
fn qualified(word: &str, inner: &str) -> String {
    if inner.ends_with('*') { format!("{inner} {word}") } else { format!("{word} {inner}") }
}
