//! The file system that segments live on.

use crate::mounts::mount_at;
use crate::root::Root;
use nix::sys::statvfs::statvfs;

/// `/dev/shm` as it is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedMemory {
    /// Its size, bytes.
    pub bytes: u64,
    /// What is left for this process, bytes.
    pub free_bytes: u64,
    /// Its mount options as `/proc/self/mounts` lists them, comma by comma; empty where it is no mount of its own.
    pub options: Vec<String>,
}

impl SharedMemory {
    /// Whether nothing can be created there.
    pub fn read_only(&self) -> bool {
        self.options.iter().any(|option| option == "ro")
    }

    /// The mount's own rule for huge pages: `never` where it names none (the default of a tmpfs).
    pub fn huge(&self) -> &str {
        self.options.iter().find_map(|option| option.strip_prefix("huge=")).unwrap_or("never")
    }
}

/// Looks at `/dev/shm`; `None` where it is not there or cannot be asked.
///
/// # References
/// shm_overview(7); statvfs(3); tmpfs(5).
pub fn shared_memory(root: &Root) -> Option<SharedMemory> {
    let folder = root.path("dev/shm");
    let seen = statvfs(&folder).ok().filter(|_| folder.is_dir())?;
    let bytes = |blocks: u64| blocks.saturating_mul(seen.fragment_size());
    let mounts = root.text("proc/self/mounts").unwrap_or_default();
    let options = mount_at(&mounts, "/dev/shm").map_or_else(Vec::new, |mount| mount.options);
    Some(SharedMemory {
        bytes: bytes(seen.blocks()),
        free_bytes: bytes(seen.blocks_available()),
        options: options.into_iter().map(str::to_owned).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::shared_memory;
    use crate::fixture::Fixture;

    #[test]
    fn size_is_asked_of_the_file_system_and_options_of_the_table_of_mounts() {
        let mounts =
            "tmpfs /dev/shm tmpfs rw 0 0\nproc /proc proc rw 0 0\ntmpfs /dev/shm tmpfs ro,noexec,huge=advise 0 0\n";
        let fixture = Fixture::new().file("dev/shm/nothing", "").file("proc/self/mounts", mounts);
        let seen = shared_memory(&fixture.root()).unwrap();
        assert!(seen.bytes >= seen.free_bytes && seen.bytes > 0, "{seen:?}");
        assert_eq!(seen.options, ["ro", "noexec", "huge=advise"]);
        assert!(seen.read_only() && seen.huge() == "advise");
    }

    #[test]
    fn a_folder_without_a_mount_of_its_own_has_no_options_and_none_is_none() {
        let seen = shared_memory(&Fixture::new().file("dev/shm/nothing", "").root()).unwrap();
        assert!(seen.options.is_empty() && !seen.read_only() && seen.huge() == "never");
        assert_eq!(shared_memory(&Fixture::new().root()), None);
        assert_eq!(shared_memory(&Fixture::new().file("dev/shm", "a file").root()), None);
    }
}
