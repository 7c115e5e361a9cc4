//! Sound inputs, of the repository's own and of real programs: what is bent comes far behind the reader, where what is
//! made of random bytes does not.

use object::{Object, ObjectSection};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// An input that its reader takes.
#[derive(Clone, Debug)]
pub struct Sound {
    /// What it is, for messages.
    pub name: String,
    /// What is in it.
    pub bytes: Vec<u8>,
    /// The parts of it that a reader follows, where the rest is not looked at.
    pub read: Vec<Range<usize>>,
}

impl Sound {
    fn text(name: String, text: String) -> Sound {
        Sound { name, read: Vec::new(), bytes: text.into_bytes() }
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files below a folder of the repository whose names fit, by name.
fn files(folder: &str, fits: impl Fn(&str) -> bool) -> Vec<Sound> {
    let mut found = Vec::new();
    let mut open = vec![repository().join(folder)];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next).expect("a folder of the repository") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            match path.is_dir() {
                true => open.push(path),
                false if fits(&name) => {
                    found.push(Sound::text(name, std::fs::read_to_string(&path).expect("a text of the repository")));
                }
                false => {}
            }
        }
    }
    found.sort_by(|a, b| (&a.name, &a.bytes).cmp(&(&b.name, &b.bytes)));
    assert!(!found.is_empty(), "nothing in {folder}");
    found
}

/// The scenarios of the repository, those of cases and exercises too.
pub static SCENARIOS: LazyLock<Vec<Sound>> =
    LazyLock::new(|| files("scenarios", |name| name.ends_with(".toml") && name != exercise::FILE));

/// The machines that the model knows.
pub static MACHINES: LazyLock<Vec<Sound>> =
    LazyLock::new(|| files("crates/model/machines", |name| name.ends_with(".toml")));

/// What the exercises ask.
pub static EXERCISES: LazyLock<Vec<Sound>> =
    LazyLock::new(|| files("scenarios/exercises", |name| name == exercise::FILE));

/// Where an exercise begins, for the gates to judge.
pub static STARTERS: LazyLock<Vec<Sound>> =
    LazyLock::new(|| files("scenarios/exercises", |name| name == "starter.toml"));

/// What `coordinator run` left of a scenario with locks, latencies and memory steps, its longest lists cut short.
pub static RUN: LazyLock<Vec<Sound>> =
    LazyLock::new(|| vec![Sound::text("run.json".into(), include_str!("../sound/run.json").into())]);

/// What `coordinator topology --measure --json` printed.
pub static TOPOLOGY: LazyLock<Vec<Sound>> =
    LazyLock::new(|| vec![Sound::text("topology.json".into(), include_str!("../sound/topology.json").into())]);

/// What is compiled: a struct with everything that a reader follows, in few bytes.
const SOURCE: &str = "typedef struct { int x; char y; } pair;
union word { long whole; int halves[2]; };
struct ring { pair p; union word w; int (*call)(int, const char *); unsigned a : 3; int m[2][3]; struct ring *next;
              struct { short s; union { long l; char c; }; } in; const volatile char *text; double d[]; };
struct ring *keep;
int twice(int x) { return keep ? 2 * x : x; }
int main(void) { return twice(keep != 0); }
";

/// How it is compiled: versions of DWARF, type units, compression, an object file.
const KINDS: [&[&str]; 5] =
    [&["-gdwarf-5"], &["-gdwarf-4"], &["-g", "-fdebug-types-section"], &["-g", "-gz=zlib"], &["-g", "-c"]];

/// The type that [`PROGRAMS`] and [`btf`] hold.
pub const TYPE: &str = "ring";

/// Programs with debug information, the fourth of them compressed; none where there is no compiler.
pub static PROGRAMS: LazyLock<Vec<Sound>> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("ring.c");
    std::fs::write(&source, SOURCE).expect("a source file");
    let compiled = |arguments: &[&str]| {
        let program = folder.path().join("ring");
        let mut command = Command::new("gcc");
        command.args(arguments).arg(&source).arg("-o").arg(&program);
        let output = command.output().ok()?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let bytes = std::fs::read(program).expect("what was compiled");
        Some(Sound { name: arguments.join(" "), read: read_parts(&bytes), bytes })
    };
    KINDS.iter().filter_map(|arguments| compiled(arguments)).collect()
});

/// Of an ELF file: its header, the sections with debug information, symbols and notes, and the table of all sections.
fn read_parts(program: &[u8]) -> Vec<Range<usize>> {
    let file = object::File::parse(program).expect("a program");
    let of_use = |name: &str| {
        name.starts_with(".debug") || [".symtab", ".strtab", ".shstrtab", ".dynsym", ".note.stapsdt"].contains(&name)
    };
    let parts = file.sections().filter(|section| section.name().is_ok_and(of_use));
    let range = |(offset, bytes): (u64, u64)| offset as usize..(offset + bytes) as usize;
    let mut parts: Vec<Range<usize>> = parts.filter_map(|section| section.file_range().map(range)).collect();
    // Elf64_Ehdr: e_shoff stands at 40.
    let table = u64::from_le_bytes(program[40..48].try_into().expect("eight bytes")) as usize;
    parts.extend([0..64, table..program.len()]);
    parts.retain(|part| !part.is_empty());
    parts
}

/// A file of BTF under construction.
#[derive(Default)]
pub struct Btf(Vec<u32>);

impl Btf {
    /// Adds a type: offset of its name, its info word, its size or the type that it refers to, and what follows.
    pub fn add(&mut self, name: u32, info: u32, size_or_type: u32, rest: &[u32]) {
        self.0.extend([name, info, size_or_type]);
        self.0.extend(rest);
    }

    /// The file, with the names that stand at 1 (`ring`), 6 (`head`), 11 (`tail`) and 16 (`u64`).
    pub fn bytes(&self) -> Vec<u8> {
        let strings = b"\0ring\0head\0tail\0u64\0";
        let types: Vec<u8> = self.0.iter().flat_map(|word| word.to_le_bytes()).collect();
        let length = |part: &[u8]| u32::try_from(part.len()).expect("few types");
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
pub fn btf() -> Vec<u8> {
    let mut table = Btf::default();
    table.add(16, 1 << 24, 8, &[64]); // 1: u64
    table.add(0, 3 << 24, 0, &[1, 1, 4]); // 2: u64[4]
    table.add(0, 2 << 24, 4, &[]); // 3: struct ring *
    let members = [6, 1, 0, 11, 2, 64, 16, 3, 320, 6, 1, 3 << 24 | 384];
    table.add(1, 1 << 31 | 4 << 24 | 4, 56, &members); // 4: struct ring
    table.bytes()
}

/// [`btf`] as an input.
pub static BTF: LazyLock<Vec<Sound>> =
    LazyLock::new(|| vec![Sound { name: "ring.btf".into(), bytes: btf(), read: Vec::new() }]);
