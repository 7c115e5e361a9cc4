//! `import` against pahole: offset, size and line of every member, of structs of the kernel, of C, C++ and Rust.

mod common;
#[path = "common/compiled.rs"]
mod compiled;

use common::{coordinator, stderr, stdout};
use compiled::compile;
use record::{Import, ImportedField};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use testing::skip;

const LINE: u64 = 64;
const KERNEL: &str = "/sys/kernel/btf/vmlinux";

/// A member as both have it: offset, the first bit of a bit-field, name, size, line.
type Row = (u64, Option<u64>, String, u64, u64);

/// Runs pahole; `None`, with the reason said, where it is not installed.
fn pahole(arguments: &[&str], file: &Path) -> Option<String> {
    match Command::new("pahole").args(arguments).arg(file).output() {
        Ok(output) => Some(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(error) => {
            skip(&format!("pahole (Debian: dwarves) cannot be run: {error}"));
            None
        }
    }
}

/// What pahole prints of each struct, class and union, by name.
fn by_name(printed: &str) -> BTreeMap<String, Vec<&str>> {
    let mut structs = BTreeMap::new();
    let mut lines = printed.lines();
    while let Some(line) = lines.next() {
        let head = ["struct ", "class ", "union "].iter().find_map(|keyword| line.strip_prefix(keyword));
        let Some(name) = head.and_then(|rest| rest.split(" {").next()).filter(|_| line.ends_with('{')) else {
            continue;
        };
        let name = name.split(" : ").next().unwrap_or(name).to_owned();
        structs.entry(name).or_insert_with(|| lines.by_ref().take_while(|line| !line.starts_with('}')).collect());
    }
    structs
}

/// The members of one struct as pahole prints them. Its marks of cache lines only go up, so a mark tells the line of a
/// member where no earlier one lies farther on.
fn rows(printed: &[&str]) -> Vec<Row> {
    let mut rows = Vec::new();
    let (mut mark, mut farthest, mut definition) = (0, 0, None);
    for line in printed {
        // The definition of a nested class, which takes no room here.
        let indent = line.chars().take_while(|c| *c == '\t').count();
        match definition {
            Some(depth) if indent == depth && line.trim_start().starts_with('}') => {
                definition = None;
                continue;
            }
            Some(_) => continue,
            None => {}
        }
        let text = line.trim();
        if text.ends_with('{') {
            if text != "struct {" && text != "union {" && text != "class {" && text != "enum {" {
                definition = Some(indent);
            }
            continue;
        }
        if let Some(rest) = text.strip_prefix("/* --- cacheline ") {
            mark = rest.split(' ').next().unwrap().parse().unwrap();
            continue;
        }
        let Some((declaration, offset, bit, bytes)) = member(text) else { continue };
        let closes = declaration.starts_with('}');
        if !closes && offset >= farthest {
            assert_eq!(mark, offset / LINE, "{text}");
            farthest = offset;
        }
        rows.push((offset, bit, name(declaration), bytes, offset / LINE));
    }
    rows.sort();
    rows
}

/// `int  a:3;   /*  88: 0  4 */`: the declaration, offset, first bit and size.
fn member(text: &str) -> Option<(&str, u64, Option<u64>, u64)> {
    let (declaration, comment) = text.strip_suffix("*/")?.rsplit_once("/*")?;
    let comment = comment.trim();
    let mut numbers = comment.split([' ', ':']).filter(|word| !word.is_empty()).map(str::parse::<u64>);
    let numbers: Vec<u64> = numbers.by_ref().collect::<Result<_, _>>().ok()?;
    match (numbers[..].len(), comment.contains(':')) {
        (2, false) => Some((declaration.trim(), numbers[0], None, numbers[1])),
        (3, true) => Some((declaration.trim(), numbers[0], Some(numbers[1]), numbers[2])),
        _ => None,
    }
}

/// The name in a declaration: of a base class that of its type, of an anonymous member none.
fn name(declaration: &str) -> String {
    if let Some(base) = declaration.strip_suffix("<ancestor>; */") {
        let words = base.trim_start_matches("/*").trim();
        return words.split_once(' ').map_or(words, |(_, name)| name).trim().to_owned();
    }
    let text = declaration.split(" __attribute__").next().unwrap().trim_end_matches(';').trim_end();
    if let Some((_, rest)) = text.split_once("(*") {
        return rest.trim_start_matches('*').split(')').next().unwrap().to_owned();
    }
    let last = text.rsplit([' ', '*', '&', '}']).next().unwrap();
    last.split(['[', ':']).next().unwrap().to_owned()
}

/// `import` on the same struct, with the members that pahole shows: those of anonymous structs and unions, too.
fn imported(source: &[&str], name: &str) -> Result<Import, String> {
    let output = coordinator().arg("import").args(source).args(["--json", "--struct", name]).output().unwrap();
    match output.status.code() {
        Some(0) => Ok(serde_json::from_str(&stdout(&output)).unwrap()),
        Some(2) => Err(stderr(&output)),
        other => panic!("{name}: {other:?} {}", stderr(&output)),
    }
}

fn own_rows(fields: &[ImportedField], rows: &mut Vec<Row>) {
    for field in fields {
        rows.push((field.offset, field.bit_offset, field.name.clone(), field.bytes, field.line));
        if field.type_name.ends_with("{...}") {
            own_rows(&field.fields, rows);
        }
    }
}

fn assert_agrees(name: &str, ours: &Import, printed: &[&str]) {
    let mut own = Vec::new();
    own_rows(&ours.fields, &mut own);
    own.sort();
    assert_eq!(own, rows(printed), "{name}:\n{}", printed.join("\n"));
    let size: Option<u64> =
        printed.iter().find_map(|line| line.trim().strip_prefix("/* size: ")?.split(',').next()?.parse().ok());
    if let Some(size) = size {
        assert_eq!(ours.bytes, size, "{name}");
    }
}

/// Every one of `names` in `program`, whole names in the first place and pahole's in the second.
fn assert_all_agree(program: &Path, names: &[(&str, &str)]) {
    let Some(printed) = pahole(&["--show_private_classes"], program) else { return };
    let printed = by_name(&printed);
    for (ours, theirs) in names {
        let import = imported(&[program.to_str().unwrap()], ours).unwrap();
        let printed = printed.get(*theirs).unwrap_or_else(|| panic!("{theirs}: {:?}", printed.keys()));
        assert_agrees(ours, &import, printed);
    }
}

fn both<'a>(names: &[&'a str]) -> Vec<(&'a str, &'a str)> {
    names.iter().map(|name| (*name, *name)).collect()
}

#[test]
fn the_kernels_structs_agree() {
    if !Path::new(KERNEL).exists() {
        return skip("this kernel has no BTF of itself");
    }
    let Some(sizes) = pahole(&["-F", "btf", "--sizes"], Path::new(KERNEL)) else { return };
    // Those of more than a line, evenly from the whole list; and some that everybody knows.
    let long = |line: &str| {
        let mut words = line.split_whitespace();
        let (name, bytes) = (words.next()?, words.next()?.parse::<u64>().ok()?);
        (bytes > LINE).then(|| name.to_owned())
    };
    let all: Vec<String> = sizes.lines().filter_map(long).collect();
    let known = ["task_struct", "sk_buff", "mm_struct", "inode", "page", "file"].map(str::to_owned);
    let names: Vec<String> = known.into_iter().chain(all.iter().step_by(all.len() / 60 + 1).cloned()).collect();
    let Some(printed) = pahole(&["-F", "btf", "-C", &names.join(",")], Path::new(KERNEL)) else { return };
    let printed = by_name(&printed);
    let mut agreed = 0;
    for name in &names {
        match imported(&["--btf"], name) {
            Ok(import) => {
                let printed = printed.get(name).unwrap_or_else(|| panic!("{name} is not in what pahole printed"));
                assert_agrees(name, &import, printed);
                agreed += 1;
            }
            // Of these pahole shows one, and does not say which.
            Err(told) => assert!(told.contains("is the name of"), "{told}"),
        }
    }
    assert!(agreed >= 50, "only {agreed} of {}", names.len());
}

const C_STRUCTS: [&str; 20] = [
    "numbers",
    "two_lines",
    "straddling",
    "one_hole",
    "aligned_member",
    "arrays",
    "flexible",
    "bits",
    "bits_between",
    "nested",
    "anonymous",
    "functions",
    "pointers",
    "locks",
    "linked",
    "long_one",
    "server",
    "deep",
    "vectors",
    "ring",
];

#[test]
fn structs_of_c_agree() {
    let folder = tempfile::tempdir().unwrap();
    for version in ["-gdwarf-5", "-gdwarf-4"] {
        let Some(program) = compile("gcc", &[version], "structs.c", folder.path(), "program") else { return };
        assert_all_agree(&program, &both(&C_STRUCTS));
    }
}

#[test]
fn classes_with_bases_agree() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile("g++", &["-g"], "classes.cpp", folder.path(), "program") else { return };
    let names = [
        ("lab::Heir", "Heir"),
        ("lab::VirtualHeir", "VirtualHeir"),
        ("Two", "Two"),
        ("Private", "Private"),
        ("lab::Slots<long int, 5>", "Slots<long int, 5>"),
        ("lab::Slots<char,3>", "Slots<char, 3>"),
        ("Library", "Library"),
        ("Grandchild", "Grandchild"),
        ("lab::Bits", "Bits"),
        ("Protected", "Protected"),
    ];
    assert_all_agree(&program, &names);
}

#[test]
fn structs_of_rust_agree() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["-g", "--edition=2024", "-Adead_code"];
    let Some(program) = compile("rustc", &arguments, "structs.rs", folder.path(), "program") else { return };
    let names = [
        "Reordered",
        "Declared",
        "Aligned",
        "Packed",
        "Tuple",
        "Generic<u8>",
        "Arrays",
        "References",
        "Nested",
        "Maybe",
    ];
    let qualified: Vec<String> = names.iter().map(|name| format!("structs::{name}")).collect();
    let pairs: Vec<(&str, &str)> = qualified.iter().map(String::as_str).zip(names).collect();
    assert_all_agree(&program, &pairs);
}
