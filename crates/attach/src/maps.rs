//! Where in a process which files are mapped.

use host::Root;

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
    host::mappings(&Root::system(), pid).map_or_else(|_| Vec::new(), |seen| seen.all.into_iter().map(mapping).collect())
}

fn mapping(of: host::Mapping) -> Mapping {
    let path = of.name.starts_with('/').then(|| of.name.strip_suffix(" (deleted)").unwrap_or(&of.name).to_owned());
    let (start, end) = (of.address, of.address.saturating_add(of.bytes));
    let host::Mapping { offset, executable, device, inode, .. } = of;
    Mapping { start, end, offset, executable, device, inode, path }
}

#[cfg(test)]
mod tests {
    use super::mapping;

    #[test]
    fn a_path_is_without_its_mark_and_what_is_no_file_has_none() {
        let of = |name: &str| host::Mapping {
            address: 0x7f00,
            bytes: 0x80,
            offset: 0x1000,
            shared: false,
            writable: false,
            executable: true,
            device: (0x103, 2),
            inode: 77,
            name: name.to_owned(),
        };
        let one = mapping(of("/usr/lib/a b.so (deleted)"));
        assert_eq!((one.path.as_deref(), one.executable), (Some("/usr/lib/a b.so"), true));
        assert!(one.holds(0x7f7f) && !one.holds(0x7f80));
        assert_eq!((mapping(of("[stack]")).path, mapping(of("")).path), (None, None));
    }
}
