//! How the maps write a file's device and inode, on file systems where stat(2) says otherwise (btrfs, overlays): asked by
//! mapping the file here for a moment.
#![allow(unsafe_code)] // mmap

use crate::segment::{self, Key};
use host::Root;
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use nix::sys::stat::{major, minor};
use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// One page at most: enough to stand in the maps.
const LENGTH: NonZeroUsize = NonZeroUsize::MIN;

/// By what the kernel knows the file in maps. A file that may not be read is asked by stat alone.
///
/// # Errors
/// Where there is no such file.
pub(crate) fn key_of(path: &Path) -> io::Result<Key> {
    let stat = std::fs::metadata(path)?;
    let mapped = File::open(path).ok().and_then(|file| mapped_key(&file));
    Ok(mapped.unwrap_or_else(|| {
        let device = stat.dev();
        let number = |part: u64| u32::try_from(part).unwrap_or(u32::MAX);
        ((number(major(device)), number(minor(device))), stat.ino())
    }))
}

fn mapped_key(file: &File) -> Option<Key> {
    // SAFETY: a fresh mapping at an address of the kernel's choice takes nobody's memory; without access (PROT_NONE)
    // nobody reads through it, so that a file that shrinks does no harm.
    let mapped = unsafe { mmap(None, LENGTH, ProtFlags::PROT_NONE, MapFlags::MAP_SHARED, file, 0) }.ok()?;
    let address = mapped.addr().get() as u64;
    let seen = host::mappings(&Root::system(), std::process::id());
    // SAFETY: exactly what was mapped above, of which no reference or pointer is left.
    let unmapped = unsafe { munmap(mapped, LENGTH.get()) };
    debug_assert!(unmapped.is_ok(), "a mapping of one's own");
    seen.ok()?.shared().find(|one| one.address <= address && address < one.address + one.bytes).map(segment::key)
}

#[cfg(test)]
mod tests {
    use super::{key_of, mapped_key};
    use std::io::Write;

    #[test]
    fn a_file_is_known_as_the_maps_have_it() {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(b"something").expect("room");
        let mapped = mapped_key(file.as_file()).expect("it can be mapped");
        assert_eq!(key_of(file.path()).expect("it is there"), mapped);
        assert!(mapped.1 > 0, "{mapped:?}");
    }

    #[test]
    fn what_is_not_there_is_an_error() {
        assert_eq!(key_of("/nowhere/at all".as_ref()).expect_err("no file").kind(), std::io::ErrorKind::NotFound);
    }
}
