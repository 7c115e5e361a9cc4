//! Machines as folders, for tests.

use crate::{Finding, Patient};
use host::Root;
use plan::{Cpu, CpuId, Topology};
use record::CheckState;

/// A `proc` and `sys` tree under construction, removed at its end, with a topology and the CPUs in question: at first
/// two cores of one socket, both in question, and no file at all.
pub(crate) struct Fixture {
    folder: tempfile::TempDir,
    root: Root,
    topology: Topology,
    cpus: Vec<CpuId>,
}

impl Fixture {
    pub(crate) fn new() -> Fixture {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = Root::at(folder.path());
        Fixture { folder, root, topology: Topology { cpus: vec![] }, cpus: vec![] }.cores(2)
    }

    pub(crate) fn file(self, path: &str, text: &str) -> Fixture {
        let path = self.folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a path below the folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
        self
    }

    /// So many CPUs, each a core of its own, in one socket with one last-level cache; all are in question.
    pub(crate) fn cores(self, count: u32) -> Fixture {
        let cpu = |id| Cpu { id: CpuId(id), core: id, llc: 0, node: 0, socket: 0, usable: true };
        self.topology((0..count).map(cpu).collect())
    }

    /// These CPUs; all are in question.
    pub(crate) fn topology(mut self, cpus: Vec<Cpu>) -> Fixture {
        self.cpus = cpus.iter().map(|cpu| cpu.id).collect();
        self.topology = Topology { cpus };
        self
    }

    /// Only these are in question.
    pub(crate) fn in_question(mut self, cpus: &[u32]) -> Fixture {
        self.cpus = cpus.iter().copied().map(CpuId).collect();
        self
    }

    pub(crate) fn patient(&self) -> Patient<'_> {
        Patient { root: &self.root, topology: &self.topology, cpus: &self.cpus }
    }

    /// What `theme` finds on this machine.
    pub(crate) fn findings(&self, theme: impl Fn(&Patient<'_>) -> Vec<Finding>) -> Vec<Finding> {
        theme(&self.patient())
    }

    /// The check called `name` among what `theme` finds, which must be well formed.
    pub(crate) fn check(&self, theme: impl Fn(&Patient<'_>) -> Vec<Finding>, name: &str) -> Finding {
        let found = self.findings(theme);
        let names: Vec<&str> = found.iter().map(|finding| finding.check.name.as_str()).collect();
        let at = names.iter().position(|known| *known == name).unwrap_or_else(|| panic!("no {name} in {names:?}"));
        assert_well_formed(&found[at]);
        found[at].clone()
    }
}

/// What every finding keeps to, so that a screen of them can be read.
pub(crate) fn assert_well_formed(finding: &Finding) {
    let check = &finding.check;
    let snake = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    assert!(!check.name.is_empty() && check.name.chars().all(snake), "{check:?}");
    assert!(!check.seen.is_empty() && check.seen.chars().count() <= 64, "too long for a line: {check:?}");
    assert!(!check.why.is_empty() && !check.why.contains('\n'), "{check:?}");
    assert!(check.state != CheckState::Ok || check.cure.is_none(), "nothing to cure: {check:?}");
}
