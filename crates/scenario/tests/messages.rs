//! How refusals are shown: colour, escapes, many at once, files that are none, and faults found after parsing.

use plan::BindError;
use scenario::{Refusal, parse, parse_with};

const SOUND: &str = "placement = 'packed'\n[measure]\nbaselines = ['solo']\n[field.b]\ntype = 'u64'\n\
     [[variant]]\nname = 'own'\nplacement = { pad = 64 }\n[[variant]]\nname = 'top'\n[variant.set]\nworkers = 2\n\
     [[role]]\nname = 'counter'\nloop = ['add b']\n[sweep]\nshift = [0, 8]\n'role.counter.cpus' = [[0], [9]]\n";

fn refused(text: &str) -> Refusal {
    parse("lab.toml", text).expect_err("refused")
}

#[test]
fn colour_adds_escapes_and_changes_no_word() {
    let refusal = refused("windw = 1\n");
    let (plain, coloured) = (refusal.render(false), refusal.render(true));
    assert!(!plain.contains('\u{1b}') && coloured.contains("\u{1b}["));
    let mut stripped = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, behind)) = rest.split_once('\u{1b}') {
        stripped.push_str(before);
        rest = behind.split_once('m').expect("the end of a colour").1;
    }
    stripped.push_str(rest);
    assert_eq!(stripped, plain);
    assert_eq!(refusal.to_string(), plain);
}

/// A scenario from a stranger must not be able to drive the terminal of who checks it.
#[test]
fn control_characters_are_shown_escaped() {
    let names = ["\u{1b}[31m", "\u{9b}31m", "\u{202e}", "\u{7}", "\u{200b}", "\u{85}"];
    for name in names {
        let escaped: String = name.chars().map(|c| format!("\\u{:04X}", c as u32)).collect();
        let texts = [
            format!("\"{escaped}\" = 1\n"),
            format!("'{name}' = 1\n"),
            format!("[[role]]\nname = \"{escaped}\"\nloop = [\"{escaped}\"]\n"),
            format!("[[expect]]\nclaim = \"{escaped}\"\n# {name}\n[[role]]\nname = 'a'\nloop = ['pause']\n"),
            format!("{name}\n"),
        ];
        for text in texts {
            for path in ["lab.toml", name] {
                let shown = parse(path, &text).expect_err("refused").render(false);
                let wild: Vec<char> = shown
                    .chars()
                    .filter(|c| c.is_control() && *c != '\n' || ('\u{200b}'..='\u{206f}').contains(c))
                    .collect();
                assert!(wild.is_empty(), "{wild:?} in {shown:?}");
            }
        }
    }
}

#[test]
fn ten_problems_are_shown_in_file_order_and_the_rest_counted() {
    let text: String = (0..13).map(|number| format!("unknown{number} = 1\n")).collect();
    let refusal = refused(&text);
    let shown = refusal.render(false);
    let lines: Vec<usize> = (1..14).filter_map(|line| shown.find(&format!("lab.toml:{line}:1"))).collect();
    assert_eq!(lines.len(), 10);
    assert!(lines.is_sorted());
    assert_eq!(refusal.count(), 14, "thirteen keys, and no role");
    assert!(shown.ends_with("note: 4 more problems not shown"), "{shown}");
}

#[test]
fn a_long_file_of_nonsense_is_refused_in_time() {
    let text: String = (0..60_000).map(|number| format!("k{number} = 1\n")).collect();
    assert!(refused(&text).count() >= 1_000);
}

#[test]
fn files_that_are_no_scenario_are_refused_with_the_cure() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let shown = |name: &str| {
        let refusal = scenario::load(&at(name)).expect_err("refused").render(false);
        refusal.replace(&folder.path().display().to_string(), "DIR")
    };
    let missing = shown("missing.toml");
    assert!(missing.starts_with("error: cannot read the scenario file: No such file or directory"), "{missing}");
    assert!(missing.contains("--> DIR/missing.toml\n"), "{missing}");
    assert!(missing.contains("= help: check the path"), "{missing}");

    std::fs::create_dir(at("folder")).expect("a folder");
    assert_eq!(
        shown("folder"),
        "error: this is a directory, not a scenario file\n--> DIR/folder\n \
         = help: name a scenario file in it, such as scenarios/false_sharing.toml"
    );

    std::fs::write(at("latin1.toml"), b"title = 'x'\nquestion = '\xe9'\n").expect("a file");
    assert_eq!(
        shown("latin1.toml"),
        "error: the file is not UTF-8 text: invalid byte at offset 24, on line 2\n--> DIR/latin1.toml\n \
         = help: save it as UTF-8"
    );

    std::fs::write(at("large.toml"), vec![b'#'; (1 << 20) + 1]).expect("a file");
    assert!(shown("large.toml").starts_with("error: the file is larger than 1 MiB"), "{}", shown("large.toml"));
    std::fs::write(at("largest.toml"), vec![b'#'; 1 << 20]).expect("a file");
    assert!(shown("largest.toml").contains("has no role"), "{}", shown("largest.toml"));
}

#[test]
fn a_device_is_not_read() {
    let shown = scenario::load("/dev/zero".as_ref()).expect_err("refused").render(false);
    assert!(shown.starts_with("error: this is not a plain file"), "{shown}");
}

fn bind_error(path: &str) -> BindError {
    BindError { path: path.to_owned(), message: "the machine says no".to_owned(), cure: "ask another".to_owned() }
}

/// The first line that is underlined, for a fault at `path`.
fn blamed(path: &str, flags: &[(&str, &str)]) -> String {
    let flags: Vec<(String, String)> =
        flags.iter().map(|(path, value)| (path.to_string(), value.to_string())).collect();
    let loaded = parse_with("lab.toml", SOUND, &flags);
    let source = loaded.unwrap_or_else(|refusal| panic!("{}", refusal.render(false))).source;
    let shown = source.refuse(&bind_error(path)).render(false);
    assert!(shown.starts_with("error: the machine says no\n") && shown.ends_with("= help: ask another"), "{shown}");
    let lines: Vec<&str> = shown.lines().collect();
    let marked = lines.iter().position(|line| line.contains('^')).unwrap_or_else(|| panic!("{shown}"));
    let (from, to) = (lines[marked].find('^').unwrap_or(0), lines[marked].rfind('^').unwrap_or(0));
    format!("{}: {}", lines[marked - 1].split('|').next().unwrap_or("").trim(), &lines[marked - 1][from..=to])
}

#[test]
fn faults_found_later_are_shown_where_their_path_is() {
    assert_eq!(blamed("placement", &[]), "1: 'packed'");
    assert_eq!(blamed("measure.baselines", &[]), "3: ['solo']");
    assert_eq!(blamed("field.b.type", &[]), "5: 'u64'");
    assert_eq!(blamed("variant.own.placement", &[]), "8: { pad = 64 }");
    assert_eq!(blamed("role.counter.loop", &[]), "15: ['add b']");
    assert_eq!(blamed("role.counter.loop.0", &[]), "15: 'add b'");
    assert_eq!(blamed("sweep.shift", &[]), "17: [0, 8]");
}

#[test]
fn a_path_that_is_not_written_out_is_shown_at_what_encloses_it() {
    assert_eq!(blamed("field.b.at", &[]), "4: b");
    assert_eq!(blamed("variant.top.placement", &[]), "1: 'packed'", "inherited");
    assert_eq!(blamed("role.counter.name.more", &[]), "14: 'counter'");
    assert_eq!(blamed("measure.window", &[]), "2: measure");
}

#[test]
fn a_path_that_an_arm_sets_is_shown_there() {
    assert_eq!(blamed("role.counter.workers", &[]), "12: 2");
    assert_eq!(blamed("role.counter.cpus", &[]), "18: [0]");
    assert_eq!(blamed("role.counter.cpus.0", &[]), "18: [0]", "an arm's value is shown whole");
    assert_eq!(blamed("role.counter.cpus", &[("cpus", "[7]")]), ": [7]");
}

/// Events are counted through, whichever string they stand in.
#[test]
fn an_event_found_wrong_on_this_machine_is_shown_alone() {
    let blamed = |events: &str, path: &str, flags: &[(String, String)]| {
        let text = format!("[measure]\nevents = {events}\n[[role]]\nname = 'a'\nloop = ['pause']\n");
        let loaded = parse_with("lab.toml", &text, flags).unwrap_or_else(|refusal| panic!("{}", refusal.render(false)));
        let shown = loaded.source.refuse(&bind_error(path)).render(false);
        let lines: Vec<&str> = shown.lines().collect();
        let marked = lines.iter().position(|line| line.contains('^')).unwrap_or_else(|| panic!("{shown}"));
        let (from, to) = (lines[marked].find('^').unwrap_or(0), lines[marked].rfind('^').unwrap_or(0));
        lines[marked - 1][from..=to].to_owned()
    };
    let events = "['faults,  cache-mises', 'r1']";
    assert_eq!(blamed(events, "measure.events.0", &[]), "faults");
    assert_eq!(blamed(events, "measure.events.1", &[]), "cache-mises");
    assert_eq!(blamed(events, "measure.events.2", &[]), "r1");
    let escaped = r#""\u00721,r2""#;
    assert_eq!(blamed(escaped, "measure.events.1", &[]), escaped, "a text with escapes is shown whole");
    let flag = [("measure.events".to_owned(), "[\"cs:k\", \"shed:x\"]".to_owned())];
    assert_eq!(blamed(events, "measure.events.1", &flag), "shed:x");
}

/// What binding the smallest scenario with a lock and these steps says.
fn unbalanced(steps: &str) -> String {
    let text = format!("[lock.m]\n[[role]]\nname = 'counter'\nloop = [{steps}]\n");
    let loaded = parse("lab.toml", &text).unwrap_or_else(|refusal| panic!("{}", refusal.render(false)));
    let cpu = plan::Cpu { id: plan::CpuId(0), core: 0, llc: 0, node: 0, socket: 0, usable: true };
    let error = plan::bind(&loaded.plan, &plan::Topology { cpus: vec![cpu] }, 1).expect_err("refused");
    loaded.source.refuse(&error).render(false)
}

/// Two rules once contradicted each other here: the cure of the first was refused by the second.
#[test]
fn a_lock_in_some_passes_is_refused_at_its_step_with_a_cure_that_is_accepted() {
    let expected = "error: role `counter`: step `every 2 lock m` would run in some passes only, but what it does must \
                    hold in each\n --> lab.toml:4:9\n  |\n4 | loop = ['every 2 lock m', 'unlock m']\n  |         \
                    ^^^^^^^^^^^^^^^^\n  |\n  = help: lock and unlock in every pass; put `every` before the steps \
                    between them";
    assert_eq!(unbalanced("'every 2 lock m', 'unlock m'"), expected);
    assert_eq!(unbalanced("'every 2 lock m', 'every 2 unlock m'"), expected.replace("'unlock", "'every 2 unlock"));
}

#[test]
fn a_lock_taken_twice_kept_or_not_held_is_refused_at_its_step() {
    let at = |steps: &str, column: usize, said: &str| {
        let shown = unbalanced(steps);
        assert!(shown.contains(&format!("lab.toml:4:{column}\n")) && shown.contains(said), "{shown}");
    };
    at("'lock m', 'lock m'", 19, "takes `m`, which this pass holds already");
    at("'pause', 'lock m'", 18, "takes `m`, and the pass ends without releasing it");
    at("'unlock m', 'lock m'", 9, "releases `m`, which this pass does not hold");
}

#[test]
fn a_fault_without_a_place_names_the_file() {
    let source = parse("lab.toml", SOUND).unwrap_or_else(|refusal| panic!("{}", refusal.render(false))).source;
    let shown = source.refuse(&bind_error("nowhere.at.all")).render(false);
    assert_eq!(shown, "error: the machine says no\n--> lab.toml\n = help: ask another");
    assert_eq!((source.path.as_str(), source.text.as_str()), ("lab.toml", SOUND));
}
