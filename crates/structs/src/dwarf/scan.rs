//! The search for a name: once through every entry, reading only those that can name a type.

use super::spaces::{At, Spaces};
use crate::elf::Slice;
use crate::error::Error;
use crate::wanted::{Fit, Wanted};
use gimli::constants as dw;
use gimli::{Abbreviation, AttributeValue, DwTag, EntriesRaw, Unit, UnitOffset};
use std::collections::BTreeSet;

/// A type whose name fits.
pub(crate) struct Hit {
    pub(crate) at: At,
    pub(crate) name: String,
    pub(crate) fit: Fit,
}

/// What a search found.
#[derive(Default)]
pub(crate) struct Search {
    pub(crate) hits: Vec<Hit>,
    /// Whether something of that name is declared, its members untold.
    pub(crate) declared: bool,
}

/// Every type whose name fits.
pub(crate) fn search(spaces: &Spaces<'_>, wanted: &Wanted) -> Result<Search, Error> {
    let mut search = Search::default();
    let mut visit = |at: At, named: &Named<'_>, scopes: &Scopes<'_>| {
        if !wanted.may_be(named.name.slice()) {
            return;
        }
        let name = scopes.qualified(named.name);
        match wanted.fit(&name) {
            Some(_) if named.declared => search.declared = true,
            Some(fit) => search.hits.push(Hit { at, name, fit }),
            None => {}
        }
    };
    every_type(spaces, &mut visit)?;
    Ok(search)
}

/// The names of all types, namespaces left out.
pub(crate) fn names(spaces: &Spaces<'_>) -> Result<BTreeSet<String>, Error> {
    let mut names = BTreeSet::new();
    let mut visit = |_: At, named: &Named<'_>, _: &Scopes<'_>| {
        if !named.declared && !named.alias {
            names.insert(named.name.to_string_lossy().into_owned());
        }
    };
    every_type(spaces, &mut visit)?;
    Ok(names)
}

/// The definition of the struct that is only declared at `declared`: the first of the same whole name.
pub(crate) fn definition(spaces: &Spaces<'_>, declared: At) -> Result<Option<At>, Error> {
    let mut wanted = None;
    in_unit(spaces, (declared.space, declared.unit), &mut |at, named, scopes| {
        if at == declared {
            wanted = Some((named.name, scopes.qualified(named.name)));
        }
    })?;
    let Some((name, whole)) = wanted else { return Ok(None) };
    let mut found = None;
    every_type(spaces, &mut |at, named, scopes| {
        let fits = found.is_none() && !named.declared && !named.alias && named.name.slice() == name.slice();
        if fits && scopes.qualified(named.name) == whole {
            found = Some(at);
        }
    })?;
    Ok(found)
}

/// An entry that names a type.
struct Named<'a> {
    name: Slice<'a>,
    /// Without its members.
    declared: bool,
    /// A typedef.
    alias: bool,
}

/// The namespaces and types around an entry.
#[derive(Default)]
struct Scopes<'a>(Vec<(isize, Option<Slice<'a>>)>);

impl<'a> Scopes<'a> {
    fn leave(&mut self, depth: isize) {
        while self.0.last().is_some_and(|(at, _)| *at >= depth) {
            self.0.pop();
        }
    }

    fn qualified(&self, name: Slice<'a>) -> String {
        let around = self.0.iter().filter_map(|(_, name)| *name);
        let parts: Vec<_> = around.chain([name]).map(|part| part.to_string_lossy()).collect();
        parts.join("::")
    }
}

type Visit<'v, 'a> = dyn FnMut(At, &Named<'a>, &Scopes<'a>) + 'v;

fn every_type<'a>(spaces: &Spaces<'a>, visit: &mut Visit<'_, 'a>) -> Result<(), Error> {
    for (space, of) in spaces.all.iter().enumerate() {
        for unit in 0..of.headers.len() {
            in_unit(spaces, (space, unit), visit)?;
        }
    }
    Ok(())
}

fn in_unit<'a>(spaces: &Spaces<'a>, at: (usize, usize), visit: &mut Visit<'_, 'a>) -> Result<(), Error> {
    let (space, unit) = at;
    let parsed = spaces.parse(space, unit)?;
    let walk = Walk { spaces, unit: &parsed.unit, at };
    walk.run(visit).map_err(|error| spaces.damaged(space, unit, error))
}

struct Walk<'s, 'a> {
    spaces: &'s Spaces<'a>,
    unit: &'s Unit<Slice<'a>>,
    at: (usize, usize),
}

fn is_scope(tag: DwTag) -> bool {
    matches!(tag, dw::DW_TAG_namespace | dw::DW_TAG_module) || is_struct(tag)
}

fn is_struct(tag: DwTag) -> bool {
    matches!(tag, dw::DW_TAG_structure_type | dw::DW_TAG_class_type | dw::DW_TAG_union_type)
}

fn is_alias(tag: DwTag) -> bool {
    matches!(tag, dw::DW_TAG_typedef | dw::DW_TAG_template_alias)
}

impl<'a> Walk<'_, 'a> {
    fn run(&self, visit: &mut Visit<'_, 'a>) -> gimli::Result<()> {
        let mut scopes = Scopes::default();
        let mut entries = self.unit.entries_raw(None)?;
        while !entries.is_empty() {
            let (offset, depth) = (entries.next_offset(), entries.next_depth());
            let Some(abbreviation) = entries.read_abbreviation()? else { continue };
            let tag = abbreviation.tag();
            if !is_scope(tag) && !is_alias(tag) {
                entries.skip_attributes(abbreviation.attributes())?;
                continue;
            }
            let entry = self.read(&mut entries, abbreviation)?;
            scopes.leave(depth);
            if let Some(named) = entry.named(tag, || self.name_of_declaration(entry.specification)) {
                let (space, unit) = self.at;
                visit(At { space, unit, offset }, &named, &scopes);
            }
            if abbreviation.has_children() && is_scope(tag) {
                scopes.0.push((depth, entry.name));
            }
        }
        Ok(())
    }

    fn read(&self, entries: &mut EntriesRaw<'_, Slice<'a>>, of: &Abbreviation) -> gimli::Result<Entry<'a>> {
        let mut entry = Entry { name: None, declared: false, specification: None };
        for &spec in of.attributes() {
            let attribute = entries.read_attribute(spec)?;
            match attribute.name() {
                dw::DW_AT_name => entry.name = Some(self.text(attribute.value())?),
                dw::DW_AT_declaration => entry.declared = true,
                dw::DW_AT_specification => entry.specification = Some(attribute.value()),
                _ => {}
            }
        }
        Ok(entry)
    }

    fn text(&self, value: AttributeValue<Slice<'a>>) -> gimli::Result<Slice<'a>> {
        self.spaces.all[self.at.0].dwarf.attr_string(self.unit, value)
    }

    /// A class that is declared inside another and defined outside has its name at the declaration.
    fn name_of_declaration(&self, reference: Option<AttributeValue<Slice<'a>>>) -> Option<Slice<'a>> {
        let (space, unit) = self.at;
        let at = self.spaces.target(At { space, unit, offset: UnitOffset(0) }, reference?)?;
        if (at.space, at.unit) != self.at {
            return None;
        }
        let declaration = self.unit.entry(at.offset).ok()?;
        self.text(declaration.attr_value(dw::DW_AT_name)?).ok()
    }
}

struct Entry<'a> {
    name: Option<Slice<'a>>,
    declared: bool,
    specification: Option<AttributeValue<Slice<'a>>>,
}

impl<'a> Entry<'a> {
    fn named(&self, tag: DwTag, of_declaration: impl FnOnce() -> Option<Slice<'a>>) -> Option<Named<'a>> {
        let is_type = is_struct(tag) || is_alias(tag);
        let name = self.name.filter(|_| is_type).or_else(|| of_declaration().filter(|_| is_type))?;
        Some(Named { name, declared: self.declared, alias: is_alias(tag) })
    }
}
