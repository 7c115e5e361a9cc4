//! Debug information wherever it lies: compressed, split off, shared. The child is this test program again.

use super::child::tests::parser;
use super::{Place, places};
use crate::maps::Mapping;
use crate::notes::Notes;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCE: &str = "int twice(int x) {\n    return 2 * x;\n}\nint main(void) { return twice(3); }\n";

/// Runs a tool in a folder; `false`, having said why, where it is missing.
fn ran(tool: &str, arguments: &[&str], folder: &Path) -> bool {
    let why = match Command::new(tool).args(arguments).current_dir(folder).output() {
        Ok(output) if output.status.success() => return true,
        Ok(output) => format!("{tool} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => format!("{tool}: {error}"),
    };
    testing::skip(&why);
    false
}

/// A folder with the program `small`, built with these further flags.
fn program(flags: &[&str]) -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().unwrap();
    // Sections that are too small are not compressed.
    let more: String = (0..100).map(|nth| format!("int function_{nth}(int x) {{ return x + {nth}; }}\n")).collect();
    std::fs::write(folder.path().join("small.c"), format!("{SOURCE}{more}")).unwrap();
    let arguments = [&["-g", "-O0", "small.c", "-o", "small"][..], flags].concat();
    ran("cc", &arguments, folder.path()).then_some(folder)
}

/// Moves the program's debug information, and its names, to a file; `link` says whether it names that.
fn moved(folder: &Path, to: &str, link: bool) -> bool {
    let steps: [&[&str]; 3] =
        [&["--only-keep-debug", "small", to], &["--strip-all", "small"], &["--add-gnu-debuglink", to, "small"]];
    let steps = if link { &steps[..] } else { &steps[..2] };
    steps.iter().all(|arguments| ran("objcopy", arguments, folder))
}

/// What is known of the bytes of a program, as if this process had it mapped whole; without those of which nothing is.
fn known(path: &Path, folders: &[PathBuf]) -> Vec<Place> {
    const START: u64 = 0x10_0000;
    let bytes = std::fs::metadata(path).unwrap().len();
    let mapping = Mapping {
        start: START,
        end: START + bytes,
        offset: 0,
        executable: true,
        device: (0, 1),
        inode: 1,
        path: Some(path.to_str().unwrap().to_owned()),
    };
    let addresses: BTreeSet<u64> = (START..START + bytes).collect();
    let wanted = BTreeMap::from([(std::process::id(), addresses)]);
    let (parser, mut notes) = (parser().looking_in(folders.to_vec()), Notes::default());
    let all = places(&wanted, &|_| vec![mapping.clone()], Some(&parser), &mut notes);
    let notes = notes.into_list();
    assert!(notes.is_empty(), "{notes:?}");
    all.into_values().filter(|place| place.symbol.is_some() || place.source.is_some()).collect()
}

/// Where in the source the function `twice` is.
fn lines_of_twice(places: &[Place]) -> BTreeSet<u32> {
    let is_twice = |place: &&Place| place.symbol.as_deref().is_some_and(|name| name.starts_with("twice+"));
    let sources = places.iter().filter(is_twice).filter_map(|place| place.source.clone());
    sources.filter(|(file, _)| file.ends_with("small.c")).map(|(_, line)| line).collect()
}

fn all_lines() -> BTreeSet<u32> {
    (1..=3).collect()
}

#[test]
fn compressed_sections_have_lines() {
    for how in ["zlib", "zlib-gnu", "zstd"] {
        let Some(folder) = program(&[]) else { return };
        let program = folder.path().join("small");
        assert_eq!(lines_of_twice(&known(&program, &[])), all_lines(), "as it was built");
        let before = std::fs::metadata(&program).unwrap().len();
        if !ran("objcopy", &[&format!("--compress-debug-sections={how}"), "small"], folder.path()) {
            return;
        }
        assert_ne!(std::fs::metadata(&program).unwrap().len(), before, "{how} changed nothing");
        assert_eq!(lines_of_twice(&known(&program, &[])), all_lines(), "{how}");
    }
}

#[test]
fn what_was_moved_is_found_by_the_name_of_its_file() {
    let Some(folder) = program(&[]) else { return };
    let program = folder.path().join("small");
    std::fs::create_dir(folder.path().join(".debug")).unwrap();
    if !moved(folder.path(), ".debug/small.debug", true) {
        return;
    }
    assert_eq!(lines_of_twice(&known(&program, &[])), all_lines());
    // Another build's is not taken for it, by the identifier.
    std::fs::write(folder.path().join("small.c"), SOURCE.replace("2 * x", "x + x + 1")).unwrap();
    if ran("cc", &["-g", "small.c", "-o", ".debug/small.debug"], folder.path()) {
        assert_eq!(lines_of_twice(&known(&program, &[])), BTreeSet::new());
    }
}

#[test]
fn without_a_build_identifier_the_checksum_tells_whether_a_file_is_the_one() {
    let Some(folder) = program(&["-Wl,--build-id=none"]) else { return };
    let (program, debug) = (folder.path().join("small"), folder.path().join("small.debug"));
    if !moved(folder.path(), "small.debug", true) {
        return;
    }
    assert_eq!(lines_of_twice(&known(&program, &[])), all_lines());
    let mut bytes = std::fs::read(&debug).unwrap();
    bytes.push(0);
    std::fs::write(&debug, bytes).unwrap();
    assert_eq!(lines_of_twice(&known(&program, &[])), BTreeSet::new());
}

#[test]
fn what_was_moved_is_found_by_its_build_identifier_below_a_folder_of_one_s_own() {
    let Some(folder) = program(&["-Wl,--build-id=0x0badcafe00112233"]) else { return };
    let program = folder.path().join("small");
    if !moved(folder.path(), "small.debug", false) {
        return;
    }
    assert_eq!(lines_of_twice(&known(&program, &[])), BTreeSet::new(), "it lies where nobody looks");
    let root = folder.path().join("debug");
    std::fs::create_dir_all(root.join(".build-id/0b")).unwrap();
    std::fs::rename(folder.path().join("small.debug"), root.join(".build-id/0b/adcafe00112233.debug")).unwrap();
    assert_eq!(lines_of_twice(&known(&program, &[root])), all_lines());
}

#[test]
fn what_several_programs_share_is_read_beside_the_rest() {
    // The folder in which they were compiled is among what they share.
    let Some(folder) = program(&["-gdwarf-4"]) else { return };
    let at = folder.path();
    let root = at.join("debug");
    std::fs::create_dir(&root).unwrap();
    let copied = std::fs::copy(at.join("small"), at.join("other")).is_ok();
    if !copied || !ran("dwz", &["-m", "debug/shared", "-M", "debug/shared", "small", "other"], at) {
        return;
    }
    assert!(root.join("shared").exists(), "dwz shares something");
    assert_eq!(lines_of_twice(&known(&at.join("small"), &[root])), all_lines());
}
