//! What every stage of a reader carries: the texts, to point into, and the problems found so far.

use crate::document::Node;
use crate::refusal::{Problem, Refusal};
use std::ops::Range;

/// A kind of file: what messages call it, and where a writer finds help.
#[derive(Debug)]
pub struct Kind {
    /// "scenario", to follow "the" or "a" and precede "file".
    pub name: &'static str,
    /// Where its schema is explained.
    pub reference: &'static str,
    /// What to do where no such file is found.
    pub if_missing: &'static str,
    /// A file that is there, for whoever names a directory.
    pub example: &'static str,
    /// The cure of a key that is given twice.
    pub if_twice: &'static str,
    /// How deep its keys nest, in words.
    pub depth: &'static str,
    /// Every table with fixed keys, by the name that messages give it.
    pub sections: &'static [(&'static str, &'static [&'static str])],
}

/// A stretch of one text.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// 0 is the file; N the N-th override of the command line, counted from 1.
    pub text: usize,
    /// First byte.
    pub start: usize,
    /// Behind the last byte.
    pub end: usize,
}

/// The file's text and the overrides as the command line spells them.
#[derive(Clone, Debug)]
pub struct Texts {
    /// As named by the user.
    pub path: String,
    /// The whole file.
    pub file: String,
    /// `--workers 4`.
    pub flags: Vec<String>,
}

impl Texts {
    /// The text that a place lies in.
    pub fn of(&self, text: usize) -> &str {
        match text.checked_sub(1) {
            None => &self.file,
            Some(flag) => self.flags.get(flag).map_or("", String::as_str),
        }
    }

    /// The characters at a place; empty where it lies outside its text.
    pub fn slice(&self, place: &Place) -> &str {
        self.of(place.text).get(place.start..place.end).unwrap_or("")
    }

    /// The place of bytes `range` of a string value. Where the string has escapes, the whole value.
    pub fn within(&self, string: &Node, content: &str, range: Range<usize>) -> Place {
        let raw = self.slice(&string.place);
        for quote in ["\"\"\"", "'''", "\"", "'"] {
            let inner = raw.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
            if inner == Some(content) {
                let start = string.place.start + quote.len();
                return Place { text: string.place.text, start: start + range.start, end: start + range.end };
            }
        }
        string.place.clone()
    }
}

/// The most problems kept: past it a file is not one with slips, and comparing them all would take long.
const PROBLEMS_MAX: usize = 1_000;

/// The texts and the problems.
pub struct Context {
    /// What is read.
    pub kind: &'static Kind,
    /// Where places point.
    pub texts: Texts,
    /// In the order of finding, each once.
    pub problems: Vec<Problem>,
}

impl Context {
    /// For the text `file`, read from `path`, under `overrides` from the command line: pairs of a path and a value.
    pub fn new(kind: &'static Kind, path: &str, file: &str, overrides: &[(String, String)]) -> Context {
        let flags = overrides.iter().map(|(path, value)| format!("{}{value}", flag(path))).collect();
        Context { kind, texts: Texts { path: path.to_owned(), file: file.to_owned(), flags }, problems: Vec::new() }
    }

    /// Keeps a problem, unless another arm met the same one.
    pub fn refuse(&mut self, problem: Problem) {
        if self.problems.len() < PROBLEMS_MAX && !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// The message of all problems.
    pub fn into_refusal(self) -> Refusal {
        Refusal::new(self.texts, self.problems)
    }
}

/// What stands before the value of the flag that sets `path`: `--workers `.
pub fn flag(path: &str) -> String {
    format!("--{} ", path.rsplit('.').next().unwrap_or(path))
}
