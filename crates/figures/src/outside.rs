//! Texts that come from a scenario, a host or a saved run: shown, never obeyed.

/// `text` with every character that is not [plain](is_plain) written out as Rust's literals do: a title with an escape
/// sequence in it is shown, not obeyed.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        if is_plain(c) {
            safe.push(c);
        } else {
            safe.extend(c.escape_default());
        }
    }
    safe
}

/// Whether a character shows as itself and leaves its neighbours alone: false of those that could move a terminal's
/// cursor, change colours or reorder the line.
pub fn is_plain(c: char) -> bool {
    !c.is_control() && !reorders(c)
}

/// Characters that print nothing themselves and change how their neighbours appear: Unicode's bidirectional controls,
/// zero-width marks, line and paragraph separators.
fn reorders(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn escapes_are_shown_not_obeyed() {
        assert_eq!(escaped("a\u{1b}[31mred\u{7}\u{202e}"), "a\\u{1b}[31mred\\u{7}\\u{202e}");
    }
}
