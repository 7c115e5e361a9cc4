//! How many translations of data addresses a core keeps.

use crate::root::Root;

/// Entries for loads, by size of page.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct DataTlb {
    /// For pages of 4 KiB.
    pub small: Entries,
    /// For pages of 2 MiB.
    pub huge: Entries,
}

/// Entries by level; `None` where cpuid does not say.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries {
    /// Asked first.
    pub first: Option<u32>,
    /// Asked where the first has none; often shared with instructions or between sizes of page.
    pub second: Option<u32>,
}

impl Entries {
    fn at_level(&mut self, level: u32, entries: u32) {
        let level = if level <= 1 { &mut self.first } else { &mut self.second };
        *level = (*level).max(Some(entries).filter(|entries| *entries > 0));
    }
}

/// What cpuid says on the CPU that the caller happens to run on; `None` for a fixture, on other architectures and where
/// cpuid says nothing. A hypervisor may change or hide it.
///
/// # References
/// AMD APM volume 3, appendix E.4: Fn8000_0005, Fn8000_0006, Fn8000_0021. Intel SDM volume 2A, CPUID: leaf 18H, else
/// leaf 02H.
pub fn data_tlb(root: &Root) -> Option<DataTlb> {
    if root.is_system() { by_cpuid().filter(|tlb| *tlb != DataTlb::default()) } else { None }
}

#[cfg(target_arch = "x86_64")]
fn by_cpuid() -> Option<DataTlb> {
    use std::arch::x86_64::{__cpuid, __cpuid_count, CpuidResult};
    let words = |leaf: CpuidResult| [leaf.eax, leaf.ebx, leaf.ecx, leaf.edx];
    let highest = __cpuid(0);
    match &[highest.ebx, highest.edx, highest.ecx].map(u32::to_le_bytes).concat()[..] {
        b"AuthenticAMD" | b"HygonGenuine" => {
            let highest = __cpuid(0x8000_0000).eax;
            let leaf = |leaf| if leaf <= highest { words(__cpuid(leaf)) } else { [0; 4] };
            Some(of_amd(leaf(0x8000_0005), leaf(0x8000_0006), leaf(0x8000_0021)))
        }
        b"GenuineIntel" if highest.eax >= 0x18 => {
            let last = __cpuid_count(0x18, 0).eax.min(63);
            let described = of_intel((0..=last).map(|part| words(__cpuid_count(0x18, part))));
            Some(if described == DataTlb::default() { of_descriptors(words(__cpuid(2))) } else { described })
        }
        b"GenuineIntel" if highest.eax >= 2 => Some(of_descriptors(words(__cpuid(2)))),
        _ => None,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn by_cpuid() -> Option<DataTlb> {
    None
}

/// EAX is for 2 MiB, EBX for 4 KiB. The first level has the number of data entries in bits 23:16. The second has it in
/// 27:16, or it is unified where these are 0 and stands in 11:0; Fn8000_0021 EAX bit 14 says that it counts by 32, as
/// from Zen 5 on: the field would be too small.
#[cfg(any(target_arch = "x86_64", test))]
fn of_amd(first: [u32; 4], second: [u32; 4], features: [u32; 4]) -> DataTlb {
    let unit = if features[0] & 1 << 14 == 0 { 1 } else { 32 };
    let said = |entries: u32| Some(entries).filter(|entries| *entries > 0);
    let entries = |first: u32, second: u32| Entries {
        first: said(first >> 16 & 0xff),
        second: said(second >> 16 & 0xfff).or(said(second & 0xfff)).map(|entries| entries * unit),
    };
    DataTlb { small: entries(first[1], second[1]), huge: entries(first[0], second[0]) }
}

/// Leaf 18H, a structure a part: EBX has the sizes of page in bits 3:0 (4 KiB, 2 MiB, 4 MiB, 1 GiB) and the ways in
/// 31:16, ECX the sets, EDX the type in bits 4:0 (1 data, 2 instructions, 3 both, 4 loads, 5 stores) and the level in
/// 7:5.
#[cfg(any(target_arch = "x86_64", test))]
fn of_intel(parts: impl Iterator<Item = [u32; 4]>) -> DataTlb {
    let mut tlb = DataTlb::default();
    for [_, ebx, sets, edx] in parts.filter(|part| matches!(part[3] & 0x1f, 1 | 3 | 4)) {
        let (level, entries) = (edx >> 5 & 7, (ebx >> 16).saturating_mul(sets));
        if ebx & 1 != 0 {
            tlb.small.at_level(level, entries);
        }
        if ebx & 2 != 0 {
            tlb.huge.at_level(level, entries);
        }
    }
    tlb
}

/// Descriptor, level, entries for 4 KiB, entries for 2 MiB: SDM volume 2A, table "Encoding of CPUID Leaf 2
/// Descriptors", the data and shared TLBs of Nehalem and later. An unknown one is left out, so a level may stay unsaid.
#[cfg(any(target_arch = "x86_64", test))]
const DESCRIPTORS: [(u8, u32, u32, u32); 14] = [
    (0x03, 1, 64, 0),
    (0x5a, 1, 0, 32),
    (0x63, 1, 0, 32),
    (0x64, 1, 512, 0),
    (0x6b, 1, 256, 0),
    (0x6c, 1, 0, 128),
    (0xa0, 1, 32, 0),
    (0xb3, 1, 128, 0),
    (0xb4, 2, 256, 0),
    (0xba, 2, 64, 0),
    (0xc1, 2, 1024, 1024),
    (0xc2, 1, 0, 16),
    (0xc3, 2, 1536, 1536),
    (0xca, 2, 512, 0),
];

/// Leaf 02H: a descriptor a byte, without the lowest byte of EAX and the registers whose highest bit is set.
#[cfg(any(target_arch = "x86_64", test))]
fn of_descriptors([eax, ebx, ecx, edx]: [u32; 4]) -> DataTlb {
    let mut tlb = DataTlb::default();
    let valid = [eax & !0xff, ebx, ecx, edx].into_iter().filter(|register| register >> 31 == 0);
    for byte in valid.flat_map(u32::to_le_bytes) {
        for (_, level, small, huge) in DESCRIPTORS.iter().filter(|known| known.0 == byte) {
            tlb.small.at_level(*level, *small);
            tlb.huge.at_level(*level, *huge);
        }
    }
    tlb
}

#[cfg(test)]
mod tests {
    use super::{DataTlb, Entries, data_tlb, of_amd, of_descriptors, of_intel};
    use crate::fixture::Fixture;

    fn entries(first: u32, second: u32) -> Entries {
        Entries { first: Some(first), second: Some(second) }
    }

    #[test]
    fn amd_s_leaves_as_a_zen_five_fills_them() {
        let first = [0xff60_ff40, 0xff60_ff40, 0, 0];
        let second = [0x4080_2040, 0x6080_4040, 0, 0];
        let times_32 = [1 << 14, 0, 0, 0];
        assert_eq!(of_amd(first, second, times_32), DataTlb { small: entries(96, 4096), huge: entries(96, 4096) });
        assert_eq!(of_amd(first, second, [0; 4]).small, entries(96, 128), "as a hypervisor shows it without the bit");
        assert_eq!(of_amd(first, [0, 0x4200, 0, 0], [0; 4]).small, entries(96, 512), "a unified second level");
        assert_eq!(of_amd([0; 4], [0; 4], [0; 4]), DataTlb::default());
    }

    #[test]
    fn intel_s_parts_are_told_apart_by_type_and_level() {
        let parts = [
            [3, 0, 0, 0],                      // nothing
            [0, 0x0008_0001, 16, 1 << 5 | 2],  // instructions
            [0, 0x0004_0001, 16, 1 << 5 | 4],  // loads, 4 KiB: 64
            [0, 0x0010_0001, 1, 1 << 5 | 5],   // stores
            [0, 0x0004_0006, 8, 1 << 5 | 1],   // 2 and 4 MiB: 32
            [0, 0x0008_0007, 256, 2 << 5 | 3], // shared: 2048
            [0, 0x0008_0009, 128, 2 << 5 | 3], // shared, 4 KiB and 1 GiB: 1024
        ];
        assert_eq!(of_intel(parts.into_iter()), DataTlb { small: entries(64, 2048), huge: entries(32, 2048) });
        assert_eq!(of_intel([[0; 4]].into_iter()), DataTlb::default());
    }

    #[test]
    fn descriptors_as_a_skylake_fills_them() {
        let skylake = [0x7603_6301, 0x00f0_b5ff, 0, 0x00c3_0000];
        assert_eq!(of_descriptors(skylake), DataTlb { small: entries(64, 1536), huge: entries(32, 1536) });
        assert_eq!(
            of_descriptors([0x0000_0003, 0x8000_0003, 0, 0]),
            DataTlb::default(),
            "neither byte is a descriptor"
        );
    }

    #[test]
    fn a_described_machine_has_no_cpuid() {
        assert_eq!(data_tlb(&Fixture::new().root()), None);
    }
}
