//! Simultaneous multithreading: several CPUs of Linux's on one core.

use crate::root::Root;

/// What the kernel says about the machine's hardware threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Smt {
    /// Whether some core runs more than one thread at present.
    pub active: Option<bool>,
    /// `on`, `off`, `forceoff`, `notsupported`, `notimplemented`, or a number of threads on some architectures.
    pub control: Option<String>,
}

/// Reads `/sys/devices/system/cpu/smt`. A hypervisor can show the threads of one core as cores of their own: then this
/// says that there are none.
///
/// # References
/// `Documentation/ABI/testing/sysfs-devices-system-cpu`, smt.
pub fn smt(root: &Root) -> Smt {
    let folder = "sys/devices/system/cpu/smt";
    Smt {
        active: root.number::<u8>(&format!("{folder}/active")).map(|active| active != 0),
        control: root.text(&format!("{folder}/control")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Smt, smt};
    use crate::fixture::Fixture;

    #[test]
    fn both_files_are_read_and_may_be_absent() {
        let fixture = Fixture::new()
            .file("sys/devices/system/cpu/smt/active", "1\n")
            .file("sys/devices/system/cpu/smt/control", "on\n");
        assert_eq!(smt(&fixture.root()), Smt { active: Some(true), control: Some("on".to_owned()) });
        assert_eq!(smt(&Fixture::new().root()), Smt { active: None, control: None });
    }
}
