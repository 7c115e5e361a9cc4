//! Whether a hypervisor lies between this machine and the hardware, and which.

use crate::named_rows::row;
use crate::root::Root;
use std::fmt;

/// What virtualises this machine. Displayed as its name, and as `unnamed` where it has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hypervisor {
    /// Its name, as it is commonly written: `KVM`, `Hyper-V`.
    Named(String),
    /// One is there and does not say which.
    Unnamed,
}

impl Hypervisor {
    /// Why this machine has no hardware PMU, beside words that say so: `KVM passes none through`.
    pub fn passes_no_pmu(&self) -> String {
        match self {
            Hypervisor::Named(name) => format!("{name} passes none through"),
            Hypervisor::Unnamed => "the hypervisor passes none through".to_owned(),
        }
    }
}

impl fmt::Display for Hypervisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Hypervisor::Named(name) => name,
            Hypervisor::Unnamed => "unnamed",
        })
    }
}

/// The hypervisor, where one shows itself: by cpuid on the running x86-64 machine, else by the `hypervisor` flag in
/// `/proc/cpuinfo` or Xen's `/sys/hypervisor/type`. One that hides itself is not seen.
pub fn hypervisor(root: &Root) -> Option<Hypervisor> {
    if root.is_system()
        && let Some(found) = by_cpuid()
    {
        return Some(found);
    }
    if let Some(kind) = root.text("sys/hypervisor/type").filter(|kind| !kind.is_empty()) {
        return Some(Hypervisor::Named(kind));
    }
    let cpuinfo = root.text("proc/cpuinfo")?;
    row(&cpuinfo, "flags")?.split_whitespace().any(|flag| flag == "hypervisor").then_some(Hypervisor::Unnamed)
}

/// The name in leaf 0x4000_0000, which a processor fills in only under a hypervisor (leaf 1, ECX bit 31).
///
/// # References
/// `Documentation/virt/kvm/x86/cpuid.rst`; Microsoft, "Hypervisor Top Level Functional Specification", feature
/// discovery.
#[cfg(target_arch = "x86_64")]
fn by_cpuid() -> Option<Hypervisor> {
    use std::arch::x86_64::__cpuid;
    const PRESENT: u32 = 1 << 31;
    if __cpuid(1).ecx & PRESENT == 0 {
        return None;
    }
    let leaf = __cpuid(0x4000_0000);
    let signature: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx].into_iter().flat_map(u32::to_le_bytes).collect();
    Some(known_by(&signature))
}

#[cfg(not(target_arch = "x86_64"))]
fn by_cpuid() -> Option<Hypervisor> {
    None
}

#[cfg(any(target_arch = "x86_64", test))]
fn known_by(signature: &[u8]) -> Hypervisor {
    let text = String::from_utf8_lossy(signature);
    let name = match text.trim_matches(['\0', ' ']) {
        "KVMKVMKVM" => "KVM",
        "Microsoft Hv" => "Hyper-V",
        "VMwareVMware" => "VMware",
        "XenVMMXenVMM" => "Xen",
        "TCGTCGTCGTCG" => "QEMU without KVM",
        "bhyve bhyve" => "bhyve",
        "" => return Hypervisor::Unnamed,
        other => other,
    };
    Hypervisor::Named(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Hypervisor, hypervisor, known_by};
    use crate::fixture::Fixture;

    #[test]
    fn signatures_become_names() {
        let named = |signature: &[u8]| known_by(signature).to_string();
        assert_eq!(named(b"KVMKVMKVM\0\0\0"), "KVM");
        assert_eq!(named(b"Microsoft Hv"), "Hyper-V");
        assert_eq!(named(b"NewNewNewNew"), "NewNewNewNew");
        assert_eq!(known_by(&[0; 12]), Hypervisor::Unnamed);
    }

    #[test]
    fn one_without_a_name_is_not_given_one() {
        let why = |found: Hypervisor| found.passes_no_pmu();
        assert_eq!(why(Hypervisor::Named("KVM".into())), "KVM passes none through");
        assert_eq!(why(Hypervisor::Unnamed), "the hypervisor passes none through");
        assert_eq!(Hypervisor::Unnamed.to_string(), "unnamed", "the word of run.json");
    }

    #[test]
    fn files_tell_where_the_processor_cannot_be_asked() {
        let xen = Fixture::new().file("sys/hypervisor/type", "xen\n");
        assert_eq!(hypervisor(&xen.root()), Some(Hypervisor::Named("xen".into())));
        let unnamed = Fixture::new().file("proc/cpuinfo", "flags : fpu hypervisor\n");
        assert_eq!(hypervisor(&unnamed.root()), Some(Hypervisor::Unnamed));
        let metal = Fixture::new().file("proc/cpuinfo", "flags : fpu hypervisors\n");
        assert_eq!(hypervisor(&metal.root()), None);
    }
}
