//! Names; single values of other types are read as in any text of the lab's.

pub(crate) use toml_text::read::{boolean, integer, known_keys, string, word, wrong_type};

use crate::context::{Context, Place};
use crate::document::{Node, Table, quoted};
use crate::refusal::Problem;
use crate::schema;

/// What a name names, which decides its letters.
#[derive(Copy, Clone)]
pub(crate) enum Named {
    /// Fields, locks and placeholders: part of a step, so no hyphen.
    InSteps,
    /// Roles and variants.
    InText,
}

/// Refuses a name that is too long or has letters that steps, claims or file names could not hold.
pub(crate) fn name(context: &mut Context, place: &Place, name: &str, what: &str, named: Named) -> bool {
    let hyphen = matches!(named, Named::InText);
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || (hyphen && c == '-');
    let starts = name.starts_with(|c: char| c.is_ascii_lowercase());
    if starts && name.chars().all(fits) && name.len() <= schema::NAME_BYTES_MAX {
        return true;
    }
    let letters = if hyphen { "a-z, 0-9, `_` and `-`" } else { "a-z, 0-9 and `_`" };
    let problem = Problem::at(place, format!("{} cannot name a {what}", quoted(name)));
    let problem = match name {
        "" => problem.label("empty"),
        _ if name.len() > schema::NAME_BYTES_MAX => {
            problem.label(format!("longer than {} bytes", schema::NAME_BYTES_MAX))
        }
        _ if !starts => problem.label("does not begin with a letter a-z"),
        _ => problem.label("has a character that names cannot have"),
    };
    context.refuse(problem.cure(format!("begin with a letter a-z and use only {letters}")));
    false
}

/// The name that a table of a list has, where it has one.
pub(crate) fn name_of(table: &Table) -> Option<&str> {
    table.get("name").and_then(Node::string)
}

/// The name at the start of `text`: what can stand behind a `$`.
pub(crate) fn placeholder_name(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')).unwrap_or(text.len());
    &text[..end]
}
