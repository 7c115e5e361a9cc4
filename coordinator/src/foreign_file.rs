//! Files that somebody else may have made: read whole, if they are files, and only if they are no larger than a record of
//! the lab's can be.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

/// Largest file. A run of ten thousand repetitions leaves about as much.
const BYTES_MAX: u64 = 1 << 30;

/// Reads a file that a user named: a plain one, or a pipe that a shell made of a command (`<(…)`).
///
/// # Errors
/// What the system answers; that it is no file; that it is too large.
pub(crate) fn read_named(path: &Path) -> io::Result<Vec<u8>> {
    match std::fs::metadata(path)?.file_type().is_fifo() {
        true => at_most(path, BYTES_MAX),
        false => read(path),
    }
}

/// Reads a file that nobody named, but that stands where one is expected: a pipe there might never have anything to read,
/// and a device never end.
///
/// # Errors
/// As [`read_named`].
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    match std::fs::metadata(path)?.is_file() {
        true => at_most(path, BYTES_MAX),
        false => Err(io::Error::other("it is no plain file")),
    }
}

fn at_most(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::other(format!("it is larger than {} MiB", most >> 20))),
        false => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::{at_most, read, read_named};
    use nix::sys::stat::Mode;
    use std::path::Path;

    #[test]
    fn what_is_no_file_or_too_large_is_refused_and_never_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, file) = (folder.path().join("pipe"), folder.path().join("file"));
        nix::unistd::mkfifo(&pipe, Mode::S_IRWXU).unwrap();
        std::fs::write(&file, "12345").unwrap();
        for odd in [&pipe, Path::new("/dev/zero"), folder.path()] {
            assert!(read(odd).unwrap_err().to_string().contains("no plain file"), "{odd:?}");
        }
        assert!(read_named(Path::new("/dev/zero")).unwrap_err().to_string().contains("no plain file"));
        assert_eq!((read(&file).unwrap(), read_named(&file).unwrap()), (b"12345".to_vec(), b"12345".to_vec()));
        assert_eq!(at_most(&file, 5).unwrap(), b"12345");
        assert!(at_most(&file, 4).unwrap_err().to_string().contains("larger than"));
        let writer = std::thread::spawn({
            let pipe = pipe.clone();
            move || std::fs::write(pipe, "{}")
        });
        assert_eq!(read_named(&pipe).unwrap(), b"{}", "a shell's <(...)");
        writer.join().unwrap().unwrap();
    }
}
