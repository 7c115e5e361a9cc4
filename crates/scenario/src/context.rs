//! What every stage carries: the texts, to point into, and the problems found so far.

use crate::document::Node;
use crate::refusal::{Problem, Refusal};
use std::ops::Range;

/// A stretch of one text.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// 0 is the file; N the N-th override of the command line, counted from 1.
    pub(crate) text: usize,
    /// First byte.
    pub(crate) start: usize,
    /// Behind the last byte.
    pub(crate) end: usize,
}

/// The file's text and the overrides as the command line spells them.
#[derive(Clone, Debug)]
pub(crate) struct Texts {
    /// As named by the user.
    pub(crate) path: String,
    /// The whole file.
    pub(crate) file: String,
    /// `--workers 4`.
    pub(crate) flags: Vec<String>,
}

impl Texts {
    /// The text that a place lies in.
    pub(crate) fn of(&self, text: usize) -> &str {
        match text.checked_sub(1) {
            None => &self.file,
            Some(flag) => self.flags.get(flag).map_or("", String::as_str),
        }
    }

    /// The characters at a place; empty where it lies outside its text.
    pub(crate) fn slice(&self, place: &Place) -> &str {
        self.of(place.text).get(place.start..place.end).unwrap_or("")
    }

    /// The place of bytes `range` of a string value. Where the string has escapes, the whole value.
    pub(crate) fn within(&self, string: &Node, content: &str, range: Range<usize>) -> Place {
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

/// The most problems kept: past it a file is not a scenario with slips, and comparing them all would take long.
const PROBLEMS_MAX: usize = 1_000;

/// The texts and the problems.
pub(crate) struct Context {
    /// Where places point.
    pub(crate) texts: Texts,
    /// In the order of finding, each once.
    pub(crate) problems: Vec<Problem>,
}

impl Context {
    pub(crate) fn new(path: &str, file: &str, overrides: &[(String, String)]) -> Context {
        let flags = overrides.iter().map(|(path, value)| format!("{}{value}", flag(path))).collect();
        Context { texts: Texts { path: path.to_owned(), file: file.to_owned(), flags }, problems: Vec::new() }
    }

    /// Keeps a problem, unless another arm met the same one.
    pub(crate) fn refuse(&mut self, problem: Problem) {
        if self.problems.len() < PROBLEMS_MAX && !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    pub(crate) fn into_refusal(self) -> Refusal {
        Refusal::new(self.texts, self.problems)
    }
}

/// What stands before the value of the flag that sets `path`: `--workers `.
pub(crate) fn flag(path: &str) -> String {
    format!("--{} ", path.rsplit('.').next().unwrap_or(path))
}
