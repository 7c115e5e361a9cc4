//! The JSON Schema of `coordinator schema`, against the reader: whatever scenario the reader accepts, a validator that
//! knows nothing of the lab accepts by the schema; and what the schema refuses, the reader refuses too.

mod common;

use common::{QUICK, coordinator, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::Command;
use testing::skip;

/// Reads file names and says of each `accepted` or where it is refused, by Python's packages tomllib and jsonschema.
const PYTHON: &str = r#"
import json, sys, tomllib
from jsonschema import Draft7Validator
schema = json.load(open(sys.argv[1]))
Draft7Validator.check_schema(schema)
validator = Draft7Validator(schema)
for name in sys.argv[2:]:
    errors = list(validator.iter_errors(tomllib.load(open(name, "rb"))))
    print("accepted" if not errors else "refused at " + "; ".join(sorted(e.json_path for e in errors)))
"#;

/// What the reader and the schema both refuse: an edit of [`QUICK`], and where the schema does.
const BAD: &[(&str, &str, &str)] = &[
    ("window = \"20ms\"", "windw = \"20ms\"", "$.measure"),
    ("window = \"20ms\"", "window = \"20 ms\"", "$.measure.window"),
    ("window = \"20ms\"", "window = 20", "$.measure.window"),
    ("repetitions = 3", "repetitions = 0", "$.measure.repetitions"),
    ("repetitions = 3", "repetitions = \"many\"", "$.measure.repetitions"),
    ("repetitions = 3", "precision = \"100%\"", "$.measure.precision"),
    ("repetitions = 3", "baselines = [\"solo\", \"solo\"]", "$.measure.baselines"),
    ("type = \"u64\"", "", "$"),
    ("type = \"u64\"", "type = \"int\"", "$.field.hits.type"),
    ("each = \"worker\"", "each = \"worker\"\ncount = 2", "$.field.hits"),
    ("[field.hits]", "[field.Hits]", "$.field"),
    ("[field.hits]", "[fields.hits]", "$"),
    ("placement = \"packed\"", "placement = \"tight\"", "$.variant[0].placement"),
    ("{ pad = 128 }", "{ pad = 100 }", "$.variant[1].placement"),
    ("{ pad = 128 }", "{ pad = 128, strategy = \"packed\" }", "$.variant[1].placement"),
    ("{ pad = 128 }", "{}", "$.variant[1].placement"),
    ("name = \"padded\"", "", "$.variant[1]"),
    ("name = \"padded\"", "name = \"control\"", "$.variant[1].name"),
    ("name = \"counter\"", "name = \"a counter\"", "$.role[0].name"),
    ("workers = 2", "workers = 2000", "$.role[0].workers"),
    ("workers = 2", "cpus = \"near\"", "$.role[0].cpus"),
    ("workers = 2", "rate = \"50k\"", "$.role[0].rate"),
    ("\"bump hits[me]\"", "", "$.role[0].loop"),
    ("\"bump hits[me]\"", "\"bmp hits[me]\"", "$.role[0].loop[0]"),
    ("\"bump hits[me]\"", "\"bump hits[mine]\"", "$.role[0].loop[0]"),
    ("\"bump hits[me]\"", "\"every two bump hits[me]\"", "$.role[0].loop[0]"),
    ("\"bump hits[me]\"", "\"work 10\"", "$.role[0].loop[0]"),
    ("\"bump hits[me]\"", "\"post hits[all]\"", "$.role[0].loop[0]"),
    ("\"bump hits[me]\"", "\"pause hits[me]\"", "$.role[0].loop[0]"),
    ("[[role]]", "[sweep]\nworkers = 2\n[[role]]", "$.sweep.workers"),
    ("[[role]]", "[sweep]\nworkers = []\n[[role]]", "$.sweep.workers"),
    ("[[role]]", "[sweep]\n\"measure.budget\" = [\"1s\"]\n[[role]]", "$.sweep"),
    ("[[role]]", "[sweep]\n\"role.counter.wrkers\" = [2]\n[[role]]", "$.sweep"),
    (
        "[[role]]",
        "[variant.set]\n\"role.counter.workers\" = \"two\"\n[[role]]",
        "$.variant[1].set['role.counter.workers']",
    ),
    ("[[role]]", "[variant.set]\nplacement = \"packed\"\n[[role]]", "$.variant[1].set"),
    ("[[role]]", "[[expect]]\nclaim = \"ns_per_op(packed) == 3\"\n[[role]]", "$.expect[0].claim"),
    ("[[role]]", "[[expect]]\nclaim = \"speed(packed) > 3\"\n[[role]]", "$.expect[0].claim"),
    ("[[role]]", "[[expect]]\nclaim = \"ns_per_op(packed) > 3\"\nwhen = \"cores > 2\"\n[[role]]", "$.expect[0].when"),
];

/// What both accept, beside the lab's scenarios: every way of writing a thing.
const GOOD: &[(&str, &str)] = &[
    ("[[role]]", "[sweep]\nworkers = [1, 2]\n\"role.counter.loop\" = [[\"add hits[me]\"]]\n[[role]]"),
    ("[[role]]", "[sweep.role.counter]\nworkers = [1, 2]\n[sweep.measure]\nwindow = [\"1ms\", \"2ms\"]\n[[role]]"),
    ("[[role]]", "[variant.set]\n\"role . counter\" = { workers = 1 }\nmeasure.window = \"5ms\"\n[[role]]"),
    ("\"bump hits[me]\"", "\"every  64 add hits [ 1 ]\", \"work 1.5us\", \"load hits[any]\""),
    ("type = \"u64\"\neach = \"worker\"\n", "each = \"worker\"\n[sweep]\n\"field.hits.type\" = [\"u32\", \"u64\"]\n"),
    ("[[role]]", "[[expect]]\nclaim = \" ns_per_op ( packed ) >= .5 * ns_per_op(padded , counter)\"\n[[role]]"),
    ("workers = 2", "workers = 2\ncpus = [0, 1]\nrate = \"1.5M/s\"\nlatency = true\nafter = \"1ms\""),
    (
        "[[role]]",
        "[lock.m]\n[region.r]\nsize = \"8KiB\"\n[[role]]\nname = \"b\"\nloop = [\"lock m timeout 1ms\", \"unlock m\", \"touch r 4KiB chunk 4KiB pause 1us\"]\n[[role]]",
    ),
    ("\"bump hits[me]\"", "\"work $think\", \"$verb hits[me]\"]\n[sweep]\nthink = [\"1ns\", \"2ns\"]\nverb = [\"add\""),
];

fn python() -> String {
    std::env::var("LAB_PYTHON").unwrap_or_else(|_| "python3".to_owned())
}

fn edited(from: &str, to: &str) -> String {
    assert_eq!(QUICK.matches(from).count().min(1), 1, "{from}");
    QUICK.replacen(from, to, 1)
}

/// The lab's own scenarios.
fn library() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios");
    let within = |folder: &Path| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut folders = vec![folder.clone(), folder.join("cases")];
    folders.extend(within(&folder.join("exercises")).filter(|path| path.is_dir()));
    let mut files: Vec<PathBuf> = folders.iter().flat_map(|folder| within(folder)).collect();
    // What an exercise asks is a file of another kind.
    let is_scenario = |path: &PathBuf| {
        path.extension().is_some_and(|extension| extension == "toml") && !path.ends_with("exercise.toml")
    };
    files.retain(is_scenario);
    files.sort();
    files
}

#[test]
fn a_validator_accepts_what_the_reader_accepts_and_refuses_the_same_slips() {
    let python = python();
    let has = Command::new(&python).args(["-c", "import jsonschema, tomllib"]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        skip(&format!("`{python}` has no package jsonschema (pip install jsonschema; LAB_PYTHON names another)"));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let schema = folder.path().join("schema.json");
    std::fs::write(&schema, coordinator().arg("schema").output().unwrap().stdout).unwrap();
    let write = |index: usize, text: String| {
        let file = folder.path().join(format!("case_{index}.toml"));
        std::fs::write(&file, text).unwrap();
        file
    };
    let good: Vec<PathBuf> = GOOD.iter().enumerate().map(|(n, (from, to))| write(n, edited(from, to))).collect();
    let bad = BAD.iter().enumerate().map(|(n, (from, to, _))| write(GOOD.len() + n, edited(from, to)));
    let bad: Vec<PathBuf> = bad.collect();
    let accepted: Vec<PathBuf> = library().into_iter().chain(good).collect();
    for file in &accepted {
        scenario::load(file).unwrap_or_else(|refusal| panic!("{}", refusal.render(false)));
    }
    for (file, (_, to, _)) in bad.iter().zip(BAD) {
        assert!(scenario::load(file).is_err(), "the reader accepts {to}");
    }
    let output = Command::new(python).arg("-c").arg(PYTHON).arg(&schema).args(&accepted).args(&bad).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stdout(&output);
    let said: Vec<&str> = said.lines().collect();
    assert_eq!(said.len(), accepted.len() + bad.len());
    for (file, verdict) in accepted.iter().zip(&said) {
        assert_eq!(*verdict, "accepted", "{}: {}", file.display(), std::fs::read_to_string(file).unwrap());
    }
    for ((_, to, place), verdict) in BAD.iter().zip(&said[accepted.len()..]) {
        let places = verdict.strip_prefix("refused at ").unwrap_or_else(|| panic!("the schema accepts {to}"));
        assert!(places.split("; ").any(|found| found == *place), "{to}: refused at {places}, not at {place}");
    }
}

/// Editors cannot run the program: the schema lies beside the scenarios, and each of them names it in its first line.
#[test]
fn the_schema_beside_the_scenarios_is_this_program_s_and_each_names_it() {
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/schema.json");
    let shipped: serde_json::Value = serde_json::from_slice(&std::fs::read(shipped).unwrap()).unwrap();
    let cure = "scenarios/schema.json is out of date: cargo run -- schema > scenarios/schema.json";
    assert!(shipped == scenario::schema::json_schema(), "{cure}");
    for file in library() {
        let text = std::fs::read_to_string(&file).unwrap();
        let named = text.lines().next().and_then(|line| line.strip_prefix("#:schema "));
        let named = named.unwrap_or_else(|| panic!("{}: the first line names no schema", file.display()));
        assert!(file.with_file_name(named).is_file(), "{}: {named} is not there", file.display());
    }
}
