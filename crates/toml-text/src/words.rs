//! Words for messages: text made safe to print, lists, and the nearest known name.

use plan::is_plain;
pub use plan::{escaped as printable, nearest};
use std::path::Path;

/// The most characters of a user's text that a sentence quotes; the snippet shows the rest.
const QUOTED_MAX: usize = 60;

/// Whether `text` holds a character that a terminal might obey.
pub fn has_unsafe(text: &str) -> bool {
    !text.chars().all(is_plain)
}

/// `text` fit to stand in a sentence: printable and not too long.
pub fn shown(text: &str) -> String {
    let short: String = text.chars().take(QUOTED_MAX).collect();
    let rest = if short.len() < text.len() { "…" } else { "" };
    format!("{}{rest}", printable(&short))
}

/// `text` with each character that the renderer would print raw replaced by one of the same length in bytes, so that
/// places still fit. The renderer itself shows ASCII controls as pictures.
pub fn same_length(text: &str) -> String {
    let replace = |c: char| match c {
        _ if c.is_ascii() || is_plain(c) => c,
        _ => match c.len_utf8() {
            2 => '¿',
            3 => '\u{fffd}',
            _ => '\u{1fbc4}',
        },
    };
    text.chars().map(replace).collect()
}

/// "`a`, `b` or `c`".
pub fn one_of<S: AsRef<str>>(names: &[S]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{}`", shown(name.as_ref()))).collect();
    match quoted.as_slice() {
        [] => "none".to_owned(),
        [only] => only.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

/// "`a`, `b`, `c`"; past twelve, the rest is counted.
pub fn listed<S: AsRef<str>>(names: &[S]) -> String {
    const LISTED_MAX: usize = 12;
    let mut text: Vec<String> =
        names.iter().take(LISTED_MAX).map(|name| format!("`{}`", shown(name.as_ref()))).collect();
    if let Some(more @ 1..) = names.len().checked_sub(LISTED_MAX) {
        text.push(format!("and {more} more"));
    }
    if text.is_empty() { "none".to_owned() } else { text.join(", ") }
}

/// "1 worker", "3 workers".
pub fn counted(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// The stem of a path, fit to name a folder: letters, digits, `_`, `-` and inner dots.
pub fn file_stem(path: &str) -> String {
    let stem = Path::new(path).file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    let fit = |c: char| {
        if c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.') { c } else { '_' }
    };
    let name: String = stem.trim_start_matches('.').chars().map(fit).take(100).collect();
    if name.is_empty() { "unnamed".to_owned() } else { name }
}

/// `text` with every run of white space made one space, and none at the ends.
pub fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
