//! Where in a program's file locks are taken: the C library's function, and the markers that the lab's own workers have.
//!
//! # References
//! The note of a marker: SystemTap wiki, "UserSpaceProbeImplementation"; `docs/tracing.md`.

use object::read::ReadCache;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol};
use std::collections::BTreeSet;
use std::io::{Read, Seek, Write};

/// What a child is sent for them.
pub(super) const REQUEST: &str = "spots\n";
/// The function that takes a lock. What is inlined, or another library's, is not found.
const FUNCTION: &str = "pthread_mutex_lock";
/// Who made the markers.
const PROVIDER: &str = "contention_lab";
/// More are nonsense: each worker's loop has a few.
const SPOTS_MAX: usize = 200;

/// What happens at a place.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    /// `pthread_mutex_lock` begins; its first argument is the lock.
    Locks,
    /// The lab's marker: the first attempt has failed. The lock is in this register, by the kernel's number.
    Contended(u32),
    /// The lab's marker: the lock is owned after a wait.
    Acquired(u32),
}

/// A place.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spot {
    /// Of the instruction in the file.
    pub(crate) offset: u64,
    pub(crate) what: What,
}

/// The child's side: writes a line each.
pub(super) fn tell(program: impl Read + Seek, answer: &mut impl Write) -> Option<()> {
    let cache = ReadCache::new(program);
    let object = object::File::parse(&cache).ok()?;
    let mut text = String::new();
    let symbols = object.dynamic_symbols().chain(object.symbols());
    let functions: BTreeSet<u64> = symbols
        .filter(|one| one.is_definition() && one.name() == Ok(FUNCTION))
        .filter_map(|one| offset(&object, one.address()))
        .collect();
    functions.iter().for_each(|offset| text.push_str(&format!("f {offset:x}\n")));
    for marker in markers(&object).unwrap_or_default() {
        text.push_str(&format!("m {:x} {} {}\n", marker.offset, marker.name, marker.register));
    }
    answer.write_all(text.as_bytes()).ok()?;
    answer.write_all(b".\n").ok()
}

/// The place in the file of what the linker put at that address.
fn offset<'d>(object: &impl Object<'d>, address: u64) -> Option<u64> {
    object.segments().find_map(|segment| {
        let (start, bytes) = segment.file_range();
        let within = address.checked_sub(segment.address()).filter(|within| *within < bytes)?;
        start.checked_add(within)
    })
}

struct Marker {
    offset: u64,
    name: String,
    /// That holds its third argument, as the assembler calls it.
    register: String,
}

fn markers<'d>(object: &impl Object<'d>) -> Option<Vec<Marker>> {
    let notes = object.section_by_name(".note.stapsdt")?.data().ok()?;
    let base = object.section_by_name(".stapsdt.base").map(|section| section.address());
    let mut markers = Vec::new();
    let mut rest = notes;
    while let Some((description, behind)) = note(rest) {
        rest = behind;
        markers.extend(marker(object, description, base));
    }
    Some(markers)
}

/// The first note's description, and what lies behind it: lengths of name and description, the type, and both, each padded
/// to four bytes.
fn note(notes: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = |at: usize| notes.get(at..at + 4).and_then(|four| four.try_into().ok()).map(u32::from_ne_bytes);
    let (name, description) = (length(0)? as usize, length(4)? as usize);
    let from = 12usize.checked_add(name.checked_next_multiple_of(4)?)?;
    let to = from.checked_add(description)?;
    Some((notes.get(from..to)?, notes.get(to.checked_next_multiple_of(4)?..).unwrap_or_default()))
}

/// Address, the base that the linker put it relative to, a semaphore's address, and three texts.
fn marker<'d>(object: &impl Object<'d>, description: &[u8], base: Option<u64>) -> Option<Marker> {
    let word = |at: usize| description.get(at..at + 8).and_then(|word| word.try_into().ok()).map(u64::from_ne_bytes);
    let (at, told_base) = (word(0)?, word(8)?);
    let mut texts =
        description.get(24..)?.split(|byte| *byte == 0).map(|text| std::str::from_utf8(text).unwrap_or_default());
    let (provider, name, arguments) = (texts.next()?, texts.next()?, texts.next()?);
    if provider != PROVIDER {
        return None;
    }
    let moved = base.map_or(0, |base| base.wrapping_sub(told_base));
    let register = arguments.split(' ').nth(2)?.split_once('@')?.1;
    Some(Marker {
        offset: offset(object, at.wrapping_add(moved))?,
        name: name.to_owned(),
        register: register.to_owned(),
    })
}

/// The watcher's side. What it does not know is left out.
pub(super) fn parse(text: &str) -> BTreeSet<Spot> {
    let spot = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let hex = |word: &str| u64::from_str_radix(word, 16).ok();
        match words[..] {
            ["f", offset] => Some(Spot { offset: hex(offset)?, what: What::Locks }),
            ["m", offset, "lock_contended", register] => {
                Some(Spot { offset: hex(offset)?, what: What::Contended(register_number(register)?) })
            }
            ["m", offset, "lock_acquired", register] => {
                Some(Spot { offset: hex(offset)?, what: What::Acquired(register_number(register)?) })
            }
            _ => None,
        }
    };
    text.lines().filter_map(spot).take(SPOTS_MAX).collect()
}

/// The kernel's number of a register (`asm/perf_regs.h`), by the assembler's name for all its 64 bits.
fn register_number(name: &str) -> Option<u32> {
    if let Some(number) = name.strip_prefix('x') {
        return number.parse().ok().filter(|number| *number < 31);
    }
    let names = ["%rax", "%rbx", "%rcx", "%rdx", "%rsi", "%rdi", "%rbp", "%rsp"];
    let eight = names.iter().position(|known| *known == name).and_then(|at| u32::try_from(at).ok());
    // Behind them lie the instruction pointer, the flags and six segments.
    let high = || name.strip_prefix("%r")?.parse::<u32>().ok().filter(|number| (8..16).contains(number));
    eight.or_else(|| high().map(|number| number + 8))
}

#[cfg(test)]
mod tests {
    use super::{Spot, What, note, parse, register_number};

    #[test]
    fn an_answer_is_believed_as_far_as_it_is_known() {
        let text = "f 1a0\nm 20 lock_contended %rdi\nm 30 lock_acquired %r9\nm 40 lock_released %rax\nm 50 lock_acquired 8(%rsp)\nx\n.\n";
        let spot = |offset, what| Spot { offset, what };
        let expected = [spot(0x20, What::Contended(5)), spot(0x30, What::Acquired(17)), spot(0x1a0, What::Locks)];
        assert_eq!(parse(text).into_iter().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn registers_have_the_kernels_numbers() {
        assert_eq!(
            ["%rax", "%rsp", "%r8", "%r15", "x5"].map(register_number),
            [Some(0), Some(7), Some(16), Some(23), Some(5)]
        );
        assert_eq!(["%eax", "%r16", "x31", "-8(%rbp)", ""].map(register_number), [None; 5]);
    }

    #[test]
    fn a_note_that_lies_about_its_length_is_none() {
        assert_eq!(note(&[]), None);
        let mut bytes = [8u32, 4, 3].map(u32::to_ne_bytes).concat();
        bytes.extend(b"stapsdt\0abcd");
        assert_eq!(note(&bytes), Some((&b"abcd"[..], &b""[..])));
        bytes[4..8].copy_from_slice(&u32::MAX.to_ne_bytes());
        assert_eq!(note(&bytes), None);
    }
}
