//! What is published of processors and cannot be measured from a program: their protocol and the size of their buffers.

use crate::protocol::Protocol;
use plan::CpuIdentity;

/// What is published of a processor's core.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct CoreFacts {
    /// How its caches are kept coherent.
    pub protocol: Protocol,
    /// Whether its last level holds all that its cores hold.
    pub llc_is_inclusive: bool,
    /// Stores that wait for their line while the core goes on.
    pub store_buffer: u32,
    /// Instructions that it works on at once.
    pub window: u32,
    /// Where that is published.
    pub source: &'static str,
}

/// One row: protocol, inclusion, store buffer, window, source.
const fn facts(
    protocol: Protocol,
    llc_is_inclusive: bool,
    store_buffer: u32,
    window: u32,
    source: &'static str,
) -> CoreFacts {
    CoreFacts { protocol, llc_is_inclusive, store_buffer, window, source }
}

impl CoreFacts {
    /// Those of `processor`. Of one that is not known here, those of a common core, which the source then says.
    pub fn of(processor: Option<&CpuIdentity>) -> CoreFacts {
        match processor {
            Some(CpuIdentity::X86 { vendor, family, model }) if vendor == "AuthenticAMD" => amd(*family, *model),
            Some(CpuIdentity::X86 { vendor, family: 6, model }) if vendor == "GenuineIntel" => intel(*model),
            Some(CpuIdentity::Arm { implementer: 0x41, part }) => arm(*part),
            _ => None,
        }
        .unwrap_or(UNKNOWN)
    }
}

const UNKNOWN: CoreFacts = facts(
    Protocol::Mesi,
    false,
    56,
    224,
    "none known for this processor; taken as MESI with a last level that holds what was evicted, and the buffers of \
     Intel's Skylake, because these are common",
);

fn amd(family: u32, model: u32) -> Option<CoreFacts> {
    use Protocol::Moesi;
    Some(match (family, model) {
        (0x17, 0x30..) => {
            facts(Moesi, false, 48, 224, "Software Optimization Guide for family 17h models 30h and up (56305)")
        }
        (0x17, _) => facts(Moesi, false, 44, 192, "Software Optimization Guide for family 17h (55723)"),
        (0x19, 0x10..=0x1f | 0x60..=0x7f | 0xa0..=0xaf) => {
            facts(Moesi, false, 64, 320, "Software Optimization Guide for the Zen 4 microarchitecture (57647)")
        }
        (0x19, _) => facts(Moesi, false, 64, 256, "Software Optimization Guide for family 19h (56665)"),
        (0x1a, _) => {
            facts(Moesi, false, 104, 448, "Software Optimization Guide for the Zen 5 microarchitecture (58455)")
        }
        _ => return None,
    })
}

fn intel(model: u32) -> Option<CoreFacts> {
    use Protocol::Mesif;
    const MANUAL: &str = "Intel 64 and IA-32 Architectures Optimization Reference Manual (248966), chapter 2";
    Some(match model {
        0x4e | 0x5e | 0x8e | 0x9e | 0xa5 | 0xa6 => facts(Mesif, true, 56, 224, MANUAL),
        0x55 => facts(Mesif, false, 56, 224, MANUAL),
        0x7d | 0x7e => facts(Mesif, true, 72, 352, MANUAL),
        0x6a | 0x6c => facts(Mesif, false, 72, 352, MANUAL),
        0x8c | 0x8d => facts(Mesif, false, 72, 352, MANUAL),
        0x8f | 0xcf | 0x97 | 0x9a | 0xb7 | 0xba | 0xbf => facts(Mesif, false, 112, 512, MANUAL),
        _ => return None,
    })
}

fn arm(part: u32) -> Option<CoreFacts> {
    use Protocol::Moesi;
    let of = |window, source| Some(facts(Moesi, false, 48, window, source));
    match part {
        0xd0c => of(128, "window: LLVM, AArch64SchedNeoverseN1.td; store buffer: none published, taken as 48"),
        0xd40 => of(256, "window: LLVM, AArch64SchedNeoverseV1.td; store buffer: none published, taken as 48"),
        0xd49 => of(160, "window: LLVM, AArch64SchedNeoverseN2.td; store buffer: none published, taken as 48"),
        0xd4f => of(320, "window: LLVM, AArch64SchedNeoverseV2.td; store buffer: none published, taken as 48"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn x86(vendor: &str, family: u32, model: u32) -> CoreFacts {
        CoreFacts::of(Some(&CpuIdentity::X86 { vendor: vendor.into(), family, model }))
    }

    #[test]
    fn generations_of_one_family_are_told_apart_by_model() {
        assert_eq!((x86("AuthenticAMD", 0x19, 0x21).window, x86("AuthenticAMD", 0x19, 0x61).window), (256, 320));
        assert_eq!(
            (x86("AuthenticAMD", 0x17, 0x8).store_buffer, x86("AuthenticAMD", 0x17, 0x71).store_buffer),
            (44, 48)
        );
        assert!(x86("GenuineIntel", 6, 0x9e).llc_is_inclusive && !x86("GenuineIntel", 6, 0x55).llc_is_inclusive);
    }

    #[test]
    fn a_stranger_is_said_to_be_one() {
        for seen in [x86("GenuineIntel", 6, 0x3c), x86("CentaurHauls", 6, 0x55), CoreFacts::of(None)] {
            assert!(seen.source.starts_with("none known"), "{seen:?}");
        }
    }
}
