//! What must hold of what the lab writes, whatever it was given.

use plan::{escaped, is_plain};

/// Asserts that a terminal has nothing in a text to obey, but for line ends.
///
/// # Panics
/// With the text, if it has.
pub fn terminal(text: &str) {
    let found = text.chars().find(|c| *c != '\n' && !is_plain(*c));
    assert!(found.is_none(), "{found:?} would reach a terminal in: {}", escaped(text));
}

/// Elements that the page has none of: what runs, loads, embeds or asks.
const NEVER: [&str; 16] = [
    "script",
    "img",
    "image",
    "iframe",
    "frame",
    "object",
    "embed",
    "form",
    "input",
    "button",
    "base",
    "audio",
    "video",
    "foreignobject",
    "animate",
    "set",
];

/// Asserts that a page of HTML holds no markup but its own: no element that runs or loads, no handler, no address but
/// places on the page, and no character that reorders or hides.
///
/// # Panics
/// With the element, if it does.
pub fn page(html: &str) {
    terminal(html);
    let mut rest = html;
    while let Some(begin) = rest.find('<') {
        rest = &rest[begin + 1..];
        let end = tag_end(rest);
        element(&rest[..end]);
        // A style sheet's `>` is no markup, and it has no `<` but that of its own end.
        rest = &rest[end..];
    }
    assert_eq!(html.matches("<style>").count(), 1, "the page's own style sheet");
    assert_eq!(html.matches("Content-Security-Policy").count(), 1, "the page's own policy");
}

/// Where a tag ends: at the first `>` outside of quotes.
fn tag_end(tag: &str) -> usize {
    let mut within = None;
    for (at, c) in tag.char_indices() {
        match (within, c) {
            (None, '"' | '\'') => within = Some(c),
            (None, '>') => return at,
            (Some(mark), c) if c == mark => within = None,
            _ => {}
        }
    }
    panic!("a tag without an end: <{}", tag.chars().take(80).collect::<String>());
}

fn element(tag: &str) {
    let (own, is_end) = tag.strip_prefix('/').map_or((tag, false), |own| (own, true));
    let name: &str = own.split(|c: char| c.is_whitespace() || c == '/').next().unwrap_or_default();
    assert!(!name.is_empty(), "a `<` that is no tag: <{tag}>");
    assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '!'), "an odd element: <{tag}>");
    assert!(!NEVER.contains(&name.to_lowercase().as_str()), "an element that the page has none of: <{tag}>");
    if is_end || name.starts_with('!') {
        return;
    }
    let mut rest = tag[name.len()..].trim().trim_end_matches('/').trim_end();
    while !rest.is_empty() {
        rest = attribute(rest, tag).trim_start();
    }
}

/// Looks at the first attribute; gives what stands behind it.
fn attribute<'t>(text: &'t str, tag: &str) -> &'t str {
    let end = text.find(|c: char| c == '=' || c.is_whitespace()).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let sane = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == ':');
    assert!(sane && !name.to_lowercase().starts_with("on") && name != "src", "an odd attribute `{name}`: <{tag}>");
    let Some(rest) = rest.strip_prefix('=') else { return rest };
    let mark = rest.chars().next().filter(|mark| matches!(mark, '"' | '\''));
    let mark = mark.unwrap_or_else(|| panic!("`{name}` without quotes: <{tag}>"));
    let (value, behind) = rest[1..].split_once(mark).unwrap_or_else(|| panic!("`{name}` without an end: <{tag}>"));
    if name == "href" || name == "xlink:href" {
        assert!(value.starts_with('#') || value == "data:,", "an address: <{tag}>");
    }
    behind
}

#[cfg(test)]
mod tests {
    use super::{page, terminal};
    use std::panic::catch_unwind;

    const HEAD: &str = "<!DOCTYPE html><html lang=\"en\"><meta http-equiv=\"Content-Security-Policy\" content=\"x\"><style>a > b {}</style>";

    #[test]
    fn what_a_terminal_obeys_is_seen() {
        terminal("a line\nand µ → 共有\n");
        for text in ["\u{1b}[2J", "\u{9b}m", "a\rb", "\u{202e}", "\u{7}"] {
            assert!(catch_unwind(|| terminal(text)).is_err(), "{text:?}");
        }
    }

    #[test]
    fn markup_of_a_stranger_is_seen() {
        page(&format!("{HEAD}<p class=\"a>b\">&lt;script&gt;</p><a href=\"#x\">y</a><br/>"));
        for markup in [
            "<script>",
            "</style><ScRipt>",
            "<p onclick=\"x\">",
            "<p class=\"a\" x\" onload=\"y\">",
            "<a href=\"javascript:x\">",
            "<a href=x>",
            "<p ",
            "< p>",
            "<style>",
        ] {
            assert!(catch_unwind(|| page(&format!("{HEAD}{markup}"))).is_err(), "{markup}");
        }
    }
}
