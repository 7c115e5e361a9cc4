//! Names that somebody else chose, with markup, escape sequences, marks that reorder, line ends and parts of paths in them,
//! through the commands: nothing of it reaches a terminal, a page or a place outside of the folder for results.

mod common;
#[path = "common/compiled.rs"]
mod compiled;
mod foreign;

use common::{QUICK, coordinator, stderr, stdout};
use foreign::Sharer;
use hostile::hold;
use nix::pty::openpty;
use serde_json::Value;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use testing::skip;

/// Everything in one name that a file's may have: what `hostile::NAMES` has apart.
const NAME: &str = "\u{1b}]0;t\u{7}\u{1b}[31m\u{9b}2J\u{202e}<script>alert(1)<\u{61c}'\"&\\ ]]>\n\u{85}\u{7f}%s";

/// Asserts that both streams hold nothing that a terminal obeys; gives them together.
fn shown(output: &Output) -> String {
    let (out, err) = (stdout(output), stderr(output));
    hold::terminal(&out);
    hold::terminal(&err);
    assert!(!err.contains("panicked"), "{err}");
    format!("{out}{err}")
}

/// Every path below a folder, and beside it in the folder around.
fn tree(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            found.push(path.clone());
            if path.is_dir() && !path.is_symlink() {
                open.push(path);
            }
        }
    }
    found
}

/// What a command writes to a terminal.
fn on_a_terminal(command: &mut Command) -> String {
    let ends = openpty(None, None).expect("a pseudo-terminal");
    let mut child = command.stdout(ends.slave.try_clone().unwrap()).stderr(ends.slave).spawn().unwrap();
    // The command holds the other end too, and a terminal is read until nobody has it any more.
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
    let (mut bytes, mut master) = (Vec::new(), File::from(ends.master));
    // EIO once its other end is closed.
    let _ = master.read_to_end(&mut bytes);
    child.wait().unwrap();
    // The terminal itself puts a carriage return before each line's end.
    String::from_utf8_lossy(&bytes).replace("\r\n", "\n")
}

#[test]
fn a_scenario_of_any_name_is_checked_listed_and_run_without_harm() {
    let _alone = common::alone();
    let folder = tempfile::tempdir().unwrap();
    let scenarios = folder.path().join("in");
    std::fs::create_dir(&scenarios).unwrap();
    let file = scenarios.join(format!("..{NAME}.toml"));
    std::fs::write(&file, QUICK).unwrap();
    let out = folder.path().join("out");
    let run = |arguments: &[&str]| coordinator().args(arguments).arg(&file).output().unwrap();
    assert!(shown(&run(&["check"])).contains("ok, "));
    assert!(shown(&run(&["run", "--dry-run"])).contains("packed"));
    assert!(shown(&run(&["model", "--machine", "ryzen-5950x"])).contains("packed"));
    let listed = coordinator().arg("list").arg(&scenarios).output().unwrap();
    assert!(shown(&listed).contains("Does it run?"));
    let mut command = coordinator();
    command.arg("run").arg(&file).arg("--out").arg(&out);
    let ran = command.output().unwrap();
    assert!(matches!(ran.status.code(), Some(0 | 3)), "{}", shown(&ran));
    shown(&ran);
    let outside = |path: &PathBuf| !path.starts_with(&out) && path != &file && path != &scenarios;
    let strays: Vec<PathBuf> = tree(folder.path()).into_iter().filter(outside).collect();
    assert!(strays.is_empty(), "{strays:?}");
    let page = tree(&out).into_iter().find(|path| path.ends_with("report.html")).expect("a page");
    hold::page(&std::fs::read_to_string(page).unwrap());
}

#[test]
fn a_file_that_is_refused_is_named_harmlessly_by_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join(NAME);
    std::fs::write(&text, format!("{NAME} = \"{NAME}\"\n[[role]]\nname = {NAME:?}\n")).unwrap();
    let absent = folder.path().join(format!("{NAME}.absent"));
    for file in [&text, &absent] {
        for arguments in [
            &["check"][..],
            &["run"],
            &["model"],
            &["model", "--machine"],
            &["doctor"],
            &["list"],
            &["report"],
            &["compare"],
            &["explain"],
            &["export", "--format", "csv"],
            &["grade"],
            &["grade", "--watch"],
            &["advise"],
            &["import", "--struct", NAME],
            &["import", "--struct", "x", "--btf"],
            &["attach", "--file"],
            &["attach", "--segment"],
            &["attach", "--pid"],
            &["attach", "--segment", "/x", "--measured"],
            &["--no-such"],
        ] {
            let output = coordinator().args(arguments).arg(file).output().unwrap();
            // A watch goes on after what it refuses, and ends well with its input.
            let watches = arguments.contains(&"--watch");
            let ends = matches!(output.status.code(), Some(1 | 2 | 4)) || (watches && output.status.code() == Some(0));
            assert!(ends, "{arguments:?}: {}", shown(&output));
            assert!(!shown(&output).is_empty(), "{arguments:?}");
        }
    }
}

/// What a watch of an exercise refuses with the file's name in it.
#[test]
fn a_watched_file_of_any_name_is_named_harmlessly_and_each_escape_once() {
    let _alone = common::alone();
    let folder = tempfile::tempdir().unwrap();
    let exercise = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/exercises/01-two-counters");
    let starter = std::fs::read_to_string(exercise.join("starter.toml")).unwrap();
    let file = folder.path().join(format!("{NAME}.toml"));
    std::fs::write(&file, format!("{starter}\n[sweep]\nworkers = [1, 2]\n")).unwrap();
    let grade = |more: &[&str]| {
        let mut command = coordinator();
        command.args(["grade", "--exercise"]).arg(&exercise).args(more).arg(&file);
        command.output().unwrap()
    };
    let (once, watched) = (grade(&[]), grade(&["--watch"]));
    assert_eq!((once.status.code(), watched.status.code()), (Some(2), Some(0)), "{}{}", shown(&once), shown(&watched));
    for output in [once, watched] {
        let text = shown(&output);
        let line = text.lines().find(|line| line.contains("an answer is one")).unwrap_or_else(|| panic!("{text}"));
        assert!(line.starts_with("error: ") && line.contains("/\\u{1b}]0;t\\u{7}\\u{1b}[31m\\u{9b}2J"), "{line}");
        assert!(!text.contains("\\\\u{"), "escaped twice: {text}");
    }
}

/// A saved run in which every text that is no key's choice of words has the name in it.
fn hostile_run(folder: &Path) -> PathBuf {
    fn spoil(value: &mut Value, key: &str) {
        const KEPT: [&str; 14] = [
            "kind",
            "state",
            "mask",
            "severity",
            "started_utc",
            "sha256",
            "counted_by",
            "verdict",
            "reason",
            "unit",
            "schema_version",
            "level",
            "verb",
            "id",
        ];
        match value {
            Value::String(text) if !KEPT.contains(&key) => text.push_str(NAME),
            Value::Array(list) => list.iter_mut().for_each(|one| spoil(one, key)),
            Value::Object(map) => map.iter_mut().for_each(|(key, one)| spoil(one, key)),
            _ => {}
        }
    }
    let mut run: Value = serde_json::from_slice(&hostile::sound::RUN[0].bytes).unwrap();
    spoil(&mut run, "");
    let folder = folder.join(NAME);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("run.json"), serde_json::to_vec(&run).unwrap()).unwrap();
    folder
}

#[test]
fn a_run_full_of_hostile_names_is_looked_back_at_without_harm() {
    let folder = tempfile::tempdir().unwrap();
    let run = hostile_run(folder.path());
    // Another run, by its seed.
    let other = folder.path().join("other.run.json");
    let mut value: Value = serde_json::from_slice(&std::fs::read(run.join("run.json")).unwrap()).unwrap();
    value["seed"] = 1.into();
    std::fs::write(&other, value.to_string()).unwrap();
    let done = |arguments: &[&str], more: &[&PathBuf]| {
        let output = coordinator().args(arguments).arg(&run).args(more).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 3)), "{arguments:?}: {}", stderr(&output));
        output
    };
    shown(&done(&["report"], &[]));
    hold::page(&std::fs::read_to_string(run.join("report.html")).unwrap());
    shown(&done(&["compare"], &[&other]));
    shown(&done(&["compare", "--markdown"], &[&other]));
    // Data is for programs, and goes to them as it is; a terminal is shown what it would obey.
    for arguments in [
        &["compare", "--json"][..],
        &["export", "--format", "json"],
        &["export", "--format", "csv"],
        &["export", "--format", "influx"],
    ] {
        let more = if arguments[0] == "compare" { vec![&other] } else { vec![] };
        let seen = on_a_terminal(coordinator().args(arguments).arg(&run).args(&more));
        assert!(seen.contains("\\u009b") || seen.contains("\\u{9b}"), "{arguments:?}: {seen}");
        hold::terminal(&seen.replace('\t', " "));
        assert!(done(arguments, &more).stdout.windows(2).any(|pair| pair == "\u{9b}".as_bytes()), "{arguments:?}");
    }
    let mut left: Vec<PathBuf> = tree(folder.path());
    left.retain(|path| {
        !path.ends_with(NAME) && !path.ends_with("run.json") && path != &other && !path.ends_with("report.html")
    });
    assert!(left.is_empty(), "{left:?}");
}

/// A page is written in place of what stands there, and what a stranger's folder links to is left alone.
#[test]
fn nothing_is_written_through_a_link_or_waited_for_at_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let run = hostile_run(folder.path());
    let mine = folder.path().join("mine");
    std::fs::write(&mine, "mine").unwrap();
    std::os::unix::fs::symlink(&mine, run.join("report.html")).unwrap();
    let output = coordinator().arg("report").arg(&run).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(std::fs::read_to_string(&mine).unwrap(), "mine");
    for odd in ["run.json", "latency.hlog"] {
        let path = run.join(odd);
        let _ = std::fs::remove_file(&path);
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let output = coordinator().args(["export", "--format", "hlog"]).arg(&run).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains("it is no plain file"), "{}", stderr(&output));
        if odd == "run.json" {
            std::fs::remove_file(&path).unwrap();
            hostile_run(folder.path());
        }
    }
}

#[test]
fn the_note_of_hints_is_never_written_through_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let exercise = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/exercises/01-two-counters");
    let (yours, mine) = (folder.path().join("yours.toml"), folder.path().join("mine"));
    std::fs::copy(exercise.join("starter.toml"), &yours).unwrap();
    // A number of hints that no further one can be added to.
    std::fs::write(&mine, "0 4294967295\n").unwrap();
    let note = folder.path().join("yours.toml.hints");
    std::os::unix::fs::symlink(&mine, &note).unwrap();
    let graded = coordinator().arg("grade").arg(&yours).arg("--exercise").arg(&exercise).output().unwrap();
    assert_eq!(graded.status.code(), Some(1), "{}", stderr(&graded));
    shown(&graded);
    assert_eq!(std::fs::read_to_string(&mine).unwrap(), "0 4294967295\n");
    assert!(!note.is_symlink() && note.is_file());
}

/// A program whose struct's names were written over in the file, length for length.
fn hostile_program(folder: &Path) -> Option<PathBuf> {
    let source = "struct ring_of_names { long member_number_one; int member_number_two; };\nstruct ring_of_names keep;\n\
                  int main(void) { return keep.member_number_two; }\n";
    let file = folder.join("names.c");
    std::fs::write(&file, source).unwrap();
    let program = compiled::compile("gcc", &["-g"], file.to_str().unwrap(), folder, "names")?;
    let mut bytes = std::fs::read(&program).unwrap();
    for (name, odd) in [
        ("ring_of_names", "\u{1b}[2J<b>\n\u{9b}Jn"),
        ("member_number_one", "\u{202e}\u{1b}]0;\"'\\<i>\u{7}"),
        ("member_number_two", "a\n[role]\nb=\"#\u{85}1"),
    ] {
        let mut odd = odd.as_bytes().to_vec();
        odd.resize(name.len(), b'x');
        let places: Vec<usize> =
            (0..bytes.len() - name.len()).filter(|at| bytes[*at..].starts_with(name.as_bytes())).collect();
        assert!(!places.is_empty(), "{name}");
        places.into_iter().for_each(|at| bytes[at..at + name.len()].copy_from_slice(&odd));
    }
    std::fs::write(&program, bytes).unwrap();
    Some(program)
}

#[test]
fn a_struct_of_hostile_names_is_imported_without_harm() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = hostile_program(folder.path()) else { return };
    let name = "\u{1b}[2J<b>\n\u{9b}Jnx";
    let file = folder.path().join("made.toml");
    let import = || {
        let mut command = coordinator();
        command.arg("import").arg(&program).args(["--struct", name]);
        command
    };
    let written = import().arg("--emit-scenario").arg(&file).output().unwrap();
    assert_eq!(written.status.code(), Some(0), "{}", shown(&written));
    shown(&written);
    hold::terminal(&std::fs::read_to_string(&file).unwrap());
    let checked = coordinator().arg("check").arg(&file).output().unwrap();
    assert_eq!(checked.status.code(), Some(0), "a name began a line of its own: {}", shown(&checked));
    hold::terminal(&on_a_terminal(import().arg("--json")));
    let other = coordinator().arg("import").arg(&program).args(["--struct", "ring"]).output().unwrap();
    assert_eq!(other.status.code(), Some(2));
    shown(&other);
}

#[test]
fn a_process_and_a_segment_of_hostile_names_are_shown_without_harm() {
    let built = match foreign::sharer() {
        Ok(built) => built,
        Err(why) => return skip(&why),
    };
    let folder = tempfile::tempdir().unwrap();
    // Its short name is the first fifteen bytes of this.
    let program = folder.path().join("\u{1b}[2J<b>\u{202e}\n\u{9b}m");
    std::fs::copy(built, &program).unwrap();
    let name = format!("/\u{1b}]0;x\u{7}\u{202e}<script>-{}", std::process::id());
    let sharer = || {
        let mut command = Command::new(&program);
        command.args(["posix", &name]);
        Sharer::with(command)
    };
    let both = [sharer(), sharer()];
    let listed = shown(&coordinator().args(["attach", "--list", "--all"]).output().unwrap());
    hold::terminal(&on_a_terminal(coordinator().args(["attach", "--list", "--all", "--json"])));
    let watched = coordinator().args(["attach", "--segment", &name, "--for", "1s"]).output().unwrap();
    let _ = std::fs::remove_file(Path::new("/dev/shm").join(&name[1..]));
    assert!(listed.contains(&both[0].pid.to_string()), "{listed}");
    assert!(matches!(watched.status.code(), Some(0 | 4)), "{}", shown(&watched));
    assert!(shown(&watched).contains(&both[1].pid.to_string()), "{}", shown(&watched));
}
