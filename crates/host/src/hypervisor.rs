//! Whether a hypervisor lies between this machine and the hardware, and which.

use crate::facts::row;
use crate::root::Root;

/// What is said where a hypervisor is present without a name.
const UNNAMED: &str = "unnamed";

/// The hypervisor's name, where one shows itself: by cpuid on the running x86-64 machine, else by the `hypervisor` flag
/// in `/proc/cpuinfo` or Xen's `/sys/hypervisor/type`.
pub fn hypervisor(root: &Root) -> Option<String> {
    if root.is_system()
        && let Some(name) = by_cpuid()
    {
        return Some(name);
    }
    if let Some(kind) = root.text("sys/hypervisor/type").filter(|kind| !kind.is_empty()) {
        return Some(kind);
    }
    let cpuinfo = root.text("proc/cpuinfo")?;
    row(&cpuinfo, "flags")?.split_whitespace().any(|flag| flag == "hypervisor").then(|| UNNAMED.to_owned())
}

/// The name in leaf 0x4000_0000, which a processor fills in only under a hypervisor (leaf 1, ECX bit 31).
///
/// # References
/// `Documentation/virt/kvm/x86/cpuid.rst`; Microsoft, "Hypervisor Top Level Functional Specification", feature
/// discovery.
#[cfg(target_arch = "x86_64")]
fn by_cpuid() -> Option<String> {
    use std::arch::x86_64::__cpuid;
    const PRESENT: u32 = 1 << 31;
    if __cpuid(1).ecx & PRESENT == 0 {
        return None;
    }
    let leaf = __cpuid(0x4000_0000);
    let signature: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx].into_iter().flat_map(u32::to_le_bytes).collect();
    Some(name_of(&signature))
}

#[cfg(not(target_arch = "x86_64"))]
fn by_cpuid() -> Option<String> {
    None
}

#[cfg(any(target_arch = "x86_64", test))]
fn name_of(signature: &[u8]) -> String {
    let text = String::from_utf8_lossy(signature);
    match text.trim_matches(['\0', ' ']) {
        "KVMKVMKVM" => "KVM",
        "Microsoft Hv" => "Hyper-V",
        "VMwareVMware" => "VMware",
        "XenVMMXenVMM" => "Xen",
        "TCGTCGTCGTCG" => "QEMU without KVM",
        "bhyve bhyve" => "bhyve",
        "" => UNNAMED,
        other => return other.to_owned(),
    }
    .to_owned()
}

#[cfg(test)]
mod tests {
    use super::{hypervisor, name_of};
    use crate::fixture::Fixture;

    #[test]
    fn signatures_become_names() {
        assert_eq!(name_of(b"KVMKVMKVM\0\0\0"), "KVM");
        assert_eq!(name_of(b"Microsoft Hv"), "Hyper-V");
        assert_eq!(name_of(b"NewNewNewNew"), "NewNewNewNew");
        assert_eq!(name_of(&[0; 12]), "unnamed");
    }

    #[test]
    fn files_tell_where_the_processor_cannot_be_asked() {
        let xen = Fixture::new().file("sys/hypervisor/type", "xen\n");
        assert_eq!(hypervisor(&xen.root()).as_deref(), Some("xen"));
        let metal = Fixture::new().file("proc/cpuinfo", "flags : fpu hypervisors\n");
        assert_eq!(hypervisor(&metal.root()), None);
    }
}
