//! Where in a process which files are mapped.
//!
//! # References
//! proc_pid_maps(5).

/// One mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    /// First address.
    pub(crate) start: u64,
    /// Address behind the last.
    pub(crate) end: u64,
    /// Offset of the first address in the file.
    pub(crate) offset: u64,
    /// Whether code may run there.
    pub(crate) executable: bool,
    /// Device, major and minor.
    pub(crate) device: (u32, u32),
    /// Number of the file on its device; 0 where there is none.
    pub(crate) inode: u64,
    /// The file's path in the process's own view, without the mark of a deleted one; `None` where there is no file.
    pub(crate) path: Option<String>,
}

impl Mapping {
    /// Whether the address lies in it.
    pub(crate) fn holds(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }
}

/// The mappings of a process, ascending; none where it has ended or hides them.
pub(crate) fn of(pid: u32) -> Vec<Mapping> {
    let text = std::fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().filter_map(mapping).collect()
}

fn mapping(line: &str) -> Option<Mapping> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let executable = words.next()?.as_bytes().get(2) == Some(&b'x');
    let offset = hex(words.next()?)?;
    let (major, minor) = words.next()?.split_once(':')?;
    let device = (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?);
    let inode = words.next()?.parse().ok()?;
    let path = words.next().map(str::trim_start).filter(|path| path.starts_with('/'));
    let path = path.map(|path| path.strip_suffix(" (deleted)").unwrap_or(path).to_owned());
    Some(Mapping { start: hex(start)?, end: hex(end)?, offset, executable, device, inode, path })
}

#[cfg(test)]
mod tests {
    use super::mapping;

    #[test]
    fn a_line_names_place_file_and_rights() {
        let one = mapping("7f00-7f80 r-xp 00001000 103:02 77         /usr/lib/a b.so (deleted)").unwrap();
        assert_eq!((one.start, one.end, one.offset, one.executable), (0x7f00, 0x7f80, 0x1000, true));
        assert_eq!((one.device, one.inode, one.path.as_deref()), ((0x103, 2), 77, Some("/usr/lib/a b.so")));
        assert!(one.holds(0x7f7f) && !one.holds(0x7f80));
        let stack = mapping("7ffd000-7ffe000 rw-p 00000000 00:00 0       [stack]").unwrap();
        assert_eq!((stack.path, stack.executable, stack.inode), (None, false, 0));
        assert_eq!(mapping("7f00 r-xp"), None);
    }
}
