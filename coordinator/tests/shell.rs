//! What is made from the command line itself: completions and manual pages.

mod common;

use common::{coordinator, stderr, stdout};
use std::process::Command;
use testing::skip;

/// The commands that `--help` lists.
fn commands() -> Vec<String> {
    let help = stdout(&coordinator().arg("--help").output().unwrap());
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names: Vec<String> = listed.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect();
    assert!(names.len() > 10 && names.contains(&"run".to_owned()), "{help}");
    names.into_iter().filter(|name| name != "help").collect()
}

#[test]
fn every_shell_gets_a_script_that_knows_every_command() {
    let commands = commands();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = coordinator().args(["completions", shell]).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let script = stdout(&output);
        for command in &commands {
            assert!(script.contains(command.as_str()), "{shell} does not know {command}");
        }
        assert!(script.contains("live"), "{shell} does not know a flag of run");
    }
    let refused = coordinator().args(["completions", "tcsh"]).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
}

/// In a shell of its own, as a user's would: `coordinator ru` has one way to go on.
#[test]
fn bash_completes_a_command_and_its_flags() {
    if !Command::new("bash").arg("--version").output().is_ok_and(|output| output.status.success()) {
        skip("there is no bash here");
        return;
    }
    let script = stdout(&coordinator().args(["completions", "bash"]).output().unwrap());
    let complete = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let (last, before) = (words.len() - 1, words.len().saturating_sub(2));
        let tail = format!(
            "COMP_WORDS=({})\nCOMP_CWORD={last}\n_coordinator coordinator {} {}\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
            words.join(" "),
            words[last],
            words[before]
        );
        let output = Command::new("bash").arg("--norc").arg("-c").arg(format!("{script}\n{tail}")).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output).lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(complete(&["coordinator", "ru"]), ["run"]);
    assert_eq!(complete(&["coordinator", "run", "--rep"]), ["--repetitions"]);
    assert_eq!(complete(&["coordinator", "export", "--format", "inf"]), ["influx"]);
}

#[test]
fn there_is_a_manual_page_for_each_command_with_its_example() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("new").join("man1");
    let output = coordinator().arg("man").arg(&folder).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    for command in commands() {
        let page = std::fs::read_to_string(folder.join(format!("coordinator-{command}.1"))).unwrap();
        assert!(page.contains(".SH NAME") && page.contains(".SH SYNOPSIS"), "{command}: {page}");
        assert!(page.contains("Example"), "{command}: no example");
    }
    let whole = std::fs::read_to_string(folder.join("coordinator.1")).unwrap();
    assert!(whole.contains("Exit status"), "{whole}");
}

/// The help of `topology` had holes where its text was broken over lines in the source.
#[test]
fn no_help_has_holes_or_misses_its_example() {
    for command in commands() {
        let help = stdout(&coordinator().args([command.as_str(), "--help"]).output().unwrap());
        assert!(help.contains("Example"), "{command}: no example");
        // Where an option takes one of several words, their meanings stand in a column.
        let text = help.lines().map(str::trim).filter(|line| !line.starts_with("- "));
        let holes: Vec<&str> = text.filter(|line| line.contains("    ")).collect();
        assert!(holes.is_empty(), "{command}: {holes:?}");
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a-file");
    std::fs::write(&file, "").unwrap();
    let output = coordinator().arg("man").arg(file.join("man1")).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("a-file") && stderr(&output).contains("name a folder"), "{}", stderr(&output));
}
