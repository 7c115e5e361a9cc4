//! Machines as folders, for tests.

use crate::root::Root;

/// A `proc` and `sys` tree under construction, removed at its end.
pub(crate) struct Fixture(tempfile::TempDir);

impl Fixture {
    pub(crate) fn new() -> Fixture {
        Fixture(tempfile::tempdir().expect("a temporary folder"))
    }

    pub(crate) fn root(&self) -> Root {
        Root::at(self.0.path())
    }

    pub(crate) fn file(self, path: &str, text: &str) -> Fixture {
        let path = self.0.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a path below the folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
        self
    }

    pub(crate) fn online(self, list: &str) -> Fixture {
        self.file("sys/devices/system/cpu/online", &format!("{list}\n"))
    }

    pub(crate) fn node(self, node: u32, cpus: &str) -> Fixture {
        self.file(&format!("sys/devices/system/node/node{node}/cpulist"), &format!("{cpus}\n"))
    }

    pub(crate) fn cpu(self, cpu: u32, socket: u32, core: u32) -> Fixture {
        let folder = format!("sys/devices/system/cpu/cpu{cpu}/topology");
        self.file(&format!("{folder}/physical_package_id"), &format!("{socket}\n"))
            .file(&format!("{folder}/core_id"), &format!("{core}\n"))
    }

    pub(crate) fn die(self, cpu: u32, die: u32) -> Fixture {
        self.file(&format!("sys/devices/system/cpu/cpu{cpu}/topology/die_id"), &format!("{die}\n"))
    }

    /// Caches of one CPU: level, type, who shares.
    pub(crate) fn caches(mut self, cpu: u32, caches: &[(u32, &str, &str)]) -> Fixture {
        for (index, (level, kind, shared)) in caches.iter().enumerate() {
            let folder = format!("sys/devices/system/cpu/cpu{cpu}/cache/index{index}");
            self = self
                .file(&format!("{folder}/level"), &format!("{level}\n"))
                .file(&format!("{folder}/type"), &format!("{kind}\n"))
                .file(&format!("{folder}/shared_cpu_list"), &format!("{shared}\n"));
        }
        self
    }
}
