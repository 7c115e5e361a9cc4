//! `attach --emit-scenario`: from programs in C to a scenario that the lab accepts, runs, and holds against them.

mod common;
mod foreign;

use common::{coordinator, stderr, stdout};
use foreign::{Sharer, sharer};
use plan::{Action, Step};
use record::{Attach, EmittedScenario, EmittedState};
use std::path::Path;
use std::process::Output;
use std::sync::{Mutex, MutexGuard, PoisonError};
use testing::skip;

/// Longer and longer: a machine that is busy with something else runs the programs for little of a watch.
const TIMES: [&str; 4] = ["3s", "10s", "30s", "60s"];

/// Two programs that run as long as this lives. One pair at a time: the lab's workers want some of a CPU beside them.
struct Pair {
    both: [Sharer; 2],
    segment: String,
    _alone: MutexGuard<'static, ()>,
}

/// Held by a test that watches.
fn alone() -> Option<MutexGuard<'static, ()>> {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Err(why) = sharer() {
        skip(&why);
        return None;
    }
    if !cfg!(target_arch = "x86_64") {
        skip("instructions are taken apart on x86-64 alone");
        return None;
    }
    Some(alone)
}

/// Two that count up these words of a segment.
fn pair(of: &str, words: [u32; 2]) -> Option<Pair> {
    let _alone = alone()?;
    let name = format!("{of}-{}", std::process::id());
    let first = Sharer::start("memfd", &name);
    let second = Sharer::start("file", &first.handle);
    let mut both = [first, second];
    for (one, word) in both.iter_mut().zip(words) {
        one.tell(&format!("word {word}"));
        one.order("spin 600000");
    }
    Some(Pair { both, segment: format!("memfd:{name}"), _alone })
}

/// A watch with `arguments` that saw both write: what it printed.
fn emitted(segment: &str, file: &Path, arguments: &[&str]) -> Output {
    for time in TIMES {
        let output = coordinator()
            .args(["attach", "--segment", segment, "--for", time, "--emit-scenario"])
            .arg(file)
            .args(arguments)
            .output()
            .unwrap();
        let written = std::fs::read_to_string(file).unwrap_or_default();
        if written.matches("[[role]]").count() == 2 {
            return output;
        }
        eprintln!("in {time} it saw too little: {}", stderr(&output));
        let _ = std::fs::remove_file(file);
    }
    panic!("in {} it never saw both", TIMES[3]);
}

/// The exit status that goes with what became of it.
fn status(state: EmittedState) -> i32 {
    match state {
        EmittedState::NotRun | EmittedState::Reproduced => 0,
        EmittedState::NotReproduced => 1,
        EmittedState::Unresolved => 3,
        EmittedState::HostCannot => 4,
    }
}

fn is_sound(file: &Path) {
    let check = coordinator().arg("check").arg(file).output().unwrap();
    assert!(check.status.success(), "{}", stderr(&check));
}

/// By role: the offset of the word that it counts up.
fn bumps(file: &Path) -> Vec<(String, u64)> {
    let loaded = scenario::load(file).unwrap();
    let case = &loaded.plan.arms[0].case;
    let bump = |step: &Step| match &step.action {
        Action::Bump(target) => case.fields[target.field].at,
        _ => None,
    };
    case.roles.iter().map(|role| (role.name.clone(), role.steps.iter().find_map(bump).expect("it counts"))).collect()
}

fn known_roles(made: &EmittedScenario) -> usize {
    made.roles.iter().filter(|role| role.lab_per_second.is_some()).count()
}

#[test]
fn a_pair_that_shares_a_line_falsely_becomes_a_scenario_that_the_lab_runs() {
    let Some(Pair { both, segment, _alone }) = pair("emitted", [0, 1]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pair.toml");
    let output = emitted(&segment, &file, &["--json"]);
    is_sound(&file);
    assert_eq!(bumps(&file), [("sharer_1".to_owned(), 0), ("sharer_2".to_owned(), 8)]);
    let seen: Attach = serde_json::from_str(&stdout(&output)).unwrap();
    let made = seen.scenario.expect("it was made");
    println!("{made:#?}");
    assert_eq!(output.status.code(), Some(status(made.state)), "{}", stderr(&output));
    assert_eq!(made.roles.iter().map(|role| &role.pids[..]).collect::<Vec<_>>(), [[both[0].pid], [both[1].pid]]);
    assert_eq!(made.next[0], format!("coordinator advise {}", file.display()));
    if made.state == EmittedState::Reproduced {
        assert!(known_roles(&made) == 2 && made.roles.iter().all(|role| role.reproduced == Some(true)), "{made:#?}");
    }
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("#:schema ") && text.contains("false sharing"), "{text}");
    for one in &both {
        assert!(text.contains(&format!("written by {}", one.pid)), "{text}");
    }
    assert!(text.contains("in spin+") && text.contains("sharer.c:"), "where it is done: {text}");
    let again = coordinator().args(["attach", "--segment", &segment, "--emit-scenario"]).arg(&file).output().unwrap();
    assert_eq!(again.status.code(), Some(2), "nothing is overwritten: {}", stderr(&again));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn a_clean_pair_is_written_with_its_lines_apart_and_the_page_says_what_the_lab_has() {
    let Some(Pair { both: _both, segment, _alone }) = pair("emitted-clean", [0, 64]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("clean.toml");
    let output = emitted(&segment, &file, &[]);
    is_sound(&file);
    assert_eq!(bumps(&file), [("sharer_1".to_owned(), 0), ("sharer_2".to_owned(), 512)]);
    let page = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, told) = page.split_once(&format!("As a scenario: {} ", file.display())).unwrap_or_else(|| panic!("{page}"));
    let verdicts = [("not reproduced:", 1), ("reproduced:", 0), ("unresolved:", 3), ("this host cannot run it:", 4)];
    let (verdict, status) = verdicts.iter().find(|(word, _)| told.starts_with(word)).expect("a verdict");
    assert_eq!(output.status.code(), Some(*status), "{verdict} {page}");
    assert!(page.contains("next: coordinator advise"), "{page}");
    assert!(!page.contains("false sharing"), "{page}");
}

#[test]
fn without_a_run_it_is_written_and_nobody_s_cpu_is_taken() {
    let Some(Pair { both: _both, segment, _alone }) = pair("emitted-only", [0, 1]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("only.toml");
    let output = emitted(&segment, &file, &["--no-run", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    is_sound(&file);
    let seen: Attach = serde_json::from_str(&stdout(&output)).unwrap();
    let made = seen.scenario.expect("it was made");
    assert!(made.state == EmittedState::NotRun && known_roles(&made) == 0, "{made:#?}");
    assert!(!stderr(&output).contains("the lab runs it"), "{}", stderr(&output));
}

#[test]
fn threads_of_one_process_with_words_of_their_own_are_roles_of_one_process() {
    let Some(_alone) = alone() else { return };
    let name = format!("emitted-threads-{}", std::process::id());
    let mut one = Sharer::start("memfd", &name);
    one.tell("beside 64");
    one.order("spin 600000");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("threads.toml");
    let output = emitted(&format!("memfd:{name}"), &file, &["--no-run", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    is_sound(&file);
    assert_eq!(bumps(&file), [("sharer_1".to_owned(), 0), ("sharer_2".to_owned(), 512)]);
    let seen: Attach = serde_json::from_str(&stdout(&output)).unwrap();
    let roles = seen.scenario.expect("it was made").roles;
    let told: Vec<_> = roles.iter().map(|role| (&role.pids[..], role.tids.len(), role.workers)).collect();
    assert_eq!(told, [(&[one.pid][..], 1, 1), (&[one.pid][..], 1, 1)]);
    assert!(
        roles[0].tids == [one.pid] && roles[1].tids != roles[0].tids,
        "the first thread counts up word 0: {roles:#?}"
    );
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("process = \"sharer_1\"") && text.contains(&format!("threads {}:", one.pid)), "{text}");
}
