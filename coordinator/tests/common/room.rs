//! A mount namespace for one thread of a test, and for what it starts: a `/dev/shm` that nobody else uses, small if need
//! be, and file systems of a test's own. What is left in it was left by the test.

use super::is_root;
use nix::sched::{CloneFlags, unshare};
use std::path::{Path, PathBuf};
use std::process::Command;

const SHM: &str = "/dev/shm";

/// The namespace that the calling thread is in from now on. It goes with the last process in it.
pub(crate) struct Room(());

impl Room {
    /// Enters one; `None` where only root may. For a thread that was started for it: there is no way back.
    pub(crate) fn enter() -> Option<Room> {
        if !is_root() || unshare(CloneFlags::CLONE_NEWNS).is_err() {
            return None;
        }
        let room = Room(());
        // Or the mounts would show in everybody's.
        room.mount(&["--make-rprivate", "/"]);
        room.mount_small(Path::new(SHM), "64m");
        Some(room)
    }

    /// mount(8), in here.
    pub(crate) fn mount(&self, arguments: &[&str]) {
        let output = Command::new("mount").args(arguments).output().unwrap();
        assert!(output.status.success(), "mount {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// An empty file system of that size, as tmpfs takes it, over a folder.
    pub(crate) fn mount_small(&self, folder: &Path, size: &str) {
        self.mount(&["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs", &folder.display().to_string()]);
    }

    /// Mounts it again in another way: `ro`, `size=64k`.
    pub(crate) fn remount(&self, folder: &Path, how: &str) {
        self.mount(&["-o", &format!("remount,{how}"), &folder.display().to_string()]);
    }

    /// Takes a file system away again.
    pub(crate) fn unmount(&self, folder: &Path) {
        assert!(Command::new("umount").arg(folder).status().unwrap().success(), "umount {}", folder.display());
    }

    /// What has a name in shared memory.
    pub(crate) fn shared_memory(&self) -> Vec<PathBuf> {
        std::fs::read_dir(SHM).unwrap().map(|entry| entry.unwrap().path()).collect()
    }
}
