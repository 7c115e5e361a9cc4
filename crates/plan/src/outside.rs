//! Texts that come from a scenario, a host, a program or a saved run: shown, never obeyed.

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
/// cursor, change colours, reorder the line or hide a part of it.
pub fn is_plain(c: char) -> bool {
    !c.is_control() && !hides(c)
}

/// Characters that print nothing themselves and change how their neighbours appear: Unicode's bidirectional controls,
/// zero-width marks, line and paragraph separators, annotations, and the tags that no font shows.
///
/// # References
/// Unicode Standard Annex 9, "Directional Formatting Characters"; Unicode Technical Report 36, section 2.
fn hides(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}')
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::{escaped, is_plain};

    #[test]
    fn escapes_are_shown_not_obeyed() {
        assert_eq!(escaped("a\u{1b}[31mred\u{7}\u{202e}"), "a\\u{1b}[31mred\\u{7}\\u{202e}");
    }

    #[test]
    fn every_directional_control_is_written_out_and_what_has_a_shape_is_not() {
        let directional = ['\u{61c}', '\u{200e}', '\u{200f}', '\u{202a}', '\u{202e}', '\u{2066}', '\u{2069}'];
        let others = ['\u{9b}', '\u{7f}', '\u{ad}', '\u{206f}', '\u{fffb}', '\u{e0041}'];
        assert!(directional.iter().chain(&others).all(|c| !is_plain(*c)));
        assert!("aµ→🧪共有 \u{a0}é\u{301}".chars().all(is_plain));
    }
}
