//! Which hint is due. How many a student has had stands beside the file, in FILE.hints: a further one comes with a
//! further version of the file that does not pass, so that asking twice about the same one tells no more.

use super::task::Task;
use crate::assemble;
use crate::cli::GradeOptions;
use crate::foreign_file;
use crate::report::replace;
use record::{Grade, GradeVerdict, Hint};
use std::path::PathBuf;

/// The hint that is due for a file that does not pass; noted as told where `keep`. A place that cannot be written to
/// makes the first hint come again: no reason to fail anybody.
pub(super) fn due(options: &GradeOptions, grade: &Grade, keep: bool) -> Option<Hint> {
    if grade.verdict != GradeVerdict::NotYet {
        return None;
    }
    let all = Task::load(options).ok()?.exercise.hints;
    let version = grade.files.iter().find(|file| file.what == "yours").map(|file| file.sha256.clone())?;
    let number = next(&told(options).unwrap_or_default(), &version, all.len() as u32);
    if keep {
        note(options, &version, number);
    }
    hint(&all, number)
}

/// One more hint, whatever the file is like: for who asks for it.
pub(super) fn more(options: &GradeOptions) -> Option<Hint> {
    let task = Task::load(options).ok()?;
    let (_, _, text) = task.files.iter().find(|(what, ..)| *what == "yours")?;
    let all = task.exercise.hints;
    let number = told(options).map_or(0, |(_, number)| number).saturating_add(1).min(all.len() as u32);
    note(options, &assemble::sha256(text), number);
    hint(&all, number)
}

fn hint(all: &[String], number: u32) -> Option<Hint> {
    let text = all.get(number.checked_sub(1)? as usize)?.clone();
    Some(Hint { number, of: all.len() as u32, text })
}

fn note(options: &GradeOptions, version: &str, number: u32) {
    let _ = replace::whole(&format!("{version} {number}\n"), &place(options));
}

fn place(options: &GradeOptions) -> PathBuf {
    let mut name = options.file.clone().into_os_string();
    name.push(".hints");
    PathBuf::from(name)
}

/// The version for which the last hint was told, and its number.
fn told(options: &GradeOptions) -> Option<(String, u32)> {
    let text = String::from_utf8(foreign_file::read(&place(options)).ok()?).ok()?;
    let (version, number) = text.trim().split_once(' ')?;
    Some((version.to_owned(), number.parse().ok()?))
}

fn next((version, number): &(String, u32), now: &str, of: u32) -> u32 {
    let more = u32::from(version != now);
    (number.saturating_add(more)).clamp(1, of.max(1))
}

#[cfg(test)]
mod tests {
    use super::next;

    #[test]
    fn a_further_hint_comes_with_a_further_version() {
        let told = |version: &str, number| (version.to_owned(), number);
        assert_eq!(next(&told("", 0), "a", 3), 1);
        assert_eq!(next(&told("a", 1), "a", 3), 1, "the same file again");
        assert_eq!(next(&told("a", 1), "b", 3), 2);
        assert_eq!(next(&told("b", 2), "c", 3), 3);
        assert_eq!(next(&told("c", 3), "d", 3), 3, "the last one again");
        assert_eq!(next(&told("x", u32::MAX), "d", 3), 3, "whatever stands in the file");
    }
}
