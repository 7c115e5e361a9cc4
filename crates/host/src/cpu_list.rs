//! The kernel's notation for sets of CPUs: `0-3,8,10-11`.

use std::collections::BTreeSet;

/// More CPUs than any Linux supports (`CONFIG_NR_CPUS` ends at 8192): a range beyond it is damage, not a machine.
const CPU_LIMIT: u32 = 1 << 16;

/// Reads a list such as `0-3,8`. The empty text is the empty set (a NUMA node of memory alone has it); `None` where the
/// text is no such list.
///
/// # References
/// `Documentation/admin-guide/cputopology.rst` and `bitmap_print_to_pagebuf` in the Linux sources.
pub fn parse_cpu_list(text: &str) -> Option<BTreeSet<u32>> {
    let mut cpus = BTreeSet::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if first > last || last >= CPU_LIMIT {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

/// Writes a set the way the kernel does: `0-3,8`; `none` for the empty set.
pub fn format_cpu_list(cpus: &BTreeSet<u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    if ranges.is_empty() {
        return "none".to_owned();
    }
    let written = ranges.iter().map(|(a, b)| if a == b { a.to_string() } else { format!("{a}-{b}") });
    written.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::{format_cpu_list, parse_cpu_list};

    #[test]
    fn lists_are_read_and_written_back_as_the_kernel_prints_them() {
        for text in ["0", "0-3", "0-3,8,10-11", "1,3,5"] {
            assert_eq!(format_cpu_list(&parse_cpu_list(text).unwrap()), text);
        }
        assert!(parse_cpu_list("").unwrap().is_empty());
        assert_eq!(format_cpu_list(&parse_cpu_list("\n").unwrap()), "none");
    }

    #[test]
    fn damage_is_refused_rather_than_guessed_at() {
        for text in ["a", "3-1", "0-", "-1", "0-4294967295", "0..3"] {
            assert_eq!(parse_cpu_list(text), None, "{text}");
        }
    }
}
