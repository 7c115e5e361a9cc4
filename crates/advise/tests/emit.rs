//! What is emitted, through the compilers: it compiles, and every element lies where the candidate says.

use advise::emit::{Header, Language, paths, text};
use advise::{Candidate, candidates};
use std::path::Path;
use std::process::Command;

const SCENARIOS: [&str; 4] = [
    // A queue with cold fields of every size, and names that are words of some language.
    r#"
placement = "declared"
[field.type]
type = "u64"
[field.new]
type = "u64"
[field.flags]
type = "u8"
count = 5
[field.small]
type = "u16"
[field.pad0]
type = "u32"
[[role]]
name = "producer"
loop = ["bump type", "load pad0"]
[[role]]
name = "consumer"
loop = ["add new", "load pad0"]
"#,
    // Arrays with an element a worker, and a lock that guards a field.
    r#"
[field.hits]
type = "u64"
each = "worker"
[field.bytes]
type = "u32"
each = "worker"
[field.guarded]
type = "u64"
[lock.door]
kind = "ticket"
[[role]]
name = "counter"
workers = 3
loop = ["bump hits[me]", "add bytes[me]", "lock door", "bump guarded", "unlock door"]
[[role]]
name = "reader"
loop = ["load hits[all]", "load guarded"]
"#,
    // A field that lies across two lines, where no integer may.
    r#"
placement = "declared"
[field.a]
type = "u32"
at = 0
[field.b]
type = "u64"
at = 60
[[role]]
name = "x"
loop = ["bump a"]
[[role]]
name = "y"
loop = ["load b"]
"#,
    // A counter that can be sharded.
    r#"
[field.total]
type = "u64"
[[role]]
name = "counter"
workers = 2
loop = ["add total"]
[[role]]
name = "sum"
loop = ["load total", "sleep 1ms"]
"#,
];

fn made(text: &str) -> Vec<Candidate> {
    let plan = scenario::parse("case.toml", text).unwrap_or_else(|refusal| panic!("{refusal}")).plan;
    let cpu = |id: u32| plan::Cpu { id: plan::CpuId(id), core: id, llc: 0, node: 0, socket: 0, usable: true };
    let bound = plan::bind(&plan, &plan::Topology { cpus: (0..8).map(cpu).collect() }, 0).unwrap();
    let layout = &bound.arms[0].program.as_ref().unwrap().layout;
    candidates(&plan.arms[0], layout).unwrap()
}

fn header() -> Header {
    Header { name: "Shared".to_owned(), reason: "it is `a */ test`".to_owned() }
}

/// A program that prints the offset of each path, one a line, then the struct's size and alignment.
fn program(language: Language, candidate: &Candidate) -> String {
    let emitted = text(language, candidate, &header());
    let paths = paths(language, candidate);
    let (before, line, after) = match language {
        Language::C => {
            ("#include <stdio.h>\nstatic struct Shared s;\nint main(void) {\n", c_line as fn(&str) -> String, C_END)
        }
        Language::Cpp => ("#include <cstdio>\nstatic Shared s;\nint main() {\n", c_line as _, CPP_END),
        Language::Rust => (RUST_BEGIN, rust_line as _, RUST_END),
    };
    let lines: String = paths.iter().map(|(path, _)| line(path)).collect();
    format!("{emitted}{before}{lines}{after}")
}

const C_END: &str = "printf(\"%zu\\n%zu\\n\", sizeof(struct Shared), _Alignof(struct Shared));\nreturn 0;\n}\n";
const CPP_END: &str = "printf(\"%zu\\n%zu\\n\", sizeof(Shared), alignof(Shared));\nreturn 0;\n}\n";
const RUST_BEGIN: &str = "fn main() {\nlet s = std::mem::MaybeUninit::<Shared>::zeroed();\nlet s = unsafe { s.assume_init() };\n\
                          let base = &raw const s as usize;\n";
const RUST_END: &str = "println!(\"{}\\n{}\", core::mem::size_of::<Shared>(), core::mem::align_of::<Shared>());\n}\n";

fn c_line(path: &str) -> String {
    format!("printf(\"%zu\\n\", (size_t)((char *)&s.{path} - (char *)&s));\n")
}

fn rust_line(path: &str) -> String {
    format!("println!(\"{{}}\", &raw const s.{path} as usize - base);\n")
}

fn compile(language: Language, source: &Path, program: &Path) -> std::io::Result<std::process::Output> {
    match language {
        Language::C => Command::new("gcc")
            .args(["-std=c11", "-Wall", "-Wextra", "-Werror"])
            .arg(source)
            .arg("-o")
            .arg(program)
            .output(),
        Language::Cpp => Command::new("g++")
            .args(["-std=c++11", "-Wall", "-Wextra", "-Werror"])
            .arg(source)
            .arg("-o")
            .arg(program)
            .output(),
        Language::Rust => {
            let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
            Command::new(rustc)
                .args(["--edition=2024", "-Awarnings", "-Copt-level=0"])
                .arg(source)
                .arg("-o")
                .arg(program)
                .output()
        }
    }
}

/// Compiles every candidate of every scenario, all of one scenario's in one program's place, and compares.
fn compare(language: Language, ending: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mut compared = 0;
    for (number, scenario) in SCENARIOS.iter().enumerate() {
        for candidate in made(scenario) {
            let source = folder.path().join(format!("{number}_{}.{ending}", candidate.name.replace('-', "_")));
            let program_file = source.with_extension("out");
            let text = program(language, &candidate);
            std::fs::write(&source, &text).unwrap();
            let output = match compile(language, &source, &program_file) {
                Ok(output) => output,
                Err(error) => return testing::skip(&format!("no compiler for {language:?}: {error}")),
            };
            assert!(
                output.status.success(),
                "{}:\n{text}\n{}",
                candidate.name,
                String::from_utf8_lossy(&output.stderr)
            );
            let ran = Command::new(&program_file).output().unwrap();
            let seen: Vec<u64> = String::from_utf8(ran.stdout).unwrap().lines().map(|l| l.parse().unwrap()).collect();
            let mut expected: Vec<u64> = paths(language, &candidate).iter().map(|(_, offset)| *offset).collect();
            expected.extend([candidate.bytes, candidate.align]);
            assert_eq!(seen, expected, "{} of scenario {number}:\n{text}", candidate.name);
            compared += 1;
        }
    }
    assert!(compared > 20, "{compared}");
}

#[test]
fn c_lies_as_planned() {
    compare(Language::C, "c");
}

#[test]
fn cpp_lies_as_planned() {
    compare(Language::Cpp, "cpp");
}

#[test]
fn rust_lies_as_planned() {
    compare(Language::Rust, "rs");
}

#[test]
fn every_element_is_reached_once_and_lies_where_the_candidate_says() {
    for scenario in SCENARIOS {
        for candidate in made(scenario) {
            let mut wanted: Vec<u64> = candidate.offsets.values().flatten().copied().collect();
            wanted.sort_unstable();
            for language in Language::ALL {
                let mut seen: Vec<u64> = paths(language, &candidate).iter().map(|(_, offset)| *offset).collect();
                seen.sort_unstable();
                assert_eq!(seen, wanted, "{} in {language:?}", candidate.name);
            }
        }
    }
}

#[test]
fn each_line_says_why_it_stands_apart() {
    let made = made(SCENARIOS[0]);
    let grouped = made.iter().find(|candidate| candidate.name == "in-order").unwrap();
    let text = text(Language::Rust, grouped, &header());
    let plain = text.split_whitespace().filter(|word| *word != "//").collect::<Vec<_>>().join(" ");
    assert!(plain.contains("would take it from"), "{text}");
    assert!(plain.contains("written by `producer`"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 120), "{text}");
}
