//! `import`: what it shows, the scenarios that it writes, and what it says where it cannot.

mod common;
#[path = "common/compiled.rs"]
mod compiled;

use common::{coordinator, stderr, stdout};
use compiled::compile;
use record::{Import, ImportedField, ModelRun};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use testing::skip;

fn import(arguments: &[&str]) -> Output {
    coordinator().arg("import").args(arguments).output().unwrap()
}

/// What `import --json` says of a struct in a program.
fn imported(program: &Path, name: &str) -> Import {
    let output = import(&[program.to_str().unwrap(), "--struct", name, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{name}: {}", stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap()
}

/// The usage error that `import` ends with.
fn refused(arguments: &[&str]) -> String {
    let output = import(arguments);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""), "{}", stderr(&output));
    stderr(&output)
}

/// The program of `structs.c`, compiled with these arguments; `None` where there is no compiler.
fn c(folder: &Path, arguments: &[&str]) -> Option<PathBuf> {
    compile("gcc", arguments, "structs.c", folder, "program")
}

/// A tool that takes the program apart or puts it together; `None`, with the reason said, where it is not installed.
fn tool(command: &str, arguments: &[&str], folder: &Path) -> Option<()> {
    match Command::new(command).args(arguments).current_dir(folder).output() {
        Ok(output) => {
            assert!(output.status.success(), "{command} {arguments:?}: {}", stderr(&output));
            Some(())
        }
        Err(error) => {
            skip(&format!("{command} cannot be run: {error}"));
            None
        }
    }
}

/// `ring` of `structs.c`, which no case of debug information may change.
fn assert_is_ring(import: &Import) {
    let of = |name: &str| import.fields.iter().find(|field| field.name == name).unwrap();
    let offsets = ["head", "cached_tail", "tail", "cached_head", "size", "slots"].map(|name| of(name).offset);
    assert_eq!((import.bytes, import.lines, offsets), (192, 3, [0, 8, 64, 72, 128, 136]));
    assert_eq!((of("slots").type_name.as_str(), of("slots").kind.as_str()), ("void *", "pointer"));
    assert_eq!(of("head").type_name, "uint64_t");
    let holes: Vec<_> = import.holes.iter().map(|hole| (hole.offset, hole.bytes, hole.line)).collect();
    assert_eq!((holes, import.tail_padding), (vec![(16, 48, 0), (80, 48, 1), (132, 4, 2)], 48));
}

#[test]
fn a_layout_is_shown_with_its_lines_holes_and_straddling_members() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = c(folder.path(), &["-g"]) else { return };
    let program = program.to_str().unwrap();
    let shown = stdout(&import(&[program, "--struct", "straddling"]));
    for part in ["char name[60];", "void *pointer;", "straddles lines 0 to 1", "line 1, from 64 on", "; packed"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let shown = stdout(&import(&[program, "--struct", "struct anonymous"]));
    for part in ["union {", "struct {", "} h;", "hole: 7 bytes from 17 on", "} h;"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let nested = stdout(&import(&[program, "--struct", "nested"]));
    let expanded = stdout(&import(&[program, "--struct", "nested", "--expand"]));
    assert!(nested.contains("struct one_hole b;") && !nested.contains("char a;"), "{nested}");
    assert!(expanded.contains("struct one_hole {") && expanded.contains("hole: 7 bytes from 9 on"), "{expanded}");
}

#[test]
fn no_line_is_wider_than_the_screen() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile("g++", &["-g"], "classes.cpp", folder.path(), "program") else { return };
    for width in ["24", "50", "80"] {
        for name in ["Library", "Diamond", "Tail", "Slots<long int, 5>"] {
            let mut command = coordinator();
            command.env("COLUMNS", width).arg("import").arg(&program).args(["--expand", "--struct", name]);
            let output = command.output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
            let wide =
                stdout(&output).lines().find(|line| line.chars().count() > width.parse().unwrap()).map(str::to_owned);
            assert_eq!(wide, None, "{name} in {width} columns");
        }
    }
}

#[test]
fn atomic_members_and_packed_bit_fields_are_where_the_compiler_put_them() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = c(folder.path(), &["-g"]) else { return };
    let atomic = imported(&program, "atomic");
    let fields: Vec<_> = atomic.fields.iter().map(|f| (f.offset, f.bytes, f.type_name.as_str())).collect();
    assert_eq!(fields, [(0, 4, "_Atomic int"), (64, 8, "_Atomic long int")]);
    assert_eq!((atomic.align, atomic.bytes), (64, 128));
    let bits = imported(&program, "packed_bits");
    let fields: Vec<_> = bits.fields.iter().map(|f| (f.offset, f.bytes, f.bit_offset, f.bit_count)).collect();
    // `c` lies across two words: the bytes that it touches are told.
    assert_eq!(fields, [(0, 1, None, None), (0, 4, Some(8), Some(12)), (2, 3, Some(4), Some(20)), (5, 2, None, None)]);
}

#[test]
fn what_classes_inherit_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compile("g++", &["-g"], "classes.cpp", folder.path(), "program") else { return };
    let diamond = imported(&program, "lab::Diamond");
    let bases: Vec<_> = diamond.virtual_bases.iter().map(|base| (base.name.as_str(), base.bytes)).collect();
    assert_eq!(bases, [("Virtual", 16)], "one, however many ways lead to it");
    let kinds: Vec<_> = diamond.fields.iter().map(|f| (f.name.as_str(), f.kind.as_str(), f.offset)).collect();
    assert_eq!(kinds, [("Left", "base", 0), ("Right", "base", 16), ("z", "scalar", 28)]);
    let tail = imported(&program, "Tail");
    let of = |name: &str| tail.fields.iter().find(|field| field.name == name).unwrap();
    assert_eq!((of("c").offset, of("data").bytes, of("function").bytes), (13, 8, 16));
    assert_eq!(of("function").type_name, "void (Virtual::*)(void)");
    assert_eq!(tail.holes.iter().map(|hole| (hole.offset, hole.bytes)).collect::<Vec<_>>(), [(14, 2)]);
    assert_eq!(imported(&program, "Outer::Inner").name, "lab::Outer::Inner");
    // The arguments of a template may be left out where one type is left.
    let told = refused(&[program.to_str().unwrap(), "--struct", "Slots"]);
    assert!(told.contains("Slots<char, 3>") && told.contains("Slots<long int, 5>") && told.contains("--nth"), "{told}");
}

#[test]
fn the_variants_of_rusts_enums_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["-g", "--edition=2024", "-Adead_code"];
    let Some(program) = compile("rustc", &arguments, "structs.rs", folder.path(), "program") else { return };
    let shape = imported(&program, "structs::Shape");
    assert_eq!((shape.keyword.as_str(), shape.language.as_str()), ("enum", "Rust"));
    let kinds: Vec<_> = shape.fields.iter().map(|f| (f.name.as_str(), f.kind.as_str())).collect();
    let variant = |name| (name, "variant");
    assert_eq!(kinds, [("discriminant", "discriminant"), variant("Circle"), variant("Rectangle"), variant("Nothing")]);
    let rectangle: Vec<_> = shape.fields[2].fields.iter().map(|f| (f.name.as_str(), f.bytes)).collect();
    assert_eq!(rectangle, [("width", 4), ("height", 8)]);
    // A niche: the payload's unused value tells the variant, and no byte is lost.
    let maybe = imported(&program, "structs::Maybe");
    let boxed = maybe.fields.iter().find(|field| field.name == "boxed").unwrap();
    assert_eq!((boxed.bytes, boxed.kind.as_str()), (8, "enum"));
}

#[test]
fn the_same_is_read_wherever_the_debug_information_lies() {
    let folder = tempfile::tempdir().unwrap();
    let versions = ["-gdwarf-5", "-gdwarf-4", "-gdwarf-3", "-gdwarf-2"];
    let kinds = ["-fdebug-types-section", "-gz=zlib", "-gz=zlib-gnu", "-gz=none", "-gsplit-dwarf", "-c"];
    for version in versions {
        for kind in kinds {
            let Some(program) = c(folder.path(), &[version, kind]) else { return };
            assert_is_ring(&imported(&program, "ring"));
            let declared = imported(&program, "ring").declared.unwrap();
            assert!(declared.file.ends_with("structs.c") && declared.line > 20, "{version} {kind}: {declared:?}");
        }
    }
    let Some(program) = c(folder.path(), &["-g"]) else { return };
    let Some(()) = tool("objcopy", &["--compress-debug-sections=zstd", "program"], folder.path()) else { return };
    assert_is_ring(&imported(&program, "ring"));
}

#[test]
fn bit_fields_are_the_same_in_every_version_of_dwarf() {
    let folder = tempfile::tempdir().unwrap();
    let mut seen: Option<Vec<ImportedField>> = None;
    for version in ["-gdwarf-5", "-gdwarf-4", "-gdwarf-3", "-gdwarf-2"] {
        let Some(program) = c(folder.path(), &[version, "-gstrict-dwarf"]) else { return };
        let fields =
            ["bits", "bits_between", "packed_bits"].into_iter().flat_map(|name| imported(&program, name).fields);
        let fields: Vec<ImportedField> = fields.collect();
        assert!(seen.as_ref().is_none_or(|seen| *seen == fields), "{version}: {fields:#?}");
        seen = Some(fields);
    }
}

#[test]
fn debug_information_is_found_where_packagers_put_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let Some(program) = c(at, &["-g"]) else { return };
    std::fs::create_dir(at.join(".debug")).unwrap();
    let moved = at.join(".debug/program.debug");
    let moved = moved.to_str().unwrap();
    let steps: [&[&str]; 3] = [
        &["--only-keep-debug", "program", moved],
        &["--strip-debug", "program"],
        &["--add-gnu-debuglink", moved, "program"],
    ];
    for arguments in steps {
        let Some(()) = tool("objcopy", arguments, at) else { return };
    }
    assert_is_ring(&imported(&program, "ring"));
    // Of another build it is not taken, and of none the places are named where it was looked for.
    std::fs::remove_file(moved).unwrap();
    let told = refused(&[program.to_str().unwrap(), "--struct", "ring"]);
    for part in ["no debug information", ".build-id", ".debug/program.debug", "-g"] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn what_several_programs_share_is_found_by_its_link() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for name in ["one", "two"] {
        let Some(_) = compile("gcc", &["-gdwarf-4"], "structs.c", at, name) else { return };
    }
    let Some(()) = tool("dwz", &["-m", "shared", "one", "two"], at) else { return };
    assert_is_ring(&imported(&at.join("one"), "ring"));
    std::fs::remove_file(at.join("shared")).unwrap();
    let told = refused(&[at.join("one").to_str().unwrap(), "--struct", "ring"]);
    assert!(told.contains("shared"), "{told}");
}

#[test]
fn a_package_of_split_off_debug_information_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/layouts/structs.c");
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let Some(()) = tool("gcc", &[version, "-gsplit-dwarf", "-c", source.to_str().unwrap(), "-o", "program.o"], at)
        else {
            return;
        };
        let Some(()) = tool("gcc", &["program.o", "-o", "program"], at) else { return };
        if version == "-gdwarf-4" {
            // Binutils' dwp knows version 4 alone.
            let Some(()) = tool("dwp", &["-o", "program.dwp", "program.dwo"], at) else { return };
            std::fs::remove_file(at.join("program.dwo")).unwrap();
        }
        let ring = imported(&at.join("program"), "ring");
        assert_is_ring(&ring);
        assert!(ring.declared.is_some_and(|declared| declared.file.ends_with("structs.c")), "{version}");
        let _ = std::fs::remove_file(at.join("program.dwp"));
        let _ = std::fs::remove_file(at.join("program.dwo"));
        let told = refused(&[at.join("program").to_str().unwrap(), "--struct", "ring"]);
        assert!(told.contains("program.dwo"), "{told}");
    }
}

#[test]
fn btf_says_the_same_as_dwarf() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = c(folder.path(), &["-gdwarf-4"]) else { return };
    let Some(()) = tool("pahole", &["-J", "program"], folder.path()) else { return };
    let program = program.to_str().unwrap();
    for name in ["ring", "bits", "anonymous", "numbers", "functions", "arrays"] {
        let output = import(&["--btf", program, "--struct", name, "--json"]);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", stderr(&output));
        let btf: Import = serde_json::from_str(&stdout(&output)).unwrap();
        let dwarf = imported(Path::new(program), name);
        let brief = |import: &Import| {
            let field =
                |f: &ImportedField| (f.name.clone(), f.offset, f.bytes, f.bit_offset, f.bit_count, f.kind.clone());
            (import.bytes, import.fields.iter().map(field).collect::<Vec<_>>(), import.holes.clone())
        };
        assert_eq!(brief(&btf), brief(&dwarf), "{name}");
    }
}

/// Leaves of a struct that are one number, by their offsets.
fn numbers(fields: &[ImportedField], found: &mut BTreeMap<u64, u64>) {
    for field in fields {
        match field.kind.as_str() {
            "scalar" | "pointer" if field.bit_count.is_none() && field.bytes.is_power_of_two() && field.bytes <= 8 => {
                found.insert(field.offset, field.bytes);
            }
            // Of those that overlap one has the bytes.
            "struct" | "class" | "base" => numbers(&field.fields, found),
            _ => {}
        }
    }
}

#[test]
fn a_written_scenario_is_sound_and_has_each_member_at_its_offset() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let rust = ["-g", "--edition=2024", "-Adead_code"];
    let sources: [(&str, &[&str], &str, &[&str]); 3] = [
        (
            "gcc",
            &["-g"],
            "structs.c",
            &[
                "numbers",
                "straddling",
                "arrays",
                "flexible",
                "bits",
                "bits_between",
                "anonymous",
                "functions",
                "locks",
                "packed_bits",
                "deep",
                "vectors",
                "ring",
                "server",
                "word",
            ],
        ),
        ("g++", &["-g"], "classes.cpp", &["Diamond", "Tail", "Library", "lab::Slots<char, 3>", "lab::Bits"]),
        (
            "rustc",
            &rust,
            "structs.rs",
            &["structs::Shape", "structs::Maybe", "structs::Packed", "structs::Arrays", "structs::Nested"],
        ),
    ];
    for (compiler, arguments, source, names) in sources {
        let Some(program) = compile(compiler, arguments, source, at, "program") else { return };
        for name in names {
            let file = at.join("layout.toml");
            let _ = std::fs::remove_file(&file);
            let output = import(&[program.to_str().unwrap(), "--struct", name, "-o", file.to_str().unwrap()]);
            assert_eq!(output.status.code(), Some(0), "{name}: {}", stderr(&output));
            assert!(stdout(&output).contains("coordinator check"), "{}", stdout(&output));
            let checked = coordinator().arg("check").arg(&file).output().unwrap();
            let text = std::fs::read_to_string(&file).unwrap();
            assert_eq!(checked.status.code(), Some(0), "{name}: {}{text}", stderr(&checked));
            assert_offsets(&file, &imported(&program, name));
        }
    }
}

/// Each number of the struct is a field, placed where it lies in it.
fn assert_offsets(file: &Path, import: &Import) {
    let model = coordinator().arg("model").arg(file).args(["--machine", "epyc-7r13", "--json"]).output().unwrap();
    let run: ModelRun = serde_json::from_str(&stdout(&model)).unwrap_or_else(|_| panic!("{}", stderr(&model)));
    let placed: BTreeMap<u64, u64> = run.arms[0].layout.iter().map(|row| (row.offset, row.bytes)).collect();
    let mut wanted = BTreeMap::new();
    if import.keyword != "union" {
        numbers(&import.fields, &mut wanted);
    }
    for (offset, bytes) in wanted {
        assert_eq!(placed.get(&offset), Some(&bytes), "{} at {offset}: {placed:?}", import.name);
    }
}

/// A full disk, which is nothing that the user wrote wrongly: 1, and no part of a scenario is left.
#[test]
fn a_scenario_for_which_there_is_no_room_is_a_failure_and_leaves_no_part() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let Some(program) = c(at, &["-g"]) else { return };
    let file = at.join("made.toml");
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -f 0; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_coordinator"), "import"]);
    let output = command.arg(&program).args(["--struct", "straddling", "--emit-scenario"]).arg(&file).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("(EFBIG); name a file in a folder"), "{}", stderr(&output));
    assert!(!file.exists(), "a part is left");
}

#[test]
fn a_scenario_says_of_each_member_what_to_know_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let Some(program) = c(at, &["-g"]) else { return };
    let written = |name: &str| {
        let file = at.join(format!("{name}.toml"));
        let arguments = [program.to_str().unwrap(), "--struct", name, "--emit-scenario", file.to_str().unwrap()];
        let output = import(&arguments);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        // A file that is there is somebody's work.
        assert!(refused(&arguments).contains("it is there already"));
        std::fs::read_to_string(file).unwrap()
    };
    let text = written("straddling");
    for part in ["# ---- line 1 ----", "It straddles lines", "not aligned", "# Declared at", "[[role]]"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = written("bits");
    assert!(text.contains("unsigned int a:3, unsigned int b:7, unsigned int c:22"), "{text}");
    let text = written("server");
    assert!(
        text.contains("`lock` is a lock, it seems")
            && text.contains("[field.lock_data_owner]")
            && text.contains("[field.errors]"),
        "{text}"
    );
    assert!(written("one_hole").contains("# A hole: 7 bytes from 1 on."));
    let text = written("word");
    assert!(text.contains("shares its bytes"), "{text}");
}

#[test]
fn the_number_in_an_atomic_type_has_its_members_name() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let rust = ["-g", "--edition=2024", "-Adead_code"];
    let cases: [(&str, &[&str], &str, &str); 2] =
        [("rustc", &rust, "structs.rs", "structs::Aligned"), ("g++", &["-g"], "classes.cpp", "Slots<long int, 5>")];
    for (compiler, arguments, source, name) in cases {
        let Some(program) = compile(compiler, arguments, source, at, "program") else { return };
        let file = at.join(format!("{compiler}.toml"));
        let output = import(&[program.to_str().unwrap(), "--struct", name, "-o", file.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let text = std::fs::read_to_string(file).unwrap();
        assert!(text.contains("[field.head]\ntype  = \"u64\"\n"), "{text}");
    }
}

#[test]
fn a_struct_of_the_kernel_is_made_a_scenario_however_many_members_it_has() {
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return skip("this kernel has no BTF of itself");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("task.toml");
    let output = import(&["--btf", "--struct", "task_struct", "-o", file.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let checked = coordinator().arg("check").arg(&file).output().unwrap();
    assert_eq!(checked.status.code(), Some(0), "{}", stderr(&checked));
}

#[test]
fn what_is_not_there_is_named_with_what_is() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let Some(program) = c(at, &["-g"]) else { return };
    let program = program.to_str().unwrap();
    let told = refused(&[program, "--struct", "anonymus"]);
    assert!(told.contains("did you mean `anonymous`"), "{told}");
    let told = refused(&[program, "--struct", "RING"]);
    assert!(told.contains("did you mean `ring`"), "{told}");
    let told = refused(&[program, "--struct", "no_such_thing_at_all"]);
    assert!(
        told.contains("no struct, class, union or enum `no_such_thing_at_all`") && told.contains("such as"),
        "{told}"
    );
    let told = refused(&["--btf", program, "--struct", "ring"]);
    assert!(told.contains("holds no BTF") && told.contains("vmlinux"), "{told}");
}

#[test]
fn files_that_are_no_programs_are_refused_with_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let told = |content: &[u8]| {
        std::fs::write(at.join("file"), content).unwrap();
        refused(&[at.join("file").to_str().unwrap(), "--struct", "ring"])
    };
    assert!(told(b"").contains("it is empty"));
    assert!(told(b"#!/bin/sh\n").contains("it is a script"));
    assert!(told(b"!<arch>\n").contains("an archive"));
    assert!(told(b"hello").contains("is no ELF file: it begins with"));
    assert!(told(b"\x7fELF").contains("damaged or cut short"));
    assert!(refused(&[at.to_str().unwrap(), "--struct", "ring"]).contains("it is a folder"));
    assert!(refused(&[at.join("none").to_str().unwrap(), "--struct", "ring"]).contains("No such file"));
    let btf = |content: &[u8]| {
        std::fs::write(at.join("file"), content).unwrap();
        refused(&["--btf", at.join("file").to_str().unwrap(), "--struct", "ring"])
    };
    assert!(btf(b"hello").contains("holds no BTF: it begins with"));
    assert!(btf(b"\x9f\xeb\x01\0").contains("damaged or cut short"));
}

#[test]
fn a_program_without_debug_information_or_cut_short_is_refused_with_the_cure() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let Some(program) = c(at, &["-g0"]) else { return };
    let told = refused(&[program.to_str().unwrap(), "--struct", "ring"]);
    assert!(told.contains("no debug information") && told.contains("-g"), "{told}");
    let Some(program) = c(at, &["-g"]) else { return };
    let whole = std::fs::read(&program).unwrap();
    for part in [whole.len() - 1, whole.len() / 2, 100] {
        std::fs::write(&program, &whole[..part]).unwrap();
        let told = refused(&[program.to_str().unwrap(), "--struct", "ring"]);
        assert!(told.contains("damaged or cut short"), "{part}: {told}");
    }
}

#[test]
fn one_of_several_types_of_a_name_is_chosen_by_place_or_number() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (file, member, main) in [("one.c", "char a[8];", ""), ("two.c", "long a, b;", "int main(void) { return 0; }")] {
        let source = format!("struct twin {{ {member} }};\nstruct twin twin_{};\n{main}\n", file.replace('.', "_"));
        std::fs::write(at.join(file), source).unwrap();
    }
    let Some(()) = tool("gcc", &["-g", "one.c", "two.c", "-o", "program"], at) else { return };
    let program = at.join("program");
    let program = program.to_str().unwrap();
    let told = refused(&[program, "--struct", "twin"]);
    for part in
        ["the name of 2 types", "1  struct twin: 8 bytes", "2  struct twin: 16 bytes", "two.c:1", "--at", "--nth"]
    {
        assert!(told.contains(part), "{part}: {told}");
    }
    let bytes = |choice: &[&str]| {
        let output = import(&[&[program, "--struct", "twin", "--json"], choice].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        serde_json::from_str::<Import>(&stdout(&output)).unwrap().bytes
    };
    assert_eq!((bytes(&["--nth", "1"]), bytes(&["--at", "two.c:1"])), (8, 16));
    assert!(refused(&[program, "--struct", "twin", "--nth", "3"]).contains("--nth 3"));
    assert!(refused(&[program, "--struct", "twin", "--at", "two.c:9"]).contains("--at two.c:9"));
    assert!(refused(&[program, "--struct", "twin", "--at", "two.c"]).contains("a file and a line"));
}

#[test]
fn a_struct_that_is_only_declared_is_told_from_one_that_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let source =
        "struct hidden;\nstruct shown { struct hidden *to; };\nstruct shown shown;\nint main(void) { return 0; }\n";
    std::fs::write(at.join("program.c"), source).unwrap();
    let Some(()) = tool("gcc", &["-g", "program.c", "-o", "program"], at) else { return };
    let told = refused(&[at.join("program").to_str().unwrap(), "--struct", "hidden"]);
    assert!(told.contains("only declares `hidden`"), "{told}");
}

#[test]
fn a_base_class_that_one_unit_only_declares_is_found_in_the_unit_that_defines_it() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    // GCC describes a class with virtual functions whole where its first virtual function is defined, and elsewhere
    // only declares it. Another namespace has one of the same name.
    let header = "namespace a { struct Base { virtual void first(); long x; char y; }; }\n\
                  namespace b { struct Base { int other[10]; }; }\n";
    let user = "#include \"base.h\"\nstruct Heir { a::Base base; char z; };\nb::Base unused;\nHeir *heir;\n\
                int main() { return sizeof(*heir); }\n";
    std::fs::write(at.join("base.h"), header).unwrap();
    std::fs::write(at.join("user.cpp"), user).unwrap();
    std::fs::write(at.join("base.cpp"), "#include \"base.h\"\nvoid a::Base::first() {}\na::Base it;\n").unwrap();
    let arguments = ["-g", "-fno-rtti", "-femit-struct-debug-baseonly", "user.cpp", "base.cpp", "-o", "program"];
    let Some(()) = tool("g++", &arguments, at) else { return };
    let heir = imported(&at.join("program"), "Heir");
    let base = &heir.fields[0];
    assert_eq!((base.bytes, base.fields.len(), heir.bytes), (24, 3, 32), "{heir:#?}");
}
