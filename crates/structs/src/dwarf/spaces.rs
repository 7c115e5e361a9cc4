//! Spaces of debug information: each is a set of sections whose offsets mean one thing. A program has one of its own,
//! one for what it shares, and one for each file that the compiler split off.

use super::beside::Files;
use crate::elf::{Elf, Sections, Slice};
use crate::error::Error;
use crate::layout::{Language, Source};
use gimli::constants as dw;
use gimli::{AbbreviationsCacheStrategy, AttributeValue, DebugInfoOffset, Dwarf, DwarfPackage};
use gimli::{EndianSlice, SectionId, Unit, UnitHeader, UnitOffset, UnitType};
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;

/// Units that are kept parsed: each has its table of file names, and a large program has thousands.
const UNITS_KEPT: usize = 256;

/// An entry of debug information.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct At {
    pub(crate) space: usize,
    pub(crate) unit: usize,
    pub(crate) offset: UnitOffset,
}

/// One set of sections.
pub(crate) struct Space<'a> {
    pub(crate) dwarf: Dwarf<Slice<'a>>,
    /// Those in `.debug_info`, then those in `.debug_types`.
    pub(crate) headers: Vec<UnitHeader<Slice<'a>>>,
    pub(crate) elf: &'a Elf,
    /// The space that it shares types and strings with.
    shared: Option<usize>,
    /// The unit of the first space that stands for this one, whose table of file names it uses.
    skeleton: Option<usize>,
}

/// A unit, parsed.
pub(crate) struct Parsed<'a> {
    pub(crate) unit: Unit<Slice<'a>>,
    pub(crate) language: Language,
}

/// All spaces of a program.
pub(crate) struct Spaces<'a> {
    pub(crate) all: Vec<Space<'a>>,
    signatures: HashMap<u64, At>,
    parsed: RefCell<HashMap<(usize, usize), Rc<Parsed<'a>>>>,
}

pub(crate) fn unit_headers<'a>(dwarf: &Dwarf<Slice<'a>>) -> gimli::Result<Vec<UnitHeader<Slice<'a>>>> {
    dwarf.units().chain(dwarf.type_units()).collect()
}

impl<'a> Spaces<'a> {
    /// All that the files hold.
    pub(crate) fn of(files: &'a Files) -> Result<Spaces<'a>, Error> {
        let mut spaces = Spaces { all: Vec::new(), signatures: HashMap::new(), parsed: RefCell::default() };
        let which = match files.main.section(".debug_info").is_empty() && files.main.section(".debug_types").is_empty()
        {
            true => Sections::Split,
            false => Sections::Main,
        };
        let mut main = files.main.dwarf(which);
        if let Some(shared) = &files.shared {
            main.set_sup(shared.dwarf(Sections::Main));
        }
        let is_package = !files.main.section(".debug_cu_index").is_empty();
        if is_package {
            spaces.add_package(&files.main, &main)?;
            return Ok(spaces);
        }
        spaces.add(main, &files.main, files.shared.as_ref().map(|_| 1), None)?;
        if let Some(shared) = &files.shared {
            spaces.add(shared.dwarf(Sections::Main), shared, None, None)?;
        }
        for (elf, skeleton) in &files.split {
            let mut split = elf.dwarf(Sections::Split);
            split.make_dwo(&spaces.all[0].dwarf);
            spaces.add(split, elf, None, Some(*skeleton))?;
        }
        if let Some(package) = &files.package {
            let parent = files.main.dwarf(Sections::Main);
            spaces.add_package(package, &parent)?;
        }
        Ok(spaces)
    }

    fn add_package(&mut self, elf: &'a Elf, parent: &Dwarf<Slice<'a>>) -> Result<(), Error> {
        let damaged = |error: gimli::Error| Error::Damaged { file: elf.path.clone(), what: error.to_string() };
        let load = |id: SectionId| {
            // The two indices have no other name.
            let which = match id {
                SectionId::DebugCuIndex | SectionId::DebugTuIndex => Sections::Main,
                _ => Sections::Split,
            };
            Ok(elf.part(id, which))
        };
        let package = DwarfPackage::load(load, EndianSlice::new(&[], elf.endian)).map_err(damaged)?;
        for row in 1..=package.cu_index.unit_count() {
            let dwarf = package.cu_sections(row, parent).map_err(damaged)?;
            self.add(dwarf, elf, None, None)?;
        }
        for row in 1..=package.tu_index.unit_count() {
            let dwarf = package.tu_sections(row, parent).map_err(damaged)?;
            self.add(dwarf, elf, None, None)?;
        }
        Ok(())
    }

    fn add(
        &mut self,
        mut dwarf: Dwarf<Slice<'a>>,
        elf: &'a Elf,
        shared: Option<usize>,
        skeleton: Option<usize>,
    ) -> Result<(), Error> {
        let headers = unit_headers(&dwarf)
            .map_err(|error| Error::Damaged { file: elf.path.clone(), what: format!("the list of units: {error}") })?;
        dwarf.populate_abbreviations_cache(AbbreviationsCacheStrategy::Duplicates);
        let space = self.all.len();
        for (unit, header) in headers.iter().enumerate() {
            if let UnitType::Type { type_signature, type_offset }
            | UnitType::SplitType { type_signature, type_offset } = header.type_()
            {
                self.signatures.insert(type_signature.0, At { space, unit, offset: type_offset });
            }
        }
        self.all.push(Space { dwarf, headers, elf, shared, skeleton });
        Ok(())
    }

    /// The error for what gimli found wrong in a space.
    pub(crate) fn damaged(&self, space: usize, unit: usize, error: gimli::Error) -> Error {
        let space = &self.all[space];
        let header = &space.headers[unit];
        let offset = header.debug_info_offset().map(|o| o.0).or(header.debug_types_offset().map(|o| o.0)).unwrap_or(0);
        Error::Damaged {
            file: space.elf.path.clone(),
            what: format!("debug information, unit at {offset:#x}: {error}"),
        }
    }

    /// A unit, parsed and not kept.
    pub(crate) fn parse(&self, space: usize, unit: usize) -> Result<Parsed<'a>, Error> {
        let wrong = |error| self.damaged(space, unit, error);
        let of = &self.all[space];
        let parsed = of.dwarf.unit(of.headers[unit]).map_err(wrong)?;
        let language = parsed.entry(parsed.header.root_offset()).map_err(wrong)?.attr_value(dw::DW_AT_language);
        Ok(Parsed { unit: parsed, language: language.map_or(Language::Other, language_of) })
    }

    /// A unit, parsed and kept.
    pub(crate) fn unit(&self, space: usize, unit: usize) -> Result<Rc<Parsed<'a>>, Error> {
        if let Some(known) = self.parsed.borrow().get(&(space, unit)) {
            return Ok(Rc::clone(known));
        }
        let parsed = Rc::new(self.parse(space, unit)?);
        let mut kept = self.parsed.borrow_mut();
        if kept.len() >= UNITS_KEPT {
            kept.clear();
        }
        kept.insert((space, unit), Rc::clone(&parsed));
        Ok(parsed)
    }

    /// The entry that a reference leads to; `None` where nothing is there.
    pub(crate) fn target(&self, from: At, reference: AttributeValue<Slice<'a>>) -> Option<At> {
        match reference {
            AttributeValue::UnitRef(offset) => {
                let header = &self.all[from.space].headers[from.unit];
                offset.is_in_bounds(header).then_some(At { offset, ..from })
            }
            AttributeValue::DebugInfoRef(offset) => self.in_info(from.space, offset),
            AttributeValue::DebugInfoRefSup(offset) => self.in_info(self.all[from.space].shared?, offset),
            AttributeValue::DebugTypesRef(signature) => self.signatures.get(&signature.0).copied(),
            _ => None,
        }
    }

    fn in_info(&self, space: usize, offset: DebugInfoOffset) -> Option<At> {
        let headers = &self.all[space].headers;
        let begins_before = |header: &UnitHeader<Slice<'a>>| header.debug_info_offset().is_some_and(|at| at <= offset);
        let unit = headers.partition_point(begins_before).checked_sub(1)?;
        let offset = offset.to_unit_offset(&headers[unit])?;
        Some(At { space, unit, offset })
    }

    /// The file of that number in the unit's table.
    pub(crate) fn source(&self, at: At, file: u64, line: u64) -> Result<Option<Source>, Error> {
        let Some((space, unit)) = self.table_of(at)? else { return Ok(None) };
        let dwarf = &self.all[space].dwarf;
        let parsed = self.unit(space, unit)?;
        let Some(program) = &parsed.unit.line_program else { return Ok(None) };
        let header = program.header();
        let text = |value| dwarf.attr_string(&parsed.unit, value).ok().map(|s| s.to_string_lossy().into_owned());
        let Some(entry) = header.file(file) else { return Ok(None) };
        let Some(name) = text(entry.path_name()) else { return Ok(None) };
        let mut path = PathBuf::new();
        if let Some(folder) = parsed.unit.comp_dir {
            path.push(folder.to_string_lossy().as_ref());
        }
        path.extend(entry.directory(header).and_then(text));
        path.push(name);
        Ok(Some(Source { file: path.to_string_lossy().into_owned(), line }))
    }

    /// The unit whose table names the files of this one: itself, or the one that stands for it.
    fn table_of(&self, at: At) -> Result<Option<(usize, usize)>, Error> {
        if self.unit(at.space, at.unit)?.unit.line_program.is_some() {
            return Ok(Some((at.space, at.unit)));
        }
        if let Some(skeleton) = self.all[at.space].skeleton {
            return Ok(Some((0, skeleton)));
        }
        // In a package the identifier tells which unit stands for it.
        let Some(id) = self.unit(at.space, at.unit)?.unit.dwo_id else { return Ok(None) };
        for unit in 0..self.all[0].headers.len() {
            if self.unit(0, unit)?.unit.dwo_id == Some(id) && at.space != 0 {
                return Ok(Some((0, unit)));
            }
        }
        Ok(None)
    }
}

fn language_of(value: AttributeValue<Slice<'_>>) -> Language {
    let AttributeValue::Language(language) = value else { return Language::Other };
    match language {
        dw::DW_LANG_C | dw::DW_LANG_C89 | dw::DW_LANG_C99 | dw::DW_LANG_C11 | dw::DW_LANG_C17 => Language::C,
        dw::DW_LANG_C_plus_plus
        | dw::DW_LANG_C_plus_plus_03
        | dw::DW_LANG_C_plus_plus_11
        | dw::DW_LANG_C_plus_plus_14
        | dw::DW_LANG_C_plus_plus_17
        | dw::DW_LANG_C_plus_plus_20 => Language::Cpp,
        dw::DW_LANG_Rust => Language::Rust,
        _ => Language::Other,
    }
}
