//! The child's side: gives up all it has, then reads the program.

use super::beside::Handed;
use super::child::{ANSWER_FD, DEBUG_FD, PROGRAM_FD, REQUEST_FD, SHARED_FD, WITH_DEBUG, WITH_SHARED};
use super::spots;
use addr2line::{Context, demangle_auto};
use nix::sys::prctl::set_no_new_privs;
use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::{Gid, Uid, geteuid, setgroups, setresgid, setresuid};
use object::read::ReadCache;
use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};
use plan::is_plain;
use std::borrow::Cow;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::path::Path;
use std::process::ExitCode;
use structs::elf::{Elf, OF_LINES, Sections};

/// User and group that own nothing (`nobody`).
const NOBODY: u32 = 65_534;
/// Address space, which holds the sections read: those of a browser have less.
const MEMORY_MAX: u64 = 4 << 30;
/// CPU time, seconds.
const SECONDS_MAX: u64 = 5;
/// Offsets that one request may ask for.
const OFFSETS_MAX: usize = 100_000;

/// The whole life of the parser's process: it gives up its privileges, reads offsets of code in the program that it
/// finds as descriptor 3, and its debug information in further ones, and writes what they are called. For a process that [`super::SymbolParser`] started, and none
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
    let has = |wanted: &str| text.lines().take(2).any(|line| line == wanted);
    let (debug, shared) = split_off(has(WITH_DEBUG), has(WITH_SHARED));
    match tell(&Handed { program, debug, shared }, &offsets, &mut answer) {
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

#[allow(unsafe_code)] // descriptors come by number
fn split_off(debug: bool, shared: bool) -> (Option<File>, Option<File>) {
    // SAFETY: as in `handed`: who started this process said in its request that it put them there.
    unsafe { (debug.then(|| File::from_raw_fd(DEBUG_FD)), shared.then(|| File::from_raw_fd(SHARED_FD))) }
}

/// Names first, which are cheap, then lines: who waits no longer has had the names.
pub(super) fn tell(handed: &Handed, offsets: &[u64], answer: &mut impl Write) -> Option<()> {
    let cache = ReadCache::new(&handed.program);
    let object = object::File::parse(&cache).ok()?;
    let placed: Vec<(u64, u64)> =
        offsets.iter().filter_map(|offset| Some((*offset, address(&object, *offset)?))).collect();
    let told = |names: Vec<(u64, u64, String)>| -> String {
        names.iter().map(|(at, distance, name)| format!("s {at:x} {distance:x} {}\n", one_line(name))).collect()
    };
    answer.write_all(told(names(&object, &placed)).as_bytes()).ok()?;
    let mut text = String::new();
    if let Ok(program) = read(&handed.program) {
        let moved = Moved::of(&program, handed.debug.as_ref());
        if let Some(Moved { file, .. }) = &moved {
            let cache = ReadCache::new(*file);
            // The program may have been stripped of its names, too.
            text += &object::File::parse(&cache).map_or_else(|_| String::new(), |debug| told(names(&debug, &placed)));
        }
        let elf = moved.as_ref().map_or(&program, |moved| &moved.elf);
        let shared = handed.shared.as_ref().and_then(|file| read(file).ok()).filter(|shared| is_shared(elf, shared));
        text += &lack(elf, shared.is_some()).unwrap_or_default();
        let lines = lines(elf, shared.as_ref(), &placed).unwrap_or_default();
        lines.iter().for_each(|(at, line, file)| text += &format!("l {at:x} {line} {}\n", one_line(file)));
    }
    answer.write_all(text.as_bytes()).ok()?;
    answer.write_all(b".\n").ok()
}

fn read(file: &File) -> Result<Elf, structs::Error> {
    Elf::read(file, Path::new("it"), &OF_LINES)
}

/// Whether it says where in the source instructions are.
fn has_lines(elf: &Elf) -> bool {
    !elf.section(".debug_info").is_empty()
}

/// Debug information that was moved out of a program.
struct Moved<'a> {
    file: &'a File,
    elf: Elf,
}

impl<'a> Moved<'a> {
    /// What was handed, where the program has none of its own and that is its.
    fn of(program: &Elf, file: Option<&'a File>) -> Option<Moved<'a>> {
        let file = file.filter(|_| !has_lines(program))?;
        let elf = read(file).ok().filter(|elf| has_lines(elf) && program.is_of_this_build(elf, file))?;
        Some(Moved { file, elf })
    }
}

fn is_shared(elf: &Elf, shared: &Elf) -> bool {
    elf.alt_link.as_ref().is_some_and(|(_, id)| shared.build_id.as_ref() == Some(id))
}

/// A line for the file that would say more.
fn lack(elf: &Elf, has_shared: bool) -> Option<String> {
    let hex = |id: &[u8]| id.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let line = |part: &str, id: Option<&[u8]>, name: Option<&[u8]>| {
        let name = name.map(String::from_utf8_lossy).unwrap_or_default();
        format!("{part} -{} -{}\n", id.map(hex).unwrap_or_default(), one_line(&name))
    };
    match (has_lines(elf), &elf.alt_link) {
        (false, _) => {
            let name = elf.debug_link.as_ref().map(|(name, _)| name.as_slice());
            Some(line("debug", elf.build_id.as_deref(), name))
        }
        (true, Some((name, id))) if !has_shared => Some(line("shared", Some(id), Some(name))),
        _ => None,
    }
}

/// The address that the linker gave to what lies at an offset of the file. The last there can be is none: the libraries
/// reckon with the one behind.
fn address<'d>(object: &impl Object<'d>, offset: u64) -> Option<u64> {
    object.segments().find_map(|segment| {
        let (start, bytes) = segment.file_range();
        let within = offset.checked_sub(start).filter(|within| *within < bytes)?;
        segment.address().checked_add(within).filter(|address| *address < u64::MAX)
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

/// Offset, line and file.
fn lines(elf: &Elf, shared: Option<&Elf>, placed: &[(u64, u64)]) -> Option<Vec<(u64, u32, String)>> {
    let mut dwarf = elf.dwarf(Sections::Main);
    if let Some(shared) = shared {
        dwarf.set_sup(shared.dwarf(Sections::Main));
    }
    let context = Context::from_dwarf(dwarf).ok()?;
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
    use super::{Handed, tell};
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
                testing::skip("there is no C compiler");
                None
            }
        }
    }

    fn told(folder: &std::path::Path, bytes: &[u8], offsets: &[u64]) -> Option<String> {
        let path = folder.join("copy");
        File::create(&path).unwrap().write_all(bytes).unwrap();
        let mut answer = Vec::new();
        tell(&Handed::new(File::open(&path).unwrap()), offsets, &mut answer)?;
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

    /// `Elf64_Ehdr` and `Elf64_Phdr` of elf(5), or those of 32 bits.
    #[test]
    fn a_segment_at_the_last_address_there_can_be_is_read_to_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let Some(mut bytes) = program(folder.path()) else { return };
        if bytes[4] != 2 {
            return testing::not_here("a compiler of programs of 64 bits");
        }
        let half = |bytes: &[u8], at: usize| u16::from_ne_bytes(bytes[at..at + 2].try_into().unwrap());
        let word = |bytes: &[u8], at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
        let (first, each, number) = (word(&bytes, 32) as usize, half(&bytes, 54), half(&bytes, 56));
        let mut offsets = Vec::new();
        for header in (0..number).map(|index| first + usize::from(index) * usize::from(each)) {
            offsets.push(word(&bytes, header + 8));
            bytes[header + 16..header + 24].copy_from_slice(&u64::MAX.to_ne_bytes());
        }
        let text = told(folder.path(), &bytes, &offsets).unwrap();
        assert!(!text.contains("small.c") && text.ends_with(".\n"), "{text}");
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
