//! `explain`: the lessons and what each diagnosis means, out of the project's own texts, which are part of the program.

use crate::cli::ExplainOptions;
use crate::exit::{CommandError, Ending};
use crate::report::markdown;
use crate::report::style::{ColourChoice, Style};
use crate::report::window;
use std::io::Write;

/// A lesson: its folder in docs/lessons, and its text.
struct Lesson {
    folder: &'static str,
    text: &'static str,
}

/// A lesson of docs/lessons.
macro_rules! lesson {
    ($folder:literal) => {
        Lesson { folder: $folder, text: include_str!(concat!("../../../docs/lessons/", $folder, "/README.md")) }
    };
}

/// In the order in which they build on each other.
static LESSONS: [Lesson; 9] = [
    lesson!("01-false-sharing"),
    lesson!("02-true-sharing"),
    lesson!("03-how-locks-wait"),
    lesson!("04-histograms"),
    lesson!("05-spin-or-sleep"),
    lesson!("06-tlb-shootdowns"),
    lesson!("07-counters"),
    lesson!("08-a-bigger-machine"),
    lesson!("09-foreign-processes"),
];

/// A section for each kind of diagnosis.
static DIAGNOSES: &str = include_str!("../../../docs/diagnoses.md");

/// Begins a section.
const SECTION: &str = "\n## ";

pub(crate) fn explain(options: &ExplainOptions, colour: ColourChoice) -> Result<Ending, CommandError> {
    let text = match &options.name {
        Some(name) => explanation(name)?,
        None => names(),
    };
    let style = Style::for_stdout(colour, window::columns(std::io::stdout()));
    let mut out = std::io::stdout().lock();
    out.write_all(markdown::render(&text, &style).as_bytes())?;
    out.flush()?;
    Ok(Ending::Done)
}

/// The text that a name stands for.
fn explanation(name: &str) -> Result<String, CommandError> {
    if let Some(lesson) = LESSONS.iter().find(|lesson| lesson.is_named(name)) {
        return Ok(lesson.text.to_owned());
    }
    // As a run's page writes it, and as a finger finds it: `false sharing`, `false-sharing`.
    let kind = name.trim().to_lowercase().replace([' ', '-'], "_");
    diagnosis(&kind).map(|section| format!("# {section}")).ok_or_else(|| unknown(name))
}

/// The section on a kind of diagnosis, which begins with its name.
fn diagnosis(kind: &str) -> Option<&'static str> {
    sections().find(|section| title(section) == kind)
}

fn sections() -> impl Iterator<Item = &'static str> {
    DIAGNOSES.split(SECTION).skip(1)
}

fn title(text: &str) -> &str {
    text.lines().next().unwrap_or("").trim_start_matches("# ").trim_matches('`')
}

impl Lesson {
    fn number(&self) -> &'static str {
        self.folder.split('-').next().unwrap_or(self.folder)
    }

    /// By its number, with or without the zero, or its folder.
    fn is_named(&self, name: &str) -> bool {
        let name = name.trim().trim_end_matches('/');
        let last = name.rsplit('/').next().unwrap_or(name);
        last == self.folder || last == self.number() || last == self.number().trim_start_matches('0')
    }
}

/// What there is to explain, as a text.
fn names() -> String {
    let mut text = String::from("# Lessons\n\n");
    for lesson in &LESSONS {
        text.push_str(&format!("- `{}` {}\n", lesson.folder, title(lesson.text)));
    }
    text.push_str("\n# Diagnoses\n\n");
    for section in sections() {
        let first = section.split("\n\n").nth(1).unwrap_or("").replace('\n', " ");
        let sentence = first.split_inclusive(". ").next().unwrap_or("").trim();
        text.push_str(&format!("- `{}` {sentence}\n", title(section)));
    }
    text.push_str("\n`coordinator explain NAME` shows one; of a lesson its number is enough.\n");
    text
}

fn unknown(name: &str) -> CommandError {
    let kinds = sections().map(title);
    let known: Vec<&str> = LESSONS.iter().map(|lesson| lesson.folder).chain(kinds).collect();
    let near = plan::nearest(name, &known).map_or(String::new(), |near| format!("did you mean `{near}`? "));
    let shown = crate::report::text::escaped(name);
    CommandError::Usage(format!(
        "nothing here is named `{shown}`: {near}`coordinator explain` without a name lists lessons and diagnoses"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::style::Style;
    use std::path::Path;

    /// What each section has, in bold, in this order.
    const PARTS: [&str; 4] = ["How it shows.", "Cure.", "See it.", "Read."];

    #[test]
    fn every_diagnosis_has_its_text_and_no_text_is_of_none() {
        let told: Vec<&str> = sections().map(title).collect();
        assert_eq!(told, analysis::KINDS, "docs/diagnoses.md against analysis::KINDS");
        for section in sections() {
            let mut rest = section;
            for part in PARTS {
                let mark = format!("**{part}**");
                let (_, behind) = rest.split_once(&mark).unwrap_or_else(|| panic!("{}: no {mark}", title(section)));
                rest = behind;
            }
        }
    }

    #[test]
    fn every_scenario_and_lesson_that_a_diagnosis_names_is_there() {
        let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        for section in sections() {
            let (_, see) = section.split_once("**See it.**").unwrap();
            let (see, _) = see.split_once("**Read.**").unwrap();
            let files: Vec<&str> = see.split('`').filter(|word| word.ends_with(".toml")).collect();
            for file in &files {
                assert!(project.join(file).is_file(), "{}: {file}", title(section));
            }
            let lessons: Vec<&str> =
                see.split("](lessons/").skip(1).filter_map(|rest| rest.split('/').next()).collect();
            assert!(lessons.iter().all(|name| LESSONS.iter().any(|lesson| lesson.folder == *name)), "{lessons:?}");
            assert!(!files.is_empty() && !lessons.is_empty(), "{} names neither", title(section));
        }
    }

    #[test]
    fn every_folder_of_lessons_is_part_of_the_program() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/lessons");
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
        let mut folders: Vec<String> = entries
            .filter(|entry| entry.file_type().unwrap().is_dir())
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        folders.sort();
        assert_eq!(folders, LESSONS.iter().map(|lesson| lesson.folder).collect::<Vec<_>>());
    }

    #[test]
    fn a_name_is_found_as_it_is_written_here_or_there() {
        for name in ["1", "01", "01-false-sharing", "docs/lessons/01-false-sharing/"] {
            assert!(explanation(name).unwrap().starts_with("# "), "{name}");
        }
        for name in ["false_sharing", "false sharing", "false-sharing", "False sharing"] {
            assert!(explanation(name).unwrap().starts_with("# false_sharing\n"), "{name}");
        }
        for (name, near) in [("fals_sharing", "`false_sharing`"), ("07-counter", "`07-counters`")] {
            let Err(CommandError::Usage(text)) = explanation(name) else { panic!("{name}") };
            assert!(text.contains(near), "{text}");
        }
        for name in ["", "0", "10", "zzz"] {
            assert!(matches!(explanation(name), Err(CommandError::Usage(_))), "{name:?}");
        }
    }

    #[test]
    fn what_can_be_explained_is_listed_with_a_sentence_each() {
        let text = markdown::render(&names(), &Style::plain(100));
        for name in LESSONS.iter().map(|lesson| lesson.folder).chain(analysis::KINDS) {
            let line = text.lines().find(|line| line.starts_with(&format!("- `{name}` ")));
            assert!(line.is_some_and(|line| line.len() > name.len() + 15), "{name}: {line:?}\n{text}");
        }
    }

    #[test]
    fn every_text_is_readable_on_any_terminal() {
        for text in LESSONS.iter().map(|lesson| lesson.text).chain([DIAGNOSES]) {
            let shown = markdown::render(text, &Style::plain(80));
            assert!(shown.len() > 500 && !shown.contains("](") && !shown.contains("**"), "{shown}");
            for line in shown.lines() {
                assert!(line.chars().count() <= 80, "{}: {line}", title(text));
            }
        }
    }
}
