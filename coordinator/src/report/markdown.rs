//! The project's own texts on a terminal: as much of Markdown as they use, which is headings, paragraphs, lists,
//! quotes, tables, blocks of code, emphasis and links.

use crate::report::page::Page;
use crate::report::style::Style;
use crate::report::table::{Cell, Column, Grid, Notes, Row};

/// `text` in lines of at most the style's width; code alone may be wider, where it has to be.
pub(crate) fn render(text: &str, style: &Style) -> String {
    let mut page = Page::new(style);
    let mut lines = text.lines().peekable();
    let mut apart = false;
    while let Some(line) = lines.next() {
        let line = line.trim_end();
        if line.is_empty() {
            apart = true;
            continue;
        }
        if let Some(heading) = heading(line) {
            page.heading(&plain(heading));
            apart = false;
            continue;
        }
        if apart {
            page.blank();
            apart = false;
        }
        if let Some(language) = line.trim_start().strip_prefix("```") {
            let code: Vec<&str> = lines.by_ref().take_while(|line| !line.trim_start().starts_with("```")).collect();
            block(&mut page, language, &code);
        } else if line.starts_with('|') {
            let mut rows = vec![line];
            while let Some(row) = lines.next_if(|line| line.starts_with('|')) {
                rows.push(row);
            }
            table(&mut page, &rows);
        } else {
            let (indent, mark, first) = item(line);
            let mut text = first.to_owned();
            while let Some(more) = lines.next_if(|line| continues(line, mark)) {
                text.push(' ');
                text.push_str(more.trim_start().trim_start_matches("> ").trim_end());
            }
            page.item(indent, mark, &plain(&text));
        }
    }
    page.finish()
}

fn heading(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    (text.len() < line.len()).then_some(text).and_then(|text| text.strip_prefix(' '))
}

/// Indentation, mark and text of a paragraph's or list item's first line.
fn item(line: &str) -> (usize, &str, &str) {
    let text = line.trim_start();
    let indent = line.len() - text.len();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let mark = match () {
        () if text.starts_with("- ") => 2,
        () if text.starts_with("> ") => return (indent + 2, "", &text[2..]),
        () if digits > 0 && text[digits..].starts_with(". ") => digits + 2,
        () => 0,
    };
    (indent, &text[..mark], &text[mark..])
}

/// Whether a line goes on with the paragraph or item behind `mark`. A number at its begin makes an item only behind a
/// numbered one, or if it is 1: prose may break before "64." (CommonMark 0.31, 5.3).
fn continues(line: &str, mark: &str) -> bool {
    let text = line.trim();
    let begins = text.starts_with("```") || text.starts_with('|') || heading(text).is_some();
    let is_item = match item(line).1 {
        "" => false,
        "- " | "1. " => true,
        _ => mark.ends_with(". "),
    };
    !text.is_empty() && !begins && !is_item
}

/// Code: commands so that a shell takes them however narrow the terminal, anything else line by line.
fn block(page: &mut Page, language: &str, code: &[&str]) {
    if language.split_whitespace().next() != Some("sh") {
        return code.iter().for_each(|line| page.code(line));
    }
    let mut command = String::new();
    for line in code {
        command.push_str(line.trim());
        match command.strip_suffix('\\') {
            // It goes on, and is broken anew to fit.
            Some(begun) => command.truncate(begun.len()),
            None => page.shell(&std::mem::take(&mut command)),
        }
    }
}

fn table(page: &mut Page, rows: &[&str]) {
    let cells = |row: &&str| -> Vec<String> {
        row.trim().trim_matches('|').split('|').map(|cell| plain(cell.trim())).collect()
    };
    let is_rule = |row: &&&str| row.chars().all(|c| "|-: ".contains(c));
    let mut rows = rows.iter().filter(|row| !is_rule(row)).map(cells);
    let Some(heads) = rows.next() else { return };
    let columns = heads.iter().map(|head| Column::words_of(head.clone())).collect();
    let rows = rows.map(|cells| Row::new(cells.iter().map(Cell::text).collect())).collect();
    page.grid(&Grid { columns, rows }, &Notes::default());
}

/// A text without its marks: emphasis is dropped, code keeps its quotes, a link shows where it leads if that is an
/// address, and a path if it is one of the project's.
fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if let Some(behind) = rest.strip_prefix('`')
            && let Some(end) = behind.find('`')
        {
            shown.push_str(&rest[..end + 2]);
            rest = &rest[end + 2..];
        } else if let Some((words, target, behind)) = link(rest) {
            shown.push_str(&plain(words));
            if !target.starts_with('#') && !words.contains(target) {
                shown.push_str(&format!(" ({target})"));
            }
            rest = behind;
        } else if let Some(behind) = rest.strip_prefix("**") {
            rest = behind;
        } else if c == '*' && is_emphasis(&shown, &rest[1..]) {
            rest = &rest[1..];
        } else {
            shown.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    shown
}

/// Whether a star between these two opens or closes emphasis: one that stands alone is a product's.
fn is_emphasis(before: &str, behind: &str) -> bool {
    let opens = behind.starts_with(|c: char| !c.is_whitespace());
    let closes = before.ends_with(|c: char| !c.is_whitespace());
    opens != closes || (closes && behind.starts_with(|c: char| c.is_ascii_punctuation()))
}

/// `[words](target)rest`.
fn link(text: &str) -> Option<(&str, &str, &str)> {
    let (words, behind) = text.strip_prefix('[')?.split_once("](")?;
    let (target, rest) = behind.split_once(')')?;
    (!words.contains('[')).then_some((words, target, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, width: usize) -> String {
        render(text, &Style::plain(width))
    }

    #[test]
    fn a_text_reads_as_text() {
        let text = "# Title\n\nOne *word* and **two**, `a * b`\nand [a link](../x.md), [there](#here).\n\n- first\n  goes \
                    on\n- second\n\n1. one\n2. two\n\n> said\n> so\n";
        let expected = "Title\n\nOne word and two, `a * b` and a link (../x.md), there.\n\n- first goes on\n- second\n\n\
                        1. one\n2. two\n\n  said so\n";
        assert_eq!(shown(text, 80), expected);
    }

    #[test]
    fn what_is_code_stays_as_it_is_and_commands_can_be_copied_however_narrow() {
        let text = "```toml\na   = 1 # *x*\n```\n\n```sh run\ncoordinator run a.toml --seed 7\n```\n";
        assert_eq!(shown(text, 80), "  a   = 1 # *x*\n\n  coordinator run a.toml --seed 7\n");
        assert_eq!(shown("```sh\ncoordinator run \\\n    a.toml\n```\n", 80), "  coordinator run a.toml\n");
        let narrow = shown(text, 24);
        assert!(narrow.ends_with("  coordinator run \\\n  a.toml --seed 7\n"), "{narrow}");
    }

    #[test]
    fn a_table_is_one_and_a_product_keeps_its_star() {
        let text = "| a | what |\n|---|--:|\n| `x` | 2 * 3 |\n";
        let lines: Vec<String> = shown(text, 80).lines().map(str::to_owned).collect();
        assert_eq!((lines[0].as_str(), lines[2].as_str()), ("a    what", "`x`  2 * 3"));
        assert_eq!(plain("2 * 3 and *this*."), "2 * 3 and this.");
        assert_eq!(shown("lines of\n64. Bytes\n\n1. one\n2. two\n", 80), "lines of 64. Bytes\n\n1. one\n2. two\n");
        assert_eq!(plain("see [x.md](x.md)"), "see x.md", "an address that is its own words is not repeated");
    }

    #[test]
    fn no_line_of_prose_is_wider_than_the_terminal() {
        let text = "# A heading of some length\n\n- an item whose text goes on for longer than any line here does\n";
        assert!(shown(text, 24).lines().all(|line| crate::report::text::columns(line) <= 24));
    }
}
