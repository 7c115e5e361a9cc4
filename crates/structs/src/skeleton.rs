//! The skeleton of a scenario: each member as a field at its offset, for the reader to say who writes and reads it.

mod fields;

use crate::error::Error;
use crate::layout::{Struct, line_of};
use fields::{Entry, Field, fields};
use plan::{CACHE_LINE_BYTES, is_plain};
use std::fmt::Write;

/// A scenario with each member of `of` as a field under placement `declared`, `origin` being where it was read from. It
/// is sound as it stands: one example role reads the first field.
///
/// # Errors
/// [`Error::NothingToPlace`] of a struct without bytes.
pub fn scenario(of: &Struct, origin: &str) -> Result<String, Error> {
    let entries = fields(of);
    let nothing = || Error::NothingToPlace { name: of.name.clone() };
    let first = entries.iter().find_map(Entry::field).ok_or_else(nothing)?;
    let mut text = String::new();
    head(&mut text, of, origin);
    body(&mut text, of, &entries);
    tail(&mut text, of, first);
    Ok(text)
}

/// Writing to a string cannot fail.
macro_rules! line {
    ($text:expr) => { $text.push('\n') };
    ($text:expr, $($rest:tt)*) => {{ let _ = writeln!($text, $($rest)*); }};
}

fn head(text: &mut String, of: &Struct, origin: &str) {
    let (word, name) = (of.keyword.word(), one_line(&of.name));
    line!(text, "# The layout of {word} {name}, as the compiler made it.");
    line!(text, "#");
    line!(text, "# From {}.", one_line(origin));
    if let Some(source) = &of.source {
        line!(text, "# Declared at {}.", one_line(&source.to_string()));
    }
    let declared = if of.align_declared { "" } else { ", as its members ask for" };
    let (lines, s) = (of.lines(), if of.lines() == 1 { "" } else { "s" });
    line!(text, "# {} bytes on {lines} line{s} of {CACHE_LINE_BYTES}, aligned to {}{declared}.", of.bytes, of.align);
    if !of.align.is_multiple_of(CACHE_LINE_BYTES) {
        line!(
            text,
            "# Lines are counted from an address that is a multiple of {CACHE_LINE_BYTES}. This struct need not"
        );
        line!(text, "# begin at one: see what another begin does with a [sweep] over shift = [0, {}, …].", of.align);
    }
    line!(text);
    line!(text, "title    = {}", quoted(&format!("Layout of {name}")));
    line!(text, "question = {}", quoted(&format!("What does the layout of {name} cost those who use it?")));
    line!(text);
}

fn body(text: &mut String, of: &Struct, entries: &[Entry]) {
    let mut holes = of.holes().into_iter().peekable();
    let mut line = None;
    for entry in entries {
        let at = entry.offset();
        while let Some(hole) = holes.next_if(|hole| hole.offset < at) {
            line!(text, "# A hole: {} bytes from {} on.\n", hole.bytes, hole.offset);
        }
        if line != Some(line_of(at)) && entry.field().is_some() {
            line = Some(line_of(at));
            line!(text, "# ---- line {} ----\n", line_of(at));
        }
        match entry {
            Entry::Field(field) => one(text, field),
            Entry::Note { text: note, .. } => line!(text, "# {}\n", one_line(note)),
        }
    }
    for hole in holes {
        line!(text, "# A hole: {} bytes from {} on.\n", hole.bytes, hole.offset);
    }
    if of.tail_padding() > 0 {
        line!(text, "# Padding at the end: {} bytes.\n", of.tail_padding());
    }
    for base in &of.virtual_bases {
        let (name, bytes) = (one_line(&base.type_name), base.bytes);
        line!(text, "# The virtual base {name} ({bytes} bytes) lies where an object's virtual table says: not here.\n");
    }
}

fn one(text: &mut String, field: &Field) {
    for note in &field.notes {
        line!(text, "# {}", one_line(note));
    }
    line!(text, "[field.{}]", field.name);
    line!(text, "type  = \"{}\"", field.word);
    if field.count > 1 {
        line!(text, "count = {}", field.count);
    }
    line!(text, "at    = {}\n", field.offset);
}

fn tail(text: &mut String, of: &Struct, first: &Field) {
    let element = if first.count > 1 { "[0]" } else { "" };
    line!(
        text,
        "# As it is. Other variants can place the same fields otherwise: \"by-writer\", \"hot-cold\", {{ pad = 64 }}."
    );
    line!(text, "[[variant]]");
    line!(text, "name      = \"declared\"");
    line!(text, "placement = \"declared\"\n");
    line!(
        text,
        "# An example, to be replaced: who uses which field of {}, and how often? A role is what one kind of",
        one_line(&of.name)
    );
    line!(
        text,
        "# process or thread does in its loop; give each its own, with its steps: \"load F\", \"store F\", \"bump F\""
    );
    line!(
        text,
        "# (a plain count), \"add F\" (an atomic one), \"every 64 load F\", \"work 100ns\". `[me]` and `[3]` name"
    );
    line!(text, "# elements of an array.");
    line!(text, "[[role]]");
    line!(text, "name    = \"example\"");
    line!(text, "workers = 1");
    line!(text, "loop    = [\"load {}{element}\"]", first.name);
}

/// Names come out of a file that somebody else made: a line end in one must not begin a line of the scenario, nor may a
/// terminal or an editor obey one.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if is_plain(c) { c } else { '\u{fffd}' }).collect()
}

/// A TOML string.
fn quoted(text: &str) -> String {
    format!("\"{}\"", one_line(text).replace('\\', "\\\\").replace('"', "\\\""))
}
