//! Which processor a CPU is, as its maker numbers it: read by `host`, looked up by `counters` and `model`.

/// A CPU's processor as `/proc/cpuinfo` numbers it: what event lists and the kernel's own tables go by.
///
/// Of a machine with several kinds of core all may have the same numbers (Intel's do): their PMUs tell those apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CpuIdentity {
    /// An x86 processor.
    X86 {
        /// `GenuineIntel`, `AuthenticAMD`.
        vendor: String,
        /// Family, the extended one included.
        family: u32,
        /// Model, the extended one included.
        model: u32,
    },
    /// An Arm processor, by its main identification register (MIDR_EL1).
    Arm {
        /// `CPU implementer`: 0x41 is Arm itself.
        implementer: u32,
        /// `CPU part`.
        part: u32,
    },
}

impl std::fmt::Display for CpuIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CpuIdentity::X86 { vendor, family, model } => write!(f, "{vendor} family {family} model {model:#x}"),
            CpuIdentity::Arm { implementer, part } => write!(f, "Arm implementer {implementer:#x} part {part:#x}"),
        }
    }
}
