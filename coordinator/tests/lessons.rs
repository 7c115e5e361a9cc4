//! The lessons in docs/lessons do not rot: their commands run, their links lead somewhere, their scenarios are sound, and
//! what a lesson is about tells its reference from its starter and from the wrong repair. All of that without a clock:
//! what is measured here is not looked at.

mod common;

use common::{alone, coordinator, stderr, stdout};
use plan::expect::Metric;
use plan::{Action, Plan};
use record::{Import, LayoutRow, ModelRun, ModelRunArm};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use testing::skip;

/// What every lesson's text has, in this order.
const PARTS: [&str; 8] =
    ["What you need to know", "Predict", "Run", "Look", "Explain", "Change one thing", "Check", "Further"];

/// The three scenarios of a lesson.
const FILES: [&str; 3] = ["starter", "reference", "wrong"];

/// How long the windows of the lessons' runs are here: `first_touch.toml` begins its work at 19 ms.
const WINDOW: &str = "25ms";

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The folders of the lessons, in order.
fn lessons() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(project().join("docs/lessons")).unwrap().map(|entry| entry.unwrap().path());
    let mut folders: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    assert_eq!(folders.len(), 9);
    folders
}

fn lesson(number: usize) -> PathBuf {
    lessons().swap_remove(number - 1)
}

fn text(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("README.md")).unwrap()
}

fn plan(folder: &Path, file: &str) -> Plan {
    let path = folder.join(format!("{file}.toml"));
    scenario::load(&path).unwrap_or_else(|refusal| panic!("{}", refusal.render(false))).plan
}

// Commands

/// Blocks of a text that are to be run, with the words behind `run`: ```` ```sh run cc ````.
fn blocks(text: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(needs) = line.strip_prefix("```sh run") {
            let code = lines.by_ref().take_while(|line| *line != "```");
            blocks.push((needs.trim().to_owned(), code.fold(String::new(), |all, line| all + line + "\n")));
        }
    }
    blocks
}

/// Stands in for `coordinator` in a lesson's commands: runs are short, the numbers that they ask for are given, and
/// claims that fail or stay open are no failure, nor are rates that the lab does not have. Whatever else goes wrong is.
fn stand_in(folder: &Path) -> PathBuf {
    let path = folder.join("coordinator");
    let program = env!("CARGO_BIN_EXE_coordinator");
    let script = format!(
        "#!/bin/sh\ncase \"$1\" in\nrun) printf '1\\n1\\n1\\n' | '{program}' \"$@\" --window {WINDOW} --repetitions 1 ;;\n\
         *) '{program}' \"$@\" ;;\nesac\nstatus=$?\ncase \"$1,$status\" in run,1|run,3|advise,3|attach,[13]) exit 0 ;; esac\n\
         exit $status\n"
    );
    std::fs::write(&path, script).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// A copy of what the commands use, in which they may write.
fn workplace() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(place.path().join("docs")).unwrap();
    for (from, to) in [("docs/lessons", "docs"), ("scenarios", ".")] {
        let status = Command::new("cp").arg("-r").arg(project().join(from)).arg(place.path().join(to)).status();
        assert!(status.unwrap().success());
    }
    place
}

fn is_installed(program: &str) -> bool {
    let version = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    version.is_ok_and(|status| status.success())
}

fn shell(code: &str, place: &Path, stand_in: &Path) -> Output {
    let path = std::env::var("PATH").unwrap_or_default();
    let folder = stand_in.parent().unwrap().display();
    // Programs of the lessons that count for seconds count for tenths.
    let quick = ["./server ", "./logger "].iter().fold(code.to_owned(), |code, name| {
        let times = ["1", "2"].iter().flat_map(|s| [" ", "\n"].map(|end| format!("{s}{end}")));
        times.fold(code, |code, s| code.replace(&format!("{name}{s}"), &format!("{name}0.{s}")))
    });
    let mut command = Command::new("sh");
    command.args(["-eu", "-c", &quick]).current_dir(place).env("PATH", format!("{folder}:{path}")).env("COLUMNS", "80");
    command.stdin(Stdio::null()).output().unwrap()
}

fn commands_run(numbers: std::ops::RangeInclusive<usize>) {
    let _alone = alone();
    let (place, tools) = (workplace(), tempfile::tempdir().unwrap());
    let stand_in = stand_in(tools.path());
    for number in numbers {
        let folder = lesson(number);
        let blocks = blocks(&text(&folder));
        assert!(blocks.len() >= 3, "{}: {blocks:?}", folder.display());
        for (needs, code) in blocks {
            if let Some(missing) = needs.split_whitespace().chain(["taskset"]).find(|name| !is_installed(name)) {
                skip(&format!("a command of lesson {number} needs {missing}"));
                continue;
            }
            let output = shell(&code, place.path(), &stand_in);
            let said = stderr(&output);
            if said.contains("this host can place no arm") {
                skip(&format!("this machine has too few CPUs for lesson {number}"));
                continue;
            }
            let status = output.status.code();
            let failed = said.lines().any(|line| line.starts_with("error"));
            assert!(status == Some(0) && !failed, "{code}\n{status:?}\n{said}\n{}", stdout(&output));
        }
    }
}

#[test]
fn the_commands_of_lessons_1_to_3_run() {
    commands_run(1..=3);
}

#[test]
fn the_commands_of_lessons_4_to_6_run() {
    commands_run(4..=6);
}

#[test]
fn the_commands_of_lessons_7_to_9_run() {
    commands_run(7..=9);
}

// Texts

#[test]
fn every_lesson_has_its_parts_and_three_hints() {
    for (number, folder) in (1..).zip(lessons()) {
        let text = text(&folder);
        assert!(text.starts_with(&format!("# Lesson {number}: ")), "{}", folder.display());
        let headings: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(headings, PARTS, "{}", folder.display());
        assert!(text.contains("**It takes** an hour. **It needs** "), "{}", folder.display());
        let hints = std::fs::read_to_string(folder.join("hints.md")).unwrap();
        let numbered = |hint: usize| hints.lines().filter(|line| line.starts_with(&format!("{hint}. "))).count();
        assert_eq!([1, 2, 3, 4].map(numbered), [1, 1, 1, 0], "{hints}");
        for file in FILES {
            assert!(file == "starter" || text.contains(&format!("/{file}.toml")), "{}: {file}", folder.display());
        }
        assert!(text.contains("--predict '"), "{}: nothing is predicted", folder.display());
    }
}

#[test]
fn every_link_and_every_file_that_is_named_is_there() {
    let texts = lessons().into_iter().map(|folder| folder.join("README.md"));
    for path in texts.chain([project().join("docs/lessons/README.md"), project().join("docs/diagnoses.md")]) {
        let text = std::fs::read_to_string(&path).unwrap();
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.starts_with("http") && !link.starts_with('#')) {
            let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
            let target = path.parent().unwrap().join(file);
            assert!(target.exists(), "{}: {link}", path.display());
            if let Some(anchor) = anchor {
                assert!(anchors(&target).contains(anchor), "{}: {link}", path.display());
            }
        }
        let words = text.split(|c: char| c.is_whitespace() || "`(),;:".contains(c));
        for word in words.map(|word| word.trim_end_matches('.')).filter(|word| word.starts_with("scenarios/")) {
            assert!(project().join(word).exists(), "{}: {word}", path.display());
        }
    }
}

/// The anchors of a text's headings, as GitHub makes them.
fn anchors(path: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let anchor = |heading: &str| -> String {
        let kept =
            heading.to_lowercase().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c)).collect::<String>();
        kept.replace(' ', "-")
    };
    headings.map(anchor).collect()
}

#[test]
fn explain_shows_each_of_them_and_refuses_what_it_does_not_know() {
    for name in ["1", "09-foreign-processes", "tlb_shootdown", "lock word shares line"] {
        let output = coordinator().args(["explain", name]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(stdout(&output).lines().count() > 10, "{name}");
    }
    let all = stdout(&coordinator().arg("explain").output().unwrap());
    assert!(all.contains("05-spin-or-sleep") && all.contains("owner_died"), "{all}");
    let unknown = coordinator().args(["explain", "fals_sharing"]).output().unwrap();
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("did you mean `false_sharing`?"), "{}", stderr(&unknown));
}

// Scenarios

#[test]
fn starters_references_and_wrong_repairs_are_sound_and_ask_the_same() {
    for folder in lessons() {
        let [starter, reference, wrong] = FILES.map(|file| plan(&folder, file));
        assert_eq!((&starter.title, &starter.question), (&reference.title, &reference.question));
        assert_eq!((&starter.title, &starter.question), (&wrong.title, &wrong.question));
        assert!(!starter.question.is_empty() && !starter.expects.is_empty(), "{}", folder.display());
        let roles = |plan: &Plan| -> Vec<(String, u32)> {
            plan.arms
                .iter()
                .flat_map(|arm| arm.case.roles.iter().map(|role| (role.name.clone(), role.workers)))
                .collect()
        };
        assert_eq!(roles(&starter), roles(&reference), "{}", folder.display());
        assert_eq!(roles(&starter), roles(&wrong), "{}", folder.display());
        let files = FILES.map(|file| folder.join(format!("{file}.toml")));
        let output = coordinator().arg("check").args(&files).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let claims = |plan: &Plan| plan.expects.iter().map(|claim| claim.text.clone()).collect::<Vec<_>>();
        // In the lesson on counters it is the claim that is repaired.
        if folder != lesson(7) {
            assert_eq!(claims(&starter), claims(&reference), "{}", folder.display());
            assert_eq!(claims(&starter), claims(&wrong), "{}", folder.display());
        }
    }
}

fn modelled(folder: &Path, file: &str) -> ModelRun {
    let mut command = coordinator();
    command.arg("model").arg(folder.join(format!("{file}.toml"))).args(["--machine", "epyc-7r13", "--json"]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap()
}

fn arm<'a>(run: &'a ModelRun, name: &str) -> &'a ModelRunArm {
    run.arms.iter().find(|arm| arm.name == name).unwrap_or_else(|| panic!("no arm {name}"))
}

fn pass_ns(run: &ModelRun, name: &str) -> f64 {
    let arm = arm(run, name);
    arm.modelled.role(&arm.headline_role).and_then(|role| role.ns_per_op).unwrap_or_else(|| panic!("{name}: no pass"))
}

/// How many times as long a pass takes as with a copy for each worker, on paper.
fn sharing_costs(folder: &Path, file: &str) -> f64 {
    let run = modelled(folder, file);
    pass_ns(&run, "base") / pass_ns(&run, "unshared:base")
}

/// Lines that several workers write.
fn shared_lines(rows: &[LayoutRow]) -> BTreeSet<u64> {
    let writers =
        |line: u64| rows.iter().filter(move |row| row.line == line).flat_map(|row| row.writers.iter().copied());
    let lines = rows.iter().map(|row| row.line);
    lines.filter(|line| writers(*line).collect::<BTreeSet<u32>>().len() > 1).collect()
}

/// By the layout: in the starter and in the wrong repair some line has two writers, in the reference none.
#[test]
fn a_layout_that_is_repaired_has_no_line_with_two_writers() {
    for number in [1, 2, 9] {
        let folder = lesson(number);
        for (file, is_shared) in FILES.into_iter().zip([true, false, true]) {
            let run = modelled(&folder, file);
            let base = arm(&run, "base");
            assert_eq!(!shared_lines(&base.layout).is_empty(), is_shared, "{number}, {file}: {:?}", base.layout);
        }
    }
}

/// By the model: what the claims of these lessons ask for is so in the reference, and far from it in the others.
#[test]
fn what_sharing_costs_tells_the_reference_from_the_others_on_paper() {
    for (number, holds, fails) in [(1, 1.1, 1.5), (2, 1.5, 2.0), (3, 1.25, 1.5), (9, 1.1, 1.5)] {
        let folder = lesson(number);
        let [starter, reference, wrong] = FILES.map(|file| sharing_costs(&folder, file));
        let all = format!("lesson {number}: {starter}, {reference}, {wrong}");
        assert!(reference <= holds && starter >= fails && wrong >= fails, "{all}");
    }
}

#[test]
fn lesson_1_takes_three_lines_and_no_more() {
    for file in FILES {
        assert!(arm(&modelled(&lesson(1), file), "base").bytes <= 192, "{file}");
    }
}

#[test]
fn lesson_3_books_as_often_and_holds_the_lock_for_less() {
    let held = |file| {
        let plan = plan(&lesson(3), file);
        let steps = &plan.arms[0].case.roles[0].steps;
        let at = |wanted: fn(&Action) -> bool| steps.iter().position(|step| wanted(&step.action)).unwrap();
        let section = at(|a| matches!(a, Action::Lock { .. }))..at(|a| matches!(a, Action::Unlock { .. }));
        let texts: Vec<&str> = steps[section].iter().map(|step| step.text.as_str()).collect();
        assert!(texts.contains(&"bump balance"), "{file}: {texts:?}");
        let works = texts.iter().filter(|text| text.starts_with("work")).count();
        (works, steps.len())
    };
    assert_eq!(FILES.map(held), [(1, 5), (0, 5), (1, 5)]);
}

#[test]
fn lesson_4_repairs_the_measurement_and_not_the_server() {
    let [starter, reference, wrong] = FILES.map(|file| plan(&lesson(4), file));
    let client = |plan: &Plan| plan.arms[0].case.roles.iter().find(|role| role.name == "client").unwrap().clone();
    assert_eq!([&starter, &reference, &wrong].map(|plan| client(plan).period.is_some()), [false, true, false]);
    for plan in [&starter, &reference, &wrong] {
        let loops = |plan: &Plan| -> Vec<String> {
            plan.arms[0].case.roles.iter().flat_map(|role| role.steps.iter().map(|step| step.text.clone())).collect()
        };
        assert_eq!(loops(plan), loops(&starter));
    }
    assert!(wrong.arms[0].window.0 > starter.arms[0].window.0, "the wrong repair measures for longer");
}

#[test]
fn lesson_5_has_waiters_that_spin_on_their_owner_s_cpu_but_for_the_reference() {
    let spins = |file| plan(&lesson(5), file).arms[0].case.locks[0].kind.spins();
    assert_eq!(FILES.map(spins), [true, false, true]);
}

#[test]
fn lesson_6_gives_pages_back_but_for_the_reference() {
    let gives_back = |file| {
        let plan = plan(&lesson(6), file);
        let mine = plan.arms.iter().find(|arm| arm.name == "mine").unwrap();
        let culprit = mine.case.roles.iter().find(|role| role.name == "culprit").unwrap();
        culprit.steps.iter().any(|step| ["punch", "remove"].iter().any(|verb| step.text.starts_with(verb)))
    };
    assert_eq!(FILES.map(gives_back), [true, false, true]);
}

#[test]
fn lesson_7_asks_for_a_count_that_sleeping_makes() {
    let counters = |file| {
        let expects = plan(&lesson(7), file).expects;
        let named = expects.into_iter().map(|claim| match claim.left.metric {
            Metric::CounterPerOp(name) | Metric::CounterPerSecond(name) => name,
            other => panic!("{file}: {other:?}"),
        });
        named.collect::<BTreeSet<String>>().into_iter().collect::<Vec<_>>().join(" ")
    };
    let switches = ["context_switches_involuntary", "context_switches_voluntary", "context_switches_involuntary"];
    assert_eq!(FILES.map(counters), switches);
}

/// With two workers all three are well, and with 48 the reference alone.
#[test]
fn lesson_8_is_told_by_the_model_of_a_larger_machine() {
    let slower = FILES.map(|file| {
        let run = modelled(&lesson(8), file);
        let [alone, two, many] = ["solo:counter", "base@workers=2", "base@workers=48"].map(|arm| pass_ns(&run, arm));
        (two / alone, many / two)
    });
    let all = format!("{slower:?}");
    let [starter, reference, wrong] = slower;
    assert!(reference.1 <= 1.5 && wrong.1 >= 2.0 && starter.1 >= 2.0 * wrong.1, "{all}");
    assert!(reference.0 <= 1.1 && wrong.0 <= 1.5, "{all}");
}

/// The scenarios of lesson 9 have the members of the headers' struct where a compiler puts them.
#[test]
fn lesson_9_s_scenarios_are_its_headers() {
    if !is_installed("cc") {
        return skip("cc cannot be run");
    }
    let place = tempfile::tempdir().unwrap();
    let folder = lesson(9);
    for file in FILES {
        let program = place.path().join(file);
        let header = folder.join(format!("{file}.h"));
        let mut cc = Command::new("cc");
        cc.args(["-O2", "-g", "-Wall", "-Wextra", "-Werror", "-include"]).arg(header).arg(folder.join("server.c"));
        let output = cc.arg("-o").arg(&program).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let output = coordinator().arg("import").arg(&program).args(["--struct", "stats", "--json"]).output().unwrap();
        let import: Import = serde_json::from_str(&stdout(&output)).unwrap();
        let mut compiled = String::new();
        for field in &import.fields {
            write!(compiled, "{} {}; ", field.name, field.offset).unwrap();
        }
        let fields = &plan(&folder, file).arms[0].case.fields;
        let written: String = fields.iter().map(|field| format!("{} {}; ", field.name, field.at.unwrap())).collect();
        assert_eq!(compiled, written, "{file}");
    }
}
