//! Which struct is wanted: a name as its language writes it, and what tells one of several from the others.

use crate::error::Error;
use crate::layout::Struct;
use std::path::Path;

/// A name to look for: `ring`, `struct ring`, `ns::Ring<int>`, `lab::ring::Ring`. Leading namespaces or modules may be
/// left out, and so may the arguments of a template or generic type.
#[derive(Clone, Debug)]
pub struct Wanted {
    text: String,
    parts: Vec<String>,
}

/// How well a type's name fits; less is better.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    /// The whole name with all that is around it.
    Whole,
    /// The name, in some namespace.
    Name,
    /// The name but for its arguments.
    Generic,
}

impl Wanted {
    /// A name to look for.
    pub fn new(text: &str) -> Wanted {
        let bare = text.trim();
        let keywords = ["struct ", "class ", "union ", "enum "];
        let bare = keywords.iter().find_map(|keyword| bare.strip_prefix(keyword)).unwrap_or(bare).trim();
        Wanted { text: bare.to_owned(), parts: parts(bare) }
    }

    /// The name as it was given, without a leading keyword.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The last part without its arguments: what is compared before a whole name is put together.
    pub(crate) fn last(&self) -> &str {
        self.parts.last().map_or("", |part| without_arguments(part))
    }

    /// Whether a type of that name, namespaces left out, can be the one.
    pub(crate) fn may_be(&self, name: &[u8]) -> bool {
        let last = self.last();
        let begins = match name.first() {
            // Rust's references and slices, and anonymous scopes, have spaces or punctuation: compared in full.
            Some(b'&' | b'*' | b'[' | b'(' | b'{' | b'<') => return !last.is_empty() && last.as_bytes()[0] == name[0],
            Some(_) => name.starts_with(last.as_bytes()),
            None => false,
        };
        begins && !name.get(last.len()).is_some_and(|&next| next == b'_' || next.is_ascii_alphanumeric())
    }

    /// How well the name with all that is around it fits; `None` where it does not.
    pub(crate) fn fit(&self, qualified: &str) -> Option<Fit> {
        let theirs = parts(qualified);
        let skipped = theirs.len().checked_sub(self.parts.len())?;
        let pairs = || self.parts.iter().zip(&theirs[skipped..]);
        if self.parts.is_empty() {
            None
        } else if pairs().all(|(own, theirs)| own == theirs) {
            Some(if skipped == 0 { Fit::Whole } else { Fit::Name })
        } else {
            let alike = |(own, theirs): (&String, &String)| own == theirs || own == without_arguments(theirs);
            pairs().all(alike).then_some(Fit::Generic)
        }
    }
}

/// `text` at the `::` that stand in no brackets, white space left out.
fn parts(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0_u32;
    let mut characters = text.chars().filter(|c| !c.is_whitespace()).peekable();
    while let Some(c) = characters.next() {
        match c {
            '<' | '(' | '[' | '{' => depth += 1,
            '>' | ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ':' if depth == 0 && characters.peek() == Some(&':') => {
                characters.next();
                parts.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = parts.last_mut() {
            last.push(c);
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

fn without_arguments(part: &str) -> &str {
    match part.find('<') {
        Some(0) | None => part,
        Some(at) => &part[..at],
    }
}

/// What tells one of several types of the same name from the others.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// The end of the file's path, and the line, where it is declared.
    pub at: Option<(String, u64)>,
    /// Its number in the list of those found, from 1.
    pub nth: Option<usize>,
}

/// The chosen one of those found, which are all different and in a fixed order.
///
/// # Errors
/// [`Error::Several`] where the choice leaves more than one, [`Error::NotChosen`] where it leaves none.
pub fn choose(found: Vec<Struct>, wanted: &Wanted, choice: &Choice) -> Result<Struct, Error> {
    let listed: Vec<String> = found.iter().enumerate().map(|(index, one)| line(index + 1, one)).collect();
    let name = || wanted.text().to_owned();
    let not_chosen = |chosen: String| Error::NotChosen { name: name(), chosen, found: listed.clone() };
    let mut left: Vec<(usize, Struct)> = found.into_iter().enumerate().collect();
    if let Some((file, line)) = &choice.at {
        left.retain(|(_, one)| {
            one.source.as_ref().is_some_and(|s| s.line == *line && Path::new(&s.file).ends_with(file))
        });
        if left.is_empty() {
            return Err(not_chosen(format!("--at {file}:{line}")));
        }
    }
    if let Some(nth) = choice.nth {
        left.retain(|(index, _)| index + 1 == nth);
        if left.is_empty() {
            return Err(not_chosen(format!("--nth {nth}")));
        }
    }
    match left.len() {
        1 => Ok(left.remove(0).1),
        _ => {
            let found = left.iter().map(|(index, _)| listed[*index].clone()).collect();
            Err(Error::Several { name: name(), found })
        }
    }
}

fn line(number: usize, one: &Struct) -> String {
    let place = one.source.as_ref().map_or_else(|| "no place told".to_owned(), ToString::to_string);
    let (word, members) = (one.keyword.word(), one.members.len());
    format!("  {number}  {word} {}: {} bytes, {members} members, {place}", one.name, one.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_fits_whole_in_a_namespace_or_without_its_arguments() {
        let fit = |wanted: &str, name: &str| Wanted::new(wanted).fit(name);
        assert_eq!(fit("struct ring", "ring"), Some(Fit::Whole));
        assert_eq!(fit("Ring", "lab::ring::Ring"), Some(Fit::Name));
        assert_eq!(fit("ring::Ring", "lab::ring::Ring"), Some(Fit::Name));
        assert_eq!(fit("Vec<int, std::allocator<int> >", "std::Vec<int,std::allocator<int>>"), Some(Fit::Name));
        assert_eq!(fit("Vec", "std::Vec<int>"), Some(Fit::Generic));
        assert_eq!(fit("std::Vec::Node", "std::Vec<a::b>::Node"), Some(Fit::Generic));
        assert_eq!(fit("Ring", "lab::Rings"), None);
        assert_eq!(fit("lab::Ring", "Ring"), None);
        assert_eq!(fit("", "Ring"), None);
        assert_eq!(fit("::", "Ring"), None);
    }

    #[test]
    fn the_first_look_at_a_name_lets_through_all_that_fits() {
        for (wanted, name) in [("a::Vec", "Vec<int>"), ("Vec<int>", "Vec<int>"), ("ring", "ring"), ("&str", "&str")] {
            assert!(Wanted::new(wanted).may_be(name.as_bytes()), "{wanted} {name}");
        }
        for (wanted, name) in
            [("ring", "rings"), ("ring", "ring_2"), ("ring", ""), ("", "ring"), ("Vec<int>", "Map<int>")]
        {
            assert!(!Wanted::new(wanted).may_be(name.as_bytes()), "{wanted} {name}");
        }
    }
}
