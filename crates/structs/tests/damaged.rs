//! Files made to harm who reads them: what a header or a type asks for without end is refused. Files damaged at random are
//! in `crates/hostile`.

use hostile::sound::{Btf, PROGRAMS, Sound, btf};
use std::path::{Path, PathBuf};
use structs::{Wanted, in_binary, in_btf};

/// Programs; `None`, having said why, where there is no compiler.
fn compiled() -> Option<&'static [Sound]> {
    if PROGRAMS.is_empty() {
        testing::skip("gcc cannot be run");
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
        let ring = in_binary(&file(folder.path(), &program.bytes), &Wanted::new("ring")).unwrap().remove(0);
        assert_eq!((ring.bytes, ring.members.len()), (88, 9));
    }
}

#[test]
fn a_header_that_asks_for_all_memory_gets_none() {
    let Some(programs) = compiled() else { return };
    // The one with compressed sections: each begins with a header that says how long it is (ELF, Elf64_Chdr).
    let mut program = programs[3].bytes.clone();
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
    let mut table = Btf::default();
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
    let mut table = Btf::default();
    table.add(16, 1 << 24, 8, &[64]);
    for depth in 0..60 {
        table.add(1, 4 << 24 | 2, 8, &[6, depth + 1, 0, 11, depth + 1, 0]);
    }
    let folder = tempfile::tempdir().unwrap();
    let error = in_btf(&file(folder.path(), &table.bytes()), &Wanted::new("ring")).unwrap_err().to_string();
    assert!(error.contains("members"), "{error}");
}

/// A program may name any file as holding a part of its debug information: none is waited for.
#[test]
fn a_pipe_or_a_device_in_place_of_a_file_is_refused_and_never_read() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("program.dwp");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let wanted = Wanted::new("ring");
    for odd in [&pipe, Path::new("/dev/zero")] {
        for error in [in_binary(odd, &wanted).unwrap_err(), in_btf(odd, &wanted).unwrap_err()] {
            assert!(error.to_string().contains("no plain file"), "{error}");
        }
    }
    let Some(programs) = compiled() else { return };
    let program = folder.path().join("program");
    std::fs::write(&program, &programs[0].bytes).unwrap();
    let error = in_binary(&program, &wanted).unwrap_err().to_string();
    assert!(error.contains("program.dwp") && error.contains("no plain file"), "{error}");
}
