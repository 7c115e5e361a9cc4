//! A candidate as a struct in C, C++ or Rust: aligned, padded by named bytes, its offsets checked by the compiler, and
//! a comment at each line that says why it stands apart.
//!
//! Locks are bytes there: the lab's take [`plan::LockKind::BYTES`] whatever their kind, and a program has its own. A
//! field that no step touches atomically is a plain integer, and one that some step does is atomic.

mod c_family;
mod names;
mod parts;
mod reasons;
mod rust;

pub use names::type_name;

use crate::candidate::Candidate;
use parts::{Part, Struct};

/// A language.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Language {
    /// C11.
    C,
    /// C++11.
    Cpp,
    /// Rust.
    Rust,
}

impl Language {
    /// All of them.
    pub const ALL: [Language; 3] = [Language::C, Language::Cpp, Language::Rust];
}

/// What stands above the struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The struct's name: letters, digits and `_`.
    pub name: String,
    /// Why this layout, in a sentence.
    pub reason: String,
}

/// The struct's text: it compiles as it stands, in a file of its own or in the midst of another.
pub fn text(language: Language, candidate: &Candidate, header: &Header) -> String {
    let made = parts::of(candidate, language, &header.name);
    let mut out = vec![comment(language, "", &heading(candidate, header))];
    out.push(match language {
        Language::C => c_family::c(&made),
        Language::Cpp => c_family::cpp(&made),
        Language::Rust => rust::write(&made),
    });
    out.concat()
}

/// How code of that language reaches each element, behind the struct's variable and a dot, and its offset.
pub fn paths(language: Language, candidate: &Candidate) -> Vec<(String, u64)> {
    let made = parts::of(candidate, language, "S");
    let members =
        made.parts.iter().filter_map(|part| if let Part::Member(member) = part { Some(member) } else { None });
    members.flat_map(parts::Member::paths).collect()
}

fn heading(candidate: &Candidate, header: &Header) -> String {
    let mut text = format!(
        "Layout `{}`: {}; {} bytes, aligned to {}. {}.",
        candidate.name,
        candidate.what,
        candidate.bytes,
        candidate.align,
        header.reason.trim_end_matches('.')
    );
    if let crate::candidate::Change::Code(when) = &candidate.change {
        text.push_str(&format!(" It goes with another program, which is the same only if {when}."));
    }
    text
}

/// Longest line of a comment.
const WIDTH: usize = 100;

/// A comment of that language, wrapped, each line behind `indent`.
fn comment(language: Language, indent: &str, text: &str) -> String {
    let mark = if language == Language::C { " * " } else { "// " };
    let room = WIDTH - indent.len() - mark.len();
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last_mut().expect("there is one");
        if !last.is_empty() && last.chars().count() + 1 + word.chars().count() > room {
            lines.push(word.to_owned());
        } else {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    // A comment of C ends where its text says so.
    let lines: Vec<String> = lines.iter().map(|line| line.replace("*/", "* /")).collect();
    match (language, lines.as_slice()) {
        (Language::C, [only]) => format!("{indent}/* {only} */\n"),
        (Language::C, several) => {
            let body: String = several.iter().map(|line| format!("{indent}{mark}{line}\n")).collect();
            format!("{}/*{} */\n", indent, &body[indent.len() + 2..].trim_end())
        }
        (_, several) => several.iter().map(|line| format!("{indent}{mark}{line}\n")).collect(),
    }
}

/// The members of a struct, comments and padding between them, as one language writes each.
fn body(
    made: &Struct,
    language: Language,
    member: impl Fn(&parts::Member, bool) -> String,
    pad: impl Fn(&str, u64, bool) -> String,
) -> String {
    let mut first = true;
    let mut text = String::new();
    for part in &made.parts {
        match part {
            Part::Comment(line) => text.push_str(&comment(language, "    ", line)),
            Part::Member(one) => text.push_str(&member(one, std::mem::take(&mut first))),
            Part::Pad { name, bytes } => text.push_str(&pad(name, *bytes, std::mem::take(&mut first))),
        }
    }
    text
}
