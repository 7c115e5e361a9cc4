//! `grade` on the exercises of the repository: starters, edits that change nothing and wrong answers do not pass, the
//! references do unless the machine hides it, and no file passes by its effect against itself.

mod common;

use common::{alone, coordinator, stderr, stdout};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use testing::{A_LONG_TIME, Lines, within};

fn exercises() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/exercises")
}

/// A copy of an exercise's folder: what a grading leaves beside the file is the test's.
struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    fn of(exercise: &Path) -> Desk {
        let folder = tempfile::tempdir().unwrap();
        for entry in std::fs::read_dir(exercise).unwrap() {
            let path = entry.unwrap().path();
            std::fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
        }
        Desk { folder }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap()
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.file(name), text).unwrap();
    }

    /// Grades a file in short: six blocks.
    fn grade(&self, name: &str, more: &[&str]) -> Output {
        let mut command = coordinator();
        command.arg("grade").arg(self.file(name)).args(["--repetitions", "6", "--quiet"]).args(more);
        command.output().unwrap()
    }

    fn graded(&self, name: &str) -> Value {
        let output = self.grade(name, &["--json"]);
        let grade: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
        let status = match grade["verdict"].as_str().unwrap() {
            "pass" => 0,
            "not_yet" => 1,
            "inconclusive" => 3,
            "host_unsuitable" => 4,
            other => panic!("{other}"),
        };
        assert_eq!(output.status.code(), Some(status), "{grade:#}");
        grade
    }
}

fn each(mut look: impl FnMut(&str, &Desk)) {
    let mut folders: Vec<PathBuf> = std::fs::read_dir(exercises()).unwrap().map(|e| e.unwrap().path()).collect();
    folders.retain(|path| path.is_dir());
    folders.sort();
    assert!(folders.len() >= 8);
    for folder in folders {
        look(&folder.file_name().unwrap().to_string_lossy(), &Desk::of(&folder));
    }
}

#[test]
fn starters_edits_that_change_nothing_and_wrong_answers_do_not_pass() {
    let _alone = alone();
    each(|name, desk| {
        desk.write("edited.toml", &format!("# Looked at.\n{}\n", desk.text("starter.toml")));
        for file in ["starter.toml", "edited.toml", "wrong.toml"] {
            let grade = desk.graded(file);
            assert_eq!(grade["verdict"], "not_yet", "{name}/{file}: {grade:#}");
            assert_eq!(grade["hint"]["number"], 1, "{name}/{file}");
        }
    });
}

#[test]
fn references_pass_unless_the_machine_hides_it() {
    let _alone = alone();
    each(|name, desk| {
        let grade = desk.graded("reference.toml");
        let short: Vec<_> = ["verdict", "why", "gates", "effect"].iter().map(|key| &grade[key]).collect();
        assert_ne!(grade["verdict"], "not_yet", "{name}: {short:#?}");
        for gate in &grade["gates"].as_array().unwrap()[..2] {
            assert_eq!(gate["state"], "passes", "{name}: {gate:#}");
        }
        eprintln!("{name}: {}", grade["verdict"]);
    });
}

#[test]
fn a_grade_holds_what_grading_again_takes() {
    let _alone = alone();
    let desk = Desk::of(&exercises().join("01-two-counters"));
    let output = desk.grade("reference.toml", &["--json"]);
    assert!(stdout(&output).starts_with("{\n  \"schema_version\": 1,"), "{}", stderr(&output));
    let grade: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(grade["seed"].is_u64() && grade["host"]["kernel"].is_string() && grade["tool"]["version"].is_string());
    let files: Vec<&str> = grade["files"].as_array().unwrap().iter().map(|f| f["what"].as_str().unwrap()).collect();
    assert_eq!(files, ["exercise", "starter", "yours", "reference"]);
    assert_eq!(grade["files"][2]["text"], desk.text("reference.toml"));
    let arms: Vec<&str> = grade["arms"].as_array().unwrap().iter().map(|arm| arm["name"].as_str().unwrap()).collect();
    assert_eq!(arms, ["starter", "yours", "reference", "control"]);
    let observations = grade["observations"].as_array().unwrap();
    assert!(observations.len() >= 4 * 2 * 6, "four arms of two workers in six blocks: {}", observations.len());
}

/// An exercise that asks for an effect and nothing else, so that nothing but the effect can fail a file.
fn by_effect_alone() -> Desk {
    let desk = Desk::of(&exercises().join("01-two-counters"));
    let asked = desk.text("exercise.toml").replace("[[apart]]\nfields = [\"hits\"]\n", "");
    assert!(!asked.contains("[[apart]]"));
    desk.write("exercise.toml", &asked);
    desk
}

#[test]
fn a_file_never_passes_by_its_effect_against_itself() {
    let _alone = alone();
    let desk = by_effect_alone();
    let starter = desk.graded("starter.toml");
    assert_ne!(starter["verdict"], "pass", "{:#}", starter["effect"]);
    // With nothing to gain, whatever it is that is graded.
    desk.write("reference.toml", &desk.text("starter.toml"));
    for file in ["starter.toml", "reference.toml"] {
        let grade = desk.graded(file);
        assert_ne!(grade["verdict"], "pass", "{file}: {:#}", grade["effect"]);
        assert_ne!(grade["verdict"], "not_yet", "nobody fails by a machine that shows nothing: {:#}", grade["effect"]);
    }
}

#[test]
fn counts_are_taken_from_memory() {
    let _alone = alone();
    let desk = Desk::of(&exercises().join("04-short-section"));
    let grade = desk.graded("reference.toml");
    let checks = grade["gates"][0]["checks"].as_array().unwrap();
    let exact = checks.iter().find(|check| check["what"] == "the counts of `balance` are exact").unwrap();
    assert!(exact["why"].as_str().unwrap().contains("counts stand in memory"), "{exact:#}");
    // Without the rule that reads the steps, luck alone would hide it: a mutex that a dead owner keeps ends the run.
    let dead = Desk::of(&exercises().join("07-dead-owner")).graded("starter.toml");
    let why = dead["why"].as_str().unwrap();
    assert!(why.contains("it runs to its end") && why.contains("nobody can take over"), "{why}");
}

#[test]
fn hints_come_one_a_version() {
    let _alone = alone();
    let desk = Desk::of(&exercises().join("01-two-counters"));
    let hint = |version: u32| {
        desk.write("mine.toml", &format!("{}# {version}\n", desk.text("starter.toml")));
        let output = desk.grade("mine.toml", &[]);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        let page = stdout(&output);
        page.lines().find(|line| line.starts_with("Hint ")).unwrap_or_else(|| panic!("{page}")).to_owned()
    };
    let told: Vec<String> = [1, 1, 2, 3, 4].into_iter().map(hint).collect();
    assert_eq!(told, ["Hint 1 of 3", "Hint 1 of 3", "Hint 2 of 3", "Hint 3 of 3", "Hint 3 of 3"]);
}

#[test]
fn a_file_elsewhere_names_its_exercise_and_one_that_names_none_is_told() {
    let _alone = alone();
    let (desk, elsewhere) = (Desk::of(&exercises().join("01-two-counters")), tempfile::tempdir().unwrap());
    let mine = elsewhere.path().join("mine.toml");
    std::fs::copy(desk.file("starter.toml"), &mine).unwrap();
    let grade = |more: &[&str]| coordinator().arg("grade").arg(&mine).args(more).output().unwrap();
    let lost = grade(&[]);
    assert_eq!(lost.status.code(), Some(2));
    assert!(stderr(&lost).contains("name the exercise's folder with --exercise"), "{}", stderr(&lost));
    let found = grade(&["--exercise", desk.folder.path().to_str().unwrap()]);
    assert_eq!(found.status.code(), Some(1), "{}", stderr(&found));
    let swept = desk.text("starter.toml") + "\n[sweep]\nworkers = [1, 2]\n";
    std::fs::write(&mine, swept).unwrap();
    let several = grade(&["--exercise", desk.folder.path().to_str().unwrap()]);
    assert_eq!(several.status.code(), Some(2));
    assert!(stderr(&several).contains("an answer is one"), "{}", stderr(&several));
}

#[test]
fn without_a_reference_nothing_is_measured_and_nobody_fails() {
    let _alone = alone();
    let desk = Desk::of(&exercises().join("01-two-counters"));
    std::fs::rename(desk.file("reference.toml"), desk.file("mine.toml")).unwrap();
    let grade = desk.graded("mine.toml");
    assert_eq!(grade["verdict"], "inconclusive");
    assert!(grade["why"].as_str().unwrap().contains("--reference"), "{}", grade["why"]);
}

#[test]
fn watching_looks_at_each_save_and_measures_on_a_key() {
    let _alone = alone();
    let desk = Desk::of(&exercises().join("01-two-counters"));
    std::fs::copy(desk.file("starter.toml"), desk.file("mine.toml")).unwrap();
    let mut command = coordinator();
    command.arg("grade").arg(desk.file("mine.toml")).args(["--watch", "--repetitions", "3", "--quiet"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = Lines::of(child.stdout.take().unwrap());
    let until = |wanted: &str| -> String {
        let mut read = String::new();
        within(A_LONG_TIME, wanted, || {
            let line = lines.hear().unwrap_or_else(|| panic!("it ended before `{wanted}`: {read}"));
            read.push_str(&line);
            read.push('\n');
            line.contains(wanted).then_some(())
        });
        read
    };
    let keys = child.stdin.as_mut().unwrap();
    assert!(until("To grade again").contains("not yet"));
    keys.write_all(b"h\n").unwrap();
    until("hint 1 of 3");
    desk.write("mine.toml", "title = ");
    until("error");
    std::fs::copy(desk.file("reference.toml"), desk.file("mine.toml")).unwrap();
    assert!(until("To grade again").contains("nothing is measured yet"));
    keys.write_all(b"\n").unwrap();
    // Whatever this machine makes of three blocks: it was measured.
    until("3. Effect");
    until("ns_per_op: starter");
    until("To grade again");
    keys.write_all(b"q\n").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
