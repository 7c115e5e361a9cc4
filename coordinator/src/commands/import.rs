//! `import`: a struct's layout out of a program's debug information, shown, and made the skeleton of a scenario.

use crate::cli::ImportOptions;
use crate::exit::{CommandError, Ending};
use crate::report::data;
use crate::report::layout as page;
use crate::report::new_file;
use crate::report::style::{ColourChoice, Style};
use crate::report::window;
use plan::CACHE_LINE_BYTES;
use record::{Declared, Elements, Import, ImportedBase, ImportedField, ImportedHole, SCHEMA_VERSION};
use std::io::Write;
use std::path::{Path, PathBuf};
use structs::{Choice, Error, Keyword, Kind, Member, Struct, Wanted, choose, line_of};

pub(crate) fn import(options: &ImportOptions, colour: ColourChoice) -> Result<Ending, CommandError> {
    let (from, format) = source(options)?;
    let wanted = Wanted::new(&options.name);
    let found = match format {
        "btf" => structs::in_btf(&from, &wanted),
        _ => structs::in_binary(&from, &wanted),
    };
    let choice = Choice { at: options.at.clone(), nth: options.nth };
    let of = found.and_then(|found| choose(found, &wanted, &choice)).map_err(refused)?;
    if let Some(file) = &options.emit_scenario {
        let text = structs::skeleton::scenario(&of, &from.display().to_string()).map_err(refused)?;
        new_file::write("--emit-scenario", file, &text)?;
    }
    let mut out = std::io::stdout().lock();
    if options.json {
        data::json(&record(&of, &from, format))?;
    } else {
        let style = Style::for_stdout(colour, window::columns(std::io::stdout()));
        out.write_all(page::render(&of, options.expand, options.emit_scenario.as_deref(), &style).as_bytes())?;
    }
    out.flush()?;
    Ok(Ending::Done)
}

/// The file to read, and how.
fn source(options: &ImportOptions) -> Result<(PathBuf, &'static str), CommandError> {
    match (&options.binary, &options.btf) {
        (_, Some(btf)) => Ok((btf.clone(), "btf")),
        (Some(binary), None) => Ok((binary.clone(), "dwarf")),
        (None, None) => Err(CommandError::Usage("name a BINARY, or --btf".to_owned())),
    }
}

/// What is in a file that was named is input: 2.
fn refused(error: Error) -> CommandError {
    CommandError::Usage(error.to_string())
}

fn record(of: &Struct, from: &Path, format: &str) -> Import {
    let hole = |hole: structs::Hole| ImportedHole {
        offset: hole.offset,
        bytes: hole.bytes,
        line: line_of(hole.offset),
        within: hole.within,
    };
    let base = |base: &structs::VirtualBase| ImportedBase { name: base.type_name.clone(), bytes: base.bytes };
    Import {
        schema_version: SCHEMA_VERSION,
        name: of.name.clone(),
        keyword: of.keyword.word().to_owned(),
        language: of.language.name().to_owned(),
        from: from.display().to_string(),
        format: format.to_owned(),
        declared: of.source.as_ref().map(|source| Declared { file: source.file.clone(), line: source.line }),
        bytes: of.bytes,
        lines: of.lines(),
        line_bytes: CACHE_LINE_BYTES,
        align: of.align,
        align_declared: of.align_declared,
        packed: of.packed,
        fields: of.members.iter().map(field).collect(),
        holes: of.holes().into_iter().map(hole).collect(),
        tail_padding: of.tail_padding(),
        virtual_bases: of.virtual_bases.iter().map(base).collect(),
    }
}

fn field(member: &Member) -> ImportedField {
    let elements = match &member.kind {
        Kind::Array { element, element_bytes, count } => {
            Some(Elements { type_name: element.clone(), bytes: *element_bytes, count: *count })
        }
        _ => None,
    };
    ImportedField {
        name: member.name.clone(),
        type_name: member.type_name.clone(),
        kind: kind(&member.kind).to_owned(),
        offset: member.offset,
        bytes: member.bytes,
        align: member.align,
        line: member.first_line(),
        last_line: member.last_line(),
        straddles: member.straddles(),
        bit_offset: member.bits.map(|bits| bits.offset),
        bit_count: member.bits.map(|bits| bits.count),
        elements,
        fields: member.members.iter().map(field).collect(),
    }
}

fn kind(kind: &Kind) -> &'static str {
    match kind {
        Kind::Scalar => "scalar",
        Kind::Pointer => "pointer",
        Kind::Array { .. } => "array",
        Kind::Nested(Keyword::Struct) => "struct",
        Kind::Nested(Keyword::Class) => "class",
        Kind::Nested(Keyword::Union) => "union",
        Kind::Nested(Keyword::Enum) => "enum",
        Kind::Base => "base",
        Kind::Discriminant => "discriminant",
        Kind::Variant => "variant",
    }
}
