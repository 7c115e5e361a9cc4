//! A page of text under construction: headings, prose, tables, all within one width.

use crate::report::style::{Style, Tone};
use crate::report::table::{Grid, LineKind, Notes};
use crate::report::text::{columns, command_lines, escaped, wrapped};
/// One cell of a map.
#[derive(Copy, Clone)]
pub(super) struct Shade {
    /// What tells it apart without colour.
    pub(super) sign: char,
    pub(super) tone: Option<Tone>,
}

/// Lines so far. Everything that is added is escaped and wrapped here, so no section can forget to.
pub(super) struct Page<'a> {
    style: &'a Style,
    lines: Vec<String>,
}

impl<'a> Page<'a> {
    /// An empty page.
    pub(super) fn new(style: &'a Style) -> Page<'a> {
        Page { style, lines: Vec::new() }
    }

    /// The page, each line ended.
    pub(super) fn finish(self) -> String {
        let mut text = self.lines.join("\n");
        text.push('\n');
        text
    }

    /// A blank line, then a heading. The first line of a page has none above it.
    pub(super) fn heading(&mut self, text: &str) {
        if !self.lines.is_empty() {
            self.blank();
        }
        self.toned(Tone::Strong, text);
    }

    /// An empty line.
    pub(super) fn blank(&mut self) {
        self.lines.push(String::new());
    }

    /// A paragraph.
    pub(super) fn prose(&mut self, text: &str) {
        self.lines.extend(wrapped(text, self.style.width(), "", ""));
    }

    /// A paragraph that can be skipped: how to read the table above it.
    pub(super) fn legend(&mut self, text: &str) {
        self.toned(Tone::Faint, text);
    }

    fn toned(&mut self, tone: Tone, text: &str) {
        let style = self.style;
        self.lines.extend(wrapped(text, style.width(), "", "").iter().map(|line| style.paint(tone, line)));
    }

    /// A paragraph behind `mark`, indented by `indent`; its other lines stand two further in where there is a mark.
    pub(super) fn item(&mut self, indent: usize, mark: &str, text: &str) {
        let first = " ".repeat(indent);
        let rest = " ".repeat(indent + if mark.is_empty() { 0 } else { 2 });
        self.lines.extend(wrapped(&format!("{mark}{text}"), self.style.width(), &first, &rest));
    }

    /// A paragraph that begins with a verdict in its colour: `verdict: text`.
    pub(super) fn verdict(&mut self, tone: Tone, verdict: &str, text: &str) {
        let mut lines = wrapped(&format!("{verdict}: {text}"), self.style.width(), "", "  ");
        let first = lines.remove(0);
        self.lines.push(match first.strip_prefix(verdict) {
            Some(rest) => format!("{}{rest}", self.style.paint(tone, verdict)),
            None => first,
        });
        self.lines.extend(lines);
    }

    /// A line of columns: `word` in its colour, `name`, then `text`, whose other lines stand at `indent`.
    pub(super) fn columns(&mut self, tone: Tone, word: &str, name: &str, text: &str, indent: usize) {
        let mut lines = wrapped(text, self.style.width(), &format!("{word}{name}"), &" ".repeat(indent)).into_iter();
        let first = lines.next().unwrap_or_default();
        let bare = word.trim_end();
        self.lines.push(match first.strip_prefix(bare) {
            Some(rest) => format!("{}{rest}", self.style.paint(tone, bare)),
            None => first,
        });
        self.lines.extend(lines);
    }

    /// A table and the reasons for what it lacks.
    pub(super) fn grid(&mut self, grid: &Grid, notes: &Notes) {
        self.table(grid);
        self.notes(notes);
    }

    fn table(&mut self, grid: &Grid) {
        for (kind, line) in grid.lines(self.style.width()) {
            self.lines.push(match kind {
                LineKind::Head | LineKind::Name => self.style.paint(Tone::Strong, &line),
                LineKind::Rule => self.style.paint(Tone::Faint, &line),
                LineKind::Body => line,
            });
        }
    }

    fn notes(&mut self, notes: &Notes) {
        for (number, reason) in notes.reasons() {
            self.item(0, &format!("[{number}] "), reason);
        }
    }

    /// A table of many columns, taken apart where it is too wide, then the reasons for what it lacks.
    pub(super) fn grid_in_bands(&mut self, grid: Grid, kept: usize, notes: &Notes) {
        for band in grid.in_bands(kept, self.style.width()) {
            self.table(&band);
        }
        self.notes(notes);
    }

    /// A row of a heat map behind its `label`: each shade `wide` columns, in its colour. No wider than the caller counted.
    pub(super) fn shades(&mut self, label: &str, shades: &[Shade], wide: usize) {
        let mut line = label.to_owned();
        for Shade { sign, tone } in shades {
            let cell = sign.to_string().repeat(wide);
            line.push_str(&tone.map_or(cell.clone(), |tone| self.style.paint(tone, &cell)));
        }
        line.truncate(line.trim_end().len());
        self.lines.push(line);
    }

    /// A line of code as it is, two columns in.
    pub(super) fn code(&mut self, line: &str) {
        self.lines.push(format!("  {}", escaped(line)).trim_end().to_owned());
    }

    /// A command two columns in, which can be copied however narrow the page.
    pub(super) fn shell(&mut self, command: &str) {
        let lines = command_lines(command, self.style.width().saturating_sub(2));
        self.lines.extend(lines.iter().map(|line| format!("  {line}")));
    }

    /// A command that can be copied, however narrow the page, with a remark as the shell's comment: behind it where
    /// there is room, else above it, since no shell joins a comment that was broken.
    pub(super) fn command(&mut self, command: &str, remark: &str) {
        let width = self.style.width();
        let line = format!("{} # {}", escaped(command), escaped(remark));
        if columns(&line) <= width {
            self.lines.push(line);
        } else {
            self.lines.extend(wrapped(remark, width, "# ", "# "));
            self.lines.extend(command_lines(command, width));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::style::ColourChoice;

    #[test]
    fn colour_repeats_what_the_words_say() {
        let write = |style: &Style| {
            let mut page = Page::new(style);
            page.heading("Expectations");
            page.verdict(Tone::Good, "holds", "a >= 3 * b");
            page.finish()
        };
        let coloured = write(&Style::decide(ColourChoice::Always, Some(80), |_| None, false));
        assert_eq!(write(&Style::plain(80)), "Expectations\nholds: a >= 3 * b\n");
        assert_eq!(coloured, "\u{1b}[1mExpectations\u{1b}[0m\n\u{1b}[32mholds\u{1b}[0m: a >= 3 * b\n");
    }

    #[test]
    fn a_verdict_too_long_for_its_line_is_still_all_there() {
        let style = Style::plain(24);
        let mut page = Page::new(&style);
        page.verdict(Tone::Bad, "an uncommonly long verdict", "text");
        assert_eq!(page.finish(), "an uncommonly long\n  verdict: text\n");
    }
}
