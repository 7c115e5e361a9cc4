//! A struct's layout as a compiler made it: the JSON contract of `coordinator import --json`.

use serde::{Deserialize, Serialize};

/// The layout of one struct.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Import {
    /// [`crate::SCHEMA_VERSION`]; always the first key.
    pub schema_version: u32,
    /// The struct's name, with the namespaces or modules around it.
    #[serde(rename = "struct")]
    pub name: String,
    /// `struct`, `class`, `union`, or `enum` of an enum of Rust with data.
    pub keyword: String,
    /// `C`, `C++`, `Rust`, or `other`.
    pub language: String,
    /// The file that it was read from.
    pub from: String,
    /// `dwarf` or `btf`.
    pub format: String,
    /// Where it is declared; `None` where the debug information does not say.
    pub declared: Option<Declared>,
    /// Size, bytes.
    pub bytes: u64,
    /// Lines that it takes, where it begins at one.
    pub lines: u64,
    /// Bytes of a line.
    pub line_bytes: u64,
    /// Alignment, bytes.
    pub align: u64,
    /// Whether the debug information names the alignment; else it is what the members ask for.
    pub align_declared: bool,
    /// Whether members lie where their types' alignment would not have them.
    pub packed: bool,
    /// The members, in the order of the declaration.
    pub fields: Vec<ImportedField>,
    /// Whole bytes that no member uses, those inside nested structs included, ascending.
    pub holes: Vec<ImportedHole>,
    /// Whole bytes behind the last member.
    pub tail_padding: u64,
    /// Virtual base classes, whose offsets only an object tells.
    pub virtual_bases: Vec<ImportedBase>,
}

/// A place in a source file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declared {
    /// The file, as the compiler named it.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
}

/// One member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedField {
    /// Its name; empty for an anonymous struct or union.
    pub name: String,
    /// Its type, as its language writes it.
    #[serde(rename = "type")]
    pub type_name: String,
    /// `scalar`, `pointer`, `array`, `struct`, `class`, `union`, `enum`, `base`, `discriminant` or `variant`.
    pub kind: String,
    /// Offset from the start of the outermost struct, bytes; of a bit-field that of the word that holds it.
    pub offset: u64,
    /// Size, bytes; of a bit-field that of the word that holds it.
    pub bytes: u64,
    /// Alignment that its type or declaration asks for, bytes.
    pub align: u64,
    /// The line of its first byte.
    pub line: u64,
    /// The line of its last byte.
    pub last_line: u64,
    /// Whether it lies on more lines than its size needs.
    pub straddles: bool,
    /// First bit in the word, of a bit-field.
    pub bit_offset: Option<u64>,
    /// Bits, of a bit-field.
    pub bit_count: Option<u64>,
    /// What an array is made of.
    pub elements: Option<Elements>,
    /// Its own members, offsets counted from the start of the outermost struct.
    pub fields: Vec<ImportedField>,
}

/// What an array is made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Elements {
    /// Type of an element.
    #[serde(rename = "type")]
    pub type_name: String,
    /// Size of an element, bytes.
    pub bytes: u64,
    /// Elements, over all dimensions; 0 of a flexible array.
    pub count: u64,
}

/// Bytes that no member uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedHole {
    /// Offset from the start of the outermost struct, bytes.
    pub offset: u64,
    /// How many.
    pub bytes: u64,
    /// The line of the first.
    pub line: u64,
    /// The member whose own members it lies between; `None` between members of the outermost struct.
    pub within: Option<String>,
}

/// A virtual base class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedBase {
    /// Its name.
    pub name: String,
    /// Its size by itself, bytes.
    pub bytes: u64,
}
