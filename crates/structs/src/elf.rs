//! An ELF file: the sections with debug information, whole and decompressed, and what names the files beside it.

use crate::error::Error;
use gimli::{Dwarf, DwarfFileType, EndianSlice, RunTimeEndian, SectionId};
use object::read::ReadCache;
use object::{CompressionFormat, Object, ObjectKind, ObjectSection, ObjectSymbol, RelocationKind, RelocationTarget};
use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes of one section once it is decompressed. The largest programs there are have less; a damaged header could ask
/// for all memory.
const SECTION_BYTES_MAX: u64 = 8 << 30;

/// Sections that types are read of; those of a `.dwo` or `.dwp` file end in `.dwo`.
const OF_TYPES: [&str; 11] = [
    ".debug_abbrev",
    ".debug_addr",
    ".debug_info",
    ".debug_line",
    ".debug_line_str",
    ".debug_str",
    ".debug_str_offsets",
    ".debug_types",
    ".debug_cu_index",
    ".debug_tu_index",
    ".BTF",
];

/// Sections that places in the source are read of ([`Elf::read`]).
pub const OF_LINES: [&str; 10] = [
    ".debug_abbrev",
    ".debug_addr",
    ".debug_info",
    ".debug_line",
    ".debug_line_str",
    ".debug_ranges",
    ".debug_rnglists",
    ".debug_str",
    ".debug_str_offsets",
    ".debug_aranges",
];

/// A section's bytes, as `gimli` takes them.
pub type Slice<'a> = EndianSlice<'a, RunTimeEndian>;

/// Which names the sections of a file have.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Sections {
    /// `.debug_info`.
    Main,
    /// `.debug_info.dwo`.
    Split,
}

/// What of an ELF file is of use here.
pub struct Elf {
    /// Its name in messages.
    pub(crate) path: PathBuf,
    pub(crate) endian: RunTimeEndian,
    /// Bytes of a pointer.
    pub(crate) pointer_bytes: u64,
    /// The largest alignment that a number has.
    pub(crate) align_max: u64,
    /// What tells this build from others.
    pub build_id: Option<Vec<u8>>,
    /// Name and checksum of the file that the debug information was moved to.
    pub debug_link: Option<(Vec<u8>, u32)>,
    /// Name and build identifier of the file that several share a part of it in.
    pub alt_link: Option<(Vec<u8>, Vec<u8>)>,
    sections: HashMap<String, Vec<u8>>,
}

impl Elf {
    /// Reads what types are made of.
    pub(crate) fn open(path: &Path) -> Result<Elf, Error> {
        if let Some(seen) = no_plain_file(path)? {
            return Err(not_elf(path, seen));
        }
        let file = File::open(path).map_err(|why| Error::Unreadable { file: path.to_owned(), why })?;
        Elf::read(&file, path, &OF_TYPES)
    }

    /// Reads these sections of an open file, wherever its position is; `path` is its name in messages.
    ///
    /// # Errors
    /// [`Error::Unreadable`], [`Error::NotElf`], [`Error::Damaged`].
    pub fn read(file: &File, path: &Path, sections: &[&str]) -> Result<Elf, Error> {
        let unreadable = |why| Error::Unreadable { file: path.to_owned(), why };
        must_be_elf(path, file)?;
        let bytes = file.metadata().map_err(unreadable)?.len();
        let cache = ReadCache::new(file);
        let damaged = |what: object::Error| Error::Damaged { file: path.to_owned(), what: what.to_string() };
        let object = object::File::parse(&cache).map_err(damaged)?;
        let mut kept = HashMap::new();
        for section in object.sections() {
            let Ok(name) = section.name() else { continue };
            let Some(name) = wanted(name, sections) else { continue };
            let read = Section { path, file, file_bytes: bytes, name: &name };
            let data = read.data(&object, &section)?;
            // Type units of an object file are sections of one name.
            kept.entry(name).or_insert_with(Vec::new).extend(data);
        }
        let own = |bytes: &[u8]| bytes.to_vec();
        let wide = object.is_64();
        Ok(Elf {
            path: path.to_owned(),
            endian: if object.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big },
            pointer_bytes: if wide { 8 } else { 4 },
            align_max: match object.architecture() {
                // System V ABI, Intel386 supplement: long long and double are aligned to 4 in structs.
                object::Architecture::I386 => 4,
                _ if wide => 16,
                _ => 8,
            },
            build_id: object.build_id().map_err(damaged)?.map(own),
            debug_link: object.gnu_debuglink().map_err(damaged)?.map(|(name, sum)| (own(name), sum)),
            alt_link: object.gnu_debugaltlink().map_err(damaged)?.map(|(name, id)| (own(name), own(id))),
            sections: kept,
        })
    }

    /// A section's bytes; none where there is no such section, or it was not asked for.
    pub fn section(&self, name: &str) -> &[u8] {
        self.sections.get(name).map_or(&[], Vec::as_slice)
    }

    /// The same by what it is.
    pub(crate) fn part(&self, id: SectionId, which: Sections) -> Slice<'_> {
        let name = match which {
            Sections::Main => Some(id.name()),
            Sections::Split => id.dwo_name(),
        };
        EndianSlice::new(name.map_or(&[], |name| self.section(name)), self.endian)
    }

    /// Its debug information.
    pub fn dwarf(&self, which: Sections) -> Dwarf<Slice<'_>> {
        let Ok(mut dwarf) = Dwarf::load(|id| Ok::<_, std::convert::Infallible>(self.part(id, which)));
        if which == Sections::Split {
            dwarf.file_type = DwarfFileType::Dwo;
        }
        dwarf
    }

    /// Whether the debug information in `moved`, read of `file`, is of this program's build: by the identifier, and where it
    /// has none by the checksum of the file that it names.
    pub fn is_of_this_build(&self, moved: &Elf, file: &File) -> bool {
        match (&self.build_id, &self.debug_link) {
            (Some(id), _) => moved.build_id.as_ref() == Some(id),
            (None, Some((_, sum))) => checksum(file) == Some(*sum),
            (None, None) => false,
        }
    }
}

/// The name under which a section is kept; `None` for one that is not read.
fn wanted(name: &str, sections: &[&str]) -> Option<String> {
    // .zdebug_info is an older spelling of a compressed .debug_info.
    let name = match name.strip_prefix(".zdebug_") {
        Some(rest) => format!(".debug_{rest}"),
        None => name.to_owned(),
    };
    sections.contains(&name.strip_suffix(".dwo").unwrap_or(&name)).then_some(name)
}

/// What stands there, where it is no plain file. Asked before it is opened: a pipe or a terminal might never have
/// anything to read, a device never end, and a program's debug information may name any file as holding a part of it.
pub(crate) fn no_plain_file(path: &Path) -> Result<Option<&'static str>, Error> {
    let about = std::fs::metadata(path).map_err(|why| Error::Unreadable { file: path.to_owned(), why })?;
    Ok(match about.is_file() {
        true => None,
        false if about.is_dir() => Some("it is a folder"),
        false => Some("it is no plain file"),
    })
}

/// Of a whole file, as `.gnu_debuglink` has it; `None` where it cannot be read.
fn checksum(file: &File) -> Option<u32> {
    const PART: usize = 1 << 16;
    let (mut sum, mut part, mut at) = (flate2::Crc::new(), vec![0; PART], 0);
    loop {
        match file.read_at(&mut part, at).ok()? {
            0 => return Some(sum.sum()),
            bytes => {
                sum.update(&part[..bytes]);
                at += bytes as u64;
            }
        }
    }
}

fn must_be_elf(path: &Path, file: &File) -> Result<(), Error> {
    let mut magic = [0; 4];
    let bytes = file.read_at(&mut magic, 0).map_err(|why| Error::Unreadable { file: path.to_owned(), why })?;
    match &magic {
        b"\x7fELF" => Ok(()),
        _ if bytes == 0 => Err(not_elf(path, "it is empty")),
        [b'#', b'!', ..] => Err(not_elf(path, "it is a script")),
        b"!<ar" => Err(not_elf(path, "it is an archive of object files")),
        [0x9f, 0xeb, ..] | [0xeb, 0x9f, ..] => Err(not_elf(path, "it is BTF, which --btf reads")),
        _ => Err(not_elf(path, &format!("it begins with {:02x?}", &magic[..bytes]))),
    }
}

fn not_elf(path: &Path, seen: &str) -> Error {
    Error::NotElf { file: path.to_owned(), seen: seen.to_owned() }
}

/// One section on its way out of the file.
struct Section<'a> {
    path: &'a Path,
    file: &'a File,
    file_bytes: u64,
    name: &'a str,
}

impl Section<'_> {
    fn data<'d, O: Object<'d>>(&self, object: &O, section: &O::Section<'_>) -> Result<Vec<u8>, Error> {
        let range = section.compressed_file_range().map_err(|error| self.damaged(&error.to_string()))?;
        let bytes = self.raw(range.offset, range.compressed_size)?;
        let mut data = match range.format {
            CompressionFormat::None => bytes,
            format => self.decompressed(format, &bytes, range.uncompressed_size)?,
        };
        if object.kind() == ObjectKind::Relocatable {
            relocate(object, section, &mut data);
        }
        Ok(data)
    }

    fn raw(&self, offset: u64, bytes: u64) -> Result<Vec<u8>, Error> {
        if bytes == 0 {
            return Ok(Vec::new());
        }
        if offset.checked_add(bytes).is_none_or(|end| end > self.file_bytes) {
            let (behind, all) = (offset.saturating_add(bytes), self.file_bytes);
            return Err(self.damaged(&format!("it ends at byte {behind}, the file at {all}")));
        }
        let mut data = vec![0; usize::try_from(bytes).map_err(|_| self.damaged("it is too long"))?];
        self.file
            .read_exact_at(&mut data, offset)
            .map_err(|why| Error::Unreadable { file: self.path.to_owned(), why })?;
        Ok(data)
    }

    fn decompressed(&self, format: CompressionFormat, data: &[u8], bytes: u64) -> Result<Vec<u8>, Error> {
        if bytes > SECTION_BYTES_MAX {
            return Err(self.damaged(&format!("it says that it has {bytes} bytes once decompressed")));
        }
        let reader: Box<dyn Read> = match format {
            CompressionFormat::Zlib => Box::new(flate2::read::ZlibDecoder::new(data)),
            CompressionFormat::Zstandard => Box::new(
                ruzstd::decoding::StreamingDecoder::new(data).map_err(|error| self.damaged(&error.to_string()))?,
            ),
            other => return Err(self.damaged(&format!("it is compressed in a way ({other:?}) that is not known here"))),
        };
        let mut whole = Vec::new();
        // Grows as data comes, not as the header says.
        reader
            .take(bytes)
            .read_to_end(&mut whole)
            .map_err(|error| self.damaged(&format!("decompressing it: {error}")))?;
        match whole.len() as u64 == bytes {
            true => Ok(whole),
            false => Err(self.damaged(&format!("it has {} bytes once decompressed and says {bytes}", whole.len()))),
        }
    }

    fn damaged(&self, what: &str) -> Error {
        Error::Damaged { file: self.path.to_owned(), what: format!("section {}: {what}", self.name) }
    }
}

/// Puts in what an object file leaves to the linker: where a string or a table lies in the section that it names.
fn relocate<'d, O: Object<'d>>(object: &O, section: &O::Section<'_>, data: &mut [u8]) {
    for (offset, relocation) in section.relocations() {
        let RelocationTarget::Symbol(symbol) = relocation.target() else { continue };
        let (RelocationKind::Absolute, Ok(symbol)) = (relocation.kind(), object.symbol_by_index(symbol)) else {
            continue;
        };
        let width = usize::from(relocation.size() / 8);
        let Some(place) = usize::try_from(offset).ok().and_then(|at| data.get_mut(at..)?.get_mut(..width)) else {
            continue;
        };
        let mut value = symbol.address().wrapping_add_signed(relocation.addend());
        let little = object.is_little_endian();
        if relocation.has_implicit_addend() {
            value = value.wrapping_add(number(place, little));
        }
        let bytes = if little { value.to_le_bytes() } else { value.to_be_bytes() };
        match (width, little) {
            (4, true) => place.copy_from_slice(&bytes[..4]),
            (4, false) => place.copy_from_slice(&bytes[4..]),
            (8, _) => place.copy_from_slice(&bytes),
            _ => {}
        }
    }
}

fn number(bytes: &[u8], little: bool) -> u64 {
    let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
    if little { bytes.iter().rev().fold(0, add) } else { bytes.iter().fold(0, add) }
}
