//! Which row of the table of processors a CPU is.

use host::Pmu;
use plan::CpuIdentity;

/// By what one kind of core is recognised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Recognised {
    /// An x86 processor.
    X86 {
        vendor: String,
        family: u32,
        models: Ranges,
        /// The core PMU's name, where processors with these numbers have several kinds of core.
        hybrid: Option<String>,
    },
    /// An Arm processor, whose kinds of core have numbers of their own.
    Arm { implementer: u32, parts: Ranges },
}

impl Recognised {
    /// Whether a CPU with these numbers, served by `pmu`, is of this kind. A hybrid's is not recognised without a PMU:
    /// the numbers are the same for all its cores.
    pub(crate) fn is(&self, identity: &CpuIdentity, pmu: Option<&Pmu>) -> bool {
        match (self, identity) {
            (
                Recognised::X86 { vendor, family, models, hybrid },
                CpuIdentity::X86 { vendor: v, family: f, model, .. },
            ) => {
                let named = |wanted: &String| pmu.is_some_and(|pmu| pmu.name == *wanted);
                vendor == v && family == f && models.contain(*model) && hybrid.as_ref().is_none_or(named)
            }
            (Recognised::Arm { implementer, parts }, CpuIdentity::Arm { implementer: i, part }) => {
                implementer == i && parts.contain(*part)
            }
            _ => false,
        }
    }
}

/// Numbers, as `0x00-0x0f, 0x20`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ranges(Vec<(u32, u32)>);

impl Ranges {
    pub(crate) fn contain(&self, number: u32) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&number))
    }
}

impl std::str::FromStr for Ranges {
    type Err = String;

    fn from_str(text: &str) -> Result<Ranges, String> {
        let range = |text: &str| {
            let (first, last) = text.split_once('-').unwrap_or((text, text));
            Some((hexadecimal(first)?, hexadecimal(last)?)).filter(|(first, last)| first <= last)
        };
        let read = |part: &str| range(part.trim()).ok_or_else(|| format!("`{part}` is no range such as 0x10-0x1f"));
        Ok(Ranges(text.split(',').map(read).collect::<Result<_, _>>()?))
    }
}

fn hexadecimal(text: &str) -> Option<u32> {
    u32::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::Ranges;

    #[test]
    fn ranges_hold_both_ends() {
        let ranges: Ranges = "0x00-0x0f, 0x21".parse().unwrap();
        let inside: Vec<u32> = (0..0x30).filter(|number| ranges.contain(*number)).collect();
        assert_eq!(inside, (0..=0xf).chain([0x21]).collect::<Vec<_>>());
    }

    #[test]
    fn what_is_no_range_is_refused() {
        for text in ["", "85", "0x2f-0x20", "0x1-", "0xzz"] {
            assert!(text.parse::<Ranges>().is_err(), "{text}");
        }
    }
}
