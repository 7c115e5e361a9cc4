//! What a switch between two address spaces does to the TLB.

use crate::named_rows::row;
use crate::root::Root;

/// Whether TLB entries are marked with their address space, so that they outlive a switch.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum SpaceIds {
    /// x86 with process-context identifiers.
    Pcid {
        /// Whether single entries of another space can be dropped by an instruction of their own.
        invpcid: bool,
    },
    /// x86 without: each switch of address spaces empties the TLB.
    None,
    /// Arm, which always has them.
    Arm,
}

/// Reads the processor's flags as the kernel uses them (booted with `nopcid` it shows none); `None` where they are not
/// said.
///
/// # References
/// Intel SDM volume 3A, 4.10.1 "Process-Context Identifiers"; AMD APM volume 2, 5.5.1; Arm ARM, D8.16 "ASID".
pub fn space_ids(root: &Root) -> Option<SpaceIds> {
    let cpuinfo = root.text("proc/cpuinfo")?;
    if let Some(flags) = row(&cpuinfo, "flags") {
        let has = |wanted| flags.split_whitespace().any(|flag| flag == wanted);
        return Some(if has("pcid") { SpaceIds::Pcid { invpcid: has("invpcid") } } else { SpaceIds::None });
    }
    row(&cpuinfo, "CPU implementer").map(|_| SpaceIds::Arm)
}

#[cfg(test)]
mod tests {
    use super::{SpaceIds, space_ids};
    use crate::fixture::Fixture;

    #[test]
    fn flags_are_whole_words() {
        let of = |text| space_ids(&Fixture::new().file("proc/cpuinfo", text).root());
        assert_eq!(of("flags : fpu pcid invpcid\n"), Some(SpaceIds::Pcid { invpcid: true }));
        assert_eq!(of("flags : fpu pcid invpcid_single\n"), Some(SpaceIds::Pcid { invpcid: false }));
        assert_eq!(of("flags : fpu sse\n"), Some(SpaceIds::None));
        assert_eq!(of("CPU implementer : 0x41\n"), Some(SpaceIds::Arm));
        assert_eq!((of("machine : other\n"), space_ids(&Fixture::new().root())), (None, None));
    }
}
