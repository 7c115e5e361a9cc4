//! Text that came from outside, made safe for a terminal, and broken into lines.

pub(crate) use plan::escaped;
use std::path::Path;
use unicode_width::UnicodeWidthStr;

/// Columns that `text` takes on a terminal.
pub(super) fn columns(text: &str) -> usize {
    text.width()
}

/// [`escaped`], of a text whose line ends are meant. A name in it that may hold one was [`escaped`] when it was put there;
/// what is escaped already stays as it is.
pub(crate) fn escaped_lines(text: &str) -> String {
    text.lines().map(escaped).collect::<Vec<_>>().join("\n")
}

/// A path as it stands in a sentence: a line end in a name ends no line.
pub(crate) fn shown(path: &Path) -> String {
    escaped(&path.display().to_string())
}

/// `text` in lines of at most `width` columns, escaped; the first begins with `first`, the others with `rest`. Breaks
/// are at white space; a word longer than a line is broken where the line ends. No-break spaces hold.
pub(super) fn wrapped(text: &str, width: usize, first: &str, rest: &str) -> Vec<String> {
    let mut lines = Lines { width, rest, done: Vec::new(), line: first.to_owned(), room_taken: false };
    for word in text.split([' ', '\n', '\r', '\t']).filter(|word| !word.is_empty()) {
        lines.push(&escaped(word));
    }
    lines.done.push(lines.line.trim_end().to_owned());
    lines.done
}

struct Lines<'a> {
    width: usize,
    rest: &'a str,
    done: Vec<String>,
    line: String,
    room_taken: bool,
}

impl Lines<'_> {
    fn push(&mut self, word: &str) {
        let space = usize::from(self.room_taken);
        let fits_below = columns(self.rest) < columns(&self.line) && columns(self.rest) + columns(word) <= self.width;
        if columns(&self.line) + space + columns(word) > self.width && (self.room_taken || fits_below) {
            self.next();
        }
        if self.room_taken {
            self.line.push(' ');
        }
        for c in word.chars() {
            let mut buffer = [0; 4];
            if self.room_taken && columns(&self.line) + columns(c.encode_utf8(&mut buffer)) > self.width {
                self.next();
            }
            self.line.push(c);
            self.room_taken = true;
        }
    }

    fn next(&mut self) {
        let line = std::mem::replace(&mut self.line, self.rest.to_owned());
        self.done.push(line.trim_end().to_owned());
        self.room_taken = false;
    }
}

/// A command in lines of at most `width` columns that a shell joins again: each but the last ends in a backslash.
pub(super) fn command_lines(command: &str, width: usize) -> Vec<String> {
    let room = width - 2;
    let mut lines = Vec::new();
    let mut line = String::new();
    for (index, word) in shell_words(&escaped(command)).into_iter().enumerate() {
        if index > 0 && columns(&line) + 1 + columns(&word) > room {
            lines.push(format!("{line} \\"));
            line.clear();
        } else if index > 0 {
            line.push(' ');
        }
        for c in word.chars() {
            if columns(&line) >= room {
                lines.push(format!("{line}\\"));
                line.clear();
            }
            line.push(c);
        }
    }
    lines.push(line);
    lines
}

/// `command` at its spaces, save those in single quotes, where a shell would not join a broken line.
fn shell_words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in command.chars() {
        quoted ^= c == '\'';
        match words.last_mut() {
            Some(word) if c != ' ' || quoted => word.push(c),
            _ => words.push(String::new()),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrapped_is_escaped() {
        assert_eq!(wrapped("\u{9b}2J \u{1b}]0;x", 40, "", ""), ["\\u{9b}2J \\u{1b}]0;x"]);
    }

    #[test]
    fn a_name_stays_on_its_line_whatever_is_in_it() {
        assert_eq!(shown(Path::new("a\nerror: \u{1b}[2J")), "a\\nerror: \\u{1b}[2J");
    }

    #[test]
    fn lines_break_at_white_space_and_long_words_where_they_must() {
        assert_eq!(wrapped("one two\nthree", 9, "- ", "  "), ["- one two", "  three"]);
        assert_eq!(wrapped("abcdefghij", 5, "", " "), ["abcde", " fghi", " j"]);
        assert_eq!(wrapped("abcdefgh", 10, "label: ", "  "), ["label:", "  abcdefgh"]);
        assert_eq!(wrapped("", 10, "", ""), [""]);
        assert_eq!(wrapped("10\u{a0}ns one", 6, "", ""), ["10\u{a0}ns", "one"]);
    }

    #[test]
    fn a_broken_command_is_still_the_command() {
        let command = "coordinator run scenarios/a_name_that_is_longer_than_a_line.toml --seed 7";
        for width in [24, 40, 80] {
            let lines = command_lines(command, width);
            assert!(lines.iter().all(|line| columns(line) <= width), "{lines:?}");
            assert_eq!(lines.join("\n").replace("\\\n", ""), command);
        }
        assert_eq!(
            command_lines("run 'my own  file.toml' --seed 7", 24),
            ["run \\", "'my own  file.toml' \\", "--seed 7"]
        );
    }

    #[test]
    fn wide_characters_count_twice() {
        assert_eq!(columns("共有"), 4);
        assert!(wrapped("共有メモリ 共有メモリ", 10, "", "").iter().all(|line| columns(line) <= 10));
    }
}
