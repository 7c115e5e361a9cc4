//! A control group of a test's own, version 1 or 2, removed at its end.

use super::{Bench, is_root};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const MOUNT: &str = "/sys/fs/cgroup";

/// A group of one controller.
pub(crate) struct Cgroup {
    folder: PathBuf,
    is_first_version: bool,
}

impl Cgroup {
    /// Makes one under `controller`; `None` where this user, or this machine's tree of groups, gives none. `file` is one
    /// that the controller puts into each group, under version 1 or 2.
    pub(crate) fn new(controller: &str, name: &str, file: [&str; 2]) -> Option<Cgroup> {
        if !is_root() {
            return None;
        }
        let (v1, v2) = (Path::new(MOUNT).join(controller), Path::new(MOUNT));
        if v2.join("cgroup.subtree_control").exists() {
            // It may be on already, or not be ours to turn on: the child shows which.
            let _ = std::fs::write(v2.join("cgroup.subtree_control"), format!("+{controller}"));
        }
        let is_first_version = v1.is_dir();
        let parent = if is_first_version { &v1 } else { v2 };
        let folder = parent.join(format!("contention-lab-test-{name}-{}", std::process::id()));
        std::fs::create_dir(&folder).ok()?;
        let cgroup = Cgroup { folder, is_first_version };
        cgroup.path(file).exists().then_some(cgroup)
    }

    /// A file of the group, by its name under version 1 and under version 2.
    fn path(&self, [v1, v2]: [&str; 2]) -> PathBuf {
        self.folder.join(if self.is_first_version { v1 } else { v2 })
    }

    /// Writes a setting.
    pub(crate) fn set(&self, file: [&str; 2], value: &str) -> io::Result<()> {
        std::fs::write(self.path(file), value)
    }

    /// Reads a number.
    pub(crate) fn number(&self, file: [&str; 2]) -> Option<u64> {
        std::fs::read_to_string(self.path(file)).ok()?.trim().parse().ok()
    }

    pub(crate) fn is_first_version(&self) -> bool {
        self.is_first_version
    }

    pub(crate) fn name(&self) -> &str {
        self.folder.file_name().unwrap().to_str().unwrap()
    }

    /// A run on the scenario that is in the group from its first moment.
    pub(crate) fn run(&self, bench: &Bench) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$ >\"$0/cgroup.procs\" && exec \"$@\""]).arg(&self.folder);
        command.arg(env!("CARGO_BIN_EXE_coordinator")).arg("run").arg(bench.scenario());
        command.arg("--out").arg(bench.results()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Busy until the kernel has let go of the last process.
        for _ in 0..1_000 {
            match std::fs::remove_dir(&self.folder) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                _ => return,
            }
        }
    }
}
