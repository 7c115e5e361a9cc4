//! The child's side: gives up all it has, then reads the program.

use super::child::{ANSWER_FD, PROGRAM_FD, REQUEST_FD};
use super::spots;
use addr2line::gimli::{Dwarf, EndianSlice, RunTimeEndian, SectionId};
use addr2line::{Context, demangle_auto};
use nix::sys::prctl::set_no_new_privs;
use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::{Gid, Uid, geteuid, setgroups, setresgid, setresuid};
use object::read::ReadCache;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};
use plan::is_plain;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::FromRawFd;
use std::process::ExitCode;

/// User and group that own nothing (`nobody`).
const NOBODY: u32 = 65_534;
/// Address space, which holds the sections read: those of a browser have less.
const MEMORY_MAX: u64 = 4 << 30;
/// CPU time, seconds.
const SECONDS_MAX: u64 = 5;
/// Offsets that one request may ask for.
const OFFSETS_MAX: usize = 100_000;

/// The whole life of the parser's process: it gives up its privileges, reads offsets of code in the program that it
/// finds as descriptor 3, and writes what they are called. For a process that [`super::SymbolParser`] started, and none
/// else.
pub fn serve() -> ExitCode {
    // A file that is not read harms nobody, one that is read by root may.
    if let Err(errno) = give_up() {
        return ExitCode::from(u8::try_from(errno as i32).unwrap_or(1));
    }
    let (program, mut request, mut answer) = handed();
    let mut text = String::new();
    if request.read_to_string(&mut text).is_err() {
        return ExitCode::FAILURE;
    }
    if text == spots::REQUEST {
        return match spots::tell(&program, &mut answer) {
            Some(()) => ExitCode::SUCCESS,
            None => ExitCode::FAILURE,
        };
    }
    let offsets: Vec<u64> =
        text.lines().take(OFFSETS_MAX).filter_map(|line| u64::from_str_radix(line, 16).ok()).collect();
    match tell(&program, &offsets, &mut answer) {
        Some(()) => ExitCode::SUCCESS,
        None => ExitCode::FAILURE,
    }
}

/// Bounds first, then groups, group and user, and no way back by a program with privileges of its own.
fn give_up() -> nix::Result<()> {
    for (what, most) in [
        (Resource::RLIMIT_AS, MEMORY_MAX),
        (Resource::RLIMIT_CPU, SECONDS_MAX),
        (Resource::RLIMIT_FSIZE, 1 << 20),
        (Resource::RLIMIT_CORE, 0),
        (Resource::RLIMIT_NOFILE, 16),
        (Resource::RLIMIT_NPROC, 0),
    ] {
        setrlimit(what, most, most)?;
    }
    if geteuid().is_root() {
        setgroups(&[])?;
        let (group, user) = (Gid::from_raw(NOBODY), Uid::from_raw(NOBODY));
        setresgid(group, group, group)?;
        setresuid(user, user, user)?;
    }
    set_no_new_privs()
}

#[allow(unsafe_code)] // descriptors come by number
fn handed() -> (File, File, File) {
    // SAFETY: who started this process put them there and uses them no more; this is called once, by `serve`, before
    // which nothing here was opened.
    unsafe { (File::from_raw_fd(PROGRAM_FD), File::from_raw_fd(REQUEST_FD), File::from_raw_fd(ANSWER_FD)) }
}

/// Names first, which are cheap, then lines: who waits no longer has had the names.
pub(super) fn tell(program: impl Read + Seek, offsets: &[u64], answer: &mut impl Write) -> Option<()> {
    let cache = ReadCache::new(program);
    let object = object::File::parse(&cache).ok()?;
    let placed: Vec<(u64, u64)> =
        offsets.iter().filter_map(|offset| Some((*offset, address(&object, *offset)?))).collect();
    let mut text = String::new();
    for (offset, distance, name) in names(&object, &placed) {
        text.push_str(&format!("s {offset:x} {distance:x} {}\n", one_line(&name)));
    }
    answer.write_all(text.as_bytes()).ok()?;
    let lines = lines(&object, &placed).unwrap_or_default();
    let text: String =
        lines.iter().map(|(offset, line, file)| format!("l {offset:x} {line} {}\n", one_line(file))).collect();
    answer.write_all(text.as_bytes()).ok()?;
    answer.write_all(b".\n").ok()
}

/// The address that the linker gave to what lies at an offset of the file.
fn address<'d>(object: &impl Object<'d>, offset: u64) -> Option<u64> {
    object.segments().find_map(|segment| {
        let (start, bytes) = segment.file_range();
        let within = offset.checked_sub(start).filter(|within| *within < bytes)?;
        segment.address().checked_add(within)
    })
}

/// Offset, distance into the function, and its name.
fn names<'d>(object: &impl Object<'d>, placed: &[(u64, u64)]) -> Vec<(u64, u64, String)> {
    let mut functions: Vec<(u64, u64, &str)> = object
        .symbols()
        .chain(object.dynamic_symbols())
        .filter(|one| one.kind() == SymbolKind::Text && one.is_definition())
        .filter_map(|one| Some((one.address(), one.size(), one.name().ok()?)))
        .collect();
    functions.sort_unstable();
    let name = |address: u64| {
        let behind = functions.partition_point(|(start, ..)| *start <= address);
        let (start, size, name) = functions.get(behind.checked_sub(1)?)?;
        let holds = *size == 0 || address - start < *size;
        holds.then(|| (address - start, demangle_auto(Cow::Borrowed(name), None).into_owned()))
    };
    let named =
        placed.iter().filter_map(|(offset, address)| name(*address).map(|(distance, name)| (*offset, distance, name)));
    named.collect()
}

/// Offset, line and file, where there is debug information that is not compressed.
fn lines<'d>(object: &impl Object<'d>, placed: &[(u64, u64)]) -> Option<Vec<(u64, u32, String)>> {
    let endian = if object.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let sections: HashMap<String, &[u8]> = object
        .sections()
        .filter_map(|one| Some((one.name().ok()?.to_owned(), one.data().ok()?)))
        .filter(|(name, _)| name.starts_with(".debug_"))
        .collect();
    let load = |id: SectionId| {
        let data = sections.get(id.name()).copied().unwrap_or_default();
        Ok::<_, addr2line::gimli::Error>(EndianSlice::new(data, endian))
    };
    let context = Context::from_dwarf(Dwarf::load(load).ok()?).ok()?;
    let line = |(offset, address): &(u64, u64)| {
        let place = context.find_location(*address).ok()??;
        Some((*offset, place.line?, place.file?.to_owned()))
    };
    Some(placed.iter().filter_map(line).collect())
}

fn one_line(name: &str) -> String {
    name.chars().filter(|one| is_plain(*one)).collect()
}

#[cfg(test)]
mod tests {
    use super::tell;
    use std::fs::File;
    use std::io::{Read, Write};
    use std::process::Command;

    /// A small program with debug information, built by `cc`; `None`, having said so, where there is none.
    fn program(folder: &std::path::Path) -> Option<Vec<u8>> {
        let (source, program) = (folder.join("small.c"), folder.join("small"));
        std::fs::write(&source, "int twice(int x) {\n    return 2 * x;\n}\nint main(void) { return twice(3); }\n")
            .unwrap();
        match Command::new("cc").args(["-g", "-O0", "-o"]).arg(&program).arg(&source).status() {
            Ok(status) if status.success() => Some(std::fs::read(&program).unwrap()),
            _ => {
                assert!(std::env::var_os("LAB_NO_SKIPS").is_none(), "may not skip here: no C compiler");
                eprintln!("skipped: no C compiler");
                None
            }
        }
    }

    fn told(folder: &std::path::Path, bytes: &[u8], offsets: &[u64]) -> Option<String> {
        let path = folder.join("copy");
        File::create(&path).unwrap().write_all(bytes).unwrap();
        let mut answer = Vec::new();
        tell(&File::open(&path).unwrap(), offsets, &mut answer)?;
        let mut text = String::new();
        answer.as_slice().read_to_string(&mut text).unwrap();
        Some(text)
    }

    #[test]
    fn functions_and_lines_are_found_by_the_offset_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let Some(bytes) = program(folder.path()) else { return };
        let every: Vec<u64> = (0..bytes.len() as u64).collect();
        let text = told(folder.path(), &bytes, &every).unwrap();
        assert!(text.lines().any(|line| line.starts_with("s ") && line.ends_with(" 0 twice")), "{text}");
        let line = text.lines().find(|line| line.starts_with("l ") && line.ends_with("small.c"));
        assert!(line.is_some_and(|line| line.split(' ').nth(2).unwrap().parse::<u32>().unwrap() <= 4), "{line:?}");
        assert!(text.ends_with("\n.\n"));
    }

    #[test]
    fn damaged_programs_are_read_to_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let Some(bytes) = program(folder.path()) else { return };
        let offsets: Vec<u64> = (0..bytes.len() as u64).step_by(64).collect();
        for cut in (0..bytes.len()).step_by(bytes.len() / 40) {
            let _ = told(folder.path(), &bytes[..cut], &offsets);
        }
        // The same numbers each time, by a generator of Marsaglia's.
        let mut state = 88_172_645_463_325_252_u64;
        for _ in 0..150 {
            let mut damaged = bytes.clone();
            for _ in 0..40 {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                let at = (state >> 8) as usize % damaged.len();
                damaged[at] = state as u8;
            }
            let _ = told(folder.path(), &damaged, &offsets);
        }
    }
}
