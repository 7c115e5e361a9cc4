//! Names that a scenario can have, made of those that programs have.

use std::collections::{BTreeMap, BTreeSet};

/// The schema's bound is 64 bytes; a number may come behind.
const MOST_BYTES: usize = 56;

/// Gives each name once.
#[derive(Default)]
pub(super) struct Names {
    given: BTreeSet<String>,
    /// Names that several have: all of these are numbered, so that none looks like the only one.
    several: BTreeSet<String>,
}

impl Names {
    /// For roles that have these names.
    pub(super) fn of_roles<'a>(all: impl Iterator<Item = &'a str>) -> Names {
        let mut counts: BTreeMap<String, u32> = BTreeMap::new();
        all.for_each(|name| *counts.entry(spelled(name)).or_default() += 1);
        let several = counts.into_iter().filter(|(_, count)| *count > 1).map(|(name, _)| name).collect();
        Names { given: BTreeSet::new(), several }
    }

    /// A name made of this one that was not given before.
    pub(super) fn next(&mut self, name: &str) -> String {
        let plain = spelled(name);
        let numbered = (1..).map(|number: u32| format!("{plain}_{number}"));
        let first = (!self.several.contains(&plain)).then(|| plain.clone());
        let free = first.into_iter().chain(numbered).find(|name| !self.given.contains(name));
        let free = free.expect("there is always another number");
        self.given.insert(free.clone());
        free
    }
}

/// In the letters of a scenario's names: a-z, 0-9 and `_`, a letter first.
fn spelled(name: &str) -> String {
    let mut spelled = String::new();
    for c in name.chars().map(|c| c.to_ascii_lowercase()) {
        match c.is_ascii_lowercase() || c.is_ascii_digit() {
            true => spelled.push(c),
            false if spelled.ends_with('_') || spelled.is_empty() => {}
            false => spelled.push('_'),
        }
    }
    spelled.truncate(MOST_BYTES);
    let spelled = spelled.trim_end_matches('_');
    match spelled.starts_with(|c: char| c.is_ascii_lowercase()) {
        true => spelled.to_owned(),
        false => format!("x{spelled}"),
    }
}

#[cfg(test)]
mod tests {
    use super::Names;

    #[test]
    fn names_of_programs_and_fields_become_names_of_scenarios() {
        let mut names = Names::default();
        let made = ["slots[3].head", "Hits", "hits", "7zip", "é\u{1b}", "word_0x40"].map(|name| names.next(name));
        assert_eq!(made, ["slots_3_head", "hits", "hits_1", "x7zip", "x", "word_0x40"]);
        assert!(names.next(&"long ".repeat(100)).len() <= 60);
    }

    #[test]
    fn roles_of_one_name_are_all_numbered() {
        let all = ["ring", "ring", "log"];
        let mut names = Names::of_roles(all.into_iter());
        assert_eq!(all.map(|name| names.next(name)), ["ring_1", "ring_2", "log"]);
    }
}
