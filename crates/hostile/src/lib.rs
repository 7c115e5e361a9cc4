//! What a stranger may hand the lab, and what must hold whatever it is: sound inputs ([`sound`]) bent out of shape
//! ([`bend`]) go through the doors by which files come in ([`doors`]), a great many of them ([`through`]), and what comes
//! out is looked at ([`hold`]): no panic, no hang, no memory without end, no escape sequence, no markup.
//!
//! For tests and fuzz targets (`fuzz/`) alone; no program of the lab contains it.
#![forbid(unsafe_code)]

pub mod bend;
pub mod doors;
pub mod hold;
pub mod sound;
mod through;

pub use through::{Input, bent, through};

/// How far an input came.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Reached {
    /// The reader refused it, with a message.
    Refused,
    /// The reader took it, and all that stands behind the reader was done with it.
    Inside,
}

/// Texts that somebody might write where a name or a sentence is expected: markup, escape sequences of every kind, marks
/// that reorder or hide, line ends, parts of paths, numbers that are none.
pub const NAMES: [&str; 28] = [
    "",
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onload='alert(1)",
    "]]></style><script>alert(1)</script>",
    "--><svg onload=alert(1)>",
    "&lt;b&gt;&#x1b;",
    "javascript:alert(1)",
    "\u{1b}[2J\u{1b}[31mred",
    "\u{9b}31m",
    "\u{1b}]0;title\u{7}",
    "\u{9d}8;;http://x\u{9c}link",
    "\u{1b}P1$q\u{1b}\\",
    "\u{202e}evil\u{2066}",
    "\u{61c}\u{200b}\u{feff}",
    "a\nb\r\nc\td",
    "\u{85}\u{2028}",
    "nul\0byte",
    "\u{7f}\u{8}",
    "../../../etc/passwd",
    "/",
    "..",
    "a/b\\c",
    "\"quoted\" 'twice' `thrice` $(id)",
    "%s%n{}{0}",
    "*/ } #define x \\",
    "共有メモリ\u{1f9ea}e\u{301}",
    "-1e999",
];
