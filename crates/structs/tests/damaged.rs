//! Damaged files: whatever is in them, reading ends, in bounded memory, with a struct or with an error that says why.

use proptest::prelude::*;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use structs::{Struct, Wanted, in_binary, in_btf};

/// What is compiled: a struct with everything that a reader follows, in few bytes.
const SOURCE: &str = "typedef struct { int x; char y; } pair;
union word { long whole; int halves[2]; };
struct ring { pair p; union word w; int (*call)(int, const char *); unsigned a : 3; int m[2][3]; struct ring *next;
              struct { short s; union { long l; char c; }; } in; const volatile char *text; double d[]; };
struct ring *keep;
int main(void) { return keep != 0; }
";

/// How it is compiled: versions of DWARF, type units, compression, an object file.
const KINDS: [&[&str]; 5] =
    [&["-gdwarf-5"], &["-gdwarf-4"], &["-g", "-fdebug-types-section"], &["-g", "-gz=zlib"], &["-g", "-c"]];

/// The programs; none where there is no compiler.
static PROGRAMS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("ring.c");
    std::fs::write(&source, SOURCE).unwrap();
    let compiled = |arguments: &[&str]| {
        let program = folder.path().join("ring");
        let mut command = Command::new("gcc");
        command.args(arguments).arg(&source).arg("-o").arg(&program);
        let output = command.output().ok()?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(std::fs::read(program).unwrap())
    };
    KINDS.iter().filter_map(|arguments| compiled(arguments)).collect()
});

/// May a test skip that needs a compiler? Where everything is to be tested, not.
fn compiled() -> Option<&'static Vec<Vec<u8>>> {
    if PROGRAMS.is_empty() {
        assert!(std::env::var_os("LAB_NO_SKIPS").is_none(), "may not skip here: gcc cannot be run");
        eprintln!("skipped: gcc cannot be run");
        return None;
    }
    Some(&PROGRAMS)
}

/// The largest resident size that this process has had, bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// What reading may take: far less than a header of a damaged file can ask for.
const MEMORY_MAX: u64 = 1 << 30;

fn file(folder: &Path, bytes: &[u8]) -> PathBuf {
    let path = folder.join("file");
    std::fs::write(&path, bytes).unwrap();
    path
}

/// Reads it in every way there is, and looks at all of what comes.
fn read(bytes: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), bytes);
    for name in ["ring", "word", "nothing"] {
        for found in [in_binary(&path, &Wanted::new(name)), in_btf(&path, &Wanted::new(name))] {
            match found {
                Ok(found) => found.iter().for_each(look),
                Err(error) => assert!(!error.to_string().is_empty()),
            }
        }
    }
    assert!(peak() < MEMORY_MAX, "{} bytes", peak());
}

fn look(found: &Struct) {
    let _ = (found.lines(), found.holes(), found.tail_padding());
    for (_, member) in found.every_member() {
        let _ = (member.first_line(), member.last_line(), member.straddles());
    }
    let _ = structs::skeleton::scenario(found, "file");
}

/// Where to write what into a file.
fn writes() -> impl Strategy<Value = Vec<(prop::sample::Index, u8)>> {
    let odd = prop_oneof![Just(0_u8), Just(0xff), Just(0x7f), Just(0x80), any::<u8>()];
    prop::collection::vec((any::<prop::sample::Index>(), odd), 1..20)
}

/// Types by kind, by the type that they refer to, by members, and what follows.
fn types() -> impl Strategy<Value = Vec<(u32, u32, u32, [u32; 12])>> {
    prop::collection::vec((0_u32..22, 0_u32..12, 0_u32..4, any::<[u32; 12]>()), 1..12)
}

/// The bytes of an ELF file that debug information and headers lie in: nobody reads the rest.
fn read_part(program: &[u8]) -> std::ops::Range<usize> {
    let begin = program.len() / 2;
    begin..program.len()
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn an_elf_file_with_bytes_changed_is_read_or_refused(
        which: prop::sample::Index,
        writes in writes(),
        in_header: bool,
    ) {
        let Some(programs) = compiled() else { return Ok(()) };
        let mut program = which.get(programs).clone();
        let part = if in_header { 0..64 } else { read_part(&program) };
        for (at, byte) in writes {
            let at = part.start + at.index(part.len());
            program[at] = byte;
        }
        read(&program);
    }

    #[test]
    fn an_elf_file_that_is_cut_short_is_refused(which: prop::sample::Index, end: prop::sample::Index) {
        let Some(programs) = compiled() else { return Ok(()) };
        let program = which.get(programs);
        read(&program[..end.index(program.len())]);
    }

    #[test]
    fn btf_with_bytes_changed_is_read_or_refused(writes in writes(), end: prop::sample::Index, cut: bool) {
        let mut bytes = btf();
        for (at, byte) in writes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if cut {
            bytes.truncate(end.index(bytes.len()));
        }
        read(&bytes);
    }

    #[test]
    fn btf_of_any_types_is_read_or_refused(types in types()) {
        let mut table = Table::default();
        for (kind, to, members, rest) in types {
            // Numbers that mostly lead to one of the types, so that loops come about.
            let near = |number: &u32| if number.is_multiple_of(3) { *number } else { number % 13 };
            let rest: Vec<u32> = rest.iter().map(near).collect();
            let words = match kind {
                1 | 14 | 17 => 1,
                3 => 3,
                4 | 5 | 15 | 19 => 3 * members,
                6 | 13 => 2 * members,
                _ => 0,
            };
            table.add(1, kind << 24 | members, to, &rest[..words as usize]);
        }
        read(&table.bytes());
    }
}

/// A file of BTF under construction.
#[derive(Default)]
struct Table(Vec<u32>);

impl Table {
    fn add(&mut self, name: u32, info: u32, size_or_type: u32, rest: &[u32]) {
        self.0.extend([name, info, size_or_type]);
        self.0.extend(rest);
    }

    fn bytes(&self) -> Vec<u8> {
        let strings = b"\0ring\0head\0tail\0u64\0";
        let types: Vec<u8> = self.0.iter().flat_map(|word| word.to_le_bytes()).collect();
        let length = |part: &[u8]| u32::try_from(part.len()).unwrap();
        let mut bytes = vec![0x9f, 0xeb, 1, 0];
        for word in [24, 0, length(&types), length(&types), length(strings)] {
            bytes.extend(u32::to_le_bytes(word));
        }
        bytes.extend(types);
        bytes.extend(strings);
        bytes
    }
}

/// `struct ring { u64 head; u64 tail[4]; struct ring *next; int a : 3; }`.
fn btf() -> Vec<u8> {
    let mut table = Table::default();
    table.add(16, 1 << 24, 8, &[64]); // 1: u64
    table.add(0, 3 << 24, 0, &[1, 1, 4]); // 2: u64[4]
    table.add(0, 2 << 24, 4, &[]); // 3: struct ring *
    let members = [6, 1, 0, 11, 2, 64, 16, 3, 320, 6, 1, 3 << 24 | 384];
    table.add(1, 1 << 31 | 4 << 24 | 4, 56, &members); // 4: struct ring
    table.bytes()
}

#[test]
fn the_file_that_is_damaged_is_sound() {
    let folder = tempfile::tempdir().unwrap();
    let ring = in_btf(&file(folder.path(), &btf()), &Wanted::new("ring")).unwrap().remove(0);
    let members: Vec<_> =
        ring.members.iter().map(|m| (m.name.as_str(), m.offset, m.bytes, m.type_name.as_str())).collect();
    let wanted =
        [("head", 0, 8, "u64"), ("tail", 8, 32, "u64[4]"), ("u64", 40, 8, "struct ring *"), ("head", 48, 8, "u64")];
    assert_eq!(members, wanted);
    assert_eq!(ring.members[3].bits.map(|bits| (bits.offset, bits.count)), Some((0, 3)));
    for program in compiled().into_iter().flatten() {
        let ring = in_binary(&file(folder.path(), program), &Wanted::new("ring")).unwrap().remove(0);
        assert_eq!((ring.bytes, ring.members.len()), (88, 9));
    }
}

#[test]
fn a_header_that_asks_for_all_memory_gets_none() {
    let Some(programs) = compiled() else { return };
    // The one with compressed sections: each begins with a header that says how long it is (ELF, Elf64_Chdr).
    let mut program = programs[3].clone();
    let zlib = |at: &usize| program[*at..*at + 8] == [1, 0, 0, 0, 0, 0, 0, 0] && program[*at + 24] == 0x78;
    let headers: Vec<usize> = (0..program.len() - 32).filter(zlib).collect();
    assert!(headers.len() > 2, "{headers:?}");
    for at in headers {
        program[at + 8..at + 16].copy_from_slice(&(7_u64 << 30).to_le_bytes());
    }
    let folder = tempfile::tempdir().unwrap();
    let error = in_binary(&file(folder.path(), &program), &Wanted::new("ring")).unwrap_err().to_string();
    assert!(error.contains("once decompressed"), "{error}");
    assert!(peak() < MEMORY_MAX, "{} bytes", peak());
}

#[test]
fn functions_that_take_functions_without_end_have_no_name_without_end() {
    // Each takes a pointer to the one before it, twice: its name would double 90 times.
    let mut table = Table::default();
    table.add(16, 1 << 24, 8, &[64]);
    for depth in 0..90 {
        table.add(
            0,
            13 << 24 | 2,
            1,
            &[1, if depth == 0 { 1 } else { 2 * depth + 1 }, 1, if depth == 0 { 1 } else { 2 * depth + 1 }],
        );
        table.add(0, 2 << 24, 2 * depth + 2, &[]);
    }
    table.add(1, 4 << 24 | 1, 8, &[6, 181, 0]);
    let folder = tempfile::tempdir().unwrap();
    let error = in_btf(&file(folder.path(), &table.bytes()), &Wanted::new("ring")).unwrap_err().to_string();
    assert!(error.contains("without end"), "{error}");
}

#[test]
fn structs_that_double_their_members_are_refused() {
    let mut table = Table::default();
    table.add(16, 1 << 24, 8, &[64]);
    for depth in 0..60 {
        table.add(1, 4 << 24 | 2, 8, &[6, depth + 1, 0, 11, depth + 1, 0]);
    }
    let folder = tempfile::tempdir().unwrap();
    let error = in_btf(&file(folder.path(), &table.bytes()), &Wanted::new("ring")).unwrap_err().to_string();
    assert!(error.contains("members"), "{error}");
}
