//! Standard output for what programs read: JSON, tables, logs. It goes out as it is, but to a terminal, which would obey
//! what a name in it says.

use plan::is_plain;
use serde::Serialize;
use std::io::{self, IsTerminal, StdoutLock, Write};

/// Standard output for data. What was written last is out once it is flushed.
pub(crate) fn stdout() -> Data<StdoutLock<'static>> {
    let out = io::stdout().lock();
    Data { shown: out.is_terminal(), line: Vec::new(), out }
}

/// Prints `record` as JSON, indented, ended by a newline.
///
/// # Errors
/// What standard output answers.
pub(crate) fn json(record: &impl Serialize) -> io::Result<()> {
    let mut out = stdout();
    serde_json::to_writer_pretty(&mut out, record)?;
    out.write_all(b"\n")?;
    out.flush()
}

/// Passes bytes on; where a terminal shows them, line by line, with what it would obey written out as JSON does.
pub(crate) struct Data<W: Write> {
    shown: bool,
    line: Vec<u8>,
    out: W,
}

impl<W: Write> Data<W> {
    fn pass_on(&mut self, end: usize) -> io::Result<()> {
        let safe = written_out(&self.line[..end]);
        self.line.drain(..end);
        self.out.write_all(safe.as_bytes())
    }
}

impl<W: Write> Write for Data<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.shown {
            return self.out.write(bytes);
        }
        self.line.extend_from_slice(bytes);
        if let Some(end) = self.line.iter().rposition(|byte| *byte == b'\n') {
            self.pass_on(end + 1)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pass_on(self.line.len())?;
        self.out.flush()
    }
}

/// `\u001b` of a character in JSON means the character, so that what is copied from a terminal is the same JSON. A byte
/// that is no text is written as `\x9b`.
fn written_out(bytes: &[u8]) -> String {
    let mut safe = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if is_plain(c) || c == '\n' || c == '\t' {
                safe.push(c);
            } else {
                safe.extend(c.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")));
            }
        }
        safe.extend(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")));
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::Data;
    use std::io::Write;

    fn through(shown: bool, pieces: &[&[u8]]) -> Vec<u8> {
        let mut data = Data { shown, line: Vec::new(), out: Vec::new() };
        pieces.iter().for_each(|piece| data.write_all(piece).unwrap());
        data.flush().unwrap();
        data.out
    }

    #[test]
    fn a_terminal_is_shown_what_it_would_obey_and_a_file_gets_it_as_it_is() {
        let text = "\"a\u{9b}31m\u{202e}\u{7f}\u{1b}[2J \u{e0041}\u{b5}\"\n\tb";
        assert_eq!(through(false, &[text.as_bytes()]), text.as_bytes());
        let safe = "\"a\\u009b31m\\u202e\\u007f\\u001b[2J \\udb40\\udc41\u{b5}\"\n\tb";
        assert_eq!(String::from_utf8(through(true, &[text.as_bytes()])).unwrap(), safe);
        let name: String = serde_json::from_str("\"\\u009b\\udb40\\udc41\"").unwrap();
        assert_eq!(name, "\u{9b}\u{e0041}", "it means the same");
    }

    #[test]
    fn characters_that_come_in_pieces_are_whole_and_bytes_that_are_none_are_written_out() {
        let micro = "\u{b5}s\n".as_bytes();
        assert_eq!(through(true, &[&micro[..1], &micro[1..]]), micro);
        assert_eq!(through(true, &[b"\x9b2J\xff\n"]), b"\\x9b2J\\xff\n");
    }
}
